"""Models by mean loss and by mean rank over data sets, drawn with matplotlib."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from verax.display.figures import Dot
from verax.display.panels import GREY, draw_dots, draw_intervals, label_below, panels, plain_texts

_WORSE = (GREY, "s")


@plain_texts
def draw_ranking(drawn: Mapping[str, Sequence[Dot]], x: str) -> Any:
    """Draw a panel per rule, by title: mean losses, with intervals of the differences from the first."""
    longest = max(map(len, drawn.values()))
    columns = min(len(drawn), 2)
    shape = math.ceil(len(drawn) / columns), columns
    how: dict[str, Any] = {"height": 0.75 + 0.3 * longest, "share_y": False, "share_x": False}
    figure, axes = panels(len(drawn), width=6.2 if columns == 1 else 3.3, shape=shape, **how)
    for ax, (title, dots) in zip(axes, drawn.items(), strict=True):
        best = dots[0].value
        draw_dots(ax, dots, mark=best if math.isfinite(best) else None, flagged=_WORSE)
        ax.margins(x=0.08)
        ax.locator_params(axis="x", nbins=5)
        ax.set_title(title, fontsize=9)
    label_below(figure, x)
    return figure


def draw_mean_ranks(
    dots: Sequence[Dot], alike: Sequence[Sequence[int]], x: str, n_models: int, ax: Any = None
) -> Any:
    """Draw mean ranks with intervals; a bar joins places of models that do not differ significantly."""
    x += "; joined at the right: not significantly different)" if alike else ")"
    figure = draw_intervals(dots, x, ax, flagged=_WORSE)
    ax = figure.axes[0] if ax is None else ax
    ax.set_xlim(0.9, n_models + 0.1)
    beside: dict[str, Any] = {"color": "black", "transform": ax.get_yaxis_transform(), "clip_on": False}
    for k, places in enumerate(alike):
        at = 1.02 + 0.025 * k
        ax.plot([at] * len(places), places, ".", markersize=4, **beside)
        ax.plot([at, at], [places[0], places[-1]], linewidth=1.2, **beside)
    return figure
