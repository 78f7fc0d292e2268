"""Figures drawn as SVG, for pages: colours are variables of the page, so light and dark share one drawing."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import singledispatch
from html import escape
from itertools import pairwise
from typing import Any

import numpy as np

from verax.display.axes import numbers
from verax.display.figures import Figure
from verax.display.marks import (
    BEHIND,
    ROOT,
    Band,
    Bars,
    Colour,
    Entry,
    Guide,
    Line,
    Points,
    Ranges,
    Shade,
    Step,
    Strip,
    Surface,
    corner_place,
    facets,
)

# The width of a letter and the height of a row of values, in pixels.
_LETTER = 6.7
_STEP = 24
_DASHES = ("", "6 3", "8 3 2 3", "2 3")
_N_SERIES = 5
_NAMED = {"soft": "var(--soft)", "pale": "var(--line)", "ink": "var(--ink)", "warn": "var(--warn)"}
# Colours of surfaces from small to large values, of the map cividis.
_SCALE = ((0, 34, 78), (49, 68, 107), (102, 105, 112), (148, 142, 119), (188, 174, 108), (254, 232, 56))
_SHADES = 24


@dataclass(frozen=True)
class Plot:
    """Where a figure is drawn: the box between its axes, in pixels, and their ends."""

    figure: Figure
    left: float
    top: float
    width: float
    height: float
    ends: tuple[tuple[float, float], tuple[float, float]]
    down: bool

    def x(self, value: float) -> float:
        """The place of a value across."""
        return self.left + self.width * self.figure.x.place(value, self.ends[0])

    def y(self, value: float) -> float:
        """The place of a value upward, or downward where the first is at the top."""
        place = self.figure.y.place(value, self.ends[1])
        return self.top + self.height * (place if self.down else 1 - place)

    def path(self, xs: Iterable[float], ys: Iterable[float]) -> str:
        """A path through points, which is broken where they are not finite."""
        parts, begun = [], False
        for a, b in zip(xs, ys, strict=True):
            if math.isfinite(a) and math.isfinite(b):
                parts.append(f"{'L' if begun else 'M'}{self.x(a):.1f} {self.y(b):.1f}")
                begun = True
            else:
                begun = False
        return "".join(parts)


def drawing(figure: Figure, width: int, height: int, ident: str) -> str:
    """A figure as one SVG element of this size; `ident` is a name that nothing else on the page has."""
    plot = _plot(figure, width, height)
    behind, before = _frame(plot, width)
    drawn = sorted(figure.marks, key=_depth)
    marks = "".join(f'<g class="{type(mark).__name__.lower()}">{_draw(mark, plot)}</g>' for mark in drawn)
    total = plot.top + plot.height + _below(figure)
    clip = (
        f'<clipPath id="{ident}-c"><rect x="{plot.left - 1:.1f}" y="{plot.top - 1:.1f}" '
        f'width="{plot.width + 2:.1f}" height="{plot.height + 2:.1f}"/></clipPath>'
    )
    edges = "".join(_edges(mark, plot) for mark in figure.marks)
    said = " ".join(filter(None, (figure.sentence, figure.notes)))
    box = f"{plot.left:.1f} {plot.top:.1f} {plot.width:.1f} {plot.height:.1f}"
    return (
        f'<svg viewBox="0 0 {width} {total:.0f}" width="{width}" height="{total:.0f}" role="img" '
        f'aria-labelledby="{ident}-t {ident}-d" data-plot="{box}" xmlns="http://www.w3.org/2000/svg">'
        f'<title id="{ident}-t">{escape(named(figure))}</title><desc id="{ident}-d">{escape(said)}</desc>'
        f'{clip}{behind}<g clip-path="url(#{ident}-c)">{marks}</g>{edges}{before}</svg>'
    )


def named(figure: Figure) -> str:
    """The name of a figure: its title, or what its axes measure."""
    upward = figure.y.label or (figure.heads or {}).get("name", "")
    return figure.title or " by ".join(filter(None, (upward, figure.x.label)))


def rows_height(figure: Figure) -> int:
    """The height of a drawing of values below each other."""
    return _STEP * max(len(figure.y.names), 1) + round(_above(figure) + _below(figure))


def swatch(entry: Entry) -> str:
    """The mark of an entry of a key."""
    look, colour, dash, _ = entry
    ink = _ink(colour)
    if look in ("line", "rule", "level", "range", "joined"):
        width = 1.4 if colour in BEHIND else 2.4
        body = f'<path d="M1 6H21" {_stroke(ink, width, dash)}/>'
    elif look in ("band", "bar", "strip", "outline"):
        filled = f'fill="none" stroke="{ink}"' if look == "outline" else f'fill="{ink}"'
        faint = {"band": ' fill-opacity=".18"', "strip": ' fill-opacity=".45"'}.get(look, "")
        body = f'<rect x="2" y="1" width="18" height="10" {filled}{faint}/>'
    else:
        body = _shape(look, 11, 6, 4.4, colour)
    return f'<svg class="swatch" width="22" height="12" viewBox="0 0 22 12" aria-hidden="true">{body}</svg>'


# ---- the frame -----------------------------------------------------------------------------------


def _above(figure: Figure) -> float:
    return 20 if figure.y.label else 8


def _below(figure: Figure) -> float:
    if figure.of_kind(Surface):
        return 20
    return 22 + (18 if figure.x.label else 0)


def _is_down(figure: Figure) -> bool:
    return bool(figure.of_kind(Ranges)) or any(bars.across for bars in figure.of_kind(Bars))


def _plot(figure: Figure, width: int, height: int) -> Plot:
    """The box between the axes, beside and below which there is room for their texts."""
    ends = figure.ends()
    top, tall = _above(figure), max(height - _above(figure) - _below(figure), 40)
    texts = [_cut(text, width) for _, text in figure.y.written(ends[1], _about_up(tall))]
    left = 8.0 if figure.of_kind(Surface) else max([_LETTER * len(text) for text in texts], default=0) + 12
    alike = max((len(mark.joined) for mark in figure.of_kind(Ranges)), default=0)
    across = width - left - 14 - 10 * alike
    if figure.square or figure.of_kind(Surface):
        span = (ends[1][1] - ends[1][0]) / (ends[0][1] - ends[0][0])
        across, tall = min(across, tall / span), min(tall, across * span)
    return Plot(figure, left, top, across, tall, ends, _is_down(figure))


def _about_up(tall: float) -> int:
    return max(2, int(tall / 30))


def _cut(text: str, width: int) -> str:
    most = max(10, width // (20 if width < 600 else 28))
    return shortened(text, most)


def shortened(text: str, most: int) -> str:
    """A text without its middle, where ends of names differ as often as beginnings.

    >>> shortened("forest with 100 trees", 12)
    'forest…trees'
    """
    if len(text) <= most:
        return text
    first = most // 2
    return f"{text[:first]}…{text[len(text) - (most - first - 1) :]}"


def _frame(plot: Plot, width: int) -> tuple[str, str]:
    """The grid behind the marks, and the texts of both axes before them."""
    figure = plot.figure
    if figure.of_kind(Surface):
        return "", ""
    grid, texts = [], []
    right, foot = plot.left + plot.width, plot.top + plot.height
    for value, text in figure.y.written(plot.ends[1], _about_up(plot.height)):
        at = plot.y(value)
        if not plot.down:
            grid.append(f'<path d="M{plot.left:.1f} {at:.1f}H{right:.1f}" class="grid"/>')
        shown = _cut(text, width)
        whole = f"<title>{escape(text)}</title>" if shown != text else ""
        texts.append(_text(plot.left - 7, at + 4, shown, "end", whole=whole))
    for value, text, turned in _across(plot):
        at = plot.x(value)
        if plot.down or not figure.x.names:
            grid.append(f'<path d="M{at:.1f} {plot.top:.1f}V{foot:.1f}" class="grid"/>' if plot.down else "")
        half = _LETTER * len(text) / 2
        inside = min(max(at, half), width - half)
        texts.append(_text(inside, foot + 16, text, "middle", whole=turned))
    if not plot.down:
        grid.append(f'<path d="M{plot.left:.1f} {foot:.1f}H{right:.1f}" class="axis"/>')
    if figure.x.label:
        texts.append(_text(right, foot + 34, f"{figure.x.label} →", "end", "label"))
    if figure.y.label:
        label = figure.y.label.replace("\n", " ")
        texts.append(_text(0, 12, f"{'↓' if plot.down else '↑'} {label}", "start", "label"))
    if figure.inside:
        lines = figure.inside.split("\n")
        texts += [
            _text(plot.left + 6, plot.top + 14 + 13 * i, line, "start", "level")
            for i, line in enumerate(lines)
        ]
    return "".join(grid), "".join(texts)


def _across(plot: Plot) -> list[tuple[float, str, str]]:
    """Places, texts and hidden whole texts along the horizontal axis; texts fit beside each other."""
    axis, ends = plot.figure.x, plot.ends[0]
    if axis.names and not axis.ordered:
        most = max(2, int(plot.width / len(axis.names) / _LETTER) - 1)
        short = [text if len(text) <= most else f"{text[: most - 1]}…" for text in axis.names]
        return [
            (float(i), text, "" if text == whole else f"<title>{escape(whole)}</title>")
            for i, (text, whole) in enumerate(zip(short, axis.names, strict=True))
        ]
    about = max(2, int(plot.width / 70))
    while True:
        written = axis.written(ends, about)
        longest = max([len(text) for _, text in written], default=1)
        if about <= 2 or len(written) * (longest + 2) * _LETTER <= plot.width:
            return [(value, text, "") for value, text in written]
        about -= 1


def _text(x: float, y: float, text: str, anchor: str, kind: str = "", whole: str = "") -> str:
    style = f' class="{kind}"' if kind else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{style}>{whole}{escape(text)}</text>'


# ---- marks ---------------------------------------------------------------------------------------


def _depth(mark: Any) -> int:
    order = (Surface, Shade, Strip, Bars, Band, Guide, Line, Ranges, Points)
    behind = isinstance(mark, Line) and mark.colour in BEHIND
    return 2 * order.index(type(mark)) - 3 * behind


def _ink(colour: Colour) -> str:
    return f"var(--series-{colour % _N_SERIES + 1})" if isinstance(colour, int) else _NAMED[colour]


def _stroke(ink: str, width: float, dash: int = 0) -> str:
    dashes = f' stroke-dasharray="{_DASHES[dash]}"' if _DASHES[dash] else ""
    return f'fill="none" stroke="{ink}" stroke-width="{width:g}"{dashes}'


def _shape(shape: str, x: float, y: float, r: float, colour: Colour) -> str:
    """A point of this radius."""
    ink = _ink(colour)
    if shape == "dot":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{r:.1f}" fill="{ink}"/>'
    if shape == "ring":
        filled = "none" if colour in BEHIND else "var(--paper)"
        place = f'cx="{x:.1f}" cy="{y:.1f}" r="{r:.1f}"'
        return f'<circle {place} fill="{filled}" stroke="{ink}" stroke-width="1.6"/>'
    turns = {"diamond": (4, 90, 1.25), "square": (4, 45, 1.2), "triangle": (3, 90, 1.25)}.get(shape)
    if turns is not None:
        n, first, larger = turns
        corners = [(first + 360 * k / n, larger * r) for k in range(n)]
    else:
        n = {"star": 5, "cross": 4}[shape]
        start, inner = (90.0, 0.55) if shape == "star" else (45.0, 0.35)
        corners = [(start + 180 * k / n, (1.6 if k % 2 == 0 else 1.6 * inner) * r) for k in range(2 * n)]
    places = [
        f"{x + far * math.cos(math.radians(turn)):.1f} {y - far * math.sin(math.radians(turn)):.1f}"
        for turn, far in corners
    ]
    return f'<path d="M{"L".join(places)}Z" fill="{ink}"/>'


@singledispatch
def _draw(mark: Any, plot: Plot) -> str:
    raise NotImplementedError(type(mark))


@_draw.register
def _(mark: Line, plot: Plot) -> str:
    x, y = numbers(mark.x), numbers(mark.y)
    thin = mark.thin or mark.colour in BEHIND
    stroke = _stroke(_ink(mark.colour), 1.2 if thin else 2.2, mark.dashes)
    path = plot.path(*_steps(x, y, mark.step)) if mark.step else plot.path(x, y)
    drawn = f'<path d="{path}" {stroke} stroke-linejoin="round"/>'
    if mark.dots:
        size = 2.0 if thin else 2.8
        drawn += "".join(
            _shape("dot", plot.x(a), plot.y(b), size, mark.colour)
            for a, b in zip(x, y, strict=True)
            if math.isfinite(a + b)
        )
    return drawn


def _steps(x: Sequence[float], y: Sequence[float], step: Step) -> tuple[list[float], list[float]]:
    """The corners of a line that keeps each height after its point, or reaches it before."""
    late, early = (
        [x[0], *(at for at in x[1:] for _ in range(2))],
        [*(at for at in x[:-1] for _ in range(2)), x[-1]],
    )
    kept, reached = (
        [*(h for h in y[:-1] for _ in range(2)), y[-1]],
        [y[0], *(h for h in y[1:] for _ in range(2))],
    )
    return (late, kept) if step == "after" else (early, reached)


@_draw.register
def _(mark: Band, plot: Plot) -> str:
    ends = [(numbers(mark.x), numbers(end)) for end in (mark.low, mark.high)]
    if mark.step:
        ends = [_steps(*end, mark.step) for end in ends]
    (x, low), (_, high) = ends
    drawn = []
    for first, last in _runs([math.isfinite(a + b + c) for a, b, c in zip(x, low, high, strict=True)]):
        around = plot.path(x[first:last] + x[first:last][::-1], low[first:last] + high[first:last][::-1])
        drawn.append(f'<path d="{around}Z" fill="{_ink(mark.colour)}" fill-opacity=".16"/>')
    return "".join(drawn)


def _runs(known: Sequence[bool]) -> list[tuple[int, int]]:
    """The stretches of what is known: their first places, and those behind their last ones."""
    padded = [False, *known, False]
    changes = [i for i, (a, b) in enumerate(pairwise(padded)) if a != b]
    return list(zip(changes[::2], changes[1::2], strict=True))


@_draw.register
def _(mark: Points, plot: Plot) -> str:
    parts = []
    shares, low, high = numbers(mark.shares), numbers(mark.low), numbers(mark.high)
    for i, (x, y) in enumerate(zip(numbers(mark.x), numbers(mark.y), strict=True)):
        if low and math.isfinite(low[i] + high[i]):
            path = f"M{plot.x(x):.1f} {plot.y(low[i]):.1f}V{plot.y(high[i]):.1f}"
            parts.append(f'<path d="{path}" {_stroke(_ink(mark.colour), 1.6)}/>')
        size = 1 + 8 * math.sqrt(shares[i]) if shares else 0.65 * mark.size
        if math.isfinite(x + y) and size > 0:
            parts.append(_shape(mark.shape, plot.x(x), plot.y(y), size, mark.colour))
    return "".join(parts)


@_draw.register
def _(mark: Guide, plot: Plot) -> str:
    right, foot = plot.left + plot.width, plot.top + plot.height
    if mark.axis == "x":
        path = f"M{plot.x(mark.at):.1f} {plot.top:.1f}V{foot:.1f}"
    else:
        path = f"M{plot.left:.1f} {plot.y(mark.at):.1f}H{right:.1f}"
    return f'<path d="{path}" {_stroke(_ink(mark.colour), 1.3, mark.dash)}/>'


@_draw.register
def _(mark: Shade, plot: Plot) -> str:
    if mark.axis == "x":
        a, b = sorted((plot.x(mark.low), plot.x(mark.high)))
        box = f'x="{a:.1f}" y="{plot.top:.1f}" width="{b - a:.1f}" height="{plot.height:.1f}"'
    else:
        a, b = sorted((plot.y(mark.low), plot.y(mark.high)))
        box = f'x="{plot.left:.1f}" y="{a:.1f}" width="{plot.width:.1f}" height="{b - a:.1f}"'
    return f'<rect {box} fill="{_ink(mark.colour)}" fill-opacity=".14"/>'


@_draw.register
def _(mark: Strip, plot: Plot) -> str:
    edges, foot, parts = numbers(mark.edges), plot.top + plot.height, []
    for low, high, share in zip(edges, edges[1:], mark.heights(), strict=False):
        if share:
            a, b, tall = plot.x(low), plot.x(high), plot.height * share
            parts.append(f"M{a + 0.5:.1f} {foot:.1f}V{foot - tall:.1f}H{max(b - 0.5, a + 1):.1f}V{foot:.1f}Z")
    return f'<path d="{"".join(parts)}" fill="var(--soft)" fill-opacity=".35"/>'


@_draw.register
def _(mark: Ranges, plot: Plot) -> str:
    parts = []
    for i, row in enumerate(mark.values):
        colour, shape = mark.flag if row.flagged else (0, "dot")
        ink, at = _ink(colour), plot.y(i)
        if math.isfinite(row.low + row.high):
            a, b = plot.x(row.low), plot.x(row.high)
            if mark.bars:
                box = f'x="{a + 2:.1f}" y="{at - 10:.1f}" width="{b - a - 4:.1f}" height="20" rx="3"'
                parts.append(f'<rect {box} fill="{ink}" fill-opacity=".18"/>')
            else:
                parts.append(f'<path d="M{a:.1f} {at:.1f}H{b:.1f}" {_stroke(ink, 2)}/>')
        if math.isfinite(row.other):
            a, b = plot.x(row.other), plot.x(row.value)
            parts.append(f'<path d="M{a:.1f} {at:.1f}H{b:.1f}" {_stroke("var(--soft)", 1)}/>')
            parts.append(_shape("ring", a, at, 4.4, "soft"))
        if math.isfinite(row.value):
            parts.append(_shape(shape, plot.x(row.value), at, 4.4, colour))
        elif row.note:
            parts.append(_text(plot.left + plot.width - 4, at + 4, row.note, "end"))
    return "".join(parts)


@_draw.register
def _(mark: Bars, plot: Plot) -> str:
    ink, parts = _ink(mark.colour), []
    look = f'fill="none" stroke="{ink}" stroke-width="1.8"' if mark.outline else f'fill="{ink}"'
    for at, length in zip(numbers(mark.at), numbers(mark.lengths), strict=True):
        along, beside = (plot.x, plot.y) if mark.across else (plot.y, plot.x)
        a, b = sorted((along(0), along(length)))
        c, d = sorted((beside(at - mark.width / 2), beside(at + mark.width / 2)))
        x, y, w, h = (a, c, b - a, d - c) if mark.across else (c, a, d - c, b - a)
        parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{w:.1f}" height="{h:.1f}" {look}/>')
    return "".join(parts)


@_draw.register
def _(mark: Surface, plot: Plot) -> str:
    """Small triangles in a few shades, all of one shade in one path."""
    x, y = corner_place(np.asarray(mark.points).T)
    shown, corners = mark.shown(), facets(mark.points)
    span = mark.high - mark.low or 1.0
    shade = np.rint((_SHADES - 1) * (shown[corners].mean(axis=1) - mark.low) / span).astype(int)
    parts = []
    for k in np.unique(shade):
        paths = "".join(f"{plot.path(x[c].tolist(), y[c].tolist())}Z" for c in corners[shade == k])
        colour = _between(k / (_SHADES - 1))
        parts.append(f'<path d="{paths}" fill="{colour}" stroke="{colour}" stroke-width=".6"/>')
    names = ((0.0, 0.0, -8, 14), (0.5, ROOT, 0, -6), (1.0, 0.0, 8, 14))
    texts = [
        _text(plot.x(a) + dx, plot.y(b) + dy, f"{j}", "middle") for j, (a, b, dx, dy) in enumerate(names)
    ]
    return "".join(parts + texts)


def _between(share: float) -> str:
    """The colour of a share of the way from the first to the last colour of the scale."""
    place = share * (len(_SCALE) - 1)
    first = min(int(place), len(_SCALE) - 2)
    mixed = (a + (b - a) * (place - first) for a, b in zip(_SCALE[first], _SCALE[first + 1], strict=True))
    return "#" + "".join(f"{round(part):02x}" for part in mixed)


# ---- beyond the axes -----------------------------------------------------------------------------


def _edges(mark: Any, plot: Plot) -> str:
    """Labels, and arrows where something lies beyond the axes: outside of what is clipped."""
    if isinstance(mark, Points):
        return "".join(_labels(mark, plot))
    if isinstance(mark, Bars):
        return "".join(_bar_texts(mark, plot))
    if isinstance(mark, Guide) and mark.axis == "y" and mark.name and plot.width > 260:
        return _text(plot.left + 6, plot.y(mark.at) - 5, mark.name, "start", "level")
    if isinstance(mark, Ranges):
        return "".join(_arrows(mark, plot)) + _joined(mark, plot)
    return ""


def _labels(mark: Points, plot: Plot) -> Iterable[str]:
    bottom, top = plot.ends[1]
    for i, (x, y) in enumerate(zip(numbers(mark.x), numbers(mark.y), strict=True)):
        if mark.labels:
            text = mark.labels[i]
            end = plot.x(x) + 9 + _LETTER * len(text) > plot.left + plot.width
            yield _text(
                plot.x(x) + (-7 if end else 7), plot.y(y) - 5, text, "end" if end else "start", "level"
            )
        if not bottom <= y <= top and not math.isnan(y) and not mark.labels:
            text = "∞" if math.isinf(y) else f"{y:.2g} {'↑' if y > top else '↓'}"
            at = plot.top + 12 if y > top else plot.top + plot.height - 6
            yield _text(plot.x(x), at, text, "middle", "level")


def _bar_texts(mark: Bars, plot: Plot) -> Iterable[str]:
    for at, length, text in zip(numbers(mark.at), numbers(mark.lengths), mark.texts, strict=False):
        if mark.across:
            yield _text(plot.x(length) + 6, plot.y(at) + 4, text, "start", "level")
        else:
            yield _text(plot.x(at), plot.y(length) - 5, text, "middle", "level")


def _arrows(mark: Ranges, plot: Plot) -> Iterable[str]:
    low, high = plot.ends[0]
    for i, row in enumerate(mark.values):
        if row.low < low:
            yield _text(plot.left - 2, plot.y(i) + 4, "◂", "middle")
        if row.high > high:
            yield _text(plot.left + plot.width + 3, plot.y(i) + 4, "▸", "middle")


def _joined(mark: Ranges, plot: Plot) -> str:
    parts = []
    for k, places in enumerate(mark.joined):
        at = plot.left + plot.width + 8 + 9 * k
        path = f"M{at:.1f} {plot.y(places[0]):.1f}V{plot.y(places[-1]):.1f}"
        parts.append(f'<path d="{path}" {_stroke("var(--ink)", 1.2)}/>')
        parts += [_shape("dot", at, plot.y(place), 2.2, "ink") for place in places]
    return "".join(parts)
