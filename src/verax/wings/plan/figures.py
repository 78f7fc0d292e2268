"""How power, or the width of an interval, depends on the number of rows, drawn with matplotlib."""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np

from verax.display.panels import COLOURS, GREY, plain_texts, pyplot


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


@plain_texts
def draw_plan(plan: PlannedRows, ax: Any = None) -> Any:
    """The curve, the range of numbers of rows that are enough, and the pilot."""
    if ax is None:
        ax = pyplot().subplots(figsize=(5.4, 3.4), layout="constrained")[1]
    line, pilot = plan.line, plan.pilot
    middle = line.rows if math.isfinite(line.rows) else 100 * max(pilot.n_rows, 10)
    known = pilot.n_rows and math.isfinite(line.rows_high) and line.rows_low < line.rows_high
    ends = [middle / 30, 4 * middle, *([pilot.n_rows] if pilot.n_rows else [])]
    rows = np.geomspace(max(2 * pilot.rows_per_unit, min(ends) * 0.8), max(ends) * 1.1, 120)
    at, goal = (
        (plan.half_width_at, plan.goal.size) if plan.kind == "width" else (plan.power_at, plan.goal.power)
    )
    ax.plot(rows, [at(n) for n in rows.tolist()], color=COLOURS[0], linewidth=1.6)
    ax.axhline(goal, color=GREY, linewidth=0.8, linestyle="--")
    if known:
        label = f"{line.rows_low:,.0f} to {line.rows_high:,.0f}: what the pilot leaves open"
        ax.axvspan(line.rows_low, line.rows_high, color=COLOURS[0], alpha=0.15, linewidth=0, label=label)
    if math.isfinite(line.rows):
        ax.axvline(line.rows, color=COLOURS[0], linewidth=0.9, label=f"{line.rows:,.0f} rows are enough")
    if pilot.n_rows:
        style = {"color": COLOURS[1], "linewidth": 0.9, "linestyle": ":"}
        ax.axvline(pilot.n_rows, label=f"{pilot.n_rows:,} rows of the pilot", **style)
    ax.set_xscale("log")
    ax.xaxis.set_major_formatter("{x:,.0f}")
    ax.set_xlabel("rows")
    if plan.kind == "width":
        ax.set_yscale("log")
        ax.set_ylabel("half-width of the interval")
    else:
        ax.set_ylim(0, 1.02)
        ax.set_ylabel("power")
    ax.set_title(pilot.what, fontsize=10)
    corner = "upper right" if plan.kind == "width" else "lower right"
    ax.legend(fontsize=8, loc=corner, framealpha=0.9, edgecolor="none")
    return ax
