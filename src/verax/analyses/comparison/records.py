"""What a comparison is made of: one model, one difference of two models."""

from __future__ import annotations

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
        The difference of the means.
    interval : Interval
        Its confidence interval.
    p_value : float
        The two-sided p-value.
    p_adjusted : float
        The same, corrected for all pairs under this rule (Holm).
    """

    a: str
    b: str
    difference: float
    interval: Interval
    p_value: float
    p_adjusted: float


def gap_numbers(name: str, gap: Difference) -> dict[str, float]:
    """The numbers of a difference under names of their own."""
    return {**with_ends(name, gap.difference, gap.interval), f"{name}_p": gap.p_adjusted}
