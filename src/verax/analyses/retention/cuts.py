"""Rows in an order, cut at shares of their weight: what curves are made of.

Rows are sorted once. A bootstrap replicate is a vector of multiplicities along that order, and a
cut may split a row's copies, so nothing is sorted again and the result is that of explicit resampling.
Where a cut falls into rows that tie, each of them counts in part; `ties="order"` splits them by their
place in the data instead.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from functools import partial
from itertools import pairwise
from typing import Any, Literal, Protocol

import numpy as np

from verax.analyses.retention.uncertainty_scores import UncertaintyScore
from verax.analyses.table import RowTable
from verax.analyses.units import dot
from verax.common.checks import check_choice
from verax.common.sorting import rounded_order
from verax.errors import InputError, passing, show
from verax.inference.intervals import Resampling
from verax.inputs.arrays import Floats, Ints
from verax.scores.base import Rule
from verax.scores.coverage import RowMetric
from verax.scores.metrics import HIGHER, DecisionMetric
from verax.scores.registry import name_of

Metric = DecisionMetric | Rule | RowMetric | Callable[[Any, Any], float]
Area = Literal["mean", "steps"]
Undefined = Literal["nan", "one", "zero", "omit"]
Ties = Literal["share", "order"]

DEFAULT_REMOVED = tuple(Fraction(i, 100) for i in range(21))

# How many cells of confusion tables are held at a time.
_CELLS = 2**22
# Beyond this number of classes, metrics that are means over rows are computed without tables.
_TABLES_OF_MEANS = 64
# How many rows are counted at a time.
_ROWS = 2**16
# How many rows a function of rows may be given, where tied rows are repeated to count in part.
_REPEATED = 2**24


class _Weights(Protocol):
    """Rows that know of their weights whether all are whole, and their common unit."""

    @property
    def whole(self) -> bool: ...

    @property
    def unit(self) -> float | None: ...


class Options:
    """How curves are cut, summed up and resampled; checked once."""

    def __init__(
        self,
        plan: Resampling,
        removed: Sequence[float | Fraction] | None = None,
        area: Area = "mean",
        undefined: Undefined = "nan",
        ties: Ties = "share",
    ) -> None:
        self.plan = plan
        self.removed: tuple[Fraction, ...] = _shares(removed)
        self.shares: Floats = np.array([float(r) for r in self.removed])
        self._taken: dict[int, Floats] = {}
        check_choice("area", area, ("mean", "steps"))
        check_choice("undefined", undefined, ("nan", "one", "zero", "omit"))
        check_choice("ties", ties, ("share", "order"))
        self.area, self.undefined, self.ties = area, undefined, ties

    def taken(self, total: float, unit: float | None) -> Floats:
        """How much of a total weight is removed at each cut: whole units where weights have one."""
        if unit is None:
            return np.asarray(total * self.shares)
        n = round(total / unit)
        if n not in self._taken:
            # Exact: a tenth of 30 rows is three, whatever 0.1 * 30 is in floating point.
            self._taken[n] = np.array([float(r.numerator * n // r.denominator) for r in self.removed])
        return unit * self._taken[n]

    def unit(self, weights: _Weights) -> float | None:
        """What cuts remove whole numbers of: copies, or the common unit of weights."""
        if self.plan.copies:
            return 1.0 if weights.whole else None
        return weights.unit

    def fill(self, values: Floats) -> Floats:
        """Undefined values as asked for."""
        replacement = {"one": 1.0, "zero": 0.0}.get(self.undefined)
        return values if replacement is None else np.where(np.isnan(values), replacement, values)

    def area_of(self, values: Floats) -> float:
        """The area under one curve."""
        x = self.shares
        if self.undefined == "omit":
            defined = ~np.isnan(values)
            x, values = x[defined], values[defined]
            if len(x) < 2:
                return float("nan")
        heights = (values[1:] + values[:-1]) / 2
        return float(heights.sum() if self.area == "steps" else (heights * np.diff(x)).sum() / (x[-1] - x[0]))


def _shares(removed: Sequence[float | Fraction] | None) -> tuple[Fraction, ...]:
    if removed is None:
        return DEFAULT_REMOVED
    shares: tuple[Fraction, ...] = ()
    listed: list[Any] = [removed]
    try:
        listed = list(removed) if isinstance(removed, Iterable) else listed
        shares = tuple(Fraction(r).limit_denominator(10**6) for r in listed)
    except (TypeError, ValueError, OverflowError):
        pass
    increasing = all(a < b for a, b in pairwise(shares))
    if len(shares) < 2 or not increasing or shares[0] < 0 or shares[-1] >= 1:
        raise InputError(
            "must be at least two increasing shares from 0 to below 1, such as [0, 0.1, 0.2]",
            argument="removed",
            found=f"it is {show(removed)}",
            values=listed,
        )
    return shares


# ---- orders and cuts ---------------------------------------------------------------------------


class RowOrder:
    """The rows from the worst to the best: those that are removed first come first.

    Attributes
    ----------
    rows : (N,) int array
        The rows, the worst first.
    tied : (R, 2) int array
        The places in `rows` where runs of two and more tied rows start and end; empty where no rows tie, or
        where ties are split by the order of the data.
    """

    def __init__(self, key: Floats, ties: Ties) -> None:
        order, rises = rounded_order(key)
        # Several orders of many rows are held at a time.
        self.rows: Ints = order[::-1].astype(np.int32) if len(order) < 2**31 else order[::-1]
        self.tied: Ints = np.zeros((0, 2), np.int64)
        if ties == "share" and not rises.all():
            equal = np.concatenate([[False], ~rises[::-1], [False]])
            self.tied = np.flatnonzero(equal[1:] != equal[:-1]).reshape(-1, 2)
            self.tied[:, 1] += 1

    def run_of(self, places: Ints) -> tuple[Ints, Ints]:
        """Where the runs of tied rows start and end that some places are in."""
        if not len(self.tied):
            return places, places + 1
        starts, ends = self.tied[np.maximum(np.searchsorted(self.tied[:, 0], places, side="right") - 1, 0)].T
        within = (starts <= places) & (places < ends)
        return np.where(within, starts, places), np.where(within, ends, places + 1)


class RowWeights:
    """One vector of weights on the rows, short integers where they are copies, and what no order changes."""

    def __init__(self, rows: RowTable, weights: Any, options: Options, *, counting: bool) -> None:
        self.weights = weights
        self.total: float = float(weights.sum())
        self.taken: Floats = options.taken(self.total, options.unit(rows))
        self.counts: Floats = np.zeros(0)
        if counting:
            # Some rows at a time: all of them would be copied for it.
            self.counts = np.zeros(rows.n_classes**2)
            for start in range(0, len(weights), _ROWS):
                some = slice(start, start + _ROWS)
                self.counts += np.bincount(rows.cells[some], weights[some], len(self.counts))


class Cuts:
    """Where the cuts fall along an order, for one sample.

    Few rows are removed as a rule, so everything is found from the end where rows are removed.

    Attributes
    ----------
    starts, ends : (C,) int arrays
        The run of tied rows that each cut falls into; the rows before it are removed.
    part, share : array of shape (C,)
        How much of the weight of this run is removed, and which share of it.
    """

    order: RowOrder
    sample: RowWeights
    starts: Ints
    ends: Ints

    def __init__(self, order: RowOrder, sample: RowWeights) -> None:
        self.order, self.sample, taken = order, sample, sample.taken
        n = len(order.rows)
        # A replicate may have rows without weight only.
        share = taken[-1] / sample.total if sample.total else 1.0
        length = min(n, int(1.1 * n * share) + 64)
        while True:
            self.weights: Floats = sample.weights[order.rows[:length]].astype(float, copy=False)
            cumulative = np.cumsum(self.weights)
            at = np.minimum(np.searchsorted(cumulative, taken, side="right"), n - 1)
            self.starts, self.ends = order.run_of(at)
            if self.ends[-1] <= length:
                break
            length = min(n, max(2 * length, int(self.ends[-1])))
        before = np.where(self.starts > 0, cumulative[self.starts - 1], 0.0)
        self.part: Floats = taken - before
        run = cumulative[self.ends - 1] - before
        self.share: Floats = np.divide(self.part, run, out=np.zeros_like(run), where=run > 0)
        # Cuts through several tied rows; the others split the copies of one row at most.
        self._tied = np.flatnonzero((self.ends - self.starts > 1) & (self.part > 0)).tolist()

    @property
    def kept(self) -> Floats:
        """The weight kept at each cut; NaN where a replicate has none, so that its values are undefined."""
        return self.sample.total - self.sample.taken if self.sample.total else self.sample.taken + np.nan

    def tables(self, cells: Ints, step: int) -> Iterator[Floats]:
        """Weighted counts of the rows kept, (step, cells) for `step` cuts at a time.

        Parameters
        ----------
        cells : (N,) int array
            The cell of each row, in the order.
        """
        n_cells = self.sample.counts.size
        removed_before = np.zeros(n_cells)
        for first in range(0, len(self.starts), step):
            starts = self.starts[first : first + step]
            begin = self.starts[first - 1] if first else 0
            # Each removed row counts from the first cut that removes it on.
            cut = np.repeat(np.arange(len(starts)), np.diff(starts, prepend=begin)) * n_cells
            place = slice(begin, starts[-1])
            new = np.bincount(cut + cells[place], self.weights[place], len(starts) * n_cells).astype(float)
            removed = np.cumsum(new.reshape(len(starts), n_cells), axis=0)
            removed += removed_before
            removed_before = removed[-1].copy()
            self._remove_parts(removed, first, cells)
            np.subtract(self.sample.counts, removed, out=removed)
            # A cell whose rows are all removed may keep a rounding error, which kappa would count as a class.
            removed[removed <= 1e-12 * self.sample.total] = 0.0
            yield removed

    def _remove_parts(self, removed: Floats, first: int, cells: Ints) -> None:
        """Remove what each of the cuts from `first` on takes of the run of tied rows that it falls into."""
        cuts = slice(first, first + len(removed))
        alone = first + np.flatnonzero((self.ends - self.starts)[cuts] == 1)
        removed[alone - first, cells[self.starts[alone]]] += self.part[alone]
        for t in self._tied:
            if cuts.start <= t < cuts.stop:
                run = slice(self.starts[t], self.ends[t])
                tied = np.bincount(cells[run], self.weights[run], removed.shape[1])
                removed[t - first] += self.share[t] * tied

    def sums(self, values: Floats, first: Callable[[int], Floats], *, finite: bool) -> Floats:
        """Weighted sums of `values`, one per row, over the rows kept at each cut.

        `first` gives those of the first n rows in the order. Where all values are finite, the rows that every
        cut keeps need not be in order.
        """
        n, base = (len(self.weights), self._beyond(values)) if finite else (len(self.order.rows), 0.0)
        ordered = first(n)[::-1]
        weights = self.weights
        if n > len(weights):
            weights = self.sample.weights[self.order.rows].astype(float, copy=False)
        weights = weights[::-1]
        with np.errstate(invalid="ignore"):
            terms = weights * ordered
            if not finite:
                terms[weights == 0] = 0.0
            cumulative = np.cumsum(np.concatenate([[base], terms]))
            left = weights[n - self.ends] - self.part
            parts = np.where(left > 0, left * ordered[n - self.ends], 0.0)
            for t in np.flatnonzero(self.ends - self.starts > 1):
                run = terms[n - self.ends[t] : n - self.starts[t]].sum()
                parts[t] = (1 - self.share[t]) * run if self.share[t] < 1 else 0.0
            return np.asarray(cumulative[n - self.ends] + parts)

    def _beyond(self, values: Floats) -> float:
        """The weighted sum of finite `values` over the rows that lie beyond all cuts."""
        weights = self.sample.weights.copy()
        weights[self.order.rows[: len(self.weights)]] = 0.0
        return dot(weights, values)

    def rows(self, t: int) -> Ints:
        """The rows kept at one cut, the best first, copies repeated.

        Where tied rows count in part, all rows are repeated so often that these parts are whole.
        """
        copies = self.sample.weights[self.order.rows].astype(np.int64)
        start, end, part = int(self.starts[t]), int(self.ends[t]), int(self.part[t])
        copies[:start] = 0
        if end - start == 1:
            copies[start] -= part
        elif part:
            run = int(copies[start:end].sum())
            common = math.gcd(run, run - part)
            copies[start:end] *= (run - part) // common
            copies[end:] *= run // common
            if copies.sum() > _REPEATED:
                raise InputError(
                    "must be the name of a metric or a rule where many rows tie",
                    argument="metric",
                    found=f"{end - start:,} rows tie at a cut, and a function cannot count them in part",
                    remedies=[passing("to split ties by the order of the rows", ties="order")],
                )
        return np.repeat(self.order.rows[::-1], copies[::-1])


# ---- what is measured --------------------------------------------------------------------------


def named(key: Metric | UncertaintyScore) -> str:
    """The name of a metric, or of what ranks rows; of a function that users pass its own."""
    if isinstance(key, Rule):
        return name_of(key)
    if isinstance(key, (DecisionMetric, RowMetric, UncertaintyScore)):
        return key.name
    return getattr(key, "__name__", repr(key))


def higher_is_better(metric: Metric) -> bool:
    """Whether larger values of a metric are better; assumed of functions that users pass."""
    if isinstance(metric, DecisionMetric):
        return metric.higher_is_better
    if isinstance(metric, RowMetric):
        return metric.orientation == HIGHER
    return not isinstance(metric, Rule)


def bounds_of(metric: Metric, n_classes: int) -> tuple[float, float]:
    """The smallest and the largest value of a metric; unknown of functions that users pass."""
    if isinstance(metric, (DecisionMetric, Rule, RowMetric)):
        return metric.bounds(n_classes)
    return -math.inf, math.inf


class CurveMetric:
    """A metric along orders: the same for every vector of weights."""

    rows: RowTable

    def __init__(self, rows: RowTable, metric: Metric) -> None:
        self.rows, self._metric = rows, metric
        self.counts: DecisionMetric | None = None
        self._values: Floats | None = None
        # Those of the rows that come first along each order, which all draws look at.
        self._first: dict[RowOrder, Floats] = {}
        self._finite = False
        if isinstance(metric, DecisionMetric):
            if metric.of_row is not None and rows.n_classes > _TABLES_OF_MEANS:
                self._values = metric.of_row(rows.y, rows.decisions)
            else:
                self.counts = metric
        elif isinstance(metric, (Rule, RowMetric)):
            self._values = rows.losses[metric]
        elif not rows.whole:
            raise InputError(
                "must be whole multiples of a number where the metric is a function of rows",
                argument="weights",
            )
        if self._values is not None:
            self._finite = bool(np.isfinite(self._values).all())

    def along(self, cuts: Cuts) -> Floats:
        """The metric at each cut along an order, where it needs no counts."""
        if self._values is not None:
            return cuts.sums(self._values, partial(self._along, cuts.order), finite=self._finite) / cuts.kept
        return np.array([self._of_rows(cuts.rows(t)) for t in range(len(cuts.starts))])

    def _along(self, order: RowOrder, n: int) -> Floats:
        """The values of the n rows that come first."""
        assert self._values is not None
        found = self._first.get(order)
        if found is None or len(found) < n:
            found = self._first[order] = self._values[order.rows[:n]]
        return found[:n]

    def _of_rows(self, kept: Ints) -> float:
        assert callable(self._metric)
        return float(self._metric(self.rows.y[kept], self.rows.p[kept]))


def measured(measures: Sequence[CurveMetric], cuts: Sequence[Cuts], cells: Sequence[Ints]) -> Floats:
    """All measures at each cut along each order: (measures, orders, cuts)."""
    n_cuts = len(cuts[0].starts)
    values = np.empty((len(measures), len(cuts), n_cuts))
    counted = []
    for j, measure in enumerate(measures):
        if measure.counts is not None:
            counted.append((j, measure.counts))
        else:
            values[j] = [measure.along(along) for along in cuts]
    if not counted:
        return values
    k = measures[0].rows.n_classes
    if len(cuts) * n_cuts * k * k <= _CELLS:
        tables = np.array([next(a.tables(c, n_cuts)) for a, c in zip(cuts, cells, strict=True)])
        for j, metric in counted:
            values[j] = metric.of(tables.reshape(len(cuts), n_cuts, k, k))
    else:
        step = max(1, _CELLS // (k * k))
        for i, (along, own) in enumerate(zip(cuts, cells, strict=True)):
            for first, tables in zip(range(0, n_cuts, step), along.tables(own, step), strict=True):
                for j, metric in counted:
                    values[j, i, first : first + step] = metric.of(tables.reshape(-1, k, k))
    return values
