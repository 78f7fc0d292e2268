"""Decision curves, drawn with matplotlib: net benefit by threshold, a panel for each event."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from verax.display.panels import (
    COLOURS,
    MOST_PANELS,
    STYLES,
    PlottedEvents,
    grid_shape,
    label_below,
    legend_above,
    panels,
    plain_texts,
)


class BenefitCurve(Protocol):
    """What is drawn: the net benefit of one model for one event."""

    @property
    def model(self) -> str: ...
    @property
    def event(self) -> str: ...
    @property
    def prevalence(self) -> float: ...
    @property
    def thresholds(self) -> Any: ...
    @property
    def values(self) -> Any: ...
    @property
    def treat_all(self) -> Any: ...
    @property
    def interval(self) -> Any: ...


class Benefits(Protocol):
    """What holds for all panels."""

    @property
    def rows(self) -> PlottedEvents: ...
    @property
    def standardized(self) -> bool: ...
    @property
    def confidence(self) -> float: ...


@plain_texts
def draw_decision_curves(benefits: Benefits, curves: Sequence[BenefitCurve]) -> Any:
    """All curves in one figure, with their intervals and the lines of acting in all rows and in none."""
    events = list(dict.fromkeys(curve.event for curve in curves))
    shown = events[:MOST_PANELS]
    width = {1: 5.6, 2: 3.3}.get(grid_shape(len(shown))[1], 2.6)
    figure, axes = panels(len(shown), width=width, height=2.8, share_y=False)
    for ax, event in zip(axes, shown, strict=True):
        own = [curve for curve in curves if curve.event == event]
        _panel(ax, own, benefits.standardized)
        ax.set_title(f"y {event}" if benefits.rows.ordered else f"class {event}", fontsize=9)
    legend_above(figure, axes[0])
    note = f"{100 * benefits.confidence:g}% intervals, each for its threshold"
    label_below(figure, f"threshold probability from which one acts\n({note})")
    figure.supylabel("standardized net benefit" if benefits.standardized else "net benefit", fontsize=8)
    if len(shown) < len(events):
        figure.suptitle(f"the first {len(shown)} of {len(events)} events", fontsize=10)
    return figure


def _panel(ax: Any, curves: list[BenefitCurve], standardized: bool) -> None:
    first = curves[0]
    x = first.thresholds
    ax.axhline(0, color="#777777", linewidth=0.8, label="act in no row")
    ax.plot(x, first.treat_all, color="#777777", linewidth=0.8, linestyle=":", label="act in all rows")
    alpha = 0.2 / len(curves) ** 0.5
    for i, curve in enumerate(curves):
        colour, style = COLOURS[i % len(COLOURS)], STYLES[i % len(STYLES)]
        ax.fill_between(x, *curve.interval, color=colour, alpha=alpha, linewidth=0)
        ax.plot(x, curve.values, color=colour, linestyle=style, linewidth=1.6, label=curve.model)
    # Below zero a model is of no use, however far.
    top = 1.0 if standardized else first.prevalence
    ax.set(xlim=(0, 1), ylim=(-0.1 * top, 1.08 * top) if top > 0 else (-0.1, 0.1))
