"""The tally: mergeable sums of losses, decisions and groups of rows, on which every summary is built.

A batch is one update, a stream is a sequence of updates, and a cluster merges the tallies of its parts.
Merging is commutative and associative: however the rows are cut and merged, the numbers agree to 1e-12,
because totals are kept to twice the working precision.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial, reduce
from operator import add
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from verax.common.packing import UnreadableError
from verax.common.specs import Number, Spec, Truth, Whole
from verax.common.stored import LARGEST, Sizes, inside, mapping, whole
from verax.common.summaries import fields_of
from verax.common.wings import answer_to
from verax.engines.clusters import Clusters, ClusterSums
from verax.engines.counts import CONFUSION_UP_TO, ROWS_KEPT, Counts, squared_weights
from verax.engines.gathering import GatheredSums, GroupCells, Independent
from verax.engines.scan import Plan, scan_rows
from verax.engines.stats import Decided, Formula, RowStats, compute
from verax.engines.sums import (
    LateSum,
    Moments,
    MomentSums,
    Sum,
    Sums,
    check_squares,
    common_exponent,
    effective,
    exponent_of,
    sandwich,
)
from verax.errors import VeraxError
from verax.inputs.arrays import Array, Floats, Ints, to_host
from verax.inputs.groups import GroupCount, Groups, is_two_way
from verax.inputs.rows import RowBatch, Rows, numbers_of

# Rows at either end of a block that give a rough mean of the losses of its chunk.
_PROBE = 32
# How many numbers are looked at at a time where rows are looked for.
_LOOKED_AT = 2**24

# Of no rows; sums are replaced, never added to in place.
_NO_WEIGHT: Sum = Moments.zeros(1).weight

# Disjoint ranges of row numbers, in order.
Spans = tuple[tuple[int, int], ...]


class SquaredSums(NamedTuple):
    """Sums with squared weights, which intervals need.

    Attributes
    ----------
    n_positive : float
        The number of rows with a positive weight.
    weight : float
        The sum of the squared weights.
    sums : Floats
        (R, 3): for each rule the sums over rows with a finite loss of w*w, w*w*loss and w*w*loss*loss.
    cells : Floats
        Squared weights, as `Counts` keeps weights.
    """

    n_positive: float
    weight: float
    sums: Floats
    cells: Floats


class RuleSums:
    """The mergeable sums of several rules over rows of K classes.

    Weights are kept in units of 2**exponent. The exponent is 0 unless the weights are extreme.
    `square_sum` and `squares` are `weights` and `moments` with the weights squared; they are None where all
    weights are 1, because they are the same then. `n_positive` counts the rows with a positive weight.

    Rows are known by their place among all rows. Rows that do not say where they are follow those of the
    same tally. Where two tallies that are merged claim the same places, the numbers of rows become
    unknown, and the rows with an outcome of probability zero are counted but not named.

    >>> import verax as vx
    >>> from verax.engines.tally import RuleSums
    >>> first = RuleSums([vx.brier], 2).update(vx.Forecasts([0], [[0.8, 0.2]]))
    >>> second = RuleSums([vx.brier], 2).update(vx.Forecasts([1], [[0.6, 0.4]]))
    >>> round(float(first.merge(second).moments.mean[0]), 3)
    0.4
    """

    def __init__(
        self, rules: Sequence[Formula], n_classes: int, *, counts: bool = True, decisions: bool = True
    ) -> None:
        self.rules: tuple[Formula, ...] = tuple(rules)
        self.n_classes = n_classes
        self.decisions = decisions
        self.n_rows = 0
        self.spans: Spans | None = ()
        self.exponent = 0
        self.weights: Sum = _NO_WEIGHT
        self.moments: Moments = Moments.zeros(len(self.rules))
        self.n_positive: float = 0.0
        self.square_sum: Sum | None = None
        self.squares: Moments | None = None
        self.counts: Counts | None = Counts.zeros(n_classes, decisions=decisions) if counts else None
        self.clusters: Clusters | None = None

    @classmethod
    def from_sums(
        cls,
        rules: Sequence[Formula],
        n_classes: int,
        *,
        n_rows: int,
        weight: float,
        sums: Floats,
        cells: Floats,
        n_zero: int,
        squared: SquaredSums | None = None,
        start: int | None = None,
    ) -> RuleSums:
        """The tally of sums computed elsewhere.

        Parameters
        ----------
        sums : Floats
            (R, 4): for each rule the weight of the rows with a finite loss, the sums over these of w*loss
            and of w*loss*loss, and the weight of the rows with an infinite loss.
        cells : Floats
            Weights as `Counts` keeps them.
        squared : SquaredSums, optional
            The same with squared weights; may be left out where all weights are 1.
        start : int, optional
            The number of the first row; without it, rows are not known by number.
        """
        tally = cls(rules, n_classes)
        tally.n_rows, tally.spans = n_rows, None if start is None else ((start, start + n_rows),)
        tally.weights, tally.n_positive = Sum.of([weight]), weight
        finite, first, second, infinite = np.reshape(sums, (len(tally.rules), 4)).T
        tally.moments = Moments.from_sums(finite, first, second, infinite=infinite, count=infinite > 0)
        tally.counts = Counts(n_classes, Sum.of(cells), n_zero)
        if squared is not None:
            tally.n_positive, tally.square_sum = squared.n_positive, Sum.of([squared.weight])
            tally.squares = Moments.from_sums(*np.reshape(squared.sums, (len(tally.rules), 3)).T)
            tally.counts.squares = Sum.of(squared.cells)
        return tally

    @property
    def weight(self) -> float:
        """The sum of all weights; infinite where it is no longer a number."""
        weight = float(self.weights.high[0])
        return weight if self.exponent == 0 else float(self.unscaled(self.weights.high)[0])

    @property
    def n_groups(self) -> GroupCount | None:
        """The number of clusters, of both kinds where there are two; None if rows stand for themselves."""
        return None if self.clusters is None else self.clusters.count

    @property
    def squared(self) -> tuple[float, Moments]:
        """The sum of the squared weights, and the moments with the weights squared."""
        if self.square_sum is None or self.squares is None:
            return float(self.weights.high[0]), self.moments
        return float(self.square_sum.high[0]), self.squares

    def variances(self, *, copies: bool = False) -> Floats:
        """The variance of the mean of each rule over independent rows (`copies`: of repeated rows)."""
        if copies:
            return sandwich(self.moments, self.moments.scaled(self.row), self.weight)
        return sandwich(self.moments, self.squared[1], self.n_positive)

    def effective_rows(self, *, copies: bool = False) -> float:
        """The effective number of rows; with `copies` the sum of the weights."""
        return self.weight if copies else effective(float(self.weights.high[0]), self.squared[0])

    @property
    def row(self) -> float:
        """The weight of one row, in the unit of the weights here."""
        return math.ldexp(1.0, -self.exponent)

    def unscaled(self, weights: Floats) -> Floats:
        """Weights of this tally in the unit of the caller's weights."""
        with np.errstate(over="ignore"):
            return np.asarray(np.ldexp(weights, self.exponent))

    def update(self, forecasts: Rows) -> RuleSums:
        """Take in all rows of `forecasts`; returns the tally itself."""
        self._check_same(forecasts.n_classes)
        if not forecasts.n_rows:
            return self
        if self.n_rows:
            self._check_groups(forecasts.groups)
        with np.errstate(over="ignore", invalid="ignore"):
            part = self._part(forecasts, 0)
            # Extreme weights overflow or underflow; nothing of that pass is kept.
            exponent = exponent_of(float(part.weights.high[0]), part.moments.lightest)
            part = part if exponent == 0 else self._part(forecasts, exponent)
        self.__dict__.update(vars(self.merge(part) if self.n_rows else part))
        return self

    def _part(self, forecasts: Rows, exponent: int) -> RuleSums:
        """The tally of these rows alone, from one pass over them."""
        start = first_row(forecasts) or (self.spans[-1][1] if self.spans else 0)
        known = self.spans is not None
        part = RuleSums(self.rules, self.n_classes, counts=False, decisions=self.decisions)
        part.n_rows, part.exponent = forecasts.n_rows, exponent
        part.spans = ((start, start + forecasts.n_rows),) if known else None
        if forecasts.xp is not np and self._on_gpu(part, forecasts, start if known else None):
            return part
        needs = _needs(self, forecasts)
        plan = Plan.of(forecasts, (self.rules, *sorted(needs), forecasts.weights is None))
        chunks = _Chunks(self, forecasts, exponent, plan)
        visitors = scan_rows(forecasts, needs, lambda: _Visitor(self, chunks, forecasts.groups), plan=plan)
        chunks.fill(part)
        if self.counts is not None:
            counts = reduce(add, (visitor.counts for visitor in visitors))
            if chunks.table is not None:
                counts.cells, counts.squares = chunks.table, chunks.square_table
            part.counts = counts.moved(start if known else None)
        if forecasts.groups is not None:
            part.clusters = reduce(add, (visitor.clusters for visitor in visitors)).total()
        return part

    def _on_gpu(self, part: RuleSums, forecasts: Rows, start: int | None) -> bool:
        """Fill a part by one kernel on the rows' own device; False where array calls must do it."""
        sums_on = answer_to("device sums")
        decided = self.counts is not None and self.decisions
        unit = math.ldexp(1.0, part.exponent)
        sums = sums_on(self.rules, forecasts, decisions=decided, most=CONFUSION_UP_TO, unit=unit)
        if sums is None:
            return False
        part.weights, part.moments, part.n_positive = sums.weight, sums.moments, sums.n_positive
        part.square_sum, part.squares = sums.square_sum, sums.squares
        if self.counts is not None:
            rows = _impossible_rows(forecasts, ROWS_KEPT) if sums.n_zero and start is not None else []
            numbers = [(start or 0) + row for row in rows]
            cells = Sum.zeros(0) if sums.cells is None else sums.cells
            part.counts = Counts(self.n_classes, cells, sums.n_zero, numbers, sums.square_cells)
        return True

    def merge(self, other: RuleSums) -> RuleSums:
        """The tally of the rows of both, in whatever order they are merged; neither is changed."""
        if self.rules != other.rules:
            raise VeraxError("Tallies of different rules cannot be merged.")
        self._check_same(other.n_classes)
        if self.n_rows and other.n_rows:
            self._check_groups(other.clusters)
        merged = RuleSums(self.rules, self.n_classes, counts=False, decisions=self.decisions)
        merged.n_rows = self.n_rows + other.n_rows
        merged.spans = _joined(self.spans, other.spans)
        weights = [float(t.weights.high[0]) for t in (self, other)]
        merged.exponent, (a, b) = common_exponent(weights, [self.exponent, other.exponent])
        merged.weights = self.weights.scaled(a) + other.weights.scaled(b)
        merged.moments = self.moments.scaled(a) + other.moments.scaled(b)
        merged.n_positive = self.n_positive + other.n_positive
        merged.square_sum, merged.squares = _squares_of((self, a), (other, b))
        if self.counts is not None and other.counts is not None:
            counts = self.counts.scaled(a) + other.counts.scaled(b)
            merged.counts = counts if merged.spans is not None else counts.moved(None)
        merged.clusters = _both(
            None if self.clusters is None else self.clusters.scaled(a),
            None if other.clusters is None else other.clusters.scaled(b),
        )
        return merged

    def to_values(self) -> dict[str, Any]:
        """Everything but the rules, to be stored; `scores.storing` adds their names."""
        return {
            "n_classes": self.n_classes,
            "decisions": self.decisions,
            "n_rows": self.n_rows,
            "spans": None if self.spans is None else [list(span) for span in self.spans],
            "exponent": self.exponent,
            "weights": self.weights.to_values(),
            "moments": self.moments.to_values(),
            "n_positive": float(self.n_positive),
            "square_sum": None if self.square_sum is None else self.square_sum.to_values(),
            "squares": None if self.squares is None else self.squares.to_values(),
            "counts": None if self.counts is None else self.counts.to_values(),
            "clusters": None if self.clusters is None else self.clusters.to_values(),
        }

    @classmethod
    def from_values(cls, values: Mapping[str, Any], rules: Sequence[Formula]) -> RuleSums:
        """The tally of these rules that `to_values` stored."""
        stored = {name: values[name] for name in values if name not in ("counts", "clusters")}
        n = len(rules)
        fields = fields_of(_STORED, stored, {"rules": n})
        tally = cls(rules, fields.pop("n_classes"), counts=False, decisions=fields.pop("decisions"))
        vars(tally).update(fields)
        if (tally.square_sum is None) != (tally.squares is None):
            raise UnreadableError("does not belong to the other sums", "squares")
        check_squares(float(tally.weights.high[0]), tally.squared[0], tally.n_positive)
        counts, clusters = (values.get(name) for name in ("counts", "clusters"))
        if counts is not None:
            with inside("counts"):
                tally.counts = Counts.from_values(mapping(counts), tally.n_classes, decisions=tally.decisions)
        if clusters is not None:
            with inside("clusters"):
                tally.clusters = Clusters.from_values(mapping(clusters), n)
                if tally.clusters.cells.n_cells not in (0, tally.n_classes**2):
                    raise UnreadableError("has cells of other classes", "n_cells")
        return tally

    def renumbered(self, rows: Ints, n_given: int) -> RuleSums:
        """The sums with rows renumbered by `rows`, their numbers among `n_given` consecutive rows."""
        named = copy.copy(self)
        if self.spans and len(self.spans) == 1:
            start = self.spans[0][0]
            named.spans = ((start, start + n_given),)
            if self.counts is not None:
                named.counts = replace(
                    self.counts, zero_rows=[int(rows[row - start]) for row in self.counts.zero_rows]
                )
        return named

    def _check_same(self, n_classes: int) -> None:
        if n_classes != self.n_classes:
            raise VeraxError(f"This tally has {self.n_classes} classes; the rows have {n_classes}.")

    def _check_groups(self, other: Clusters | Groups | None) -> None:
        """Refuse groups of other rows of another kind."""
        if (other is None) != (self.clusters is None):
            raise VeraxError("Either all rows of a tally belong to groups or none do.")
        if other is None or self.clusters is None:
            return
        if is_two_way(other.labels) != is_two_way(self.clusters.labels):
            raise VeraxError("Either all rows of a tally belong to two kinds of groups or none do.")


