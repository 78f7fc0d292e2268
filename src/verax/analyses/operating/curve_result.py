"""ROC, precision-recall and confidence curves: rates at all thresholds, with bands and areas."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from verax.analyses.binary import EventRows, ScannedRows, first_of
from verax.analyses.comparison.records import Difference
from verax.common.results import Result
from verax.display.tables import Column, Table, Tabled, interval_head, stacked
from verax.inference.intervals import Interval
from verax.inputs.arrays import Floats
from verax.inputs.skipping import MaySkip


class CurveKind(NamedTuple):
    """What a kind of curve shows: its title, what its axes are, and what its area is called."""

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
    area_interval: Interval

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
        below = np.flatnonzero(self.thresholds <= threshold)
        i = int(below[np.argmax(self.thresholds[below])]) if len(below) else int(np.argmin(self.thresholds))
        return float(self.x[i]), float(self.values[i])

    def _as_dict(self) -> dict[str, Any]:
        own = {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in vars(self).items()}
        return {**own, "area_interval": list(self.area_interval)}


@dataclass(frozen=True, repr=False, eq=False)
class RateCurves(Tabled, MaySkip):
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
    rows: EventRows | ScannedRows
    confidence: float

    def __iter__(self) -> Iterator[RateCurve]:
        return iter(self.curves)

    def __len__(self) -> int:
        return len(self.curves)

    @property
    def about(self) -> CurveKind:
        """The title, and what axes and area are called."""
        return KINDS[self.kind]

    def curve(self, event: object | None = None, model: str | None = None) -> RateCurve:
        """The curve of an event and a model; the first of those that fit.

        Parameters
        ----------
        event : str, optional
            The class, or "> class"; by default the first.
        model : str, optional
            The name of a model; by default the first.

        Returns
        -------
        RateCurve
            The curve.
        """
        return first_of(self.curves, event, model, "curve")

    def plot(self) -> Any:
        """Draw all curves, a panel for each event.

        Returns
        -------
        matplotlib.figure.Figure
            The drawing.
        """
        from verax.display.rate_curves import draw_rate_curves

        return draw_rate_curves(self, self.curves)

    def called(self, event: str) -> str:
        """What an event is called in a heading.

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
        return f"y {event}" if self.rows.ordered else f"class {event}"

    def _as_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "n_rows": self.rows.n_rows,
            "n_groups": self.rows.n_groups,
            "ordered": self.rows.ordered,
            "confidence": self.confidence,
            "curves": [curve._as_dict() for curve in self.curves],
            "differences": [{**vars(d), "interval": list(d.interval)} for d in self.differences],
            **self._noted(),
        }

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
        found = [Table(columns, self.curves)]
        if self.differences:
            pairs = [
                Column("", "a - b", lambda d: f"{d.a} - {d.b}", right=False),
                Column("difference", f"difference of {self.about.area}", "+.4f"),
                Column("low high", head, ".4f", "interval"),
                Column("p_value", "p", ".2g"),
                Column("p_adjusted", "p (Holm)", ".2g"),
            ]
            found.append(Table(pairs, self.differences))
        return found

    def _notes(self) -> list[str]:
        return self._said()


def _value_at(x: float, curve: RateCurve, *, upward: bool) -> float:
    """The best value of an increasing curve up to `x`, and of another one at `x` or more."""
    among = curve.x <= x + 1e-12 if upward else curve.x >= x - 1e-12
    found = curve.values[among & ~np.isnan(curve.values)]
    if not len(found):
        return float("nan")
    return float(found.max()) if upward else float(found[0])
