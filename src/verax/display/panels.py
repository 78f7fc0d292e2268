"""Figures drawn with matplotlib: panels of lines, values with intervals, colours and ticks."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, Literal, ParamSpec

import numpy as np

from verax.common.packages import needed
from verax.display.figures import Dot, Panel
from verax.errors import InputError

P = ParamSpec("P")
# The colours of Okabe and Ito, which colour-blind readers can tell apart, and line styles.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
# Context: lines of reference, models that are worse.
GREY = "#777777"
STYLES = ("-", "--", "-.", ":")


def pyplot() -> Any:
    """`matplotlib.pyplot`, imported when the first figure is drawn."""
    return needed("matplotlib.pyplot", "Drawing", "plot")


def plain_texts(draw: Callable[P, Any]) -> Callable[P, Any]:
    """Let a function that returns a figure or axes draw texts as they are, and return the figure.

    $10k is no formula.
    """

    @wraps(draw)
    def drawn(*args: P.args, **kwargs: P.kwargs) -> Any:
        # One setting alone: a context of all would set the backend again, and notebooks lose their figures.
        settings = pyplot().rcParams
        before, settings["text.parse_math"] = settings["text.parse_math"], False
        try:
            result = draw(*args, **kwargs)
        finally:
            settings["text.parse_math"] = before
        roots = list(result) if isinstance(result, (list, tuple, np.ndarray)) else [result]
        for root in roots:
            _as_they_are(root)
        return roots[0].figure

    return drawn


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


# Of more events, some are drawn.
MOST_PANELS = 20


def grid_shape(n: int) -> tuple[int, int]:
    """Rows and columns for n panels: few empty places, at most five columns."""
    if n <= 3:
        return 1, n
    if n <= 6:
        return 2, math.ceil(n / 2)
    columns = min((5, 4, 3), key=lambda c: -n % c)
    return math.ceil(n / columns), columns


def legend_above(figure: Any, ax: Any) -> None:
    """A legend of one of the panels, above all of them, wrapped to their width."""
    handles, labels = ax.get_legend_handles_labels()
    # An entry takes about a sixteenth of an inch per letter, and half an inch for its line.
    entry = 0.55 + max(map(len, labels)) / 15
    columns = min(len(labels), max(1, int(figure.get_figwidth() / entry)))
    figure.legend(handles, labels, frameon=False, fontsize=8, loc="outside upper left", ncols=columns)


def label_below(figure: Any, text: str) -> None:
    """A label under all panels, with lines wrapped to the width of the figure."""
    # At this size an inch holds some 16 letters; a margin is left.
    width = int(15 * figure.get_figwidth())
    lines = [wrapped for line in text.split("\n") for wrapped in textwrap.wrap(line, width) or [""]]
    figure.supxlabel("\n".join(lines), fontsize=8)


def panels(
    n: int,
    *,
    width: float,
    height: float,
    share_y: bool | Literal["row"],
    share_x: bool = True,
    shape: tuple[int, int] | None = None,
) -> tuple[Any, list[Any]]:
    """A figure with n panels of this size, and their axes; empty places are hidden."""
    plt = pyplot()
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    n_rows, n_columns = shape or grid_shape(n)
    figure, axes = plt.subplots(
        n_rows,
        n_columns,
        figsize=(width * n_columns + 0.5, height * n_rows + 0.7),
        sharex=share_x,
        sharey=share_y,
        squeeze=False,
        layout=ConstrainedLayoutEngine(h_pad=0.1),
    )
    for ax in axes.flat[n:]:
        ax.set_visible(False)
    for i in range(n):
        # The lowest panel of each column has the numbers, also above an empty place.
        axes.flat[i].tick_params(labelbottom=not share_x or i + n_columns >= n, labelsize=8)
        axes.flat[i].spines[["top", "right"]].set_visible(False)
    return figure, list(axes.flat[:n])


def round_numbers(low: float, high: float, about: int) -> list[float]:
    """Round numbers between two that differ, at most one more than `about`.

    >>> round_numbers(0.02, 0.31, 7)
    [0.05, 0.1, 0.15, 0.2, 0.25, 0.3]
    >>> round_numbers(0.39, 0.79, 4)
    [0.4, 0.5, 0.6, 0.7]
    """
    rough = (high - low) / about
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(unit * k for k in (1, 2, 2.5, 5, 10) if unit * k >= rough)
    return [round(i * step, 12) for i in range(math.ceil(low / step), math.floor(high / step) + 1)]


def quiet(ax: Any, grid: Literal["x", "y"] = "y") -> None:
    """A light grid across one axis, and no frame."""
    ax.spines[["top", "right", *(["left"] if grid == "x" else [])]].set_visible(False)
    ax.grid(axis=grid, color="#dddddd", linewidth=0.6)
    ax.set_axisbelow(True)


def axes_for(n: int, ax: Any) -> list[Any]:
    """The axes that a caller gave for n panels."""
    axes = list(ax) if isinstance(ax, (list, tuple, np.ndarray)) else [ax]
    if len(axes) != n:
        raise InputError(
            f"must be left out, or be {n} axes, one for each panel" if n > 1 else "must be one axes",
            argument="ax",
            kind="length",
            found=f"it is {len(axes)}",
        )
    return axes


# ---- lines ---------------------------------------------------------------------------------------


@plain_texts
def draw_panels(
    drawn: Sequence[Panel], ax: Any = None, *, width: float, height: float, columns: int = 1
) -> Any:
    """Draw panels with a scale of their own, below each other or in columns, or in axes that are given."""
    shape = math.ceil(len(drawn) / columns), columns
    axes = axes_for(len(drawn), ax) if ax is not None else None
    if axes is None:
        _, axes = panels(
            len(drawn), width=width, height=height, share_y=False, share_x=columns == 1, shape=shape
        )
    for panel_axes, panel in zip(axes, drawn, strict=True):
        draw_panel(panel_axes, panel)
    return axes


@plain_texts
def draw_grid(
    drawn: Sequence[Panel],
    x: str,
    y: str = "",
    *,
    title: str = "",
    widths: tuple[float, float, float],
    height: float | None = None,
    share_y: bool | Literal["row"] = True,
    shape: tuple[int, int] | None = None,
) -> Any:
    """Draw small multiples with one legend above; `widths` are those of panels in 1, 2 and more columns."""
    shape = shape or grid_shape(len(drawn))
    width = widths[min(shape[1], 3) - 1]
    figure, axes = panels(len(drawn), width=width, height=height or width, share_y=share_y, shape=shape)
    for ax, panel in zip(axes, drawn, strict=True):
        draw_panel(ax, panel)
    legend_above(figure, axes[0])
    label_below(figure, x)
    if y:
        figure.supylabel(y, fontsize=8)
    if title:
        figure.suptitle(title, fontsize=10)
    return figure


def draw_panel(ax: Any, panel: Panel) -> None:
    """Draw the lines of a panel with their bands."""
    for value, name in panel.levels:
        ax.axhline(value, color=GREY, linewidth=0.8, linestyle="--", label=name or None)
    if panel.marked is not None:
        ax.axvspan(*panel.marked, color=COLOURS[1], alpha=0.15, linewidth=0)
    looks = [(colour, STYLES[i % len(STYLES)]) for i, colour in enumerate(COLOURS)]
    models = [line for line in panel.lines if not line.beside]
    for line in panel.lines:
        marker = {"marker": "o", "markersize": 3} if panel.times else {}
        look: dict[str, Any] = {"label": line.name or None, **marker}
        if line.beside:
            ax.plot(line.x, line.y, color=GREY, linewidth=0.8, linestyle=":", **look)
            continue
        i = models.index(line)
        colour, style = looks[i % len(looks)]
        if line.single:
            ((_, low, high),) = line.bands
            reach = [np.subtract(line.y, low), np.subtract(high, line.y)]
            ax.errorbar(line.x, line.y, reach, fmt="o", color=colour, markersize=4, linewidth=1.2)
            continue
        ax.plot(line.x, line.y, color=colour, linestyle=style, linewidth=1.6, **look)
        for band in line.bands:
            _draw_band(ax, band, colour, style, len(models))
    if panel.log:
        ax.set_yscale("log")
    ax.set(xlabel=panel.x, ylabel=panel.y, xlim=panel.across, ylim=panel.upward)
    ax.set_title(panel.title, fontsize=9)
    if panel.times:
        every = max(1, -(-len(panel.times) // 8))
        shown = range(0, len(panel.times), every)
        ax.set_xticks(
            list(shown), [panel.times[i] for i in shown], rotation=0 if len(panel.times[0]) < 6 else 20
        )
    quiet(ax)
    if panel.legend is not None:
        look = {"frameon": False, "loc": "best", "alignment": "left", "fontsize": 8, "title_fontsize": 8}
        ax.legend(title=panel.legend or None, **look)


def _draw_band(ax: Any, band: Sequence[Any], colour: str, style: str, n_lines: int) -> None:
    """A band, more transparent where there are many, and then with edges that tell them apart."""
    x, *ends = band
    ax.fill_between(x, *ends, color=colour, alpha=0.2 / n_lines**0.5, linewidth=0)
    for end in ends if n_lines > 1 else ():
        ax.plot(x, end, color=colour, linestyle=style, linewidth=0.5, alpha=0.5)


# ---- values with intervals -----------------------------------------------------------------------


@plain_texts
def draw_intervals(
    dots: Sequence[Dot],
    x: str,
    ax: Any = None,
    *,
    mark: float | None = None,
    flagged: tuple[str, str] = (COLOURS[1], "D"),
) -> Any:
    """Draw values with their intervals, in axes that are given or in a new figure."""
    if ax is None:
        height = 1.3 + 0.36 * max(len(dots), 1)
        ax = pyplot().subplots(figsize=(6.4, height), layout="constrained")[1]
    draw_dots(ax, dots, mark=mark, flagged=flagged)
    ax.set_xlabel(x, fontsize=8)
    return ax


def draw_dots(
    ax: Any, dots: Sequence[Dot], *, mark: float | None = None, flagged: tuple[str, str] = (COLOURS[1], "D")
) -> None:
    """Draw values with their intervals below each other; `flagged` is a colour and a shape."""
    if mark is not None:
        ax.axvline(mark, color=GREY, linewidth=0.9, linestyle="--", zorder=1)
    for place, dot in enumerate(dots):
        colour, marker = flagged if dot.flagged else (COLOURS[0], "o")
        if math.isfinite(dot.low) and math.isfinite(dot.high):
            ends = {"linewidth": 2, "solid_capstyle": "butt", "zorder": 2}
            ax.plot([dot.low, dot.high], [place, place], color=colour, **ends)
        if math.isfinite(dot.value):
            ax.plot([dot.value], [place], marker, color=colour, markersize=6, zorder=3)
        elif dot.note:
            where = {"transform": ax.get_yaxis_transform(), "ha": "right", "va": "center"}
            ax.text(0.98, place, dot.note, fontsize=8, **where)
    ax.set_yticks(range(len(dots)), [dot.name for dot in dots], fontsize=8)
    ax.set_ylim(max(len(dots), 1) - 0.5, -0.5)
    ax.tick_params(axis="y", length=0)
    quiet(ax, "x")
