"""Bootstrap: how often each row is drawn, resampled counts, percentile intervals.

Rows are not copied: a replicate is a vector that says how often each row was drawn.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from verax._settings import settings
from verax.engines.clusters import Clusters, batches
from verax.inference.intervals import Interval, t_quantile
from verax.inference.products import root_of, triangle_times
from verax.inputs.arrays import Floats, Ints
from verax.inputs.groups import Groups
from verax.scores.cells import table_metrics
from verax.scores.metrics import DecisionMetric

# A bootstrap sample of more rows than this cannot be told from the sample it is drawn from.
_MOST_DRAWN = 2.0**53
# Rows are drawn instead of counts of cells where cells have at most this number of rows, on average.
_FEW_ROWS = 8
# Among how many other classes the wrong decisions are shared that counts are smoothed by.
_OTHERS = 8


def percentile_interval(replicates: Floats, confidence: float) -> Floats:
    """The central interval of replicates along the first axis, (2, ...); NaN replicates are left out."""
    tails = [50 * (1 - confidence), 50 * (1 + confidence)]
    undefined = np.isnan(replicates)
    # Interpolating between two infinite replicates gives NaN; the percentile is infinite.
    with np.errstate(invalid="ignore"):
        if not undefined.any():
            interval = np.percentile(replicates, tails, axis=0)
            return np.where(np.isnan(interval), np.inf, interval)
        missing = undefined.all(axis=0)
        interval = np.nanpercentile(np.where(missing, 0.0, replicates), tails, axis=0)
    return np.where(missing, np.nan, np.where(np.isnan(interval), np.inf, interval))


def widened(draws: Floats, mean: Floats, error: Floats, freedom: float, confidence: float) -> Floats:
    """Bootstrap means, (B, C), with the spread of Student's t distribution with these standard errors.

    The bootstrap of few units is too narrow: its variance is too small, and it knows no degrees of freedom.
    """
    from scipy.special import ndtri, stdtrit

    tail = (1 - confidence) / 2
    with np.errstate(invalid="ignore", divide="ignore"):
        factor = np.nan_to_num(error / draws.std(axis=0), nan=1.0, posinf=1.0)
        return np.asarray(mean + factor * (stdtrit(freedom, tail) / ndtri(tail)) * (draws - mean))


def widened_over_groups(draws: Floats, observed: Any, n_groups: float, confidence: float) -> Floats:
    """Bootstrap replicates over groups, (B, ...), with the spread of Student's t distribution.

    `n_groups` is the effective number of groups: the bootstrap variance of a mean over n groups is too
    small by one part in n. Undefined and infinite replicates stay.

    >>> draws = np.array([0.4, 0.5, 0.6])
    >>> widened_over_groups(draws, 0.5, 8.0, 0.95).round(3), widened_over_groups(draws, 0.5, 1e9, 0.95)
    (array([0.371, 0.5  , 0.629]), array([0.4, 0.5, 0.6]))
    """
    from scipy.special import ndtri, stdtrit

    n, tail = max(n_groups, 2.0), (1 - confidence) / 2
    factor = math.sqrt(n / (n - 1)) * stdtrit(n - 1, tail) / ndtri(tail)
    with np.errstate(invalid="ignore"):
        moved = observed + factor * (draws - observed)
    return np.where(np.isfinite(moved), moved, draws)


def simultaneous_band(draws: Floats, observed: Floats, confidence: float) -> Floats:
    """A band for a whole curve, (2, C), from its replicates, (B, C).

    The percentile intervals of all points are made wider by one factor, the smallest with which a share
    `confidence` of the replicates lies in the band from its first to its last point (sup-t; Montiel Olea and
    Plagborg-Moller 2019, doi:10.1002/jae.2656). Points where hardly a replicate differs stay as they are.

    >>> draws = np.array([[-1.0, 0.0], [1.0, 0.0], [0.0, -1.0], [0.0, 1.0], [0.0, 0.0]])
    >>> simultaneous_band(draws, np.zeros(2), 0.9)
    array([[-1., -1.],
           [ 1.,  1.]])
    """
    low, high = percentile_interval(draws, confidence)
    with np.errstate(invalid="ignore", divide="ignore"):
        centre = np.clip(observed, low, high)
        away = draws - centre
        room = np.where(away < 0, centre - low, high - centre)
        ratio = np.where(room > 0, np.abs(away) / room, 0.0)
        furthest = np.nan_to_num(ratio, nan=0.0, posinf=0.0).max(axis=1)
        factor = max(1.0, float(np.percentile(furthest, 100 * confidence)))
        band = np.stack([centre - factor * (centre - low), centre + factor * (high - centre)])
    # Infinite ends stay.
    return np.where(np.isnan(band), [low, high], band)


def bootstrap_interval(replicates: Floats, confidence: float, method: str, caution: str = "") -> Interval:
    """The percentile interval of a number from its replicates, (B,); those that are NaN are left out."""
    n, undefined = len(replicates), int(np.isnan(replicates).sum())
    if undefined == n:
        caution = "the number is undefined in every bootstrap replicate"
        return Interval.undefined(caution, method=method, confidence=confidence)
    if undefined:
        left_out = f"the number is undefined in {undefined:,} of {n:,} bootstrap replicates"
        caution = f"{caution}; {left_out}" if caution else left_out
    low, high = percentile_interval(replicates, confidence)
    return Interval(low, high, method=method, confidence=confidence, caution=caution)


def smoothed(counts: Floats, squares: Floats) -> tuple[Floats, Floats]:
    """Confusion counts, (K, K), and sums of squared weights with half a row more per class in either way.

    Every class that occurs gets half a row that was decided rightly and half a row that was not, which is
    shared by the others, or by eight of them at equal distances. A bootstrap of the counts alone cannot see
    cells that did not occur: of a class with few rows that were all decided rightly it would know
    everything. All counts are then scaled to add up to what they did.

    >>> counts = np.diag([6.0, 2.0])
    >>> smoothed(counts, counts)[0]
    array([[5.2, 0.4],
           [0.4, 2. ]])
    """
    occurring = np.flatnonzero(counts.sum(axis=1))
    n = len(occurring)
    if n < 2:
        return counts, squares
    total, others = counts.sum(), min(_OTHERS, n - 1)
    unit = squares.sum() / total
    more = np.zeros_like(counts)
    more[occurring, occurring] = 0.5
    for i in range(1, others + 1):
        more[occurring, np.roll(occurring, i * n // (others + 1))] = 0.5 / others
    scale = total / (total + unit * n)
    return scale * (counts + unit * more), scale * (squares + unit**2 * more)


def resampled_metrics(
    counts: Floats,
    squares: Floats,
    n_replicates: int,
    seed: int,
    reduce: Callable[[Ints, Floats], Floats],
) -> Floats:
    """Metrics of tables of counts as a bootstrap of the rows would give them, (B, M).

    `counts` are the sums of weights in the cells and `squares` the sums of squared weights. The counts of a
    bootstrap sample are drawn directly, at a cost that does not depend on the number of rows: they are
    multinomial where all rows have the same weight. Else every cell is a multiple of a Poisson number with
    the mean and the variance that it has in a bootstrap of the rows. Only cells that occur are drawn, a few
    replicates at a time: `reduce` turns the numbers of C cells and their (b, C) counts into (b, M) metrics.
    """
    rng = np.random.default_rng(seed)
    occurring = np.flatnonzero(counts)
    cells = counts.ravel()[occurring]
    unit = squares.ravel()[occurring] / cells
    rows = np.minimum(cells / unit, _MOST_DRAWN)
    same_weight = unit.max() <= unit.min() * (1 + 1e-9)
    n_rows = round(min(rows.sum(), _MOST_DRAWN))
    drawn = []
    for size in batches(n_replicates, len(occurring)):
        if same_weight:
            tables = _drawn_counts(rng, cells / cells.sum(), n_rows, size)
        else:
            tables = unit * rng.poisson(rows, size=(size, len(rows)))
        drawn.append(reduce(occurring, tables))
    return np.concatenate(drawn)


def _drawn_counts(rng: np.random.Generator, shares: Floats, n_rows: int, size: int) -> Floats:
    """Multinomial counts of cells that have these shares of the rows, (size, C).

    Where there are many cells with few rows each, rows are drawn one by one: several times as fast.
    """
    if len(shares) >= settings.rows_drawn_from and n_rows <= _FEW_ROWS * len(shares):
        cell = np.repeat(np.arange(len(shares)), np.rint(n_rows * shares).astype(np.int64))
        if len(cell) == n_rows:
            draws = (cell[rng.integers(0, n_rows, n_rows)] for _ in range(size))
            return np.stack([np.bincount(rows, minlength=len(shares)) for rows in draws]).astype(float)
    return rng.multinomial(n_rows, shares, size=size).astype(float)


def multiplicities(n_rows: int, groups: Groups | None, n_replicates: int, seed: int) -> Iterator[Any]:
    """How often each row is drawn in each bootstrap replicate; rows of a group are drawn together."""
    rng = np.random.default_rng(seed)
    units = None if groups is None else groups.as_seen
    n_units = n_rows if groups is None else len(groups.labels)
    for _ in range(n_replicates):
        drawn = np.bincount(rng.integers(0, n_units, n_units), minlength=n_units)
        if units is not None:
            drawn = drawn[units]
        yield drawn
        # Not held while the next is made.
        del drawn


def drawn_copies(counts: Floats, n_replicates: int, seed: int) -> Iterator[Floats]:
    """How often each row is drawn where it was seen `counts` times: as if its copies were rows."""
    rng = np.random.default_rng(seed)
    total = counts.sum()
    for _ in range(n_replicates):
        yield rng.multinomial(round(min(total, _MOST_DRAWN)), counts / total).astype(float)


def block_multiplicities(n_rows: int, block: int, n_replicates: int, seed: int) -> Iterator[Any]:
    """How often each row is drawn when blocks of neighbours are, around the end to the beginning.

    The circular block bootstrap of Politis and Romano (1992), for rows in order of time.
    """
    rng = np.random.default_rng(seed)
    n_blocks = -(-n_rows // block)
    for _ in range(n_replicates):
        starts = rng.integers(0, n_rows, n_blocks)
        rows = (starts[:, None] + np.arange(block)).ravel()[:n_rows] % n_rows
        yield np.bincount(rows, minlength=n_rows)


def metric_variances(clusters: Clusters, metrics: Sequence[DecisionMetric], n_classes: int) -> Floats:
    """(M,) jackknife variances of metrics of the confusion counts of groups.

    The variance is (G-1)/G times the sum of the squared changes of the metric as each group is left out. The
    derivative gives a change up to a share of the group in the weight, less than a thousandth.
    """
    filled = np.flatnonzero(clusters.weight > 0)
    n = len(filled)
    if n < 2:
        return np.full(len(metrics), np.nan)
    occurring, weights = clusters.cells.matrix(len(clusters.labels))
    total = np.asarray(weights.sum(axis=0)).ravel()
    scale = math.ldexp(1.0, -math.frexp(total.sum())[1])
    share = clusters.weight * (scale / (total.sum() * scale))
    exact = share > settings.left_out_share if n > settings.left_out_up_to else share > 0
    rest = filled[~exact[filled]]
    table = np.zeros(n_classes**2)
    table[occurring] = total * scale
    cells = np.divmod(occurring, n_classes)
    squares = np.zeros(len(metrics))
    for i, metric in enumerate(metrics):
        slopes = metric.slopes_at(table.reshape(n_classes, n_classes), *cells) if len(rest) else None
        left_out = np.flatnonzero(exact) if slopes is not None else filled
        squares[i] = _squared_changes(clusters, metric, n_classes, left_out)
        if slopes is not None:
            change = (weights @ (slopes * scale))[rest] / (1 - share[rest])
            squares[i] += change @ change
    return np.asarray(squares * (n - 1) / n)


def _squared_changes(clusters: Clusters, metric: DecisionMetric, n_classes: int, groups: Ints) -> float:
    """The sum of the squared changes of a metric as each of some groups is left out."""
    if not len(groups):
        return 0.0

    def value(cells: Ints, counts: Floats) -> Floats:
        return table_metrics([metric], n_classes, cells, counts)

    occurring, weights = clusters.cells.matrix(len(clusters.labels))
    whole = value(occurring, np.asarray(weights.sum(axis=0)).reshape(1, -1))
    return float(((clusters.without_each(value, groups) - whole) ** 2).sum())


# Rounds of importance sampling: the last one's draws give the quantile an error of about 0.01.
_DRAWS = (250, 250, 1000)
# Smaller standard errors, relative to the largest, are rounding. Added to correlations so that they have a
# Cholesky factor.
_NOTHING, _JITTER = 1e-9, 1e-9
# The number of independent estimates that the first round starts from.
_FIRST = 10.0


def widest(covariance: Floats, freedom: float, confidence: float, seed: int) -> float:
    """The quantile of the largest |t| among estimates with this covariance, at a confidence level.

    P(max |t| > c) is the sum over the estimates of P(|t_i| > c), times the mean of 1 / (number of estimates
    beyond c), given that a randomly chosen one is (Owen, Maximov and Chertkov 2019, arXiv:1710.06965).
    That mean hardly depends on c, so a few rounds of few draws are enough. It changes by whole draws only:
    rounding in the covariance does not show.

    >>> round(widest(np.eye(1), 20, 0.95, 0), 3), round(t_quantile(20, 0.95), 3)
    (2.086, 2.086)
    """
    from scipy.special import stdtr, stdtrit

    error = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    if not np.isfinite(covariance).all():
        return math.nan
    known = error > _NOTHING * error.max(initial=0.0)
    n = int(known.sum())
    if n < 2:
        return t_quantile(freedom, confidence)
    correlation = covariance[np.ix_(known, known)] / np.outer(error[known], error[known])
    root = root_of(correlation + _JITTER * np.eye(n))
    rng = np.random.default_rng(seed)
    half = (1 - float(confidence)) / 2
    quantile = -float(stdtrit(freedom, half / min(n, _FIRST)))
    for draws in _DRAWS:
        row, at = np.arange(draws), np.arange(draws) * n // draws
        # The one beyond the quantile, in strata, then the others given that one.
        chosen = -stdtrit(freedom, stdtr(freedom, -quantile) * (rng.permutation(draws) + 0.5) / draws)
        normal = triangle_times(root, rng.standard_normal((draws, n)).T).T
        rest = normal - correlation[at] * normal[row, at][:, None]
        scale = np.sqrt((freedom + chosen**2) / rng.chisquare(freedom + 1, draws))
        t = np.abs(correlation[at] * chosen[:, None] + scale[:, None] * rest)
        t[row, at] = np.inf
        effective = n * float(np.mean(1 / np.count_nonzero(t >= quantile, axis=1)))
        quantile = -float(stdtrit(freedom, half / max(effective, 1.0)))
    return quantile
