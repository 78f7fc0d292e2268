"""ROC, precision-recall and confidence curves, drawn with matplotlib: a panel for each event."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from verax.display.panels import (
    COLOURS,
    GREY,
    MOST_PANELS,
    STYLES,
    grid_shape,
    label_below,
    legend_above,
    panels,
    plain_texts,
)


class PlottedRates(Protocol):
    """What is drawn: the curve of one model for one event."""

    @property
    def model(self) -> str: ...
    @property
    def event(self) -> str: ...
    @property
    def x(self) -> Any: ...
    @property
    def values(self) -> Any: ...
    @property
    def band(self) -> Any: ...
    @property
    def area(self) -> float: ...


class Axes(Protocol):
    """What the axes are called."""

    @property
    def x(self) -> str: ...
    @property
    def y(self) -> str: ...
    @property
    def area(self) -> str: ...


class All(Protocol):
    """What holds for all panels."""

    @property
    def kind(self) -> str: ...
    @property
    def about(self) -> Axes: ...
    @property
    def confidence(self) -> float: ...
    def called(self, event: str) -> str: ...


@plain_texts
def draw_rate_curves(curves: All, drawn: Sequence[PlottedRates]) -> Any:
    """All curves in one figure, with their bands."""
    events = list(dict.fromkeys(curve.event for curve in drawn))
    shown = events[:MOST_PANELS]
    width = {1: 4.6, 2: 3.3}.get(grid_shape(len(shown))[1], 2.6)
    figure, axes = panels(len(shown), width=width, height=width, share_y=True)
    for ax, event in zip(axes, shown, strict=True):
        own = [curve for curve in drawn if curve.event == event]
        if curves.kind != "precision_recall":
            label = {"roc": "chance"}.get(curves.kind, "accuracy = confidence")
            ax.plot([0, 1], [0, 1], color=GREY, linewidth=0.8, linestyle=":", label=label)
        for i, curve in enumerate(own):
            colour, style = COLOURS[i % len(COLOURS)], STYLES[i % len(STYLES)]
            ax.fill_between(curve.x, *curve.band, color=colour, alpha=0.2 / len(own) ** 0.5, linewidth=0)
            ax.plot(curve.x, curve.values, color=colour, linestyle=style, linewidth=1.6, label=curve.model)
        areas = ", ".join(f"{curve.area:.3f}" for curve in own) if curves.about.area else ""
        ax.set_title(f"{curves.called(event)}{f': {areas}' if areas else ''}", fontsize=9)
        ax.set(xlim=(0, 1), ylim=(0, 1.02))
    legend_above(figure, axes[0])
    note = f"{100 * curves.confidence:g}% simultaneous bands"
    label_below(figure, f"{curves.about.x}\n({note})")
    figure.supylabel(curves.about.y, fontsize=8)
    if len(shown) < len(events):
        figure.suptitle(f"the first {len(shown)} of {len(events)} events", fontsize=10)
    return figure
