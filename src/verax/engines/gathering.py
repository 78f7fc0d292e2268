"""Sums of the rows of each group, which a kernel adds one row at a time.

Groups of rows are anywhere in a table that no cache holds, so time is spent waiting for memory. The sums of a
group are as few as possible and begin where a line of the cache does. Confusion counts of groups would be a
second such table, which few results need: rows note their cells, to be counted at the first use.
"""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from verax._settings import settings
from verax.engines.formulas import made_of_losses
from verax.engines.stats import Formula
from verax.engines.sums import LateSum, Sum
from verax.engines.tracing import Trace, record
from verax.inputs.arrays import Floats, Ints
from verax.kernels.shared import FULL
from verax.kernels.texts import Lines, compile_text

# Bytes, and floats, of a cache line.
_LINE = 64
LINE: int = _LINE // 8
# The cells that occur are listed where a byte for every cell would take more than this for each row.
_BYTES_PER_ROW = 32
# A large page of memory has this number of bytes.
_PAGE = 2**21

Bytes = np.ndarray[Any, np.dtype[np.uint8]]
Keys = np.ndarray[Any, np.dtype[np.uint32]]


def independent_of(trace: Trace) -> tuple[str, ...]:
    """The names of the losses of which all others are sums and multiples."""
    made = made_of_losses(trace)
    return tuple(dict.fromkeys(name for name in trace.losses if name not in made))


@dataclass(frozen=True)
class Independent:
    """Losses of which those of all rules are sums and multiples.

    Attributes
    ----------
    trace : Trace
        The formulas of the rules.
    losses : tuple of str
        The names of the losses that are summed.
    """

    trace: Trace
    losses: tuple[str, ...]

    @classmethod
    def of(cls, rules: Sequence[Formula], n_classes: int) -> Independent | None:
        """The independent losses of some rules; None where a formula has no trace."""
        trace = record(rules, n_classes)
        return None if trace is None else cls(trace, independent_of(trace))

    def settling(self) -> str:
        """The text of a kernel (totals, tallies, high, low) that rounds the sums of groups.

        `high` and `low` get a column for the number of rows of each group, one for those whose decision is
        right, and one for each rule, made of the sums of these losses.
        """
        n, body = len(self.losses), Lines(8)
        pairs: dict[str, tuple[str, str]] = {}
        for r, name in enumerate(self.losses):
            high, low = (body.let(f"totals[group, {at}]") for at in (r, n + r))
            total = body.let(f"{high} + {low}")
            pairs[f"mean_{name}"] = total, body.let(f"{low} - ({total} - {high})")
        for step in made_of_losses(self.trace).values():
            known = [pairs[operand] for operand in step.operands if operand in pairs]
            if step.operation == "add":
                pairs[step.name] = _write_sum(body, *known)
                continue
            (factor,) = (operand for operand in step.operands if operand not in pairs)
            times = repr(float(self.trace.constants[int(factor[1:])]))
            high, low = known[0]
            pairs[step.name] = body.let(f"{high} * {times}"), body.let(f"{low} * {times}")
        for at, name in enumerate(self.trace.losses, start=2):
            for array, value in zip(("high", "low"), pairs[f"mean_{name}"], strict=True):
                body.add(f"{array}[group, {at}] = {value}")
        return "\n".join([_SETTLING, *body.text])


_SETTLING = """\
def kernel(totals, tallies, high, low):
    for group in range(len(totals)):
        high[group, 0] = float(tallies[2 * group] + tallies[2 * group + 1])
        high[group, 1] = float(tallies[2 * group + 1])
        low[group, 0] = 0.0
        low[group, 1] = 0.0"""


def _write_sum(lines: Lines, a: tuple[str, str], b: tuple[str, str]) -> tuple[str, str]:
    """The sum of two pairs of doubles, as `engines.sums.Sum` adds them."""
    high = lines.let(f"{a[0]} + {b[0]}")
    virtual = lines.let(f"{high} - {a[0]}")
    error = lines.let(f"({a[0]} - ({high} - {virtual})) + ({b[0]} - {virtual})")
    low = lines.let(f"{error} + ({a[1]} + {b[1]})")
    total = lines.let(f"{high} + {low}")
    return total, lines.let(f"{low} - ({total} - {high})")


