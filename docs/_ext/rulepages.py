"""A page for every registered rule, written when the site is built; a new rule gets one without further work.

The facts come from the rule itself (formula, range, promises, advice), from `certify` (which properties hold,
with counterexamples), from `landscape` (pictures) and from other packages (`peers`). Pages are written again
only when verax, this folder or another package has changed.
"""

from __future__ import annotations

import doctest
import hashlib
import math
import re
from dataclasses import fields
from inspect import getdoc
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
from fast import FAST, RULE
from landscapes import TRUTH, draw_rule
from numpydoc.docscrape import NumpyDocString
from peers import METRIC_PEERS, NAMES, PEERS, Peer, data_as_text, version_of

import verax as vx
from verax.report.definitions import ERRATA
from verax.scores import registry
from verax.scores.combinators import Padded, Penalized
from verax.scores.metrics import METRICS, DecisionMetric
from verax.scores.properties import Properties

FOLDER = "rules/generated"
# Numbers of classes for which ranges and constants are shown.
SIZES = (2, 3, 5, 10, 100)


def all_rules() -> dict[str, vx.rules.Rule]:
    """Every rule that gets a page: those registered, and what else the Brier score can be made into.

    Scores of sets, grades and ranges of thresholds are in the guide.
    """
    made = {rule.name for rule in vx.rules.RULES.values()} | set(registry.SET_RULES)
    made |= {"grade", "threshold_brier"}
    others = {name: make(vx.brier) for name, make in registry._MAKERS.items() if name not in made}
    return {**vx.rules.RULES, **others}


# ---- words ---------------------------------------------------------------------------------------


def number(x: float) -> str:
    """A number as pages show it."""
    return "∞" if math.isinf(x) else f"{x:.5g}"


def table(header: list[str], rows: list[list[str]]) -> str:
    """A table of Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", r"\|") for cell in row) + " |" for row in lines)


def range_of(rule: Any) -> str:
    """The range of losses, for several numbers of classes where they differ."""
    texts = {k: "{} to {}".format(*map(number, rule.bounds(k))) for k in SIZES}
    if len(set(texts.values())) == 1:
        return texts[2]
    return "; ".join(f"K = {k}: {text}" for k, text in texts.items())


def spelling(name: str, rule: vx.rules.Rule) -> str:
    """How the rule is written in Python."""
    return f"vx.{name}" if name in vx.rules.RULES else f"vx.{name}(vx.{registry.name_of(rule.rule)})"


def linked(reference: str) -> str:
    """A reference with its DOI or address as a link."""

    def link(found: re.Match[str]) -> str:
        shown = re.sub(r"([<>*_\[\]])", r"\\\1", found[0])
        return f"[{shown}](https://doi.org/{quote(found[1], safe='/.;:-')})"

    reference = re.sub(r"^\.\. \[\d+\] ", "", reference.strip())
    if "doi:" in reference:
        return re.sub(r"doi:(\S*[^\s.,;])", link, reference)
    return re.sub(r"(https://\S+)", r"<\1>", reference)


def references_of(rule: vx.rules.Rule) -> list[str]:
    """What the documentation of the rule's maker cites."""
    maker = registry._MAKERS.get(rule.name, type(rule))
    lines = NumpyDocString(getdoc(maker) or "")["References"]
    works = re.split(r"\n(?=\S)", "\n".join(lines).strip())
    known = [linked(" ".join(work.split())) for work in works if work.strip()]
    return known or [linked(rule.reference)]


def meanings() -> dict[str, str]:
    """What each property means, from the documentation of `Properties`."""
    found = NumpyDocString(getdoc(Properties) or "")["Attributes"]
    texts = {each.name: " ".join([*each.desc] or [each.type]) for each in found}
    return {name: text[:1].upper() + text[1:].rstrip(".") for name, text in texts.items()}


# ---- parts of a page -----------------------------------------------------------------------------


def facts(name: str, rule: vx.rules.Rule) -> str:
    """What the rule is, at a glance."""
    lines = [
        ["In Python", f"`{spelling(name, rule)}`"],
        ["As text", f"`{registry.name_of(rule)}`"],
        ["Range", range_of(rule)],
        ["Orientation", "a loss: lower is better, 0 is best"],
        ["Class order", "matters" if rule.ordinal else "does not matter"],
    ]
    return table(["", ""], lines)


