"""Murphy diagrams, drawn with matplotlib: elementary scores by threshold, and their differences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from verax.display.panels import (
    COLOURS,
    STYLES,
    PlottedEvents,
    label_below,
    legend_above,
    panels,
    plain_texts,
)

# The maximum number of events, and of pairs of models, that are drawn.
MOST_EVENTS, MOST_PAIRS = 5, 3


class ElementaryCurve(Protocol):
    """What is drawn: the elementary scores of one model for one event."""

    @property
    def model(self) -> str: ...
    @property
    def event(self) -> str: ...
    @property
    def thresholds(self) -> Any: ...
    @property
    def values(self) -> Any: ...


class ElementaryGap(Protocol):
    """What is drawn below: the difference of two models."""

    @property
    def a(self) -> str: ...
    @property
    def b(self) -> str: ...
    @property
    def event(self) -> str: ...
    @property
    def thresholds(self) -> Any: ...
    @property
    def values(self) -> Any: ...
    @property
    def interval(self) -> Any: ...
    @property
    def band(self) -> Any: ...


class Diagrams(Protocol):
    """What holds for all panels."""

    @property
    def rows(self) -> PlottedEvents: ...
    @property
    def confidence(self) -> float: ...


@plain_texts
def draw_murphy(diagrams: Diagrams, curves: Sequence[ElementaryCurve], gaps: Sequence[ElementaryGap]) -> Any:
    """A column for each event: the curves of all models, and below them the difference of each pair."""
    events = list(dict.fromkeys(curve.event for curve in curves))
    shown = events[:MOST_EVENTS]
    pairs = list(dict.fromkeys((gap.a, gap.b) for gap in gaps))[:MOST_PAIRS]
    shape = 1 + len(pairs), len(shown)
    width = {1: 5.6, 2: 3.2}.get(len(shown), 2.4)
    figure, axes = panels(shape[0] * shape[1], width=width, height=2.3, share_y="row", shape=shape)
    for i, event in enumerate(shown):
        column = axes[i :: len(shown)]
        _curves(column[0], [curve for curve in curves if curve.event == event])
        column[0].set_title(f"y {event}" if diagrams.rows.ordered else f"class {event}", fontsize=9)
        for ax, pair in zip(column[1:], pairs, strict=True):
            _gap(ax, next(gap for gap in gaps if gap.event == event and (gap.a, gap.b) == pair))
    # The panels of a row share their scale.
    axes[0].set_ylim(0, 1.05 * max(float(curve.values.max()) for curve in curves) or 1)
    if len(shown) > 2:
        axes[0].set_xticks([0, 0.5, 1], ["0", "0.5", "1"])
    axes[0].set_ylabel("mean elementary score\n(lower is better)", fontsize=8)
    legend_above(figure, axes[0])
    for i, (a, b) in enumerate(pairs):
        axes[(i + 1) * len(shown)].set_ylabel(f"{a} - {b}\n(negative: {a} is better)", fontsize=8)
    level = f"{100 * diagrams.confidence:g}%"
    note = f"\n(dark: {level} intervals, each for its threshold; light: simultaneous {level} band)"
    label_below(figure, f"threshold{note if pairs else ''}")
    if len(shown) < len(events):
        figure.suptitle(f"the first {len(shown)} of {len(events)} events", fontsize=10)
    return figure


def _curves(ax: Any, curves: list[ElementaryCurve]) -> None:
    for i, curve in enumerate(curves):
        colour, style = COLOURS[i % len(COLOURS)], STYLES[i % len(STYLES)]
        ax.plot(
            curve.thresholds, curve.values, color=colour, linestyle=style, linewidth=1.6, label=curve.model
        )
    ax.set_xlim(0, 1)


def _gap(ax: Any, gap: ElementaryGap) -> None:
    ax.axhline(0, color="#777777", linewidth=0.8)
    for band, alpha in ((gap.band, 0.15), (gap.interval, 0.25)):
        ax.fill_between(gap.thresholds, *band, color=COLOURS[0], alpha=alpha, linewidth=0)
    ax.plot(gap.thresholds, gap.values, color=COLOURS[0], linewidth=1.4)
    ax.set(xlim=(0, 1))
