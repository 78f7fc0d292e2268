"""Histograms that rows are added to in place: tables of all bins, filled by compiled loops.

They hold what `engines.histograms` holds, and become it in the end. Nothing is sorted, and a bin costs what
it has to, however many parts the rows come in.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from verax._settings import settings
from verax.engines.histograms import Histogram
from verax.engines.keyed import Run
from verax.engines.keys import DECIMALS, LAYOUT, bin_numbers
from verax.engines.sums import Sum
from verax.inputs.arrays import Floats, Ints

# Growth step of tables, in bins.
_STEP = 2**10


class _Table:
    """Bins with extremes, counts and sums; the sums of many rows are kept as pairs of doubles."""

    def __init__(
        self, n_columns: int, least: Sequence[int], most: Sequence[int], sums: Sequence[int]
    ) -> None:
        self._empty = np.zeros(n_columns)
        self._empty[list(least)], self._empty[list(most)] = np.inf, -np.inf
        self._sums = np.array(sums, np.int64)
        self.cells = np.empty((0, n_columns))
        self._totals: Sum | None = None
        self._unsettled = 0

    def grow(self, before: int, after: int) -> None:
        """Add empty bins on either side."""

        def longer(table: Floats, fill: Floats) -> Floats:
            longer_table = np.zeros((before + len(table) + after, table.shape[1]))
            for column in np.flatnonzero(fill):
                longer_table[:, column] = fill[column]
            longer_table[before : before + len(table)] = table
            return longer_table

        self.cells = longer(self.cells, self._empty)
        if self._totals is not None:
            nothing = np.zeros(len(self._sums))
            self._totals = Sum(longer(self._totals.high, nothing), longer(self._totals.low, nothing))

    @property
    def totals(self) -> Sum:
        """The sums as pairs of doubles. Tables of few rows take no memory for these before the end."""
        if self._totals is None:
            self._totals = Sum.zeros((len(self.cells), len(self._sums)))
        return self._totals

    def added(self, n_rows: int) -> None:
        """Rows were added."""
        self._unsettled += n_rows
        if self._unsettled >= settings.settled_after:
            self.settle()

    def settle(self) -> None:
        """Move the sums to pairs of doubles."""
        from verax.kernels.filling import settle

        settle(self.cells, self._sums, self.totals.high, self.totals.low)
        self._unsettled = 0


def _room(first: int, size: int, least: int, most: int) -> tuple[int, int, int]:
    """The first bin of a table that also has these bins, and its growth on either side."""
    first = first if size else least - least % _STEP
    begin = min(first, least - least % _STEP)
    end = max(first + size, most - most % _STEP + _STEP)
    return begin, first - begin, end - first - size


class RankTable:
    """Rows by the bins of what ranks them.

    Parameters
    ----------
    n_sums : int
        How many losses are summed.
    n_codes : int
        Of how many kinds rows can be.
    """

    def __init__(self, n_sums: int, n_codes: int) -> None:
        self._first, self._n_rows = 0, 0
        self._counts = np.zeros((0, n_codes), np.uint32)
        self._more: Floats | None = None
        # Compiled loops know no tuples without a value.
        places = range(2, 2 + 4 * max(n_sums, 1), 4)
        self._table = _Table(
            2 + 4 * len(places),
            least=[0, *(place + 2 for place in places)],
            most=[1, *(place + 3 for place in places)],
            sums=[place + square for place in places for square in (0, 1)],
        )

    def add(self, ranks: Floats, values: tuple[Floats, ...], codes: Any) -> None:
        """Add rows of these kinds (uint8), and sum up some values of theirs, which are finite."""
        from verax.kernels.filling import fill_bins

        if self._n_rows + len(ranks) > settings.counted_up_to:
            self._count()
        self._n_rows += len(ranks)
        scale, done = 10.0**DECIMALS, 0
        while True:
            into = LAYOUT, self._first, self._table.cells, self._counts
            done, least, most = fill_bins(done, ranks, values or (ranks,), codes, scale, *into)
            if done == len(ranks):
                break
            self._reach(least, most)
        self._table.added(len(ranks))

    def _count(self) -> None:
        """Move the counts to where there is room for more."""
        counts = self._counts.astype(float)
        self._more, self._n_rows = counts if self._more is None else self._more + counts, 0
        self._counts[:] = 0

    def _reach(self, least: int, most: int) -> None:
        """Make room for these bins."""
        self._first, before, after = _room(self._first, len(self._table.cells), least, most)
        self._table.grow(before, after)
        room = (before, after), (0, 0)
        self._counts = np.pad(self._counts, room)
        self._more = None if self._more is None else np.pad(self._more, room)

    def histogram(self, values: Sequence[int | Floats], n_cells: int) -> Histogram:
        """The histogram of all rows. A value is the number of a sum, or what rows of each kind have."""
        self._table.settle()
        self._count()
        counts = self._counts if self._more is None else self._more
        used = np.flatnonzero(counts.any(axis=1))
        counts, table = counts[used], self._table.cells[used]
        high, low = self._table.totals.high[used], self._table.totals.low[used]
        n, nothing = counts.sum(axis=1), np.zeros(len(used))
        columns, errors = [n, n, n], [nothing, nothing, nothing]
        least, most = [], []
        for value in values:
            if isinstance(value, int):
                first, second = high[:, 2 * value], high[:, 2 * value + 1]
                rests = [low[:, 2 * value], low[:, 2 * value + 1]]
                ends = table[:, 4 * value + 4], table[:, 4 * value + 5]
            else:
                first, second, rests = counts @ value, counts @ (value * value), [nothing, nothing]
                here = counts > 0
                ends = tuple(
                    end(np.where(here, value, limit), axis=1)
                    for end, limit in ((np.min, np.inf), (np.max, -np.inf))
                )
            columns += [first, second, first, second, nothing]
            errors += [*rests, *rests, nothing]
            least.append(ends[0])
            most.append(ends[1])
        least.append(table[:, 0])
        most.append(table[:, 1])
        numbers = used + self._first
        sums = Sum(np.stack(columns, axis=1), np.stack(errors, axis=1))
        bins = Run(numbers, sums, np.stack(least, axis=1), np.stack(most, axis=1))
        rows, cells = np.nonzero(counts) if n_cells else (used[:0], used[:0])
        size = counts[rows, cells]
        none = np.zeros((len(rows), 0))
        counted = Run(numbers[rows] * n_cells + cells, Sum.of(np.stack([size, size], axis=1)), none, none)
        return Histogram.joined_from(len(values), n_cells, bins, counted)


class WeightedRankTable:
    """Rows of any weight by the bins of what ranks them."""

    def __init__(self, n_sums: int, n_codes: int) -> None:
        self._first, self._whole = 0, True
        # Compiled loops know no tuples without a value.
        places = range(5, 5 + 6 * max(n_sums, 1), 6)
        self._table = _Table(
            5 + 6 * len(places),
            least=[0, *(place + 4 for place in places)],
            most=[1, *(place + 5 for place in places)],
            sums=[2, 3, 4, *(place + i for place in places for i in range(4))],
        )
        self._kinds = _Table(2 * n_codes, [], [], range(2 * n_codes))

    def add(self, ranks: Floats, values: tuple[Floats, ...], codes: Any, weights: Floats) -> None:
        """Add rows of these kinds (uint8) and weights, and sum up some values of theirs, which are finite."""
        from verax.kernels.filling import fill_weighted_bins

        ranks = np.round(ranks, DECIMALS)
        rows = bin_numbers(ranks), ranks, weights, values or (ranks,), codes
        least, most = fill_weighted_bins(*rows, self._first, self._table.cells, self._kinds.cells)
        if least < self._first or most >= self._first + len(self._table.cells):
            self._first, *room = _room(self._first, len(self._table.cells), least, most)
            self._table.grow(*room)
            self._kinds.grow(*room)
            fill_weighted_bins(*rows, self._first, self._table.cells, self._kinds.cells)
        self._whole = self._whole and bool((weights == np.floor(weights)).all())
        self._table.added(len(ranks))
        self._kinds.added(len(ranks))

    def histogram(self, values: Sequence[int | Floats], n_cells: int) -> Histogram:
        """The histogram of all rows that have weight. Values are as those of `RankTable`."""
        self._table.settle()
        self._kinds.settle()
        used = np.flatnonzero(self._table.totals.high[:, 0])
        table, keys, nothing = self._table.cells[used], used + self._first, np.zeros((len(used), 1))
        # Both parts of the sums: of rows, and by kind.
        sums, kinds = (
            [part[used] for part in (table_of.totals.high, table_of.totals.low)]
            for table_of in (self._table, self._kinds)
        )
        weight = kinds[0][:, ::2]
        columns, ends = [[part[:, :3]] for part in sums], []
        for value in values:
            if isinstance(value, int):
                moments = [part[:, 4 * value + 3 : 4 * value + 7] for part in sums]
                ends.append(table[:, 6 * value + 9 : 6 * value + 11])
            else:
                powers = np.stack([value, value * value], axis=1)
                moments = [np.hstack([part[:, i::2] @ powers for i in (0, 1)]) for part in kinds]
                inner = [np.where(weight > 0, value, end) for end in (np.inf, -np.inf)]
                ends.append(np.stack([inner[0].min(axis=1), inner[1].max(axis=1)], axis=1))
            for column, part in zip(columns, moments, strict=True):
                column += [part, nothing]
        ends.append(table[:, :2])
        least, most = (np.stack([end[:, i] for end in ends], axis=1) for i in (0, 1))
        bins = Run(keys, Sum(*(np.hstack(column) for column in columns)), least, most)
        rows, cells = np.nonzero(weight) if n_cells else (used[:0], used[:0])
        pairs = [np.stack([part[rows, 2 * cells], part[rows, 2 * cells + 1]], axis=1) for part in kinds]
        none = np.zeros((len(rows), 0))
        counted = Run(keys[rows] * n_cells + cells, Sum(*pairs), none, none)
        return Histogram.joined_from(len(values), n_cells, bins, counted, whole=self._whole)


class ReplicateTable:
    """Bootstrap replicates of groups of rows, by wider bins of what ranks the rows.

    Parameters
    ----------
    n_sums, n_codes, n_replicates : int
        How many values are summed, of how many kinds rows can be, and how many replicates there are.
    times : int
        How many times neighbouring bins are joined.
    """

    def __init__(self, n_sums: int, n_codes: int, n_replicates: int, times: int) -> None:
        self._n_codes, self._times, self._whole = n_codes, times, True
        # Compiled loops know no tuples without a value.
        self._first, self._table = 0, np.zeros((0, n_codes + max(n_sums, 1), n_replicates))

    def add(
        self,
        ranks: Floats,
        values: tuple[Floats, ...],
        codes: Any,
        weights: Floats | None,
        groups: Ints,
        copies: Floats,
    ) -> None:
        """Add rows of these kinds (uint8) and groups; `copies` has the replicates of each group."""
        from verax.kernels.filling import fill_replicates

        numbers = bin_numbers(np.round(ranks, DECIMALS))
        self._whole = self._whole and (weights is None or bool((weights == np.floor(weights)).all()))
        w = np.zeros(0) if weights is None else weights
        rows = w, values or (ranks,), codes, groups, copies
        least, most = fill_replicates(numbers, self._times, *rows, self._first, self._table)
        if least < self._first or most >= self._first + len(self._table):
            self._reach(least, most)
            fill_replicates(numbers, 0, *rows, self._first, self._table)

    def _reach(self, least: int, most: int) -> None:
        """Make room for these bins."""
        self._first, before, after = _room(self._first, len(self._table), least, most)
        self._table = np.pad(self._table, ((before, after), (0, 0), (0, 0)))

    def histograms(self, values: Sequence[int | Floats], n_cells: int) -> tuple[Histogram, ...]:
        """The histogram of each replicate, with means alone. Values are as those of `RankTable`."""
        return tuple(self._histogram(table, values, n_cells) for table in np.moveaxis(self._table, 2, 0))

    def _histogram(self, table: Floats, values: Sequence[int | Floats], n_cells: int) -> Histogram:
        used = np.flatnonzero(table[:, : self._n_codes].any(axis=1))
        weight, sums = table[used, : self._n_codes], table[used, self._n_codes :]
        columns = [sums[:, value] if isinstance(value, int) else weight @ value for value in values]
        keys = used + self._first
        rows, cells = np.nonzero(weight) if n_cells else (used[:0], used[:0])
        counted = keys[rows] * n_cells + cells, weight[rows, cells]
        return Histogram.of_means(
            self._times, keys, weight.sum(axis=1), columns, counted, n_cells, whole=self._whole
        )


def coded(y: Ints, decided: Ints, n_classes: int, codes: Any) -> Any:
    """The code of each row, by its outcome and the decision; codes are uint8."""
    from verax.kernels.filling import code_rows

    out = np.empty(len(y), np.uint8)
    code_rows(y, decided, n_classes, codes, out)
    return out
