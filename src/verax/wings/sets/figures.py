"""Prediction sets, drawn with matplotlib: their sizes and coverage, and ordered sets as bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from verax.display.figures import Dot
from verax.display.panels import COLOURS, draw_dots, label_below, plain_texts, pyplot


@plain_texts
def draw_sets(
    sizes: Mapping[int, float], coverage: Mapping[str, Sequence[Dot]], mark: float, note: str
) -> Any:
    """Draw a panel with the sizes, and one with the coverage for each breakdown."""
    rows = max(6, *map(len, coverage.values()))
    n = 1 + len(coverage)
    figure, axes = pyplot().subplots(1, n, figsize=(3.4 * n, 1.5 + 0.24 * rows), layout="constrained")
    first, *others = np.atleast_1d(axes)
    _draw_sizes(first, sizes)
    for ax, (name, dots) in zip(others, coverage.items(), strict=True):
        draw_dots(ax, dots, mark=mark)
        ax.set_title(f"Coverage by {name}", fontsize=9)
        ax.set_xlabel("coverage")
        ax.xaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    label_below(figure, note)
    return figure


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


@plain_texts
def draw_spans(spans: Sequence[Any], names: Sequence[str]) -> Any:
    """Draw spans of classes as bars, with a dot for each outcome: as large as it is frequent."""
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
