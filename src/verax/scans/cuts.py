"""Columns of numbers cut into groups of about equal size, by their values in all rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from verax.errors import InputError
from verax.inputs.arrays import Floats, Ints
from verax.inputs.groups import Groups, by_kind
from verax.inputs.handles import Collector, Part, Summaries


@dataclass(frozen=True)
class Cut:
    """The groups that a column of numbers is cut into.

    Attributes
    ----------
    column : str
        The column.
    edges : array
        The largest number of each group except the last.
    names : tuple of str
        The names of groups with their ranges, by the number of edges below; empty for groups without rows.
    """

    column: str
    edges: Floats
    names: tuple[str, ...]

    @classmethod
    def of(cls, column: str, values: Floats, counts: Ints, n: int) -> Cut:
        """The groups of distinct numbers in increasing order, given how often each occurs.

        >>> cut = Cut.of("age", np.array([20.0, 30.0, 40.0, 50.0]), np.ones(4, int), 2)
        >>> cut.labels([20, 50]).tolist()
        ['1: 20 to 30', '2: 40 to 50']
        """
        if not np.isfinite(values).all():
            raise InputError(
                "must be a column of numbers to be cut into groups", argument="by", values=[column]
            )
        ends = np.cumsum(counts)
        # The quantiles are values that occur.
        ranks = np.floor(np.arange(1, n) / n * (ends[-1] - 1)).astype(int)
        edges = np.unique(values[np.searchsorted(ends, ranks, side="right")])
        place = np.searchsorted(edges, values, side="left")
        used = np.unique(place).tolist()
        names = [""] * (len(edges) + 1)
        for j, i in enumerate(used):
            numbers = values[place == i]
            low, high = f"{numbers[0]:g}", f"{numbers[-1]:g}"
            # Labels are sorted as texts.
            rank = f"{j + 1:0{len(str(len(used)))}}"
            names[i] = f"{rank}: {low}" if low == high else f"{rank}: {low} to {high}"
        return cls(column, edges, tuple(names))

    @classmethod
    def of_rows(cls, column: str, labels: Any, n: int) -> Cut:
        """The groups of a column in memory."""
        return cls.of(column, *np.unique(_numbers(labels), return_counts=True), n)

    def labels(self, column: Any) -> Any:
        """The group of each row."""
        return np.array(self.names)[np.searchsorted(self.edges, _numbers(column), side="left")]


def relabelled(part: Part, cuts: Mapping[str, Cut]) -> Part:
    """The same rows with groups in place of numbers."""
    by = {name: cuts[name].labels(column) if name in cuts else column for name, column in part.by.items()}
    within = part.subset
    subset = None if within is None else lambda places: relabelled(within(places), cuts)
    return replace(part, by=by, subset=subset)


def with_kind(part: Part, kind: int) -> Part:
    """The same rows with one of two kinds of groups."""
    models = {}
    for name, rows in part.models.items():
        groups = rows.groups
        assert groups is not None
        labels, places = by_kind(groups.labels)[kind]
        models[name] = copy(rows)
        models[name].groups = Groups(places[groups.codes], labels)
    within = part.subset
    subset = None if within is None else lambda places: with_kind(within(places), kind)
    return replace(part, models=models, subset=subset, _made={})


@dataclass
class ChangedParts:
    """Changes parts before it shows them to a collector."""

    collector: Collector
    change: Callable[[Part], Part]

    def add(self, part: Part) -> int:
        """Show a part."""
        return self.collector.add(self.change(part) if part.n_rows else part)

    def summaries(self) -> Summaries:
        """The summaries of all parts so far."""
        return self.collector.summaries()


@dataclass
class GroupCounts:
    """Collects the groups of each of two kinds; empty if rows have fewer kinds."""

    _labels: tuple[set[Any], set[Any]] = field(default_factory=lambda: (set(), set()))

    def add(self, part: Part) -> int:
        """Add the groups of a part."""
        groups = part.rows.groups if part.n_rows else None
        for known, (labels, _) in zip(
            self._labels, [] if groups is None else by_kind(groups.labels), strict=False
        ):
            known.update(labels.tolist())
        return part.n_rows

    @property
    def fewer(self) -> int:
        """The kind with fewer groups."""
        return int(len(self._labels[1]) < len(self._labels[0]))


@dataclass
class NumberCounts:
    """Counts how often each number in some columns occurs."""

    columns: Mapping[str, int]
    _counted: dict[str, list[tuple[Floats, Ints]]] = field(default_factory=dict)

    def add(self, part: Part) -> int:
        """Count the numbers of a part."""
        for name in self.columns if part.n_rows else ():
            counted = np.unique(_numbers(part.by[name]), return_counts=True)
            self._counted.setdefault(name, []).append(counted)
        return part.n_rows

    def cuts(self) -> dict[str, Cut]:
        """The groups of each column."""
        cuts = {}
        for name, parts in self._counted.items():
            values, place = np.unique(np.concatenate([numbers for numbers, _ in parts]), return_inverse=True)
            counts = np.bincount(place, np.concatenate([count for _, count in parts])).astype(int)
            cuts[name] = Cut.of(name, values, counts, self.columns[name])
        return cuts


def _numbers(column: Any) -> Floats:
    try:
        return np.asarray(column).astype(float)
    except (TypeError, ValueError):
        return np.full(len(column), np.nan)
