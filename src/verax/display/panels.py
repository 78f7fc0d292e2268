"""Small multiples: a grid of panels, which may share their axes."""

from __future__ import annotations

import math
from typing import Any, Literal, Protocol

from verax.display.palette import pyplot

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
