"""Whether forecasts are calibrated, by Rao's score test: the first half of the gate of every choice.

If forecasts are calibrated, every sum of what happened minus what was forecast is zero on average. The sums
that are tested are those that methods change: the slope of the log probabilities, an offset for each class,
and of two classes a curvature. Under the forecasts the variance of independent rows is known, so nothing is
fitted, and the sums of parts of the rows add up. Where a class is expected fewer than 20 times, outcomes
drawn from the forecasts take the place of the chi-square distribution. With groups or weights the test is
Hotelling's, of the sums of groups.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from verax.inputs.arrays import Floats, Ints
from verax.inputs.groups import Groups, by_kind

# Log odds of two classes, and log probabilities below that of a row's likeliest class, count up to these.
_ODDS, LOGS = 6.0, 8.0
# With more classes than this, the commonest have offsets of their own.
_MANY, _COMMONEST = 20, 10
# Where a class is expected less often, outcomes are drawn this number of times, with this seed.
_EXPECTED, _DRAWS, _SEED = 20.0, 999, 0
# Outcomes drawn, and probabilities looked at, at a time.
_TOGETHER, _BLOCK = 2_000_000, 2**20
# Sums that are this near are equal.
_ROUNDING = 1e-9
# Directions with less of the variance, in units of their own, are sums of others.
_NONE = 1e-10


@dataclass(frozen=True)
class Directions:
    """Forecasts of the C outcomes of each row, and what is summed up over them.

    Attributes
    ----------
    p : (N, C) array
        The probability of each outcome.
    slopes : sequence of (N, C) arrays
        What each outcome adds to the sum of a direction, beside offsets.
    bins : (C,) int array
        The offset of each outcome; those of bin 0 have none.
    """

    p: Floats
    slopes: Sequence[Floats]
    bins: Ints

    @classmethod
    def of(cls, p: Floats, *, ordered: bool) -> Directions:
        """Of full distributions; of ordered classes thresholds take the place of classes."""
        k = p.shape[1]
        z = np.log(np.maximum(p, 1e-12))
        if k == 2:
            t = np.clip(z[:, 1] - z[:, 0], -_ODDS, _ODDS)
            zero = np.zeros(len(p))
            return cls(p, [np.stack([zero, of], axis=1) for of in (t, t * t / 4)], np.arange(2))
        if ordered:
            below = np.cumsum(p, axis=1)[:, :-1]
            odds = np.log(np.maximum(below, 1e-12)) - np.log(np.maximum(1 - below, 1e-12))
            odds = np.clip(odds, -_ODDS, _ODDS)
            # An outcome is at or below its own threshold and all later ones.
            slope = np.cumsum(np.append(odds, np.zeros((len(p), 1)), axis=1)[:, ::-1], axis=1)[:, ::-1]
            return cls(p, [slope], _runs(p) if k > _MANY else np.arange(k))
        slope = np.clip(z - z.max(axis=1, keepdims=True), -LOGS, 0.0)
        return cls(p, [slope], _commonest(p) if k > _MANY else np.arange(k))

    @property
    def n_bins(self) -> int:
        """The number of bins, that without an offset included."""
        return int(self.bins.max()) + 1

    @property
    def binned(self) -> Floats:
        """(N, B - 1) probabilities of the bins that have offsets."""
        if self.n_bins == self.p.shape[1]:
            return self.p[:, 1:]
        return np.stack([self.p[:, self.bins == b].sum(axis=1) for b in range(1, self.n_bins)], axis=1)

    def residuals(self, y: Ints) -> Floats:
        """(N, d) what happened minus what was expected, in every direction."""
        rows = np.arange(len(y))
        along = [s[rows, y] - np.einsum("nc,nc->n", self.p, s) for s in self.slopes]
        happened = self.bins[y][:, None] == np.arange(1, self.n_bins)
        return np.column_stack([*along, happened - self.binned])

    def variance(self) -> Floats:
        """(d, d) variance of the sums of independent rows, if the forecasts are calibrated."""
        a, q = len(self.slopes), self.binned
        d = a + self.n_bins - 1
        v = np.empty((d, d))
        centred = [s - np.einsum("nc,nc->n", self.p, s)[:, None] for s in self.slopes]
        for i, s in enumerate(centred):
            weighted = self.p * s
            for j, other in enumerate(centred):
                v[i, j] = np.einsum("nc,nc->", weighted, other)
            of_bins = np.bincount(self.bins, weighted.sum(axis=0), self.n_bins)[1:]
            v[i, a:], v[a:, i] = of_bins, of_bins
        v[a:, a:] = np.diag(q.sum(axis=0)) - np.einsum("ni,nj->ij", q, q)
        return v

    def taken(self, some: slice) -> Directions:
        """Those of some rows."""
        return Directions(self.p[some], [s[some] for s in self.slopes], self.bins)


@dataclass(frozen=True)
class ScoreSums:
    """Sums over independent rows, which add up over parts of them.

    Attributes
    ----------
    residual : (d,) array
        What happened minus what was expected.
    variance : (d, d) array
        Its variance if the forecasts are calibrated.
    expected : (B,) array
        How often the outcomes of each bin are expected.
    """

    residual: Floats
    variance: Floats
    expected: Floats

    @classmethod
    def of(cls, directions: Directions, y: Ints) -> ScoreSums:
        """Those of one part of the rows."""
        expected = np.bincount(directions.bins, directions.p.sum(axis=0), directions.n_bins).astype(float)
        return cls(directions.residuals(y).sum(axis=0), directions.variance(), expected)

    def __add__(self, other: ScoreSums) -> ScoreSums:
        return ScoreSums(
            self.residual + other.residual, self.variance + other.variance, self.expected + other.expected
        )


def calibration_p(directions: Directions, y: Ints, weights: Floats | None, groups: Groups | None) -> float:
    """The p-value of "the forecasts are calibrated"; NaN where there are too few groups to tell."""
    if weights is not None or groups is not None:
        return _p_of_groups(directions, y, weights, groups)
    step = max(1, _BLOCK // directions.p.shape[1])
    parts = [slice(start, start + step) for start in range(0, len(y), step)]
    sums = ScoreSums.of(directions.taken(parts[0]), y[parts[0]])
    for part in parts[1:]:
        sums = sums + ScoreSums.of(directions.taken(part), y[part])
    half, d = _whitening(sums.variance)
    statistic = _squared(sums.residual, sums.variance, half)
    if np.isinf(statistic):
        return 0.0
    if sums.expected.min() < _EXPECTED:
        return _p_of_draws(directions, half, statistic)
    from scipy.special import chdtrc

    return float(chdtrc(d, statistic)) if d else 1.0


def _whitening(variance: Floats) -> tuple[Floats, int]:
    """A matrix that makes sums with this variance independent of variance one, and their number."""
    spread = np.sqrt(np.clip(np.diag(variance), 0.0, None))
    known = spread > 1e-9 * max(float(spread.max(initial=0.0)), 1e-300)
    scale = np.where(known, 1 / np.where(known, spread, 1.0), 0.0)
    values, vectors = np.linalg.eigh(variance * np.outer(scale, scale))
    kept = values > _NONE * max(len(values), 1)
    return scale[:, None] * vectors[:, kept] / np.sqrt(values[kept]), int(kept.sum())


def _squared(sums: Floats, variance: Floats, half: Floats) -> float:
    """The length of sums in units of their spread, squared; infinite where they cannot be, if calibrated."""
    steady = np.diag(variance) <= 1e-18 * max(float(np.diag(variance).max(initial=0.0)), 1e-300)
    if (np.abs(sums[steady]) > 1e-6).any():
        return np.inf
    return float(((sums @ half) ** 2).sum())


def _p_of_draws(directions: Directions, half: Floats, statistic: float) -> float:
    """The share of draws of all outcomes from the forecasts that are as far from what was expected."""
    p, n_bins = directions.p, directions.n_bins
    n, c = p.shape
    rng, cumulative = np.random.default_rng(_SEED), np.cumsum(p, axis=1)[:, :-1]
    means = [float(np.einsum("nc,nc->", p, s)) for s in directions.slopes]
    expected = directions.binned.sum(axis=0)
    rows, beyond, left = np.arange(n), 0, _DRAWS
    while left:
        some = min(left, max(1, _TOGETHER // (n * c)))
        left -= some
        uniform, drawn = rng.random((some, n)), np.zeros((some, n), np.int64)
        for k in range(c - 1):
            drawn += uniform > cumulative[:, k]
        along = [s[rows, drawn].sum(axis=1) - m for s, m in zip(directions.slopes, means, strict=True)]
        binned = directions.bins[drawn]
        counts = np.stack([(binned == b).sum(axis=1) for b in range(1, n_bins)], axis=1) - expected
        sums = np.column_stack([*along, counts])
        beyond += int((((sums @ half) ** 2).sum(axis=1) >= statistic * (1 - _ROUNDING) - _ROUNDING).sum())
    return (1 + beyond) / (_DRAWS + 1)


def _p_of_groups(directions: Directions, y: Ints, weights: Floats | None, groups: Groups | None) -> float:
    """Hotelling's test of the sums of groups, or of rows with weights; of two kinds the larger p-value."""
    residuals = directions.residuals(y)
    # The curvature of two classes makes the sums of few groups too skewed for this test.
    residuals = np.delete(residuals, np.arange(1, len(directions.slopes)), axis=1)
    if weights is not None:
        kept = weights > 0
        residuals = residuals[kept] * (weights[kept] / weights.max())[:, None]
    if groups is None:
        return _hotelling(residuals)
    kinds = by_kind(groups.labels)
    codes = [places[groups.codes] for _, places in kinds] if kinds else [groups.codes]
    if weights is not None:
        codes = [of_kind[kept] for of_kind in codes]
    return float(np.max([_hotelling(_summed(residuals, of_kind)) for of_kind in codes]))


