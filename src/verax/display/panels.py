"""Colours, ticks, and small multiples: a grid of panels, which may share their axes."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable
from functools import wraps
from typing import Any, Literal, ParamSpec, Protocol

import numpy as np

from verax.common.packages import needed

P = ParamSpec("P")
# The colours of Okabe and Ito, which colour-blind readers can tell apart, and line styles.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
# What is context: lines of reference, models that are worse.
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
            found = draw(*args, **kwargs)
        finally:
            settings["text.parse_math"] = before
        roots = list(found) if isinstance(found, (list, tuple, np.ndarray)) else [found]
        for root in roots:
            _as_they_are(root)
        return roots[0].figure

    return drawn


def _as_they_are(root: Any) -> None:
    """No text of a figure or of axes is a formula, except powers of ten on logarithmic axes."""
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


class PlottedEvents(Protocol):
    """Whether the events are thresholds."""

    @property
    def ordered(self) -> bool: ...


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