def formula(rule: vx.rules.Rule) -> str:
    """The formula, with what its letters mean."""
    parts = [f"$$\nS(p, y) = {rule.latex}\n$$" if rule.latex else ""]
    said = "K classes, forecast $p$, outcome $y$"
    if "P_i" in rule.latex:
        said += ", $P_i = p_1 + \\dots + p_i$"
    if isinstance(rule, Penalized):
        said += ", $Z$ the [zero-one loss](zero_one.md), $\\lambda_K$ the penalty"
    if isinstance(rule, Padded):
        said += ", $c$ the fine for invalid lists; $p$ is the padded distribution of the list"
    return "\n\n".join([*parts, said + "."])


def constants(rule: vx.rules.Rule) -> str:
    """What a wrong mode costs, for several numbers of classes."""
    if not isinstance(rule, Penalized):
        return ""
    kinds = {kind: vx.penalized(rule.rule, kind) for kind in ("sup", "minimal")}
    rows = [[f"`penalty={kind!r}`", *(number(r.constant(k)) for k in SIZES)] for kind, r in kinds.items()]
    return "\n\n".join(
        [
            "The penalty for several numbers of classes:",
            table(["", *(f"K = {k}" for k in SIZES)], rows),
            f"`{spelling(registry.name_of(rule), rule)}` has `penalty={rule.penalty!r}`.",
        ]
    )


def example(name: str, rule: vx.rules.Rule) -> str:
    """A call with its result."""
    if isinstance(rule, Padded):
        lists = vx.TopLists.from_dicts([{0: 0.5, 1: 0.2}, {2: 0.6}], n_classes=4)
        return (
            "```python\n>>> import verax as vx\n"
            ">>> lists = vx.TopLists.from_dicts([{0: 0.5, 1: 0.2}, {2: 0.6}], n_classes=4)\n"
            f">>> round({spelling(name, rule)}([0, 1], lists), 4)\n{round(rule([0, 1], lists), 4)}\n\n```"
        )
    p = [[0.7, 0.2, 0.1], [0.1, 0.6, 0.3]]
    return (
        "```python\n>>> import verax as vx\n"
        f">>> round({spelling(name, rule)}([0, 2], {p}), 4)\n{round(rule([0, 2], p), 4)}\n\n```"
    )


def picture(name: str, kind: str, alt: str, *, width: str = "") -> str:
    """A picture for light and one for dark pages; one without a width is as wide as the text."""
    options = f":alt: {alt}\n" + (f":width: {width}\n" if width else "")
    images = "\n".join(
        f"```{{image}} {name}-{kind}-{theme}.png\n:class: only-{theme}\n{options}```"
        for theme in ("light", "dark")
    )
    return images if width else f"::::{{div}} wide\n{images}\n::::"


_TRIANGLE = "Each point of a triangle is a forecast of three classes; a corner is certainty of that class."


def pictures(name: str, rule: vx.rules.Rule, drawn: dict[str, vx.results.Landscape]) -> str:
    """The landscapes, with what they show."""
    title, truth = rule.title, ", ".join(map(str, TRUTH))
    tie = ""
    if {"hit", "hit_lowest"} & set(rule.needs):
        tie = (
            "The loss jumps at a tie: on one side the outcome is the most likely class, on the other not. "
            "The dot on the curves is the loss at the tie."
        )
    infinite = "Red lines: the loss is infinite." if np.isinf(drawn["outcomes"].losses).any() else ""
    return "\n\n".join(
        [
            " ".join(filter(None, [_TRIANGLE, infinite, tie])),
            picture(name, "outcomes", f"{title} over the probability triangle, for each outcome"),
            f"The expected loss if the truth is ({truth}). {drawn['expected'].sentence}",
            picture(
                name,
                "expected",
                f"Expected {title} under a given truth, with its minimum",
                width="460px",
            ),
            "Two classes, for each outcome and in expectation:",
            picture(name, "binary", f"{title} of two classes"),
        ]
    )


