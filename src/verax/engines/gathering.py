"""Sums of the rows of each group, which a kernel adds one row at a time.

Groups of rows are anywhere in a table that no cache holds, so time is spent waiting for memory. The sums of a
group are as few as possible and begin where a line of the cache does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from verax.engines.meanlosses import made_of_losses
from verax.engines.stats import Formula
from verax.engines.sums import Sum
from verax.engines.tracing import Trace, record
from verax.inputs.arrays import Floats, Ints
from verax.kernels.limits import FULL

# A line of the cache has so many bytes, and so many floats.
_LINE = 64
LINE: int = _LINE // 8
# How many groups are settled at a time: a cache holds their sums.
_PIECE = 2**12


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
        """Of some rules; None where a formula has no trace."""
        trace = record(rules, n_classes)
        return None if trace is None else cls(trace, independent_of(trace))

    def all_of(self, sums: Sequence[Sum]) -> list[Sum]:
        """The sums of the losses of all rules, from those of these losses."""
        known = {f"mean_{name}": own for name, own in zip(self.losses, sums, strict=True)}
        for step in made_of_losses(self.trace).values():
            terms: list[Any] = [known.get(operand, operand) for operand in step.operands]
            if step.operation == "add":
                known[step.name] = terms[0] + terms[1]
                continue
            factor, own = terms if isinstance(terms[1], Sum) else terms[::-1]
            times = self.trace.constants[int(factor[1:])]
            known[step.name] = Sum(own.high * times, own.low * times)
        return [known[f"mean_{name}"] for name in self.trace.losses]


class GatheredSums:
    """Compensated sums of losses and numbers of rows in each cell, by group.

    A group has the sums of its losses and their rounding errors in one line of the cache if these are few,
    and its cells, a byte each, in another.
    """

    def __init__(self, n_groups: int, independent: Independent, n_cells: int, n_rows: int) -> None:
        self._independent = independent
        self.n_cells: int = n_cells
        self._n: int = len(independent.losses)
        self._totals: Floats = _aligned((n_groups, row_of_group(self._n)))
        self._tallies: np.ndarray[Any, np.dtype[np.uint8]] = np.zeros((n_groups, n_cells), np.uint8)
        # How often a cell was full, and which one each time: all rows together do not fill more.
        self._full: Ints = np.zeros(1 + n_rows // FULL, np.int64)

    @property
    def arrays(self) -> tuple[Floats, np.ndarray[Any, np.dtype[np.uint8]], Ints]:
        """What a kernel adds rows to: sums, tallies, and the cells that were full."""
        return self._totals, self._tallies, self._full

    def merge(self, other: GatheredSums) -> None:
        """Take in those of other rows of the same groups."""
        from verax.kernels.counting import merge_groups

        n, more = self._full[0], other._full[0]
        self._full[1 + n : 1 + n + more] = other._full[1 : 1 + more]
        self._full[0] += more
        merge_groups(*self.arrays, *other.arrays[:2], self._n)

    @property
    def _filled(self) -> Ints:
        """The cells that were full, by number."""
        return self._full[1 : 1 + self._full[0]]

    def counts(self) -> np.ndarray[Any, np.dtype[np.uint32]]:
        """(G, cells) numbers of rows."""
        found = self._tallies.astype(np.uint32)
        np.add.at(found.reshape(-1), self._filled, np.uint32(FULL))
        return found

    def total(self, n_classes: int) -> Sum:
        """(G, 2 + R) numbers of rows, of correct decisions, and sums of the losses of all rules."""
        shape = (len(self._totals), 2 + len(self._independent.trace.losses))
        found = Sum(np.empty(shape), np.empty(shape))
        for start in range(0, shape[0], _PIECE):
            piece = slice(start, start + _PIECE)
            every = self._settled(piece, n_classes)
            np.stack([own.high for own in every], axis=1, out=found.high[piece])
            np.stack([own.low for own in every], axis=1, out=found.low[piece])
        group, cell = np.divmod(self._filled, self.n_cells)
        np.add.at(found.high[:, 0], group, float(FULL))
        right = cell % (n_classes + 1) == 0
        np.add.at(found.high[:, 1], group[right], float(FULL))
        return found

    def _settled(self, piece: slice, n_classes: int) -> list[Sum]:
        """The columns of some groups; of numbers of rows without those of cells that were full."""
        from verax.kernels.counting import settle_groups

        totals, tallies = self._totals[piece], self._tallies[piece]
        shape = self._n, len(totals)
        high, low, rows = np.empty(shape), np.empty(shape), np.empty((2, shape[1]))
        settle_groups(totals, tallies, self._n, n_classes, high, low, rows)
        losses = self._independent.all_of([Sum(*own) for own in zip(high, low, strict=True)])
        return [*map(Sum.of, rows), *losses]


def row_of_group(n_losses: int) -> int:
    """How many floats the sums of a group and their rounding errors take: whole lines of the cache."""
    return -(-2 * n_losses // LINE) * LINE


def _aligned(shape: tuple[int, int]) -> Floats:
    """Zeros that begin where a line of the cache does."""
    size = shape[0] * shape[1] * 8
    room = np.zeros(size + _LINE, np.uint8)
    begin = -room.ctypes.data % _LINE
    return room[begin : begin + size].view(np.float64).reshape(shape)
