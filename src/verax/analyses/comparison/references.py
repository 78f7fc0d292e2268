"""Simple forecasts, the same for all cases, against which skill is measured.

"frequencies" predicts for each row the class frequencies of all other groups (of all other rows without
groups; with two kinds of groups, the first kind counts). Frequencies are weighted as rows are. Half a row of
mean weight is added to every class. So a class that happened in one group only has a positive probability
there, and without other rows all classes are equally likely. No folds, seed or order are needed: class counts
by group give the loss of every row.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from verax.common.specs import Whole
from verax.common.summaries import Summary, merges
from verax.engines.clusters import Cells, CellsByLabel, GroupLabels
from verax.engines.sums import Sum, Sums
from verax.errors import InputError, show
from verax.inputs.arrays import Floats, Ints, to_host
from verax.inputs.forecasts import Forecasts, ShareBatch
from verax.inputs.groups import Groups, by_kind
from verax.inputs.handles import Part, Recipe
from verax.inputs.lists.rows import ListRows
from verax.inputs.lists.toplists import TopLists
from verax.scores.base import Rule, losses_of

FREQUENCIES, UNIFORM = "frequencies", "uniform"
# Number of probabilities scored at a time.
_AT_ONCE = 2**20


def uniform_losses(rules: Sequence[Rule], part: Part) -> list[Floats]:
    """The losses of the same probability for every class.

    They depend on the outcome only. With top lists, they depend on the number of classes that a row can have:
    an empty list leaves each of these the same probability.
    """
    rows = part.rows
    lists = next((listed for listed in part.models.values() if isinstance(listed, ListRows)), None)
    if lists is not None:
        if lists.choices is None:
            return [np.full(rows.n_rows, loss) for loss in _empty_losses(rules, rows.n_classes)]
        sizes, back = np.unique(lists.choices, return_inverse=True)
        scored = [_empty_losses(rules, size) for size in sizes.tolist()]
        return [np.array(losses, float)[back] for losses in zip(*scored, strict=True)]
    batch: Any = rows.batch(0, rows.n_rows)
    if isinstance(batch, ShareBatch):
        k = rows.n_classes
        of_classes = losses_of(rules, Forecasts(np.arange(k), np.full((k, k), 1 / k)))
        return [to_host(batch.shares) @ np.asarray(losses, float) for losses in of_classes]
    happened, back = np.unique(to_host(batch.y), return_inverse=True)
    simple = Forecasts(happened, np.full((len(happened), rows.n_classes), 1 / rows.n_classes))
    return [np.asarray(losses, float)[back] for losses in losses_of(rules, simple)]


def _empty_losses(rules: Sequence[Rule], n_classes: int) -> list[float]:
    """The loss of an empty list by each rule; a single class is certain, as in a list that names it."""
    certain = n_classes == 1
    listed = np.zeros(int(certain), np.int64), np.ones(int(certain)), np.array([0, int(certain)])
    rows = TopLists(*listed, max(2, n_classes)).with_outcomes(np.zeros(1, np.int64))
    return [float(losses[0]) for losses in losses_of(rules, rows)]


def check_reference(reference: str, names: Sequence[str], *, lists: bool) -> None:
    """Refuse a reference that is neither a simple forecast nor a model.

    Class frequencies cannot be a reference for top lists, whose classes are not all known beforehand.
    """
    if lists and reference != UNIFORM:
        raise InputError(
            f"must be {UNIFORM} or one of the models where there are top lists, not {show(reference)}",
            argument="reference",
            found=f"the models are {', '.join(names)}",
            values=[reference],
        )
    if reference not in (FREQUENCIES, UNIFORM):
        known = ", ".join([FREQUENCIES, UNIFORM, *names])
        raise InputError(
            f"must be one of {known}, not {show(reference)}", argument="reference", values=[reference]
        )


# ---- class frequencies -------------------------------------------------------------------------


class ClassCounts(Summary, kind="class counts"):
    """How often each class happened, in all rows and in each group.

    Attributes
    ----------
    n : int
        The number of rows that have weight.
    weights : Sum
        (K,) the weight of each class.
    labels : array or None
        The groups, in order; of two kinds those of the first.
    cells : Cells or None
        The weight of each class in each group.
    """

    n: int = merges(Whole())
    weights: Sum = merges(Sums("classes", least=0))
    labels: Any = merges(GroupLabels(), default=None)
    cells: Cells | None = merges(CellsByLabel("classes"), default=None)

    @classmethod
    def of(cls, y: Ints, n_classes: int, weights: Floats | None, groups: Groups | None) -> ClassCounts:
        """Count the classes of some rows."""
        n = len(y) if weights is None else int(np.count_nonzero(weights))
        if groups is None:
            return cls(n, _total(y, weights, n_classes))
        labels, codes = _first_kind(groups)
        return cls.of_cells(n, labels, Cells.of(codes * n_classes + y, weights, n_classes))

    @classmethod
    def of_cells(cls, n: int, labels: Any, cells: Cells) -> ClassCounts:
        """The counts from the weight of each class in each group."""
        # From the same sums, so that a class of a single group leaves exactly nothing for the others.
        total = _total(cells.keys % cells.n_cells, cells.sums.high, cells.n_cells)
        return cls(n, total, labels, cells)


@dataclass(frozen=True)
class CountRecipe(Recipe[ClassCounts], cases=True):
    """Count classes."""

    def take(self, part: Part) -> ClassCounts:
        """Summarise one part."""
        batch: Any = part.rows.batch(0, part.n_rows)
        weights = None if batch.weights is None else to_host(batch.weights)
        if isinstance(batch, ShareBatch):
            counts = CountRecipe().take(part.in_pairs)
            n = part.n_rows if weights is None else int(np.count_nonzero(weights))
            # If cases are the groups of their pairs, rows are independent.
            total = ClassCounts(n, counts.weights)
            return total if part.rows.groups is None else replace(counts, n=n)
        return ClassCounts.of(to_host(batch.y), part.rows.n_classes, weights, part.rows.groups)


@dataclass(frozen=True)
class OtherGroups:
    """The forecast "frequencies" for every row: the class frequencies of all other groups.

    Attributes
    ----------
    counts : ClassCounts
        The counts of all rows.
    copies : bool
        Whether weights are numbers of rows: a row then leaves out one of them.
    """

    counts: ClassCounts
    copies: bool = False

    def losses(
        self, rules: Sequence[Rule], y: Any, weights: Floats | None, groups: Groups | None
    ) -> list[Floats]:
        """The losses of some of the counted rows, by each rule."""
        k, cells = len(self.counts.weights.high), self.counts.cells
        if y.ndim == 2:
            return self._losses_of_shares(rules, y, weights, groups)
        if groups is not None and cells is not None:
            # Rows of the same group and class share their loss.
            labels, codes = _first_kind(groups)
            place = np.searchsorted(self.counts.labels, labels)
            keys, back = np.unique(place[codes] * k + y, return_inverse=True)
            owner, happened = np.divmod(keys, k)
            scored = [self._scored(rules, happened[at], losses) for at, losses in self._of_groups(owner)]
        elif weights is None or self.copies:
            happened, back = np.unique(y, return_inverse=True)
            scored = [self._scored(rules, happened, _rows_of(happened, np.ones(len(happened)), k))]
        else:
            happened, back = y, np.arange(len(y))
            size = max(1, _AT_ONCE // k)
            at = [slice(start, start + size) for start in range(0, len(y), size)]
            scored = [self._scored(rules, y[some], _rows_of(y[some], weights[some], k)) for some in at]
        return [np.concatenate(losses)[back] for losses in zip(*scored, strict=True)]

    def _losses_of_shares(
        self, rules: Sequence[Rule], shares: Floats, weights: Floats | None, groups: Groups | None
    ) -> list[Floats]:
        """The losses of rows with (n, K) shares of the classes."""
        n, k = shares.shape
        order = np.arange(n)
        if groups is not None and self.counts.cells is not None:
            labels, codes = _first_kind(groups)
            owner = np.searchsorted(self.counts.labels, labels)[codes]
            order = np.argsort(owner, kind="stable")
            parts = self._of_groups(owner[order])
            scored = [self._scored(rules, shares[order[at]], left_out) for at, left_out in parts]
        else:
            left_out = shares if weights is None or self.copies else shares * weights[:, None]
            size = max(1, _AT_ONCE // k)
            at = [slice(start, start + size) for start in range(0, n, size)]
            scored = [self._scored(rules, shares[some], Sum.of(left_out[some])) for some in at]
        back = np.empty(n, np.int64)
        back[order] = np.arange(n)
        return [np.concatenate(pieces)[back] for pieces in zip(*scored, strict=True)]

    def _scored(self, rules: Sequence[Rule], happened: Any, left_out: Sum) -> list[Floats]:
        """The losses of outcomes or shares, by frequencies without the (n, K) counts `left_out`."""
        counts = self.counts
        half = 0.5 if self.copies else 0.5 * float(counts.weights.high.sum()) / counts.n
        high, low = counts.weights.high - left_out.high, counts.weights.low - left_out.low
        # Rounding must not make counts negative.
        p = np.maximum(high + low, 0.0) + half
        p /= p.sum(axis=1, keepdims=True)
        rows = Forecasts(happened, p, raters="shares" if happened.ndim == 2 else None)
        return [np.asarray(to_host(losses), float) for losses in losses_of(rules, rows)]

    def _of_groups(self, owner: Ints) -> Iterator[tuple[slice, Sum]]:
        """Slices of keys, whose groups are in order, with the (n, K) counts of the group of each key."""
        cells, k = self.counts.cells, len(self.counts.weights.high)
        assert cells is not None
        size = max(1, _AT_ONCE // k)
        for start in range(0, len(owner), size):
            some = owner[start : start + size]
            groups, place = np.unique(some, return_inverse=True)
            first, last = (np.searchsorted(cells.keys, (groups + i) * k) for i in (0, 1))
            n = last - first
            at = np.arange(n.sum()) + np.repeat(first - np.cumsum(n) + n, n)
            counts = Sum.zeros((len(groups), k))
            where = np.repeat(np.arange(len(groups)), n), cells.keys[at] % k
            counts.high[where], counts.low[where] = cells.sums.high[at], cells.sums.low[at]
            yield slice(start, start + len(some)), Sum(counts.high[place], counts.low[place])


def _first_kind(groups: Groups) -> tuple[Any, Ints]:
    """The sorted labels of the first kind of groups, and the place of each row among them."""
    kinds = by_kind(groups.labels)
    return kinds[0][0] if kinds else groups.labels, groups.first_kind


def _total(classes: Ints, weights: Floats | None, n_classes: int) -> Sum:
    """(K,) sums of weights by class, without rounding, because small rests of large sums matter."""
    if weights is None:
        return Sum.of(np.bincount(classes, minlength=n_classes))
    total, order = Sum.zeros(n_classes), np.argsort(classes, kind="stable")
    happened, first = np.unique(classes[order], return_index=True)
    for k, of_class in zip(happened.tolist(), np.split(weights[order], first[1:]), strict=True):
        terms = of_class.tolist()
        total.high[k] = math.fsum(terms)
        total.low[k] = math.fsum([*terms, -total.high[k]])
    return total


def _rows_of(happened: Ints, weights: Floats, n_classes: int) -> Sum:
    """(n, K) counts of single rows."""
    counts = Sum.zeros((len(happened), n_classes))
    counts.high[np.arange(len(happened)), happened] = weights
    return counts