class _Spans(Spec):
    """Disjoint ranges of row numbers, in order; None where they are not known."""

    def __init__(self) -> None:
        super().__init__("first", optional=True)

    def merged(self, name: str) -> str:
        return f"self.{name}"

    def read(self, stored: Any, sizes: Sizes) -> Spans:
        if not isinstance(stored, list) or any(not isinstance(e, list) or len(e) != 2 for e in stored):
            raise UnreadableError("has no ranges of rows")
        ends = [whole(end, most=2**63 - 1) for span in stored for end in span]
        if ends != sorted(ends):
            raise UnreadableError("has ranges of rows that overlap")
        return tuple((ends[i], ends[i + 1]) for i in range(0, len(ends), 2))


_STORED = {
    # Lists may be about very many classes.
    "n_classes": Whole(least=1, most=10**4000),
    "decisions": Truth("equal"),
    "n_rows": Whole(),
    "spans": _Spans(),
    "exponent": Whole(least=-1100, most=1100),
    "weights": Sums(1, least=0),
    "moments": MomentSums("rules"),
    "n_positive": Number("add", least=0, most=LARGEST),
    "square_sum": Sums(1, least=0, optional=True),
    "squares": MomentSums("rules", optional=True),
}


class _Chunks:
    """The sums of each chunk of rows, which the threads fill.

    Blocks of rows that the compiled kernel can sum are added to `sums`, relative to a `shift` that lies
    near the losses of the chunk, so that squares do not cancel. All others go to `others`.
    Large tables of counts are shared by all threads, which take turns.
    """

    def __init__(self, tally: RuleSums, forecasts: Rows, exponent: int, plan: Plan) -> None:
        n_rules = len(tally.rules)
        self.unit = math.ldexp(1.0, exponent)
        self.weighted = forecasts.weights is not None
        self.shared_outcomes = forecasts.shared
        self.sums = np.zeros((plan.n_chunks, n_rules + 1, 4 if self.weighted else 2))
        self.shift = np.zeros((plan.n_chunks, n_rules))
        self.others: list[Moments | None] = [None] * plan.n_chunks
        self.other_squares: list[Moments | None] = [None] * plan.n_chunks
        # For each chunk: weights and squared weights of the rows in `others`, and rows with weight in all.
        self.weight = np.zeros((plan.n_chunks, 2))
        self.positive = np.zeros(plan.n_chunks)
        self.compiled = plan.compiled
        self.lock = Lock()
        # The table itself is not looked at: that would make it.
        self.tabled = tally.counts is not None and tally.decisions and tally.n_classes <= CONFUSION_UP_TO
        shared = (
            self.tabled and plan.compiled and tally.n_classes**2 > plan.block and not self.shared_outcomes
        )
        # Where there are more cells than rows, rows note their cells, and the table is made late.
        late = shared and not self.weighted and forecasts.n_rows <= tally.n_classes**2
        self.noted: list[Ints] | None = [] if late else None
        self.table: Sum | None = None
        if shared:
            size = tally.n_classes**2
            self.table = (
                Sum.zeros(size) if self.noted is None else LateSum(partial(_counted, self.noted, size))
            )
        self.square_table = Sum.zeros(tally.n_classes**2) if shared and self.weighted else None
        self.fused = None
        self.row_sums = None
        self.chunk_rows = plan.chunk
        self._cells: GroupCells | None = None
        if plan.compiled:
            from verax.engines.fusion import fuse
            from verax.engines.summing import RowSums

            counts = tally.counts is not None and tally.decisions
            self.row_sums = RowSums.of(tally.rules, forecasts, unit=self.unit, counts=counts)
            if self.row_sums is None:
                self.fused = fuse(tally.rules, tally.n_classes, self.weighted)

    def gathering(self, independent: Independent, groups: Groups, n_cells: int) -> GatheredSums:
        """The sums of groups for one thread; threads share noted cells."""
        size = len(groups.labels), n_cells, len(groups.codes)
        if self._cells is None or not self._cells.late:
            self._cells = GroupCells(*size)
        return GatheredSums(size[0], independent, self._cells, size[2])

    def fill(self, part: RuleSums) -> None:
        """Give a tally the sums of all chunks."""
        part.weights, part.moments = self._total(self.sums[..., :2], self.others, self.weight[:, 0])
        part.n_positive = float(self.positive.sum())
        if self.weighted:
            part.square_sum, part.squares = self._total(
                self.sums[..., 2:], self.other_squares, self.weight[:, 1]
            )

    def _total(self, sums_: Floats, others: list[Moments | None], rests: Floats) -> tuple[Sum, Moments]:
        """The weight and the moments of all chunks."""
        weights, first, second = sums_[:, -1:, 0], sums_[:, :-1, 0], sums_[:, :-1, 1]
        moments = Moments.from_sums(weights, first, second, shift=self.shift).joined()
        moments = reduce(add, (other for other in others if other is not None), moments)
        return reduce(Sum.plus, np.append(weights, rests)[:, None], Sum.zeros(1)), moments


