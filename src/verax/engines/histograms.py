"""Histograms of losses, whose bins are fixed in advance: sums by bin, and counts of cells by bin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from verax._settings import settings
from verax.common.packing import UnreadableError
from verax.common.specs import Truth, Valued, Whole
from verax.common.stored import only_weights
from verax.common.summaries import Summary, merges
from verax.engines.keyed import Keyed, Run
from verax.engines.keys import DECIMALS, bin_numbers, joined
from verax.engines.sums import Sum
from verax.inputs.arrays import Floats, Ints

# Neighbouring bins are joined at most this number of times.
_LEVELS = 10


class Histogram(Summary):
    """Sums of rows by the bins of a value: of a loss, or of a doubt.

    Attributes
    ----------
    level : int
        How many times neighbouring bins were joined, so that there are not too many.
    n_values : int
        The number of columns of values that are summed.
    n_cells : int
        The number of cells of a table of counts that is kept for every bin; 0 for none.
    whole : bool
        Whether all weights are whole numbers.
    bins : Keyed
        By bin: the number of rows, the sums of w and w*w, and for each value those of w*v, w*v*v, w*w*v,
        w*w*v*v, and of the w of rows where it is infinite; also the extremes of each value, then of what
        ranks the rows. All of the rows that have weight; an infinite value counts as zero in the sums.
    cells : Keyed
        By bin times the number of cells plus the cell: the sums of w and w*w.
    """

    level: int = merges(Whole("first", most=_LEVELS))
    n_values: int = merges(Whole("equal", most=2**20))
    n_cells: int = merges(Whole("equal", most=2**40))
    whole: bool = merges(Truth("all"))
    bins: Keyed = merges(Valued(Keyed))
    cells: Keyed = merges(Valued(Keyed))

    def _aligned(self, other: Histogram) -> tuple[Histogram, Histogram]:
        level = max(self.level, other.level)
        return self.coarser(level - self.level), other.coarser(level - other.level)

    def _merged(self) -> Histogram:
        return self._fitting()

    def _check(self) -> None:
        bins, cells = self.bins.total, self.cells.total
        if bins.sums.high.shape[1] != 3 + 5 * self.n_values or bins.least.shape[1] != self.n_values + 1:
            raise UnreadableError("has sums of other values", "bins")
        only_weights(bins.sums.high[:, :2])
        only_weights(cells.sums.high[:, 0])
        if cells.sums.high.shape[1] != 2 or (len(cells.keys) and not self.n_cells):
            raise UnreadableError("has counts of other cells", "cells")

    @classmethod
    def of(
        cls,
        ranks: Floats,
        values: Sequence[Floats],
        weights: Floats | None,
        cells: Ints | None = None,
        n_cells: int = 0,
    ) -> Histogram:
        """Sum rows by the bins of what ranks them."""
        w, whole = weights, True
        ranks = np.round(ranks, DECIMALS)
        if w is not None:
            whole = bool((w == np.floor(w)).all())
            if not w.all():
                kept = w > 0
                ranks, values, w = ranks[kept], [v[kept] for v in values], w[kept]
                cells = None if cells is None else cells[kept]
        square = None if w is None else w * w
        columns: list[Any] = [None, w, square]
        none = np.zeros(len(ranks))
        for v in values:
            infinite = none
            finite = v
            if not np.isfinite(v.sum()):
                infinite = np.isinf(v)
                finite = np.where(infinite, 0.0, v)
            wv = finite if w is None else w * finite
            second = wv * finite
            lost = infinite if infinite is none or w is None else w * infinite
            squared = (wv, second) if w is None else (w * wv, w * second)
            columns += [wv, second, *squared, lost]
        numbers = bin_numbers(ranks)
        bins = Run.of(numbers, columns, [*values, ranks])
        counted = Run.of(np.zeros(0, np.int64), [None, None])
        if n_cells and cells is not None:
            counted = Run.of(numbers * n_cells + cells, [w, square])
        return cls(0, len(values), n_cells, whole, Keyed((bins,)), Keyed((counted,)))._fitting()

    @classmethod
    def joined_from(
        cls, n_values: int, n_cells: int, bins: Run, cells: Run, *, whole: bool = True
    ) -> Histogram:
        """Make a histogram of sums, joining bins only until they fit into memory."""
        return cls(0, n_values, n_cells, whole, Keyed((bins,)), Keyed((cells,)))._fitting()

    @classmethod
    def of_means(
        cls,
        level: int,
        keys: Ints,
        weight: Floats,
        sums: Sequence[Floats],
        cells: tuple[Ints, Floats],
        n_cells: int,
        *,
        whole: bool,
    ) -> Histogram:
        """Make a histogram of weights and sums of values by bin, and weights of cells alone."""
        columns = np.zeros((len(keys), 3 + 5 * len(sums)))
        columns[:, 1] = weight
        for i, column in enumerate(sums):
            columns[:, 3 + 5 * i] = column
        ends = np.zeros((len(keys), len(sums) + 1))
        counted = np.stack([cells[1], np.zeros(len(cells[1]))], axis=1)
        none = np.zeros((len(counted), 0))
        runs = Run(keys, Sum.of(columns), ends, ends), Run(cells[0], Sum.of(counted), none, none)
        return cls(level, len(sums), n_cells, whole, Keyed((runs[0],)), Keyed((runs[1],)))

    def means(self) -> Histogram:
        """The histogram with weights and means alone, which is what replicates need."""
        bins, cells = self.bins.total, self.cells.total
        kept = np.zeros(3 + 5 * self.n_values)
        kept[1] = 1.0
        kept[3::5] = kept[7::5] = 1.0
        nothing = np.zeros_like(bins.least)
        bins = Run(bins.keys, Sum(bins.sums.high * kept, bins.sums.low * kept), nothing, nothing)
        first = np.array([1.0, 0.0])
        cells = Run(cells.keys, Sum(cells.sums.high * first, cells.sums.low * first), cells.least, cells.most)
        return replace(self, bins=Keyed((bins,)), cells=Keyed((cells,)))

    def coarser(self, times: int) -> Histogram:
        """With neighbouring bins joined `times` times more."""
        if times == 0:
            return self
        n_cells = max(self.n_cells, 1)

        def wider(run: Run) -> Ints:
            number, cell = np.divmod(run.keys, n_cells)
            return joined(number, times) * n_cells + cell

        bins = self.bins.rekeyed(lambda run: joined(run.keys, times))
        return replace(self, level=self.level + times, bins=bins, cells=self.cells.rekeyed(wider))

    def _fitting(self) -> Histogram:
        """The histogram with bins joined until they fit into memory, whatever the order of merging."""
        joined_bins, most = self, 2 * settings.bins_up_to
        while joined_bins.level < _LEVELS and len(joined_bins.cells) > most:
            if joined_bins.cells.n_keys <= most:
                return replace(joined_bins, cells=joined_bins.cells.added_up())
            joined_bins = joined_bins.coarser(1)
        return joined_bins

    def at_most(self, keys: int) -> Histogram:
        """With neighbouring bins joined until there are no more keys than that, if possible."""
        joined_bins = self
        while (
            joined_bins.level < _LEVELS
            and max(len(joined_bins.bins.total.keys), len(joined_bins.cells.total.keys)) > keys
        ):
            joined_bins = joined_bins.coarser(1)
        return joined_bins
