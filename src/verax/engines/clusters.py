"""Sums of each group of rows, which merge.

Whole groups can be resampled from them without the rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from verax.common.caching import cached_property
from verax.common.idkeys import comparable, storing_ids, to_store
from verax.common.packing import UnreadableError
from verax.common.specs import Array, Spec, Whole
from verax.common.stored import Size, Sizes, column, fit, mapping, numbers, sized
from verax.common.summaries import fields_of, joined_names
from verax.engines.gathering import GatheredSums, GroupCells, LateGroupSums
from verax.engines.keyed import Run
from verax.engines.stats import Decided
from verax.engines.sums import Sum, Sums
from verax.errors import VeraxError
from verax.inputs.arrays import Floats, Ints
from verax.inputs.groups import BOTH, GroupCount, by_kind, count_groups, distinct

# Numbers that a bootstrap holds at a time.
_NUMBERS_AT_ONCE = 2**22
# Largest table of the cells of all groups; beyond it, the number of cells kept before they are merged.
_TABLE, _PENDING = 2**15, 2**20
# Compiled loops add rows to a table without looking at all of it, so it may be larger.
_COMPILED_TABLE = 2**22


@dataclass(frozen=True)
class Cells:
    """Weights of the cells that occur in each group.

    Attributes
    ----------
    keys : Ints
        Group times the number of cells, plus the cell; in order.
    sums : Sum
        The weight of each key.
    n_cells : int
        The number of cells, 0 where they are not counted.
    """

    keys: Ints
    sums: Sum
    n_cells: int

    @classmethod
    def of(cls, keys: Ints, weights: Floats | None, n_cells: int) -> Cells:
        """From the key and the weight of each row; without weights they are counted."""
        return cls._of_run(Run.of(keys, [weights]), n_cells)

    @classmethod
    def merged(cls, runs: Sequence[Cells], n_cells: int) -> Cells:
        """The sums of several runs; how rows are divided among them does not matter."""
        if not runs:
            return cls(np.zeros(0, np.int64), Sum.zeros(0), n_cells)
        return cls._of_run(Run.merged([run._run for run in runs]), n_cells)

    @classmethod
    def _of_run(cls, run: Run, n_cells: int) -> Cells:
        return cls(run.keys, Sum(run.sums.high[:, 0], run.sums.low[:, 0]), n_cells)

    @property
    def _run(self) -> Run:
        none = np.zeros((len(self.keys), 0))
        return Run(self.keys, Sum(self.sums.high[:, None], self.sums.low[:, None]), none, none)

    def __add__(self, other: Cells) -> Cells:
        return Cells.merged([self, other], self.n_cells)

    def relabeled(self, codes: Ints, n_groups: int) -> Cells:
        """With group g called codes[g] among `n_groups`; codes are in the order of the groups."""
        if not self.n_cells:
            return self
        group, cell = np.divmod(self.keys, self.n_cells)
        return Cells(codes[group] * self.n_cells + cell, self.sums, self.n_cells)

    def scaled(self, factor: float) -> Cells:
        """With all weights multiplied by a power of two."""
        return self if factor == 1 else Cells(self.keys, self.sums.scaled(factor), self.n_cells)

    def matrix(self, n_groups: int) -> tuple[Ints, Any]:
        """The cells that occur, and their weights by group: a sparse matrix with a column for each."""
        from scipy.sparse import csr_array

        group, cell = np.divmod(self.keys, max(self.n_cells, 1))
        occurring, column = np.unique(cell, return_inverse=True)
        shape = (n_groups, len(occurring))
        return occurring, csr_array((self.sums.high, (group, column)), shape=shape)


class _LateCells(Cells):
    """Numbers of rows by group and cell; the cells that occur are listed at the first use."""

    def __init__(self, noted: GroupCells) -> None:
        object.__setattr__(self, "_noted", noted)
        object.__setattr__(self, "n_cells", noted.n_cells)

    def __add__(self, other: Cells) -> Cells:
        ours, theirs = self.__dict__.get("_noted"), other.__dict__.get("_noted")
        if ours is None or theirs is None or not self.n_cells:
            return super().__add__(other)
        return _LateCells(ours + theirs)

    def relabeled(self, codes: Ints, n_groups: int) -> Cells:
        noted = self.__dict__.get("_noted")
        if noted is None or not self.n_cells or not noted.fits(n_groups) or (np.diff(codes) <= 0).any():
            return super().relabeled(codes, n_groups)
        return _LateCells(noted.among(codes, n_groups))

    def __getattr__(self, name: str) -> Any:
        # Called for attributes that are not set yet.
        noted = self.__dict__.get("_noted") if name in ("keys", "sums") else None
        if noted is None:
            raise AttributeError(name)
        counts = noted.counts()
        keys = np.flatnonzero(counts)
        object.__setattr__(self, "keys", keys)
        object.__setattr__(self, "sums", Sum.of(counts[keys]))
        object.__delattr__(self, "_noted")
        return getattr(self, name)

    def __reduce__(self) -> tuple[Any, ...]:
        return Cells, (self.keys, self.sums, self.n_cells)


@dataclass(frozen=True)
class Clusters:
    """Sums of each of G groups of rows.

    Attributes
    ----------
    labels : ndarray
        (G,) names of the groups, in order.
    sums : Sum
        (G, 2 + R) sums of weights, of weights of correct decisions, and of weight times loss for R rules
        over the rows whose loss is finite.
    infinite : ndarray
        (G, R) whether some row with weight has an infinite loss.
    cells : Cells
        The confusion counts of each group.
    """

    labels: np.ndarray[Any, Any]
    sums: Sum
    infinite: np.ndarray[Any, np.dtype[np.bool_]]
    cells: Cells

    def __add__(self, other: Clusters) -> Clusters:
        mine, others = comparable(self.labels, other.labels)
        if np.array_equal(mine, others):
            labels, ours = mine, np.arange(len(mine))
            theirs = ours
        else:
            labels, place = distinct(np.concatenate([mine, others]))
            ours, theirs = np.split(place, [len(self.labels)])
        # In place, because both among all groups would take the memory of two more.
        both = self._among(labels, ours)
        both.sums.add_others(theirs, other.sums)
        both.infinite[theirs] |= other.infinite
        return replace(both, cells=both.cells + other.cells.relabeled(theirs, len(labels)))

    def _among(self, labels: np.ndarray[Any, Any], place: Ints) -> Clusters:
        """The sums among more groups, each at its place."""
        infinite = np.zeros((len(labels), self.infinite.shape[1]), bool)
        infinite[place] = self.infinite
        cells = self.cells.relabeled(place, len(labels))
        return Clusters(labels, self.sums.among(place, len(labels)), infinite, cells)

    def to_values(self) -> dict[str, Any]:
        """The sums, to be stored."""
        labels = to_store(self.labels)
        if labels is not None:
            with storing_ids("plain"):
                return self._joined(*distinct(labels)).to_values()
        return {
            "labels": self.labels,
            "sums": self.sums.to_values(),
            "infinite": self.infinite,
            "n_cells": self.cells.n_cells,
            "keys": self.cells.keys,
            "cells": self.cells.sums.to_values(),
        }

    @classmethod
    def from_values(cls, values: Mapping[str, Any], n_rules: int) -> Clusters:
        """What `to_values` gave for this number of rules."""
        sizes = {"rules": n_rules}
        fields = fields_of(_CLUSTERS, {name: values[name] for name in _CLUSTERS if name in values}, sizes)
        n_cells = fields.pop("n_cells")
        cells = {"keys": values["keys"], "sums": values["cells"]}
        return cls(**fields, cells=cells_read(cells, n_cells, sizes["groups"]))

    @cached_property
    def count(self) -> GroupCount:
        """The number of groups that have weight, of both kinds where there are two."""
        return count_groups(self.labels[self.weight > 0])

    @cached_property
    def kinds(self) -> list[Clusters]:
        """The sums by each of two kinds of groups, and by their pairs; with one kind, these alone."""
        return [*(self._joined(*kind) for kind in by_kind(self.labels)), self]

    def _joined(self, labels: np.ndarray[Any, Any], place: Ints) -> Clusters:
        """The sums of fewer groups, each made of some of these."""
        sums = Sum.zeros((len(labels), self.sums.high.shape[1]))
        sums.add_at(place, list(self.sums.high.T))
        infinite = np.zeros((len(labels), self.infinite.shape[1]), bool)
        np.logical_or.at(infinite, place, self.infinite)
        cells = Cells.merged([self.cells.relabeled(place, len(labels))], self.cells.n_cells)
        return Clusters(labels, sums, infinite, cells)

    def scaled(self, factor: float) -> Clusters:
        """With all weights multiplied by a power of two."""
        return Clusters(self.labels, self.sums.scaled(factor), self.infinite, self.cells.scaled(factor))

    @property
    def weight(self) -> Floats:
        """(G,) sums of weights."""
        return self.sums.high[:, 0]

    @cached_property
    def effective(self) -> float:
        """The effective number of groups."""
        return effective_groups(self.weight)

    @property
    def totals(self) -> Floats:
        """(G, R) sums of weight times loss; infinite where a loss is."""
        return np.where(self.infinite, np.inf, self.sums.high[:, 2:])

    def errors(self) -> tuple[Floats, float | Floats]:
        """(1 + R) jackknife variances, of the share of correct decisions and of the means; their freedom."""
        return variances_over(self.labels, self.sums.high)

    def shapes(self) -> tuple[Floats, Floats]:
        """(1 + R) degrees of freedom and skewness of the same numbers, for intervals not symmetric."""
        return shapes_over(self.labels, self.sums.high)

    def without_each(self, reduce: Callable[[Ints, Floats], Floats], groups: Ints) -> Floats:
        """(g, M) metrics of the confusion counts without each of some groups, at least one.

        Counts of cells that occur are made a few groups at a time: `reduce` turns the numbers of C cells and
        their (b, C) counts into (b, M) metrics.
        """
        occurring, weights = self.cells.matrix(len(self.labels))
        total = np.asarray(weights.sum(axis=0)).ravel()
        metrics, start = [], 0
        for size in batches(len(groups), len(occurring)):
            # Rounding must not leave counts below zero.
            left = total - weights[groups[start : start + size]].toarray()
            metrics.append(reduce(occurring, np.where(left > 1e-12 * total, left, 0.0)))
            start += size
        return np.concatenate(metrics)


def leave_one_out(weight: Floats, totals: Floats) -> tuple[Floats, float]:
    """Jackknife variances of weighted means over groups, and their degrees of freedom.

    `weight` has the (G,) weights of the groups, `totals` the (G, C) sums of weight times value. The variance
    is (G-1)/G times the sum of squared changes of the mean as each group is left out. The degrees of freedom
    are the effective number of groups (1 over the sum of squared shares of the weight) minus one, but at
    least one: large groups among small ones tell less than their number says.

    >>> variance, freedom = leave_one_out(np.array([2.0, 2.0, 2.0]), np.array([[2.0], [4.0], [6.0]]))
    >>> round(float(variance[0]), 4), round(freedom, 4)
    (0.3333, 2.0)
    """
    variance, _ = _cumulants(weight, totals)
    return variance, max(1.0, effective_groups(weight) - 1) if np.count_nonzero(weight > 0) > 1 else 0.0


def _cumulants(weight: Floats, totals: Floats) -> tuple[Floats, Floats]:
    """The second and the third cumulants of weighted means over groups, (C,), by the jackknife."""
    filled = weight > 0
    weight, totals = weight[filled], totals[filled]
    n = len(weight)
    if n < 2:
        return np.full(totals.shape[1], np.nan), np.full(totals.shape[1], np.nan)
    change = changes_without_each(weight, totals)
    with np.errstate(invalid="ignore", over="ignore"):
        # A product: third powers take ten times as long.
        square = change * change
        return square.sum(axis=0) * (n - 1) / n, (square * change).sum(axis=0) * (n - 1) / n


def group_freedom(weight: Floats) -> float:
    """Degrees of freedom of a variance over groups of these weights where the skewness is known too.

    Satterthwaite's, where the means of groups vary alike, at least one: a large group among small ones adds
    more to the variance than its share (Carter, Schnepel and Steigerwald 2017, doi:10.1162/REST_a_00639).

    >>> group_freedom(np.ones(8)), round(group_freedom(np.array([8.0, 4.0, 2.0, 1.0, 1.0])), 4)
    (7.0, 1.354)
    """
    filled = weight[weight > 0]
    if len(filled) < 2:
        return 0.0
    square = (filled / filled.max()) ** 2
    return max(1.0, float(square.sum() ** 2 / (square @ square)) * (1 - 1 / len(filled)))


def changes_without_each(weight: Floats, totals: Floats) -> Floats:
    """(G, C) changes of weighted means when each group is left out; all weights are positive.

    >>> changes_without_each(np.array([2.0, 2.0]), np.array([[2.0], [4.0]]))
    array([[-0.5],
           [ 0.5]])
    """
    total = weight.sum()
    share = weight / total
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        excess = totals / total - share[:, None] * (totals.sum(axis=0) / total)
        rest = 1 - share
        # Without a group that has most of the weight, a difference would cancel: the others are added up.
        for heavy in np.flatnonzero(share > 1 / 2):
            others = np.arange(len(share)) != heavy
            excess[heavy], rest[heavy] = -excess[others].sum(axis=0), share[others].sum()
        return np.asarray(excess / rest[:, None])


def variances_over(labels: np.ndarray[Any, Any], sums: Floats) -> tuple[Floats, float | Floats]:
    """Variances of weighted means over groups of one kind or of two, and their degrees of freedom.

    `sums` has the weights of the groups, (G,), then the (G, C) sums of weight times value.
    """
    pairs = leave_one_out(sums[:, 0], sums[:, 1:])
    kinds = by_kind(labels)
    if not kinds:
        return pairs
    first, second = (
        leave_one_out(joined[:, 0], joined[:, 1:])
        for joined in (sums_by_code(code, sums) for _, code in kinds)
    )
    return both_ways([first[0], second[0], pairs[0]], (first[1], second[1]))


def shapes_over(labels: np.ndarray[Any, Any], sums: Floats) -> tuple[Floats, Floats]:
    """Degrees of freedom and skewness of the same means, (C,), for intervals that are not symmetric.

    Skewness is at most 1 either way, and 0 where means do not vary.
    """
    variance, third = _cumulants(sums[:, 0], sums[:, 1:])
    freedom: float | Floats = group_freedom(sums[:, 0])
    kinds = by_kind(labels)
    if kinds:
        joined = [sums_by_code(code, sums) for _, code in kinds]
        first, second = (_cumulants(sums_of_kind[:, 0], sums_of_kind[:, 1:]) for sums_of_kind in joined)
        of_kinds = group_freedom(joined[0][:, 0]), group_freedom(joined[1][:, 0])
        variance, freedom = both_ways([first[0], second[0], variance], of_kinds)
        third = first[1] + second[1] - third
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        skewness_of_means = third / variance**1.5
    skewness = np.clip(np.where(np.isfinite(skewness_of_means), skewness_of_means, 0.0), -1.0, 1.0)
    return np.broadcast_to(freedom, skewness.shape), skewness


def both_ways(variances: Sequence[Floats], freedom: tuple[float, float]) -> tuple[Floats, Floats]:
    """The variance under two-way clustering, and its degrees of freedom.

    From the variances over the groups of the first kind, of the second, and over their pairs: the sum of the
    first two less the third (Cameron, Gelbach and Miller 2011, doi:10.1198/jbes.2010.07136), but no less
    than either of them. Degrees of freedom are Satterthwaite's, but no fewer than those of both kinds.

    >>> both_ways([np.array([4.0]), np.array([1.0]), np.array([0.5])], (9.0, 30.0))
    (array([4.5]), array([11.1809816]))
    """
    first, second, pairs = variances
    variance = np.maximum(np.maximum(first, second), first + second - pairs)
    with np.errstate(invalid="ignore", divide="ignore"):
        satterthwaite = variance**2 / (first**2 / freedom[0] + second**2 / freedom[1])
    return variance, np.fmax(satterthwaite, min(freedom))


def effective_groups(weight: Floats) -> float:
    """The effective number of groups: the number of groups of equal weight that are as informative."""
    total = weight.sum()
    share = weight / total if total > 0 else weight
    return float(1 / (share @ share)) if total > 0 else 0.0


def batches(n_replicates: int, width: int) -> Iterator[int]:
    """Sizes of batches of replicates that take `width` numbers each.

    >>> list(batches(5, 2**21))
    [2, 2, 1]
    """
    size = max(1, _NUMBERS_AT_ONCE // max(width, 1))
    for start in range(0, n_replicates, size):
        yield min(size, n_replicates - start)


class ClusterSums:
    """The sums of groups while rows come in, a block at a time; by a kernel where there is `gathered`."""

    def __init__(
        self,
        labels: np.ndarray[Any, Any],
        n_rules: int,
        n_cells: int,
        *,
        compiled: bool = False,
        gathered: GatheredSums | None = None,
    ) -> None:
        self._labels = labels
        self._add_rows = None
        if compiled:
            from verax.kernels.counting import add_rows

            self._add_rows = add_rows
        self.gathered: GatheredSums | None = gathered
        # Where a kernel gathers rows, few are left, or none.
        self._n_rules = n_rules
        self._sums: Sum | None = None
        self._infinite = np.zeros((len(labels), n_rules), bool)
        self._n_classes = math.isqrt(n_cells)
        self._n_cells = n_cells
        # Few cells of few groups are kept as a table, others as runs of those that occur.
        n_keys = len(labels) * n_cells
        tabled = n_keys <= (_COMPILED_TABLE if compiled else _TABLE) and gathered is None
        self._table = Sum.zeros(n_keys) if tabled else None
        self._runs: list[Cells] = []

    def __add__(self, other: ClusterSums) -> ClusterSums:
        """Add the sums of other rows of the same groups, in place."""
        if other._sums is not None:
            self._sums = other._sums if self._sums is None else self._sums + other._sums
            self._infinite |= other._infinite
        self._runs += other._runs
        if self._table is not None and other._table is not None:
            self._table += other._table
        if self.gathered is not None and other.gathered is not None:
            self.gathered.merge(other.gathered)
        return self

    def add(self, codes: Any, weights: Any, positive: Any, losses: Sequence[Any], decided: Decided) -> None:
        """Take in rows: their groups, weights, whether these are positive, losses, outcomes and decisions."""
        sums = self._sums = self._zeros() if self._sums is None else self._sums
        columns = [weights, weights * decided.right(len(weights))]
        for r, loss in enumerate(losses):
            infinite = loss == np.inf
            if infinite.any():
                self._infinite[codes[infinite & positive], r] = True
                loss = np.where(infinite, 0.0, loss)
            columns.append(weights * loss)
        if self._add_rows is not None:
            self._add_rows(codes, np.stack(columns), sums.high, sums.low)
        else:
            sums.add_at(codes, columns)
        if self._n_cells:
            keys = decided.at(codes) * self._n_cells + decided.y * self._n_classes + decided.decision
            shares = decided.weights(weights)
            assert shares is not None
            if self._table is not None and self._add_rows is not None:
                high, low = (column.reshape(-1, 1) for column in (self._table.high, self._table.low))
                self._add_rows(keys, np.reshape(shares, (1, -1)), high, low)
            elif self._table is not None:
                self._table.add_at(keys, shares)
            else:
                self._push(Cells.of(keys, shares, self._n_cells))

    def _zeros(self) -> Sum:
        """Empty sums."""
        return Sum.zeros((len(self._labels), 2 + self._n_rules))

    def _push(self, run: Cells) -> None:
        """Keep a run; merge all when those since the last merge are many and as long as what came before."""
        self._runs.append(run)
        new = sum(len(run.keys) for run in self._runs[1:])
        if new > max(_PENDING, len(self._runs[0].keys)):
            self._runs = [Cells.merged(self._runs, self._n_cells)]

    def total(self) -> Clusters:
        """The sums of all rows so far."""
        runs = self._runs
        if self._table is not None:
            table = self._table.settled()
            keys = np.flatnonzero(table.high)
            runs = [Cells(keys, Sum(table.high[keys], table.low[keys]), self._n_cells)]
        if self.gathered is None:
            cells = Cells.merged(runs, self._n_cells)
            sums = (self._zeros() if self._sums is None else self._sums).settled()
            return Clusters(self._labels, sums, self._infinite, cells)
        cells = _LateCells(self.gathered.cells)
        cells = Cells.merged([cells, *runs], self._n_cells) if runs else cells
        late = LateGroupSums(self.gathered)
        sums = late if self._sums is None else self._sums.settled() + late
        return Clusters(self._labels, sums, self._infinite, cells)


def sums_by_label(labels: np.ndarray[Any, Any], values: Floats) -> tuple[np.ndarray[Any, Any], Floats]:
    """The different labels in order, and the sum of the rows of `values` that have each."""
    different, code = distinct(labels)
    return different, sums_by_code(code, values)


class GroupLabels(Spec):
    """The names of groups, in order, of one kind or of two; or None.

    Parameters
    ----------
    ids : int | None
        How many of the fields identify groups; None for all, 0 if they are no ids.
    """

    def __init__(self, ids: int | None = None) -> None:
        super().__init__("by label", optional=True)
        self._ids = ids

    def stored(self, name: str, values: dict[str, Any], specs: Mapping[str, Spec]) -> dict[str, Any]:
        """The fields with the ids of groups as they are to be stored, in their order."""
        labels = values[name]
        stored = None if labels is None or self._ids == 0 else to_store(labels, self._ids)
        if stored is None:
            return values
        different, place = distinct(stored)
        changed = {**values, name: different}
        for other, spec in specs.items():
            if getattr(spec, "by", "") != name or values[other] is None:
                continue
            if isinstance(spec, CellsByLabel):
                cells = values[other].relabeled(place, len(different))
                changed[other] = Cells.merged([cells], cells.n_cells)
            else:
                changed[other] = np.empty_like(values[other])
                changed[other][place] = values[other]
        return changed

    def merged(self, name: str) -> str:
        return f"_{name}"

    def read(self, stored: Any, sizes: Sizes) -> Any:
        labels = column(stored)
        if labels.ndim != 1 or (labels.dtype.names or BOTH) != BOTH:
            raise UnreadableError("is no column of names")
        different, place = distinct(labels)
        if len(different) != len(labels) or not np.array_equal(place, np.arange(len(labels))):
            raise UnreadableError("has names that repeat or are not in order")
        fit(labels.shape, ("groups",), sizes)
        return labels


class ByLabel(Spec):
    """(G, ...) sums over the rows of each group, whose names are in another field; or None."""

    def __init__(self, *shape: Size, labels: str = "labels") -> None:
        super().__init__("by label", optional=True)
        self._shape: tuple[Size, ...] = ("groups", *shape)
        self.by: str = labels
        self.names: Mapping[str, Any] = {"by_label": _by_label}

    def before(self, name: str) -> list[str]:
        arguments = ", ".join(f"{side}.{field}" for side in ("self", "other") for field in (self.by, name))
        return [f"_{self.by}, _{name} = by_label({arguments})"]

    def merged(self, name: str) -> str:
        return f"_{name}"

    def unpack(self, stored: Any, sizes: Sizes) -> Any:
        if (stored is None) != ("groups" not in sizes):
            raise UnreadableError("does not belong to the names of groups")
        return super().unpack(stored, sizes)

    def read(self, stored: Any, sizes: Sizes) -> Floats:
        sums: Floats = numbers(stored, np.float64, self._shape, sizes)
        return sums


class CellsByLabel(Spec):
    """Weights of cells by group, whose names are in another field; or None."""

    def __init__(self, n_cells: Size, *, labels: str = "labels") -> None:
        super().__init__("by label", optional=True)
        self._n_cells = n_cells
        self.by: str = labels
        self.names: Mapping[str, Any] = {"cells_by_label": _cells_by_label}

    def before(self, name: str) -> list[str]:
        arguments = ", ".join(f"{side}.{field}" for side in ("self", "other") for field in (self.by, name))
        return [f"_{self.by}, _{name} = cells_by_label({arguments})"]

    def merged(self, name: str) -> str:
        return f"_{name}"

    def pack(self, value: Cells | None) -> dict[str, Any] | None:
        return None if value is None else {"keys": value.keys, "sums": value.sums.to_values()}

    def read(self, stored: Any, sizes: Sizes) -> Cells:
        return cells_read(mapping(stored), sized(self._n_cells, sizes), sizes.get("groups", 0))


_CLUSTERS = {
    "labels": GroupLabels(),
    "sums": Sums("groups", "2+rules"),
    "infinite": Array("?", "groups", "rules"),
    "n_cells": Whole(most=2**40),
}


def cells_read(stored: Mapping[str, Any], n_cells: int, n_groups: int) -> Cells:
    """Stored weights of cells by group."""
    sizes = {"most": n_groups * n_cells - 1}
    keys = Array("i8", "keys", least=0, most="most", increasing=True)
    return Cells(**fields_of({"keys": keys, "sums": Sums("keys", least=0)}, stored, sizes), n_cells=n_cells)


def _cells_by_label(labels: Any, cells: Any, other_labels: Any, other_cells: Any) -> tuple[Any, Any]:
    """The cells of both by label; none where one side has none."""
    if cells is None or other_cells is None:
        return None, None
    different, place = distinct(joined_names(*comparable(labels, other_labels)))
    n, both = len(labels), len(different)
    return different, cells.relabeled(place[:n], both) + other_cells.relabeled(place[n:], both)


def _by_label(labels: Any, sums: Any, other_labels: Any, other_sums: Any) -> tuple[Any, Any]:
    """The sums of both by label; none where one side has none."""
    if sums is None or other_sums is None:
        return None, None
    if sums.shape[1:] != other_sums.shape[1:] or labels.dtype.names != other_labels.dtype.names:
        raise VeraxError("Summaries of different groups or settings cannot be merged.")
    different, place = distinct(joined_names(*comparable(labels, other_labels)))
    # Either side has a label once.
    joined = np.zeros((len(different), *sums.shape[1:]))
    joined[place[: len(labels)]] = sums
    joined[place[len(labels) :]] += other_sums
    return different, joined


def sums_by_code(code: Ints, values: Floats) -> Floats:
    """The sums of the rows of `values` that have each of the codes 0, 1, ..."""
    sums = np.zeros((int(code.max(initial=-1)) + 1, *values.shape[1:]))
    np.add.at(sums, code, values)
    return sums