class _Visitor:
    """The share of one thread in an update."""

    def __init__(self, tally: RuleSums, chunks: _Chunks, groups: Groups | None) -> None:
        self._rules = tally.rules
        self._chunks = chunks
        self._block = np.zeros(chunks.sums.shape[1:])
        self._decisions = tally.decisions
        self._chunk = -1
        self._counts = None
        self._counter = None
        if tally.counts is not None:
            shared = chunks.table is not None
            self._counts = Counts.zeros(
                tally.n_classes, decisions=tally.decisions and not shared, weighted=chunks.weighted
            )
            decided = chunks.row_sums is None or chunks.row_sums.decides
            counted = chunks.compiled and decided and not chunks.shared_outcomes
            if counted and chunks.tabled:
                self._counter = _Counter(chunks, self._counts)
        tabled = chunks.row_sums is not None and chunks.row_sums.counts
        self._row_cells = np.zeros((2, 2, tally.n_classes**2 if tabled else 0))
        self._left = np.empty(chunks.chunk_rows if chunks.row_sums is not None else 0, np.int64)
        self._clusters = None
        if groups is not None:
            tabled = tally.decisions and tally.n_classes <= CONFUSION_UP_TO
            cells = tally.n_classes**2 if tabled else 0
            independent = None if chunks.row_sums is None else chunks.row_sums.independent
            gathered = None if independent is None else chunks.gathering(independent, groups, cells)
            self._clusters = ClusterSums(
                groups.labels, len(tally.rules), cells, compiled=chunks.compiled, gathered=gathered
            )

    @property
    def counts(self) -> Counts:
        """The counts of all rows so far."""
        assert self._counts is not None
        if self._chunks.row_sums is None or not self._chunks.row_sums.counts:
            return self._counts
        cells, squares = (Sum(high, low) for high, low in self._row_cells)
        more = Counts(self._counts.n_classes, cells, squares=squares if self._chunks.weighted else None)
        return self._counts + more

    @property
    def clusters(self) -> ClusterSums:
        """The sums of the groups."""
        assert self._clusters is not None
        return self._clusters

    @property
    def absorb(self) -> Callable[[int, int, int], tuple[Ints, bool]] | None:
        """Sum the rows from one number to another by a kernel; None where there is none."""
        return None if self._chunks.row_sums is None else self._absorb

    def _absorb(self, start: int, stop: int, chunk: int) -> tuple[Ints, bool]:
        chunks = self._chunks
        assert chunks.row_sums is not None
        shift, sums = chunks.shift[chunk], chunks.sums[chunk]
        cells, squares = self._row_cells
        gathered = None if self._clusters is None else self._clusters.gathered
        into = sums, cells, squares, self._left
        left = chunks.row_sums(start, stop, shift, *into, self._count_rows, gathered)
        positive = sums[-1, 1]
        chunks.positive[chunk] += positive
        return left, bool(positive > 0)

    def _count_rows(self, y: Ints, decided: Ints, weights: Floats | None) -> None:
        """Count rows whose outcomes had a probability above zero; without those that have no decision."""
        if self._counter is not None:
            self._counter(y, decided, np.ones(len(y)), weights)
        elif self._counts is not None:
            taken = decided >= 0
            w = None if weights is None else weights[taken]
            self._counts.add(y[taken], decided[taken], w, None if w is None else squared_weights(w))

    def visit(self, stats: RowStats, batch: RowBatch, chunk: int) -> None:
        w = batch.weights
        if w is not None and self._chunks.unit != 1:
            w = w * (1 / self._chunks.unit)
        self._chunks.positive[chunk] += _n_positive(batch)
        # Losses may be infinite, and sums of extreme weights overflow.
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            if not self._add_fused(stats, batch, w, chunk):
                self._add_losses(stats, batch, w, chunk)
            if self._counts is not None:
                self._count(self._counts, stats, batch, w)
            if self._clusters is not None:
                self._add_clusters(self._clusters, stats, batch, w)

    def _add_fused(self, stats: RowStats, batch: RowBatch, w: Any, chunk: int) -> bool:
        """Sum the losses of a block by the compiled kernel; False where that is not possible."""
        chunks = self._chunks
        if stats.buffer is None or chunks.fused is None:
            return False
        kernel, constants = chunks.fused
        n, w = batch.n_rows, _NO_WEIGHTS if w is None else w
        if chunk != self._chunk:
            self._chunk = chunk
            chunks.shift[chunk] = self._probe(kernel, stats.buffer, n, w, constants)
        shift, sums = chunks.shift[chunk], chunks.sums[chunk]
        return bool(kernel(stats.buffer, 0, n, w, constants, shift, self._block, sums))

    def _probe(self, kernel: Any, buffer: Any, n: int, w: Any, constants: Any) -> Floats:
        """A rough mean of the losses of a chunk: the smaller of two means of a few rows, or zero."""
        none = np.zeros(len(self._rules))
        means = []
        for first, last in ((0, min(_PROBE, n)), (max(0, n - _PROBE), n)):
            kernel(buffer, first, last, w, constants, none, self._block, np.zeros_like(self._block))
            with np.errstate(invalid="ignore", divide="ignore"):
                means.append(self._block[:-1, 0] / self._block[-1, 0])
        smaller = np.where(np.abs(means[0]) < np.abs(means[1]), means[0], means[1])
        return np.where(np.isfinite(smaller), smaller, 0.0)

    def _add_losses(self, stats: RowStats, batch: RowBatch, w: Any, chunk: int) -> None:
        """Sum the losses of a block by array calls."""
        chunks = self._chunks
        losses = list(map(stats.loss, self._rules))
        _add_to(chunks.others, chunk, Moments.of(losses, batch.weights, stats.xp, chunks.unit))
        chunks.weight[chunk, 0] += batch.n_rows if w is None else float(batch.xp.sum(w))
        if w is not None:
            squared = squared_weights(w)
            _add_to(chunks.other_squares, chunk, Moments.of(losses, squared, stats.xp))
            chunks.weight[chunk, 1] += float(batch.xp.sum(squared))

    def _add_clusters(self, clusters: ClusterSums, stats: RowStats, batch: RowBatch, w: Any) -> None:
        weights = np.ones(batch.n_rows) if w is None else to_host(w)
        positive = weights > 0 if batch.weights is None else to_host(batch.weights) > 0
        losses = [to_host(stats.loss(rule)) for rule in self._rules]
        decided = Decided.of(batch, stats.decision if self._decisions else np.full(batch.n_rows, -1))
        clusters.add(batch.groups, weights, positive, losses, decided)

    def _count(self, counts: Counts, stats: RowStats, batch: RowBatch, w: Any) -> None:
        if not self._decisions or not self._count_decisions(counts, stats, batch, w):
            zero = stats.impossible
            zero = zero if batch.weights is None else zero & (batch.weights > 0)
            if bool(batch.xp.any(zero)):
                counts.add_zeros(numbers_of(batch, np.flatnonzero(to_host(zero))).tolist())

    def _count_decisions(self, counts: Counts, stats: RowStats, batch: RowBatch, w: Any) -> bool:
        """Count outcomes against decisions; True where no outcome is known to have had probability zero."""
        decided, weights = Decided.of(batch, stats.decision), None if w is None else to_host(w)
        if self._counter is not None:
            n_zero = self._counter(decided.y, decided.decision, stats.p_true, weights)
            return n_zero == 0 and self._chunks.unit == 1 and stats.buffer is not None
        squares = None if weights is None else squared_weights(weights)
        counts.add(decided.y, decided.decision, decided.weights(weights), decided.weights(squares))
        return False


