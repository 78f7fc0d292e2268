"""The page as the template asks for it: verdict, scores, worst rows, conventions; the rest are exhibits."""

from __future__ import annotations

import math
from typing import Any

from verax._version import __version__
from verax.analyses.cards.lines import CardLine
from verax.analyses.cases import Case
from verax.errors import join
from verax.report.compared import Compared
from verax.report.contents import COUNTED, Contents, Findings
from verax.report.definitions import definitions
from verax.report.exhibits import (
    by_class_exhibit,
    comparison_exhibit,
    confusion_exhibit,
    curves_exhibit,
    reliability_exhibit,
    subgroups_exhibit,
)
from verax.report.remedy_section import remedy_exhibit
from verax.report.verdict import verdict_of
from verax.report.words import chance, clean, count, number, percent, probability, span, title_of, within
from verax.scores.metrics import HIGHER
from verax.scores.registry import name_of

# Up to so many classes a forecast is written in full; beyond, the most likely ones and the outcome.
_WRITTEN, _TOP = 6, 4


def context_of(contents: Contents, *, title: str, source: str) -> dict[str, Any]:
    """Everything that the template asks for."""
    return {
        **shared_context(contents, title=title, source=source),
        "verdict": verdict_of(contents),
        "facts": _facts(contents),
        "cards": [_card(contents, f) for f in contents.findings],
        "worst": [[_case(contents, case) for case in f.worst] for f in contents.findings],
        "reliability": reliability_exhibit(contents),
        "remedy": remedy_exhibit(contents),
        "curves": curves_exhibit(contents),
        "confusion": [confusion_exhibit(contents, f) for f in contents.findings],
        "by_class": by_class_exhibit(contents),
        "subgroups": [subgroups_exhibit(contents, name) for name in contents.breakdowns],
        "definitions": definitions(contents.findings[0].card),
        "methods": _methods(contents),
    }


def shared_context(contents: Compared, *, title: str, source: str) -> dict[str, Any]:
    """What every page asks for, whatever the forecasts are."""
    names = [f.name for f in contents.findings]
    return {
        "title": clean(title),
        "source": clean(source, 400),
        "version": __version__,
        "models": names,
        "several": len(names) > 1,
        "best": names.index(contents.best.name),
        "scores": [title_of(name_of(rule)) for rule in contents.problem.rules],
        "primary": within(title_of(contents.primary)),
        "level": f"{100 * contents.confidence:g}%",
        "comparison": comparison_exhibit(contents) if len(names) > 1 else None,
        "checks": contents.checks,
    }


def _facts(contents: Contents) -> list[tuple[str, str]]:
    problem, card = contents.problem, contents.best.card
    facts = [
        ("rows", f"{problem.n_rows:,}"),
        ("ordered classes" if problem.ordered else "classes", f"{problem.n_classes:,}"),
    ]
    if len(contents.findings) > 1:
        facts.append(("models", f"{len(contents.findings)}"))
    if card.n_groups is not None:
        facts.append(("groups", f"{card.n_groups:,}"))
    best = " of the best" if len(contents.findings) > 1 else ""
    facts.append((f"accuracy{best}", percent(card.accuracy, 1)))
    skill, _ = contents.skill(contents.best.name, contents.primary)
    facts.append((f"skill{best}", percent(skill)))
    return facts


# ---- the card ----------------------------------------------------------------------------------


def _card(contents: Contents, found: Findings) -> dict[str, Any]:
    scores = [_line(score, *contents.skill(found.name, score.name)) for score in found.card.scores.values()]
    metrics = [_line(score, math.nan, (math.nan, math.nan)) for score in found.card.metrics.values()]
    lines = [*scores, *metrics]
    return {"lines": lines, "zero": draw_skill(lines), "notes": _calibration_words(contents, found)}


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


def _line(score: CardLine, skill: float, interval: tuple[float, float]) -> dict[str, Any]:
    known = math.isfinite(skill)
    explained = [score.summary] if score.summary.lower() != title_of(score.name).lower() else []
    explained += ["higher is better"] if score.orientation == HIGHER else []
    return {
        "name": title_of(score.name),
        "summary": "; ".join(explained),
        "mean": number(score.mean),
        "interval": span(score.interval),
        "skill": percent(skill, 1) if known else "",
        "skill_interval": f"{percent(interval[0], 1)} to {percent(interval[1], 1)}" if known else "",
        "drawn": skill if known else None,
        "proper": score.proper,
        "note": infinite_words(score),
    }


def infinite_words(score: CardLine) -> str:
    """What the mean would be without rows of infinite loss; empty where there are none."""
    if not score.infinite_weight:
        return ""
    return f"{number(score.finite_mean)} without the {count(score.infinite_weight, 'row')} of infinite loss"


