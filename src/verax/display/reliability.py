"""Reliability diagrams: a figure per class or threshold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from verax.display.axes import Axis
from verax.display.figures import MOST_FIGURES, Figure, Sheet, widths
from verax.display.marks import Band, Line, Mark, Ranged, Strip

# Up to how many forecasts each is marked.
_POINTS = 30
_FORECAST = Axis("forecast probability", -0.02, 1.02, ticks=(0.0, 0.5, 1.0))
_HAPPENED = Axis("frequency of the event", 0, 1.02, ticks=(0.0, 0.5, 1.0))


class EventParts(Protocol):
    """The parts of the squared error of one event."""

    @property
    def miscalibration(self) -> float: ...
    @property
    def discrimination(self) -> float: ...
    @property
    def uncertainty(self) -> float: ...


class PlottedCurve(Protocol):
    """The data of one panel: frequencies of one event against its forecasts."""

    @property
    def name(self) -> str: ...
    @property
    def forecast(self) -> Any: ...
    @property
    def frequency(self) -> Any: ...
    @property
    def band(self) -> Any: ...
    @property
    def histogram(self) -> Any: ...
    @property
    def components(self) -> EventParts: ...


class EventDiagram(Protocol):
    """The data that all panels share."""

    @property
    def resamples(self) -> int: ...
    @property
    def confidence(self) -> float: ...
    def title_of(self, curve: Any, /) -> str: ...


def reliability_sheet(diagram: EventDiagram, curves: Sequence[PlottedCurve]) -> Sheet:
    """All curves: diagonal, band, curve, histogram, components."""
    shown = list(curves)
    if len(shown) > MOST_FIGURES:
        worst = sorted(shown, key=lambda curve: -curve.components.miscalibration)[:MOST_FIGURES]
        shown = [curve for curve in shown if curve in worst]
    tallest = max(float(curve.histogram.max()) for curve in shown)
    left = f"the {len(shown)} of {len(curves)} with the largest miscalibration"
    return Sheet(
        [reliability_figure(diagram, curve, tallest).bare() for curve in shown],
        size=widths(len(shown), 3.8, 3.2, 2.25 if len(shown) <= 9 else 1.8),
        title=left if len(shown) < len(curves) else "",
        note="MCB: miscalibration, DSC: discrimination, UNC: uncertainty",
        x=_FORECAST.label,
        y=_HAPPENED.label,
        shared="xy",
        key="above",
    )


def reliability_figure(diagram: EventDiagram, curve: PlottedCurve, tallest: float | None = None) -> Figure:
    """One curve; `tallest` is the largest count of the histograms beside it."""
    edges = np.linspace(0, 1, len(curve.histogram) + 1)
    x, y = _corners(curve)
    marks: list[Mark] = [
        Strip("how often each was forecast", edges, curve.histogram, tallest),
        Line("calibrated", [0, 1], [0, 1], "soft", dash=1),
        Line("observed", x, y, 1, dash=0, dots=len(curve.forecast) <= _POINTS),
    ]
    if curve.band is not None:
        band = f"{100 * diagram.confidence:g}% of calibrated forecasts"
        marks.append(Band(band, curve.forecast, *curve.band))
    parts = curve.components
    named = {"MCB": parts.miscalibration, "DSC": parts.discrimination, "UNC": parts.uncertainty}
    inside = "\n".join(f"{name} {value:z.4f}" for name, value in named.items())
    facts = [
        Ranged("miscalibration", parts.miscalibration),
        Ranged("discrimination", parts.discrimination),
        Ranged("uncertainty", parts.uncertainty),
    ]
    title = diagram.title_of(curve)
    return Figure(title, marks, _FORECAST, _HAPPENED, facts=facts, inside=inside, square=True)


def _corners(curve: PlottedCurve) -> tuple[Any, Any]:
    """The first and last point of every flat stretch, which are enough to draw the line."""
    y = curve.frequency
    if len(y) <= _POINTS:
        return curve.forecast, y
    step = np.flatnonzero(np.diff(y))
    ends = np.unique(np.concatenate([[0], step, step + 1, [len(y) - 1]]))
    return curve.forecast[ends], y[ends]
