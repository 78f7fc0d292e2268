"""Rules over the epochs of a training run, one below the other, with their optima marked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from verax.display.panels import COLOURS, STYLES, plain_texts, pyplot

_GREY = "#555555"
# A panel reaches this multiple of the distance within which three quarters of the epochs are from the
# optimum.
_REACH = 3.0


class EpochMetrics(Protocol):
    """The values of each metric by epoch."""

    @property
    def epochs(self) -> Any: ...

    @property
    def counter(self) -> str: ...
    @property
    def values(self) -> Mapping[str, Any]: ...


class EpochOptimum(Protocol):
    """The best epoch under one metric."""

    @property
    def index(self) -> int: ...
    @property
    def epoch(self) -> float: ...
    @property
    def direction(self) -> str: ...
    def at(self, metric: str) -> float: ...


class EpochCorrelation(Protocol):
    """How a rule moves with another metric."""

    @property
    def rule(self) -> str: ...
    @property
    def metric(self) -> str: ...
    @property
    def pearson(self) -> float: ...


class EpochChoice(Protocol):
    """The figure's data: the metrics, the rules, and the best epoch under each."""

    @property
    def history(self) -> EpochMetrics: ...
    @property
    def rules(self) -> Sequence[str]: ...
    @property
    def against(self) -> Sequence[str]: ...
    @property
    def best(self) -> Mapping[str, EpochOptimum]: ...
    @property
    def correlations(self) -> Sequence[EpochCorrelation]: ...


@plain_texts
def draw_selection(selection: EpochChoice, **options: Any) -> Any:
    """The metrics judged by on top, a panel a rule below; each rule's optimum runs through all of them."""
    plt = pyplot()

    rules = [name for name in selection.rules if name not in selection.against]
    n_panels = len(rules) + bool(selection.against)
    settings = {"figsize": (7.5, 1.0 + 1.6 * n_panels), "layout": "constrained", **options}
    figure, axes = plt.subplots(n_panels, 1, sharex=True, squeeze=False, **settings)
    panels = list(axes[:, 0])
    colours = {name: COLOURS[i % len(COLOURS)] for i, name in enumerate(rules)}
    if selection.against:
        _draw_targets(panels[0], selection, colours)
    for ax, name in zip(panels[bool(selection.against) :], rules, strict=True):
        _draw_rule(ax, selection, name, colours)
    for ax in panels:
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(axis="y", color="#dddddd", linewidth=0.6)
        ax.set_axisbelow(True)
    panels[-1].set_xlabel(selection.history.counter)
    panels[-1].xaxis.get_major_locator().set_params(integer=True)
    return figure


def _draw_targets(ax: Any, selection: EpochChoice, colours: dict[str, str]) -> None:
    history = selection.history
    for i, name in enumerate(selection.against):
        style = STYLES[i % len(STYLES)]
        ax.plot(history.epochs, history.values[name], color=_GREY, linestyle=style, linewidth=1.5, label=name)
        _mark(ax, selection.best[name], name, _GREY, "*", 11)
        for place, (rule, colour) in enumerate(reversed(colours.items())):
            # The smaller on top, so that rules which agree are all seen.
            _mark(ax, selection.best[rule], name, colour, "o", 4 + 2 * (len(colours) - place) ** 0.5)
    _draw_optima(ax, selection, colours)
    _focus(ax, [(history.values[name], selection.best[name].at(name)) for name in selection.against])
    if all(selection.best[name].direction == "max" for name in selection.against):
        ax.set_ylabel("higher is better")
    _title(ax, "stars: their own optima; dots: what each rule would keep", _GREY)
    ax.legend(frameon=False, fontsize=8, loc="best")


def _draw_rule(ax: Any, selection: EpochChoice, name: str, colours: dict[str, str]) -> None:
    history, best = selection.history, selection.best[name]
    ax.plot(history.epochs, history.values[name], color=colours[name], linewidth=1.5)
    _mark(ax, best, name, colours[name], "*", 11)
    _draw_optima(ax, selection, colours)
    _focus(ax, [(history.values[name], best.at(name))])
    ax.set_ylabel(f"{'lower' if best.direction == 'min' else 'higher'} is better")
    there = _listed(" with ", [f"{target} {best.at(target):.3f}" for target in selection.against])
    moves = [f"{c.metric} {c.pearson:.2f}" for c in selection.correlations if c.rule == name]
    _title(
        ax,
        f"{name}: {history.counter} {best.epoch}{there}{_listed('; correlation with ', moves)}",
        colours[name],
    )


def _listed(before: str, parts: list[str]) -> str:
    """The parts in a row, with a text before them if there are any."""
    return before + ", ".join(parts) if parts else ""


def _draw_optima(ax: Any, selection: EpochChoice, colours: dict[str, str]) -> None:
    for i, (rule, colour) in enumerate(colours.items()):
        x = selection.history.epochs[selection.best[rule].index]
        # Dashes of rules that agree take turns.
        ax.axvline(x, color=colour, linewidth=0.9, linestyle=(3 * i, (3, 3 * (len(colours) - 1))), zorder=0)


def _focus(ax: Any, curves: list[tuple[Any, float]]) -> None:
    """Show what is near the optima: a few bad epochs, such as the first ones, do not set the scale."""
    low, high = [], []
    for values, best in curves:
        seen = np.asarray(values, dtype=float)
        away = np.abs(seen[np.isfinite(seen)] - best)
        reach = min(float(away.max()), _REACH * float(np.quantile(away, 0.75)))
        shown = seen[np.abs(seen - best) <= reach]
        low.append(float(shown.min()))
        high.append(float(shown.max()))
    room = 0.08 * (max(high) - min(low))
    if room > 0:
        ax.set_ylim(min(low) - room, max(high) + room)


def _mark(ax: Any, best: EpochOptimum, name: str, colour: str, marker: str, size: float) -> None:
    ax.plot([best.epoch], [best.at(name)], marker, color=colour, markersize=size, zorder=4)


def _title(ax: Any, text: str, colour: str) -> None:
    ax.set_title(text, loc="left", fontsize=8, color=colour)
