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

# A line of the cache has so many bytes.
_LINE = 64


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
    """Compensated sums of losses and numbers of rows in each cell, by group."""

    def __init__(self, n_groups: int, independent: Independent, n_cells: int) -> None:
        from verax.kernels.counting import add_to_groups

        n = len(independent.losses)
        self._independent, self._n = independent, n
        self._add = add_to_groups(n)
        # The sums of all losses, then their rounding errors.
        self._sums: Floats = _aligned((n_groups, -(-2 * n * 8 // _LINE) * _LINE // 8), np.float64)
        self.counts: np.ndarray[Any, np.dtype[np.uint32]] = _aligned((n_groups, n_cells), np.uint32)

    def add(self, codes: Ints, cells: Ints, losses: Floats) -> None:
        """Take in rows of weight 1: groups, cells and finite losses, a row each; cells may be -1."""
        self._add(codes, cells, losses, self._sums, self.counts)

    @property
    def _pair(self) -> Sum:
        return Sum(self._sums[:, : self._n], self._sums[:, self._n : 2 * self._n])

    def merge(self, other: GatheredSums) -> None:
        """Take in those of other rows of the same groups."""
        self.counts += other.counts
        both = self._pair + other._pair
        self._sums[:, : self._n], self._sums[:, self._n : 2 * self._n] = both.high, both.low

    def total(self, n_classes: int) -> Sum:
        """(G, 2 + R) numbers of rows, of correct decisions, and sums of the losses of all rules."""
        from verax.kernels.counting import settle_groups

        high, low = np.empty((2, self._n, len(self.counts)))
        found = Sum.zeros((2 + len(self._independent.trace.losses), len(self.counts)))
        settle_groups(self._sums, self.counts, n_classes, high, low, found.high[:2])
        every = self._independent.all_of([Sum(*own) for own in zip(high, low, strict=True)])
        for r, each in enumerate(every):
            found.high[2 + r], found.low[2 + r] = each.high, each.low
        return Sum(np.ascontiguousarray(found.high.T), np.ascontiguousarray(found.low.T))


def _aligned(shape: tuple[int, int], dtype: Any) -> Any:
    """Zeros that begin where a line of the cache does."""
    size = shape[0] * shape[1] * np.dtype(dtype).itemsize
    room = np.zeros(size + _LINE, np.uint8)
    begin = -room.ctypes.data % _LINE
    return room[begin : begin + size].view(dtype).reshape(shape)
