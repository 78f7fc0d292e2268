"""Sums by key that merge: exact until there are too many keys, then by bins.

A `Run` has sums and extremes by increasing key. `Keyed` are runs that are added up at the first use.
`KeyedSums` are those of the values of several kinds of rows, such as events. The key of a value is its bits;
where there would be too many keys, rows of neighbouring values share one, which is the number of their bin
(`engines.keys`). What needs an order of the rows is then known but for the order inside the bins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np

from verax.common.caching import cached_property
from verax.common.sorting import distinct_values, n_distinct
from verax.common.specs import Array, Spec
from verax.common.stored import Size, Sizes, mapping, sized, truth, whole
from verax.common.summaries import fields_of
from verax.engines.keys import EXACT, Layout, compiled, places
from verax.engines.sums import Sum, Sums
from verax.errors import VeraxError
from verax.inputs.arrays import Floats, Ints
from verax.kernels.shared import two_sum

# Up to this range, or this number of times the rows, compiled loops have a table of all keys.
_DENSE, _APART = 2**20, 4
# How many runs are kept before they are added up.
_RUNS = 4


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
        """Sum rows with these keys; a column of None counts them."""
        first = int(keys.min(initial=0))
        span = int(keys.max(initial=0)) - first + 1
        if span <= max(_DENSE, _APART * len(keys)) and compiled(len(keys)):
            return cls._compiled(keys, first, span, columns, extremes)
        different, place = distinct_values(keys)
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
        """Sum rows by loops, into tables of all keys."""
        if not extremes and all(column is None for column in columns):
            counts = np.bincount(keys - first if first else keys, minlength=span)
            present = np.flatnonzero(counts)
            high = np.repeat(counts[present].astype(float)[:, None], len(columns), axis=1)
            return cls(present + first, Sum.once(high), *np.empty((2, len(present), 0)))
        from verax.kernels.binning import sum_by_key

        # Columns that are the same array are summed once. Compiled loops know no tuples without a value.
        different = {id(column): column for column in columns if column is not None}
        added = _flat(different.values() or [keys])
        ends = _flat(extremes or added[:1])
        counts, sums = np.zeros(span, np.int64), np.empty((span, len(added)))
        least, most = np.empty((2, span, len(ends)))
        present = np.empty(min(span, len(keys)), np.int64)
        n = sum_by_key(keys, first, added, ends, counts, sums, least, most, present)
        place = {name: i for i, name in enumerate(different)}
        high = np.empty((n, len(columns)))
        for i, column in enumerate(columns):
            high[:, i] = counts[:n] if column is None else sums[:n, place[id(column)]]
        least, most = (table[:n, : len(extremes)].copy() for table in (least, most))
        return cls(present[:n].copy(), Sum.once(high), least, most)

    @classmethod
    def of_values(cls, values: Floats, layout: Layout, level: int, columns: Sequence[Floats | None]) -> Run:
        """Sum rows by the keys of these values, with the extremes of the values."""
        if level != EXACT:
            return cls.of(layout(values, level), columns, [values])
        keys, place = places(values, layout, EXACT)
        return replace(cls.of(place, columns, [values]), keys=keys)

    @classmethod
    def merged(cls, runs: Sequence[Run]) -> Run:
        """The sums of several runs, whose keys may repeat and need not increase."""
        if len(runs) == 1 and runs[0]._increases:
            return runs[0]
        if compiled(sum(len(run.keys) for run in runs)):
            return reduce(cls._both, sorted((run._in_order() for run in runs), key=len), runs[0].at(slice(0)))
        increasing = [run if run._increases else run._in_order()._added_up() for run in runs]
        return increasing[0] if len(increasing) == 1 else cls._side_by_side(increasing)

    @classmethod
    def one_after_the_other(cls, runs: Sequence[Run]) -> Run:
        """The lines of several runs, one run after the other."""
        keys, high, low, least, most = map(np.concatenate, zip(*(run._arrays for run in runs), strict=True))
        return cls(keys, Sum(high, low), least, most)

    @classmethod
    def _side_by_side(cls, runs: Sequence[Run]) -> Run:
        """The sums of several runs with increasing keys, by array calls."""
        keys, place = distinct_values(np.concatenate([run.keys for run in runs]))
        n, (sums, ends) = len(keys), Keyed((runs[0],)).width
        total = Sum.zeros((n, sums))
        least, most = np.full((n, ends), np.inf), np.full((n, ends), -np.inf)
        start = 0
        for run in runs:
            at = place[start : start + len(run)]
            total.high[at], error = two_sum(total.high[at], run.sums.high)
            total.low[at] += error + run.sums.low
            if ends:
                least[at], most[at] = np.minimum(least[at], run.least), np.maximum(most[at], run.most)
            start += len(run)
        return cls(keys, total.settled(), least, most)

    def __len__(self) -> int:
        return len(self.keys)

    def at(self, places: Any) -> Run:
        """The lines at some places."""
        sums = Sum(self.sums.high[places], self.sums.low[places])
        return Run(self.keys[places], sums, self.least[places], self.most[places])

    def rekeyed(self, keys: Ints) -> Run:
        """The sums under other keys, some of which may be the same."""
        return Run.merged([replace(self, keys=keys)])

    @property
    def _increases(self) -> bool:
        return bool((np.diff(self.keys) > 0).all())

    def _in_order(self) -> Run:
        if bool((np.diff(self.keys) >= 0).all()):
            return self
        return self.at(np.argsort(self.keys, kind="stable"))

    def _added_up(self) -> Run:
        """With one line for each key; keys do not decrease. Neighbours are added in pairs, in a copy."""
        run = Run.one_after_the_other([self])
        while len(begins := np.flatnonzero(np.diff(run.keys, prepend=run.keys[:1] - 1))) < len(run):
            nth = np.arange(len(run)) - np.repeat(begins, np.diff(begins, append=len(run)))
            second = np.flatnonzero(nth % 2)
            first = second - 1
            high, error = two_sum(run.sums.high[first], run.sums.high[second])
            low = error + (run.sums.low[first] + run.sums.low[second])
            run.sums.high[first] = high + low
            run.sums.low[first] = low - (run.sums.high[first] - high)
            run.least[first] = np.minimum(run.least[first], run.least[second])
            run.most[first] = np.maximum(run.most[first], run.most[second])
            run = run.at(nth % 2 == 0)
        return run

    def _both(self, other: Run) -> Run:
        """The sums of two runs by a compiled loop."""
        from verax.kernels.binning import merge_runs

        n, ours, theirs = len(self) + len(other), self._arrays, other._arrays
        out = tuple(np.empty((n, *array.shape[1:]), array.dtype) for array in ours)
        n_keys = merge_runs(*ours, *theirs, *out)
        keys, high, low, least, most = (
            array[:n_keys] if 2 * n_keys > n else array[:n_keys].copy() for array in out
        )
        return Run(keys, Sum(high, low), least, most)

    @property
    def _arrays(self) -> tuple[Any, ...]:
        """All arrays, as the compiler takes them."""
        arrays = self.keys, self.sums.high, self.sums.low, self.least, self.most
        return tuple(map(np.ascontiguousarray, arrays))

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


def _flat(columns: Iterable[Floats | Ints]) -> tuple[Floats, ...]:
    """Columns as one type for the compiler."""
    return tuple(np.ascontiguousarray(column, dtype=np.float64) for column in columns)


@dataclass(frozen=True)
class Keyed:
    """Sums by key in several runs, which are added up at the first use, or when there are many."""

    runs: tuple[Run, ...]

    def merge(self, other: Keyed) -> Keyed:
        """The sums of the rows of both."""
        if self.width != other.width:
            raise VeraxError("Histograms of different values cannot be merged.")
        runs = Keyed((*self.runs, *other.runs))
        return runs.added_up() if len(runs.runs) > _RUNS else runs

    @property
    def width(self) -> tuple[int, int]:
        """The numbers of sums and extremes of a key."""
        return self.runs[0].sums.high.shape[1], self.runs[0].least.shape[1]

    @cached_property
    def total(self) -> Run:
        """The sums of all rows."""
        return Run.merged(self.runs)

    def added_up(self) -> Keyed:
        """The sums as one run."""
        return self if len(self.runs) == 1 else Keyed((self.total,))

    def __len__(self) -> int:
        """The number of keys, some of them several times before runs are added up."""
        return sum(map(len, self.runs))

    @property
    def n_keys(self) -> int:
        """The number of different keys, found without adding up their sums."""
        if len(self.runs) == 1:
            return len(self)
        return n_distinct(np.concatenate([run.keys for run in self.runs]))

    def rekeyed(self, keys: Callable[[Run], Ints]) -> Keyed:
        """With other keys in place of those of each run."""
        return Keyed((Run.merged([run.rekeyed(keys(run)) for run in self.runs]),))

    def to_values(self) -> dict[str, Any]:
        """Everything, to be stored."""
        return self.total.to_values()

    @classmethod
    def from_values(cls, values: Any, _: Sizes | None = None) -> Keyed:
        """What `to_values` gave."""
        return cls((Run.from_values(mapping(values)),))


@dataclass(frozen=True)
class KeyedSums:
    """Sums by the values of several kinds of rows: exact until there are too many keys, then by bins.

    Attributes
    ----------
    layout : Layout
        What gives the keys of values.
    level : int
        `EXACT`, or how often neighbouring bins are joined.
    tables : mapping of int to Keyed
        The sums of each kind that occurs; the first extremes are those of the values.
    """

    layout: Layout
    level: int
    tables: Mapping[int, Keyed]

    def merge(self, other: KeyedSums) -> KeyedSums:
        """The sums of the rows of both."""
        level = max(self.level, other.level)
        both = dict(self.at(level).tables)
        for kind, theirs in other.at(level).tables.items():
            both[kind] = both[kind].merge(theirs) if kind in both else theirs
        return KeyedSums(self.layout, level, both)

    def at(self, level: int) -> KeyedSums:
        """The sums at this level, which is no finer."""
        if level == self.level:
            return self

        def keys(run: Run) -> Ints:
            return self.layout(run.most[:, 0], level)

        tables = {kind: table.rekeyed(keys) for kind, table in self.tables.items()}
        return KeyedSums(self.layout, level, tables)

    def fitting(self, full: Callable[[int, Mapping[int, int]], bool], levels: Iterable[int]) -> KeyedSums:
        """The sums at the finest of these levels without too many keys, whatever the order of merging.

        `full` looks at the level, and the number of keys of each kind.
        """
        if not full(self.level, {kind: len(table) for kind, table in self.tables.items()}):
            return self
        if not full(self.level, {kind: table.n_keys for kind, table in self.tables.items()}):
            return KeyedSums(
                self.layout, self.level, {k: table.added_up() for k, table in self.tables.items()}
            )
        coarser = self
        for level in levels:
            if level > self.level:
                coarser = coarser.at(level)
                if not full(level, {kind: len(table) for kind, table in coarser.tables.items()}):
                    break
        return coarser


class ExactOrBins(Spec):
    """A field of sums by value: stored as whether they are exact, and the sums under a name.

    With `several` there are tables of several kinds of rows.
    """

    flat = True

    def __init__(self, layout: Layout, name: str, level: Size = 0, *, several: bool = False) -> None:
        super().__init__("merge")
        self.parts: tuple[str, ...] = "exact", name
        self._layout, self._level, self._several = layout, level, several

    def merged(self, name: str) -> str:
        return f"self.{name}.merge(other.{name})"

    def pack(self, value: KeyedSums) -> dict[str, Any]:
        exact, name = self.parts
        tables = {kind: table.to_values() for kind, table in value.tables.items()}
        return {exact: value.level == EXACT, name: tables if self._several else tables[0]}

    def read(self, stored: Any, sizes: Sizes) -> KeyedSums:
        exact, stored_sums = (stored[name] for name in self.parts)
        tables = mapping(stored_sums) if self._several else {0: stored_sums}
        level = EXACT if truth(exact) else sized(self._level, sizes)
        read = {whole(kind): Keyed.from_values(table) for kind, table in tables.items()}
        return KeyedSums(self._layout, level, read)
