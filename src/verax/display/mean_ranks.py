"""Mean ranks of models over data sets, drawn with matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from verax.display.palette import COLOURS, GREY, plain_texts, pyplot

MOST_MODELS = 30


class RankedOverDatasets(Protocol):
    """What is drawn: models by mean rank, and what is known of their differences."""

    @property
    def models(self) -> Any: ...
    @property
    def datasets(self) -> Sequence[Any]: ...
    @property
    def confidence(self) -> float: ...
    @property
    def tested(self) -> bool: ...
    def difference(self, a: str, b: str, /) -> Any: ...


@plain_texts
def draw_mean_ranks(found: RankedOverDatasets, ax: Any = None) -> Any:
    """Mean ranks with intervals; a bar joins models that do not differ significantly."""
    models = found.models[:MOST_MODELS]
    letters = sorted({letter for model in models for letter in model.letters}) if found.tested else []
    joined = [[i for i, model in enumerate(models) if letter in model.letters] for letter in letters]
    joined = [places for places in joined if len(places) > 1]
    if ax is None:
        height = 1.3 + 0.3 * len(models)
        ax = pyplot().subplots(figsize=(6.4, height), layout="constrained")[1]
    best = models[0]
    for place, model in enumerate(models):
        worse = place > 0 and found.difference(model.name, best.name).p_adjusted <= 1 - found.confidence
        colour = GREY if worse else COLOURS[0]
        if model.interval.defined:
            ax.plot(model.interval, [place, place], color=colour, linewidth=2, solid_capstyle="butt")
        ax.plot([model.mean_rank], [place], "s" if worse else "o", color=colour, markersize=6)
    for k, places in enumerate(joined):
        at = 1.02 + 0.025 * k
        for i in places:
            ax.plot([at], [i], ".", color="black", markersize=4, **_beside(ax))
        ax.plot([at, at], [places[0], places[-1]], color="black", linewidth=1.2, **_beside(ax))
    ax.set_yticks(range(len(models)), [model.name for model in models], fontsize=8)
    ax.set_ylim(len(models) - 0.5, -0.5)
    ax.set_xlim(0.9, len(found.models) + 0.1)
    ax.tick_params(axis="y", length=0)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.grid(axis="x", color="#dddddd", linewidth=0.6)
    ax.set_axisbelow(True)
    about = (
        f"bars: {100 * found.confidence:g}% intervals" if found.tested else "too few for intervals and tests"
    )
    more = "; joined at the right: not significantly different" if joined else ""
    ax.set_xlabel(f"mean rank over {len(found.datasets)} data sets, 1 is best\n({about}{more})", fontsize=8)
    return ax


def _beside(ax: Any) -> dict[str, Any]:
    """Right of the axes, at the height of a model."""
    return {"transform": ax.get_yaxis_transform(), "clip_on": False}
