"""Figures as data: lines in panels, and values with their intervals.

A result describes its figure once. matplotlib (`display.panels`) and pages (`report.drawings`,
`report.rate_charts`) draw it from the description.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple


@dataclass(frozen=True, eq=False)
class Line:
    """A line with its bands.

    Attributes
    ----------
    name : str
        Its name in legends; empty for a line that they leave out.
    x, y : sequence of float
        Its points.
    bands : sequence of tuple
        The x, the lower and the upper ends of each band around it.
    along : sequence of float or None
        A number at each point, such as its threshold, which pages show there.
    beside : bool
        Whether it is a line to compare with, not that of a model.
    single : bool
        Whether its points stand alone, with an interval each.
    """

    name: str
    x: Any
    y: Any
    bands: Sequence[Sequence[Any]] = ()
    along: Any = None
    beside: bool = False
    single: bool = False


@dataclass(frozen=True, eq=False)
class Panel:
    """Lines over the same axes.

    Attributes
    ----------
    x, y : str
        The names of the axes.
    across, upward : tuple of two floats or None
        The ranges of the axes; by default those of the lines.
    levels : sequence of tuple
        Heights to compare with, and their names.
    marked : tuple of two floats or None
        A range of x that is shaded.
    times : sequence of str
        The names of the places 0, 1, 2, ... on the horizontal axis; empty where it has numbers.
    log : bool
        Whether the vertical axis is logarithmic.
    legend : str or None
        The title of a legend inside the panel; None for no such legend.
    """

    lines: Sequence[Line]
    title: str = ""
    x: str = ""
    y: str = ""
    across: tuple[float, float] | None = None
    upward: tuple[float, float] | None = None
    levels: Sequence[tuple[float, str]] = ()
    marked: tuple[float, float] | None = None
    times: Sequence[str] = ()
    log: bool = False
    legend: str | None = None


class Dot(NamedTuple):
    """A value with its interval, NaN where there is none; those that are flagged look different.

    A `note` is shown for a value that cannot be drawn.
    """

    name: str
    value: float
    low: float = math.nan
    high: float = math.nan
    flagged: bool = False
    note: str = ""
