"""How many answers people should check, for a corrected mean that is known well enough."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from verax.common.checks import check_number
from verax.common.results import Result
from verax.display.tables import Column, Table, Tabled
from verax.errors import InputError, Remedy
from verax.inference.findings import Claim, Finding, NextStep, WithVerdict
from verax.inference.intervals import check_confidence, t_quantile
from verax.wings.judges.result import FEWEST, JudgedGrades

# Of each grade of the judge at least this many answers are checked.
_LEAST = 10


@dataclass(frozen=True)
class ChecksOfGrade:
    """How many answers of one grade of the judge to check.

    Attributes
    ----------
    grade : float
        The judge's grade.
    answers : int
        The number of answers with it.
    checks : int
        The number of these to check.
    """

    grade: float
    answers: int
    checks: int


@dataclass(frozen=True, repr=False, eq=False)
class CheckPlan(WithVerdict, Tabled, Result):
    """How many answers people should check.

    Attributes
    ----------
    half_width : float
        Half the width of the interval that is wanted.
    checks : float
        The number of checks at random that give it about; infinite where all answers would not be enough.
    people_alone : float
        The number of checks without a judge.
    by_grade : tuple of ChecksOfGrade
        How many answers to check of each grade of the judge, in place of checks at random; empty where the
        judge gives many grades.
    checked : int
        The number of checks of the pilot.
    answers_needed : float
        The number of judged answers without which no number of checks is enough.
    confidence : float
        Confidence level.

    See Also
    --------
    plan : How to get it, with `human_labels=`.

    Examples
    --------
    >>> import numpy as np, verax as vx
    >>> rng = np.random.default_rng(0)
    >>> right = rng.random(600) < 0.7
    >>> judge = np.where(rng.random(600) < 0.85, right, ~right).astype(float)
    >>> human = np.where(np.arange(600) < 90, right, np.nan)
    >>> found = vx.evaluate_grades(human, judge=judge, checks="random")
    >>> vx.plan(found, human_labels=0.05).checks
    205.0
    """

    half_width: float
    checks: float
    people_alone: float
    by_grade: tuple[ChecksOfGrade, ...]
    checked: int
    answers_needed: float
    confidence: float

    _facts = ("notes",)

    @property
    def checks_by_grade(self) -> int:
        """The number of checks that are drawn by the judge's grade."""
        return sum(line.checks for line in self.by_grade)

    def _findings(self) -> list[Finding]:
        aim = f"An interval of plus or minus {self.half_width:.4g} at {100 * self.confidence:g}% confidence"
        numbers = {"checks": self.checks, "people_alone": self.people_alone}
        if math.isinf(self.checks):
            text = (
                f"{aim}: no number of checks is enough without more than {self.answers_needed:,.0f} answers."
            )
            return [Finding(Claim.ROWS_NEEDED, text, numbers=numbers, step=NextStep("judge more answers"))]
        by_grade = f", or {self.checks_by_grade:,} by the judge's grade" if self.by_grade else ""
        alone = f" ({self.people_alone:,.0f} without a judge)"
        text = f"{aim}: about {self.checks:,.0f} checks at random{by_grade}{alone}."
        more = max(0.0, self.checks - self.checked)
        step = NextStep(f"let people check {more:,.0f} more answers") if more else None
        return [Finding(Claim.ROWS_NEEDED, text, numbers=numbers, step=step)]

    @property
    def notes(self) -> list[str]:
        """Remarks for the reader."""
        said = [
            "Plan again after half of the checks: the width comes out within 10% in about two of three cases."
        ]
        if self.checked < FEWEST:
            said.append(f"Caution: the pilot has only {self.checked} checks.")
        if self.by_grade:
            said.append("Checks by the judge's grade are evaluated with `checks='by-grade'`.")
        return said

    def _notes(self) -> list[str]:
        return self.notes

    def _heading(self) -> str:
        return f"verax plan: checks by people of a judge's grades, {self.checked:,} so far"

    def _tables(self) -> list[Table]:
        if not self.by_grade:
            return []
        columns = [
            Column("grade", "judge's grade", "g"),
            Column("answers", "answers", ","),
            Column("checks", "checks", ","),
        ]
        return [Table(columns, self.by_grade)]


def plan_checks(pilot: object, half_width: float, confidence: float = 0.95) -> CheckPlan:
    """How many checks a corrected mean needs, from a pilot; see `plan`.

    The variance of n checks of N judged answers is s^2 (1 - r^2) / n + r^2 s^2 / N, where r is the
    correlation of both grades and s the spread of people's.
    """
    check_confidence(confidence)
    check_number("human_labels", half_width, "must be a positive number", lambda width: width > 0)
    if not isinstance(pilot, JudgedGrades):
        raise InputError(
            "must be the result of `evaluate_grades` with a judge, for a number of checks",
            argument="y",
            kind="type",
            remedies=[Remedy("Let people check 30 to 50 answers at random first.")],
        )
    if pilot.n_groups is not None:
        raise InputError(
            "must have answers without groups, for a number of checks",
            argument="y",
            found=f"there are {pilot.n_groups:,} groups with a check",
        )
    square, n_answers = (half_width / t_quantile(math.inf, confidence)) ** 2, pilot.n_answers
    variance, shared = pilot.spread**2, pilot.correlation**2
    room = square - shared * variance / n_answers
    checks = math.ceil(variance * (1 - shared) / room) if room > 0 else math.inf
    checks = max(checks, FEWEST) if checks <= n_answers else math.inf
    return CheckPlan(
        float(half_width),
        float(checks),
        float(math.ceil(variance / square)),
        _by_grade(pilot, square),
        pilot.n_checked,
        float(math.ceil(shared * variance / square)),
        confidence,
    )


def _by_grade(pilot: JudgedGrades, square: float) -> tuple[ChecksOfGrade, ...]:
    """Neyman's allocation: by the number of answers of a grade, times the spread of people's grades."""
    lines = pilot.by_grade
    if not lines or any(line.checked < 2 for line in lines):
        return ()
    share, mean, spread = (
        np.array([getattr(line, name) for line in lines]) for name in ("share", "mean", "deviation")
    )
    between = float(share @ (mean - share @ mean) ** 2) / pilot.n_answers
    if square <= between:
        return ()
    total = float(share @ spread) ** 2 / (square - between)
    answers = np.round(share * pilot.n_answers).astype(int)
    wanted = np.ceil(total * share * spread / (share @ spread)).astype(int)
    checks = np.minimum(np.maximum(wanted, _LEAST), answers)
    return tuple(
        ChecksOfGrade(line.grade, int(n), int(of_grade))
        for line, n, of_grade in zip(lines, answers, checks, strict=True)
    )
