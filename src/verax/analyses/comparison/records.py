"""The records of a comparison: a model, a difference of two models, a test of a margin."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

import numpy as np

from verax.common.checks import any_number
from verax.common.faces import Brief, Hidden
from verax.errors import show
from verax.inference.answers import Discordant
from verax.inference.intervals import Interval, cautious_limits, cautious_tail, t_quantile, with_ends
from verax.inference.signflips import unseen_bound, unseen_tail


@dataclass(frozen=True)
class Model:
    """One model under one rule.

    Attributes
    ----------
    name : str
        The name of the model.
    mean : float
        The mean loss; of grades the mean grade.
    interval : Interval
        Its confidence interval.
    rank : int
        The rank, 1 for the best. Infinite means are ranked by the number of infinite losses, then by the mean
        of the finite ones.
    letters : str
        Two models share a letter if and only if they do not differ significantly; empty where the mean is
        infinite.
    skill : float
        One minus the mean over that of the reference; NaN without one.
    skill_interval : Interval
        Its confidence interval.
    infinite_rows : int
        Number of rows of positive weight with an infinite loss.
    finite_mean : float
        The mean loss of the other rows.
    """

    name: str
    mean: float
    interval: Brief[Interval]
    rank: int
    letters: str
    skill: float
    skill_interval: Brief[Interval]
    infinite_rows: int
    finite_mean: float


@dataclass(frozen=True)
class Difference:
    """Mean of model `a` minus that of model `b` under one rule: of losses negative if `a` is better.

    Attributes
    ----------
    a : str
        The name of a model.
    b : str
        The name of the other.
    difference : float
        The difference of the means; NaN where some losses are infinite.
    interval : Interval
        Its confidence interval.
    p_value : float
        The two-sided p-value.
    p_adjusted : float
        Holm's p-value over all pairs under this rule; in subgroups, over the pairs of all subgroups.
    infinite_a : int
        Number of rows of positive weight in which the loss of `a` is infinite.
    infinite_b : int
        Number of rows of positive weight in which the loss of `b` is infinite.
    finite_difference : float
        The difference of the means over the rows where both losses are finite.
    standard_error : float
        The standard error of the difference.
    freedom : float
        Its degrees of freedom.
    skewness : float
        The skewness of the difference over groups, for which interval and p-value are corrected.
    deviation : float
        The standard deviation of the difference of a row; NaN where models have rows of their own.
    skewed_freedom : float
        The degrees of freedom of the correction for skewness; `freedom` where there is none.
    discordant : tuple of four numbers or None
        If answers are right or wrong and fewer than 30 differ: the number that only `a` got wrong, the number
        that only `b` got wrong, the number of answers, and the loss of a wrong one. McNemar's exact test and
        Tango's interval are then used. Otherwise None.
    differing : tuple of four numbers or None
        The number of groups (of rows, if there is a margin) in which `a` is worse, in which `b` is worse, and
        in all, and the size of these differences. None if unknown.
    higher_is_better : bool
        Whether the means are grades or other scores that are higher for better models, instead of losses.

    Examples
    --------
    >>> import verax as vx
    >>> found = vx.compare([0, 1, 1], {"old": [0.4, 0.5, 0.4], "new": [0.2, 0.7, 0.4]}, rule="brier")
    >>> gap = found.difference("new", "old")
    >>> round(gap.difference, 4), round(gap.standard_error, 4), gap.freedom
    (-0.1867, 0.0961, 2.0)
    """

    a: str
    b: str
    difference: float
    interval: Brief[Interval]
    p_value: float
    p_adjusted: float
    infinite_a: int = 0
    infinite_b: int = 0
    finite_difference: float = math.nan
    standard_error: float = math.nan
    freedom: float = math.nan
    skewness: float = 0.0
    deviation: float = math.nan
    skewed_freedom: float = math.nan
    discordant: tuple[float, ...] | None = None
    differing: tuple[float, ...] | None = None
    higher_is_better: Hidden[bool] = False

    @property
    def answers(self) -> Discordant | None:
        """Right and wrong answers, if few differ; otherwise None."""
        if self.discordant is None:
            return None
        only_a, only_b, n, unit = self.discordant
        return Discordant(int(only_a), int(only_b), int(n), unit)

    @property
    def turned(self) -> Difference:
        """The difference of `b` and `a`."""
        few, units = self.discordant, self.differing
        return replace(
            self._negated(),
            a=self.b,
            b=self.a,
            infinite_a=self.infinite_b,
            infinite_b=self.infinite_a,
            discordant=None if few is None else (few[1], few[0], *few[2:]),
            differing=None if units is None else (units[1], units[0], *units[2:]),
        )

    def _negated(self) -> Difference:
        """The same models with the other sign."""
        return replace(
            self,
            difference=-self.difference,
            interval=-self.interval,
            finite_difference=-self.finite_difference,
            skewness=-self.skewness,
        )

    @property
    def other_way(self) -> Difference:
        """`a` minus `b` of the opposite: of losses for grades, and of grades for losses."""
        return replace(self._negated(), higher_is_better=not self.higher_is_better)

    @property
    def of_losses(self) -> Difference:
        """`a` minus `b` of what is lower for better models: positive if `a` is worse."""
        return self.other_way if self.higher_is_better else self

    def not_worse(self, margin: float) -> float:
        """The p-value of the claim that `a` is worse than `b` by less than a margin (non-inferiority).

        Parameters
        ----------
        margin : float
            By how much the mean loss of `a` may exceed that of `b`, or its mean grade may fall short.

        Returns
        -------
        float
            The one-sided p-value: the larger of Student's and Hall's, or Tango's if few answers differ. With
            few groups or rows that differ, at least the probability that no more of them are worse for `a`.

        Examples
        --------
        >>> import verax as vx
        >>> found = vx.compare([0, 1, 1], {"old": [0.4, 0.5, 0.4], "new": [0.2, 0.7, 0.4]}, rule="brier")
        >>> round(found.difference("new", "old").not_worse(0.05), 4)
        0.0665
        """
        margin = any_number("margin", margin)
        if self.answers is not None:
            return self.answers.tail(margin)
        worse = self.of_losses
        with np.errstate(divide="ignore", invalid="ignore"):
            t = np.asarray(worse.difference - margin) / self.standard_error
        tail = float(cautious_tail(t, self.freedom, worse.skewness, self.skewed_freedom))
        return tail if self.differing is None else max(tail, unseen_tail(self.differing, margin))

    def alike(self, margin: float) -> float:
        """The p-value of the claim that the two differ by less than a margin (equivalence).

        Parameters
        ----------
        margin : float
            By how much the mean losses may differ.

        Returns
        -------
        float
            The larger of both one-sided p-values.
        """
        return max(self.not_worse(margin), self.turned.not_worse(margin))

    @property
    def infinite_words(self) -> str:
        """A difference with infinite losses, in words; empty if all losses are finite."""
        n = self.infinite_a + self.infinite_b
        if not n:
            return ""
        if math.isnan(self.finite_difference):
            return "undefined"
        larger, smaller = self.infinite_a, self.infinite_b
        if self.higher_is_better:
            larger, smaller = smaller, larger
        bound = "at least " if not smaller else "at most " if not larger else ""
        return f"{bound}{self.finite_difference:+.6f} over the finite rows, and {n:,} infinite"


class _OfPair(Protocol):
    @property
    def a(self) -> str: ...
    @property
    def b(self) -> str: ...


Pair = TypeVar("Pair", bound=_OfPair)


def pair_of(differences: Iterable[Pair], a: str, b: str, among: str) -> Pair:
    """The difference of two models, in the given direction; `among` completes the error."""
    for gap in differences if isinstance(a, str) and isinstance(b, str) else ():
        if (gap.a, gap.b) == (a, b):
            return gap
        if (gap.a, gap.b) == (b, a):
            turned: Any = gap
            other: Pair = turned.turned() if callable(turned.turned) else turned.turned
            return other
    raise KeyError(f"there is no pair of {show(a)} and {show(b)}{among}")


@dataclass(frozen=True)
class MarginTest:
    """Whether a model is worse than another by less than a margin.

    Attributes
    ----------
    model : str
        The model that is claimed not to be worse.
    against : str
        The other one.
    difference : float
        By how much `model` is worse: its mean loss minus that of `against`, or the mean grade of `against`
        minus its own.
    bound : float
        The one-sided upper confidence bound of the difference.
    p_value : float
        The one-sided p-value of the claim.
    p_adjusted : float
        The same times the number of pairs of models. One of a pair's two claims is always true, so both
        count as one.
    """

    model: str
    against: str
    difference: float
    bound: float
    p_value: float
    p_adjusted: float


def margin_tests(differences: Sequence[Difference], margin: float, confidence: float) -> list[MarginTest]:
    """Test both directions of each difference."""
    tests = []
    for gap in (direction.of_losses for d in differences for direction in (d, d.turned)):
        student, hall = (
            t_quantile(freedom, 2 * confidence - 1) if freedom > 0 else math.nan
            for freedom in (gap.freedom, gap.skewed_freedom)
        )
        known = np.asarray(gap.difference), np.asarray(gap.standard_error), student, hall, gap.skewness
        bound = float(cautious_limits(*known)[1])
        if gap.answers is not None:
            bound = gap.answers.bound(confidence)
        elif gap.differing is not None:
            bound = max(bound, unseen_bound(gap.differing, 1 - confidence))
        p = gap.not_worse(margin)
        tests.append(MarginTest(gap.a, gap.b, gap.difference, bound, p, min(1.0, p * len(differences))))
    return tests


def gap_numbers(name: str, gap: Difference) -> dict[str, float]:
    """The numbers of a difference as a flat dict, for loggers of metrics."""
    return {**with_ends(name, gap.difference, gap.interval), f"{name}_p": gap.p_adjusted}