class _Counter:
    """Compiled counting into the table of one thread, or by turns into a shared one; or notes of cells."""

    def __init__(self, chunks: _Chunks, counts: Counts) -> None:
        from verax.kernels.counting import count

        shared = chunks.table is not None
        self._turn: Any = chunks.lock if shared else nullcontext()
        self._count = count
        n = self._n_classes = counts.n_classes
        self._noted = chunks.noted
        if self._noted is not None:
            return
        self._table = (Counts(n, chunks.table) if chunks.table is not None else counts).table
        squares = chunks.square_table if shared else counts.squares
        self._squares = None if squares is None else Counts(n, squares).table

    def __call__(self, y: Any, decision: Any, p_true: Any, weights: Any) -> int:
        """Count rows; return the number of those with weight whose outcome had probability zero."""
        if self._noted is not None:
            taken = decision >= 0
            self._noted.append(y[taken] * self._n_classes + decision[taken])
            return len(p_true) - int(np.count_nonzero(p_true))
        w = _NO_WEIGHTS if weights is None else weights
        with self._turn:
            if self._squares is not None:
                self._count(y, decision, p_true, squared_weights(w), self._block(len(y)), *self._squares)
            return int(self._count(y, decision, p_true, w, self._block(len(y)), *self._table))

    def _block(self, n_rows: int) -> Floats:
        """A table for the rows of a block, if it has fewer cells than there are rows."""
        k = len(self._table[0])
        return np.zeros((k, k) if k * k <= n_rows else (0, 0))


