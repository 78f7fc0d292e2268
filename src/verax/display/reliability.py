"""Reliability diagrams as small multiples: one panel per class or threshold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from verax.display.panels import COLOURS, MOST_PANELS, grid_shape, label_below, panels, plain_texts

# The height of the tallest bar of the histogram, and up to how many forecasts each is marked.
_BARS = 0.2
_POINTS = 30


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


@plain_texts
def draw_reliability(diagram: EventDiagram, curves: Sequence[PlottedCurve]) -> Any:
    """All curves in one figure: diagonal, band, curve, histogram, components."""
    shown = list(curves)
    if len(shown) > MOST_PANELS:
        worst = sorted(shown, key=lambda curve: -curve.components.miscalibration)[:MOST_PANELS]
        shown = [curve for curve in shown if curve in worst]
    n_columns = grid_shape(len(shown))[1]
    side = {1: 3.8, 2: 3.2, 3: 2.25}.get(n_columns, 1.8)
    figure, axes = panels(len(shown), width=side, height=side, share_y=True)
    tallest = max(float(curve.histogram.max()) for curve in shown)
    for ax, curve in zip(axes, shown, strict=True):
        _panel(ax, curve, tallest, small=n_columns > 3)
        ax.set_title(diagram.title_of(curve), fontsize=9)
    note = "bars: how often each was forecast"
    if diagram.resamples:
        note = f"band: {100 * diagram.confidence:g}% of calibrated forecasts; {note}"
    parts = "MCB: miscalibration, DSC: discrimination, UNC: uncertainty"
    label_below(figure, f"forecast probability\n({note};\n{parts})")
    figure.supylabel("frequency of the event", fontsize=8)
    if len(shown) < len(curves):
        figure.suptitle(f"the {len(shown)} of {len(curves)} with the largest miscalibration", fontsize=10)
    return figure


def _panel(ax: Any, curve: PlottedCurve, tallest: float, *, small: bool) -> None:
    edges = np.linspace(0, 1, len(curve.histogram) + 1)
    heights = _BARS * curve.histogram / tallest
    ax.bar(edges[:-1], heights, np.diff(edges), align="edge", color="#cccccc", linewidth=0, zorder=1)
    ax.plot([0, 1], [0, 1], color="#777777", linewidth=0.8, linestyle="--", zorder=2)
    if curve.band is not None:
        ax.fill_between(curve.forecast, *curve.band, color=COLOURS[0], alpha=0.18, linewidth=0, zorder=2)
    x, y = _corners(curve)
    marker = "o" if len(curve.forecast) <= _POINTS else None
    ax.plot(x, y, color=COLOURS[1], linewidth=1.5, marker=marker, markersize=3, zorder=3)
    parts = curve.components
    text = "\n".join(
        f"{name} {value:z.4f}"
        for name, value in (
            ("MCB", parts.miscalibration),
            ("DSC", parts.discrimination),
            ("UNC", parts.uncertainty),
        )
    )
    ax.text(0.04, 0.96, text, transform=ax.transAxes, va="top", fontsize=6.5 if small else 8, zorder=4)
    ax.set(xlim=(-0.02, 1.02), ylim=(0, 1.02), aspect="equal")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_ticks([0, 0.5, 1], ["0", "0.5", "1"], fontsize=8)


def _corners(curve: PlottedCurve) -> tuple[Any, Any]:
    """The first and last point of every flat stretch, which are enough to draw the line."""
    y = curve.frequency
    if len(y) <= _POINTS:
        return curve.forecast, y
    step = np.flatnonzero(np.diff(y))
    ends = np.unique(np.concatenate([[0], step, step + 1, [len(y) - 1]]))
    return curve.forecast[ends], y[ends]
