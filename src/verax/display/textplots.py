"""Figures drawn with characters, for terminals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from textwrap import wrap

from verax.display.axes import Axis, numbers
from verax.display.figures import Figure
from verax.display.marks import BEHIND, Band, Bars, Entry, Guide, Line, Points, Ranges, Shade, Strip, Surface

# Characters by what they draw, and what terminals without them show.
_PLAIN = {
    "●": "*", "◆": "#", "■": "%", "○": "o", "─": "-", "━": "=", "┄": "~", "┊": ":", "·": ".", "░": "'",
    "█": "#", "▁": "_", "│": "|", "└": "+", "‹": "<", "›": ">", "−": "-", "∞": "inf", "→": ">", "↑": "^",
    "▒": "%", "▓": "@",
}  # fmt: skip
_SHAPES = {"dot": "●", "diamond": "◆", "square": "■", "star": "◆", "ring": "○", "cross": "◆", "triangle": "◆"}
_LINES = "━┄─·"
_SHADES = "·░▒▓█"
# The least width of what is drawn beside names and numbers.
_LEAST = 16


def text_figure(figure: Figure, *, width: int = 80, height: int = 14, ascii_only: bool = False) -> str:
    """The figure as lines of text, at most `width` characters wide, with its key below it."""
    if figure.of_kind(Ranges):
        drawn = _rows(figure, width)
    elif figure.of_kind(Bars) and figure.x.names:
        drawn = _bars(figure, width)
    else:
        drawn = _plane(figure, width, height)
    lines = [*filter(None, (figure.title, *wrap(figure.sentence, width))), *drawn, *_key(figure, width)]
    text = "\n".join(line.rstrip() for line in lines)
    for character, plain in _PLAIN.items() if ascii_only else ():
        text = text.replace(character, plain)
    return text.encode("ascii", "replace").decode() if ascii_only else text


# ---- values below each other ---------------------------------------------------------------------


def _rows(figure: Figure, width: int) -> list[str]:
    """A line for each value: its name, where it lies, and its number."""
    (ranges,) = figure.of_kind(Ranges)
    across, _ = figure.ends()
    texts = [figure.value_text(row) for row in ranges.values]
    beside = max(map(len, texts), default=0)
    room = min(max((len(row.name) for row in ranges.values), default=0), max(width - beside - _LEAST - 2, 8))
    w = max(width - room - beside - 2, _LEAST)
    rules = [rule.at for rule in figure.of_kind(Guide) if rule.axis == "x"]
    dots = figure.of_kind(Points)

    def at(value: float) -> int:
        return round((w - 1) * min(max(figure.x.place(value, across), 0.0), 1.0))

    lines = []
    for i, row in enumerate(ranges.values):
        cells = [" "] * w
        for rule in rules:
            cells[at(rule)] = "┊"
        if math.isfinite(row.low + row.high):
            first, last = at(row.low), at(row.high)
            cells[first : last + 1] = ("░" if ranges.bars else "─") * (last - first + 1)
            cells[0] = "‹" if row.low < across[0] else cells[0]
            cells[-1] = "›" if row.high > across[1] else cells[-1]
        if math.isfinite(row.other):
            cells[at(row.other)] = "○"
        if math.isfinite(row.value):
            cells[at(row.value)] = _SHAPES[ranges.flag[1] if row.flagged else "dot"]
        for points in dots:
            for x, y in zip(numbers(points.x), numbers(points.y), strict=True):
                if round(y) == i:
                    cells[at(x)] = _SHAPES[points.shape]
        name = row.name if len(row.name) <= room else f"{row.name[: room - 1]}…"
        lines.append(f"{name:>{room}} {''.join(cells)} {texts[i]}")
    return [*lines, " " * (room + 1) + _written(figure.x, across, w), _named(figure.x, room + 1 + w)]


def _bars(figure: Figure, width: int) -> list[str]:
    """A line for each bar, those at one place below each other."""
    room = min(max(map(len, figure.x.names)), width // 3)
    _, upward = figure.ends()
    w = max(width - room - 10, _LEAST)
    lines = []
    for place, name in enumerate(figure.x.names):
        shown = name if len(name) <= room else f"{name[: room - 1]}…"
        for bars in figure.of_kind(Bars):
            for at, length in zip(numbers(bars.at), numbers(bars.lengths), strict=True):
                if round(at) == place:
                    cells = ("░" if bars.outline else "█") * round(w * max(length, 0.0) / (upward[1] or 1.0))
                    lines.append(f"{shown:>{room}} {cells} {figure.y.cell(length)}")
                    shown = ""
    return lines


# ---- two axes ------------------------------------------------------------------------------------


def _plane(figure: Figure, width: int, height: int) -> list[str]:
    """Marks in a grid of characters, with the axes at the left and below."""
    across, upward = figure.ends()
    ticks = [] if figure.of_kind(Surface) else figure.y.written(upward, max(2, height // 3))
    room = max([len(text) for _, text in ticks], default=0)
    w = max(width - room - 3, _LEAST)
    grid = [[" "] * w for _ in range(height)]

    def column(value: float) -> int:
        return round((w - 1) * figure.x.place(value, across))

    def row(value: float) -> int:
        return round((height - 1) * (1 - figure.y.place(value, upward)))

    def put(x: float, y: float, character: str) -> None:
        if math.isfinite(x + y) and 0 <= column(x) < w and 0 <= row(y) < height:
            grid[row(y)][column(x)] = character

    places = [_value_at(figure.x, across, i / (w - 1)) for i in range(w)]
    for mark in sorted(figure.marks, key=_depth):
        if isinstance(mark, Band):
            low, high = (_between(places, numbers(mark.x), numbers(end)) for end in (mark.low, mark.high))
            for x, a, b in zip(places, low, high, strict=True):
                if math.isfinite(a + b):
                    for r in range(max(row(b), 0), min(row(a), height - 1) + 1):
                        grid[r][column(x)] = "░"
        elif isinstance(mark, Shade) and mark.axis == "x":
            for x in places:
                if mark.low <= x <= mark.high:
                    put(x, upward[0], "▒")
        elif isinstance(mark, Strip):
            _strip(mark, grid, column)
        elif isinstance(mark, Guide):
            along = [(mark.at, y) for y in (_value_at(figure.y, upward, i / 40) for i in range(41))]
            for x, y in along if mark.axis == "x" else [(x, mark.at) for x in places]:
                put(x, y, "┊" if mark.axis == "x" else "┄")
        elif isinstance(mark, Line):
            drawn = "·" if mark.colour in BEHIND else _LINES[mark.dashes]
            for x, y in zip(places, _between(places, numbers(mark.x), numbers(mark.y)), strict=True):
                put(x, y, drawn)
        elif isinstance(mark, Points):
            for x, y in zip(numbers(mark.x), numbers(mark.y), strict=True):
                put(x, y, _SHAPES[mark.shape])
        elif isinstance(mark, Bars):
            for x, y in zip(numbers(mark.at), numbers(mark.lengths), strict=True):
                for r in range(row(y), height):
                    grid[r][min(max(column(x), 0), w - 1)] = "█"
        elif isinstance(mark, Surface):
            span = mark.high - mark.low or 1.0
            shares = (mark.shown() - mark.low) / span
            for point, share in zip(mark.points, shares.tolist(), strict=True):
                put(point[2] + point[1] / 2, math.sqrt(3) / 2 * point[1], _SHADES[min(int(5 * share), 4)])
    texts = {row(value): text for value, text in ticks}
    lines = [f"{texts.get(i, ''):>{room}} │{''.join(cells)}" for i, cells in enumerate(grid)]
    head = [f"↑ {figure.y.label}".replace("\n", " ")] if figure.y.label else []
    if figure.of_kind(Surface):
        return lines
    foot = [f"{'':>{room}} └{'─' * w}", " " * (room + 2) + _written(figure.x, across, w)]
    return [*head, *lines, *foot, _named(figure.x, room + 2 + w)]


def _depth(mark: object) -> int:
    order = (Surface, Shade, Strip, Band, Bars, Guide, Line, Points, Ranges)
    behind = isinstance(mark, Line) and mark.colour in BEHIND
    return 2 * [isinstance(mark, kind) for kind in order].index(True) - 3 * behind


def _strip(mark: Strip, grid: list[list[str]], column: object) -> None:
    """Counts as blocks in the lowest line: higher ones are fuller."""
    assert callable(column)
    edges, heights = numbers(mark.edges), mark.heights()
    most = max(heights, default=0.0) or 1.0
    for low, high, height in zip(edges, edges[1:], heights, strict=False):
        if height:
            character = "▁░▒▓█"[min(int(5 * height / most), 4)]
            for c in range(max(column(low), 0), min(column(high) + 1, len(grid[-1]))):
                grid[-1][c] = character


def _between(places: Sequence[float], x: Sequence[float], y: Sequence[float]) -> list[float]:
    """The heights of a line at places along it; NaN beyond its ends."""
    found, i = [], 0
    for place in places:
        while i + 1 < len(x) and x[i + 1] < place:
            i += 1
        if not x or place < x[0] or place > x[-1] or i + 1 >= len(x):
            found.append(y[0] if x and place == x[0] else math.nan)
            continue
        step = x[i + 1] - x[i]
        share = (place - x[i]) / step if step else 1.0
        found.append(y[i] + share * (y[i + 1] - y[i]))
    return found


def _value_at(axis: Axis, ends: tuple[float, float], share: float) -> float:
    """The value at a share of an axis."""
    low, high = map(axis.scaled, ends)
    value = low + share * (high - low)
    return 10.0**value if axis.log else value


def _written(axis: Axis, ends: tuple[float, float], w: int) -> str:
    """The texts below an axis, as far as they stand clear of each other."""
    cells, free = [" "] * w, 0
    for value, text in axis.written(ends, max(2, w // 12)):
        first = round((w - 1) * axis.place(value, ends)) - len(text) // 2
        first = min(max(first, 0), w - len(text))
        if first >= free:
            cells[first : first + len(text)] = text
            free = first + len(text) + 1
    return "".join(cells)


def _named(axis: Axis, width: int) -> str:
    return f"{axis.label} →".rjust(width) if axis.label else ""


def _key(figure: Figure, width: int) -> list[str]:
    """What is drawn, in lines that fit."""
    lines: list[str] = []
    for entry in figure.key():
        text = f"{_sign(entry)} {entry.name}"
        if lines and len(lines[-1]) + 3 + len(text) <= width:
            lines[-1] += f"   {text}"
        else:
            lines.append(text)
    return lines


def _sign(entry: Entry) -> str:
    if entry.look == "line":
        return "·" if entry.colour in BEHIND else _LINES[entry.dash]
    signs = {
        "rule": "┊",
        "level": "┄",
        "band": "░",
        "strip": "▒",
        "range": "─",
        "joined": "│",
        "bar": "█",
        "outline": "░",
    }
    return signs.get(entry.look) or _SHAPES[entry.look]
