"""Single forecasts beside what happened, drawn with matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from verax.display.panels import COLOURS, GREY, MOST_PANELS, legend_above, panels, plain_texts

# Names that are longer are written at an angle.
_LONG = 12


@dataclass(frozen=True)
class DrawnCase:
    """A forecast and what happened, as probabilities of the same classes, and a title."""

    title: str
    classes: Sequence[str]
    forecast: Any
    happened: Any


@plain_texts
def draw_cases(cases: Sequence[DrawnCase], *, ordered: bool) -> Any:
    """One panel per case: cumulative probabilities of ordered classes, else the probability of each class."""
    shown = cases[:MOST_PANELS]
    widest = max(len(case.classes) for case in shown)
    figure, axes = panels(len(shown), width=max(2.3, 0.5 * widest), height=2.2, share_y=True, share_x=ordered)
    for ax, case in zip(axes, shown, strict=True):
        (_draw_cumulative if ordered else _draw_bars)(ax, case)
        ax.set_title(case.title, fontsize=9)
        ax.set_ylim(0, 1.05)
        slanted = sum(map(len, case.classes)) > _LONG * 3
        ax.set_xticks(
            range(len(case.classes)), case.classes, fontsize=8, rotation=30 if slanted else 0,
            ha="right" if slanted else "center",
        )  # fmt: skip
    figure.supylabel("cumulative probability" if ordered else "probability", fontsize=9)
    legend_above(figure, axes[0])
    return figure


def _draw_cumulative(ax: Any, case: DrawnCase) -> None:
    """Both distribution functions; what lies between them, squared, is what the RPS adds up."""
    k = len(case.classes)
    steps = [np.append(np.cumsum(p)[:-1], 1.0) for p in (case.forecast, case.happened)]
    # Steps from each class to the next; the last one is 1 by definition.
    x = np.arange(k + 1) - 0.5
    drawn = [np.append(heights, heights[-1]) for heights in steps]
    ax.fill_between(x[:-1], drawn[0][:-1], drawn[1][:-1], step="post", color=GREY, alpha=0.25, linewidth=0)
    for heights, colour, style, name in zip(
        drawn, COLOURS, ("-", "--"), ("forecast", "what happened"), strict=False
    ):
        ax.step(x, heights, where="post", color=colour, linestyle=style, linewidth=1.8, label=name)
    ax.set_xlim(-0.5, k - 0.5)


def _draw_bars(ax: Any, case: DrawnCase) -> None:
    places, happened = np.arange(len(case.classes)), np.array(case.happened)
    ax.bar(places, case.forecast, width=0.7, color=COLOURS[0], label="forecast")
    look = {"fill": False, "edgecolor": COLOURS[1], "linewidth": 1.4, "label": "what happened"}
    ax.bar(places[happened > 0], happened[happened > 0], width=0.8, **look)
