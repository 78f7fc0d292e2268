"""Rates of decisions at thresholds and along curves, with their intervals and the differences of models."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from verax.analyses.binary import EventRows, ScannedRows, event_in_words, first_of
from verax.analyses.comparison.findings import TESTED, Standings
from verax.analyses.comparison.records import Difference, pair_of
from verax.analyses.comparison.sides import with_partners
from verax.analyses.rates import COMPARED, RATES
from verax.common.checks import any_number, looked_up
from verax.common.faces import Brief, Hidden, Merged
from verax.common.results import Result
from verax.display.tables import Column, Table, Tabled, interval_head, stacked
from verax.inference.findings import Finding, Verdict
from verax.inference.intervals import Interval
from verax.inputs.arrays import Floats
from verax.inputs.skipping import MaySkip
from verax.wings.decide.curves import CurvesOfEvents

if TYPE_CHECKING:
    from verax.display.figures import Figure, Sheet

# Beyond this number of points, rates stand in columns without their intervals.
_SIDE_BY_SIDE = 3


@dataclass(frozen=True)
class Rate:
    """One rate of decisions.

    Attributes
    ----------
    name : str
        Its name, such as "sensitivity".
    value : float
        The value; NaN where it is undefined.
    interval : Interval
        Its confidence interval.
    """

    name: Hidden[str]
    value: float
    interval: Brief[Interval]


@dataclass(frozen=True, repr=False, eq=False)
class OperatingPoint(Result):
    """The rates of one model for one event at one threshold; `point["sensitivity"]` is a number.

    Attributes
    ----------
    model : str
        The name of the model.
    event : str
        The class, or "> class".
    threshold : float
        Rows with at least this probability of the event are acted on. NaN where no threshold can promise what
        was asked for.
    rates : tuple of Rate
        All rates with their intervals: those of this threshold, corrected for its choice where it was chosen
        on these rows.
    shares : tuple of four floats
        The shares of true alarms, false alarms, misses, and rows rightly left alone among these rows.
    per_fold : array of shape (folds,) or None
        The thresholds chosen without each fold: how much they vary. None for a threshold that was given, or
        that promises a rate.
    note : str
        The promise of a chosen threshold, or why there is none; empty for others.

    Examples
    --------
    >>> import verax as vx
    >>> point = vx.operating_points([0, 0, 0, 1, 1, 1], [0.1, 0.2, 0.6, 0.4, 0.7, 0.9]).points[0]
    >>> point.event, point.threshold, round(point["ppv"], 4), round(point["lr_positive"], 4)
    ('1', 0.5, 0.6667, 2.0)
    """

    model: str
    event: str
    threshold: float
    rates: Hidden[tuple[Rate, ...]]
    shares: tuple[float, float, float, float]
    per_fold: Floats | None = None
    note: str = ""

    _facts = ("_by_name", "_shares")

    @property
    def _by_name(self) -> Merged[dict[str, Rate]]:
        return {rate.name: rate for rate in self.rates}

    @property
    def _shares(self) -> dict[str, float]:
        return dict(zip(("tp", "fp", "fn", "tn"), self.shares, strict=True))

    def __getitem__(self, name: str) -> float:
        return self.rate(name).value

    def rate(self, name: str) -> Rate:
        """A rate with its interval.

        Parameters
        ----------
        name : str
            Its name, such as "ppv".

        Returns
        -------
        Rate
            The rate.
        """
        return looked_up({listed.name: listed for listed in self.rates}, name, "rate")


@dataclass(frozen=True)
class RateDifference:
    """A rate of model `a` minus that of model `b` for one event.

    Attributes
    ----------
    a : str
        The name of a model.
    b : str
        The name of the other.
    event : str
        The class, or "> class".
    thresholds : tuple of two floats
        The threshold of each model.
    rate : str
        The name of the rate.
    difference : float
        The difference; NaN where a rate is undefined.
    interval : Interval
        Its confidence interval.
    p_value : float
        The two-sided p-value: one minus the confidence at which the interval ends at zero.
    p_adjusted : float
        The same, corrected for all pairs of models (Holm).
    """

    a: str
    b: str
    event: str
    thresholds: tuple[float, float]
    rate: str
    difference: float
    interval: Brief[Interval]
    p_value: float
    p_adjusted: float

    def turned(self) -> RateDifference:
        """The same with the two models exchanged."""
        return replace(
            self,
            a=self.b,
            b=self.a,
            thresholds=self.thresholds[::-1],
            difference=-self.difference,
            interval=-self.interval,
        )


@dataclass(frozen=True, repr=False, eq=False)
class OperatingPoints(Tabled, MaySkip):
    """Rates of decisions at thresholds, for all models and events; `points["ppv"]` is that of the first.

    Attributes
    ----------
    points : tuple of OperatingPoint
        The points of all models, events and thresholds.
    differences : tuple of RateDifference
        The paired differences of all pairs of models.
    rows : EventRows or ScannedRows
        The rows and the events.
    confidence : float
        Confidence level of the intervals.
    aim : str
        The aim that thresholds were chosen for; empty for thresholds that were given.

    Examples
    --------
    >>> import verax as vx
    >>> y, p = [0, 0, 0, 1, 1, 1], [0.1, 0.2, 0.6, 0.4, 0.7, 0.9]
    >>> point = vx.operating_points(y, p).points[0]
    >>> round(point["sensitivity"], 4), f"{point.rate('sensitivity').interval:.2f}"
    (0.6667, '0.13 to 0.98')
    """

    points: tuple[OperatingPoint, ...]
    differences: tuple[RateDifference, ...]
    rows: Hidden[EventRows | ScannedRows]
    confidence: float
    aim: str = ""

    _facts = ("rows.n_rows", "rows.n_groups", "rows.ordered")

    def __iter__(self) -> Iterator[OperatingPoint]:
        return iter(self.points)

    def __len__(self) -> int:
        return len(self.points)

    def __getitem__(self, name: str) -> float:
        return self.points[0][name]

    def point(self, event: object | None = None, model: str | None = None) -> OperatingPoint:
        """The point of an event and a model; the first of those that fit.

        Parameters
        ----------
        event : str, optional
            The class, or "> class"; by default the first.
        model : str, optional
            The name of a model; by default the first.

        Returns
        -------
        OperatingPoint
            The point.
        """
        return first_of(self.points, event, model, "point")

    def difference(self, a: str, b: str, rate: str, event: object | None = None) -> RateDifference:
        """The difference of a rate between two models; the first of those that fit.

        Parameters
        ----------
        a : str
            The name of a model.
        b : str
            The name of another.
        rate : str
            The name of the rate.
        event : str, optional
            The class, or "> class"; by default the first.

        Returns
        -------
        RateDifference
            The rate of `a` minus that of `b`, with interval and p-value.
        """
        events = [gap for gap in self.differences if event is None or str(event) == gap.event]
        return pair_of([gap for gap in events if gap.rate == rate], a, b, f" in {rate!r}")

    def verdict_by(self, rate: str) -> Verdict:
        """Which model is best by a rate, event by event; events are corrected for as well (Bonferroni).

        Parameters
        ----------
        rate : str
            The name of the rate.

        Returns
        -------
        Verdict
            The claims as a text, with their findings.
        """
        findings: list[Finding] = []
        events = list(dict.fromkeys(point.event for point in self.points))
        for event in events:
            rates = {point.model: point.rate(rate) for point in self.points if point.event == event}
            values = {name: (listed.value, listed.interval) for name, listed in rates.items()}
            if any(math.isnan(value) for value, _ in values.values()):
                continue

            def value(name: str, other: str, event: str = event) -> float:
                return self.point(event, name)[other]

            def corrected(a: str, b: str, other: str, event: str = event) -> RateDifference:
                difference = self.difference(a, b, other, event)
                return replace(difference, p_adjusted=min(1.0, len(events) * difference.p_adjusted))

            where = f" for {event}" if len(events) > 1 else ""
            told = Standings.of_values(values, partial(corrected, other=rate), rate, where=where)
            findings += with_partners(
                told.findings(lambda *_: None), rate, COMPARED, value, corrected, list(values)
            )
        return Verdict(findings, TESTED)

    def _frame(self) -> Table:
        """One line per model, event, threshold and rate."""
        lines = [(point, rate) for point in self.points for rate in point.rates]
        columns = [
            Column("model", value=lambda line: line[0].model),
            Column("event", value=lambda line: line[0].event),
            Column("threshold", value=lambda line: line[0].threshold),
            Column("rate", value=lambda line: line[1].name),
            Column("value", value=lambda line: line[1].value),
            Column("low high", value=lambda line: line[1].interval),
        ]
        return Table(columns, lines)

    def _heading(self) -> str:
        what = "operating point" if len(self.points) == 1 else "operating points"
        return self.rows.heading(what)

    def _tables(self) -> list[Table]:
        head = interval_head(self.confidence)
        if len(self.points) <= _SIDE_BY_SIDE:
            tables = []
            for point in self.points:
                columns = [
                    Column("rate", "rate", value="name", right=False),
                    Column("value", "value", ".4f"),
                    Column("low high", head, ".4f", "interval"),
                    Column("", "what it is", lambda rate: RATES[rate.name].summary, right=False),
                ]
                tables.append(Table(columns, point.rates, self._title_of(point)))
        else:
            columns = [Column(name, name, right=False) for name in ("model", "event")]
            columns.append(Column("threshold", "threshold", ".4g"))
            columns += [Column(name, name, ".4f", _value_of(name)) for name in RATES]
            tables = [Table(columns, self.points)]
        if self.differences:
            pairs = [
                Column("", "a - b", lambda gap: f"{gap.a} - {gap.b}", right=False),
                Column("event", "event", right=False),
                Column("rate", "rate", right=False),
                Column("difference", "difference", "+.4f"),
                Column("low high", head, ".4f", "interval"),
                Column("p_value", "p", ".2g"),
                Column("p_adjusted", "p (Holm)", ".2g"),
            ]
            tables.append(Table(pairs, self.differences, "Paired differences"))
        return tables

    def _title_of(self, point: OperatingPoint) -> str:
        """A point in words."""
        event = event_in_words(point.event, ordered=self.rows.ordered)
        model = "" if point.model == "forecast" else f"{point.model}, "
        if math.isnan(point.threshold):
            return f"{model}{event}: no threshold"
        digits = ".6g" if self.aim else ".4g"
        return f"{model}{event} at a probability of at least {point.threshold:{digits}}"

    def _notes(self) -> list[str]:
        notes = []
        if any(point.per_fold is not None for point in self.points):
            of_shown = "rates are those of the thresholds shown, corrected for the choice by resampling"
            notes.append(f"Thresholds were chosen for {self.aim}; {of_shown}.")
        for point in self.points[:_SIDE_BY_SIDE]:
            # Why there is no threshold is a caution.
            if point.note and not math.isnan(point.threshold):
                notes.append(f"{point.note[0].upper()}{point.note[1:]}.")
            if point.per_fold is not None:
                low, high = float(point.per_fold.min()), float(point.per_fold.max())
                notes.append(f"Thresholds chosen without one fold: {low:.4g} to {high:.4g}.")
        notes = list(dict.fromkeys(notes))
        notes += self.cautions
        return [*notes, *self.remarks]

    @property
    def cautions(self) -> list[str]:
        """The reasons why intervals may be unreliable."""
        texts = {rate.interval.caution for point in self.points for rate in point.rates}
        return [f"Caution: {text}." for text in sorted(texts) if text]


def _value_of(name: str) -> Any:
    return lambda point: point[name]


class CurveKind(NamedTuple):
    """The title, the axes and the name of the area of a kind of curve."""

    title: str
    x: str
    y: str
    area: str


KINDS = {
    "roc": CurveKind("ROC curve", "false positive rate", "sensitivity", "ROC AUC"),
    "precision_recall": CurveKind("precision-recall curve", "recall", "precision", "average precision"),
    "confidence": CurveKind("confidence curve", "confidence", "accuracy", ""),
}


@dataclass(frozen=True, repr=False, eq=False)
class RateCurve(Result):
    """The curve of one model for one event: T points, by increasing `x`.

    Attributes
    ----------
    model : str
        The name of the model.
    event : str
        The class, "> class", or "right" for the most likely class.
    thresholds : array of shape (T,)
        The threshold of each point: rows with at least this probability are acted on.
    x, values : arrays of shape (T,)
        The points: false positive rate and sensitivity, recall and precision, or confidence and accuracy.
    acted : array of shape (T,)
        The share of rows that are acted on.
    x_interval, interval : arrays of shape (2, T)
        Confidence intervals of `x` and of `values`, each for its threshold.
    band : array of shape (2, T)
        A simultaneous confidence band: of ROC curves for the whole curve, at the points `x`; of others for
        `values` at all thresholds at which at least 10 rows are acted on, NaN elsewhere.
    area : float
        The area under the curve; NaN for confidence curves.
    area_interval : Interval
        Its confidence interval.

    Examples
    --------
    >>> import verax as vx
    >>> curve = vx.precision_recall_curve([0, 0, 1, 1, 1], [0.1, 0.4, 0.35, 0.8, 0.9]).curves[0]
    >>> curve.event, round(curve.area, 4), curve.at(0.8)
    ('1', 0.9167, (0.6666666666666666, 1.0))
    """

    model: str
    event: str
    thresholds: Floats
    x: Floats
    values: Floats
    acted: Floats
    x_interval: Floats
    interval: Floats
    band: Floats
    area: float
    area_interval: Brief[Interval]

    def at(self, threshold: float) -> tuple[float, float]:
        """The point of the largest threshold on the curve that is not above this one.

        Parameters
        ----------
        threshold : float
            A probability.

        Returns
        -------
        tuple of two floats
            `x` and the value there.
        """
        below = np.flatnonzero(self.thresholds <= any_number("threshold", threshold))
        i = int(below[np.argmax(self.thresholds[below])]) if len(below) else int(np.argmin(self.thresholds))
        return float(self.x[i]), float(self.values[i])


@dataclass(frozen=True, repr=False, eq=False)
class RateCurves(CurvesOfEvents[RateCurve]):
    """The curves of all models and events, and the paired differences of their areas.

    Attributes
    ----------
    kind : str
        "roc", "precision_recall" or "confidence".
    curves : tuple of RateCurve
        The curves of all models and events.
    differences : tuple of Difference
        The differences of the areas, averaged over the events, of all pairs of models.
    rows : EventRows or ScannedRows
        The rows and the events.
    confidence : float
        Confidence level of intervals and bands.

    Examples
    --------
    >>> import verax as vx
    >>> curve = vx.roc_curve([0, 0, 1, 1, 1], [0.1, 0.4, 0.35, 0.8, 0.9]).curves[0]
    >>> curve.x.tolist(), curve.values.round(3).tolist(), round(curve.area, 4)
    ([0.0, 0.0, 0.0, 0.5, 0.5, 1.0], [0.0, 0.333, 0.667, 0.667, 1.0, 1.0], 0.8333)
    """

    kind: str
    curves: tuple[RateCurve, ...]
    differences: tuple[Difference, ...]
    rows: Hidden[EventRows | ScannedRows]
    confidence: float

    @property
    def about(self) -> CurveKind:
        """The title, and what axes and area are called."""
        return KINDS[self.kind]

    def _sheet(self) -> Sheet:
        """The curves, a figure for each event."""
        from verax.display.figures import MOST_FIGURES, Sheet, widths

        events, title = self._drawn(MOST_FIGURES)
        figures = [self._figure(event).bare() for event in events]
        size = widths(len(figures), 4.6, 3.3, 2.6)
        x, y = self.about.x, self.about.y
        return Sheet(figures, size=size, title=title, x=x, y=y, shared="xy", key="above")

    def _figure(self, event: str) -> Figure:
        """The curves of an event."""
        from verax.display.axes import Axis
        from verax.display.figures import Figure
        from verax.display.marks import Band, Line, Mark, Ranged

        curves = [curve for curve in self.curves if curve.event == event]
        reference = {"roc": "chance", "confidence": "accuracy = confidence"}.get(self.kind)
        marks: list[Mark] = [Line(reference, (0, 1), (0, 1), "soft")] if reference else []
        band = f"{100 * self.confidence:g}% simultaneous band"
        for i, curve in enumerate(curves):
            marks.append(Line(curve.model, curve.x, curve.values, i, along=curve.thresholds))
            low, high = curve.band
            marks.append(Band(band, curve.x, low, high, i))
        area = self.about.area
        facts = [Ranged(f"{area}, {c.model}", c.area, *c.area_interval) for c in curves] if area else []
        areas = ", ".join(f"{curve.area:.3f}" for curve in curves) if area else ""
        title = f"{self.called(event)}{f': {areas}' if areas else ''}"
        x, y = Axis(self.about.x, 0, 1), Axis(self.about.y, 0, 1.02)
        return Figure(title, marks, x, y, facts=facts, heads={"along": "threshold"})

    def called(self, event: str) -> str:
        """The name of an event in a heading.

        Parameters
        ----------
        event : str
            The class, or "> class".

        Returns
        -------
        str
            Its name in words.
        """
        if self.kind == "confidence":
            return "most likely class"
        return super().called(event)

    def _frame(self) -> dict[str, list[Any]]:
        """One row per model, event and threshold."""
        names = [self.about.x.replace(" ", "_"), self.about.y.replace(" ", "_")]
        parts = []
        for curve in self.curves:
            n, (low, high), (lowest, highest) = len(curve.x), curve.interval, curve.band
            parts.append(
                {
                    "model": [curve.model] * n,
                    "event": [curve.event] * n,
                    "threshold": curve.thresholds.tolist(),
                    names[0]: curve.x.tolist(),
                    names[1]: curve.values.tolist(),
                    "low": low.tolist(),
                    "high": high.tolist(),
                    "band_low": lowest.tolist(),
                    "band_high": highest.tolist(),
                    "acted": curve.acted.tolist(),
                }
            )
        return stacked(parts)

    def _heading(self) -> str:
        return self.rows.heading(self.about.title)

    def _tables(self) -> list[Table]:
        columns = [Column(name, name, right=False) for name in ("event", "model")]
        head = interval_head(self.confidence)
        if self.about.area:
            columns += [
                Column("area", self.about.area, ".4f"),
                Column("low high", head, ".4f", "area_interval"),
            ]
        wanted = {
            "roc": (0.05, 0.1, 0.2),
            "precision_recall": (0.5, 0.8, 0.9),
            "confidence": (0.0, 0.5, 0.8, 0.9),
        }[self.kind]
        what = {"roc": "sensitivity at FPR {:g}", "precision_recall": "precision at recall {:g}"}
        text = what.get(self.kind, "accuracy from {:g}")
        upward = self.kind == "roc"
        columns += [Column("", text.format(x), ".4f", partial(_value_at, x, upward=upward)) for x in wanted]
        tables = [Table(columns, self.curves)]
        if self.differences:
            pairs = [
                Column("", "a - b", lambda d: f"{d.a} - {d.b}", right=False),
                Column("difference", f"difference of {self.about.area}", "+.4f"),
                Column("low high", head, ".4f", "interval"),
                Column("p_value", "p", ".2g"),
                Column("p_adjusted", "p (Holm)", ".2g"),
            ]
            tables.append(Table(pairs, self.differences))
        return tables

    def _notes(self) -> list[str]:
        return self.remarks


def _value_at(x: float, curve: RateCurve, *, upward: bool) -> float:
    """The best value of an increasing curve up to `x`, and of another one at `x` or more."""
    among = curve.x <= x + 1e-12 if upward else curve.x >= x - 1e-12
    values = curve.values[among & ~np.isnan(curve.values)]
    if not len(values):
        return float("nan")
    return float(values.max()) if upward else float(values[0])
