"""The law of missing answers: what an answer without a grade counts as, by what became of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from verax.common.faces import Brief
from verax.inference.findings import in_brackets
from verax.inference.intervals import Interval
from verax.inputs.arrays import Array, Bools, Floats, Ints
from verax.inputs.questions import column_of
from verax.inputs.rows import ScoredRows
from verax.scores.base import Rule
from verax.scores.grades import Grade

Ungraded = Literal["by-reason", "bounds", "exclude", "wrong"]
Counted = Literal["exclude", "wrong", "right"]
# What becomes of answers by the model's own doing, in words: without a grade they are wrong.
OF_MODEL = {
    "limit": "were cut at a limit",
    "empty": "were empty",
    "unparsable": "were unparsable",
    "refused": "were refused",
}
# By the doing of others: a provider, a sandbox or a grader failed. Without a grade they are left out.
OF_OTHERS = {"error": "failed", "unscored": "were not scored"}
_WORDS = OF_MODEL | OF_OTHERS
# All of these, and what nobody says.
REASONS = (*_WORDS, "no reason")
# Columns of counts of answers: graded between the ends, without a grade and counted as wrong, and for each
# reason all of them, those with a grade and those with the worst grade.
_BETWEEN, _COUNTED, _FIRST, _EACH = 0, 1, 2, 3
N_COUNTS = _FIRST + _EACH * len(REASONS)


@dataclass(frozen=True)
class Became:
    """Answers that the same became of.

    Attributes
    ----------
    answers : int
        Number of them.
    graded : int
        Number of those that have a grade all the same.
    worst : int
        Number of those whose grade is the worst possible.
    """

    answers: int
    graded: int
    worst: int


@dataclass(frozen=True)
class Unsettled:
    """A difference that depends on what ungraded answers count as.

    Attributes
    ----------
    a : str
        The name of a model.
    b : str
        The name of the other.
    wrong : float
        The mean grade of `a` minus that of `b` with all ungraded answers counted as wrong.
    wrong_interval : Interval
        Its confidence interval.
    left_out : float
        The same difference with all of them left out.
    left_out_interval : Interval
        Its confidence interval.
    """

    a: str
    b: str
    wrong: float
    wrong_interval: Brief[Interval]
    left_out: float
    left_out_interval: Brief[Interval]

    @property
    def sentence(self) -> str:
        """Both numbers, and what follows."""
        return (
            f"Counted as wrong, {self.a} - {self.b} is {self.wrong:+z.3f}{in_brackets(self.wrong_interval)}; "
            f"left out, it is {self.left_out:+z.3f}{in_brackets(self.left_out_interval)}: these answers do "
            f"not settle whether {self.a} or {self.b} is better."
        )


def reasons_of(given: object, model: str, n: int) -> Array | None:
    """What became of each answer, as texts, empty where nobody says it; None if nothing is known."""
    if given is None:
        return None
    column = column_of(given, model, n, "reasons").tolist()
    return np.array(["" if value is None or value != value else str(value) for value in column])


def counted_as_wrong(grades: Floats, reasons: Array | None, ungraded: Ungraded) -> Bools:
    """Which answers without a grade count as wrong.

    >>> grades, reasons = np.array([1.0, np.nan, np.nan, np.nan]), np.array(["limit", "limit", "error", ""])
    >>> counted_as_wrong(grades, reasons, "by-reason").tolist()
    [False, True, False, False]
    """
    missing = np.isnan(grades)
    if ungraded == "wrong":
        return missing
    if ungraded != "by-reason" or reasons is None:
        return np.zeros(len(grades), np.bool_)
    return missing & np.isin(reasons, list(OF_MODEL))


def became_of(grades: Floats, reasons: Array | None, counted: Bools, scale: Grade) -> Array:
    """(N, `N_COUNTS`) counts of single answers, to be added up by question."""
    counts = np.zeros((len(grades), N_COUNTS), np.int8)
    missing, worst = np.isnan(grades), grades == scale.low
    counts[:, _BETWEEN] = (grades > scale.low) & (grades < scale.high)
    counts[:, _COUNTED] = counted
    said = np.full(len(grades), "") if reasons is None else reasons
    known = np.isin(said, list(_WORDS))
    for i, reason in enumerate(REASONS):
        these = said == reason if reason in _WORDS else missing & ~known
        if these.any():
            at = _FIRST + _EACH * i
            counts[:, at : at + _EACH] = np.stack([these, these & ~missing, these & worst], axis=1)
    return counts


def counts_in(rows: ScoredRows, rule: Rule) -> Array:
    """(N, `N_COUNTS`) counts of the answers to each question; zeros by other rules than that of grades."""
    if rows.became is not None and isinstance(rule, Grade):
        return rows.became
    return np.zeros((rows.n_rows, N_COUNTS), np.int8)


def counted_in(rows: ScoredRows, rule: Rule) -> Ints:
    """The number of answers to each question that have no grade and count as wrong."""
    return np.asarray(counts_in(rows, rule)[:, _COUNTED], np.int64)


def told(totals: Ints) -> tuple[int, int, dict[str, Became]]:
    """The answers without a grade that count as wrong, those graded between, and those of each reason."""
    found = [Became(*totals[_FIRST + _EACH * i :][:_EACH].tolist()) for i in range(len(REASONS))]
    by_reason = {reason: became for reason, became in zip(REASONS, found, strict=True) if became.answers}
    return int(totals[_COUNTED]), int(totals[_BETWEEN]), by_reason


def rows_under(rows: ScoredRows, rule: Grade, how: Counted) -> ScoredRows:
    """The same rows with every ungraded answer left out, or counted as wrong or as right."""
    worst = rule.bounds(2)[1]
    asked, left = rows.counts(rule)
    counted = counted_in(rows, rule)
    graded = asked - left - counted
    known = np.nan_to_num(rows.losses(rule)) * (asked - left) - worst * counted
    n, total = graded, known
    if how != "exclude":
        n, total = asked, known + (worst if how == "wrong" else 0.0) * (left + counted)
    losses = np.divide(total, n, where=n > 0, out=np.full(len(n), np.nan))
    return rows.with_losses({rule: losses})


def in_spite(reasons: dict[str, Became], asked: int, of: str = "") -> list[str]:
    """A sentence for each reason in spite of which answers were graded wrong."""
    return [
        f"{became.answers:,} of {asked:,} answers{of} {_WORDS[reason]}; {became.worst:,} of them "
        f"{'is' if became.worst == 1 else 'are'} graded wrong: up to {100 * became.worst / asked:.1f} points "
        "may be due to that."
        for reason, became in reasons.items()
        if reason in _WORDS and became.worst
    ]
