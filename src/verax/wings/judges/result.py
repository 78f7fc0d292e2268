"""The mean grade of answers that a judge graded and people checked."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from verax.common.faces import Brief, Hidden
from verax.common.results import Result
from verax.common.texts import percent
from verax.display.tables import Column, Table, Tabled, interval_head
from verax.inference.findings import Claim, Finding, WithVerdict, in_brackets
from verax.inference.intervals import Interval, with_ends
from verax.scores.grades import Grade

# With fewer checks, or a weaker correlation of both grades, people's grades alone are the headline.
FEWEST, WEAKEST = 30, 0.2
Design = Literal["random", "by-grade", "probabilities"]
_DESIGNS: dict[str, str] = {
    "random": "chosen at random",
    "by-grade": "chosen at random among answers of the same grade by the judge",
    "probabilities": "chosen with the probabilities given",
}


@dataclass(frozen=True)
class GradeEstimate:
    """A mean with its interval.

    Attributes
    ----------
    name : str
        What it is of.
    value : float
        The estimate.
    interval : Interval
        Its confidence interval.
    """

    name: str
    value: float
    interval: Brief[Interval]


@dataclass(frozen=True)
class JudgedShare:
    """The answers to which the judge gave one grade.

    Attributes
    ----------
    grade : float
        The grade.
    share : float
        Their share of all answers.
    checked : int
        How many of them people graded.
    mean : float
        People's mean grade of these; NaN without any.
    deviation : float
        The standard deviation of people's grades, with one more at either end of the range.
    """

    grade: float
    share: float
    checked: int
    mean: float
    deviation: float


@dataclass(frozen=True, repr=False, eq=False)
class JudgedGrades(WithVerdict, Tabled, Result):
    """The mean grade that people would give to all answers of a model, from those they checked.

    Attributes
    ----------
    corrected : GradeEstimate
        People's mean grade of the checked answers, corrected by the judge's grades of all.
    people : GradeEstimate
        People's mean grade of the checked answers alone.
    judge_mean : float
        The judge's mean grade of all answers.
    agreement : GradeEstimate
        The share of checked answers to which both gave the same grade.
    bias : GradeEstimate
        The judge's mean grade minus that of people, over checked answers.
    correlation : float
        The correlation of both grades.
    n_answers : int
        The number of answers that the judge graded.
    n_checked : int
        The number of these that people graded.
    n_groups : int or None
        The number of groups with a checked answer; None without groups.
    effective_checks : float
        The number of checked answers whose grades alone would tell as much as the corrected mean.
    tuning : float
        The part of the correction that was used, from 0 to 1.
    checks : {"random", "by-grade", "probabilities"}
        How checked answers were chosen.
    stated : bool
        Whether that was stated; otherwise random choice is assumed.
    rule : Grade
        The range of grades.
    confidence : float
        Confidence level of the intervals.
    alpha : GradeEstimate or None
        Krippendorff's alpha, where several people graded.
    n_people : int
        The number of people whose grades were given.
    cautions : tuple of str
        Why results may be unreliable, a sentence each.
    spread : float
        The standard deviation of people's grades.
    by_grade : tuple of JudgedShare
        The answers by the judge's grade; empty where there are more than 10 grades.

    See Also
    --------
    evaluate_grades : How to get it, with `judge=`.

    Examples
    --------
    >>> import numpy as np, verax as vx
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.random(500) < 0.7
    >>> judge = np.where(rng.random(500) < 0.9, truth, True)
    >>> people = np.where(np.arange(500) < 100, truth, np.nan)
    >>> found = vx.evaluate_grades(people, judge=judge.astype(float))
    >>> round(found.mean, 3), round(found.judge_mean, 3), round(found.people.value, 3)
    (0.658, 0.688, 0.63)
    """

    corrected: GradeEstimate
    people: GradeEstimate
    judge_mean: float
    agreement: GradeEstimate
    bias: GradeEstimate
    correlation: float
    n_answers: int
    n_checked: int
    n_groups: int | None
    effective_checks: float
    tuning: float
    checks: Design
    stated: Hidden[bool]
    rule: Hidden[Grade]
    confidence: float
    alpha: GradeEstimate | None
    n_people: int
    cautions: tuple[str, ...]
    spread: Hidden[float] = math.nan
    by_grade: tuple[JudgedShare, ...] = ()

    _facts = ("headline", "mean", "low", "high", "_range", "notes")

    @property
    def _range(self) -> tuple[float, float]:
        return self.rule.low, self.rule.high

    @property
    def headline(self) -> Literal["corrected", "people"]:
        """The mean that is told first: the corrected one, unless checks are few or the judge tells little."""
        weak = self.n_checked < FEWEST or abs(self.correlation) < WEAKEST
        return "people" if weak else "corrected"

    @property
    def _first(self) -> GradeEstimate:
        return self.corrected if self.headline == "corrected" else self.people

    @property
    def mean(self) -> float:
        """The mean grade that is told first."""
        return self._first.value

    @property
    def low(self) -> float:
        """The lower end of its interval."""
        return self._first.interval.low

    @property
    def high(self) -> float:
        """The upper end of its interval."""
        return self._first.interval.high

    def flat(self, prefix: str = "") -> dict[str, float]:
        """All numbers as one flat dict of floats, for loggers of metrics.

        Parameters
        ----------
        prefix : str, default ""
            A prefix of every name, such as `"val_"`.

        Returns
        -------
        dict of str to float
            `grade` with its ends, `judge_grade`, `agreement` and `judge_bias` with its ends.
        """
        numbers = with_ends(f"{prefix}grade", self.mean, self._first.interval)
        numbers |= {f"{prefix}judge_grade": self.judge_mean, f"{prefix}agreement": self.agreement.value}
        return numbers | with_ends(f"{prefix}judge_bias", self.bias.value, self.bias.interval)

    def _findings(self) -> list[Finding]:
        first, other = self._first, self.people if self.headline == "corrected" else self.corrected
        scale = "" if self._range == (0, 1) else f" of {self.rule.high:g}"
        how = f"from the judge's {self.n_answers:,} grades, corrected by {self.n_checked:,} of people"
        if self.headline == "people":
            how = f"by people's grades of {self.n_checked:,} answers alone"
        text = f"Mean grade {first.value:.4f}{scale}{in_brackets(first.interval, 4)}, {how}."
        numbers: dict[str, float | tuple[float, Interval]]
        numbers = {"mean": (first.value, first.interval), other.name: (other.value, other.interval)}
        numbers |= {"judge": self.judge_mean, "bias": (self.bias.value, self.bias.interval)}
        caution = "; ".join(filter(None, (first.interval.caution, *self.cautions)))
        return [
            Finding(Claim.SCORE, text, numbers=numbers, caution=caution),
            Finding(Claim.SCORE, self._of_bias()),
        ]

    def _of_bias(self) -> str:
        bias = self.bias
        if abs(bias.value) < 5e-5:
            return f"Judge and people give the same mean grade{in_brackets(bias.interval)}."
        kind = "higher" if bias.value > 0 else "lower"
        open_ = "" if not bias.interval.low <= 0 <= bias.interval.high else ", which may be chance"
        size = abs(bias.value)
        ends = bias.interval if bias.value > 0 else -bias.interval
        return f"The judge's grades are {size:.3g} {kind} than people's{in_brackets(ends)}{open_}."

    @property
    def notes(self) -> list[str]:
        """Notes for readers, a sentence each."""
        said = [f"Caution: {caution}." for caution in self.cautions]
        design = _DESIGNS[self.checks]
        said.append(
            f"Checked answers were {design}."
            if self.stated
            else f"This assumes that the checked answers were {design}; `checks` states how they were chosen."
        )
        if self.headline == "people":
            few = self.n_checked < FEWEST
            why = f"fewer than {FEWEST} were checked" if few else "the judge's grades tell little of people's"
            said.append(f"People's grades alone come first, because {why}.")
        elif math.isfinite(self.effective_checks):
            said.append(
                f"The judge makes {self.n_checked:,} checks worth {self.effective_checks:,.0f} checks alone."
            )
        return said

    def _notes(self) -> list[str]:
        return self.notes

    def _heading(self) -> str:
        groups = "" if self.n_groups is None else f" in {self.n_groups:,} groups"
        share = percent(self.n_checked / self.n_answers, 1)
        return (
            f"verax judged grades: {self.n_answers:,} answers, {self.n_checked:,} checked ({share}){groups}"
        )

    def _tables(self) -> list[Table]:
        none = Interval.undefined("", confidence=self.confidence)
        lines = [
            self._first,
            self.people if self.headline == "corrected" else self.corrected,
            GradeEstimate("judge alone", self.judge_mean, none),
            self.agreement,
            self.bias,
            GradeEstimate("correlation of both", self.correlation, none),
            *([] if self.alpha is None else [self.alpha]),
        ]
        return [
            Table(
                [
                    Column("name", " ", right=False),
                    Column("value", "value", ".4f"),
                    Column("low high", interval_head(self.confidence), ".4f", "interval", right=False),
                ],
                lines,
            )
        ]
