"""Sums that can be merged: everything that verax aggregates is one of these.

A batch is one update, a stream is a fold of updates, and a cluster is a merge of tallies. However
the rows are cut, the numbers agree to rounding: totals are kept to twice the working precision.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from verax.arrays import Array, to_host
from verax.clusters import Clusters, Groups
from verax.errors import VeraxError
from verax.rowstats import Formula, Plan, RowBatch, Rows, RowStats, compute, kernels, scan, validate

Floats = np.ndarray[Any, np.dtype[np.float64]]

# Beyond this many classes a table of K x K counts would outgrow the promise of constant memory.
CONFUSION_UP_TO = 1024
# How many rows are remembered by number, of those whose outcome was given probability zero.
ROWS_KEPT = 100


@dataclass(frozen=True)
class Sum:
    """A vector of sums as unevaluated pairs of doubles (Knuth's two-sum), about 32 digits."""

    high: Floats
    low: Floats

    @classmethod
    def zeros(cls, n: int) -> Sum:
        return cls(np.zeros(n), np.zeros(n))

    def __add__(self, other: Sum) -> Sum:
        high = self.high + other.high
        virtual = high - self.high
        error = (self.high - (high - virtual)) + (other.high - virtual)
        low = error + (self.low + other.low)
        total = high + low
        return Sum(total, low - (total - high))

    def plus(self, terms: Floats) -> Sum:
        """With one more term for every element."""
        return self + Sum(terms, np.zeros_like(terms))


@dataclass(frozen=True)
class Moments:
    """Weighted first and second moments of several losses over the same rows.

    Attributes
    ----------
    weight, total : sums over the rows with a finite loss, of w and of w times the loss.
    m2 : the sum of w times the squared deviation from the mean, over the same rows.
    infinite : the sum of w over the rows with an infinite loss.
    """

    weight: Sum
    total: Sum
    m2: Floats
    infinite: Sum

    @classmethod
    def zeros(cls, n: int) -> Moments:
        return cls(Sum.zeros(n), Sum.zeros(n), np.zeros(n), Sum.zeros(n))

    @classmethod
    def from_sums(cls, weight: float, sums: Floats, shift: Floats) -> Moments:
        """From one chunk's sums of w*d, w*d*d (d = loss - shift) and of w at infinity: (R, 3)."""
        infinite = np.ascontiguousarray(sums[:, 2])
        finite = weight - infinite
        with np.errstate(invalid="ignore", divide="ignore"):
            m2 = np.where(finite > 0, sums[:, 1] - sums[:, 0] ** 2 / finite, 0.0)
        zero = np.zeros_like(finite)
        total = Sum(sums[:, 0].copy(), zero).plus(shift * finite)
        return cls(Sum(finite, zero), total, np.maximum(m2, 0.0), Sum(infinite, zero))

    def __add__(self, other: Moments) -> Moments:
        weight = self.weight + other.weight
        with np.errstate(invalid="ignore", divide="ignore"):
            gap = self.finite_mean - other.finite_mean
            between = gap * gap * (self.weight.high * other.weight.high / weight.high)
        both = (self.weight.high > 0) & (other.weight.high > 0)
        m2 = self.m2 + other.m2 + np.where(both, between, 0.0)
        return Moments(weight, self.total + other.total, m2, self.infinite + other.infinite)

    @property
    def finite_mean(self) -> Floats:
        """The weighted mean over the rows with a finite loss; NaN where there are none."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return self.total.high / self.weight.high + self.total.low / self.weight.high

    @property
    def mean(self) -> Floats:
        """The weighted mean; infinite as soon as one row with weight is."""
        return np.where(self.infinite.high > 0, np.inf, self.finite_mean)

    @property
    def std(self) -> Floats:
        """The weighted standard deviation of the losses over the rows; NaN where one is infinite."""
        with np.errstate(invalid="ignore", divide="ignore"):
            deviation = np.sqrt(self.m2 / self.weight.high)
        return np.where(self.infinite.high > 0, np.nan, deviation)


@dataclass
class Counts:
    """Weights of outcomes against decisions, and the outcomes that were given probability zero.

    Decisions are the most likely class, the lowest index where several are. Beyond CONFUSION_UP_TO
    classes only the outcomes and the correct decisions are counted, and `confusion` is None.
    """

    n_classes: int
    confusion: Floats | None = None
    outcomes: Floats = field(default_factory=lambda: np.zeros(0))
    correct: float = 0.0
    n_zero: int = 0
    zero_rows: list[int] = field(default_factory=list)

    @classmethod
    def zeros(cls, n_classes: int, *, decisions: bool = True) -> Counts:
        """Nothing counted yet; without `decisions` only the outcomes given probability zero will be."""
        if not decisions:
            return cls(n_classes)
        square = (n_classes, n_classes)
        confusion = np.zeros(square) if n_classes <= CONFUSION_UP_TO else None
        return cls(n_classes, confusion, np.zeros(n_classes))

    def add(self, y: Any, decision: Any, weights: Any) -> None:
        """Count rows by NumPy calls; the compiled path has a kernel for this."""
        if self.confusion is None:
            self.outcomes += np.bincount(y, weights, minlength=self.n_classes)
            self.correct += float(np.sum((y == decision) * (1.0 if weights is None else weights)))
        else:
            cells = np.bincount(y * self.n_classes + decision, weights, self.confusion.size)
            self.confusion += cells.reshape(self.confusion.shape)

    def add_zeros(self, rows: Sequence[int]) -> None:
        """Count rows whose outcome had probability zero, and remember the first of them."""
        self.n_zero += len(rows)
        self.zero_rows = sorted([*self.zero_rows, *rows])[:ROWS_KEPT]

    def merge(self, other: Counts, offset: int) -> Counts:
        """Both together; the row numbers of `other` count on from `offset`."""
        confusion = None
        if self.confusion is not None and other.confusion is not None:
            confusion = self.confusion + other.confusion
        merged = Counts(
            self.n_classes,
            confusion,
            self.outcomes + other.outcomes,
            self.correct + other.correct,
            self.n_zero + other.n_zero - len(other.zero_rows),
            self.zero_rows,
        )
        merged.add_zeros([offset + row for row in other.zero_rows])
        return merged

    @property
    def per_class(self) -> Floats:
        """The weight of each class among the outcomes."""
        return self.outcomes if self.confusion is None else self.confusion.sum(axis=1)

    @property
    def n_correct(self) -> float:
        """The weight of the rows whose decision was the outcome."""
        return self.correct if self.confusion is None else float(np.trace(self.confusion))


class Tally:
    """The mergeable sums of several rules over rows of K classes.

    >>> import verax as vx
    >>> from verax.tally import Tally
    >>> first = Tally([vx.brier], 2).update(vx.Forecasts([0], [[0.8, 0.2]]))
    >>> second = Tally([vx.brier], 2).update(vx.Forecasts([1], [[0.6, 0.4]]))
    >>> round(float(first.merge(second).moments.mean[0]), 3)
    0.4
    """

    def __init__(
        self, rules: Sequence[Formula], n_classes: int, *, counts: bool = True, decisions: bool = True
    ) -> None:
        self.rules = tuple(rules)
        self.n_classes = n_classes
        self.decisions = decisions
        self.n_rows = 0
        self.weight = Sum.zeros(1)
        self.moments = Moments.zeros(len(self.rules))
        self.counts = Counts.zeros(n_classes, decisions=decisions) if counts else None
        self.clusters: Clusters | None = None

    def update(self, forecasts: Rows) -> Tally:
        """Take in all rows of `forecasts`; returns the tally itself."""
        self._check_same(forecasts.n_classes)
        if self.n_rows and (forecasts.groups is None) != (self.clusters is None):
            raise VeraxError("Either all rows of a tally belong to groups or none do.")
        decided = self.decisions and (self.counts is not None or forecasts.groups is not None)
        needs = _needs(self.rules) | ({"decision"} if decided else set())
        chunks = _Chunks(self, forecasts)
        visitors = scan(forecasts, needs, lambda: _Visitor(self, chunks, forecasts.groups))
        for weight, sums in zip(chunks.weight, chunks.sums, strict=True):
            self.moments = self.moments + Moments.from_sums(float(weight), sums, chunks.shift)
            self.weight = self.weight.plus(np.array([weight]))
        for visitor in visitors:
            if self.counts is not None and visitor.counts is not None:
                self.counts = self.counts.merge(visitor.counts, self.n_rows)
            self.clusters = _both(self.clusters, visitor.clusters)
        self.n_rows += forecasts.n_rows
        return self

    def merge(self, other: Tally) -> Tally:
        """The tally of these rows followed by the other's; neither is changed."""
        if self.rules != other.rules:
            raise VeraxError("Tallies of different rules cannot be merged.")
        self._check_same(other.n_classes)
        if self.n_rows and other.n_rows and (self.clusters is None) != (other.clusters is None):
            raise VeraxError("Either all rows of a tally belong to groups or none do.")
        merged = Tally(self.rules, self.n_classes, counts=False, decisions=self.decisions)
        merged.n_rows = self.n_rows + other.n_rows
        merged.weight = self.weight + other.weight
        merged.moments = self.moments + other.moments
        if self.counts is not None and other.counts is not None:
            merged.counts = self.counts.merge(other.counts, self.n_rows)
        merged.clusters = _both(self.clusters, other.clusters)
        return merged

    def _check_same(self, n_classes: int) -> None:
        if n_classes != self.n_classes:
            raise VeraxError(f"This tally has {self.n_classes} classes; the rows have {n_classes}.")


class _Chunks:
    """Where the threads leave the sums of each chunk of rows, and the shift they subtract.

    The first row's losses serve as the shift: near enough to the mean that squares do not cancel.
    """

    def __init__(self, tally: Tally, forecasts: Rows) -> None:
        plan = Plan.of(forecasts)
        self.sums = np.zeros((plan.n_chunks, len(tally.rules), 3))
        self.weight = np.zeros(plan.n_chunks)
        self.fused = None
        if plan.compiled and kernels() is not None:
            from verax._fusion import fuse

            self.fused = fuse(tally.rules, tally.n_classes, forecasts.weights is not None)
        self.shift = self._first_losses(tally, forecasts.batch(0, 1))

    @staticmethod
    def _first_losses(tally: Tally, first: RowBatch) -> Floats:
        # The row may be invalid: the pass that follows finds out.
        if not validate(first)[0]:
            return np.zeros(len(tally.rules))
        with np.errstate(divide="ignore", invalid="ignore"):
            stats = compute(first, _needs(tally.rules))
            losses = np.array([float(to_host(stats.loss(rule))[0]) for rule in tally.rules])
        return np.where(np.isfinite(losses), losses, 0.0)


class _Visitor:
    """One thread's share of an update."""

    def __init__(self, tally: Tally, chunks: _Chunks, groups: Groups | None) -> None:
        self._rules = tally.rules
        self._chunks = chunks
        self._block = np.zeros((len(tally.rules), 3))
        self._decisions = tally.decisions
        self.counts = None
        if tally.counts is not None:
            self.counts = Counts.zeros(tally.n_classes, decisions=tally.decisions)
        self.clusters: Clusters | None = None
        self._groups = groups

    def visit(self, stats: RowStats, batch: RowBatch, chunk: int) -> None:
        self._chunks.sums[chunk] += self._sums(stats, batch)
        n = int(batch.y.shape[0])
        self._chunks.weight[chunk] += n if batch.weights is None else float(batch.xp.sum(batch.weights))
        if self.counts is not None:
            self._count(self.counts, stats, batch)
        if self._groups is not None:
            self.clusters = _both(self.clusters, self._cluster(self._groups, stats, batch))

    def _sums(self, stats: RowStats, batch: RowBatch) -> Floats:
        chunks, block = self._chunks, self._block
        if stats.buffer is not None and chunks.fused is not None:
            kernel, constants = chunks.fused
            weights = _NO_WEIGHTS if batch.weights is None else batch.weights
            kernel(stats.buffer, batch.y.shape[0], weights, constants, chunks.shift, block)
            if np.isfinite(block).all():
                return block
        return _block_sums(self._rules, stats, batch, chunks.shift)

    def _cluster(self, groups: Groups, stats: RowStats, batch: RowBatch) -> Clusters:
        y = to_host(batch.y)
        k = stats.n_classes if self._decisions else 1
        cells = y * k + to_host(stats.decision) if self._decisions else np.zeros(len(y), np.int64)
        weights = np.ones(len(y)) if batch.weights is None else to_host(batch.weights)
        losses = [to_host(loss) for loss in _losses(self._rules, stats)]
        return Clusters.of(groups.labels, batch.groups, weights, losses, cells, k * k)

    def _count(self, counts: Counts, stats: RowStats, batch: RowBatch) -> None:
        if not self._decisions or not self._count_decisions(counts, stats, batch):
            zero = stats.impossible
            zero = zero if batch.weights is None else zero & (batch.weights > 0)
            if bool(batch.xp.any(zero)):
                counts.add_zeros((batch.start + np.flatnonzero(to_host(zero))).tolist())

    def _count_decisions(self, counts: Counts, stats: RowStats, batch: RowBatch) -> bool:
        """Count outcomes against decisions; True where no outcome is known to have had probability zero."""
        y, decision = to_host(batch.y), to_host(stats.decision)
        weights = None if batch.weights is None else to_host(batch.weights)
        module = kernels() if stats.buffer is not None else None
        if module is not None and counts.confusion is not None:
            w = _NO_WEIGHTS if weights is None else weights
            return bool(module.count(y, decision, stats.p_true, w, counts.confusion) == 0)
        counts.add(y, decision, weights)
        return False


_NO_WEIGHTS = np.zeros(0)


def _both(a: Clusters | None, b: Clusters | None) -> Clusters | None:
    return a + b if a is not None and b is not None else a if b is None else b


def _needs(rules: Sequence[Formula]) -> set[str]:
    return {name for rule in rules for name in rule.needs}


def _losses(rules: Sequence[Formula], stats: RowStats) -> list[Array]:
    with np.errstate(divide="ignore", invalid="ignore"):
        return [stats.loss(rule) for rule in rules]


def _block_sums(rules: Sequence[Formula], stats: RowStats, batch: RowBatch, shift: Floats) -> Floats:
    """The sums of one block, (R, 3), brought home from the device in one piece."""
    xp = stats.xp
    sums = []
    for loss, reference in zip(_losses(rules, stats), shift.tolist(), strict=True):
        infinite = loss == xp.inf
        d = xp.where(infinite, xp.zeros_like(loss), loss - reference)
        w = xp.ones_like(loss) if batch.weights is None else batch.weights
        at_infinity = xp.where(infinite, w, xp.zeros_like(w))
        sums.append(xp.stack([xp.sum(w * d), xp.sum(w * d * d), xp.sum(at_infinity)]))
    return to_host(xp.stack(sums)).astype(np.float64)
