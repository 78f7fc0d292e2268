"""Cuts of ordered rows, or of bins of rows, at shares of their weight.

Rows are sorted once. A bootstrap replicate is a vector of multiplicities along that order, and a
cut may split a row's copies, so nothing is sorted again and the result is that of explicit resampling.
Where a cut falls into rows that tie, each of them counts in part; `ties="order"` splits them by their
place in the data instead.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any, Literal, Protocol

import numpy as np

from verax.analyses.table import RowTable
from verax.analyses.uncertainty_scores import UncertaintyScore
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

# Cells of confusion tables in memory at a time.
_CELLS = 2**22
# Beyond this number of classes, metrics that are means over rows are computed without tables.
_TABLES_OF_MEANS = 64
# Rows that are counted at a time.
_ROWS = 2**16
# Rows that a function of rows may be given, where tied rows are repeated to count in part.
_REPEATED = 2**24


class _Weights(Protocol):
    """Rows that know of their weights whether all are whole, and their common unit."""

    @property
    def whole(self) -> bool: ...

    @property
    def unit(self) -> float | None: ...


class Options:
    """Cuts, areas and replicates of curves; checked once."""

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
        self._widths: Floats = np.diff(self.shares)
        self._taken: dict[int, Floats] = {}
        check_choice("area", area, ("mean", "steps"))
        check_choice("undefined", undefined, ("nan", "one", "zero", "omit"))
        check_choice("ties", ties, ("share", "order"))
        self.area, self.undefined, self.ties = area, undefined, ties

    def taken(self, total: float, unit: float | None) -> Floats:
        """The weight removed of a total at each cut: whole units where weights have one."""
        if unit is None:
            return np.asarray(total * self.shares)
        n = round(total / unit)
        if n not in self._taken:
            # Exact: a tenth of 30 rows is three, whatever 0.1 * 30 is in floating point.
            self._taken[n] = np.array([float(r.numerator * n // r.denominator) for r in self.removed])
        return unit * self._taken[n]

    def unit(self, weights: _Weights) -> float | None:
        """The unit that cuts remove whole numbers of: copies, or the common unit of weights."""
        if self.plan.copies:
            return 1.0 if weights.whole else None
        return weights.unit

    def fill(self, values: Floats) -> Floats:
        """Undefined values as asked for."""
        replacement = {"one": 1.0, "zero": 0.0}.get(self.undefined)
        return values if replacement is None else np.where(np.isnan(values), replacement, values)

    def area_of(self, values: Floats) -> float:
        """The area under one curve."""
        x, widths = self.shares, self._widths
        if self.undefined == "omit":
            defined = ~np.isnan(values)
            x, values = x[defined], values[defined]
            if len(x) < 2:
                return float("nan")
            widths = np.diff(x)
        heights = (values[1:] + values[:-1]) / 2
        return float(heights.sum() if self.area == "steps" else (heights * widths).sum() / (x[-1] - x[0]))


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
    ends : (R + 1,) int array or None
        The places in `rows` between which rows tie; None where no rows do, or where ties are split by the
        order of the data.
    """

    def __init__(self, key: Floats, ties: Ties) -> None:
        order, rises = rounded_order(key)
        # Several orders of many rows are kept at a time.
        small = np.int32 if len(order) < 2**31 else np.int64
        self.rows: Ints = order[::-1].astype(small)
        self.ends: Ints | None = None
        if ties == "share" and not rises.all():
            self.ends = np.flatnonzero(np.concatenate([[True], rises[::-1], [True]])).astype(small)

    def is_as(self, other: RowOrder) -> bool:
        """Whether it is the same order, with the same ties."""
        if (self.ends is None) != (other.ends is None) or not np.array_equal(self.rows, other.rows):
            return False
        return self.ends is None or other.ends is None or np.array_equal(self.ends, other.ends)

    def run_of(self, places: Ints) -> tuple[Ints, Ints]:
        """The starts and ends of the runs of tied rows that some places are in."""
        if self.ends is None:
            return places, places + 1
        run = np.searchsorted(self.ends, places, side="right")
        return self.ends[run - 1], self.ends[run]


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
    """Cuts along rows, or bins of rows, from the worst on.

    Attributes
    ----------
    kept : array of shape (C,)
        The weight kept at each cut; NaN where a replicate has none, so that its values are undefined.
    starts, ends : (C,) int arrays
        The run of tied rows that each cut falls into, or the bin; all before it are removed.
    part, share : array of shape (C,)
        The weight of this run that is removed, and its share of the run.
    """

    starts: Ints
    ends: Ints

    def __init__(self, weights: Floats, taken: Floats, total: float, order: RowOrder | None = None) -> None:
        self.kept: Floats = total - taken if total else taken + np.nan
        cumulative = np.cumsum(weights)
        at = np.minimum(np.searchsorted(cumulative, taken, side="right"), len(weights) - 1)
        self.starts, self.ends = (at, at + 1) if order is None else order.run_of(at)
        before = np.where(self.starts > 0, cumulative[self.starts - 1], 0.0)
        self.part: Floats = taken - before
        run = cumulative[np.minimum(self.ends, len(weights)) - 1] - before
        share = np.divide(self.part, run, out=np.zeros_like(run), where=run > 0)
        self.share: Floats = np.clip(share, 0.0, 1.0)

    def better(self, terms: Floats, base: float = 0.0) -> Floats:
        """Sums over what is better than the run of each cut: of the first terms, and a base of all others."""
        return np.asarray(np.cumsum(np.concatenate([[base], terms[::-1]]))[len(terms) - self.ends])

    def sums(self, terms: Floats, base: float = 0.0) -> Floats:
        """Sums over what is kept at each cut."""
        stretches = np.ravel([self.starts, self.ends], order="F")
        with np.errstate(invalid="ignore"):
            runs = np.add.reduceat(np.append(terms, 0.0), stretches)[::2]
            return self.better(terms, base) + np.where(self.share < 1, (1 - self.share) * runs, 0.0)

    def tables(
        self, cells: Ints, weights: Floats, counts: Floats, runs: tuple[Ints, Ints], some: slice = slice(None)
    ) -> tuple[Floats, Floats]:
        """Weighted counts of what is kept at some cuts, and of their runs, (C, cells) each.

        Parameters
        ----------
        cells, weights : (N,) arrays
            The cells from the worst on, and their weights; those beyond the last run may be left out.
        counts : array
            The weights of all cells.
        runs : tuple of two (C,) int arrays
            The places in these of the run of each cut.
        """
        n_cells = len(counts)
        places, at = np.unique([runs[0][some], runs[1][some]], return_inverse=True)
        starts, ends = at.reshape(2, -1)
        stretch = np.repeat(np.arange(len(places)) * n_cells, np.diff(places, prepend=0))
        first = slice(0, places[-1])
        sums: Floats = np.bincount(stretch + cells[first], weights[first], len(places) * n_cells).astype(
            float
        )
        between = sums.reshape(len(places), n_cells)
        # No run starts or ends inside another.
        inside = between[ends]
        kept = np.cumsum(between, axis=0, out=between)[starts]
        kept += self.share[some, None] * inside
        np.subtract(counts, kept, out=kept)
        # A cell whose rows are all removed may keep a rounding error, which kappa would count as a class.
        kept[kept <= 1e-12 * counts.sum()] = 0.0
        return kept, inside


