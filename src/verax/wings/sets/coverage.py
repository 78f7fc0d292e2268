"""The range of the coverage that sets of a threshold have among new rows.

The coverage of a threshold varies with the calibration sample. Of n rows of equal weight without ties it
follows the beta distribution of an order statistic. Weights and groups change how many rows the sample is
worth, n'. It is the number at which the share at or below the threshold would have the variance that it has
(the sandwich estimator). Of groups the variance rests on few numbers, so n' is reduced as Student's quantile
widens an interval; its degrees of freedom are those of the tails of the groups. Of unequal weights the rows
outside decide, and their largest weights may not have been seen.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from verax.common.faces import Record
from verax.inputs.arrays import Floats

# Of what share of samples the range tells.
CONFIDENCE = 0.95
# Below this number of groups, and of rows outside in effect, the range is cautioned.
FEW_GROUPS, FEW_OUTSIDE = 30, 15.0
# How slowly the weights of rows outside are trusted, and what those not seen may add.
_TRUSTED, _UNSEEN = 10.0, 4.0


@dataclass(frozen=True)
class CoverageRange(Record):
    """The range of the coverage among new rows: 95 % of calibration samples like this one give one there.

    Attributes
    ----------
    low, high : float
        Its ends.
    effective : float
        How many independent rows of equal weight tell as much.
    tied : bool
        Whether several rows have the score of the threshold: the coverage is then at least that of scores
        without ties, and `high` allows for all of them.
    caution : str
        Why the range may be unreliable; empty if nothing is known against it.
    """

    low: float
    high: float
    effective: float
    tied: bool
    caution: str = ""


@dataclass(frozen=True)
class AtThreshold:
    """The calibration rows at or below a threshold, and those beyond.

    Attributes
    ----------
    inside, outside : float
        Their weight.
    squares_inside, squares_outside : float
        The sums of their squared weights.
    n, n_outside, n_at : float
        The number of rows, of those outside, and of those that have the score of the threshold.
    even : bool
        Whether all weights are equal.
    """

    inside: float
    outside: float
    squares_inside: float
    squares_outside: float
    n: float
    n_outside: float
    n_at: float
    even: bool

    @property
    def share(self) -> float:
        """The share of the weight at or below the threshold."""
        return self.inside / (self.inside + self.outside)


def everything(n: float) -> CoverageRange:
    """Where every set has all classes."""
    return CoverageRange(1.0, 1.0, n, False)


def range_of_rows(at: AtThreshold, level: float) -> CoverageRange:
    """Of independent rows."""
    weight, share = at.inside + at.outside, at.share
    kish = weight**2 / (at.squares_inside + at.squares_outside)
    variance = ((1 - share) ** 2 * at.squares_inside + share**2 * at.squares_outside) / weight**2
    effective = share * (1 - share) / variance if variance > 0 else kish
    if at.even:
        place = math.ceil(level * (at.n + 1) - 1e-9) / at.n
        return _range(place, share, at.n, at)
    caution = ""
    # How many rows of equal weight those outside are worth.
    outside = at.outside**2 / at.squares_outside if at.n_outside else 0.0
    trusted = outside / (outside + _TRUSTED)
    effective = 1 / (trusted / effective + (1 - trusted) / min(kish, effective))
    if at.n_outside:
        effective /= 1 + _UNSEEN * max(0.0, 1 - outside / at.n_outside) / outside
    if outside < FEW_OUTSIDE:
        caution = f"the coverage rests on the weight of {max(1, round(outside))} rows in effect"
    return _range(level * (at.n + 1) / at.n, share, effective, at, caution)


def range_of_groups(inside: Floats, at: AtThreshold, level: float) -> CoverageRange:
    """Of rows of groups that count the same; `inside` has the share of each group at or below it."""
    from scipy.special import ndtri, stdtrit

    n, share = len(inside), float(inside.mean())
    away = inside - share
    squares = float((away**2).sum())
    effective = float(n)
    if squares > 0:
        effective = share * (1 - share) * n * (n - 1) / squares
        kurtosis = n * float((away**4).sum()) / squares**2
        freedom = max(2.0, min(n - 1.0, 2 * n / max(kurtosis - 1 + 2 / n, 1e-9)))
        tail = (1 - CONFIDENCE) / 2
        effective *= float(ndtri(tail) / stdtrit(freedom, tail)) ** 2
    caution = f"the range rests on {n} groups" if n < FEW_GROUPS else ""
    return _range(level * (n + 1) / n, share, effective, at, caution)


def _range(
    place: float,
    share: float,
    effective: float,
    at: AtThreshold,
    caution: str = "",
) -> CoverageRange:
    """The range from the share of the weight at which the threshold is taken, `place`."""
    from scipy.special import betaincinv

    tail, tied = (1 - CONFIDENCE) / 2, at.n_at > 1
    below = min(place, 1 - 1e-12) * effective
    low = float(betaincinv(below, effective + 1 - below, tail))
    if tied:
        # One more row may be at or below the threshold: the upper limit of Clopper and Pearson.
        all_of_them = share * effective
        beyond = max(effective - all_of_them, 1e-9)
        high = float(betaincinv(all_of_them + 1, beyond, 1 - tail)) if share < 1 else 1.0
    else:
        high = float(betaincinv(below, effective + 1 - below, 1 - tail))
    return CoverageRange(low, high, float(effective), bool(tied), caution)


def of_scores(least: Floats, most: Floats, sums: Floats, threshold: float, *, even: bool) -> AtThreshold:
    """From the weight, the squared weight and the number of the rows with each score, or bin of scores."""
    inside = most <= threshold
    # Rows of a bin that has several scores have not all the one of the threshold.
    at = inside & (least >= threshold)
    within, beyond = sums[inside].sum(axis=0), sums[~inside].sum(axis=0)
    return AtThreshold(
        inside=float(within[0]),
        outside=float(beyond[0]),
        squares_inside=float(within[1]),
        squares_outside=float(beyond[1]),
        n=float(sums[:, 2].sum()),
        n_outside=float(beyond[2]),
        n_at=float(np.sum(sums[at, 2])),
        even=even,
    )
