"""Forecasts cut into subgroups by one compiled pass, which moves every row to where its subgroup lies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from verax.inputs.arrays import Array, Ints
from verax.inputs.columns import Columns
from verax.inputs.forecasts import Forecasts
from verax.inputs.groups import Groups
from verax.inputs.handles import Part
from verax.inputs.outcomes import Outcomes
from verax.inputs.pairs import forecasts_like
from verax.kernels.ledger import compiles

# Rows of more numbers are taken as they lie: a row would go to too many places.
_MOST_NUMBERS = 10
# Places are 32-bit numbers.
_MOST_ROWS = 2**32
# How many subgroups are filled at the same time; more would not stay in the cache.
_MOST_SUBGROUPS = 256


def divides(part: Part, n_labels: int) -> bool:
    """Whether the rows of a part are many numbers in memory of the host, which a compiled pass can move."""
    n_numbers = sum(rows.n_rows * rows.width for rows in part.models.values())
    return (
        n_labels <= _MOST_SUBGROUPS
        and part.n_rows < _MOST_ROWS
        and all(_is_moved(rows) for rows in part.models.values())
        and compiles(n_numbers, "divisions")
    )


def _is_moved(rows: object) -> bool:
    if not isinstance(rows, Forecasts) or not isinstance(rows.outcomes, Outcomes):
        return False
    columns = rows.given.columns if isinstance(rows.given, Columns) else (rows.given,)
    return rows.width <= _MOST_NUMBERS and all(
        type(each) is np.ndarray and each.dtype.kind == "f" and each.dtype.itemsize in (4, 8)
        for each in columns
    )


@dataclass(frozen=True)
class Division:
    """Where the rows of each subgroup lie, one subgroup after the other.

    Attributes
    ----------
    edges : (G + 1,) int array
        Where each subgroup begins, and the end.
    places : (N,) uint32 array
        The place of each row.
    order : (N,) int array
        The row at each place; rows of a subgroup keep their order.
    """

    edges: Ints
    places: Any
    order: Ints

    @classmethod
    def by(cls, labels: Groups) -> Division:
        """By the codes of labels."""
        from verax.kernels.dividing import find_places

        n = len(labels.codes)
        edges = np.concatenate([[0], np.cumsum(np.bincount(labels.codes, minlength=len(labels.labels)))])
        places, order = np.empty(n, np.uint32), np.empty(n, np.int64)
        find_places(labels.codes, edges[:-1].copy(), places, order)
        return cls(edges, places, order)

    def parts(self, part: Part) -> Iterator[Part]:
        """The rows of each subgroup as a part of their own."""
        models = {name: self._forecasts(rows) for name, rows in part.models.items()}
        ids = None if part.ids is None else part.ids[self.order]
        numbers = self.order + part.start if part.numbers is None else part.numbers[self.order]
        for begin, end in zip(self.edges[:-1].tolist(), self.edges[1:].tolist(), strict=True):
            own = slice(begin, end)
            yield Part.held(
                {name: next(each) for name, each in models.items()},
                None if ids is None else ids[own],
                _Taken(part.by, self.order[own]),
                numbers[own],
                start=part.start,
                whole=part.whole,
            )

    def _forecasts(self, rows: Any) -> Iterator[Forecasts]:
        """The forecasts of each subgroup, whose columns are contiguous."""
        given, n = rows.given, len(self.order)
        if isinstance(given, Columns):
            p: Any = Columns([self._moved(column[None])[0] for column in given.columns])
        else:
            p = self._moved(given.T if given.ndim > 1 else given[None])
            p = p.T if given.ndim > 1 else p[0]
        y = rows.outcomes.raw
        if type(y) is not np.ndarray or y.dtype != np.int64 or not rows.outcomes.are_positions:
            y = rows.outcomes.positions_of(slice(0, n))
        y = self._moved(y[None])[0]
        weights = None if rows.weights is None else np.asarray(rows.weights)[self.order]
        for begin, end in zip(self.edges[:-1].tolist(), self.edges[1:].tolist(), strict=True):
            own = slice(begin, end)
            groups = None if rows.groups is None else rows.groups.at(self.order[own])
            some = Columns([column[own] for column in p.columns]) if isinstance(p, Columns) else p[own]
            yield forecasts_like(rows, y[own], some, None if weights is None else weights[own], groups)

    def _moved(self, columns: Array) -> Array:
        """(C, N) columns with every row at its place."""
        from verax.kernels.dividing import move_columns

        out = np.empty(columns.shape, columns.dtype)
        bits = np.uint64 if columns.dtype.itemsize == 8 else np.uint32
        move_columns(columns.view(bits), self.places, out.view(bits))
        return out


class _Taken(Mapping[str, Array]):
    """Columns of some rows, each taken when it is asked for: few look at the labels of a subgroup."""

    def __init__(self, columns: Mapping[str, Array], rows: Ints) -> None:
        self._columns, self._rows = columns, rows

    def __getitem__(self, name: str) -> Array:
        return self._columns[name][self._rows]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)
