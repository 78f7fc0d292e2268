"""How a verdict begins: which model to keep, by how much it is better, and how sure that is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from verax.analyses.comparison.result import Comparison
from verax.analyses.words import number, percent, percent_span, said, span
from verax.errors import join
from verax.scores.base import Rule
from verax.scores.registry import name_of


def opening_of(
    comparison: Comparison,
    rules: Sequence[Rule],
    *,
    lists: bool,
    confidence: float,
    n_classes: int,
    skills: Comparison | None = None,
) -> tuple[str, bool]:
    """The first sentences of a verdict, and whether they are good news.

    Parameters
    ----------
    comparison : Comparison
        All models by all rules; it may be one model.
    rules : sequence of Rule
        The rules of the comparison; the first ranks the models.
    skills : Comparison or None
        The same with skill against class frequencies, or against empty lists; by default `comparison` has it.
    """
    primary = name_of(rules[0])
    against = "an empty list" if lists else "predicting class frequencies"
    known = {model.name: model for model in (skills or comparison).models[primary]}
    best, *others = comparison.models[primary]
    skill, interval = known[best.name].skill, known[best.name].skill_interval
    if not others:
        return _alone(best.mean, skill, interval, primary, against, level(confidence))
    opening, good = _among(best, skill, interval, primary, against)
    if not math.isfinite(best.mean):
        return opening, good
    more = [_lead(comparison, primary, confidence), _disagreement(comparison, rules, n_classes)]
    return " ".join(filter(None, [opening, *more])), good


def level(confidence: float) -> str:
    """What an interval is called."""
    return f"{100 * confidence:g}% CI"


def _alone(
    value: float, skill: float, interval: tuple[float, float], primary: str, against: str, called: str
) -> tuple[str, bool]:
    """How one model does against the simplest forecast, and whether that is good news."""
    name, (low, high) = said(primary), interval
    if not math.isfinite(value):
        return f"The model gave probability zero to an outcome that occurred: its {name} is infinite.", False
    its = f"its {name} of {number(value)} is"
    if math.isnan(low):
        return f"The {name} of the model is {number(value)}.", True
    if low > 0:
        spread = percent_span(low, min(high, 1.0))
        return f"The model beats {against}: {its} {percent(skill)} lower ({called} {spread}).", True
    if high < 0:
        more, spread = f"{percent(-skill)} higher", percent_span(-high, -low)
        if skill <= -1:
            more, spread = f"{1 - skill:,.1f} times as high", f"{1 - high:,.1f} to {1 - low:,.1f} times"
        return f"The model is worse than {against}: {its} {more} ({called} {spread}).", False
    apart = f"{percent(abs(skill))} {'lower' if skill >= 0 else 'higher'}"
    spread = f"{percent(-low)} higher to {percent(min(high, 1.0))} lower"
    return f"The model is not significantly better than {against}: {its} {apart} ({called} {spread}).", False


def _among(
    best: Any, skill: float, interval: tuple[float, float], primary: str, against: str
) -> tuple[str, bool]:
    """Which of several models to keep, and whether that is good news."""
    name, (low, high) = said(primary), interval
    if not math.isfinite(best.mean):
        return (
            f"Every model gave probability zero to an outcome that occurred: every {name} is infinite.",
            False,
        )
    told = f"{name} {number(best.mean)}"
    good = math.isnan(low) or low > 0
    if low > 0:
        told += f", {percent(skill)} lower than {against}"
    opening = f"Keep {best.name}: {told}." if good else f"{best.name} has the lowest {told}."
    if high < 0:
        opening = f"None of the models beats {against}. {opening}"
    elif not good:
        opening = f"No model is significantly better than {against}. {opening}"
    return opening, good


def _lead(comparison: Comparison, primary: str, confidence: float) -> str:
    """Whether the best model's lead is significant, after the correction for the number of pairs."""
    best, *others = comparison.models[primary]
    gaps = {m.name: comparison.difference(m.name, best.name, primary) for m in others}
    tied = [n for n, gap in gaps.items() if not gap.p_adjusted <= 1 - confidence]
    runner = gaps[others[0].name]
    size = f"{number(runner.difference)}, {level(confidence)} {span(runner.interval)}"
    if not math.isfinite(runner.difference):
        size = "the other is infinite"
    if len(others) == 1:
        return f"Its lead over {runner.a} is {'not ' if tied else ''}significant ({size})."
    if tied:
        shown = tied if len(tied) <= 3 else [*tied[:2], f"{len(tied) - 2} others"]
        return f"Its lead over {join(shown)} is not significant."
    return f"Its lead over all others is significant (over {runner.a} {size})."


def _disagreement(comparison: Comparison, rules: Sequence[Rule], n_classes: int) -> str:
    """Which strictly proper rules put another model first."""
    best = comparison.best(name_of(rules[0]))
    other: dict[str, list[str]] = {}
    for rule in rules:
        name, proper = name_of(rule), rule.properties.at(n_classes)["strictly_proper"]
        if proper and (first := comparison.best(name)) != best:
            other.setdefault(first, []).append(said(name))
    texts = [f"{name} is best by {join(scores)}" for name, scores in other.items()]
    return f"The scores disagree: {join(texts)}." if texts else ""