def _summed(residuals: Floats, codes: Ints) -> Floats:
    """(G, d) sums of the groups that have rows."""
    _, places = np.unique(codes, return_inverse=True)
    return np.stack([np.bincount(places, column) for column in residuals.T], axis=1)


def _hotelling(sums: Floats) -> float:
    """The p-value of "the mean of these sums is zero", by Hotelling's T-squared."""
    n = len(sums)
    if n < 3:
        return math.nan
    mean, centred = sums.mean(axis=0), sums - sums.mean(axis=0)
    variance = centred.T @ centred / (n - 1)
    half, d = _whitening(variance)
    if d >= n - 1:
        return math.nan
    squared = n * _squared(mean, variance, half)
    if np.isinf(squared):
        return 0.0
    if not d:
        return 1.0
    from scipy.special import fdtrc

    return float(fdtrc(d, n - d, squared * (n - d) / (d * (n - 1))))


def _commonest(p: Floats) -> Ints:
    """Offsets for the classes that are expected most often, none for the others."""
    bins = np.zeros(p.shape[1], np.int64)
    bins[np.argsort(-p.sum(axis=0), kind="stable")[:_COMMONEST]] = np.arange(1, _COMMONEST + 1)
    return bins


def _runs(p: Floats) -> Ints:
    """Runs of neighbouring ordered classes that are expected about equally often."""
    middle = np.cumsum(p.sum(axis=0)) - p.sum(axis=0) / 2
    places = np.floor(middle / p.sum() * (_COMMONEST + 1)).astype(np.int64)
    return np.unique(np.clip(places, 0, _COMMONEST), return_inverse=True)[1]
