"""Figures drawn with matplotlib."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from functools import singledispatch
from typing import Any, Literal

import numpy as np

from verax.common.packages import needed
from verax.display.axes import Axis, numbers
from verax.display.figures import Figure, Sheet
from verax.display.marks import (
    BEHIND,
    Band,
    Bars,
    Colour,
    Entry,
    Guide,
    Line,
    Points,
    Ranges,
    Shade,
    Strip,
    Surface,
    corner_place,
    facets,
)
from verax.errors import InputError, show

# The colours of Okabe and Ito, which colour-blind readers can tell apart, and line styles.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
# Context: lines of reference, models that are worse.
GREY = "#777777"
STYLES: tuple[Any, ...] = ("-", "--", "-.", ":")
_INK = "#333333"
_NAMED = {"soft": GREY, "pale": "#cccccc", "ink": _INK, "warn": COLOURS[1]}
_SHAPES = {"dot": "o", "diamond": "D", "square": "s", "star": "*", "ring": "o", "cross": "X", "triangle": "^"}
# Dark is a small value. Readers who see no colours, or few, see the same order of brightness.
_MAP = "cividis"
_LEVELS = 9
# Where the names of the corners of a triangle stand: how far from them, and how they are aligned.
_CORNERS = ((-0.03, -0.03, "right", "top"), (0.0, 0.03, "center", "bottom"), (0.03, -0.03, "left", "top"))
_STEPS: dict[str, Any] = {"after": "steps-post", "before": "steps-pre"}
# Names that are longer together, for each place, are written at an angle.
_LEVEL = 12
_SMALL: dict[str, Any] = {"framealpha": 0.9, "edgecolor": "none", "fontsize": 8}


def pyplot() -> Any:
    """`matplotlib.pyplot`, imported when the first figure is drawn."""
    return needed("matplotlib.pyplot", "Drawing", "plot")


def draw(sheet: Sheet, ax: Any = None, **options: Any) -> Any:
    """Draw a sheet of figures, in axes that are given or in a new figure; returns the figure of matplotlib.

    Texts are drawn as they are: $10k is no formula. `options` are those of `pyplot.subplots`.
    """
    # One setting alone: a context of all would set the backend again, and notebooks lose their figures.
    settings = pyplot().rcParams
    before, settings["text.parse_math"] = settings["text.parse_math"], False
    try:
        axes = _axes_for(len(sheet.figures), ax) if ax is not None else _new_axes(sheet, options)
        for each, figure in zip(axes, sheet.drawn(), strict=True):
            draw_figure(each, figure, spare=sheet.key == "inside" or (ax is not None and sheet.key != "none"))
        if ax is None:
            _frame(axes[0].figure, sheet)
        else:
            axes[0].set_xlabel("\n".join(filter(None, (axes[0].get_xlabel(), sheet.note))))
    finally:
        settings["text.parse_math"] = before
    for root in [axes[0].figure] if ax is None else axes:
        _as_they_are(root)
    return axes[0].figure


def draw_figure(ax: Any, figure: Figure, *, spare: bool = True) -> None:
    """Draw the marks of a figure in axes; `spare` asks for a key inside them."""
    (across, upward) = figure.ends()
    for mark in sorted(figure.marks, key=_depth):
        _draw(mark, ax, figure)
    _scale(ax.xaxis, figure.x, across)
    _scale(ax.yaxis, figure.y, upward)
    if figure.of_kind(Surface):
        ax.set(aspect="equal")
        ax.set_axis_off()
    elif figure.of_kind(Ranges) or any(bars.across for bars in figure.of_kind(Bars)):
        ax.invert_yaxis()
        ax.tick_params(axis="y", length=0)
        _quiet(ax, "x")
    else:
        _quiet(ax, "y")
    if figure.square:
        ax.set_aspect("equal")
    ax.set_xlabel(figure.x.label)
    ax.set_ylabel(figure.y.label)
    ax.set_title(figure.title, fontsize=9)
    if figure.inside:
        ax.text(0.04, 0.96, figure.inside, transform=ax.transAxes, va="top", fontsize=7, zorder=6)
    entries = figure.key()
    if spare and entries:
        ax.legend(*_handles(entries), loc="best", alignment="left", **_SMALL)


# ---- sheets --------------------------------------------------------------------------------------


def _new_axes(sheet: Sheet, options: dict[str, Any]) -> list[Any]:
    """The axes of a new figure; empty places are hidden."""
    plt = pyplot()
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    n, (rows, columns) = len(sheet.figures), sheet.shape
    width, height = sheet.size
    share_y: Any = "row" if "row" in sheet.shared else "y" in sheet.shared
    settings = {
        "figsize": (width * columns + 0.5, height * rows + 0.7),
        "layout": ConstrainedLayoutEngine(h_pad=0.1),
        **options,
    }
    _, axes = plt.subplots(
        rows, columns, sharex="x" in sheet.shared, sharey=share_y, squeeze=False, **settings
    )
    for ax in axes.flat[n:]:
        ax.set_visible(False)
    for i in range(n):
        # The lowest panel of each column has the numbers, also above an empty place.
        below = "x" not in sheet.shared or i + columns >= n
        axes.flat[i].tick_params(labelbottom=below, labelsize=8)
    return list(axes.flat[:n])


def _frame(figure: Any, sheet: Sheet) -> None:
    """What all panels share: the key, the names of axes, the title and the note."""
    entries = sheet.key_entries()
    if sheet.key == "above" and entries:
        # An entry takes about a sixteenth of an inch per letter, and half an inch for its line.
        entry = 0.55 + max(len(each.name) for each in entries) / 15
        columns = min(len(entries), max(1, int(figure.get_figwidth() / entry)))
        figure.legend(*_handles(entries), loc="outside upper left", ncols=columns, **_SMALL)
    # At this size an inch holds some 16 letters; a margin is left.
    width = int(15 * figure.get_figwidth())
    told = [line for text in (sheet.x, *sheet.note.split("\n")) for line in textwrap.wrap(text, width)]
    if told:
        figure.supxlabel("\n".join(told), fontsize=8)
    if sheet.y:
        figure.supylabel(sheet.y, fontsize=8)
    if sheet.title:
        figure.suptitle(sheet.title, fontsize=10)
    surfaces = [mark for each in sheet.figures for mark in each.of_kind(Surface)]
    if surfaces:
        _colour_bar(figure, surfaces)


def _axes_for(n: int, ax: Any) -> list[Any]:
    """The axes that a caller gave for n panels."""
    axes = list(ax) if isinstance(ax, (list, tuple)) or (isinstance(ax, np.ndarray) and ax.ndim) else [ax]
    pyplot()
    from matplotlib.axes import Axes

    if not all(isinstance(one, Axes) for one in axes):
        raise InputError("must be axes of matplotlib", argument="ax", kind="type", found=f"it is {show(ax)}")
    if len(axes) != n:
        raise InputError(
            f"must be left out, or be {n} axes, one for each panel" if n > 1 else "must be one axes",
            argument="ax",
            kind="length",
            found=f"it is {len(axes)}",
        )
    return axes


def _as_they_are(root: Any) -> None:
    """Draw all texts of a figure or of axes literally, except powers of ten on logarithmic axes."""
    from matplotlib.text import Text

    for text in root.findobj(Text):
        text.set_parse_math(False)
    for ax in root.axes if isinstance(root.axes, list) else [root]:
        for axis in (ax.xaxis, ax.yaxis):
            if axis.get_scale() == "log":
                for tick in (*axis.majorTicks, *axis.minorTicks):
                    tick.label1.set_parse_math(True)


def _handles(entries: Sequence[Entry]) -> tuple[list[Any], list[str]]:
    """The marks of a key and their names."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    drawn: list[Any] = []
    for look, colour, dash, _ in entries:
        ink = _ink(colour)
        if look in ("line", "rule", "level"):
            width = 0.8 if colour in BEHIND else 1.6
            drawn.append(Line2D([], [], color=ink, linestyle=STYLES[dash], linewidth=width))
        elif look in ("range", "joined"):
            drawn.append(Line2D([], [], color=ink, linewidth=2))
        elif look in ("band", "bar", "strip"):
            alpha = {"band": 0.2, "bar": 1.0, "strip": 0.4}[look]
            drawn.append(Patch(facecolor=ink, alpha=alpha, linewidth=0))
        elif look == "outline":
            drawn.append(Patch(fill=False, edgecolor=ink, linewidth=1.4))
        else:
            drawn.append(Line2D([], [], linestyle="none", **_marker(look, colour)))
    return drawn, [entry.name for entry in entries]


