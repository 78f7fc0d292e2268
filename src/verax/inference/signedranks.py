"""Tests over data sets: signed ranks of paired differences, ranks of several models, and their posterior."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from verax.inputs.arrays import Floats

# With more differences the distribution of their signed ranks is as good as normal.
_EXACT = 100
# The weight of the prior observation: a difference of zero.
_PRIOR = 0.5
# Differences that are smaller, relative to the largest score, are ties that rounding split.
ROUNDING = 1e-12


def midranks(values: Floats) -> Floats:
    """Ranks along the last axis, 1 for the smallest; equal values share the mean of their ranks.

    >>> midranks(np.array([0.3, 0.1, 0.3]))
    array([2.5, 1. , 2.5])
    """
    smaller = (values[..., None, :] < values[..., :, None]).sum(axis=-1)
    equal = (values[..., None, :] == values[..., :, None]).sum(axis=-1)
    return np.asarray(smaller + (equal + 1) / 2)


def without_rounding(values: Floats, largest: float) -> Floats:
    """Values in which those along the last axis that differ by rounding alone are equal.

    Rounding is relative to the `largest` number that they were computed from.

    >>> without_rounding(np.array([0.3, 0.1 + 0.2, 0.4, 1e-17]), 1.0).tolist()
    [0.3, 0.3, 0.4, 0.0]
    """
    order = np.argsort(values, axis=-1)
    found = np.take_along_axis(values, order, axis=-1)
    limit = ROUNDING * largest
    found[np.abs(found) <= limit] = 0.0
    for i in range(1, values.shape[-1]):
        close = found[..., i] - found[..., i - 1] <= limit
        found[..., i] = np.where(close, found[..., i - 1], found[..., i])
    result = np.empty_like(found)
    np.put_along_axis(result, order, found, axis=-1)
    return result


class SignedRanks(NamedTuple):
    """The signed-rank test of paired differences."""

    statistic: float
    p_value: float


def signed_rank(differences: Floats) -> SignedRanks:
    """Wilcoxon's signed-rank test, two-sided, with Pratt's zeros: they are ranked, then left out.

    The statistic is the sum of the ranks of positive differences. Its distribution is that over all signs of
    the ranks that there are, so it is exact with ties and zeros; with more than 100 differences normal.

    >>> found = signed_rank(np.array([0.5, -0.1, 0.3, 0.2, 0.4, 0.0]))
    >>> found.statistic, round(found.p_value, 4)
    (18.0, 0.125)
    """
    ranks = midranks(np.abs(differences))[differences != 0]
    above = differences[differences != 0] > 0
    statistic = float(ranks[above].sum())
    if not len(ranks):
        return SignedRanks(0.0, 1.0)
    if len(ranks) > _EXACT:
        spread = math.sqrt((ranks**2).sum()) / 2
        z = abs(statistic - ranks.sum() / 2) / spread
        return SignedRanks(statistic, math.erfc(z / math.sqrt(2)))
    chances = np.cumsum(_chances(np.round(2 * ranks).astype(int)))
    total = len(chances) - 1
    least = min(round(2 * statistic), total - round(2 * statistic))
    return SignedRanks(statistic, min(1.0, 2 * float(chances[least])))


def _chances(doubled: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Floats:
    """The probability of each sum of doubled ranks, of which each is in it or not with equal chances."""
    found = np.zeros(int(doubled.sum()) + 1)
    found[0] = 1.0
    for rank in doubled.tolist():
        found[rank:] += found[: len(found) - rank].copy()
        found /= 2
    return found


def shift(differences: Floats, confidence: float) -> tuple[float, float, float]:
    """The median of the means of all pairs of differences (Hodges and Lehmann), and its interval.

    The interval holds the shifts that the signed-rank test without ties does not reject; its ends are NaN
    where there are too few differences.

    >>> middle, low, high = shift(np.arange(1.0, 9.0), 0.95)
    >>> middle, low, high
    (4.5, 2.0, 7.0)
    """
    n = len(differences)
    at = np.triu_indices(n)
    walsh = np.sort((differences[at[0]] + differences[at[1]]) / 2)
    middle = float(np.median(walsh))
    tail = (1 - confidence) / 2
    if n > _EXACT:
        z = _normal_quantile(1 - tail)
        spread = math.sqrt(n * (n + 1) * (2 * n + 1) / 24)
        least = max(0, math.floor(n * (n + 1) / 4 - z * spread))
    else:
        chances = np.cumsum(_chances(np.arange(1, n + 1)))
        least = int(np.searchsorted(chances, tail, side="right"))
    if least < 1:
        return middle, math.nan, math.nan
    return middle, float(walsh[least - 1]), float(walsh[len(walsh) - least])


def _normal_quantile(share: float) -> float:
    from statistics import NormalDist

    return NormalDist().inv_cdf(share)


@dataclass(frozen=True)
class Friedman:
    """Friedman's test of whether the mean ranks of all models differ.

    Attributes
    ----------
    statistic : float
        The chi-squared statistic, corrected for ties.
    p_value : float
        By the F distribution of Iman and Davenport, which is closer than chi-squared with few data sets.
    """

    statistic: float
    p_value: float


def friedman(ranks: Floats) -> Friedman:
    """The test from the (N, M) ranks of M models in N data sets.

    References
    ----------
    Iman and Davenport (1980), doi:10.1080/03610928008827904

    >>> found = friedman(np.array([[1.0, 2, 3], [1, 3, 2], [1, 2, 3], [1, 2, 3], [2, 1, 3], [1, 2, 3]]))
    >>> round(found.statistic, 3), round(found.p_value, 4)
    (8.333, 0.0027)
    """
    from scipy.special import fdtrc

    n, m = ranks.shape
    centre = (m + 1) / 2
    within = ((ranks - centre) ** 2).sum() / (n * (m - 1))
    if within == 0:
        return Friedman(0.0, 1.0)
    statistic = float(n * ((ranks.mean(axis=0) - centre) ** 2).sum() / within)
    rest = n * (m - 1) - statistic
    if rest <= ROUNDING * n * m:
        # All data sets rank the models alike.
        return Friedman(statistic, 0.0)
    return Friedman(statistic, float(fdtrc(m - 1, (m - 1) * (n - 1), (n - 1) * statistic / rest)))


def dirichlet_weights(n: int, draws: int, seed: int) -> Floats:
    """(draws, n + 1) posterior weights of a prior difference of zero and of n differences."""
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.r_[_PRIOR, np.ones(n)], draws)


def practical_ranks(differences: Floats, rope: float, weights: Floats) -> tuple[float, float, float]:
    """The Bayesian signed-rank test: how probable it is that a difference is typically below the region of
    practical equivalence, in it, or above it.

    In each draw of the weights the region with the largest probability wins.

    References
    ----------
    Benavoli, Mangili, Corani, Zaffalon and Ruggeri (2014), proceedings.mlr.press/v32/benavoli14
    """
    own = np.r_[0.0, differences]
    sums = own[:, None] + own[None, :]
    rounding = ROUNDING * np.abs(sums).max()

    def share(beyond: Floats) -> Floats:
        counted = np.where(np.abs(beyond - 2 * rope) <= rounding, 0.5, beyond > 2 * rope)
        return np.asarray(((weights @ counted) * weights).sum(axis=1))

    above = share(sums)
    if rope == 0:
        more = (above > 0.5) + 0.5 * (above == 0.5)
        return float(1 - more.mean()), 0.0, float(more.mean())
    below = share(-sums)
    winner = np.argmax(np.column_stack([below, 1 - below - above, above]), axis=1)
    low, middle, high = (np.bincount(winner, minlength=3) / len(weights)).tolist()
    return low, middle, high
