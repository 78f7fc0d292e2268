"""Figures that put models or subgroups side by side, drawn with matplotlib."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from verax.display.figures import Dot
from verax.display.panels import (
    COLOURS,
    GREY,
    draw_dots,
    draw_intervals,
    label_below,
    panels,
    plain_texts,
    pyplot,
    quiet,
    round_numbers,
)

Floats = np.ndarray[Any, np.dtype[np.float64]]

_WORSE = (GREY, "s")
# Number of lines of equal score on a map.
_LINES = 7
# A hard prediction that loses more than this multiple of the largest loss of a list is written, not drawn.
_FAR = 4.0
# The largest number of subgroups that are drawn.
_MOST_SUBGROUPS = 40


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


class MappedScores(Protocol):
    """The figure's data: models with the parts of their scores."""

    @property
    def models(self) -> Any: ...
    @property
    def rule(self) -> str: ...
    @property
    def uncertainty(self) -> float: ...


@plain_texts
def draw_score_map(mapped: MappedScores, ax: Any = None) -> Any:
    """A point per model; models on a line have the same score, and upper left is best."""
    if ax is None:
        ax = pyplot().subplots(figsize=(5.6, 4.4), layout="constrained")[1]
    drawn = [m for m in mapped.models if math.isfinite(m.score)]
    x = np.array([m.miscalibration for m in drawn])
    y = np.array([m.discrimination for m in drawn])
    right, top = 1.15 * x.max(initial=1e-3), 1.12 * y.max(initial=1e-3)
    ax.set_xlim(-0.03 * right, right)
    ax.set_ylim(-0.03 * top, top)
    # Scores from the best corner to the worst, at round numbers.
    scores = round_numbers(mapped.uncertainty - top, mapped.uncertainty + right, _LINES)
    (left, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
    ends = np.array([left, right])
    for score in scores:
        level = mapped.uncertainty - score
        ax.plot(ends, ends + level, color="#cccccc", linewidth=0.8, zorder=1)
        # The number stands where the line enters the axes.
        x_in = max(left, bottom - level)
        if x_in <= right and x_in + level <= top:
            where = {"textcoords": "offset points", "fontsize": 7, "color": GREY}
            ax.annotate(f"{score:g}", (x_in, x_in + level), (2, 2), **where)
    style = {"color": GREY, "linewidth": 1.0, "linestyle": "--", "zorder": 1}
    ax.plot(ends, ends, label="class frequencies", **style)
    ax.plot(x, y, "o", color=COLOURS[0], markersize=6, zorder=3)
    for model, a, b in zip(drawn, x, y, strict=True):
        # A name stands to the left of its point where another point is close to the right.
        crowded = ((x > a) & (x < a + 0.25 * right) & (np.abs(y - b) < 0.05 * top)).any()
        where = {"xytext": (-6, 3), "ha": "right"} if crowded else {"xytext": (6, 3)}
        ax.annotate(model.name, (a, b), textcoords="offset points", fontsize=8, **where)
    ax.set_xlabel("miscalibration (recalibration would remove it)")
    ax.set_ylabel("discrimination")
    ax.set_title(f"mean {mapped.rule} along the lines; upper left is best", fontsize=9)
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(fontsize=7, frameon=False, loc="lower right")
    return ax


class LengthGap(Protocol):
    """A difference of two mean losses."""

    @property
    def difference(self) -> float: ...
    @property
    def interval(self) -> Any: ...


class Lengths(Protocol):
    """The figure's data: the loss of each prediction against the last."""

    @property
    def predictions(self) -> tuple[str, ...]: ...
    @property
    def means(self) -> Mapping[str, tuple[float, ...]]: ...
    @property
    def confidence(self) -> float: ...
    def difference(self, a: str, b: str, rule: str | None = None, /) -> LengthGap: ...


@plain_texts
def draw_lengths(lengths: Lengths, names: Sequence[str], share: float) -> Any:
    """One panel per rule: what every prediction loses against the last, with intervals."""
    last = lengths.predictions[-1]
    shown = lengths.predictions[:-1]
    figure, axes = panels(len(names), width=3.4, height=2.6, share_y=False)
    for ax, name in zip(axes, names, strict=True):
        gaps = [lengths.difference(prediction, last, name) for prediction in shown]
        values = np.array([gap.difference for gap in gaps])
        fits = _fits(values)
        x = np.flatnonzero(fits)
        # An interval need not be known, for one row or one group.
        low, high = (np.array([gap.interval[end] for gap in gaps])[fits] for end in (0, 1))
        errors = np.nan_to_num(np.stack([values[fits] - low, high - values[fits]]))
        within = share * abs(lengths.means[name][-1])
        if np.isfinite(within):
            ax.axhspan(-within, within, color="#cccccc", alpha=0.5, linewidth=0)
        ax.axhline(0, color="#777777", linewidth=0.8, linestyle="--")
        ax.errorbar(x, values[fits], errors, color=COLOURS[0], marker="o", markersize=4, capsize=2.5)
        for missing in np.flatnonzero(~fits):
            text = "∞" if np.isinf(values[missing]) else f"{values[missing]:.2g} ↑"
            place = {"xycoords": ("data", "axes fraction"), "ha": "center", "va": "top", "fontsize": 8}
            ax.annotate(text, (missing, 0.97), **place)
        ax.set_title(name.replace("_", " "), fontsize=10)
        ax.set_xticks(range(len(shown)), shown, rotation=45, ha="right", fontsize=8)
        ax.set_xlim(-0.5, len(shown) - 0.5)
        ax.grid(axis="y", color="#dddddd", linewidth=0.6)
        ax.set_axisbelow(True)
    what = "the full distribution" if last == "full" else "the lists as given"
    note = f"{100 * lengths.confidence:g}% intervals; shaded: within {100 * share:g}% of it"
    figure.supylabel(f"loss above that of {what}", fontsize=9)
    label_below(figure, note)
    return figure


def _fits(values: Floats) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """The losses that set the scale: finite ones, except a first that is far above all others."""
    fits = np.isfinite(values)
    others = values[1:][fits[1:]]
    if fits[0] and len(others) > 1 and values[0] > _FAR * others.max() > 0:
        fits[0] = False
    return fits


@plain_texts
def draw_subgroups(lines: Sequence[tuple[str, float, float | None, bool]], rule: str) -> Any:
    """Draw a line for each subgroup: its name, value, value by chance, and whether it stands out."""
    plt = pyplot()
    if len(lines) > _MOST_SUBGROUPS:
        largest = sorted(lines, key=lambda line: -line[1])[:_MOST_SUBGROUPS]
        lines = [line for line in lines if line in largest]
    figure, ax = plt.subplots(figsize=(6.6, 1.3 + 0.3 * len(lines)), layout="constrained")
    for place, (_, seen, chance, stands_out) in enumerate(lines):
        if chance is not None:
            ax.plot([chance, seen], [place, place], color=GREY, linewidth=0.8, zorder=1)
            ax.plot(chance, place, "o", markersize=8, markerfacecolor="none", color=GREY, zorder=2)
        colour, marker = (COLOURS[1], "D") if stands_out else (COLOURS[0], "o")
        ax.plot(seen, place, marker, color=colour, markersize=6, zorder=3)
    ax.set_yticks(range(len(lines)), [name for name, *_ in lines])
    ax.set_ylim(len(lines) - 0.5, -0.5)
    ax.set_xlim(left=0)
    tested = any(chance is not None for _, _, chance, _ in lines)
    note = "\n(open circles: expected by chance; diamonds: significant)" if tested else ""
    ax.set_xlabel(f"miscalibration by {rule}, lower is better{note}", fontsize=9)
    ax.tick_params(axis="y", length=0)
    quiet(ax, "x")
    return figure