_NO_WEIGHTS = np.zeros(0)


def _counted(cells: Sequence[Ints], size: int) -> Floats:
    """The number of rows in each cell."""
    return np.bincount(np.concatenate([np.zeros(0, np.int64), *cells]), minlength=size).astype(np.float64)


def _n_positive(batch: RowBatch) -> float:
    """The number of rows of a batch with a positive weight."""
    w = batch.weights
    return float(batch.n_rows) if w is None else float(batch.xp.sum(batch.xp.astype(w > 0, w.dtype)))


def _add_to(moments: list[Moments | None], chunk: int, more: Moments) -> None:
    before = moments[chunk]
    moments[chunk] = more if before is None else before + more


def _squares_of(*parts: tuple[RuleSums, float]) -> tuple[Sum | None, Moments | None]:
    """The sums with squared weights of tallies whose weights are multiplied; None where all weights are 1."""
    if all(tally.squares is None and factor == 1 for tally, factor in parts):
        return None, None
    # The square of a factor may overflow where its product with small sums does not.
    sums = [
        (t.weights if t.square_sum is None else t.square_sum).scaled(factor).scaled(factor)
        for t, factor in parts
    ]
    moments = [t.squared[1].scaled(factor).scaled(factor) for t, factor in parts]
    return reduce(add, sums), reduce(add, moments)


