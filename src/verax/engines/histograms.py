"""Sums by key that merge: histograms of losses, whose bins are fixed in advance.

A bin is known by its number, which depends on the value alone. So histograms of parts add up, however the
rows are divided. What needs an order of the rows is then known but for the order inside the bins.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np

from verax._settings import settings
from verax.common.caching import cached_property
from verax.common.packing import UnreadableError
from verax.common.sorting import DECIMALS as DECIMALS
from verax.common.specs import Array, Truth, Valued, Whole
from verax.common.stored import Sizes, mapping, only_weights
from verax.common.summaries import Summary, fields_of, merges
from verax.engines.sums import Sum, Sums
from verax.errors import VeraxError
from verax.inputs.arrays import Floats, Ints
from verax.kernels.compensation import two_sum
from verax.kernels.ledger import compiles

# Bins are as wide as 2**-10 times the value, near zero 2**-20: their numbers are the first bits of the value
# plus 2**-10.
_NEAR, _SHIFT = 2.0**-10, 42
_FIRST = int(np.array(_NEAR).view(np.int64)) >> _SHIFT
# Finite values of at least 2**40 share a bin, and infinite ones have the next but 1,023.
_TOP = (40 + 10) << 10
_INFINITE = _TOP + (1 << 10)
LAYOUT = (_NEAR, _SHIFT, _FIRST, _TOP, _INFINITE)
# So many times may neighbouring bins be joined.
_LEVELS = 10
# Up to this range, compiled loops have a table of all keys; what a row takes, against a probability of a
# pass.
_DENSE, _WORK = 2**20, 8
# Up to this range, keys are looked up in a table; how many runs are kept before they are added up.
_TABLE, _RUNS = 2**24, 4


def bin_numbers(key: Floats) -> Ints:
    """The number of the bin of each value. It grows with the value; zero alone has 0.

    >>> bin_numbers(np.array([-1.0, 0.0, 1e-13, 1e-6, 1.0, 1.0001, 1.001, np.inf])).tolist()
    [-10242, 0, 1, 2, 10242, 10242, 10243, 52225]
    """
    if compiled(len(key)):
        return _numbers(key, 0)
    bits = (np.abs(key) + _NEAR).view(np.int64)
    numbers = np.minimum((bits >> _SHIFT) - _FIRST, _TOP) + 1
    numbers[np.isinf(key)] = _INFINITE + 1
    numbers[key == 0] = 0
    return np.asarray(np.where(key < 0, -numbers, numbers))


def share_numbers(q: Floats, one: int) -> Ints:
    """The number of the bin of each probability; above a half they are counted down from `one`."""
    if compiled(len(q)):
        return _numbers(q, one)
    upper = q > 0.5
    found = bin_numbers(np.where(upper, 1 - q, q))
    return np.asarray(np.where(upper, one - found, found))


def compiled(n_rows: int) -> bool:
    """Whether compiled loops should sum up this number of rows."""
    return compiles(_WORK * n_rows, "histograms")


def _numbers(key: Floats, one: int) -> Ints:
    from verax.kernels.binning import bin_numbers as kernel

    out = np.empty(len(key), np.int64)
    kernel(np.ascontiguousarray(key), _NEAR, _SHIFT, _FIRST, _TOP, _INFINITE, one, out)
    return out


def joined(numbers: Ints, times: int) -> Ints:
    """The numbers of wider bins: neighbours are joined in pairs, `times` times; zero stays alone."""
    size = np.abs(numbers)
    return np.asarray(np.where(numbers == 0, 0, np.sign(numbers) * (((size - 1) >> times) + 1)))


@dataclass(frozen=True)
class Run:
    """Sums of the rows that have each key.

    Attributes
    ----------
    keys : Ints
        (n,) keys, increasing.
    sums : Sum
        (n, C) sums of columns.
    least, most : Floats
        (n, E) the smallest and the largest of some columns.
    """

    keys: Ints
    sums: Sum
    least: Floats
    most: Floats

    @classmethod
    def of(cls, keys: Ints, columns: Sequence[Floats | None], extremes: Sequence[Floats] = ()) -> Run:
        """Of rows with these keys; a column of None counts them."""
        first = int(keys.min(initial=0))
        span = int(keys.max(initial=0)) - first + 1
        if span <= _DENSE and compiled(len(keys)):
            return cls._compiled(keys, first, span, columns, extremes)
        place, different = places(keys)
        n = len(different)
        sums = np.stack([np.bincount(place, column, n).astype(float) for column in columns], axis=1)
        least, most = np.full((len(extremes), n), np.inf), np.full((len(extremes), n), -np.inf)
        for i, values in enumerate(extremes):
            np.minimum.at(least[i], place, values)
            np.maximum.at(most[i], place, values)
        return cls(different, Sum.of(sums), least.T, most.T)

    @classmethod
    def _compiled(
        cls, keys: Ints, first: int, span: int, columns: Sequence[Floats | None], extremes: Sequence[Floats]
    ) -> Run:
        """The same by compiled loops, into tables of all keys."""
        from verax.kernels.binning import add_columns, count_keys, find_extremes

        counts = np.zeros(span, np.int64)
        count_keys(keys, first, counts)
        present = np.flatnonzero(counts)
        # Columns that are the same array are summed once.
        different = {id(column): column for column in columns if column is not None}
        sums = np.zeros((span, len(different)))
        if different:
            add_columns(keys, first, _flat(different.values()), sums)
        least, most = np.full((span, len(extremes)), np.inf), np.full((span, len(extremes)), -np.inf)
        if extremes:
            find_extremes(keys, first, _flat(extremes), least, most)
        place = {name: i for i, name in enumerate(different)}
        found = [counts[present] if c is None else sums[present, place[id(c)]] for c in columns]
        high = np.stack(found, axis=1).astype(float)
        return cls(present + first, Sum.of(high), least[present], most[present])

    @classmethod
    def merged(cls, runs: Sequence[Run]) -> Run:
        """The sums of several runs, whose keys may not increase."""
        if all(bool((np.diff(run.keys) > 0).all()) for run in runs):
            if len(runs) == 1:
                return runs[0]
            if compiled(sum(len(run.keys) for run in runs)):
                return reduce(cls._both, sorted(runs, key=lambda run: len(run.keys)))
        elif len(runs) == 1 and bool((np.diff(runs[0].keys) >= 0).all()):
            return runs[0]._without_repeats()
        found, different = places(np.concatenate([run.keys for run in runs]))
        n, first = len(different), runs[0]
        total = Sum.zeros((n, first.sums.high.shape[1]))
        least, most = (np.full((n, first.least.shape[1]), end) for end in (np.inf, -np.inf))
        ends = np.cumsum([0, *(len(run.keys) for run in runs)])
        for run, start in zip(runs, ends, strict=False):
            own = found[start : start + len(run.keys)]
            for part in _without_repeats(own):
                at = own[part]
                total.high[at], error = two_sum(total.high[at], run.sums.high[part])
                total.low[at] += error + run.sums.low[part]
                least[at] = np.minimum(least[at], run.least[part])
                most[at] = np.maximum(most[at], run.most[part])
        return cls(different, total.settled(), least, most)

    def _without_repeats(self) -> Run:
        """The same where keys are in order and may be there several times, a few of them each."""
        begins = np.flatnonzero(np.concatenate([[True], self.keys[1:] > self.keys[:-1]]))
        high, low = self.sums.high, self.sums.low
        least, most = (
            np.minimum.reduceat(self.least, begins, axis=0),
            np.maximum.reduceat(self.most, begins, axis=0),
        )
        if compiled(len(self.keys)):
            from verax.kernels.counting import add_rows

            added = Sum.zeros((len(begins), high.shape[1]))
            of_key = np.repeat(np.arange(len(begins)), np.diff(begins, append=len(self.keys)))
            add_rows(of_key, np.ascontiguousarray(high.T), added.high, added.low)
            added.low[:] += np.add.reduceat(low, begins, axis=0)
            return Run(self.keys[begins], added.settled(), least, most)
        total = Sum(high[begins], low[begins])
        times = np.diff(begins, append=len(self.keys))
        for i in range(1, int(times.max(initial=1))):
            more = np.flatnonzero(times > i)
            at = begins[more] + i
            total.high[more], error = two_sum(total.high[more], high[at])
            total.low[more] += error + low[at]
        return Run(self.keys[begins], total.settled(), least, most)

    def _both(self, other: Run) -> Run:
        """The sums of two runs by a compiled loop."""
        from verax.kernels.binning import merge_runs

        n, n_sums = len(self.keys) + len(other.keys), self.sums.high.shape[1]
        ours, theirs = self._columns, other._columns
        keys, out = np.empty(n, np.int64), np.empty((n, ours.shape[1]))
        found = merge_runs(self.keys, ours, other.keys, theirs, n_sums, keys, out)
        ends = np.cumsum([n_sums, n_sums, self.least.shape[1]])
        high, low, least, most = (part.copy() for part in np.split(out[:found], ends, axis=1))
        return Run(keys[:found].copy(), Sum(high, low), least, most)

    @property
    def _columns(self) -> Floats:
        """Both parts of the sums and the extremes, side by side."""
        return np.concatenate([self.sums.high, self.sums.low, self.least, self.most], axis=1)

    def to_values(self) -> dict[str, Any]:
        """Everything, to be stored."""
        return {"keys": self.keys, "sums": self.sums.to_values(), "least": self.least, "most": self.most}

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> Run:
        """What `to_values` gave."""
        return cls(**fields_of(_RUN, values, {}))


_RUN = {
    "keys": Array("i8", "n", increasing=True),
    "sums": Sums("n", "columns"),
    "least": Array("f8", "n", "extremes", nan=True),
    "most": Array("f8", "n", "extremes", nan=True),
}


def _flat(columns: Iterable[Floats]) -> tuple[Floats, ...]:
    """Columns as one type for the compiler."""
    return tuple(np.ascontiguousarray(column, dtype=np.float64) for column in columns)


def places(keys: Ints) -> tuple[Ints, Ints]:
    """Where each key is among the different ones, and these."""
    first = int(keys.min(initial=0))
    span = int(keys.max(initial=0)) - first + 1
    if span > max(_TABLE, 4 * len(keys)):
        different, place = np.unique(keys, return_inverse=True)
        return place, different
    present = np.zeros(span, np.bool_)
    present[keys - first] = True
    different = np.flatnonzero(present)
    table = np.zeros(span, np.int64)
    table[different] = np.arange(len(different))
    return table[keys - first], different + first


def _without_repeats(places: Ints) -> list[Any]:
    """Places split into parts in which each is named once; they are in order."""
    if not len(places) or bool((np.diff(places) > 0).all()):
        return [slice(None)]
    order = np.argsort(places, kind="stable")
    ordered = places[order]
    begins = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    nth = np.arange(len(places)) - np.repeat(begins, np.diff(begins, append=len(places)))
    return [order[nth == i] for i in range(int(nth.max()) + 1)]


def _width(runs: tuple[Run, ...]) -> tuple[int, int]:
    """How many sums and extremes the bins have."""
    return runs[0].sums.high.shape[1], runs[0].least.shape[1]


@dataclass(frozen=True)
class Keyed:
    """Sums by key, which are added up when they are looked at, or when there are many runs of them."""

    runs: tuple[Run, ...]

    def merge(self, other: Keyed) -> Keyed:
        """The sums of the rows of both."""
        if _width(self.runs) != _width(other.runs):
            raise VeraxError("Histograms of different values cannot be merged.")
        runs = Keyed((*self.runs, *other.runs))
        return Keyed((runs.total,)) if len(runs.runs) > _RUNS else runs

    @cached_property
    def total(self) -> Run:
        """The sums of all rows."""
        return Run.merged(self.runs)

    def to_values(self) -> dict[str, Any]:
        """Everything, to be stored."""
        return self.total.to_values()

    @classmethod
    def from_values(cls, values: Any, _: Sizes | None = None) -> Keyed:
        """What `to_values` gave."""
        return cls((Run.from_values(mapping(values)),))


class Histogram(Summary):
    """What is known of rows by the bins of a value: of a loss, or of a doubt.

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
        """Of rows, by the bins of what ranks them."""
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
            own = v
            if not np.isfinite(v.sum()):
                infinite = np.isinf(v)
                own = np.where(infinite, 0.0, v)
            wv = own if w is None else w * own
            second = wv * own
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
        """Of the sums of rows, with as few bins joined as fit into memory."""
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
        """Of the weights and the sums of values by bin, and the keys and weights of cells: nothing else."""
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
        """With nothing but weights and means: that is what replicates are for."""
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
        bins, cells = self.bins.total, self.cells.total
        fewer = Run(joined(bins.keys, times), bins.sums, bins.least, bins.most)
        number, cell = np.divmod(cells.keys, max(self.n_cells, 1))
        fewer_cells = Run(joined(number, times) * self.n_cells + cell, cells.sums, cells.least, cells.most)
        return Histogram(
            self.level + times,
            self.n_values,
            self.n_cells,
            self.whole,
            Keyed((Run.merged([fewer]),)),
            Keyed((Run.merged([fewer_cells]),)),
        )

    def _fitting(self) -> Histogram:
        """With as few bins joined as fit into memory: that depends on all rows, not on how they are
        divided.
        """
        found, most = self, 2 * settings.bins_up_to
        while found.level < _LEVELS and sum(len(run.keys) for run in found.cells.runs) > most:
            if len(found.cells.total.keys) <= most:
                return Histogram(
                    found.level,
                    found.n_values,
                    found.n_cells,
                    found.whole,
                    found.bins,
                    Keyed((found.cells.total,)),
                )
            found = found.coarser(1)
        return found

    def at_most(self, keys: int) -> Histogram:
        """With neighbouring bins joined until there are no more keys than that, if possible."""
        found = self
        while found.level < _LEVELS and max(len(found.bins.total.keys), len(found.cells.total.keys)) > keys:
            found = found.coarser(1)
        return found