class ByteCounts:
    """Numbers of rows by group and cell, a byte each; how often a byte was full is in a list.

    Attributes
    ----------
    arrays : tuple of ndarray
        What a kernel counts into: the bytes, and how many of them were full and which, each time.
    """

    def __init__(self, n_groups: int, n_cells: int, n_rows: int) -> None:
        # All rows together do not fill more.
        full = np.zeros(1 + n_rows // FULL, np.int64)
        self.arrays: tuple[Bytes, Ints] = np.zeros(n_groups * n_cells, np.uint8), full
        self._n_cells = n_cells

    @property
    def _table(self) -> Bytes:
        """(G, C) the bytes."""
        return self.arrays[0].reshape(-1, self._n_cells)

    def among(self, places: Ints, n_groups: int) -> ByteCounts:
        """The same among more groups, each at its place."""
        counts = ByteCounts(n_groups, self._n_cells, 0)
        counts._table[places] = self._table
        group, cell = np.divmod(self.full, self._n_cells)
        full = np.zeros_like(self.arrays[1])
        full[: 1 + len(group)] = [len(group), *(places[group] * self._n_cells + cell)]
        counts.arrays = counts.arrays[0], full
        return counts

    def merge(self, other: ByteCounts, places: Ints | None = None) -> None:
        """Add the counts of other rows, whose groups have these places."""
        from verax.kernels.counting import merge_counts

        more, (counts, full) = other._table, self.arrays
        places = np.arange(len(more)) if places is None else places
        # Room for all rows of both.
        full = np.concatenate([full, np.zeros_like(other.arrays[1])])
        group, cell = np.divmod(other.full, self._n_cells)
        full[1 + full[0] : 1 + full[0] + len(group)] = places[group] * self._n_cells + cell
        full[0] += len(group)
        merge_counts(self._table, full, places, more)
        self.arrays = counts, full

    @property
    def full(self) -> Ints:
        """The bytes that were full, by number, once for each time."""
        full = self.arrays[1]
        return full[1 : 1 + full[0]]


class GroupCells:
    """The number of rows in each cell of each group, counted at the first use.

    Up to 2^23 rows note their cells, four bytes each. Those of more rows are counted after every chunk.
    """

    def __init__(self, n_groups: int, n_cells: int, n_rows: int, *, late: bool | None = None) -> None:
        self.n_cells: int = n_cells
        self._n_groups, self._n_rows = n_groups, n_rows
        self.late: bool = n_rows <= settings.cells_noted_up_to if late is None else late
        self._keys: Keys = np.empty(n_rows if self.late else 0, np.uint32)
        self._counts = None if self.late else ByteCounts(n_groups, n_cells, n_rows)

    def room(self, start: int, stop: int) -> Keys:
        """Where a kernel writes the keys of rows `start` to `stop`."""
        if not self.late and len(self._keys) < stop - start:
            self._keys = np.empty(stop - start, np.uint32)
        return self._keys[start:stop] if self.late else self._keys[: stop - start]

    def written(self, keys: Keys) -> None:
        """Count keys that a kernel has written, unless they are noted."""
        from verax.kernels.counting import count_keys

        if self._counts is not None:
            count_keys(keys, *self._counts.arrays)

    def merge(self, other: GroupCells) -> None:
        """Add the counts of other rows; threads share noted cells."""
        if self._counts is not None and other._counts is not None:
            self._counts.merge(other._counts)

    def counts(self) -> np.ndarray[Any, np.dtype[np.uint32]]:
        """The numbers of rows, cell by cell, group by group."""
        counts = self._counted()
        totals = counts.arrays[0].astype(np.uint32)
        np.add.at(totals, counts.full, np.uint32(FULL))
        return totals

    def _counted(self) -> ByteCounts:
        """The numbers of rows, a byte each; keys that were noted are counted, and no longer kept."""
        from verax.kernels.counting import count_keys

        if self._counts is None:
            self._counts = ByteCounts(self._n_groups, self.n_cells, self._n_rows)
            count_keys(self._keys, *self._counts.arrays)
            self._keys = self._keys[:0].copy()
        return self._counts

    def fits(self, n_groups: int) -> bool:
        """Whether a byte for each cell of these groups is little beside a list of those that occur."""
        return n_groups * self.n_cells <= _BYTES_PER_ROW * self._n_rows

    def among(self, places: Ints, n_groups: int) -> GroupCells:
        """The same among more groups, each at its place."""
        cells = GroupCells(0, self.n_cells, self._n_rows, late=False)
        cells._n_groups, cells._counts = n_groups, self._counted().among(places, n_groups)
        return cells

    def __add__(self, other: GroupCells) -> GroupCells:
        """The numbers of the rows of both, which are of the same groups; neither is changed."""
        both = self.among(np.arange(self._n_groups), self._n_groups)
        both._counted().merge(other._counted())
        both._n_rows += other._n_rows
        return both


class GatheredSums:
    """Compensated sums of losses, and numbers of rows and of correct decisions, by group.

    A group has the sums of its losses and their rounding errors in one line of the cache if these are few,
    and two bytes elsewhere, which count the rows whose decision is wrong and right.
    """

    def __init__(self, n_groups: int, independent: Independent, cells: GroupCells, n_rows: int) -> None:
        self._independent = independent
        self.cells: GroupCells = cells
        self._n: int = len(independent.losses)
        self._totals: Floats = _aligned((n_groups, row_of_group(self._n)))
        self._counts = ByteCounts(n_groups, 2, n_rows)

    @property
    def arrays(self) -> tuple[Floats, Bytes, Ints]:
        """The arrays that a kernel adds rows to: sums, and numbers of rows."""
        return self._totals, *self._counts.arrays

    def merge(self, other: GatheredSums) -> None:
        """Add the sums of other rows of the same groups."""
        self.add_others(np.arange(len(self._totals)), other)
        if other.cells is not self.cells:
            self.cells.merge(other.cells)

    def add_others(self, places: Ints, other: GatheredSums) -> None:
        """Add the sums of other rows without their cells; their groups have these places."""
        from verax.kernels.counting import merge_groups

        merge_groups(self._totals, places, other._totals, self._n)
        self._counts.merge(other._counts, places)

    def among(self, places: Ints, n_groups: int) -> GatheredSums:
        """The same among more groups, each at its place, and without cells."""
        sums = GatheredSums(n_groups, self._independent, GroupCells(0, 0, 0, late=False), 0)
        sums._totals[places], sums._counts = self._totals, self._counts.among(places, n_groups)
        return sums

    def total(self) -> Sum:
        """(G, 2 + R) numbers of rows, of correct decisions, and sums of the losses of all rules."""
        shape = (len(self._totals), 2 + len(self._independent.trace.losses))
        sums = Sum(np.empty(shape), np.empty(shape))
        settle = compile_text(self._independent.settling(), __file__)
        settle(self._totals, self._counts.arrays[0], sums.high, sums.low)
        group, right = np.divmod(self._counts.full, 2)
        np.add.at(sums.high[:, 0], group, float(FULL))
        np.add.at(sums.high[:, 1], group[right == 1], float(FULL))
        return sums


class LateGroupSums(LateSum):
    """The sums of all rules by group; those that follow from others are added up at the first use."""

    def __init__(self, gathered: GatheredSums) -> None:
        super().__init__(gathered.total)
        object.__setattr__(self, "gathered", gathered)

    def _fetched(self) -> Sum:
        sums: Sum = self._fetch()
        object.__delattr__(self, "gathered")
        return sums

    def among(self, places: Ints, n: int) -> Sum:
        gathered = self.__dict__.get("gathered")
        return super().among(places, n) if gathered is None else LateGroupSums(gathered.among(places, n))

    def add_others(self, places: Ints, other: Sum) -> None:
        ours, theirs = self.__dict__.get("gathered"), other.__dict__.get("gathered")
        if ours is None or theirs is None:
            super().add_others(places, other)
        else:
            ours.add_others(places, theirs)

    def settled(self) -> Sum:
        return Sum.settled(self)


def row_of_group(n_losses: int) -> int:
    """Number of floats, in whole cache lines, for the sums of a group and their rounding errors."""
    return -(-2 * n_losses // LINE) * LINE


def _aligned(shape: tuple[int, int]) -> Floats:
    """Zeros aligned to a cache line.

    Large tables lie in large pages where the system has them: places anywhere in many small pages take longer
    to find.
    """
    size = shape[0] * shape[1] * 8
    if size >= _PAGE and hasattr(mmap, "MADV_HUGEPAGE"):
        pages = mmap.mmap(-1, size + _PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        pages.madvise(mmap.MADV_HUGEPAGE)
        room, boundary = np.frombuffer(pages, np.uint8), _PAGE
    else:
        room, boundary = np.zeros(size + _LINE, np.uint8), _LINE
    begin = -room.ctypes.data % boundary
    return room[begin : begin + size].view(np.float64).reshape(shape)
