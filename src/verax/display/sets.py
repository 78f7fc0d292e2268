"""Prediction sets, drawn with matplotlib: their sizes and coverage, and ordered sets as bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from verax.display.panels import COLOURS, GREY, label_below, plain_texts, pyplot

# Of more lines in a panel, those with the fewest covered sets are drawn.
MOST_LINES = 25
# Of more spans, the most frequent are drawn.
MOST_BARS = 25


class PlottedCoverage(Protocol):
    """The coverage of some sets."""

    @property
    def label(self) -> Any: ...
    @property
    def coverage(self) -> float: ...
    @property
    def interval(self) -> Any: ...
    @property
    def flagged(self) -> bool: ...


class PlottedSets(Protocol):
    """What is drawn of sets."""

    @property
    def sizes(self) -> Mapping[int, float]: ...
    @property
    def claimed(self) -> float | None: ...
    @property
    def coverage(self) -> Any: ...
    @property
    def by_size(self) -> Sequence[Any]: ...
    @property
    def by_class(self) -> Sequence[Any]: ...
    @property
    def by(self) -> Mapping[str, Sequence[Any]]: ...


class PlottedSpan(Protocol):
    """The sets that reach from one class to another."""

    @property
    def low(self) -> int: ...
    @property
    def high(self) -> int: ...
    @property
    def share(self) -> float: ...
    @property
    def outcomes(self) -> Sequence[float]: ...


class PlottedSpans(Protocol):
    """What is drawn as bars."""

    @property
    def spans(self) -> Sequence[PlottedSpan]: ...
    @property
    def classes(self) -> Sequence[str]: ...


@plain_texts
def draw_sets(found: PlottedSets) -> Any:
    """A panel with the sizes, and one with the coverage for each breakdown."""
    panels = {"set size": found.by_size, "observed class": found.by_class, **found.by}
    panels = {name: _fitting(lines) for name, lines in panels.items() if lines}
    rows = max(6, *(len(lines) for lines in panels.values()))
    target, what = found.claimed, "claimed coverage"
    if target is None:
        target, what = found.coverage.value, "coverage of all sets"
    width = 3.4 * (1 + len(panels))
    figure, axes = pyplot().subplots(
        1, 1 + len(panels), figsize=(width, 1.5 + 0.24 * rows), layout="constrained", squeeze=False
    )
    _draw_sizes(axes[0, 0], found.sizes)
    for ax, (name, lines) in zip(axes[0, 1:], panels.items(), strict=True):
        _draw_coverage(ax, name, lines, target)
    label_below(figure, f"dashed: {what}; diamonds: significantly different from it")
    return figure


def _fitting(lines: Sequence[Any]) -> list[Any]:
    if len(lines) <= MOST_LINES:
        return list(lines)
    lowest = sorted(lines, key=lambda line: line.coverage)[:MOST_LINES]
    return [line for line in lines if line in lowest]


def _draw_sizes(ax: Any, sizes: Mapping[int, float]) -> None:
    largest = max(sizes)
    if largest <= 30:
        ax.bar(list(sizes), list(sizes.values()), color=COLOURS[0], width=0.8)
        ax.set_xticks(range(0, largest + 1, 1 + largest // 12))
    else:
        edges = np.linspace(0, largest + 1, 31)
        ax.hist(list(sizes), bins=edges.tolist(), weights=list(sizes.values()), color=COLOURS[0])
    ax.set(xlabel="number of classes in the set", ylabel="share of sets")
    ax.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    ax.spines[["top", "right"]].set_visible(False)


def _draw_coverage(ax: Any, name: str, lines: Sequence[PlottedCoverage], target: float) -> None:
    ax.axvline(target, color=GREY, linewidth=1, linestyle="--", zorder=0)
    for place, line in enumerate(lines):
        colour, marker = (COLOURS[1], "D") if line.flagged else (COLOURS[0], "o")
        if line.interval.defined:
            ax.plot(list(line.interval), [place, place], color=colour, linewidth=1.6)
        ax.plot(line.coverage, place, marker, color=colour, markersize=5)
    ax.set_yticks(range(len(lines)), [str(line.label) for line in lines])
    ax.set_ylim(len(lines) - 0.5, -0.5)
    ax.set_title(f"Coverage by {name}", fontsize=9)
    ax.set_xlabel("coverage")
    ax.xaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="x", color="#dddddd", linewidth=0.6)
    ax.set_axisbelow(True)


@plain_texts
def draw_spans(found: PlottedSpans) -> Any:
    """The most frequent spans as bars, with a dot for each outcome: as large as it is frequent."""
    names, spans = found.classes, found.spans[:MOST_BARS]
    k = len(names)
    turned = sum(map(len, names)) > 9 * k
    figure, ax = pyplot().subplots(
        figsize=(2.4 + 0.6 * max(k, 7), 1.3 + 0.3 * len(spans)), layout="constrained"
    )
    for place, span in enumerate(spans):
        ax.barh(
            place, span.high - span.low + 1, left=span.low - 0.5, height=0.78, color=COLOURS[0], alpha=0.22
        )
        for y, share in enumerate(span.outcomes):
            inside = span.low <= y <= span.high
            area = 90 * share
            ax.scatter(
                y, place, s=area, marker="o" if inside else "D", color=COLOURS[0 if inside else 1], zorder=2
            )
    ax.set_xticks(range(k), list(names), rotation=30 if turned else 0, ha="right" if turned else "center")
    ax.set_xlim(-0.6, k - 0.4)
    ax.set_yticks(range(len(spans)), [f"{span.share:.1%}" for span in spans])
    ax.set_ylim(len(spans) - 0.4, -0.6)
    ax.set_ylabel("share of the sets")
    ax.set_xlabel("bars: the span of the set; circles: outcomes in it; diamonds: missed", fontsize=8)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.tick_params(axis="y", length=0)
    return figure
