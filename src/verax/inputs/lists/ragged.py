"""Lists of different lengths stored one after the other: their order, mass and validity.

A list gives some of the m classes a confidence each. What it leaves unaccounted for is divided
evenly among the unlisted classes; the list is valid if none of them gets more than a listed one.
Rounding does not matter: a list that sums to 1 leaves nothing, and a list taken from a distribution
is valid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from verax.common.caching import cached_property
from verax.common.checks import as_float
from verax.inputs.arrays import Bools, Floats, Ints
from verax.kernels.ledger import compiles
from verax.kernels.shared import GRID, SMALLEST_MASS
from verax.kernels.threads import n_cores

# Differences in probability up to this count as rounding, in the test of validity and in that for a
# uniform distribution. Lists taken from rows that do not sum to exactly 1 have their slack on top.
MASS_TOLERANCE = 1e-12
# The code of the decision of an empty list, which is that of no class and of no outcome.
NOTHING = -(2**62)
# The number of lists that are ordered and checked at a time, while they are in a cache.
_AT_ONCE = 2048


@dataclass(frozen=True)
class ListMasses:
    """The mass of each list, and its largest valid sublist.

    Attributes
    ----------
    total : ndarray
        The sum of the confidences.
    unaccounted : ndarray
        1 minus that sum; 0 where the rest is rounding.
    kept : ndarray
        The length of the largest valid sublist: the whole list where it is valid.
    unaccounted_kept : ndarray
        The probability that this sublist leaves unaccounted for.
    tolerance : float
        Differences in probability up to this were treated as rounding.
    """

    total: Floats
    unaccounted: Floats
    kept: Ints
    unaccounted_kept: Floats
    tolerance: float

    def rows(self, start: int, stop: int) -> ListMasses:
        """The survey of consecutive lists."""
        return self.taken(slice(start, stop))

    def taken(self, part: Ints | slice) -> ListMasses:
        """The survey of some lists."""
        return ListMasses(
            self.total[part],
            self.unaccounted[part],
            self.kept[part],
            self.unaccounted_kept[part],
            self.tolerance,
        )


class _Scratch:
    """The buffers with which a thread orders lists, a few at a time."""

    def __init__(self, lists: Ragged, module: Any, length: int | None) -> None:
        self._lists, self._module, self._length = lists, module, length
        self._keys = np.empty((_AT_ONCE, length or 0))
        self._slots = module.no_slots()
        self._twice, self._which = np.zeros(_AT_ONCE, np.bool_), np.zeros(_AT_ONCE, np.int64)

    def order(self, offsets: Ints, codes: Ints, values: Floats) -> int:
        """Write the lists that begin at `own` with the most confident class first; how many entries moved."""
        given = self._lists.classes, self._lists.confidences
        if self._length is None:
            self._module.order(*given, offsets, codes, values)
            Ragged(*given, offsets).order_longer(self._module.MOST_PACKED, codes, values)
            return 0
        n, start = offsets.size - 1, int(offsets[0])
        keys = self._keys[:n]
        rising = int(self._module.pack(given[1], start, keys))
        if rising:
            keys.sort(axis=1)
            self._module.unpack(keys, *given, start, codes, values)
        else:
            part = slice(start, start + keys.size)
            codes[part], values[part] = given[0][part], given[1][part]
        return rising

    def repeats(self, offsets: Ints, codes: Ints, values: Floats) -> int:
        """The number of these lists that name a class twice."""
        self._slots[:] = -1
        n = offsets.size - 1
        suspected = self._module.repeated(
            frozen(codes), offsets, self._twice[:n], self._which[:n], self._slots
        )
        if not suspected:
            return 0
        # Long lists may have none after all.
        self._twice[:n] = False
        return int(np.count_nonzero(Ragged(codes, values, offsets).rows(0, n).repeated()[0]))


def _faulty(codes: Ints, values: Floats, n_codes: int, tolerance: float) -> bool:
    """Whether an entry is not a probability, or not of a class. Missing values compare as false."""
    if not codes.size:
        return False
    known = codes.min() >= 0 and int(codes.max()) < n_codes
    return not (known and bool(values.min() >= 0.0) and bool(values.max() <= 1.0 + tolerance))


@dataclass(frozen=True)
class Ragged:
    """Class codes and confidences of all lists, and where each list begins.

    The arrays are views that cannot be written to. Where they come from a caller, they are views of
    private copies, so that they cannot change after they have been checked.
    """

    classes: Ints
    confidences: Floats
    offsets: Ints

    def __post_init__(self) -> None:
        for name in ("classes", "confidences", "offsets"):
            object.__setattr__(self, name, frozen(getattr(self, name)))

    def ordered(self) -> Ragged:
        """The lists with the most confident class first; ties keep their order."""
        classes, confidences, offsets = self.classes, self.confidences, self.offsets
        if not self.rising():
            return self
        out = np.empty_like(classes), np.empty_like(confidences)
        module = self.compiled
        if module is not None:
            self.in_threads(lambda a, b: module.order(classes, confidences, offsets[a : b + 1], *out))
        self.order_longer(0 if module is None else module.MOST_PACKED, *out)
        return Ragged(*out, offsets)

    def order_longer(self, length: int, codes: Ints, values: Floats) -> None:
        """Write the lists longer than this, with the most confident class first."""
        for index in self.rectangles(self.lengths > length):
            rank = np.argsort(-self.confidences[index], axis=1, kind="stable")
            moved = np.take_along_axis(index, rank, axis=1)
            codes[index], values[index] = self.classes[moved], self.confidences[moved]

    def rising(self) -> int:
        """Number of entries that follow one with less confidence."""
        confidences, starts = self.confidences, self.offsets[1:-1]
        falling = confidences[1:] <= confidences[:-1]
        falling[starts[(starts > 0) & (starts < confidences.size)] - 1] = True
        return int(falling.size - np.count_nonzero(falling))

    def copied(self) -> Ragged:
        """The same lists with arrays of their own."""
        return Ragged(self.classes.copy(), self.confidences.copy(), self.offsets.copy())

    def taken_in(
        self, n_classes: int, n_codes: int, tolerance: float, slack: float
    ) -> tuple[Ragged, ListMasses, int] | None:
        """Copies of the lists in order, their survey, and the number of entries that were moved.

        None without compiled code, or if a list has a fault, which the checks then name: a code without a
        class, a confidence that is not a probability, a repeated class, or a sum that is off by more than the
        tolerance.
        """
        module = self.compiled
        if module is None:
            return None
        n, m, off = self.n_rows, as_float(n_classes), MASS_TOLERANCE + slack
        codes, values = np.empty_like(self.classes), np.empty_like(self.confidences)
        survey = ListMasses(np.empty(n), np.empty(n), np.empty(n, np.int64), np.empty(n), off)
        faulty: list[Any] = []
        rising: list[int] = []
        length = self._length_of_all(module.MOST_PACKED)
        full = int(self.lengths.max(initial=0)) >= m

        def work(a: int, b: int) -> None:
            scratch = _Scratch(self, module, length)
            for first in range(a, b, _AT_ONCE):
                rows = slice(first, min(first + _AT_ONCE, b))
                offsets = self.offsets[first : rows.stop + 1]
                rising.append(scratch.order(offsets, codes, values))
                part = survey.taken(rows)
                out = (part.total, part.unaccounted, part.kept, part.unaccounted_kept)
                module.survey(values, offsets, m, off, *out)
                faulty.append(
                    scratch.repeats(offsets, codes, values)
                    or _faulty(
                        codes[offsets[0] : offsets[-1]], values[offsets[0] : offsets[-1]], n_codes, tolerance
                    )
                    or bool(part.total.max() > 1 + tolerance)
                    # The checks find lists of all classes that sum to less than 1.
                    or (full and bool(part.total.min() < 1 - tolerance))
                )

        self.in_threads(work)
        if any(faulty):
            return None
        moved = sum(rising) if length is not None else self.rising()
        return Ragged(codes, values, self.offsets), survey, moved

    def _length_of_all(self, most: int) -> int | None:
        """The common length of all lists, if it is at most `most`: these are sorted together."""
        if not 0 < self.confidences.size <= most * self.n_rows:
            return None
        first = int(self.lengths[0])
        return first if 0 < first <= most and bool((self.lengths == first).all()) else None

    @property
    def n_rows(self) -> int:
        return int(self.offsets.size) - 1

    @cached_property
    def lengths(self) -> Ints:
        return np.diff(self.offsets)

    @cached_property
    def row_of(self) -> Ints:
        """The row of each entry."""
        return np.repeat(np.arange(self.n_rows), self.lengths)

    @property
    def firsts(self) -> Floats:
        """The largest confidence of each list; 0 where it is empty."""
        firsts, some = np.zeros(self.n_rows), self.lengths > 0
        firsts[some] = self.confidences[self.offsets[:-1][some]]
        return firsts

    def decisions(self, ranks: Ints | None = None) -> Ints:
        """The code of the class that each list decides for: of its most likely ones the one of lowest rank.

        Ranks are the codes themselves unless given by code. An empty list decides for NOTHING.
        """
        starts, some = self.offsets[:-1], self.lengths > 0
        decided = np.full(self.n_rows, NOTHING)
        decided[some] = self.classes[starts[some]]
        tied = self.lengths > 1
        tied[tied] = self.confidences[starts[tied] + 1] == self.confidences[starts[tied]]
        if tied.any():
            rows = np.flatnonzero(tied)
            of = self.take(rows)
            first = of.confidences == of.firsts[of.row_of]
            rank = of.classes if ranks is None else ranks[of.classes]
            order = np.lexsort((rank, ~first, of.row_of))
            decided[rows] = of.classes[order[of.offsets[:-1]]]
        return decided

    @property
    def compiled(self) -> Any:
        """The compiled kernels; None if compiling would take longer than it saves."""
        if not compiles(self.confidences.size, Ragged):
            return None
        from verax.kernels import lists as list_kernels

        return list_kernels

    def in_threads(self, work: Callable[[int, int], None]) -> None:
        """Call `work(start, stop)` for parts of the rows, in threads."""
        n = self.n_rows
        edges = np.linspace(0, n, min(n, 4 * n_cores()) + 1, dtype=np.int64).tolist()
        with ThreadPoolExecutor(n_cores()) as pool:
            list(pool.map(work, edges[:-1], edges[1:]))

    def rectangles(self, among: Bools | None = None) -> Iterator[Ints]:
        """For each length, the (rows, length) positions of the entries of all lists of that length."""
        chosen = self.lengths > 0 if among is None else among & (self.lengths > 0)
        for length in np.unique(self.lengths[chosen]).tolist():
            rows = np.flatnonzero(chosen & (self.lengths == length))
            yield self.offsets[rows][:, None] + np.arange(length)

    def rows(self, start: int, stop: int) -> Ragged:
        """Consecutive lists."""
        first, last = int(self.offsets[start]), int(self.offsets[stop])
        offsets = self.offsets[start : stop + 1] - first
        return Ragged(self.classes[first:last], self.confidences[first:last], offsets)

    def take(self, rows: Ints) -> Ragged:
        """The lists with these numbers."""
        lengths = self.lengths[rows]
        entries = np.repeat(self.offsets[rows], lengths) + _counting(lengths)
        return Ragged(self.classes[entries], self.confidences[entries], offsets_of(lengths))

    def heads(self, lengths: Ints) -> Ragged:
        """The first `lengths` entries of every list."""
        if (lengths == self.lengths).all():
            return self
        entries = np.repeat(self.offsets[:-1], lengths) + _counting(lengths)
        return Ragged(self.classes[entries], self.confidences[entries], offsets_of(lengths))

    def sums(self, values: Floats) -> Floats:
        """The sum of the values of each list's entries."""
        return np.bincount(self.row_of, values, self.n_rows).astype(np.float64, copy=False)

    def repeated(self) -> tuple[Bools, Ints]:
        """A mask of lists that name a class twice, and that class (code 0 elsewhere)."""
        twice, which = np.zeros(self.n_rows, np.bool_), np.zeros(self.n_rows, np.int64)
        module, among = self.compiled, self.lengths > 1
        if module is not None:
            self.in_threads(
                lambda a, b: module.repeated(
                    self.classes, self.offsets[a : b + 1], twice[a:b], which[a:b], module.no_slots()
                )
            )
            among = twice & (self.lengths > module.MOST_PACKED)
            twice[among] = False
        for index in self.rectangles(among):
            codes = np.sort(self.classes[index], axis=1)
            same = codes[:, 1:] == codes[:, :-1]
            hits = np.flatnonzero(same.any(axis=1))
            rows = self.row_of[index[hits, 0]]
            twice[rows] = True
            which[rows] = codes[hits, same[hits].argmax(axis=1)]
        return twice, which

    def survey(self, n_classes: int, slack: float = 0.0) -> ListMasses:
        """The mass of every list over `n_classes` classes, and its largest valid sublist.

        `slack` is the largest difference from 1 of the sums of the distributions behind the lists.
        """
        n, m, tolerance = self.n_rows, as_float(n_classes), MASS_TOLERANCE + slack
        module = self.compiled
        if module is not None:
            total, left, left_kept = np.empty(n), np.empty(n), np.empty(n)
            kept = np.empty(n, np.int64)

            def work(a: int, b: int) -> None:
                out = (total[a:b], left[a:b], kept[a:b], left_kept[a:b])
                module.survey(self.confidences, self.offsets[a : b + 1], m, tolerance, *out)

            self.in_threads(work)
            return ListMasses(total, left, kept, left_kept, tolerance)
        total, left = self._mass(m)
        kept = self._kept(left, m, tolerance)
        left_kept = left if (kept == self.lengths).all() else self.heads(kept)._mass(m)[1]
        return ListMasses(total, left, kept, left_kept, tolerance)

    def _mass(self, m: float) -> tuple[Floats, Floats]:
        """The sums of the lists and the rest to 1. High parts add up exactly, so no digit is lost."""
        high = np.rint(self.confidences * GRID) / GRID
        low = self.sums(self.confidences - high)
        high = self.sums(high)
        left = (1 - high) - low
        return high + low, np.where((left < SMALLEST_MASS) | (self.lengths >= m), 0.0, left)

    def _kept(self, left: Floats, m: float, tolerance: float) -> Ints:
        kept = self.lengths.copy()
        last = np.zeros(self.n_rows)
        some = self.lengths > 0
        last[some] = self.confidences[self.offsets[1:][some] - 1]
        broken = (m - self.lengths) * last < left - tolerance
        for index in self.rectangles(broken):
            t = self.confidences[index]
            j = np.arange(1, t.shape[1] + 1)
            fits = (m - j) * t + np.cumsum(t, axis=1) >= 1 - tolerance
            kept[self.row_of[index[:, 0]]] = np.logical_and.accumulate(fits, axis=1).sum(axis=1)
        return kept


def frozen(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A read-only view, so that compiled code sees a single type of array."""
    view = array.view()
    view.flags.writeable = False
    return view


def offsets_of(lengths: Ints) -> Ints:
    """The offsets of lists with these lengths: where each begins, and where the last ends."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])


def _counting(lengths: Ints) -> Ints:
    """0, 1, ..., n-1 for each length n, one after the other."""
    offsets = offsets_of(lengths)
    return np.arange(offsets[-1]) - np.repeat(offsets[:-1], lengths)
