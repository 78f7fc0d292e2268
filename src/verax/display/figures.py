"""Figures as data: marks over two axes, with their words and numbers.

A result describes its figures once. matplotlib (`display.plots`) and pages (`display.drawings`) draw them
from the description. Keys, hints and tables are made from the marks, so they name nothing that is not drawn.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

from verax.display.axes import Axis, number_text, numbers
from verax.display.marks import BEHIND, Band, Bars, Cells, Entry, Line, Mark, Points, Ranged, Ranges

# Of more events, some are drawn.
MOST_FIGURES = 20
# Columns of tables: the names of marks and of places first.
_HEADS = ("mark", "name", "x", "y", "value", "low", "high", "along", "other", "count")
_PLAIN = Axis()


class Tip(NamedTuple):
    """What a figure says at one of its places."""

    x: float
    y: float
    text: str


@dataclass(frozen=True, eq=False)
class Figure:
    """Marks over two axes.

    Attributes
    ----------
    title : str
        What it shows.
    marks : sequence of Mark
        What is drawn, lines of the first series in front.
    x, y : Axis
        Its axes.
    says : str
        A sentence with numbers that it shows; by default its facts in words.
    facts : sequence of Ranged
        Numbers that belong to it and are not drawn, such as the area below a curve.
    note : str
        What else readers need to know.
    inside : str
        Words in its upper left corner.
    heads : mapping of str to str
        What columns of its table are called, where their axes do not say it: "name", "low", "along", ...
    square : bool
        Whether both axes have the same scale.
    """

    title: str
    marks: Sequence[Mark]
    x: Axis = _PLAIN
    y: Axis = _PLAIN
    says: str = ""
    facts: Sequence[Ranged] = ()
    note: str = ""
    inside: str = ""
    heads: Mapping[str, str] | None = None
    square: bool = False

    def ends(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """The ends of both axes."""
        reaches = [mark.reach() for mark in self.marks]
        across = self.x.span(v for xs, _ in reaches for v in xs)
        return across, self.y.span(v for _, ys in reaches for v in ys)

    def of_kind(self, kind: type[Any]) -> list[Any]:
        """The marks of a kind."""
        return [mark for mark in self.marks if isinstance(mark, kind)]

    def line_of(self, band: Band) -> Line | None:
        """The line whose band this is: of its colour, over the same places."""
        x = numbers(band.x)
        lines: list[Line] = self.of_kind(Line)
        return next((line for line in lines if line.colour == band.colour and numbers(line.x) == x), None)

    def bands_of(self, line: Line) -> list[Band]:
        """The bands whose numbers belong to a line; the first is the one that tables show."""
        return [band for band in self.of_kind(Band) if self.line_of(band) is line]

    def key(self) -> list[Entry]:
        """What is drawn, and only that: an entry for each kind of mark that has a name."""
        found: dict[tuple[str, str], Entry] = {}
        for mark in self.marks:
            for entry in mark.entries():
                if entry.name:
                    found.setdefault((entry.look, entry.name), entry)
        return list(found.values())

    def table(self) -> tuple[list[str], list[list[str]]]:
        """The heads and the cells of the table of its numbers."""
        rows = list(self._rows())
        kept = [head for head in _HEADS if any(row.get(head, "") != "" for row in rows)]
        named = {
            "mark": "Drawn", "name": self.y.label or "Name", "x": self.x.label or "x",
            "y": self.y.label or "y", "value": "Value", "low": "From", "high": "To", "along": "At",
            "other": "Beside", "count": "Count", **(self.heads or {}),
        }  # fmt: skip
        return [named[head] for head in kept], [[self._cell(head, row) for head in kept] for row in rows]

    def _rows(self) -> Iterator[Cells]:
        for fact in self.facts:
            ends = {"low": fact.low, "high": fact.high} if math.isfinite(fact.low) else {}
            yield {"mark": fact.name, "value": fact.value, **ends}
        for mark in self.marks:
            bands = self.bands_of(mark) if isinstance(mark, Line) else []
            for i, row in enumerate(mark.rows(self)):
                if bands:
                    row |= {"low": float(bands[0].low[i]), "high": float(bands[0].high[i])}
                yield row

    def _cell(self, head: str, row: Cells) -> str:
        value = row.get(head, "")
        if isinstance(value, str):
            return value
        if head in ("x", "y"):
            return (self.x if head == "x" else self.y).cell(value)
        if head in ("low", "high", "other") and self._measured.percent:
            return self._measured.cell(value)
        return number_text(value)

    @property
    def _measured(self) -> Axis:
        """The axis of intervals: across where values are below each other, else upward."""
        return self.x if self.of_kind(Ranges) else self.y

    def tips(self) -> list[Tip]:
        """What is said at its places, mark by mark."""
        found: list[Tip] = []
        for mark in self.marks:
            found += list(self._tips_of(mark))
        return [tip for tip in found if math.isfinite(tip.x) and math.isfinite(tip.y)]

    def _tips_of(self, mark: Mark) -> Iterator[Tip]:
        if isinstance(mark, (Line, Points)) and mark.colour not in BEHIND:
            bands = self.bands_of(mark) if isinstance(mark, Line) else []
            for i, row in enumerate(mark.rows(self)):
                if bands:
                    row |= {"low": float(bands[0].low[i]), "high": float(bands[0].high[i])}
                yield Tip(float(mark.x[i]), float(mark.y[i]), self._told(row))
        if isinstance(mark, Ranges):
            for i, row in enumerate(mark.rows(self)):
                value = mark.values[i].value
                yield Tip(value if math.isfinite(value) else mark.values[i].low, float(i), self._told(row))
        if isinstance(mark, Bars):
            pairs = zip(numbers(mark.at), numbers(mark.lengths), mark.rows(self), strict=True)
            for at, length, row in pairs:
                yield Tip(*((length, at) if mark.across else (at, length)), self._told(row))

    def _told(self, row: Cells) -> str:
        """A row of the table as lines of a hint."""
        heads = self.heads or {}
        lines = [str(row[head]) for head in ("mark", "name") if row.get(head, "")]
        if "along" in row:
            lines.append(f"{heads.get('along', 'at')}: {self._cell('along', row)}")
        interval = ""
        if self._cell("low", row):
            interval = f" ({self._cell('low', row)} to {self._cell('high', row)})"
        last = "x" if self.of_kind(Ranges) or "y" not in row else "y"
        for head, axis in (("x", self.x), ("y", self.y)):
            if row.get(head, "") != "":
                label = f"{axis.label}: " if axis.label else ""
                lines.append(f"{label}{self._cell(head, row)}{interval if head == last else ''}")
        if "other" in row:
            lines.append(f"{heads.get('other', 'beside')}: {self._cell('other', row)}")
        return "\n".join(lines)

    @property
    def beyond(self) -> int:
        """The number of points of lines and of values that lie outside the axes."""
        (left, right), (bottom, top) = self.ends()
        slack = 1e-9 * max(right - left, top - bottom)
        places = [
            (x, y)
            for mark in self.marks
            if isinstance(mark, (Line, Points)) and mark.colour not in BEHIND
            for x, y in zip(numbers(mark.x), numbers(mark.y), strict=True)
        ]
        places += [
            (row.value, float(i))
            for ranges in self.of_kind(Ranges)
            for i, row in enumerate(ranges.values)
            if not row.note
        ]
        return sum(
            not (left - slack <= x <= right + slack and bottom - slack <= y <= top + slack)
            for x, y in places
            if not (math.isnan(x) or math.isnan(y))
        )

    def bare(self) -> Figure:
        """The figure without the names of its axes, for sheets that say them once."""
        return replace(self, x=replace(self.x, label=""), y=replace(self.y, label=""))

    @property
    def sentence(self) -> str:
        """What it says, with numbers of its table."""
        if self.says:
            return self.says
        told = [f"{fact.name} {self.value_text(fact)}" for fact in self.facts if not math.isnan(fact.value)]
        text = f"{'; '.join(told or self._extremes())}."
        return text[0].upper() + text[1:] if told else text.removeprefix(".")

    def _extremes(self) -> list[str]:
        """The lowest and the highest of values below each other."""
        rows = [row for each in self.of_kind(Ranges) for row in each.values if math.isfinite(row.value)]
        if len(rows) < 2:
            return [f"{row.name}: {self.value_text(row)}" for row in rows]
        ends = {"Lowest": min(rows, key=_value), "highest": max(rows, key=_value)}
        return [f"{which}: {row.name}, {self.value_text(row)}" for which, row in ends.items()]

    def value_text(self, row: Ranged) -> str:
        """A value with its interval, to three digits, in the unit of its axis."""
        if row.note or math.isnan(row.value):
            return row.note
        factor, unit = (100, "%") if self._measured.percent else (1, "")
        texts = [_three_digits(factor * v) + unit for v in (row.value, row.low, row.high)]
        return texts[0] + (f" ({texts[1]} to {texts[2]})" if math.isfinite(row.low) else "")

    @property
    def notes(self) -> str:
        """Its note, and how much of it the axes leave out."""
        n = self.beyond
        left = f"{n:,} point{'s' * (n != 1)} lie{'s' * (n == 1)} beyond the axes." if n else ""
        return " ".join(filter(None, (self.note, left)))


def _three_digits(value: float) -> str:
    """A number to three digits; whole ones are counts, and stay whole."""
    whole = math.isfinite(value) and value == round(value)
    return number_text(value if whole else float(f"{value:.3g}"))


def _value(row: Ranged) -> float:
    return row.value


@dataclass(frozen=True, eq=False)
class Sheet:
    """Figures beside each other, and what they share.

    Attributes
    ----------
    figures : sequence of Figure
        The figures, row by row.
    columns : int or None
        The number of columns; by default one that leaves few places empty.
    size : tuple of two floats
        The width and the height of a figure in inches.
    title, note : str
        The texts above and below all of them.
    x, y : str
        The names of axes that all share; empty where each has its own.
    shared : str
        The axes along which all have the same ends: some of "x", "y" and "row", for "y" row by row.
    key : {"above", "inside", "none"}
        Where the key is: one above all, one in each, or none because titles and notes say it.
    """

    figures: Sequence[Figure]
    columns: int | None = None
    size: tuple[float, float] = (5.6, 3.7)
    title: str = ""
    note: str = ""
    x: str = ""
    y: str = ""
    shared: str = ""
    key: Literal["above", "inside", "none"] = "inside"

    def key_entries(self) -> list[Entry]:
        """What is drawn in any of the figures."""
        found: dict[tuple[str, str], Entry] = {}
        for entry in (each for figure in self.figures for each in figure.key()):
            found.setdefault((entry.look, entry.name), entry)
        return list(found.values())

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and of columns."""
        n = len(self.figures)
        return grid_shape(n) if self.columns is None else (math.ceil(n / self.columns), self.columns)

    def drawn(self) -> list[Figure]:
        """The figures, whose axes have the ends that they share."""
        columns = self.shape[1]
        shared = "row" in self.shared
        rows = [i // columns if shared else 0 for i in range(len(self.figures))]
        ends = [figure.ends() for figure in self.figures]
        drawn = []
        for i, figure in enumerate(self.figures):
            # Only the lowest of each column names what all of them share.
            label = figure.x.label if "x" not in self.shared or i + columns >= len(ends) else ""
            beside = [other for row, other in zip(rows, ends, strict=True) if row == rows[i]]
            x = _joined(figure.x, [across for across, _ in ends]) if "x" in self.shared else figure.x
            upward = shared or "y" in self.shared
            y = _joined(figure.y, [up for _, up in beside]) if upward else figure.y
            drawn.append(replace(figure, x=replace(x, label=label), y=y))
        return drawn


def _joined(axis: Axis, ends: Sequence[tuple[float, float]]) -> Axis:
    """The axis from the lowest to the highest of several ends."""
    return replace(axis, low=min(low for low, _ in ends), high=max(high for _, high in ends))


def rows_figure(title: str, ranges: Ranges, x: Axis, label: str, *behind: Mark) -> Figure:
    """The figure of values below each other, with names on the vertical axis."""
    y = Axis(names=tuple(row.name for row in ranges.values))
    return Figure(title, [*behind, ranges], x, y, heads={"name": label})


def widths(n: int, one: float, two: float, more: float) -> tuple[float, float]:
    """The size of each of n square figures, by the number of columns."""
    width = (one, two, more)[min(grid_shape(n)[1], 3) - 1]
    return width, width


def row_height(n: int) -> float:
    """The height of a figure of values below each other."""
    return 0.6 + 0.36 * max(n, 1)


def grid_shape(n: int) -> tuple[int, int]:
    """Rows and columns for n panels: few empty places, at most five columns."""
    if n <= 3:
        return 1, n
    if n <= 6:
        return 2, math.ceil(n / 2)
    columns = min((5, 4, 3), key=lambda c: -n % c)
    return math.ceil(n / columns), columns