def _calibration_words(contents: Contents, found: Findings) -> str:
    d, whole = found.decomposition, found.decomposition.whole
    text = (
        f"{title_of(d.quantity)} {number(d.score)} = miscalibration {number(d.miscalibration)} "
        f"− discrimination {number(d.discrimination)} + uncertainty {number(d.uncertainty)}."
    )
    if whole.expected_miscalibration is not None:
        text += (
            f" By chance a calibrated forecast would show {number(whole.expected_miscalibration)} of "
            f"miscalibration; p = {probability(whole.p_value)} from {contents.replicates} replicates."
        )
    return text


# ---- rows --------------------------------------------------------------------------------------


def _case(contents: Contents, case: Case) -> dict[str, Any]:
    problem, p = contents.problem, case.forecast
    names = problem.names
    outcome = names.index(str(case.outcome))
    order = sorted(range(len(names)), key=lambda i: -p[i])
    shown = range(len(names)) if len(names) <= _WRITTEN else sorted({*order[:_TOP], outcome}, key=order.index)
    others = [
        f"{case.rank_words(rule)} by {within(title_of(rule))}"
        for rule in case.ranks
        if rule != contents.primary
    ]
    return {
        "id": clean(case.id),
        "label": "id" if problem.named else "row",
        "outcome": names[outcome],
        "expected": names[order[0]],
        "right": order[0] == outcome,
        "loss": number(case.loss),
        # Without an order the source of the loss is the rival class, and that is said already.
        "why": f"{case.source}." if problem.primary.ordinal else "",
        "ranks": join(others) if others else "",
        "bars": [(names[i], chance(p[i]), round(100 * p[i], 1), i == outcome) for i in shown],
        "omitted": len(names) - len(shown),
        "rest": chance(max(0.0, 1 - sum(p[i] for i in shown))),
    }


# ---- conventions -------------------------------------------------------------------------------


def _methods(contents: Contents) -> list[str]:
    card, problem = contents.findings[0].card, contents.problem
    how = card.to_dict(stored=False)["intervals"]
    method = how["method"][0].upper() + how["method"][1:]
    resampled = f"{how['replicates']:,} replicates where there is resampling, seed {contents.seed}"
    lines = [
        f"Intervals of {how['confidence']:.0%}. {method}; {resampled}. Those of differences, of skill and of "
        "single classes have the quantiles of Student's t.",
        "Skill is one minus the mean loss over that of forecasting class frequencies, which come from all "
        f"other {'groups' if problem.grouped else 'rows'}, so that no row is used for its own forecast.",
        "Reliability curves are isotonic regressions of the event on its forecast, without bins; the band is "
        "where curves of a calibrated forecast with the same values lie. Curves are drawn on a grid of two "
        "percent.",
        _calibration_method(contents),
        _all_rows(contents),
        *filter(None, [contents.precision]),
    ]
    if problem.ordered and problem.n_classes > COUNTED:
        lines.append(f"Beyond {COUNTED} classes there are no curves of kappa; those of accuracy stand in.")
    if problem.normalize:
        lines.append("Every row of probabilities was divided by its sum, as asked.")
    if problem.logits:
        lines.append("Probabilities are the softmax of the logits given.")
    if problem.weighted:
        how = (
            "Only their ratios matter."
            if problem.weights_are == "importance"
            else "They are numbers of rows."
        )
        lines.append(f"Rows are weighted; the weights sum to {card.weight:,.6g}. {how}")
    if problem.time_ordered:
        lines.append(
            "Models are compared on rows in order of time, which may be autocorrelated. All other intervals "
            "and tests take rows to be independent."
        )
    if problem.grouped:
        lines.append(
            "Rows of a group are resampled together. The bands of reliability curves take rows as "
            "independent, so they are too narrow."
        )
    return lines


def _all_rows(contents: Contents) -> str:
    """Which figures are of all rows."""
    tried = [found.remedy.recalibration for found in contents.findings]
    part = any(each is not None and each.n_rows < contents.problem.n_rows for each in tried)
    but = " but those of recalibration, which is tried on some" if part else ""
    return f"Nothing was clipped, and no rows were left out: every figure is of all rows{but}."


def _calibration_method(contents: Contents) -> str:
    kind = "threshold" if contents.problem.ordered else "class"
    if not contents.problem.grouped:
        parts = f"{contents.replicates} sets of outcomes drawn from the forecasts"
        top = "the number of hits there would be if each row were a draw with the probability claimed"
        first = f"the miscalibration of every {kind}, against {parts}; " if contents.replicates else ""
        second = f"the mean probability of the most likely class less how often it happened, against {top}"
    else:
        parts = f"{contents.replicates} draws in which the deviations of a group from the forecasts keep or"
        first = f"the miscalibration of every {kind}, against {parts} change their sign together; "
        first = first if contents.replicates else ""
        second = (
            "the mean probability of the most likely class less how often it happened, by Student's test "
            "between groups, with a standard error no smaller than that of independent rows"
        )
    many = "Calibration is tested twice" if first else "Calibration is tested once"
    after = " Beyond chance means after Holm's correction over the two." if first else ""
    return f"{many}: {first}{second}.{after} The p-values shown are without correction."
