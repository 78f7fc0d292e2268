"""The page about top lists as its template asks for it."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from verax.analyses.calibration.places import Claim
from verax.analyses.cards.lines import CardLine
from verax.analyses.cases import ListCase, text_of
from verax.analyses.subgroups.result import WITHIN_GROUPS
from verax.errors import join
from verax.report.definitions import ERRATA, Definition, of_rule
from verax.report.exhibits import subgroup_lines
from verax.report.lists.charts import length_rows, n_panels, panel_names
from verax.report.lists.contents import ListContents, ListFindings, inner_name
from verax.report.lists.verdict import claim_words, verdict_of
from verax.report.sections import draw_skill, infinite_words, shared_context
from verax.report.words import chance, clean, count, number, percent, probability, span, title_of, within
from verax.scores.metrics import HIGHER

# So many classes of a list are written; the outcome and the rest always are.
_WRITTEN = 6
_TITLES = {
    "accuracy": "Accuracy",
    "coverage": "Coverage",
    "length": "Mean length",
    "unaccounted": "Probability left to others",
    "invalid": "Invalid lists",
}


def context_of(contents: ListContents, *, title: str, source: str) -> dict[str, Any]:
    """Everything that the template asks for."""
    problem = contents.problem
    return {
        **shared_context(contents, title=title, source=source),
        "verdict": verdict_of(contents),
        "facts": _facts(contents),
        "cards": [_card(contents, f) for f in contents.findings],
        "worst": [[_case(contents, case) for case in f.worst] for f in contents.findings],
        "coverage": [_coverage(contents, f) for f in contents.findings],
        "calibration": _calibration(contents),
        "lengths": _lengths(contents),
        "subgroups": [_subgroups(contents, name) for name in contents.subgroups],
        "definitions": [_definition(line, problem.n_classes) for line in _scores(contents.findings[0])],
        "methods": _methods(contents),
    }


def _facts(contents: ListContents) -> list[tuple[str, str]]:
    problem, best = contents.problem, contents.best
    m = f"{problem.n_classes:,}" if problem.n_classes < 10**15 else f"{float(problem.n_classes):.3g}"
    facts = [("rows", f"{problem.n_rows:,}"), ("classes", m)]
    if len(contents.findings) > 1:
        facts.append(("models", f"{len(contents.findings)}"))
    whose = " of the best" if len(contents.findings) > 1 else ""
    facts += [
        (f"longest list{whose}", f"{best.card.longest}"),
        (f"coverage{whose}", percent(best.card.coverage, 1)),
        (f"claimed{whose}", percent(best.whole.claimed, 1)),
        (f"right in first place{whose}", percent(best.card.accuracy, 1)),
    ]
    return facts


# ---- the card ----------------------------------------------------------------------------------


def _scores(found: ListFindings) -> list[Any]:
    """The lines of the rules, named by the rule that is padded."""
    return [line for line in found.card.scores.values() if line.rule is not None]


def _card(contents: ListContents, found: ListFindings) -> dict[str, Any]:
    lines = []
    for line in _scores(found):
        name = inner_name(line)
        lines.append(_line(line, title_of(name), *contents.skill(found.name, name)))
    for name, line in found.card.metrics.items():
        shown = _TITLES.get(name, name.replace("_", "-", 1).replace("_", " ").capitalize())
        lines.append(_line(line, shown, math.nan, (math.nan, math.nan)))
    return {"lines": lines, "zero": draw_skill(lines), "notes": _decomposed(found)}


def _definition(line: Any, n_classes: int) -> Definition:
    """The definition of a rule, under the title of what is padded."""
    name = inner_name(line)
    found = of_rule(line, line.rule, n_classes)
    return replace(found, title=f"{title_of(name)}, padded", errata=ERRATA.get(name, ()))


def _line(line: CardLine, title: str, skill: float, interval: tuple[float, float]) -> dict[str, Any]:
    known = math.isfinite(skill)
    explained = [line.summary] if line.summary.lower() != title.lower() else []
    explained += [line.orientation] if line.orientation not in ("lower is better",) else []
    return {
        "name": title,
        "summary": "; ".join(explained),
        "mean": number(line.mean),
        "interval": span(line.interval),
        "skill": percent(skill, 1) if known else "",
        "skill_interval": f"{percent(interval[0], 1)} to {percent(interval[1], 1)}" if known else "",
        "drawn": skill if known else None,
        "proper": line.proper if line.orientation != HIGHER else "",
        "note": infinite_words(line),
    }


def _decomposed(found: ListFindings) -> str:
    d = found.decomposition
    text = (
        "The Brier score of the events that a list defines (its classes, and “not listed”), "
        f"{number(d.score)} = miscalibration {number(d.miscalibration)} − discrimination "
        f"{number(d.discrimination)} + uncertainty {number(d.uncertainty)}. It leaves out which of the "
        f"unlisted classes happened; with that it is {number(d.padded)}."
    )
    if d.whole.expected_miscalibration is not None:
        text += (
            f" By chance calibrated lists would show {number(d.whole.expected_miscalibration)} of "
            f"miscalibration; p = {probability(d.p_value)}."
        )
    return text


# ---- rows --------------------------------------------------------------------------------------


def _case(contents: ListContents, case: Any) -> dict[str, Any]:
    assert isinstance(case, ListCase)
    entries = list(case.forecast.items())
    shown = entries[:_WRITTEN]
    if case.place is not None and case.place > _WRITTEN:
        shown = [*shown[:-1], entries[case.place - 1]]
    bars = [
        (clean(text_of(name)), chance(t), round(100 * min(t, 1.0), 1), name == case.outcome)
        for name, t in shown
    ]
    hidden = len(entries) - len(shown)
    others = [
        f"{case.rank_words(rule)} by {within(title_of(rule))}"
        for rule in case.ranks
        if rule != contents.primary
    ]
    return {
        "id": clean(case.id),
        "label": "id" if contents.problem.named else "row",
        "outcome": clean(text_of(case.outcome)),
        "place": "not listed" if case.place is None else f"listed at place {case.place} of {len(entries)}",
        "loss": number(case.loss),
        "valid": case.valid,
        "ranks": join(others) if others else "",
        "bars": bars,
        "hidden": f"{hidden:,} more listed" if hidden else "",
        "hidden_mass": chance(max(0.0, sum(t for _, t in entries) - sum(t for _, t in shown))),
        "unlisted": f"{case.n_unlisted:,}" if case.n_unlisted < 10**15 else f"{float(case.n_unlisted):.3g}",
        "left": chance(case.unaccounted),
    }


# ---- coverage and calibration ------------------------------------------------------------------


def _coverage(contents: ListContents, found: ListFindings) -> dict[str, Any]:
    rows = [(f"{k}", percent(happened, 1), percent(claimed, 1)) for k, happened, claimed in found.so_far()]
    return {"rows": rows, "words": _coverage_words(contents, found)}


def _coverage_words(contents: ListContents, found: ListFindings) -> str:
    whole = found.whole
    said = claim_words(whole, contents.confidence)
    return (
        f"The outcome is listed in {percent(whole.happened, 1)} of the rows; the lists claim "
        f"{percent(whole.claimed, 1)}, {said}."
    )


def _calibration(contents: ListContents) -> dict[str, Any]:
    names = panel_names(contents)
    return {
        "panels": [_panel(contents, names[i], i) for i in range(n_panels(contents))],
        "tables": [[_claim(claim) for claim in found.claims] for found in contents.findings],
        "words": [_words(contents, found) for found in contents.findings],
        "banded": all(found.reliability.resamples for found in contents.findings),
    }


def _panel(contents: ListContents, name: str, i: int) -> dict[str, Any]:
    values = []
    for found in contents.findings:
        curve = next((c for c in found.reliability if c.name == name), None)
        if curve is None:
            values.append("no such place")
            continue
        p = curve.components.p_value
        test = "" if p is None else f", p = {probability(p)}"
        values.append(f"miscalibration {number(curve.components.miscalibration)}{test}")
    return {"title": name, "models": values, "i": i}


def _claim(claim: Claim) -> dict[str, str]:
    return {
        "name": claim.name,
        "n": f"{claim.n_lists:,}",
        "claimed": percent(claim.claimed, 2),
        "happened": percent(claim.happened, 2),
        "gap": f"{100 * claim.gap:+.2f}".replace("-", "−"),
        "p": probability(claim.p_value),
        "holm": probability(claim.p_adjusted),
    }


def _words(contents: ListContents, found: ListFindings) -> str:
    level = 1 - contents.confidence
    off = [c for c in found.claims if c.p_adjusted is not None and c.p_adjusted <= level]
    off = [c for c in off if c.name.startswith("place")]
    if not off:
        return "No place claims more or less than happens, beyond chance."
    texts = [f"{c.name} claims {percent(c.claimed, 1)} and has {percent(c.happened, 1)}" for c in off[:4]]
    if len(off) > 4:
        texts.append(count(len(off) - 4, "more place"))
    return f"Beyond chance, {join(texts)}."


# ---- lengths -----------------------------------------------------------------------------------


def _lengths(contents: ListContents) -> dict[str, Any]:
    return {
        "drawn": bool(length_rows(contents)),
        "models": [None if f.lengths is None else _length_table(f.lengths) for f in contents.findings],
    }


def _length_table(found: Any) -> dict[str, Any]:
    last = found.predictions[-1]
    rules = []
    for rule in found.means:
        rows = []
        for each, mean in zip(found.predictions, found[rule], strict=True):
            gap = found.difference(each, last, rule)
            rows.append((each, number(mean), number(gap.difference), span(gap.interval)))
        enough = {share: found.length_within(rule, share) for share in (0.05, 0.01)}
        whole = "the full distribution" if last == "full" else "the lists as given"
        words = "; ".join(
            f"within {percent(share)} of {whole}: {'no shorter list' if k is None else f'lists of {k}'}"
            for share, k in enough.items()
        )
        rules.append({"title": title_of(rule), "rows": rows, "words": f"{words[0].upper()}{words[1:]}."})
    sentences = zip(found.means, found.comparability(), strict=True)
    texts = [f"{title_of(rule)}{text.removeprefix(rule)}" for rule, text in sentences]
    return {"rules": rules, "last": last, "comparability": texts}


# ---- subgroups ---------------------------------------------------------------------------------


def _subgroups(contents: ListContents, name: str) -> dict[str, Any]:
    found = contents.subgroups[name]
    return {
        "name": clean(name),
        "lines": subgroup_lines(found, several=len(contents.findings) > 1),
        "words": WITHIN_GROUPS if found.within_groups else "",
        "flagged": found.verdict(lambda label: clean(label, 40)),
        "rule": title_of(found.rule),
    }


# ---- conventions -------------------------------------------------------------------------------


def _methods(contents: ListContents) -> list[str]:
    problem = contents.problem
    lines = [
        "Lists are scored as padded distributions: what a list leaves is divided evenly among the classes "
        "that are not listed. Invalid lists are scored as their largest valid sublists, with a fine of 1.",
        "Skill is one minus the mean loss over that of saying nothing, an empty list.",
        "Reliability curves are isotonic regressions, without bins. Each place is the event that its class "
        "happens; the whole list the event that the outcome is listed, with the sum of the list as forecast. "
        "Confidences are taken as stated. The band is where curves of calibrated lists with the same "
        "confidences lie.",
        "The test of a place compares the number that happened with what the confidences say, for "
        + "independent "
        + ("groups" if problem.grouped else "rows")
        + "; “Holm” is after Holm’s correction over all places and the whole list.",
        "Nothing was clipped, and no rows were left out.",
    ]
    if problem.full:
        names = join(list(problem.full))
        lines.append(f"{names}: full distributions were given; their lists are the most likely classes.")
    if problem.total_weight is not None:
        lines.append(f"Rows are weighted; the weights sum to {problem.total_weight:,.6g}.")
    if problem.grouped:
        lines.append("Rows of a group count as one unit. Bands of curves take rows as independent.")
    lines += [contents.precision] if contents.precision else []
    absent = [clean(name) for name in contents.by if name not in contents.subgroups]
    if absent:
        lines.append(f"Subgroups by {join(absent)} are not on this page; `verax evaluate --by` prints them.")
    return lines
