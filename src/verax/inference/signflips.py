"""Sign-flip tests of differences: two models are swapped in whole independent units.

If two models are equally good, swapping them in a unit is as likely as not. Where few groups differ, all
patterns of swaps are tried; elsewhere patterns are drawn at random, and the interval holds the differences
that the test does not reject.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from verax.engines.clusters import sums_by_code, sums_by_label
from verax.inference.intervals import Interval, straightened
from verax.inputs.arrays import Bools, Floats
from verax.inputs.groups import by_kind

# Up to this many groups that differ, all patterns of signs are tried.
_ALL_PATTERNS = 12
# Group means of losses that differ by less, relative to the largest of all, differ by rounding.
_ROUNDING = 1e-13
# Sums that are equal but for rounding count as ties.
_TIE = 1 - 1e-9
# How often a bracket of an interval's end is doubled, and then halved.
_DOUBLED, _HALVED = 60, 45


def few_differing(labels: np.ndarray[Any, Any], sums: Floats, n_models: int) -> tuple[Floats, Floats]:
    """In how many groups each pair of models differs, (P, 4), and the exact p-value where these are few.

    `sums` has the weights of the groups, then the sums of weight times loss of the models and of the
    differences of all pairs. The four numbers are the groups in which the first model is worse, those in
    which the second one is, all groups, and how large differences are (`size_of`). The p-value is the share
    of all patterns of signs with a difference at least as large; 0 where more than 12 groups differ, or all.
    Of two kinds of groups, the more cautious one counts.

    >>> sums = np.ones((1000, 4))
    >>> sums[2:, 3] = 0
    >>> few_differing(np.arange(1000), sums, 2)
    (array([[   2.,    0., 1000.,    1.]]), array([0.5]))
    """
    of_kinds = []
    for kind_sums in [sums_by_code(code, sums) for _, code in by_kind(labels)] or [sums]:
        kind_sums = kind_sums[kind_sums[:, 0] > 0]
        with np.errstate(invalid="ignore"):
            means = kind_sums[:, 1:] / kind_sums[:, :1]
            least = _ROUNDING * np.abs(means[np.isfinite(means)]).max(initial=0.0)
            gaps = np.where(np.abs(means[:, n_models:]) > least, means[:, n_models:], 0.0)
            sizes = size_of((np.abs(gaps) ** 3).sum(axis=0), (gaps**2).sum(axis=0))
        worse, better = (gaps > 0).sum(axis=0), (gaps < 0).sum(axis=0)
        counts = np.column_stack([worse, better, np.full(len(sizes), len(kind_sums)), sizes])
        columns = zip(kind_sums[:, 1 + n_models :].T, gaps.T != 0, strict=True)
        of_kinds.append((counts, np.array([_exact_p(*column) for column in columns])))
    differing = [counts[:, :2].sum(axis=1) for counts, _ in of_kinds]
    fewest = np.argmin(differing, axis=0)
    kept = np.stack([counts for counts, _ in of_kinds])[fewest, np.arange(len(fewest))]
    return kept, np.max([p for _, p in of_kinds], axis=0)


def size_of(cubes: Floats, squares: Floats) -> Floats:
    """The typical size of nonzero differences, from the sums of their third and second powers.

    Their mean, weighted by their squares: large ones among them make up most of a mean difference.
    """
    return np.asarray(cubes / np.where(squares > 0, squares, 1.0))


def unseen_tail(differing: tuple[float, ...], margin: float) -> float:
    """The chance of no more units in which a model is worse if its mean loss is larger by a margin.

    If differences have the size of those that were seen, at least the share margin / size of the units has
    one. 0 where more than 12 units differ: their spread then tells enough.
    """
    from scipy.special import betainc

    worse, better, n, size = differing
    if worse + better > _ALL_PATTERNS or not worse < n:
        return 0.0
    share = min(margin / size, 1.0) if size > 0 else 1.0
    return float(betainc(n - worse, worse + 1, 1 - share))


def unseen_bound(differing: tuple[float, ...], level: float) -> float:
    """The margin that `unseen_tail` rejects at a level; minus infinity where more units differ."""
    from scipy.special import betaincinv

    worse, better, n, size = differing
    if worse + better > _ALL_PATTERNS or not worse < n:
        return -math.inf
    return float(size * (1 - betaincinv(n - worse, worse + 1, level)))


def _exact_p(values: Floats, differs: Bools) -> float:
    """The share of all patterns of signs whose sum is at least as large; 0 unless few of many differ."""
    n = int(differs.sum())
    if n > _ALL_PATTERNS or n == len(values):
        return 0.0
    signs = 2.0 * ((np.arange(2**n)[:, None] >> np.arange(n)) & 1) - 1
    return float((np.abs(signs @ values[differs]) >= _TIE * abs(values[differs].sum())).mean())


@dataclass(frozen=True, eq=False)
class SignFlips:
    """Sums of units whose signs were flipped at random; before the draws, those of the units as they are.

    Attributes
    ----------
    weight : array of shape (U,)
        The weights of the units, as shares of all.
    totals : array of shape (U, C)
        Their sums of weight times value, over the weight of all.
    of_weights : array of shape (1 + n, 1 or 3)
        In each draw the sum of the signed weights; of groups also of their squares and third powers.
    of_totals : array of shape (1 + n, 1 or 5, C)
        That of the signed sums d; of groups also of d w, d w^2, d^2 w and d^3.
    more : array of shape (C,)
        How many times larger sums of swapped blocks would be if neighbouring blocks were swapped together.
    """

    weight: Floats
    totals: Floats
    of_weights: Floats
    of_totals: Floats
    more: Floats

    @classmethod
    def drawn(
        cls, unit: Any, weight: Floats, columns: Floats, more: Floats, n: int, seed: int, *, skewed: bool
    ) -> SignFlips:
        """From the (N,) units, weights and (N, C) weighted values of rows, and n draws.

        Units whose effects may be skewed are compared by their straightened t statistics, others by the size
        of their sums.
        """
        _, sums = sums_by_label(unit, np.column_stack([weight, columns]))
        w, d = sums[:, 0] / sums[:, 0].sum(), sums[:, 1:] / sums[:, 0].sum()
        v = w[:, None]
        weights = np.column_stack([w, w**2, w**3] if skewed else [w])
        rng = np.random.default_rng(seed)
        with np.errstate(invalid="ignore"):
            totals = np.column_stack([d, v * d, v * v * d, v * d * d, d**3] if skewed else [d])
            draws = [(weights.sum(axis=0)[None], totals.sum(axis=0)[None])]
            for start in range(0, n, 64):
                signs = rng.choice([-1.0, 1.0], size=(min(64, n - start), len(w)))
                draws.append((signs @ weights, signs @ totals))
        of_weights, of_totals = (np.concatenate(parts) for parts in zip(*draws, strict=True))
        return cls(w, d, of_weights, of_totals.reshape(1 + n, -1, d.shape[1]), more)

    def p_value(self, column: int, at: float = 0.0) -> float:
        """The two-sided p-value of the difference `at`; NaN where some values are not known."""
        statistics = self._statistic(column, at)
        if math.isnan(statistics[0]):
            return math.nan
        return (1 + int((self.more[column] * statistics[1:] >= _TIE * statistics[0]).sum())) / len(statistics)

    def _statistic(self, column: int, at: float) -> Floats:
        """The size of the difference from `at`, (1 + n,)."""
        weights, totals = self.of_weights, self.of_totals[:, :, column]
        mean = totals[:, 0] - at * weights[:, 0]
        if weights.shape[1] == 1:
            return np.abs(mean)
        w, d = self.weight, self.totals[:, column] - at * self.weight
        mixed = totals[:, 1] - at * weights[:, 1]
        twice = totals[:, 2] - at * weights[:, 2]
        cubes = totals[:, 4] - 3 * at * totals[:, 3] + 3 * at**2 * totals[:, 2] - at**3 * weights[:, 2]
        with np.errstate(invalid="ignore", divide="ignore"):
            # Sums of powers of d - w * mean, in which squares of signs are one.
            variance = np.maximum(d @ d - 2 * mean * mixed + mean**2 * (w @ w), 0.0)
            third = cubes - 3 * mean * (w @ (d * d)) + 3 * mean**2 * twice - mean**3 * ((w * w) @ w)
            skewness = np.clip(np.nan_to_num(third / variance**1.5, posinf=0.0, neginf=0.0), -1.0, 1.0)
            t = np.abs(straightened(mean / np.sqrt(variance), skewness))
        # Groups that all agree have no variance; those that agree on zero no difference either.
        return np.where(np.isnan(mean), np.nan, np.where(mean == 0, 0.0, t))

    def interval(self, column: int, like: Interval, step: float) -> Interval:
        """The differences that the test does not reject, at the level and with the caution of an interval.

        `step` is how far from the mean an end is looked for first, such as the standard error. Units that
        are too few for anything to be rejected leave the interval given, with zero in it.
        """
        if not like.defined:
            return like
        level = 1 - like.confidence
        mean = float(self.totals[:, column].sum())
        low, high = (self._end(column, mean, side, level, step or abs(mean) or 1.0) for side in (-1, 1))
        if not math.isfinite(high - low):
            return like.holding(0.0)
        return Interval(low, high, confidence=like.confidence).by("permutation", like.caution)

    def _end(self, column: int, mean: float, side: int, level: float, step: float) -> float:
        """The end of the interval on one side of the mean; infinite where nothing is rejected there."""
        inside, outside = mean, math.inf
        if side * (0.0 - mean) > 0:
            # Zero is tried first: the interval holds it exactly if the test does not reject it.
            inside, outside = (mean, 0.0) if self.p_value(column) <= level else (0.0, math.inf)
        for i in range(_DOUBLED if math.isinf(outside) else 0):
            tried = mean + side * (abs(inside - mean) + step * 2.0**i)
            if self.p_value(column, tried) <= level:
                outside = tried
                break
            inside = tried
        if math.isinf(outside):
            return side * math.inf
        for _ in range(_HALVED):
            middle = (inside + outside) / 2
            inside, outside = (inside, middle) if self.p_value(column, middle) <= level else (middle, outside)
        return inside


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
    ordered = np.take_along_axis(values, order, axis=-1)
    limit = ROUNDING * largest
    ordered[np.abs(ordered) <= limit] = 0.0
    for i in range(1, values.shape[-1]):
        close = ordered[..., i] - ordered[..., i - 1] <= limit
        ordered[..., i] = np.where(close, ordered[..., i - 1], ordered[..., i])
    result = np.empty_like(ordered)
    np.put_along_axis(result, order, ordered, axis=-1)
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
    chances = np.zeros(int(doubled.sum()) + 1)
    chances[0] = 1.0
    for rank in doubled.tolist():
        chances[rank:] += chances[: len(chances) - rank].copy()
        chances /= 2
    return chances


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
    """The Bayesian signed-rank test: the probability that a difference is typically below the region of
    practical equivalence, in it, or above it.

    In each draw of the weights the region with the largest probability wins.

    References
    ----------
    Benavoli, Mangili, Corani, Zaffalon and Ruggeri (2014), proceedings.mlr.press/v32/benavoli14
    """
    with_zero = np.r_[0.0, differences]
    sums = with_zero[:, None] + with_zero[None, :]
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
