"""What figures draw over their axes: lines, bands, points, intervals, bars."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

from verax.display.axes import Axis, numbers

# The number of a series, whose colour and dashes it has; or ink, references, lines behind, what stands out.
Colour = int | Literal["ink", "soft", "pale", "warn"]
# Colours of what is drawn thin and behind.
BEHIND = ("soft", "pale")
Shape = Literal["dot", "diamond", "square", "star", "ring", "cross", "triangle"]
Step = Literal["", "after", "before"]
# Cells of a row of a figure's table, by column.
Cells = dict[str, float | str]


class Drawn(Protocol):
    """The figure of the marks, as far as their numbers depend on it."""

    @property
    def x(self) -> Axis: ...
    @property
    def y(self) -> Axis: ...
    def line_of(self, band: Band, /) -> Line | None: ...


class Entry(NamedTuple):
    """An entry of a key: how the mark looks, its colour, its dashes and its name."""

    look: str
    colour: Colour
    dash: int
    name: str


@dataclass(frozen=True, eq=False)
class Line:
    """A line through points.

    Attributes
    ----------
    name : str
        Its name in keys; empty for a line that they leave out.
    x, y : sequence of float
        Its points; it is not drawn across those that are not finite.
    colour : Colour
        Its series; "soft" for a line to compare with.
    dash : int or None
        How it is dashed, 0 for a solid line; by default as its colour is.
    step : {"", "after", "before"}
        Whether it goes in steps: each height is kept "after" its point, or reached "before" it.
    dots : bool
        Whether its points are drawn too.
    along : sequence of float
        A number at each point, such as its threshold, which hints and tables show.
    thin : bool
        Whether it is drawn thin, because it stands among many.
    """

    name: str
    x: Any
    y: Any
    colour: Colour = 0
    dash: int | None = None
    step: Step = ""
    dots: bool = False
    along: Any = ()
    thin: bool = False

    @property
    def dashes(self) -> int:
        """How it is dashed: solid, dashed, dash and dot, dotted."""
        if self.dash is not None:
            return self.dash
        return self.colour % 4 if isinstance(self.colour, int) else 3 * (self.colour == "soft")

    def reach(self) -> tuple[list[float], list[float]]:
        """Its places across and upward, for the ends of the axes."""
        return numbers(self.x), numbers(self.y)

    def entries(self) -> Iterator[Entry]:
        """What keys say of it."""
        yield Entry("line", self.colour, self.dashes, self.name)

    def rows(self, _: Drawn) -> Iterator[Cells]:
        """Its numbers."""
        along = numbers(self.along)
        for i, (x, y) in enumerate(zip(numbers(self.x), numbers(self.y), strict=True)):
            row: Cells = {"mark": self.name, "x": x, "y": y}
            if along:
                row["along"] = along[i]
            yield row


@dataclass(frozen=True, eq=False)
class Band:
    """The area between two heights."""

    name: str
    x: Any
    low: Any
    high: Any
    colour: Colour = 0
    step: Step = ""

    def reach(self) -> tuple[list[float], list[float]]:
        """Its places across and upward, for the ends of the axes."""
        return numbers(self.x), numbers(self.low) + numbers(self.high)

    def entries(self) -> Iterator[Entry]:
        """What keys say of it."""
        yield Entry("band", self.colour, 0, self.name)

    def rows(self, figure: Drawn) -> Iterator[Cells]:
        """Its numbers, unless those of its line have them."""
        if figure.line_of(self) is None:
            for x, low, high in zip(numbers(self.x), numbers(self.low), numbers(self.high), strict=True):
                yield {"mark": self.name, "x": x, "low": low, "high": high}


@dataclass(frozen=True, eq=False)
class Points:
    """Values at places; those beyond the axes stand at their edge, as arrows with what they are.

    Attributes
    ----------
    name : str
        What they are; empty where keys leave them out.
    x, y : sequence of float
        Their places.
    low, high : sequence of float
        Their vertical intervals, if they have any.
    colour : Colour
        Their series.
    shape : Shape
        How they look.
    labels : sequence of str
        Their labels.
    shares : sequence of float
        How large their areas are; by default all have the same `size`, in points.
    """

    name: str
    x: Any
    y: Any
    low: Any = ()
    high: Any = ()
    colour: Colour = 0
    shape: Shape = "dot"
    labels: Sequence[str] = ()
    shares: Any = ()
    size: float = 6.0

    @property
    def look(self) -> str:
        """How it looks in a key."""
        return self.shape

    def reach(self) -> tuple[list[float], list[float]]:
        """Its places across and upward, for the ends of the axes."""
        return numbers(self.x), numbers(self.y) + numbers(self.low) + numbers(self.high)

    def entries(self) -> Iterator[Entry]:
        """What keys say of it."""
        yield Entry(self.shape, self.colour, 0, self.name)

    def rows(self, _: Drawn) -> Iterator[Cells]:
        """Its numbers."""
        low, high, shares = numbers(self.low), numbers(self.high), numbers(self.shares)
        for i, (x, y) in enumerate(zip(numbers(self.x), numbers(self.y), strict=True)):
            label = self.labels[i] if self.labels else self.name
            row: Cells = {"mark": label, "x": x, "y": y}
            if low:
                row |= {"low": low[i], "high": high[i]}
            if shares:
                row["count"] = shares[i]
            yield row


@dataclass(frozen=True)
class Guide:
    """A straight line across the axes, at a value to compare with."""

    name: str
    axis: Literal["x", "y"]
    at: float
    colour: Colour = "soft"
    dash: int = 1

    @property
    def look(self) -> str:
        """How it looks in a key: upright or level."""
        return "rule" if self.axis == "x" else "level"

    def reach(self) -> tuple[list[float], list[float]]:
        """Its places across and upward, for the ends of the axes."""
        return ([self.at], []) if self.axis == "x" else ([], [self.at])

    def entries(self) -> Iterator[Entry]:
        """What keys say of it."""
        yield Entry(self.look, self.colour, self.dash, self.name)

    def rows(self, _: Drawn) -> Iterator[Cells]:
        """Its number."""
        yield {"mark": self.name, self.axis: self.at}


@dataclass(frozen=True)
class Shade:
    """A range of an axis that is shaded."""

    name: str
    axis: Literal["x", "y"]
    low: float
    high: float
    colour: Colour = "warn"

    def reach(self) -> tuple[list[float], list[float]]:
        """Nothing: it fits the axes of other marks."""
        return [], []

    def entries(self) -> Iterator[Entry]:
        """What keys say of it."""
        yield Entry("band", self.colour, 0, self.name)

    def rows(self, _: Drawn) -> Iterator[Cells]:
        """Its ends."""
        yield {"mark": self.name, "low": self.low, "high": self.high}


@dataclass(frozen=True, eq=False)
class Strip:
    """Counts or shares between edges, as bars at the foot of the panel.

    Attributes
    ----------
    name : str
        What is counted.
    edges, counts : sequence of float
        The edges of the bars, and how much lies between them.
    tallest : float or None
        What a bar of full height counts; by default its largest count.
    height : float
        The height of such a bar, as a share of the panel.
    """

    name: str
    edges: Any
    counts: Any
    tallest: float | None = None
    height: float = 0.2

    def heights(self) -> list[float]:
        """The height of each bar, as a share of the panel."""
        counts = numbers(self.counts)
        most = max(counts, default=0.0) if self.tallest is None else self.tallest
        return [self.height * count / most if most else 0.0 for count in counts]

    def reach(self) -> tuple[list[float], list[float]]:
        """Its places across, for the ends of the axes."""
        return numbers(self.edges), []

    def entries(self) -> Iterator[Entry]:
        """What keys say of it."""
        yield Entry("strip", "soft", 0, self.name)

    def rows(self, _: Drawn) -> Iterator[Cells]:
        """Its numbers."""
        edges = numbers(self.edges)
        for low, high, count in zip(edges, edges[1:], numbers(self.counts), strict=False):
            if count:
                yield {"mark": self.name, "low": low, "high": high, "count": count}


class Ranged(NamedTuple):
    """A value with its interval, NaN where there is none; those that are flagged look different.

    A `note` is shown for a value that cannot be drawn; `other` is a value to compare with.
    """

    name: str
    value: float
    low: float = math.nan
    high: float = math.nan
    flagged: bool = False
    note: str = ""
    other: float = math.nan


@dataclass(frozen=True, eq=False)
class Ranges:
    """Values with their intervals below each other, the first at the top.

    Attributes
    ----------
    name : str
        What the values are.
    values : sequence of Ranged
        The values.
    interval, flagged, other : str
        What their intervals, those that are flagged, and the values to compare with are called in keys.
    flag : tuple of Colour and Shape
        How flagged values look.
    joined : sequence of sequence of int
        Places that a line joins at the right, such as those of models that do not differ significantly.
    joining : str
        What such lines mean.
    bars : bool
        Whether they are broad bars over whole places of the axis, without a value.
    """

    name: str
    values: Sequence[Ranged]
    interval: str = ""
    flagged: str = ""
    other: str = ""
    flag: tuple[Colour, Shape] = ("warn", "diamond")
    joined: Sequence[Sequence[int]] = ()
    joining: str = ""
    bars: bool = False

    def reach(self) -> tuple[list[float], list[float]]:
        """Its places across and upward, for the ends of the axes."""
        across = [v for row in self.values for v in (row.value, row.low, row.high, row.other)]
        return across, numbers(range(len(self.values)))

    def entries(self) -> Iterator[Entry]:
        """What keys say of it: kinds of rows that there are."""
        plain = any(not row.flagged for row in self.values)
        if self.bars or plain:
            yield Entry("band" if self.bars else "dot", 0, 0, self.name)
        if any(row.flagged for row in self.values):
            yield Entry(self.flag[1], self.flag[0], 0, self.flagged)
        if not self.bars and any(math.isfinite(row.low) for row in self.values):
            yield Entry("range", 0, 0, self.interval)
        if any(math.isfinite(row.other) for row in self.values):
            yield Entry("ring", "soft", 0, self.other)
        if self.joined:
            yield Entry("joined", "ink", 0, self.joining)

    def rows(self, figure: Drawn) -> Iterator[Cells]:
        """Its numbers."""
        for i, row in enumerate(self.values):
            cells: Cells = {"name": row.name, "x": row.value if not row.note else row.note}
            if self.bars:
                cells |= {"x": "", "low": figure.x.text(row.low + 0.5), "high": figure.x.text(row.high - 0.5)}
            elif math.isfinite(row.low):
                cells |= {"low": row.low, "high": row.high}
            cells |= {"other": row.other} if math.isfinite(row.other) else {}
            alike = [letter for letter, places in zip("abcdefgh", self.joined, strict=False) if i in places]
            yield cells | ({"count": "".join(alike)} if self.joined else {})


@dataclass(frozen=True, eq=False)
class Bars:
    """Bars from zero: upright ones, or with `across` ones below each other.

    Attributes
    ----------
    name : str
        What their lengths are.
    at, lengths : sequence of float
        Their places and lengths.
    colour : Colour
        Their series.
    width : float
        Their width, in units of the axis.
    outline : bool
        Whether only their outline is drawn.
    across : bool
        Whether they lie.
    texts : sequence of str
        What stands at their ends.
    """

    name: str
    at: Any
    lengths: Any
    colour: Colour = 0
    width: float = 0.8
    outline: bool = False
    across: bool = False
    texts: Sequence[str] = ()

    @property
    def look(self) -> str:
        """How it looks in a key."""
        return "outline" if self.outline else "bar"

    def reach(self) -> tuple[list[float], list[float]]:
        """Its places across and upward, for the ends of the axes."""
        places = [at + side * self.width / 2 for at in numbers(self.at) for side in (-1, 1)]
        lengths = [0.0, *numbers(self.lengths)]
        return (lengths, places) if self.across else (places, lengths)

    def entries(self) -> Iterator[Entry]:
        """What keys say of it."""
        yield Entry(self.look, self.colour, 0, self.name)

    def rows(self, figure: Drawn) -> Iterator[Cells]:
        """Its numbers."""
        axis = figure.y if self.across else figure.x
        for at, length in zip(numbers(self.at), numbers(self.lengths), strict=True):
            place: Cells = {"name": axis.text(at)} if axis.names else {"y" if self.across else "x": at}
            yield {"mark": self.name, **place, "x" if self.across else "y": length}


@dataclass(frozen=True, eq=False)
class Surface:
    """Values over the points of a triangle, whose corners are three classes.

    Attributes
    ----------
    name : str
        What the values are.
    points : array of shape (N, 3)
        A lattice of points, as shares of the three corners: lower left, top, lower right.
    values : array of shape (N,)
        The values; those that are not below `high` have the last colour.
    low, high : float
        The values of the first and the last colour.
    cut : bool
        Whether there are values above `high`.
    """

    name: str
    points: Any
    values: Any
    low: float
    high: float
    cut: bool = False

    def shown(self) -> Any:
        """The values that have a colour: between the first and the last."""
        filled = np.nan_to_num(np.asarray(self.values, dtype=float), nan=self.high, posinf=self.high)
        return np.clip(filled, self.low, self.high)

    def reach(self) -> tuple[list[float], list[float]]:
        """The corners of the triangle with room for their names."""
        return [-0.13, 1.13], [-0.13, ROOT + 0.12]

    def entries(self) -> Iterator[Entry]:
        """Nothing: its scale of colours says what it is."""
        return iter(())

    def rows(self, _: Drawn) -> Iterator[Cells]:
        """Its numbers."""
        for point, value in zip(self.points.tolist(), numbers(self.values), strict=True):
            name = ", ".join(f"{share:.4g}" for share in point)
            yield {"name": f"({name})", "other": value}


Mark = Line | Band | Points | Guide | Shade | Strip | Ranges | Bars | Surface
# The height of a triangle whose sides are 1.
ROOT = math.sqrt(3) / 2


def corner_place(p: Any) -> tuple[Any, Any]:
    """Where shares of three corners lie: the first left, the second top, the third right."""
    return p[2] + p[1] / 2, ROOT * p[1]


def facets(points: Any) -> Any:
    """The small triangles between neighbouring points of a lattice, as numbers of points."""
    units = round(1 / np.min(points[points > 0]))
    counts = np.rint(points[:, :2] * units).astype(int)
    at = np.full((units + 2, units + 2), -1)
    at[counts[:, 0], counts[:, 1]] = np.arange(len(points))
    i, j = counts.T
    corner, right, up, across = at[i, j], at[i + 1, j], at[i, j + 1], at[i + 1, j + 1]
    first, second = np.stack([corner, right, up], axis=1), np.stack([right, across, up], axis=1)
    both = np.concatenate([first, second])
    return both[(both >= 0).all(axis=1)]
