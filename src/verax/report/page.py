"""The page: contents and figures to one HTML file that needs nothing else.

All texts go through a template that escapes them. A content security policy names the one script by its
hash and forbids every other script, every connection and the evaluation of text as code.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from typing import Any

from verax.common.packages import needed
from verax.common.texts import visible
from verax.common.wings import wings
from verax.inference.findings import Verdict
from verax.report.charts import all_figures
from verax.report.compiled import templates
from verax.report.contents import Contents
from verax.report.figures import figure_script, figure_style, policy_for
from verax.report.section import sections
from verax.report.sections import ANCHORS, context_of


def check_packages() -> None:
    """Refuse where a package that pages need is missing, before anything is computed for one."""
    needed("jinja2", "A report", "report")


def render(contents: Contents, verdict: Verdict, **about: Any) -> str:
    """The whole page; `about` are title, source, date, command and requirements."""
    check_packages()
    context = context_of(contents, verdict, **about)
    script = _asset("report.js") + figure_script()
    shown = all_figures(contents)
    for section in sections():
        shown |= section.figures(contents)
    context |= {
        "figures": {name: _plain(visible(each.html(name))) for name, each in shown.items()},
        "keys": {name: _plain(visible(each.key())) for name, each in shown.items() if not each.place.key},
    }
    added, links = _added(contents, context)
    return str(
        _environment(_folders())
        .get_template("report.html.j2")
        .render(
            **context,
            added=added,
            links=links,
            style=_asset("report.css") + figure_style(),
            script=_plain(script),
            policy=policy_for(script),
        )
    )


def _added(contents: Contents, context: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, list[Any]]]:
    """The sections of wings as text, and those that the list of sections names, by what they stand after."""
    shown = [(section, section.exhibit(contents)) for section in sections()]
    slots: defaultdict[str, Any] = defaultdict(str)
    for section, exhibit in shown:
        for place, template in section.inside.items() if exhibit is not None else ():
            slots[place] += _rendered(template, {**context, section.key: exhibit})
    texts: dict[str, list[str]] = {anchor: [] for anchor in ANCHORS}
    links: dict[str, list[Any]] = {anchor: [] for anchor in ANCHORS}
    for section, exhibit in shown:
        if section.template:
            anchor = section.after if section.after in ANCHORS else "parts"
            own = {**context, "slots": slots, section.key: exhibit}
            texts[anchor].append("" if exhibit is None else _rendered(section.template, own))
            links[anchor] += [] if exhibit is None else [section]
    return {anchor: _plain("\n".join(some)) for anchor, some in texts.items()}, links


def _rendered(template: str, context: Mapping[str, Any]) -> Any:
    return _plain(_environment(_folders()).get_template(template).render(context) + "\n")


def _plain(text: str) -> Any:
    """Text that the template must not escape, because it has been checked."""
    from markupsafe import Markup

    return Markup(text)


def _folders() -> tuple[tuple[str, str], ...]:
    """The wings and their packages, each of which may have templates in its folder."""
    return tuple((wing.name, wing.package) for wing in wings())


@lru_cache(maxsize=1)
def _environment(folders: tuple[tuple[str, str], ...]) -> Any:
    jinja2 = needed("jinja2", "A report", "report")
    own = {name: jinja2.PackageLoader(package, "") for name, package in folders}
    return jinja2.Environment(
        loader=jinja2.ChoiceLoader([jinja2.PackageLoader("verax.report"), jinja2.PrefixLoader(own)]),
        bytecode_cache=templates(),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _asset(name: str) -> str:
    return (files("verax.report") / "templates" / name).read_text(encoding="utf-8")
