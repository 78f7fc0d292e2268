"""Lines over the same axes, as the charts of reports draw them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from verax.display import marks
from verax.display.axes import numbers
from verax.display.figures import Figure


@dataclass(frozen=True, eq=False)
class Line:
    """A line with its band, the numbers along it, and whether it is one to compare with."""

    name: str
    x: Any
    y: Any
    bands: Sequence[Sequence[Any]] = ()
    along: Any = None
    beside: bool = False


@dataclass(frozen=True, eq=False)
class Panel:
    """Lines with the names and the ends of their axes, and heights to compare with."""

    lines: Sequence[Line]
    x: str
    y: str
    across: tuple[float, float] | None
    upward: tuple[float, float] | None
    levels: Sequence[tuple[float, str]]


def panel_of(figure: Figure) -> Panel:
    """The lines of a figure."""
    lines = []
    for line in figure.of_kind(marks.Line):
        bands = [(band.x, band.low, band.high) for band in figure.bands_of(line)]
        along = line.along if len(numbers(line.along)) else line.x
        lines.append(Line(line.name, line.x, line.y, bands, along, line.colour == "soft"))
    levels = [(rule.at, rule.name) for rule in figure.of_kind(marks.Rule) if rule.axis == "y"]
    ends = [
        None if axis.low is None or axis.high is None else (axis.low, axis.high)
        for axis in (figure.x, figure.y)
    ]
    return Panel(lines, figure.x.label, figure.y.label, ends[0], ends[1], levels)
