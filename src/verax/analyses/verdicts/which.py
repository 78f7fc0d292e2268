"""The model to keep: against the reference, and against the others."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from verax.analyses.comparison.findings import findings_of
from verax.analyses.comparison.records import Model
from verax.analyses.comparison.result import Comparison
from verax.analyses.verdicts.calibration import FEWEST_RARER
from verax.analyses.words import alike, number, said
from verax.common.texts import percent, percent_span
from verax.inference.findings import Claim, Finding, Level, NextStep
from verax.inputs.arrays import Floats
from verax.inputs.forecasts import Forecasts
from verax.scores.base import Rule, losses_of
from verax.scores.registry import name_of

# Half of the Brier score of two classes is the mean squared error of one class, which many know it by.
_SUMMED = "summed over both classes"


@dataclass(frozen=True)
class Question:
    """The models that are compared, and how.

    Attributes
    ----------
    comparison : Comparison
        All models by all rules; it may be one model.
    rules : sequence of Rule
        The rules that models are compared by; the first ranks them. Of a page with all rules, the usual two.
    lists : bool
        Whether the forecasts are top lists.
    n_classes : int
        The number of classes.
    skills : Comparison
        The same with skill against the reference.
    counts : array of shape (K,) or None
        The weight of each class; None for top lists.
    """

    comparison: Comparison
    rules: Sequence[Rule]
    lists: bool
    n_classes: int
    skills: Comparison
    counts: Floats | None = None

    @property
    def compared(self) -> Comparison:
        """The comparison by the rules in question, where it has more."""
        names = [name_of(rule) for rule in self.rules]
        comparison = self.comparison
        models = {name: comparison.models[name] for name in names}
        return replace(
            comparison, models=models, differences={name: comparison.differences[name] for name in names}
        )

    @property
    def primary(self) -> str:
        """The name of the rule that ranks models."""
        return name_of(self.rules[0])

    @property
    def against(self) -> str:
        """The name of the reference."""
        return "a uniform guess over all classes" if self.lists else "predicting class frequencies"

    @property
    def confidence(self) -> float:
        """The confidence level of all intervals."""
        return self.comparison.confidence

    @property
    def ranked(self) -> list[Model]:
        """The models, the best first."""
        return self.comparison.models[self.primary]

    def skill(self, name: str) -> Model:
        """A model with its skill."""
        return next(model for model in self.skills.models[self.primary] if model.name == name)

    def handicap(self, model: Model) -> float:
        """The skill of the class frequencies of all rows.

        The reference leaves out the row that is forecast, so the best constant forecast beats it by about two
        parts in the number of rows. A model must beat both.
        """
        if self.counts is None or not 0 < model.mean < math.inf or not model.skill < 1:
            return 0.0
        share = self.counts / self.counts.sum()
        known = np.flatnonzero(share)
        rows = Forecasts(known, np.tile(share, (len(known), 1)))
        least = float(np.asarray(losses_of(self.rules[:1], rows)[0], float) @ share[known])
        return max(0.0, 1 - least * (1 - model.skill) / model.mean)

    @property
    def rarer(self) -> float:
        """How many rows have another outcome than the most frequent one; infinite where that is unknown."""
        if self.counts is None:
            return math.inf
        return float(self.comparison.n_rows * (1 - self.counts.max() / self.counts.sum()))

    @property
    def called(self) -> str:
        """The name of an interval."""
        return level_words(self.confidence)

    def ends(self, low: float, high: float) -> str:
        """The interval of a skill in brackets; of rows that all have the same loss there is none."""
        return "" if alike(low, high) else f" ({self.called} {percent_span(low, min(high, 1.0))})"

    def value(self, mean: float) -> str:
        """The mean of the rule in a sentence; of two classes the Brier score in both conventions."""
        if self.doubled and math.isfinite(mean):
            return f"{said(self.primary)} of {number(mean / 2)} ({number(mean)} {_SUMMED})"
        return f"{said(self.primary)} of {number(mean)}"

    @property
    def doubled(self) -> bool:
        """Whether the rule is the Brier score of two classes, which many know as half of it."""
        return self.primary == "brier" and self.n_classes == 2 and not self.lists


def level_words(confidence: float) -> str:
    """The name of an interval."""
    return f"{100 * confidence:g}% CI"


def which_findings(question: Question) -> tuple[list[Finding], Level]:
    """Findings on the better model, and the level that the next question is tested at.

    Skill is tested first. If it stays open, leads are not claimed; calibration is then tested at a smaller
    level, as it is if a lead stays open.
    """
    best, *others = question.ranked
    whole = Level.at(question.confidence)
    if not others:
        first = _alone(question, best)
        return [first], whole.after(answered=first.claim in _ANSWERS)
    leads = findings_of(question.compared)
    if not math.isfinite(best.mean):
        return leads, whole.after(answered=False)
    first = _among(question, best)
    answered = first.claim in _ANSWERS
    told = leads if answered else [lead for lead in leads if not lead.claim.asserts]
    decided = all(lead.claim != Claim.LEAD_OPEN for lead in leads)
    return [first, *told], whole.after(answered=answered and decided)


_ANSWERS = (Claim.BETTER, Claim.WORSE)


def _alone(question: Question, model: Model) -> Finding:
    """How one model does against the simplest forecast."""
    skill = question.skill(model.name)
    low, high = skill.skill_interval
    against = question.against
    numbers: dict[str, Any] = {question.primary: (model.mean, model.interval)}
    if not math.isfinite(model.mean):
        return _infinite(question, model)
    if math.isnan(low):
        return Finding(Claim.SCORE, f"The model has a {question.value(model.mean)}.", numbers=numbers)
    numbers["skill"] = (skill.skill, skill.skill_interval)
    its = f"its {question.value(model.mean)} is"
    how: dict[str, Any] = {"numbers": numbers, "level": round(1 - question.confidence, 12)}
    how["caution"] = skill.skill_interval.caution
    if not question.rarer:
        text = (
            f"All rows have the same outcome, so they do not show whether the model beats {against}. "
            f"It has a {question.value(model.mean)}."
        )
        return Finding(Claim.NOT_BETTER, text, **how)
    handicap = question.handicap(skill)
    if low > handicap:
        text = f"The model beats {against}: {its} {percent(skill.skill)} lower{question.ends(low, high)}."
        return Finding(Claim.BETTER, text, **how)
    if high < 0 and question.rarer >= FEWEST_RARER:
        more, spread = f"{percent(-skill.skill)} higher", percent_span(-high, -low)
        if skill.skill <= -1:
            more, spread = (
                f"{1 - skill.skill:,.1f} times as high",
                f"{1 - high:,.1f} to {1 - low:,.1f} times",
            )
        ends = "" if alike(low, high) else f" ({question.called} {spread})"
        text = f"The model is worse than {against}: {its} {more}{ends}."
        return Finding(Claim.WORSE, text, step=_do_not_use(), **how)
    apart = f"{percent(abs(skill.skill))} {'lower' if skill.skill >= 0 else 'higher'}"
    spread = f"{percent(-low)} higher to {percent(min(high, 1.0))} lower"
    if low > 0:
        spread = (
            f"{percent_span(low, min(high, 1.0))}; the best constant forecast is {percent(handicap)} lower"
        )
    if high < 0:
        few = f"only {round(question.rarer):,} of {question.comparison.n_rows:,} rows have a rarer outcome"
        spread = f"{percent_span(-high, -low)}; {few}"
    text = (
        f"The model is not significantly better than {against}: its {question.value(model.mean)} is "
        f"{apart} ({question.called} {spread})."
    )
    return Finding(Claim.NOT_BETTER, text, **how)


def _do_not_use() -> NextStep:
    return NextStep(
        "do not use these probabilities as they are",
        "vx.recalibrate(y, p)",
        "verax recalibrate {source}",
    )


def _infinite(question: Question, model: Model) -> Finding:
    """The loss of one model, which rows with probability zero make infinite."""
    rows = f"{model.infinite_rows:,} {'outcome' if model.infinite_rows == 1 else 'outcomes'} that occurred"
    rest = f"; over the other rows it is {number(model.finite_mean)}"
    if not math.isfinite(model.finite_mean):
        rest = ""
    text = f"The model gave probability zero to {rows}: its {said(question.primary)} is infinite{rest}."
    step = NextStep(
        "look at the rows with probability zero", "vx.worst(y, p, rule='log_score')", "verax worst {source}"
    )
    return Finding(Claim.INFINITE, text, numbers={question.primary: model.mean}, step=step)


def _among(question: Question, best: Model) -> Finding:
    """The finding on the one of several models to keep."""
    skill = question.skill(best.name)
    low, high = skill.skill_interval
    against = question.against
    told = question.value(best.mean)
    numbers = {
        question.primary: (best.mean, best.interval),
        "skill": (skill.skill, skill.skill_interval),
    }
    how: dict[str, Any] = {"about": (best.name,), "numbers": numbers}
    how |= {"level": round(1 - question.confidence, 12), "caution": skill.skill_interval.caution}
    if math.isnan(low):
        return Finding(Claim.SCORE, f"{best.name} has the lowest {told}.", **how)
    if low > question.handicap(skill):
        less = f"{percent(skill.skill)} lower than {against}{question.ends(low, high)}"
        # A model may be behind for a few rows of probability zero alone.
        behind = any(model.infinite_rows and model.finite_mean < best.mean for model in question.ranked)
        first = f"{best.name} has a {told}" if behind else f"Keep {best.name}: {told}"
        return Finding(Claim.BETTER, f"{first}, {less}.", **how)
    if high < 0 and question.rarer >= FEWEST_RARER:
        text = f"None of the models beats {against}. {best.name} has the lowest {told}."
        return Finding(Claim.WORSE, text, step=_do_not_use(), **how)
    text = f"No model is significantly better than {against}. {best.name} has the lowest {told}."
    return Finding(Claim.NOT_BETTER, text, **how)