# ---- axes ----------------------------------------------------------------------------------------


def _quiet(ax: Any, grid: Literal["x", "y"]) -> None:
    """A light grid across one axis, and no frame."""
    ax.spines[["top", "right", *(["left"] if grid == "x" else [])]].set_visible(False)
    ax.grid(axis=grid, color="#dddddd", linewidth=0.6)
    ax.set_axisbelow(True)


def _scale(axis: Any, told: Axis, ends: tuple[float, float]) -> None:
    """The ends, the scale and the ticks of an axis."""
    which = axis.axis_name
    if told.log:
        getattr(axis.axes, f"set_{which}scale")("log")
        if told.whole:
            axis.set_major_formatter("{x:,.0f}")
    getattr(axis.axes, f"set_{which}lim")(*ends)
    if told.names:
        every = max(1, -(-len(told.names) // 8)) if told.ordered else 1
        slanted = which == "x" and (
            len(told.names[0]) >= 6 if told.ordered else sum(map(len, told.names)) > _LEVEL * 3
        )
        look: dict[str, Any] = {"rotation": 20 if told.ordered else 30} if slanted else {}
        look |= {"ha": "right", "rotation_mode": "anchor"} if slanted else {}
        axis.set_ticks(range(0, len(told.names), every), told.names[::every], **look)
    elif told.ticks:
        axis.set_ticks(told.ticks, [told.text(tick, told.ticks) for tick in told.ticks])
    elif told.percent:
        axis.set_major_formatter(lambda share, _: f"{100 * share:.6g}%")
    elif told.whole and not told.log:
        axis.get_major_locator().set_params(integer=True)
    axis.axes.tick_params(axis=which, labelsize=8)


def _ink(colour: Colour) -> str:
    return COLOURS[colour % len(COLOURS)] if isinstance(colour, int) else _NAMED[colour]


def _marker(shape: str, colour: Colour, size: float = 6.0) -> dict[str, Any]:
    """How a point looks; rings are white inside."""
    ink = _ink(colour)
    larger = {"ring": 1.3, "star": 1.8, "cross": 1.5}.get(shape, 1.0)
    look = {"marker": _SHAPES[shape], "color": ink, "markersize": size * larger}
    return look | ({"markerfacecolor": "none" if colour == "soft" else "white"} if shape == "ring" else {})


# ---- marks ---------------------------------------------------------------------------------------


def _depth(mark: Any) -> int:
    """How far in front a mark is drawn."""
    order = (Surface, Shade, Strip, Bars, Band, Guide, Line, Ranges, Points)
    behind = isinstance(mark, Line) and mark.colour in BEHIND
    return 2 * order.index(type(mark)) - 3 * behind


@singledispatch
def _draw(mark: Any, ax: Any, figure: Figure) -> None:
    raise NotImplementedError(type(mark))


@_draw.register
def _(mark: Line, ax: Any, _: Figure) -> None:
    thin = mark.thin or mark.colour in BEHIND
    look: dict[str, Any] = {"linestyle": STYLES[mark.dashes], "linewidth": 0.8 if thin else 1.6}
    look |= {"marker": "o", "markersize": 3} if mark.dots else {}
    look |= {"drawstyle": _STEPS[mark.step]} if mark.step else {}
    ax.plot(mark.x, mark.y, color=_ink(mark.colour), zorder=1.5 if mark.colour in BEHIND else 3, **look)


@_draw.register
def _(mark: Band, ax: Any, figure: Figure) -> None:
    """A band, more transparent where there are many, and then with edges that tell them apart."""
    series = len({band.colour for band in figure.of_kind(Band)})
    colour, step = _ink(mark.colour), _STEPS[mark.step].removeprefix("steps-") if mark.step else None
    alpha = 0.25 if mark.colour in BEHIND else 0.2 / series**0.5
    ax.fill_between(mark.x, mark.low, mark.high, color=colour, alpha=alpha, linewidth=0, step=step)
    line = figure.line_of(mark)
    if series > 1 and line is not None:
        for end in (mark.low, mark.high):
            ax.plot(mark.x, end, color=colour, linestyle=STYLES[line.dashes], linewidth=0.5, alpha=0.5)


@_draw.register
def _(mark: Points, ax: Any, figure: Figure) -> None:
    x, y = np.asarray(numbers(mark.x)), np.asarray(numbers(mark.y))
    (_, (bottom, top)) = figure.ends()
    slack = 1e-9 * (top - bottom)
    inside = np.isfinite(y) & (y <= top + slack) & (y >= bottom - slack)
    colour = _ink(mark.colour)
    if len(numbers(mark.low)):
        with np.errstate(invalid="ignore"):
            reach = np.stack([y - numbers(mark.low), np.asarray(numbers(mark.high)) - y])[:, inside]
        reach = np.maximum(np.nan_to_num(reach), 0)
        ax.errorbar(x[inside], y[inside], reach, fmt="none", ecolor=colour, linewidth=1.2, zorder=4)
    if len(numbers(mark.shares)):
        ax.scatter(
            x, y, s=90 * np.asarray(numbers(mark.shares)), marker=_SHAPES[mark.shape], color=colour, zorder=4
        )
    else:
        ax.plot(
            x[inside], y[inside], linestyle="none", zorder=5, **_marker(mark.shape, mark.colour, mark.size)
        )
    (left, right), _ = figure.ends()
    for i, text in enumerate(mark.labels):
        # A name stands to the left of its point where another point is close to the right.
        near = (x > x[i]) & (x < x[i] + 0.25 * (right - left)) & (np.abs(y - y[i]) < 0.05 * (top - bottom))
        where = {"xytext": (-6, 3), "ha": "right"} if near.any() else {"xytext": (6, 3)}
        ax.annotate(text, (x[i], y[i]), textcoords="offset points", fontsize=8, **where)
    for i in np.flatnonzero(~inside & ~np.isnan(y)).tolist():
        above = y[i] > top
        text = "∞" if np.isinf(y[i]) else f"{y[i]:.2g} {'↑' if above else '↓'}"
        place = {"xycoords": ("data", "axes fraction"), "ha": "center", "va": "top" if above else "bottom"}
        ax.annotate(text, (x[i], 0.97 if above else 0.03), color=colour, fontsize=8, **place)


@_draw.register
def _(mark: Guide, ax: Any, _: Figure) -> None:
    width = 0.8 if mark.colour in BEHIND else 1.0
    rule = ax.axvline if mark.axis == "x" else ax.axhline
    rule(mark.at, color=_ink(mark.colour), linewidth=width, linestyle=STYLES[mark.dash], zorder=1.4)


@_draw.register
def _(mark: Shade, ax: Any, _: Figure) -> None:
    shade = ax.axvspan if mark.axis == "x" else ax.axhspan
    shade(mark.low, mark.high, color=_ink(mark.colour), alpha=0.15, linewidth=0, zorder=0)


@_draw.register
def _(mark: Strip, ax: Any, _: Figure) -> None:
    edges = numbers(mark.edges)
    look = {"transform": ax.get_xaxis_transform(), "color": "#cccccc", "linewidth": 0, "zorder": 1}
    ax.bar(edges[:-1], mark.heights(), np.diff(edges), align="edge", **look)


@_draw.register
def _(mark: Ranges, ax: Any, _: Figure) -> None:
    for place, row in enumerate(mark.values):
        colour, shape = mark.flag if row.flagged else (0, "dot")
        ink = _ink(colour)
        known = math.isfinite(row.low) and math.isfinite(row.high)
        if known and mark.bars:
            ax.barh(place, row.high - row.low, left=row.low, height=0.78, color=ink, alpha=0.22)
        elif known:
            ends = {"linewidth": 2, "solid_capstyle": "butt", "zorder": 2}
            ax.plot([row.low, row.high], [place, place], color=ink, **ends)
        if math.isfinite(row.other):
            ax.plot([row.other, row.value], [place, place], color=GREY, linewidth=0.8, zorder=1)
            ax.plot([row.other], [place], linestyle="none", zorder=2, **_marker("ring", "soft"))
        if math.isfinite(row.value):
            ax.plot([row.value], [place], linestyle="none", zorder=3, **_marker(shape, colour))
        elif row.note:
            where = {"transform": ax.get_yaxis_transform(), "ha": "right", "va": "center"}
            ax.text(0.98, place, row.note, fontsize=8, **where)
    beside: dict[str, Any] = {"color": "black", "transform": ax.get_yaxis_transform(), "clip_on": False}
    for k, places in enumerate(mark.joined):
        at = 1.02 + 0.025 * k
        ax.plot([at] * len(places), places, ".", markersize=4, **beside)
        ax.plot([at, at], [places[0], places[-1]], linewidth=1.2, **beside)


@_draw.register
def _(mark: Bars, ax: Any, _: Figure) -> None:
    ink = _ink(mark.colour)
    look: dict[str, Any] = (
        {"fill": False, "edgecolor": ink, "linewidth": 1.4} if mark.outline else {"color": ink}
    )
    at, lengths = numbers(mark.at), numbers(mark.lengths)
    if mark.across:
        ax.barh(at, lengths, height=mark.width, **look)
    else:
        ax.bar(at, lengths, width=mark.width, **look)
    for place, length, text in zip(at, lengths, mark.texts, strict=False):
        where = (length, place) if mark.across else (place, length)
        side = {"xytext": (4, 0), "va": "center"} if mark.across else {"xytext": (0, 3), "ha": "center"}
        ax.annotate(text, where, textcoords="offset points", fontsize=8, **side)


@_draw.register
def _(mark: Surface, ax: Any, _: Figure) -> None:
    from matplotlib.collections import LineCollection
    from matplotlib.tri import Triangulation

    x, y = corner_place(mark.points.T)
    corners = facets(mark.points)
    shown = mark.shown()
    mesh = Triangulation(x, y, corners)
    ax.tripcolor(mesh, shown, shading="gouraud", cmap=_MAP, vmin=mark.low, vmax=mark.high, rasterized=True)
    if mark.high > mark.low:
        levels = np.linspace(mark.low, mark.high, _LEVELS + 1)[1:-1]
        ax.tricontour(mesh, shown, levels=levels, colors="white", linewidths=0.5, alpha=0.75)
    for j, (dx, dy, ha, va) in enumerate(_CORNERS):
        left, up = corner_place(np.eye(3)[j])
        ax.text(left + dx, up + dy, f"{j}", ha=ha, va=va, fontsize=10)
    # Where the value is infinite, which may be an edge only, without area.
    infinite = np.isposinf(mark.values)
    if infinite.any():
        sides = np.concatenate([corners[:, [0, 1]], corners[:, [1, 2]], corners[:, [2, 0]]])
        ends = sides[infinite[sides].all(axis=1)]
        lines = list(np.stack([x[ends], y[ends]], axis=-1))
        ax.add_collection(LineCollection(lines, colors=COLOURS[1], linewidths=2.5, capstyle="round"))
        ax.plot(x[infinite], y[infinite], ".", color=COLOURS[1], markersize=1.5)


def _colour_bar(figure: Any, surfaces: Sequence[Surface]) -> None:
    """The scale of the colours of all triangles."""
    axes = [ax for ax in figure.axes if ax.get_visible()]
    cut = any(mark.cut for mark in surfaces)
    bar = figure.colorbar(
        axes[-1].collections[0], ax=axes, shrink=0.75, extend="max" if cut else "neither", pad=0.02
    )
    bar.set_label(surfaces[0].name, fontsize=9)
    bar.ax.tick_params(labelsize=8)
    if any(np.isposinf(mark.values).any() for mark in surfaces):
        bar.ax.set_title("red line: ∞", fontsize=8, color=COLOURS[1])
