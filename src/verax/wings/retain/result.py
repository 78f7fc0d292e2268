"""Retained-samples curves as results: what they say, and how they are written."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Self

import numpy as np

from verax.common.checks import looked_up
from verax.common.faces import Hidden, Key
from verax.common.texts import bound
from verax.display.tables import Column, Table, Tabled, band_columns, stacked
from verax.errors import InputError, passing
from verax.inference.bootstrap import percentile_interval, simultaneous_band
from verax.inputs.arrays import Floats, Ints
from verax.inputs.lists.rows import ListFaults
from verax.inputs.skipping import MaySkip, Skipped
from verax.wings.retain.cuts import (
    Area,
    Metric,
    Options,
    Ties,
    bounds_of,
    higher_is_better,
    named,
)

if TYPE_CHECKING:
    from verax.display.figures import Figure, Sheet

SEES_THE_OUTCOME = (
    "The order uses the outcome. The curve shows which rows a rule calls worst; it cannot certify the rule, "
    "because ordering by the hard cost itself, which ignores probabilities, does best or nearly so."
)


@dataclass(frozen=True, repr=False, eq=False)
class RetentionCurve(Tabled, MaySkip):
    """A metric over the rows kept, for growing shares of rows removed.

    Attributes
    ----------
    order : str
        The name of the order of the rows.
    metric : str
        The name of the metric.
    higher_is_better : bool
        Whether larger values of the metric are better.
    sees_outcome : bool
        Whether the order uses the outcomes.
    removed : array of shape (C,)
        The shares removed.
    values : array of shape (C,)
        The metric of the rows kept.
    area : float
        The area under the curve; with `area_kind` "mean" the mean height, in units of the metric.
    area_kind : {"mean", "steps"}
        The kind of area: the mean height, or the trapezoid sum with unit spacing.
    ties : {"share", "order"}
        The way a cut splits rows that tie.
    interval : tuple of two floats or None
        The interval of the area, from the bootstrap.
    band : array of shape (2, C) or None
        The band of the whole curve, from the bootstrap: it is to cover all values at once.
    areas : array of shape (B,)
        The area of each bootstrap replicate; of few groups, spread as Student's t distribution is.
    confidence : float
        Confidence level of the intervals.
    seed : int
        Random seed.
    within : array of shape (C,) or None
        The bound of the error of each value that comes from a histogram; None where it is exact.
    area_within : float or None
        The same of the area.

    Examples
    --------
    >>> import verax as vx
    >>> y, p = [0, 1, 1, 0], [[0.9, 0.1], [0.2, 0.8], [0.4, 0.6], [0.45, 0.55]]
    >>> curve = vx.retention(y, p, rule="brier", metric="accuracy", removed=[0, 0.25])
    >>> curve.removed.tolist(), curve.values.tolist()
    ([0.0, 0.25], [0.75, 1.0])
    """

    order: str
    metric: str
    higher_is_better: Hidden[bool]
    sees_outcome: bool
    removed: Floats
    values: Floats
    area: float
    area_kind: Area
    ties: Ties
    interval: tuple[float, float] | None
    band: Floats | None
    areas: Hidden[Floats]
    confidence: float
    seed: int
    within: Floats | None = None
    area_within: float | None = None

    _facts = ("_orientation", "_replicates")

    @property
    def _orientation(self) -> str:
        return "higher is better" if self.higher_is_better else "lower is better"

    @property
    def _replicates(self) -> int:
        return len(self.areas)

    def _notes(self) -> list[str]:
        return self.remarks

    def _heading(self) -> str:
        interval = "" if self.interval is None else f" ({_interval(self)})"
        unit = "mean height" if self.area_kind == "mean" else "steps"
        last = f"{100 * self.removed[-1]:g}% removed: {self.values[-1]:.4f}"
        return (
            f"RetentionCurve of {self.metric} by {self.order}: area {self.area:.4f}{interval}, {unit}; "
            f"nothing removed: {self.values[0]:.4f}, {last}{self._precision()}"
        )

    def _precision(self) -> str:
        """The bound of the errors of values from a histogram, in words."""
        return (
            "" if self.within is None else f"; from a histogram: within {bound(float(np.max(self.within)))}"
        )

    def _frame(self) -> dict[str, list[Any]]:
        """One row per share of rows removed."""
        n = len(self.removed)
        names: dict[str, list[Any]] = {"order": [self.order] * n, "metric": [self.metric] * n}
        points = {"removed": self.removed.tolist(), "value": self.values.tolist()}
        return {**names, **points, **band_columns(self.band, n)}

    def plot(self, ax: Any = None) -> Any:
        """Draw the curve with its band.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        matplotlib.figure.Figure
            The drawing.
        """
        return RetentionCurves({self.order: self}).plot(ax)


class RetentionCurves(Tabled, MaySkip, Mapping[Any, RetentionCurve]):
    """Several curves over the same rows, by the name of the order, or by (order, metric).

    Parameters
    ----------
    curves : mapping to RetentionCurve
        The curves.

    Examples
    --------
    >>> import verax as vx
    >>> y, p = [0, 1, 1, 0], [[0.9, 0.1], [0.2, 0.8], [0.4, 0.6], [0.45, 0.55]]
    >>> curves = vx.retention(y, p, rule=["brier", "log_score"], metric="accuracy", bootstrap=100)
    >>> list(curves), curves.difference("brier", "log_score")[0]
    (['brier', 'log_score'], 0.0)
    """

    _facts = ("_listed",)

    @property
    def _listed(self) -> Annotated[list[RetentionCurve], Key("curves")]:
        return list(self._curves.values())

    def __init__(self, curves: Mapping[Any, RetentionCurve]) -> None:
        self._curves: dict[Any, RetentionCurve] = dict(curves)

    def __getitem__(self, key: Any) -> RetentionCurve:
        return looked_up(self._curves, key, "curve of")

    def __iter__(self) -> Iterator[Any]:
        return iter(self._curves)

    def __len__(self) -> int:
        return len(self._curves)

    def difference(self, a: Any, b: Any) -> tuple[float, tuple[float, float]]:
        """Area of curve `a` minus that of `b`, with an interval from the same replicates for both.

        Parameters
        ----------
        a : str or tuple
            The name of a curve.
        b : str or tuple
            The name of another.

        Returns
        -------
        tuple
            The difference, and its interval as two floats.
        """
        for key in (a, b):
            if key not in self:
                raise KeyError(f"there is no curve {key!r}; there are {', '.join(map(repr, self))}")
        first, second = self[a], self[b]
        if first.within is not None and first.order != second.order:
            raise InputError(
                "must have the same order, where they come from histograms",
                argument="a",
                found="the replicates of different orders were drawn independently",
            )
        if not len(first.areas):
            raise InputError(
                "must be at least 2 for a difference with an interval",
                argument="bootstrap",
                found="these curves have no replicates",
                remedies=[passing("when the curves are computed", bootstrap=200)],
            )
        low, high = percentile_interval(first.areas - second.areas, first.confidence)
        return first.area - second.area, (float(low), float(high))

    def _tables(self) -> list[Table]:
        """A line per curve: its area, and its value at up to six cuts."""
        first = next(iter(self.values()))
        last = len(first.removed) - 1
        columns = [
            Column("order", "rows ranked by", right=False, brief="ranked by"),
            Column("metric", "metric", right=False),
            Column("area", f"area ({first.area_kind})", ".4f", brief="area"),
            Column("low high", "interval", _interval),
            *(_cut(i, first.removed[i]) for i in sorted({round(i * last / 5) for i in range(6)})),
        ]
        return [Table(columns, list(self.values()))]

    def _notes(self) -> list[str]:
        better = {curve.metric: curve.higher_is_better for curve in self.values()}
        notes = [f"{metric}: {'higher' if more else 'lower'} is better." for metric, more in better.items()]
        notes += [SEES_THE_OUTCOME] if next(iter(self.values())).sees_outcome else []
        off = [float(np.max(curve.within)) for curve in self.values() if curve.within is not None]
        notes += [f"From histograms: within {bound(max(off))}."] if off else []
        return notes + self.remarks

    def with_skipped(self, skipped: Skipped | None, rows: Ints | None = None) -> Self:
        """The curves, each of which knows what rows were left out.

        Parameters
        ----------
        skipped : Skipped or None
            The rows that were left out.
        rows : array of int, optional
            The numbers of the other rows.

        Returns
        -------
        RetentionCurves
            New curves.
        """
        marked = super().with_skipped(skipped, rows)
        marked._curves = {key: curve.with_skipped(skipped, rows) for key, curve in self._curves.items()}
        return marked

    def with_faults(self, faults: Mapping[str, ListFaults]) -> Self:
        """The curves, each of which knows what there is to say of the lists.

        Parameters
        ----------
        faults : mapping of str to ListFaults
            What there is to say of the lists of each model.

        Returns
        -------
        RetentionCurves
            New curves.
        """
        marked = super().with_faults(faults)
        marked._curves = {key: curve.with_faults(faults) for key, curve in self._curves.items()}
        return marked

    def _frame(self) -> dict[str, list[Any]]:
        """One row per order, metric and share of rows removed."""
        return stacked(curve._frame() for curve in self.values())

    def _given(self) -> dict[str, Any]:
        return {"curves": self._curves}

    def simplified(self) -> RetentionCurve | RetentionCurves:
        """The curve itself where there is only one."""
        return next(iter(self.values())) if len(self) == 1 else self

    def plot(self, ax: Any = None) -> Any:
        """Draw all curves with their bands.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        matplotlib.figure.Figure
            The drawing.
        """
        from verax.display.plots import draw

        return draw(self._sheet(), ax)

    def _sheet(self) -> Sheet:
        """The curves, a figure for each metric."""
        from verax.display.figures import Sheet

        metrics = list(dict.fromkeys(curve.metric for curve in self.values()))
        width = 5.9 if len(metrics) == 1 else 3.9
        return Sheet([self._figure(metric) for metric in metrics], len(metrics), (width, 3.7))

    def _figure(self, metric: str) -> Figure:
        """The curves of a metric."""
        from verax.display.axes import Axis
        from verax.display.figures import Figure
        from verax.display.marks import Band, Line, Mark, Ranged

        curves = [curve for curve in self.values() if curve.metric == metric]
        first = curves[0]
        kind = "mean height" if first.area_kind == "mean" else "area in steps"
        marks: list[Mark] = []
        facts = []
        for i, curve in enumerate(curves):
            x, ends = 100 * curve.removed, curve.interval or (np.nan, np.nan)
            interval = "" if curve.interval is None else f" ({ends[0]:.3f} to {ends[1]:.3f})"
            marks.append(Line(f"by {curve.order}: {kind} {curve.area:.3f}{interval}", x, curve.values, i))
            if curve.band is not None:
                low, high = curve.band
                marks.append(Band(f"{100 * curve.confidence:g}% simultaneous band", x, low, high, i))
            facts.append(Ranged(f"{kind}, by {curve.order}", curve.area, *ends))
        removed = "worst rows" if first.sees_outcome else "least certain rows"
        better = "higher" if first.higher_is_better else "lower"
        ends = (100 * float(first.removed[0]), 100 * float(first.removed[-1]))
        y = Axis(f"{metric} of the rows kept ({better} is better)")
        return Figure("", marks, Axis(f"{removed} removed (%)", *ends), y, facts=facts)


def _interval(curve: RetentionCurve) -> str:
    return "" if curve.interval is None else f"{curve.interval[0]:.4f} to {curve.interval[1]:.4f}"


def _cut(i: int, removed: float) -> Column:
    """The values of the curves at one share of rows removed."""
    share = f"{100 * removed:g}%"
    return Column("", f"{share} removed", lambda curve: f"{curve.values[i]:.4f}", brief=f"drop {share}")


# Values at each cut, those of each replicate, and how far the values can be off; None where they are exact.
Measured = tuple[Floats, Floats, Floats | None]


def curves_of_values(
    by_order: Mapping[str, Sequence[Measured]],
    metrics: Sequence[Metric],
    options: Options,
    n_classes: int,
    by_outcome: Collection[str],
) -> RetentionCurves:
    """The curves of every metric in every order; some orders look at the outcome."""
    curves: dict[Any, RetentionCurve] = {}
    for order, by_metric in by_order.items():
        for metric, points in zip(metrics, by_metric, strict=True):
            curve = _curve(order, metric, points, options, n_classes, sees_outcome=order in by_outcome)
            curves[order if len(metrics) == 1 else (order, curve.metric)] = curve
    return RetentionCurves(curves)


def _curve(
    order: str, metric: Metric, measured: Measured, options: Options, n_classes: int, *, sees_outcome: bool
) -> RetentionCurve:
    values, replicates, within = measured
    areas = np.array([options.area_of(replicate) for replicate in replicates])
    interval, band, confidence = None, None, options.plan.confidence
    if len(areas):
        bounds = np.array(bounds_of(metric, n_classes))
        most = bounds * (len(values) - 1) if options.area == "steps" else bounds
        low, high = np.clip(percentile_interval(areas, confidence), *most).tolist()
        interval = low, high
        band = np.clip(simultaneous_band(replicates, values, confidence), *bounds)
    return RetentionCurve(
        order=order,
        metric=named(metric),
        higher_is_better=higher_is_better(metric),
        sees_outcome=sees_outcome,
        removed=options.shares,
        values=values,
        area=options.area_of(values),
        area_kind=options.area,
        ties=options.ties,
        interval=interval,
        band=band,
        areas=areas,
        confidence=confidence,
        seed=options.plan.seed,
        within=within,
        area_within=None if within is None else options.area_of(within),
    )
