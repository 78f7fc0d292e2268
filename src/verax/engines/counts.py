"""Counts of decisions against outcomes, and of outcomes that were given probability zero; they merge."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from verax.common.specs import RowNumbers, Whole
from verax.common.summaries import fields_of
from verax.engines.sums import LateSum, Sum, Sums
from verax.inputs.arrays import Floats

# Beyond this many classes no table of K x K counts is kept: it would take too much memory.
CONFUSION_UP_TO = 1024
# Number of impossible rows (their outcome had probability zero) that are kept by number.
ROWS_KEPT = 100
# Tables of more cells than this are made when they are looked at: a GPU brings its own.
_LARGE = 2**12


@dataclass
class Counts:
    """Weights of outcomes against decisions, and the outcomes that were given probability zero.

    Decisions are the most likely class, the lowest index where several are. Beyond CONFUSION_UP_TO
    classes only the outcomes and the correct decisions are counted, and `confusion` is None.

    Attributes
    ----------
    n_classes : int
        The number of classes K.
    cells : Sum
        K*K weights, outcome by decision; of too many classes K weights of outcomes, then the weight of the
        correct decisions; empty where decisions are not counted.
    squares : Sum, optional
        The sums of squared weights in the same cells; None where all weights are 1, and these are `cells`.
    n_zero : int
        How many rows with weight had given their outcome probability zero.
    zero_rows : list of int
        The first of these rows, as far as their numbers are known.
    """

    n_classes: int
    cells: Sum = field(default_factory=lambda: Sum.zeros(0))
    n_zero: int = 0
    zero_rows: list[int] = field(default_factory=list)
    squares: Sum | None = None

    @classmethod
    def zeros(cls, n_classes: int, *, decisions: bool = True, weighted: bool = False) -> Counts:
        """Empty counts; without `decisions` only outcomes given probability zero are counted."""
        n = n_cells(n_classes) if decisions else 0
        return cls(n_classes, _zero_cells(n), squares=_zero_cells(n) if weighted else None)

    def add(self, y: Any, decision: Any, weights: Any, squares: Any) -> None:
        """Count rows by NumPy calls, with their weights and the squares; the compiled path has a kernel."""
        self._add_to(self.cells, y, decision, weights)
        if self.squares is not None:
            self._add_to(self.squares, y, decision, squares)

    def _add_to(self, cells: Sum, y: Any, decision: Any, weights: Any) -> None:
        if self._tabled:
            cells.add_at(y * self.n_classes + decision, weights)
            return
        cells.add_at(y, weights)
        right = y == decision
        cells.add_at(
            np.full(np.count_nonzero(right), self.n_classes), None if weights is None else weights[right]
        )

    def add_zeros(self, rows: Sequence[int]) -> None:
        """Count rows whose outcome had probability zero, and remember the first of them."""
        self.n_zero += len(rows)
        self.zero_rows = sorted([*self.zero_rows, *rows])[:ROWS_KEPT]

    def __add__(self, other: Counts) -> Counts:
        rows = sorted([*self.zero_rows, *other.zero_rows])[:ROWS_KEPT]
        squares = None
        if self.squares is not None or other.squares is not None:
            squares = self.squared + other.squared
        return Counts(self.n_classes, self.cells + other.cells, self.n_zero + other.n_zero, rows, squares)

    def scaled(self, factor: float) -> Counts:
        """With all weights multiplied by a power of two."""
        rows = list(self.zero_rows)
        squares = None if factor == 1 else self.squared.scaled(factor).scaled(factor)
        squares = self.squares if squares is None else squares
        return Counts(self.n_classes, self.cells.scaled(factor), self.n_zero, rows, squares)

    def moved(self, start: int | None) -> Counts:
        """With the rows numbered from `start`; without their numbers if it is None."""
        rows = [] if start is None else [start + row for row in self.zero_rows]
        squares = None if self.squares is None else self.squares.settled()
        return Counts(self.n_classes, self.cells.settled(), self.n_zero, rows, squares)

    def to_values(self) -> dict[str, Any]:
        """Everything but the number of classes, to be stored."""
        return {
            "cells": self.cells.to_values(),
            "squares": None if self.squares is None else self.squares.to_values(),
            "n_zero": self.n_zero,
            "zero_rows": list(self.zero_rows),
        }

    @classmethod
    def from_values(cls, values: Mapping[str, Any], n_classes: int, *, decisions: bool) -> Counts:
        """What `to_values` gave for this number of classes."""
        return cls(n_classes, **fields_of(_STORED, values, {"cells": n_cells(n_classes) if decisions else 0}))

    @property
    def squared(self) -> Sum:
        """The sums of squared weights in the cells."""
        return self.cells if self.squares is None else self.squares

    @property
    def _tabled(self) -> bool:
        return self.n_classes <= CONFUSION_UP_TO

    @property
    def table(self) -> tuple[Floats, Floats]:
        """Both parts of the confusion table, to be added to in place."""
        shape = (self.n_classes, self.n_classes)
        return self.cells.high.reshape(shape), self.cells.low.reshape(shape)

    @property
    def confusion(self) -> Floats | None:
        """Weights by outcome (row) and decision (column); None where no table is kept."""
        return self.table[0] if self.cells.high.size and self._tabled else None

    @property
    def per_class(self) -> Floats:
        """The weight of each class among the outcomes."""
        if self.confusion is None:
            return self.cells.high[: self.n_classes]
        high, low = self.table
        return np.asarray(high.sum(axis=1) + low.sum(axis=1))

    @property
    def n_correct(self) -> float:
        """The weight of the rows whose decision was the outcome."""
        if not self.cells.high.size:
            return math.nan
        return float(self.cells.high[-1] if self.confusion is None else np.trace(self.confusion))

    @property
    def squared_correct(self) -> float:
        """The sum of squared weights of the rows whose decision was the outcome."""
        return Counts(self.n_classes, self.squared).n_correct


_STORED = {
    "cells": Sums("cells", least=0),
    "n_zero": Whole(),
    "zero_rows": RowNumbers(ROWS_KEPT, list),
    "squares": Sums("cells", least=0, optional=True),
}


def n_cells(n_classes: int) -> int:
    """Number of weights that `Counts` keeps, given the number of classes."""
    return n_classes**2 if n_classes <= CONFUSION_UP_TO else n_classes + 1


def squared_weights(weights: Any) -> Any:
    """The squares of weights, which overflow where the weights are extreme; that pass is not kept."""
    with np.errstate(over="ignore"):
        return weights * weights


def _zero_cells(n: int) -> Sum:
    return Sum.zeros(n) if n <= _LARGE else LateSum(partial(np.zeros, n))
