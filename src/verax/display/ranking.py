"""Models by mean loss, drawn with matplotlib: how far each is from the best one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol

from verax.display.palette import COLOURS, GREY, plain_texts
from verax.display.panels import panels

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
    alone = ", of each pair alone; grey: significantly worse after Holm's correction"
    note = f"\n({bars}{alone if corrected else '; grey: significantly worse'})" if several else ""
    figure.supxlabel(f"{better[0] if len(better) == 1 else ''}{note}".strip(), fontsize=8)
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
