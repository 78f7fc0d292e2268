"""Miscalibration against discrimination of many models, drawn with matplotlib."""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np

from verax.display.panels import COLOURS, GREY, plain_texts, pyplot, round_numbers

_LINES = 7


class MappedScores(Protocol):
    """The figure's data: models with the parts of their scores."""

    @property
    def models(self) -> Any: ...
    @property
    def rule(self) -> str: ...
    @property
    def uncertainty(self) -> float: ...


@plain_texts
def draw_score_map(mapped: MappedScores, ax: Any = None) -> Any:
    """A point per model; models on a line have the same score, and upper left is best."""
    if ax is None:
        ax = pyplot().subplots(figsize=(5.6, 4.4), layout="constrained")[1]
    drawn = [m for m in mapped.models if math.isfinite(m.score)]
    x = np.array([m.miscalibration for m in drawn])
    y = np.array([m.discrimination for m in drawn])
    right, top = 1.15 * x.max(initial=1e-3), 1.12 * y.max(initial=1e-3)
    ax.set_xlim(-0.03 * right, right)
    ax.set_ylim(-0.03 * top, top)
    # Scores from the best corner to the worst, at round numbers.
    scores = round_numbers(mapped.uncertainty - top, mapped.uncertainty + right, _LINES)
    (left, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
    ends = np.array([left, right])
    for score in scores:
        level = mapped.uncertainty - score
        ax.plot(ends, ends + level, color="#cccccc", linewidth=0.8, zorder=1)
        # The number stands where the line enters the axes.
        x_in = max(left, bottom - level)
        if x_in <= right and x_in + level <= top:
            where = {"textcoords": "offset points", "fontsize": 7, "color": GREY}
            ax.annotate(f"{score:g}", (x_in, x_in + level), (2, 2), **where)
    style = {"color": GREY, "linewidth": 1.0, "linestyle": "--", "zorder": 1}
    ax.plot(ends, ends, label="class frequencies", **style)
    ax.plot(x, y, "o", color=COLOURS[0], markersize=6, zorder=3)
    for model, a, b in zip(drawn, x, y, strict=True):
        # A name stands to the left of its point where another point is close to the right.
        crowded = ((x > a) & (x < a + 0.25 * right) & (np.abs(y - b) < 0.05 * top)).any()
        where = {"xytext": (-6, 3), "ha": "right"} if crowded else {"xytext": (6, 3)}
        ax.annotate(model.name, (a, b), textcoords="offset points", fontsize=8, **where)
    ax.set_xlabel("miscalibration (recalibration would remove it)")
    ax.set_ylabel("discrimination")
    ax.set_title(f"mean {mapped.rule} along the lines; upper left is best", fontsize=9)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(fontsize=7, frameon=False, loc="lower right")
    return ax