def _impossible_rows(rows: Rows, most: int) -> list[int]:
    """The first rows with weight whose outcome had probability zero."""
    numbers: list[int] = []
    for batch in rows.batches(max(1, _LOOKED_AT // rows.n_classes)):
        stats = compute(batch, {"log_true"})
        zero: Array = stats.impossible
        zero = zero if batch.weights is None else zero & (batch.weights > 0)
        numbers += (batch.start + np.flatnonzero(to_host(zero))).tolist()
        if len(numbers) >= most:
            break
    return numbers[:most]


def first_row(forecasts: Rows) -> int:
    """The place of the first row among all rows; 0 if it is not known."""
    return getattr(forecasts, "first_row", None) or getattr(forecasts, "_first_row", None) or 0


def _joined(a: Spans | None, b: Spans | None) -> Spans | None:
    """The ranges of both; None where some are unknown or overlap."""
    if a is None or b is None:
        return None
    joined: list[tuple[int, int]] = []
    for start, stop in sorted([*a, *b]):
        if joined and start < joined[-1][1]:
            return None
        start = joined.pop()[0] if joined and start == joined[-1][1] else start
        joined.append((start, stop))
    return tuple(joined)


def _both(a: Clusters | None, b: Clusters | None) -> Clusters | None:
    return a + b if a is not None and b is not None else a if b is None else b


def _needs(tally: RuleSums, forecasts: Rows) -> set[str]:
    decided = tally.decisions and (tally.counts is not None or forecasts.groups is not None)
    return {name for rule in tally.rules for name in rule.needs} | ({"decision"} if decided else set())
