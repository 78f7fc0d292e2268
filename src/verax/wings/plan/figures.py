"""How power, or the width of an interval, depends on the number of rows, as a figure."""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np

from verax.display.axes import Axis
from verax.display.figures import Figure, Sheet
from verax.display.marks import Guide, Line, Mark, Ranged, Shade


class PlannedSize(Protocol):
    """How many rows are enough, and the range."""

    @property
    def rows(self) -> float: ...
    @property
    def rows_low(self) -> float: ...
    @property
    def rows_high(self) -> float: ...


class PlannedRows(Protocol):
    """The figure's data: a curve over the number of rows, and how many are enough."""

    @property
    def kind(self) -> str: ...
    @property
    def goal(self) -> Any: ...
    @property
    def pilot(self) -> Any: ...
    @property
    def line(self) -> PlannedSize: ...
    def power_at(self, rows: float, /) -> float: ...
    def half_width_at(self, rows: float, /) -> float: ...


def plan_sheet(plan: PlannedRows) -> Sheet:
    """The curve, the range of numbers of rows that are enough, and the pilot."""
    return Sheet([plan_figure(plan)], size=(4.9, 2.7))


def plan_figure(plan: PlannedRows) -> Figure:
    """The curve with what it is read at."""
    line, pilot, wide = plan.line, plan.pilot, plan.kind == "width"
    middle = line.rows if math.isfinite(line.rows) else 100 * max(pilot.n_rows, 10)
    known = pilot.n_rows and math.isfinite(line.rows_high) and line.rows_low < line.rows_high
    ends = [middle / 30, 4 * middle, *([pilot.n_rows] if pilot.n_rows else [])]
    rows = np.geomspace(max(2 * pilot.rows_per_unit, min(ends) * 0.8), max(ends) * 1.1, 120)
    at, goal = (plan.half_width_at, plan.goal.size) if wide else (plan.power_at, plan.goal.power)
    y = Axis("half-width of the interval", log=True) if wide else Axis("power", 0, 1.02)
    marks: list[Mark] = [
        Guide(f"{y.label} asked for: {goal:.3g}", "y", goal),
        Line("", rows, [at(n) for n in rows.tolist()]),
    ]
    facts = []
    if known:
        label = f"{line.rows_low:,.0f} to {line.rows_high:,.0f}: what the pilot leaves open"
        marks.append(Shade(label, "x", line.rows_low, line.rows_high, 0))
    if math.isfinite(line.rows):
        marks.append(Guide(f"{line.rows:,.0f} rows are enough", "x", line.rows, 0, dash=0))
        facts.append(Ranged("rows that are enough", round(line.rows)))
    if pilot.n_rows:
        marks.append(Guide(f"{pilot.n_rows:,} rows of the pilot", "x", pilot.n_rows, "warn", dash=3))
    return Figure(pilot.what, marks, Axis("rows", log=True, whole=True), y, facts=facts)