def properties(rule: vx.rules.Rule, certificates: dict[int, vx.results.Certificate]) -> str:
    """What the rule promises and what the search finds."""
    texts, rows, failures = meanings(), [], []
    for each in fields(Properties):
        found = {k: certificate.findings[each.name] for k, certificate in certificates.items()}
        verdicts = ["yes" if finding.holds else "no" for finding in found.values()]
        name = each.name.replace("_", " ")
        rows.append([f"**{name}**", texts[each.name], str(getattr(rule.properties, each.name)), *verdicts])
        broken = next(((k, f.counterexample) for k, f in found.items() if not f.holds), None)
        # What is not proper is not strictly proper for the same reason.
        if broken is not None and (each.name != "strictly_proper" or certificates[broken[0]].proper):
            failures.append(f"- **Not {name}**, K = {broken[0]}: {broken[1]}.")
    header = ["property", "meaning", "proved", *(f"found, K = {k}" for k in certificates)]
    parts = [table(header, rows)]
    if failures:
        parts.append(
            "Counterexamples that you can check by hand (outcomes count from 0):\n\n" + "\n".join(failures)
        )
    resolution = certificates[3].resolution
    if resolution is not None:
        parts.append(f"Resolution of the search for K = 3: {resolution}")
    parts.append(
        '"Proved" is what verax declares. "Found" is the result of '
        "[certify](../../guide/scores.md#certify-a-rule), which does not read the declaration."
    )
    return "\n\n".join(parts)


def comparison(peers: list[Peer]) -> str:
    """What other packages print for the same forecasts."""
    if not peers:
        return ""
    rows = []
    for peer in peers:
        theirs, ours = peer.numbers()
        package = f"{peer.package} {version_of(peer.package)}"
        lines = [f"`{peer.theirs}` is **{number(theirs)}**", f"`{peer.ours}` is **{number(ours)}**"]
        note = peer.note[:1].upper() + peer.note[1:]
        rows.append([package, "<br>".join([*lines, *filter(None, [note and f"{note}."])])])
    used = {name for name in NAMES for peer in peers if re.search(rf"\b{name}\b", peer.theirs + peer.ours)}
    lines = [line for line in data_as_text().splitlines() if line.partition(" ")[0] in used]
    code = "```python\n" + "\n".join(lines) + "\n```"
    header = ["package", "its number, and the number from verax"]
    return "\n\n".join(["Computed when this page was built, with", code, table(header, rows)])


def see_also(rule: vx.rules.Rule) -> str:
    """Where to read on."""
    pages = [("the scores", "../../guide/scores.md"), ("conventions", "../../guide/conventions.md")]
    if rule.ordinal:
        pages.append(("ordered classes", "../../guide/ordered.md"))
    if isinstance(rule, Penalized):
        pages.append(("selecting checkpoints", "../../guide/selection.md"))
    if isinstance(rule, Padded):
        pages.append(("top lists", "../../guide/toplists.md"))
    pages += [("the theory", "../../theory/index.md"), ("all rules side by side", "../../playground.md")]
    return "See also: " + ", ".join(f"[{text}]({target})" for text, target in pages) + "."


def rule_page(name: str, rule: vx.rules.Rule, folder: Path) -> str:
    """The page of a rule; its pictures are drawn into the folder."""
    certificates = {k: vx.certify(rule, k) for k in (2, 3)}
    drawn = draw_rule(rule, folder, name)
    parts = [f"# {rule.title or name}", rule.description or rule.summary, facts(name, rule)]
    sections = {
        "Formula": [formula(rule), constants(rule), example(name, rule)],
        "Plots": [pictures(name, rule, drawn)],
        "Properties": [properties(rule, certificates)],
        "When to use it": [
            rule.use and f"**Good for.** {rule.use}",
            rule.avoid and f"**Not for.** {rule.avoid}",
        ],
        "Other packages": [comparison(PEERS.get(name, []))],
        "Differences between papers and packages": ["\n".join(f"- {text}" for text in ERRATA.get(name, ()))],
        "References": ["\n".join(f"- {work}" for work in references_of(rule)), see_also(rule)],
    }
    for heading, texts in sections.items():
        if any(texts):
            parts += [f"## {heading}", *filter(None, texts)]
    return "\n\n".join(parts) + "\n"


def _order_of(metric: DecisionMetric) -> str:
    """What the order of the classes means to a metric."""
    if metric.for_two:
        return "two classes; the event is the second, or `positive=`"
    return "matters" if metric.ordinal else "does not matter"


