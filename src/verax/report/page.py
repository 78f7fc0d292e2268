"""The page: contents and charts to one HTML file that needs nothing else.

All texts go through a template that escapes them. A content security policy names the one script by its
hash and forbids every other script, every connection and the evaluation of text as code.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections import defaultdict
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from typing import Any

from verax.common.packages import needed
from verax.common.wings import wings
from verax.inference.findings import Verdict
from verax.report.bundle import bundle, converter, templates
from verax.report.charts import all_charts
from verax.report.contents import Contents
from verax.report.section import sections
from verax.report.sections import ANCHORS, context_of


def check_packages() -> None:
    """Refuse where a package that pages need is missing, before anything is computed for one."""
    needed("jinja2", "A report", "report")
    converter()


def render(contents: Contents, verdict: Verdict, **about: Any) -> str:
    """The whole page; `about` are title, source, date, command and requirements."""
    check_packages()
    context = context_of(contents, verdict, **about)
    script = bundle() + "\n" + _asset("report.js")
    drawn = all_charts(contents)
    for section in sections():
        drawn |= section.charts(contents)
    added, links = _added(contents, context)
    charts = json.dumps(drawn, allow_nan=False, separators=(",", ":"))
    return str(
        _environment(_folders())
        .get_template("report.html.j2")
        .render(
            **context,
            added=added,
            links=links,
            style=_asset("report.css"),
            script=_plain(script),
            charts=_plain(_harmless(charts)),
            policy=_policy(script),
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


def _policy(script: str) -> str:
    """The content security policy: one script, inline styles, nothing is fetched."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _harmless(text: str) -> str:
    """JSON that cannot end the element it stands in; the characters stay what they are, escaped."""
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


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
