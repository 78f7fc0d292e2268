"""The figures of prediction sets: their sizes and coverage, and ordered sets as bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from verax.common.texts import percent
from verax.display.axes import Axis
from verax.display.figures import Figure, Sheet, rows_figure
from verax.display.marks import Bars, Guide, Mark, Points, Ranged, Ranges

# Up to this size each has a bar of its own; beyond, neighbours share one.
_MOST_SIZES = 30


class JudgedSets(Protocol):
    """The figure's data: how large sets are, and how often they hold the outcome."""

    @property
    def sizes(self) -> Mapping[int, float]: ...
    @property
    def claimed(self) -> float | None: ...
    @property
    def confidence(self) -> float: ...
    @property
    def _aim(self) -> float: ...
    def _coverages(self) -> dict[str, list[Ranged]]: ...


def sets_sheet(sets: JudgedSets) -> Sheet:
    """The sizes, and the coverage for each breakdown."""
    called = {"size": "set size", "class": "observed class"}
    coverages = sets._coverages()
    figures = [sizes_figure(sets.sizes)]
    figures += [coverage_figure(sets, called.get(name, name), rows) for name, rows in coverages.items()]
    longest = max(6, *map(len, coverages.values()))
    return Sheet(figures, len(figures), (3.3, 0.8 + 0.24 * longest), key="above")


def coverage_figure(sets: JudgedSets, name: str, rows: Sequence[Ranged]) -> Figure:
    """The coverage of one breakdown."""
    what = "coverage of all sets" if sets.claimed is None else "claimed coverage"
    ranges = Ranges(
        "coverage",
        rows,
        f"{100 * sets.confidence:g}% interval",
        f"significantly different from the {what} (Holm)",
    )
    aim = Guide(what, "x", sets._aim)
    return rows_figure(f"Coverage by {name}", ranges, Axis("coverage", percent=True), name, aim)


def sizes_figure(sizes: Mapping[int, float]) -> Figure:
    """The share of the sets with each number of classes."""
    largest, shares = max(sizes), np.array(list(sizes.values()))
    if largest <= _MOST_SIZES:
        bars = Bars("share of sets", list(sizes), shares, width=0.8)
    else:
        edges = np.linspace(0, largest + 1, _MOST_SIZES + 1)
        counts, _ = np.histogram(list(sizes), bins=edges, weights=shares)
        bars = Bars("share of sets", (edges[:-1] + edges[1:]) / 2, counts, width=float(edges[1]))
    x = Axis("number of classes in the set", whole=True)
    often = max(sizes, key=lambda size: sizes[size])
    says = f"The most frequent number of classes is {often}: {100 * sizes[often]:.4g}% of the sets."
    return Figure("", [bars], x, Axis("share of sets", 0.0, percent=True), says)


def spans_sheet(spans: Sequence[Any], names: Sequence[str]) -> Sheet:
    """Spans of classes as bars, with a dot for each outcome: as large as it is frequent."""
    size = (1.9 + 0.6 * max(len(names), 7), 0.6 + 0.3 * len(spans))
    return Sheet([spans_figure(spans, names)], size=size, key="above")


def spans_figure(spans: Sequence[Any], names: Sequence[str]) -> Figure:
    """The sets of ordered classes, with what happened in and beside them."""
    rows = [Ranged(percent(span.share, 1), np.nan, span.low - 0.5, span.high + 0.5) for span in spans]
    marks: list[Mark] = []
    places = [(y, i, share) for i, span in enumerate(spans) for y, share in enumerate(span.outcomes) if share]
    for inside, name in ((True, "outcomes in it"), (False, "outcomes missed")):
        kept = [p for p in places if (spans[p[1]].low <= p[0] <= spans[p[1]].high) == inside]
        if kept:
            at, height, share = zip(*kept, strict=True)
            points = Points(name, at, height, shares=share)
            marks.append(points if inside else replace(points, shape="diamond", colour="warn"))
    ranges, x = Ranges("the span of the set", rows, bars=True), Axis("class", names=tuple(names))
    figure = rows_figure("", ranges, x, "share of the sets", *marks)
    heads = {"name": "Share of the sets", "low": "From", "high": "To", "count": "Share of the outcomes"}
    return replace(figure, y=replace(figure.y, label="share of the sets"), heads=heads)