def metrics_page() -> str:
    """One page about all metrics of decisions."""
    parts = [
        "# Metrics of decisions",
        "These metrics judge decisions, not probabilities. A model can make good decisions with bad "
        "probabilities; report them beside a proper score, not instead of one.",
    ]
    for name, metric in METRICS.items():
        k = 2 if metric.for_two else 3
        lines = [
            ["Name", f"`{name}`"],
            [f"Range, K = {k}", "{} to {}".format(*map(number, metric.bounds(k)))],
            ["Orientation", metric.orientation],
            ["Class order", _order_of(metric)],
        ]
        errata = "\n".join(f"- {text}" for text in ERRATA.get(name, ()))
        works = f"Reference: {linked(metric.reference)}."
        compared = comparison(METRIC_PEERS.get(name, []))
        texts = [f"## {metric.title}", metric.description, table(["", ""], lines), compared, errata, works]
        parts += filter(None, texts)
    parts.append("See also: [Decide](../../guide/decisions.md).")
    return "\n\n".join(parts) + "\n"


def overview(rules: dict[str, vx.rules.Rule]) -> str:
    """The table of all rules, and where their pages are."""
    rows = []
    for name, rule in rules.items():
        promised = [str(getattr(rule.properties, f.name)).removesuffix(" only") for f in fields(Properties)]
        image = f"![Landscape of {name}](generated/{name}-thumb.png){{width=64px .dark-light .rule-thumb}}"
        thumb = f"[{image}](generated/{name}.md)"
        low, high = rule.bounds(3)
        link = f"[{rule.title or name}](generated/{name}.md)<br>{rule.summary}"
        rows.append([thumb, link, f"{number(low)} to {number(high)}", *promised])
    names = [f.name.replace("_", " ") for f in fields(Properties)]
    pages = "\n".join(f"generated/{name}" for name in [*rules, "decisions"])
    return "\n\n".join(
        [
            f"::::{{div}} rules-table\n{table(['', 'rule', 'range', *names], rows)}\n::::",
            f"```{{toctree}}\n:hidden:\n\n{pages}\nown\n```",
        ]
    )


# ---- the build -----------------------------------------------------------------------------------


def own_rule(page: Path) -> vx.rules.Rule:
    """The rule that the examples of the page about rules of one's own define."""
    test = doctest.DocTestParser().get_doctest(page.read_text(encoding="utf-8"), {}, page.name, str(page), 0)
    names: dict[str, Any] = {"__name__": "own"}
    for part in test.examples:
        exec(compile(part.source, str(page), "single"), names)
        if isinstance(names.get("rule"), vx.rules.Rule):
            return names["rule"]
    raise ValueError(f"{page} defines no rule")


def state(source: Path) -> str:
    """What the pages are made of, in one number."""
    own = [source / "_ext" / f"{name}.py" for name in ("landscapes", "peers", "rulepages")]
    texts = [*sorted(Path(vx.__file__).parent.rglob("*.py")), *own]
    digest = hashlib.sha256(repr(FAST).encode())
    for path in [*texts, source / "rules" / "own.md"]:
        digest.update(path.read_bytes())
    packages = {peer.package for peers in (*PEERS.values(), *METRIC_PEERS.values()) for peer in peers}
    digest.update(repr([(package, version_of(package)) for package in sorted(packages)]).encode())
    return digest.hexdigest()


def write_pages(source: Path) -> None:
    """Write all pages and pictures, unless nothing has changed."""
    folder = source / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    mark, now = folder / "state.txt", state(source)
    if mark.exists() and mark.read_text() == now:
        return
    rules = {name: rule for name, rule in all_rules().items() if not FAST or name == RULE}
    pages = {f"{name}.md": rule_page(name, rule, folder) for name, rule in rules.items()}
    if not FAST:
        draw_rule(own_rule(source / "rules" / "own.md"), folder, "own")
    pages |= {"decisions.md": metrics_page(), "overview.inc": overview(rules)}
    for old in folder.glob("*.md"):
        if old.name not in pages:
            old.unlink()
    for name, text in pages.items():
        path = folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
    mark.write_text(now)


def setup(app: Any) -> dict[str, bool]:
    """Run before pages are looked for."""
    app.add_css_file("rules.css")
    app.connect("builder-inited", lambda app: write_pages(Path(app.srcdir)))
    return {"parallel_read_safe": True}
