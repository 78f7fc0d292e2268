"""What a comparison is made of: one model, one difference of two models."""

from __future__ import annotations

import math
from dataclasses import dataclass

from verax.inference.intervals import Interval, with_ends


@dataclass(frozen=True)
class Model:
    """One model under one rule.

    Attributes
    ----------
    name : str
        The name of the model.
    mean : float
        The mean loss.
    interval : Interval
        Its confidence interval.
    rank : int
        The rank, 1 for the smallest mean. Infinite means are ranked by the number of infinite losses, then by
        the mean of the finite ones.
    letters : str
        Two models share a letter if and only if they do not differ significantly; empty where the mean is
        infinite.
    skill : float
        One minus the mean over that of the reference; NaN without one.
    skill_interval : Interval
        Its confidence interval.
    infinite_rows : int
        In how many rows of positive weight the loss is infinite.
    finite_mean : float
        The mean loss of the other rows.
    """

    name: str
    mean: float
    interval: Interval
    rank: int
    letters: str
    skill: float
    skill_interval: Interval
    infinite_rows: int
    finite_mean: float


@dataclass(frozen=True)
class Difference:
    """Mean loss of model `a` minus that of model `b` under one rule: negative if `a` is better.

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
        The same, corrected for all pairs under this rule (Holm); in subgroups, for the pairs of all of them.
    infinite_a : int
        In how many rows of positive weight the loss of `a` is infinite.
    infinite_b : int
        In how many the loss of `b` is.
    finite_difference : float
        The difference of the means over the rows where both losses are finite.

    Examples
    --------
    >>> import verax as vx
    >>> found = vx.compare([0, 1, 1], {"old": [0.4, 0.5, 0.4], "new": [0.2, 0.7, 0.4]}, rule="brier")
    >>> round(found.difference("new", "old").difference, 4)
    -0.1867
    """

    a: str
    b: str
    difference: float
    interval: Interval
    p_value: float
    p_adjusted: float
    infinite_a: int = 0
    infinite_b: int = 0
    finite_difference: float = math.nan

    @property
    def turned(self) -> Difference:
        """The difference of `b` and `a`."""
        return Difference(
            self.b,
            self.a,
            -self.difference,
            -self.interval,
            self.p_value,
            self.p_adjusted,
            self.infinite_b,
            self.infinite_a,
            -self.finite_difference,
        )

    @property
    def infinite_words(self) -> str:
        """What is known of a difference some of whose losses are infinite, in words; empty if none is."""
        n = self.infinite_a + self.infinite_b
        if not n:
            return ""
        if math.isnan(self.finite_difference):
            return "undefined"
        bound = "at least " if not self.infinite_b else "at most " if not self.infinite_a else ""
        return f"{bound}{self.finite_difference:+.6f} over the finite rows, and {n:,} infinite"


def gap_numbers(name: str, gap: Difference) -> dict[str, float]:
    """The numbers of a difference under names of their own."""
    return {**with_ends(name, gap.difference, gap.interval), f"{name}_p": gap.p_adjusted}
