"""Curves of more rows than are kept, from histograms of what ranks them, and how far they can be off.

All rows of a bin count in part where a cut falls into it, as rows that tie do.

A cut falls into one bin. The rows of better bins are kept, those of worse bins removed, and of this bin a
known weight is removed; only which of its rows is unknown. In the order of the rows, some part r of the
weights t of its cells is removed, with 0 <= r <= t and the sum known. The value computed here removes the
same share of each cell. `table_bounds` has bounds of a metric over all r: they hold for every order of
the rows inside the bin, and however rows tie.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from verax._settings import settings
from verax.analyses.sampled import drawn_groups
from verax.engines.histograms import Histogram
from verax.errors import InputError
from verax.inference.bootstrap import widened_over_groups
from verax.inference.intervals import Resampling
from verax.inputs.arrays import Floats, Ints
from verax.kernels.threads import side_by_side
from verax.scores.metrics import KAPPA_COSTS, METRICS, cost_matrix
from verax.scores.tworates import SHARES
from verax.wings.retain.cuts import Cuts, Metric, Options, named
from verax.wings.retain.result import Measured
from verax.wings.retain.summaries import CurveRecipe, Histograms, Measures

Range = tuple[float, float]


def removed_sums(
    total: Floats, weight: Floats, least: Floats, most: Floats, share: Floats
) -> tuple[Floats, Floats]:
    """The smallest and the largest sum of values that a share of the weight of bins can have.

    The values lie between `least` and `most` and sum to `total`, with weights: so do those that are left.

    >>> low, high = removed_sums(*map(np.array, ([3.0], [10.0], [0.0], [1.0], [0.2])))
    >>> float(low[0]), float(high[0])
    (0.0, 2.0)
    """
    gone, left = share * weight, (1 - share) * weight
    with np.errstate(invalid="ignore"):
        low = np.maximum(least * gone, total - most * left)
        high = np.minimum(most * gone, total - least * left)
    return np.minimum(low, share * total), np.maximum(high, share * total)


def _removed(costs: Floats, table: Floats, gone: float) -> Range:
    """The smallest and the largest cost of so much of the weight in a table: the cheapest cells, the
    dearest.
    """
    order = np.argsort(costs, axis=None)
    cost, weight = costs.ravel()[order], table.ravel()[order]
    low = np.diff(np.minimum(np.cumsum(weight), gone), prepend=0.0)
    high = np.diff(np.minimum(np.cumsum(weight[::-1]), gone), prepend=0.0)
    return float(low @ cost), float(high @ cost[::-1])


def _kappa(costs: str, kept: Floats, table: Floats, share: float) -> Range:
    """Of 1 - n A / B: A is a sum over rows; B is linear in r but for a term that is at most 2 D^2 max(cost).

    B is the sum of cost_ij row_i column_j over the margins of what is kept. Let d = r - share * t, which sums
    to zero; the sum of its positive parts is at most D = share (1 - share) m, with m the weight of the bin.
    The margins of d also sum to zero, so that the product of both with the costs is at most
    1/2 |d|_1 * 1/2 |d|_1 * 2 max(cost) = 2 D^2 max(cost).
    """
    cost = cost_matrix(costs, len(kept))  # type: ignore[arg-type]
    n, gone = float(kept.sum()), share * float(table.sum())
    truth, decided = kept.sum(axis=1), kept.sum(axis=0)
    observed, chance = float((cost * kept).sum()), float(truth @ cost @ decided)
    low, high = (share * float((cost * table).sum()) - end for end in _removed(cost, table, gone)[::-1])
    slope = (cost @ decided)[:, None] + (truth @ cost)[None, :]
    fall, rise = (share * float((slope * table).sum()) - end for end in _removed(slope, table, gone)[::-1])
    second = 2 * (share * (1 - share) * float(table.sum())) ** 2 * float(cost.max())
    least, most = chance + fall - second, chance + rise + second
    if least <= 0:
        return -np.inf, np.inf
    return 1 - n * (observed + high) / least, 1 - n * max(observed + low, 0.0) / most


def _share_of(good: Floats, bad: Floats, in_bin: tuple[Floats, Floats], share: float, m: float) -> Range:
    """Of the mean over classes of good / (good + bad), from what is kept and what the bin has of both."""
    gone = share * m
    # What is removed of either kind, at least and at most.
    (g_least, g_most), (b_least, b_most) = (
        (np.maximum(0.0, gone - (m - here)), np.minimum(here, gone)) for here in in_bin
    )
    g, b = good + share * in_bin[0], bad + share * in_bin[1]
    some = (good + bad) > 0
    if bool((some & (g - g_most + b - b_most <= 0) & (in_bin[0] + in_bin[1] > 0)).any()):
        return -np.inf, np.inf
    low = (g - g_most)[some] / ((g - g_most) + (b - b_least))[some]
    high = (g - g_least)[some] / ((g - g_least) + (b - b_most))[some]
    return float(np.mean(low)), float(np.mean(high))


def _balanced(kept: Floats, table: Floats, share: float) -> Range:
    hits, here = np.diag(kept), np.diag(table)
    return _share_of(
        hits, kept.sum(axis=1) - hits, (here, table.sum(axis=1) - here), share, float(table.sum())
    )


def _f1(kept: Floats, table: Floats, share: float) -> Range:
    hits, here = np.diag(kept), np.diag(table)
    wrong = kept.sum(axis=0) + kept.sum(axis=1) - 2 * hits
    also = table.sum(axis=0) + table.sum(axis=1) - 2 * here
    return _share_of(2 * hits, wrong, (2 * here, also), share, 2 * float(table.sum()))


def _macro_mae(kept: Floats, table: Floats, share: float) -> Range:
    cost = cost_matrix("linear", len(kept))
    gone = share * float(table.sum())
    low, high = [], []
    for k in np.flatnonzero(kept.sum(axis=1) > 0):
        total, n = float(cost[k] @ (kept[k] + share * table[k])), float((kept[k] + share * table[k]).sum())
        here = float(table[k].sum())
        most = min(here, gone)
        least = max(0.0, gone - (float(table.sum()) - here))
        if n - most <= 0 and here > 0:
            return -np.inf, np.inf
        dearest, cheapest = _removed(cost[k], table[k], most)[1], _removed(cost[k], table[k], least)[0]
        low.append((total - dearest) / (n - least))
        high.append((total - cheapest) / (n - most))
    return float(np.mean(low)), float(np.mean(high))


def _macro_ppv(kept: Floats, table: Floats, share: float) -> Range:
    return _balanced(kept.T, table.T, share)


def _of_share(name: str) -> Callable[[Floats, Floats, float], Range]:
    """The range of a share of two classes, from what it counts and what else it is among."""
    part, whole = SHARES[name]
    masks = part, whole - part
    scale = float(whole.max())

    def range_of(kept: Floats, table: Floats, share: float) -> Range:
        good, bad = (np.array([(kept * mask).sum()]) for mask in masks)
        here = np.array([(table * masks[0]).sum()]), np.array([(table * masks[1]).sum()])
        return _share_of(good, bad, here, share, scale * float(table.sum()))

    return range_of


_sensitivity, _specificity = _of_share("sensitivity"), _of_share("specificity")


def _youden(kept: Floats, table: Floats, share: float) -> Range:
    ends = _sensitivity(kept, table, share), _specificity(kept, table, share)
    return ends[0][0] + ends[1][0] - 1, ends[0][1] + ends[1][1] - 1


def _likelihood_ratio(positive: bool) -> Callable[[Floats, Floats, float], Range]:
    def range_of(kept: Floats, table: Floats, share: float) -> Range:
        sens, spec = _sensitivity(kept, table, share), _specificity(kept, table, share)
        over = sens if positive else (1 - sens[1], 1 - sens[0])
        under = (1 - spec[1], 1 - spec[0]) if positive else spec
        if under[0] <= 0:
            return -np.inf, np.inf
        return over[0] / under[1], over[1] / under[0]

    return range_of


def _of_kappa(costs: str) -> Callable[[Floats, Floats, float], Range]:
    return lambda kept, table, share: _kappa(costs, kept, table, share)


# The metrics that are no means over rows, and the range of each.
RANGES: dict[str, Callable[[Floats, Floats, float], Range]] = {
    "qwk": _of_kappa(KAPPA_COSTS["quadratic"]),
    "linear_kappa": _of_kappa(KAPPA_COSTS["linear"]),
    "kappa": _of_kappa(KAPPA_COSTS["unweighted"]),
    "balanced_accuracy": _balanced,
    "macro_f1": _f1,
    "macro_mae": _macro_mae,
    "macro_ppv": _macro_ppv,
    **{name: _of_share(name) for name in SHARES},
    "youden": _youden,
    "lr_positive": _likelihood_ratio(True),
    "lr_negative": _likelihood_ratio(False),
}
assert all(metric.of_row is not None or name in RANGES for name, metric in METRICS.items())


def table_bounds(name: str, values: Floats, kept: Floats, tables: Floats, shares: Floats) -> Floats:
    """The bounds of the error of each value of a metric.

    Parameters
    ----------
    values, shares : Floats
        (C,) the metric at each cut, and the share of the bin there that is removed.
    kept, tables : Floats
        (C, K, K) the counts of what is kept, and of the bin that each cut falls into.
    """
    bounds = np.zeros(len(values))
    cut = np.flatnonzero(
        (shares > 0) & (shares < 1) & ((tables > 0).sum(axis=(1, 2)) > 1) & ~np.isnan(values)
    )
    for c in cut:
        low, high = RANGES[name](kept[c], tables[c], float(shares[c]))
        bounds[c] = max(values[c] - low, high - values[c], 0.0)
    return bounds


# Keys of the histograms from which replicates are drawn: sampling noise is larger than their bins.
_DRAWN_FROM = 2**13


class Bins:
    """The bins of a histogram from the worst to the best, for one vector of weights.

    Attributes
    ----------
    keys, rows, weights, squares : (n,) arrays
        The key of each bin, the number of its rows, and the sums of their weights and of the squares.
    sums, infinite, least, most : (n, V) arrays
        The sums of each value, the weight of the rows where it is infinite, and its extremes.
    tied : (n,) bool array
        Whether the rows of a bin are all equal in what ranks them.
    rank, cell, counts : (m,) arrays
        Of each cell of each bin, from the best bin on: the number of the bin, the cell and the weight.
    """

    rows: Floats
    weights: Floats
    squares: Floats
    sums: Floats
    second: Floats
    crossed: Floats
    crossed_second: Floats
    infinite: Floats
    least: Floats
    most: Floats
    cell: Ints
    counts: Floats
    cell_squares: Floats
    n_cells: int

    def __init__(self, histogram: Histogram) -> None:
        bins, cells = histogram.bins.total, histogram.cells.total
        columns = bins.sums.high[::-1]
        self.keys: Ints = bins.keys[::-1]
        self.rows, self.weights, self.squares = columns[:, 0], columns[:, 1], columns[:, 2]
        by_value = columns[:, 3:].reshape(len(columns), histogram.n_values, 5)
        self.sums, self.second, self.crossed, self.crossed_second, self.infinite = np.moveaxis(by_value, 2, 0)
        self.least, self.most = bins.least[::-1], bins.most[::-1]
        # Rows that all tie also count in part in the order of the rows.
        self.tied: Any = self.least[:, -1] == self.most[:, -1]
        number, self.cell = np.divmod(cells.keys, max(histogram.n_cells, 1))
        self.rank: Ints = len(columns) - 1 - np.searchsorted(bins.keys, number)
        self.counts, self.cell_squares = cells.sums.high[:, 0], cells.sums.high[:, 1]
        self.n_cells = histogram.n_cells

    def sums_of(self, i: int) -> Floats:
        """The sums of one value, infinite where it is for some row."""
        return np.where(self.infinite[:, i] > 0, np.inf, self.sums[:, i])

    def drawn(self, n: int, seed: int, *, copies: bool) -> Iterator[Bins]:
        """Bootstrap replicates of independent rows.

        Where all rows have the same weight, drawing rows with replacement draws the numbers of rows in the
        cells of all bins from a multinomial distribution: that is what is done. Where they have not, each
        cell is a multiple of a Poisson number with the mean and the variance that its weight has in a
        bootstrap, as for cards. Sums of values in a bin get the mean and the variance that they have given
        its weight.
        """
        rng = np.random.default_rng(seed)
        weights, squares = (self.counts, self.cell_squares) if self.n_cells else (self.weights, self.squares)
        unit = np.ones(len(weights)) if copies else squares / weights
        rows = weights / unit
        even = bool(unit.max() <= unit.min() * (1 + 1e-9))
        inner, second = (self.sums, self.second) if copies else (self.crossed, self.crossed_second)
        square = (self.weights if copies else self.squares)[:, None]
        mean = self.sums / self.weights[:, None]
        spread = np.maximum(second - mean * (2 * inner - mean * square), 0.0) / self.weights[:, None]
        for _ in range(n):
            times = rng.multinomial(round(rows.sum()), rows / rows.sum()) if even else rng.poisson(rows)
            counts = np.asarray(unit * times)
            w = np.bincount(self.rank, counts, len(self.weights)) if self.n_cells else counts
            replicate = copy.copy(self)
            replicate.weights, replicate.counts = w.astype(float), counts if self.n_cells else self.counts
            noise = rng.standard_normal(spread.shape) * np.sqrt(spread * w[:, None])
            replicate.sums = mean * w[:, None] + noise
            replicate.infinite = np.where((w > 0)[:, None], self.infinite, 0.0)
            yield replicate


def observed_and_drawn(
    order: Histogram, groups: Sequence[Histogram], plan: Resampling, most: int
) -> Iterator[Bins]:
    """Bins of all rows, then of each replicate; those of independent rows have at most `most` keys."""
    if groups:
        yield Bins(order.coarser(max(0, groups[0].level - order.level)))
        yield from (Bins(replicate) for replicate in groups if len(replicate.bins.total.keys))
    else:
        observed = Bins(order.at_most(most))
        yield observed
        yield from observed.drawn(plan.replicates, plan.seed, copies=plan.copies)


class BinCuts(Cuts):
    """Cuts along bins."""

    def __init__(self, bins: Bins, options: Options, unit: float | None) -> None:
        self._bins = bins
        total = float(bins.weights.sum())
        super().__init__(bins.weights, options.taken(total, unit), total)
        # Where it is unknown which rows of the bin are removed.
        self.open: Any = (self.share > 0) & (self.share < 1) & ~bins.tied[self.starts]

    def mean(self, i: int) -> tuple[Floats, Floats]:
        """The mean of a value over the rows kept at each cut, and how far it can be from that of the rows."""
        bins, at = self._bins, self.starts
        least, most, total = bins.least[at, i], bins.most[at, i], bins.sums[at, i]
        low, high = removed_sums(total, bins.weights[at], least, most, self.share)
        off = np.maximum(high - self.share * total, self.share * total - low) / self.kept
        bounds = np.where(self.open & (least < most), off, 0.0)
        mixed = (bins.infinite[at, i] > 0) & self.open & (least < np.inf)
        bounds = np.where(self.better(bins.infinite[:, i]) > 0, 0.0, np.where(mixed, np.inf, bounds))
        return self.sums(bins.sums_of(i)) / self.kept, bounds

    def bin_tables(self, n_classes: int) -> tuple[Floats, Floats]:
        """(C, K, K) counts of the rows kept at each cut, and of the bins that the cuts fall into."""
        bins = self._bins
        counts = np.asarray(np.bincount(bins.cell, bins.counts, bins.n_cells), float)
        rank = bins.rank[::-1]
        runs = np.searchsorted(rank, self.starts), np.searchsorted(rank, self.starts, side="right")
        tables = self.tables(bins.cell[::-1], bins.counts[::-1], counts, runs)
        kept, inside = (table.reshape(-1, n_classes, n_classes) for table in tables)
        return kept, inside


def binned_values(
    histograms: Histograms,
    recipe: CurveRecipe,
    metrics: Sequence[Metric],
    options: Options,
    n_classes: int,
) -> dict[str, list[Measured]]:
    """Every metric in every order."""
    if options.ties == "order":
        raise InputError(
            f"must be 'share' beyond {settings.exact_up_to:,} rows that are not in memory: "
            "their order is not kept",
            argument="ties",
        )
    for metric in recipe.measures.tables:
        if metric.name not in RANGES or metric.of != METRICS[metric.name].of:
            raise InputError(
                f"must be another one beyond {settings.exact_up_to:,} rows that are not in memory",
                argument="metric",
                found=f"the error of {metric.summary} in bins of rows has no known bound",
                values=[metric.name],
            )
    measures, plan = recipe.measures, options.plan
    unit = options.unit(histograms)

    def deviations_of(order: str) -> dict[str, Floats]:
        return _deviations(histograms, order, measures, options, n_classes) if plan.replicates else {}

    # Replicates come from few bins, so that threads may draw them at once; the curves themselves take memory.
    n_bins = max(len(histogram.bins.total.keys) for histogram in histograms.orders.values())
    deviations_by_order = side_by_side(deviations_of, list(histograms.orders), n_bins)
    curves: dict[str, list[Measured]] = {}
    for (order, histogram), deviations in zip(histograms.orders.items(), deviations_by_order, strict=True):
        values, bounds = _measured(BinCuts(Bins(histogram), options, unit), measures, n_classes)
        curves[order] = []
        for name in map(named, metrics):
            exact = options.fill(values[name])
            replicates = np.zeros((0, len(exact)))
            if deviations:
                replicates = options.fill(exact + deviations[name])
                if histograms.replicates[order]:
                    n_groups = effective_groups(histogram, histograms.replicates[order])
                    replicates = widened_over_groups(replicates, exact, n_groups, plan.confidence)
            curves[order].append((exact, replicates, np.where(np.isnan(exact), 0.0, bounds[name])))
    return curves


def effective_groups(histogram: Histogram, replicates: Sequence[Histogram]) -> float:
    """The number of groups of equal weight that tell as much as those that replicates were drawn of."""
    whole, *weights = (float(drawn.bins.total.sums.high[:, 1].sum()) for drawn in (histogram, *replicates))
    return drawn_groups(np.array(weights), whole)


def _measured(
    cuts: BinCuts, measures: Measures, n_classes: int, *, bounded: bool = True
) -> tuple[dict[str, Floats], dict[str, Floats]]:
    """Each metric at each cut, and how far it can be from that of the rows."""
    values: dict[str, Floats] = {}
    bounds: dict[str, Floats] = {}
    for i, measure in enumerate(measures.values):
        name = named(measure)
        values[name], bounds[name] = cuts.mean(i)
    if measures.tables:
        kept, inside = cuts.bin_tables(n_classes)
        for metric in measures.tables:
            values[metric.name] = metric.of(kept)
            if bounded:
                bounds[metric.name] = table_bounds(
                    metric.name, values[metric.name], kept, inside, np.where(cuts.open, cuts.share, 0.0)
                )
    return values, bounds


def _deviations(
    histograms: Histograms, order: str, measures: Measures, options: Options, n_classes: int
) -> dict[str, Floats]:
    """The values of each bootstrap replicate minus those of all rows, from the same wider bins."""
    unit, replicates = options.unit(histograms), histograms.replicates[order]
    observed, *drawn = (
        _measured(BinCuts(bins, options, unit), measures, n_classes, bounded=False)[0]
        for bins in observed_and_drawn(histograms.orders[order], replicates, options.plan, _DRAWN_FROM)
    )
    with np.errstate(invalid="ignore"):
        return {name: np.array([values[name] for values in drawn]) - observed[name] for name in observed}
