"""Models by mean loss and by mean rank over data sets, drawn with matplotlib."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol

from verax.display.panels import COLOURS, GREY, label_below, panels, plain_texts, pyplot

MOST_MODELS = 30


class PlottedModel(Protocol):
    """What is drawn as one line: a model under a rule."""

    @property
    def name(self) -> str: ...
    @property
    def mean(self) -> float: ...
    @property
    def infinite_rows(self) -> int: ...


class GapFromBest(Protocol):
    """The difference from the best model."""

    @property
    def difference(self) -> float: ...
    @property
    def interval(self) -> Any: ...
    @property
    def p_adjusted(self) -> float: ...


class Ranking(Protocol):
    """What is drawn: for each rule the models by rank, and their differences."""

    @property
    def models(self) -> Any: ...
    @property
    def confidence(self) -> float: ...
    def better(self, rule: str, /) -> str: ...
    def difference(self, a: str, b: str, rule: str | None = None, /) -> Any: ...


@plain_texts
def draw_ranking(found: Ranking, rules: Sequence[str]) -> Any:
    """One panel per rule: mean losses, with the interval of the difference from the best model."""
    longest = max(min(len(found.models[rule]), MOST_MODELS) for rule in rules)
    columns = min(len(rules), 2)
    shape = math.ceil(len(rules) / columns), columns
    width = 6.2 if columns == 1 else 3.3
    figure, axes = panels(
        len(rules), width=width, height=0.75 + 0.3 * longest, share_y=False, share_x=False, shape=shape
    )
    better = list(dict.fromkeys(map(found.better, rules)))
    for ax, rule in zip(axes, rules, strict=True):
        _panel(ax, found, rule)
        ax.set_title(rule if len(better) == 1 else f"{rule}: {found.better(rule)}", fontsize=9)
    level = f"{100 * found.confidence:g}%"
    several = any(len(found.models[rule]) > 1 for rule in rules)
    bars = f"bars: {level} intervals of the difference from the best model (dashed)"
    corrected = any(len(found.models[rule]) > 2 for rule in rules)
    alone = ", not adjusted; grey: significantly worse after Holm's correction"
    note = f"\n({bars}{alone if corrected else '; grey: significantly worse'})" if several else ""
    label_below(figure, f"{better[0] if len(better) == 1 else ''}{note}".strip())
    return figure


def _panel(ax: Any, found: Ranking, rule: str) -> None:
    models: Sequence[PlottedModel] = found.models[rule][:MOST_MODELS]
    best = models[0]
    if math.isfinite(best.mean):
        ax.axvline(best.mean, color=COLOURS[0], linewidth=0.9, linestyle="--", zorder=1)
    for place, model in enumerate(models):
        if not math.isfinite(model.mean):
            text = f"infinite in {model.infinite_rows:,} row{'s' * (model.infinite_rows != 1)}"
            where = {"transform": ax.get_yaxis_transform(), "ha": "right", "va": "center"}
            ax.text(0.98, place, text, fontsize=8, **where)
            continue
        gap: GapFromBest | None = found.difference(model.name, best.name, rule) if model is not best else None
        worse = gap is not None and gap.p_adjusted <= 1 - found.confidence
        colour = GREY if worse else COLOURS[0]
        if gap is not None and math.isfinite(gap.interval[0]):
            ends = [best.mean + end for end in gap.interval]
            ax.plot(ends, [place, place], color=colour, linewidth=2, solid_capstyle="butt", zorder=2)
        ax.plot([model.mean], [place], "s" if worse else "o", color=colour, markersize=6, zorder=3)
    ax.set_yticks(range(len(models)), [model.name for model in models], fontsize=8)
    ax.set_ylim(len(models) - 0.5, -0.5)
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    ax.grid(axis="x", color="#dddddd", linewidth=0.6)
    ax.set_axisbelow(True)
    ax.margins(x=0.08)
    ax.locator_params(axis="x", nbins=5)


MOST_RANKED = 30


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
    models = found.models[:MOST_RANKED]
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
