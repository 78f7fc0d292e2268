"""Figures that put models or subgroups side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from verax.display.axes import Axis, round_numbers
from verax.display.figures import Figure, Sheet, rows_figure
from verax.display.marks import Line, Mark, Points, Ranged, Ranges

# Number of lines of equal score on a map.
_LINES = 7
# The largest number of subgroups that are drawn.
_MOST_SUBGROUPS = 40


class MappedScores(Protocol):
    """The figure's data: models with the parts of their scores."""

    @property
    def models(self) -> Any: ...
    @property
    def rule(self) -> str: ...
    @property
    def uncertainty(self) -> float: ...


def score_map_figure(mapped: MappedScores) -> Figure:
    """A point per model; models on a line have the same score, and upper left is best."""
    models = [m for m in mapped.models if math.isfinite(m.score)]
    x = np.array([m.miscalibration for m in models])
    y = np.array([m.discrimination for m in models])
    right, top = 1.15 * x.max(initial=1e-3), 1.12 * y.max(initial=1e-3)
    left, bottom = -0.03 * right, -0.03 * top
    ends = np.array([left, right])
    frequencies = Line("class frequencies", ends, ends, "soft", dash=1)
    marks: list[Mark] = [frequencies]
    # Scores from the best corner to the worst, at round numbers.
    for score in round_numbers(mapped.uncertainty - top, mapped.uncertainty + right, _LINES):
        level = mapped.uncertainty - score
        # The line and its number begin where it enters the axes.
        first, last = max(left, bottom - level), min(right, top - level)
        if first < last:
            within = np.array([first, last])
            marks.append(Line("", within, within + level, "pale"))
            numbered = Points("", [first], [first + level], colour="soft", labels=[f"{score:g}"], size=0)
            marks.append(numbered)
    marks.append(Points("", x, y, labels=[m.name for m in models]))
    facts = [Ranged(f"mean {mapped.rule}, {m.name}", m.score) for m in models]
    across = Axis("miscalibration (recalibration would remove it)", left, right)
    title = f"mean {mapped.rule} along the lines; upper left is best"
    return Figure(title, marks, across, Axis("discrimination", bottom, top), facts=facts)


def subgroups_sheet(rows: Sequence[Ranged], rule: str) -> Sheet:
    """The miscalibration of each subgroup; those that stand out are flagged."""
    if len(rows) > _MOST_SUBGROUPS:
        largest = sorted(rows, key=lambda row: -row.value)[:_MOST_SUBGROUPS]
        rows = [row for row in rows if row in largest]
    ranges = Ranges("miscalibration", rows, flagged="significantly miscalibrated")
    x = Axis(f"miscalibration by {rule}, lower is better", 0.0)
    figure = rows_figure("", ranges, x, "subgroup")
    return Sheet([figure], size=(6.1, 0.6 + 0.3 * len(rows)), key="above")