class RowCuts(Cuts):
    """Cuts along an order of rows, for one sample.

    Few rows are removed as a rule, so all is looked up of the worst rows only, if the last cut is among them.
    """

    def __init__(self, order: RowOrder, sample: RowWeights) -> None:
        self.order: RowOrder = order
        self.sample: RowWeights = sample
        n = len(order.rows)
        # A replicate may have rows without weight only.
        share = sample.taken[-1] / sample.total if sample.total else 1.0
        for length in (min(n, int(1.1 * n * share) + 64), n):
            self.weights: Floats = sample.weights[order.rows[:length]].astype(float, copy=False)
            super().__init__(self.weights, sample.taken, sample.total, order)
            if self.ends[-1] < length:
                break

    def beyond(self, values: Floats, *, finite: bool) -> float:
        """The weighted sum of `values`, one per row, over the rows that lie beyond all cuts."""
        weights = self.sample.weights.copy()
        weights[self.order.rows[: len(self.weights)]] = 0
        return dot(weights, values if finite else np.where(weights > 0, values, 0.0))

    def row_tables(self, cells: Ints, some: slice) -> Floats:
        """Weighted counts of the rows kept at some cuts, from the cell of each row in the order."""
        return self.tables(cells, self.weights, self.sample.counts, (self.starts, self.ends), some)[0]

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

    def along(self, cuts: RowCuts) -> Floats:
        """The metric at each cut along an order, where it needs no counts."""
        if self._values is None:
            assert callable(self._metric)
            kept = map(cuts.rows, range(len(cuts.starts)))
            return np.array([float(self._metric(self.rows.y[rows], self.rows.p[rows])) for rows in kept])
        first = self._first_rows(cuts.order, len(cuts.weights))
        with np.errstate(invalid="ignore"):
            terms = cuts.weights * first
        if not self._finite:
            terms[cuts.weights == 0] = 0.0
        return cuts.sums(terms, cuts.beyond(self._values, finite=self._finite)) / cuts.kept

    def _first_rows(self, order: RowOrder, n: int) -> Floats:
        """The values of the n rows that come first."""
        assert self._values is not None
        values = self._first.get(order)
        if values is None or len(values) < n:
            values = self._first[order] = self._values[order.rows[:n]]
        return values[:n]


def measured(measures: Sequence[CurveMetric], cuts: Sequence[RowCuts], cells: Sequence[Ints]) -> Floats:
    """All measures at each cut along each order: (measures, orders, cuts)."""
    n_cuts, k = len(cuts[0].starts), measures[0].rows.n_classes
    values = np.empty((len(measures), len(cuts), n_cuts))
    counted = []
    for j, measure in enumerate(measures):
        if measure.counts is not None:
            counted.append((j, measure.counts))
        else:
            values[j] = [measure.along(along) for along in cuts]
    step = max(1, _CELLS // (len(cuts) * k * k))
    for start in range(0, n_cuts if counted else 0, step):
        some = slice(start, start + step)
        tables = np.array([a.row_tables(c, some) for a, c in zip(cuts, cells, strict=True)])
        for j, metric in counted:
            values[j, :, some] = metric.of(tables.reshape(len(cuts), -1, k, k))
    return values
