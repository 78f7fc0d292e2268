"""Curves of more rows than are kept, from histograms of what ranks them.

All rows of a bin count in part where a cut falls into it, as rows that tie do. `bounds` says how far that can
be from the curve of the rows.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np

from verax._settings import settings
from verax.analyses.replicates import drawn_groups
from verax.analyses.retention.bounds import RANGES, removed_sums, table_bounds
from verax.analyses.retention.cuts import Metric, Options, bounds_of, higher_is_better
from verax.analyses.retention.result import RetentionCurve, RetentionCurves, curve_of
from verax.analyses.retention.summaries import CurveRecipe, Histograms, Measures, named
from verax.engines.histograms import Histogram
from verax.errors import InputError
from verax.inference.bootstrap import widened_over_groups
from verax.inputs.arrays import Floats, Ints
from verax.kernels.threads import side_by_side
from verax.scores.base import Rule
from verax.scores.metrics import METRICS

# How many keys the histograms have from which replicates are drawn: sampling noise is larger than their bins.
_DRAWN_FROM = 2**13


class Bins:
    """The bins of a histogram from the worst to the best, for one vector of weights.

    Attributes
    ----------
    weights : (n,) array
        The weight of each bin.
    sums, infinite, least, most : (n, V) arrays
        The sums of each value, the weight of the rows where it is infinite, and its extremes.
    tied : (n,) bool array
        Whether the rows of a bin are all equal in what ranks them.
    rank, cell, counts : (m,) arrays
        Of each cell of each bin: the number of the bin, the cell and the weight.
    """

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

    def __init__(self, found: Histogram) -> None:
        bins, cells = found.bins.total, found.cells.total
        columns = bins.sums.high[::-1]
        self.weights, self.squares = columns[:, 1], columns[:, 2]
        each = columns[:, 3:].reshape(len(columns), found.n_values, 5)
        self.sums, self.second, self.crossed, self.crossed_second, self.infinite = np.moveaxis(each, 2, 0)
        self.least, self.most = bins.least[::-1], bins.most[::-1]
        # Rows that all tie also count in part in the order of the rows.
        self.tied: Any = self.least[:, -1] == self.most[:, -1]
        number, self.cell = np.divmod(cells.keys, max(found.n_cells, 1))
        self.rank: Ints = len(columns) - 1 - np.searchsorted(bins.keys, number)
        self.counts, self.cell_squares = cells.sums.high[:, 0], cells.sums.high[:, 1]
        self.n_cells = found.n_cells

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
            own = np.asarray(unit * times)
            w = np.bincount(self.rank, own, len(self.weights)) if self.n_cells else own
            drawn = copy.copy(self)
            drawn.weights, drawn.counts = w.astype(float), own if self.n_cells else self.counts
            noise = rng.standard_normal(spread.shape) * np.sqrt(spread * w[:, None])
            here = (w > 0)[:, None]
            drawn.sums = mean * w[:, None] + noise
            drawn.infinite = np.where(here, self.infinite, 0.0)
            yield drawn


class BinCuts:
    """Where cuts fall among bins.

    Attributes
    ----------
    at : (C,) int array
        The bin that each cut falls into; worse ones are removed.
    share : array of shape (C,)
        Which share of it is removed.
    open : (C,) bool array
        Whether it is unknown which rows of the bin are removed.
    """

    def __init__(self, bins: Bins, options: Options, unit: float | None) -> None:
        self._bins = bins
        cumulative = np.cumsum(bins.weights)
        total = float(cumulative[-1])
        taken = options.taken(total, unit)
        # A replicate without weight has no values.
        self.kept: Floats = total - taken if total else taken + np.nan
        self.at: Ints = np.minimum(np.searchsorted(cumulative, taken, side="right"), len(cumulative) - 1)
        before = np.where(self.at > 0, cumulative[self.at - 1], 0.0)
        weight = bins.weights[self.at]
        share = np.divide(taken - before, weight, out=np.zeros_like(before), where=weight > 0)
        self.share: Floats = np.clip(share, 0.0, 1.0)
        # Where it is unknown which rows are removed.
        self.open: Any = (self.share > 0) & (self.share < 1) & ~bins.tied[self.at]

    def _better(self, column: Floats) -> Floats:
        """The sums over the bins that are better than that of each cut."""
        after = np.cumsum(np.concatenate([[0.0], column[::-1]]))[::-1]
        return np.asarray(after[self.at + 1])

    def mean(self, i: int) -> tuple[Floats, Floats]:
        """The mean of a value over the rows kept at each cut, and how far it can be from that of the rows."""
        bins, at = self._bins, self.at
        total, left = bins.sums[:, i], 1 - self.share
        values = (self._better(total) + left * total[at]) / self.kept
        sums = total[at], bins.weights[at], bins.least[at, i], bins.most[at, i]
        low, high = removed_sums(*sums, self.share)
        off = np.maximum(high - self.share * total[at], self.share * total[at] - low) / self.kept
        bounds = np.where(self.open & (bins.least[at, i] < bins.most[at, i]), off, 0.0)
        beyond, here = self._better(bins.infinite[:, i]) > 0, bins.infinite[at, i] > 0
        mixed = here & self.open & (bins.least[at, i] < np.inf)
        bounds = np.where(beyond, 0.0, np.where(mixed, np.inf, bounds))
        return np.where(beyond | (here & (left > 0)), np.inf, values), bounds

    def tables(self, n_classes: int) -> tuple[Floats, Floats]:
        """(C, K, K) counts of the rows kept at each cut, and of the bins that the cuts fall into."""
        bins, n, n_cells = self._bins, len(self.at), self._bins.n_cells
        # A bin is kept by the cuts that fall into worse ones.
        last = np.searchsorted(self.at, bins.rank, side="left")
        found = np.bincount(last * n_cells + bins.cell, bins.counts, (n + 1) * n_cells)
        kept = np.cumsum(found.reshape(n + 1, n_cells)[::-1], axis=0)[::-1][1:].astype(float)
        inside = np.zeros((n, n_cells))
        # Cells are in the order of their bins, from the best on.
        first, end = (np.searchsorted(-bins.rank, -self.at, side=side) for side in ("left", "right"))
        for c in range(n):
            own = slice(first[c], end[c])
            inside[c, bins.cell[own]] = bins.counts[own]
        kept += (1 - self.share)[:, None] * inside
        kept[kept <= 1e-12 * (self.kept + 1e-300)[:, None]] = 0.0
        shape = (n, n_classes, n_classes)
        return kept.reshape(shape), inside.reshape(shape)


def binned_curves(
    found: Histograms,
    recipe: CurveRecipe,
    metrics: Sequence[Metric],
    options: Options,
    n_classes: int,
) -> RetentionCurves:
    """The curves of every metric in every order."""
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
    names, measures = [named(metric) for metric in metrics], recipe.measures
    about = {named(m): (named(m), higher_is_better(m), bounds_of(m, n_classes)) for m in metrics}
    by_outcome = {named(key) for key in recipe.keys if isinstance(key, Rule)}
    unit = options.unit(found)

    def drawn(order: str) -> dict[str, Floats]:
        return _replicates(found, order, measures, options, n_classes) if options.bootstrap else {}

    # Replicates come from few bins, so that threads may draw them at once; the curves themselves take memory.
    n_bins = max(len(histogram.bins.total.keys) for histogram in found.orders.values())
    draws = side_by_side(drawn, list(found.orders), n_bins)
    curves: dict[Any, RetentionCurve] = {}
    for (order, histogram), deviations in zip(found.orders.items(), draws, strict=True):
        values, bounds = _measured(BinCuts(Bins(histogram), options, unit), measures, n_classes)
        for name in names:
            exact = options.fill(values[name])
            replicates = np.zeros((0, len(exact)))
            if deviations:
                replicates = options.fill(exact + deviations[name])
                if found.replicates[order]:
                    n_groups = effective_groups(histogram, found.replicates[order])
                    replicates = widened_over_groups(replicates, exact, n_groups, options.confidence)
            curve = curve_of(order, about[name], exact, replicates, options, sees_outcome=order in by_outcome)
            within = np.where(np.isnan(exact), 0.0, bounds[name])
            curve = replace(curve, within=within, area_within=options.area_of(within))
            curves[order if len(names) == 1 else (order, name)] = curve
    return RetentionCurves(curves)


def effective_groups(histogram: Histogram, drawn: Sequence[Histogram]) -> float:
    """How many groups of equal weight tell as much as those that replicates were drawn of."""
    own, *weights = (float(each.bins.total.sums.high[:, 1].sum()) for each in (histogram, *drawn))
    return drawn_groups(np.array(weights), own)


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
        kept, inside = cuts.tables(n_classes)
        for metric in measures.tables:
            values[metric.name] = metric.of(kept)
            if bounded:
                bounds[metric.name] = table_bounds(
                    metric.name, values[metric.name], kept, inside, np.where(cuts.open, cuts.share, 0.0)
                )
    return values, bounds


def _replicates(
    found: Histograms, order: str, measures: Measures, options: Options, n_classes: int
) -> dict[str, Floats]:
    """How far the values of each bootstrap replicate are from those of all rows, from the same wider bins."""
    groups = found.replicates[order]
    if groups:
        base = Bins(found.orders[order].coarser(max(0, groups[0].level - found.orders[order].level)))
        draws: Iterator[Bins] = (Bins(each) for each in groups if len(each.bins.total.keys))
    else:
        base = Bins(found.orders[order].at_most(_DRAWN_FROM))
        draws = base.drawn(options.bootstrap, options.seed, copies=options.copies)
    unit = options.unit(found)
    observed, *drawn = (
        _measured(BinCuts(each, options, unit), measures, n_classes, bounded=False)[0]
        for each in chain([base], draws)
    )
    with np.errstate(invalid="ignore"):
        return {name: np.array([each[name] for each in drawn]) - observed[name] for name in observed}
