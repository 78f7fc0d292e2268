"""Sums of the coverage and cost of prediction sets, by class, by size and by subgroup."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from verax.analyses.parts import scaled
from verax.analyses.unitsums import UnitColumns, UnitRecipe, UnitSums
from verax.common.checks import as_float
from verax.common.summaries import Summary, merges
from verax.engines.clusters import ByLabel, GroupLabels
from verax.engines.sets import NO_ORDER, ends_of
from verax.errors import RuleError
from verax.inputs.arrays import Floats, Ints
from verax.inputs.breakdown import Breakdown
from verax.inputs.groups import Groups
from verax.inputs.handles import Part, Recipe
from verax.inputs.memory import set_part
from verax.inputs.sets.rows import Members, Reduced, SetRows

# The sums over every set, and those over sets of ordered classes.
MEASURES = ("covered", "size", "empty", "single", "claimed", "excess", "level_set")
IN_ORDER = ("winkler", "gapless")
# The sums over the sets of a subgroup.
FEW = ("covered", "size", "claimed", "excess")
# Sizes have a line each up to the first of these, and beyond share one from each of them to the next.
_SIZES = (10, 20, 50, 100, 200, 500, 1000)
# With more classes there is no coverage by class; and no outcomes by the span of the set.
MOST_CLASSES, MOST_SPANNED = 1000, 50


@dataclass(frozen=True)
class Judged:
    """How sets are read and scored.

    Attributes
    ----------
    made : Members or None
        How probabilities become sets.
    level : float or None
        The coverage that all sets claim.
    t : float
        The cost of a class in the level-set score.
    ordered : bool
        Whether the classes have an order.
    """

    made: Members | None
    level: float | None
    t: float
    ordered: bool

    @property
    def measures(self) -> tuple[str, ...]:
        """The names of what is summed."""
        return (*MEASURES, *IN_ORDER) if self.ordered else MEASURES

    def rows(self, part: Part, model: str) -> tuple[Part, SetRows]:
        """A part as sets, and the sets themselves."""
        as_made = set_part(part, self.made, ordered=self.ordered)
        rows = as_made.models[model]
        assert isinstance(rows, SetRows)
        return as_made, rows

    def values(self, rows: SetRows, names: Sequence[str]) -> list[Floats]:
        """The columns of some measures."""
        return [getattr(self, f"_{name}")(rows.reduced, rows) for name in names]

    def _covered(self, sets: Reduced, _: SetRows) -> Floats:
        return sets.covered.astype(float)

    def _size(self, sets: Reduced, _: SetRows) -> Floats:
        return sets.size.astype(float)

    def _empty(self, sets: Reduced, _: SetRows) -> Floats:
        return np.asarray(sets.size == 0, float)

    def _single(self, sets: Reduced, _: SetRows) -> Floats:
        return np.asarray(sets.size == 1, float)

    def _claims(self, sets: Reduced) -> Floats | None:
        return sets.claimed if self.level is None else np.full(len(sets.size), self.level)

    def _claimed(self, sets: Reduced, _: SetRows) -> Floats:
        """Whether the set claims a coverage; what it claims is the coverage minus the excess."""
        return np.zeros(len(sets.size)) if self._claims(sets) is None else np.ones(len(sets.size))

    def _excess(self, sets: Reduced, _: SetRows) -> Floats:
        claims = self._claims(sets)
        return np.asarray(sets.covered - (0.0 if claims is None else claims), float)

    def _level_set(self, sets: Reduced, _: SetRows) -> Floats:
        return np.asarray(self.t * sets.size + ~sets.covered)

    def _ends(self, sets: Reduced, rows: SetRows) -> tuple[Floats, Floats]:
        if sets.low is None or sets.high is None:
            raise RuleError(NO_ORDER)
        return ends_of(sets.low, sets.high, rows.y)

    def _winkler(self, sets: Reduced, rows: SetRows) -> Floats:
        span, beyond = self._ends(sets, rows)
        return np.zeros(len(span)) if self.level is None else span + 2 / (1 - self.level) * beyond

    def _gapless(self, sets: Reduced, rows: SetRows) -> Floats:
        """An empty set has no gap."""
        return np.asarray((sets.size == 0) | (self._ends(sets, rows)[0] + 1 == sets.size), float)


def weights_of(part: Part, rows: SetRows) -> Floats:
    """The weight of every row."""
    return np.ones(rows.n_rows) if rows.weights is None else scaled(part, np.asarray(rows.weights, float))


@dataclass(frozen=True)
class SetRecipe(UnitRecipe):
    """Sums over the sets of a model: every measure is a block of its own."""

    model: str
    judged: Judged
    measures: tuple[str, ...]

    def columns(self, part: Part) -> UnitColumns:
        """The measures of all rows of a part."""
        as_made, rows = self.judged.rows(part, self.model)
        w = weights_of(as_made, rows)
        columns = np.stack(self.judged.values(rows, self.measures))
        if rows.weights is not None:
            columns = np.where(w > 0, w * columns, 0.0)
        return UnitColumns(w, columns[:, None, :], rows.groups)


@dataclass(frozen=True)
class MissRecipe(UnitRecipe):
    """How far misses are from their sets: sums of the distances and of the misses that have one."""

    model: str
    judged: Judged

    def columns(self, part: Part) -> UnitColumns:
        """Distance and miss of every row, in one block."""
        as_made, rows = self.judged.rows(part, self.model)
        sets, w = rows.reduced, weights_of(as_made, rows)
        if sets.distance is None:
            raise RuleError(NO_ORDER)
        missed = ~sets.covered & (sets.size > 0)
        return UnitColumns(w, np.stack([w * missed * sets.distance, w * missed])[None], rows.groups)


class SpanCounts(Summary, kind="spans of sets"):
    """The weight of the rows with each span of ordered classes and each outcome.

    Attributes
    ----------
    labels : array of shape (S,)
        (low * K + high) * K + outcome, of those that occur.
    weights : array of shape (S, 1)
        The weight of the rows of each.
    """

    labels: Any = merges(GroupLabels())
    weights: Floats = merges(ByLabel(1))


@dataclass(frozen=True)
class SpanRecipe(Recipe[SpanCounts]):
    """How many rows have each span and each outcome; empty sets have none."""

    model: str
    judged: Judged

    def take(self, part: Part) -> SpanCounts:
        """Count the rows of one part."""
        as_made, rows = self.judged.rows(part, self.model)
        sets, k = rows.reduced, rows.n_classes
        if sets.low is None or sets.high is None:
            raise RuleError(NO_ORDER)
        filled = sets.low >= 0
        cells = (sets.low * k + sets.high) * k + rows.y
        labels, place = np.unique(cells[filled], return_inverse=True)
        weights = np.bincount(place, weights_of(as_made, rows)[filled], len(labels))
        return SpanCounts(labels, weights[:, None].astype(float))


class SizeCounts(Summary, kind="sizes of sets"):
    """The weight of the sets of every size.

    Attributes
    ----------
    sizes : array of shape (S,)
        The sizes that occur.
    weights : array of shape (S, 1)
        The weight of the sets of each.
    """

    sizes: Any = merges(GroupLabels(ids=0))
    weights: Floats = merges(ByLabel(1, labels="sizes"))


@dataclass(frozen=True)
class SizeRecipe(Recipe[SizeCounts]):
    """How many sets have each size."""

    model: str
    judged: Judged

    def take(self, part: Part) -> SizeCounts:
        """Count the sets of one part."""
        as_made, rows = self.judged.rows(part, self.model)
        size = rows.reduced.size
        weights = np.bincount(size, None if rows.weights is None else weights_of(as_made, rows))
        sizes = np.flatnonzero(np.bincount(size))
        return SizeCounts(sizes, weights[sizes, None].astype(float))


@dataclass(frozen=True)
class PartRecipe(Recipe[Breakdown]):
    """The sums of the sets of each class that happened, of each size, or of each label of a column."""

    model: str
    judged: Judged
    what: Literal["class", "size", "column"]
    column: str = ""

    def take(self, part: Part) -> Breakdown:
        """Sum up the sets of one part."""
        as_made, rows = self.judged.rows(part, self.model)
        if self.what == "column":
            labels = Groups.of(as_made.by[self.column], as_made.n_rows)
        else:
            labels = rows.outcomes() if self.what == "class" else _by_size(rows.reduced.size)
        # The columns of all rows are divided, because their weights have one scale.
        columns = SetRecipe(self.model, self.judged, FEW).columns(part)
        return Breakdown({label: {"units": UnitSums.of(some)} for label, some in columns.by(labels)})


def _by_size(size: Ints) -> Groups:
    """The sizes of sets, larger ones in classes of about the same ratio: each is known by its smallest."""
    first = np.array([*range(_SIZES[0] + 1), *(edge + 1 for edge in _SIZES)])
    place = np.searchsorted(first, size, side="right") - 1
    return Groups(place, first)


def size_name(first: int, n_classes: int) -> str:
    """The sizes that are counted with the smallest of them.

    >>> size_name(3, 50), size_name(11, 15), size_name(501, 2000)
    ('3', '11 to 15', '501 to 1,000')
    """
    if first <= _SIZES[0]:
        return str(first)
    last = next((edge for edge in _SIZES if edge >= first), None)
    most = as_float(n_classes) if last is None else min(last, n_classes)
    return f"{first:,}" if most == first else f"{first:,} to {most:,.0f}"


def units_by_label(breakdown: Breakdown) -> Mapping[Any, UnitSums]:
    """The sums of every label, in the order of the labels."""
    return {label: breakdown[label]["units"] for label in breakdown.labels}
