"""The page as the template asks for it: verdict, scores, worst rows, conventions; the rest are exhibits.

A section that does not apply is None, and the template leaves it out.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from verax._version import __version__
from verax.analyses.cards.lines import CardLine
from verax.analyses.cases import Case, ListCase, ShareCase, text_of
from verax.analyses.rates import RATES
from verax.analyses.words import chance, clean, count, large, number, p_of, part_of, span, title_of, within
from verax.common.texts import percent
from verax.errors import join
from verax.inference.findings import Verdict
from verax.inputs.groups import in_words
from verax.report.balance import balance_exhibit
from verax.report.contents import Contents, Findings, inner_name
from verax.report.conventions import MAIN, definitions_of, methods_of, paragraph_of
from verax.report.exhibits import (
    by_class_exhibit,
    comparison_exhibit,
    confusion_exhibit,
    coverage_exhibit,
    reliability_exhibit,
    subgroups_exhibit,
)
from verax.report.section import in_place, sections
from verax.scores.metrics import HIGHER
from verax.scores.registry import name_of

# The sections of the core, which those of wings stand after.
ANCHORS = (
    "verdict",
    "comparison",
    "reliability",
    "card",
    "coverage",
    "worst",
    "confusion",
    "parts",
    "definitions",
    "checks",
)
# Up to this number of classes a forecast is written in full; beyond, the most likely ones and the outcome.
_WRITTEN, _TOP = 6, 4
# Up to this number of scores, none is folded.
_FEW_SCORES = 3
# What the loss of a case with several raters comes from.
_CAUSES = {"model is off": "The model is off", "raters disagree": "Raters disagree"}
# What metrics of lists are called.
_TITLES = {
    "accuracy": "Accuracy",
    "coverage": "Coverage",
    "length": "Mean length",
    "unaccounted": "Probability left to others",
    "invalid": "Invalid lists",
}


def context_of(
    contents: Contents,
    verdict: Verdict,
    *,
    title: str,
    source: str,
    made: str = "",
    command: str = "",
    required: Sequence[tuple[str, bool]] = (),
    read: str = "",
) -> dict[str, Any]:
    """Everything that the template asks for."""
    findings, lists = contents.findings, contents.problem.lists
    names = [f.name for f in findings]
    return {
        "title": clean(title),
        "source": clean(source, 400),
        "version": __version__,
        "made": made,
        "command": clean(command, 400),
        "read": clean(read, 4000),
        "required": [(clean(text, 200), met) for text, met in required],
        "paragraph": paragraph_of(contents),
        "models": names,
        "several": len(names) > 1,
        "lists": lists,
        "best": names.index(contents.best.name),
        "scores": [title_of(name_of(rule)) for rule in contents.problem.rules],
        "primary": within(title_of(contents.primary)),
        "level": f"{100 * contents.confidence:g}%",
        "verdict": clean(verdict, 4000),
        "next_step": _step(verdict),
        "tested": verdict.tested,
        "facts": _facts(contents),
        "cards": [_card(contents, f) for f in findings],
        "worst": [_split([_case(contents, case) for case in f.worst]) for f in findings],
        "coverage": coverage_exhibit(contents) if lists else None,
        "reliability": reliability_exhibit(contents),
        "confusion": None if lists else [confusion_exhibit(contents, f) for f in findings],
        "balance": None if lists else balance_exhibit(contents),
        "by_class": None if lists else by_class_exhibit(contents),
        "subgroups": [subgroups_exhibit(contents, name) for name in contents.breakdowns],
        "comparison": comparison_exhibit(contents) if len(names) > 1 else None,
        "definitions": definitions_of(contents),
        "methods": methods_of(contents),
        "checks": contents.checks,
    }


def _step(verdict: Verdict) -> str:
    """The command of the next step, or the call where no files are known."""
    step = verdict.next_step
    if step is None:
        return ""
    return clean(step.call if "{source}" in step.command else step.command or step.call, 400)


def _facts(contents: Contents) -> list[tuple[str, str]]:
    problem, best = contents.problem, contents.best
    whose = " of the best" if len(contents.findings) > 1 else ""
    facts: dict[str, list[tuple[str, str]]] = {
        "rows": [("rows", f"{problem.n_rows:,}")],
        "classes": [("ordered classes" if problem.ordered else "classes", large(problem.n_classes))],
        "models": [("models", f"{len(contents.findings)}")] if whose else [],
        "groups": [],
        "coverage": [],
        "accuracy": [(f"accuracy{whose}", percent(best.card.accuracy, 1))],
        "skill": [],
    }
    if best.card.n_groups is not None:
        facts["groups"] = [("groups", in_words(best.card.n_groups).removesuffix(" groups"))]
    if best.places is not None:
        facts["coverage"] = [
            (f"coverage{whose}", percent(best.places.whole.happened, 1)),
            (f"claimed{whose}", percent(best.places.whole.claimed, 1)),
        ]
    skill, _ = _skill(contents, best.name, contents.primary)
    if math.isfinite(skill):
        facts["skill"] = [(f"skill{whose}", percent(skill))]
    return in_place(facts, (fact for section in sections() for fact in section.facts(contents, whose)))


# ---- the card ----------------------------------------------------------------------------------


def _card(contents: Contents, model: Findings) -> dict[str, Any]:
    lines = [
        _line(line, title_of(inner_name(line)), *_skill(contents, model.name, inner_name(line)))
        for line in model.card.scores.values()
        if line.rule is not None
    ]
    names = [inner_name(line) for line in model.card.scores.values() if line.rule is not None]
    for line, name in zip(lines, names, strict=True):
        line["first"] = name == contents.primary
        line["main"] = len(lines) <= _FEW_SCORES or name in (*MAIN, contents.primary)
        if name == "brier" and contents.problem.n_classes == 2 and not contents.problem.lists:
            half = number(model.card.scores["brier"].mean / 2)
            line["summary"] += f"; scikit-learn’s brier_score_loss is half of it: {half}"
    elsewhere = {name for section in sections() for name in section.scored(contents)}
    for name, metric in model.card.metrics.items():
        if name in elsewhere:
            continue
        shown = _line(metric, _metric_title(contents, name), math.nan, (math.nan, math.nan))
        lines.append({**shown, "first": False, "main": True})
    return {"lines": lines, "zero": draw_skill(lines), "notes": _decomposed(contents, model)}


def _metric_title(contents: Contents, name: str) -> str:
    if not contents.problem.lists:
        return RATES[name].title if name in RATES else title_of(name)
    return _TITLES.get(name, name.replace("_", "-", 1).replace("_", " ").capitalize())


def _skill(contents: Contents, model: str, rule: str) -> tuple[float, tuple[float, float]]:
    """The skill that is shown: none where all rows have the same outcome, whose frequency is no forecast."""
    rows = contents.class_rows
    if rows is not None and (rows > 0).sum() == 1:
        return math.nan, (math.nan, math.nan)
    return contents.skill(model, rule)


def draw_skill(lines: list[dict[str, Any]]) -> float:
    """Give every line the width of its bar in percent, and return where zero lies.

    Bars of negative skill go to the left of it; what is below -100 % ends there, and has its number beside.
    """
    known = [min(1.0, max(-1.0, line["drawn"])) for line in lines if line["drawn"] is not None]
    lowest = min([0.0, *known])
    for line in lines:
        drawn = line.pop("drawn")
        line["bar"] = None if drawn is None else round(100 * min(1.0, max(-1.0, drawn)) / (1 - lowest), 2)
    return round(-100 * float(lowest) / (1 - float(lowest)), 2)


def _line(score: CardLine, title: str, skill: float, interval: tuple[float, float]) -> dict[str, Any]:
    known = math.isfinite(skill)
    explained = [score.summary] if score.summary.lower() != title.lower() else []
    explained += ["higher is better"] if score.orientation == HIGHER else []
    explained += (
        [f"caution: {score.interval.caution}"] if score.interval.defined and score.interval.caution else []
    )
    return {
        "name": title,
        "summary": "; ".join(explained),
        "mean": number(score.mean),
        "interval": span(score.interval),
        "skill": percent(skill, 1) if known else "",
        "skill_interval": f"{percent(interval[0], 1)} to {percent(min(interval[1], 1.0), 1)}"
        if known
        else "",
        "drawn": skill if known else None,
        "proper": score.proper if score.orientation != HIGHER else "",
        "note": _infinite_words(score),
    }


def _infinite_words(score: CardLine) -> str:
    """The mean without rows of infinite loss; empty where there are none."""
    if not score.infinite_weight:
        return ""
    return f"{number(score.finite_mean)} without the {count(score.infinite_weight, 'row')} of infinite loss"


def _decomposed(contents: Contents, model: Findings) -> str:
    d, whole = model.decomposition, model.decomposition.whole
    what = title_of(d.quantity)
    if contents.problem.lists:
        what = "Brier score of the events that a list defines (its classes, and “not listed”):"
    text = (
        f"{what} {number(d.score)} = miscalibration {number(d.miscalibration)} "
        f"− discrimination {number(d.discrimination)} + uncertainty {number(d.uncertainty)}."
    )
    if contents.problem.lists:
        padded: Any = d
        text += f" Including which unlisted class happened, it is {number(padded.padded)}."
    if whole.expected_miscalibration is not None:
        text += (
            f" A calibrated forecast would show {number(whole.expected_miscalibration)} of miscalibration by "
            f"chance; {p_of(whole)} from {len(whole.calibrated):,} draws."
        )
    return text


# ---- rows --------------------------------------------------------------------------------------


def _case(contents: Contents, case: Case) -> dict[str, Any]:
    others = [
        f"{case.rank_words(rule)} by {within(title_of(rule))}"
        for rule in case.ranks
        if rule != contents.primary
    ]
    forecast = _listed(case) if isinstance(case, ListCase) else _distributed(contents, case)
    return {
        "id": clean(case.id),
        "label": "id" if contents.problem.named else "row",
        "loss": number(case.loss),
        "ranks": join(others) if others else "",
        **forecast,
    }


def _split(cases: list[dict[str, Any]]) -> list[tuple[str, list[dict[str, Any]]]]:
    """Cases by the source of their loss, where several raters separate it; the others are of one kind."""
    causes = sorted({case["cause"] for case in cases})
    return [
        (_CAUSES.get(cause, cause), [case for case in cases if case["cause"] == cause]) for cause in causes
    ]


def _distributed(contents: Contents, case: Case) -> dict[str, Any]:
    names, p = contents.problem.titles, case.forecast
    shares: Mapping[Hashable, float] = case.outcome if isinstance(case, ShareCase) else {}
    # Of raters who disagree, the class that most of them chose.
    chosen = max(shares, key=lambda name: shares[name]) if shares else case.outcome
    outcome = contents.problem.names.index(str(chosen))
    order = sorted(range(len(names)), key=lambda i: -p[i])
    shown = range(len(names)) if len(names) <= _WRITTEN else sorted({*order[:_TOP], outcome}, key=order.index)
    omitted, rest = len(names) - len(shown), chance(max(0.0, 1 - sum(p[i] for i in shown)))
    cause, _, source = case.source.partition(": ") if shares else ("", "", case.source)
    return {
        "cause": cause,
        "verb": "was chosen" if shares else "happened",
        "outcome": f"{names[outcome]} ({part_of(shares[chosen])} of the raters)"
        if shares
        else names[outcome],
        "expected": "" if order[0] == outcome else names[order[0]],
        "said": "and was the most likely class" if order[0] == outcome else "",
        # Without an order the source of the loss is the rival class, and that is said already.
        "why": f"{source}." if shares or contents.problem.primary.ordinal else "",
        "bars": [(names[i], chance(p[i]), round(100 * p[i], 1), i == outcome) for i in shown],
        "rest": [(f"{omitted:,} others", rest)] if omitted else [],
    }


def _listed(case: ListCase) -> dict[str, Any]:
    entries = list(case.forecast.items())
    shown = entries[:_WRITTEN]
    if case.place is not None and case.place > _WRITTEN:
        shown = [*shown[:-1], entries[case.place - 1]]
    hidden = len(entries) - len(shown)
    left = chance(max(0.0, sum(t for _, t in entries) - sum(t for _, t in shown)))
    place = "and was not listed" if case.place is None else f"listed at place {case.place} of {len(entries)}"
    return {
        "cause": "",
        "verb": "happened",
        "outcome": clean(text_of(case.outcome)),
        "expected": "",
        "said": place if case.valid else f"{place}; the list is invalid",
        "why": "",
        "bars": [
            (clean(text_of(name)), chance(t), round(100 * min(t, 1.0), 1), name == case.outcome)
            for name, t in shown
        ],
        "rest": [
            *([(f"{hidden:,} more listed", left)] if hidden else []),
            (f"{large(case.n_unlisted)} not listed", chance(case.unaccounted)),
        ],
    }
