"""Shares of simulated comparisons as their number grows, drawn with matplotlib."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from verax.display.panels import COLOURS, STYLES, plain_texts, pyplot


class SimulatedShare(Protocol):
    """The figure's data: a share of comparisons, summed up round by round."""

    @property
    def section(self) -> str: ...
    @property
    def sampler(self) -> str: ...
    @property
    def n_classes(self) -> int | None: ...
    @property
    def weight(self) -> Any: ...
    @property
    def larger(self) -> Any: ...
    @property
    def comparisons(self) -> int: ...
    @property
    def value(self) -> float: ...


@plain_texts
def draw_shares(
    shares: Sequence[SimulatedShare], printed: Mapping[str, tuple[float, float]], titles: Sequence[str]
) -> Any:
    """A panel per section: the cumulative percentage under each sampler, and the printed one."""
    figure, axes = pyplot().subplots(
        1, len(printed), figsize=(11.5, 5.2), layout="constrained", squeeze=False
    )
    drawn = [share for share in shares if _drawn(share)]
    colours = {
        name: COLOURS[i % len(COLOURS)] for i, name in enumerate(dict.fromkeys(s.sampler for s in drawn))
    }
    styles = {n: STYLES[i % len(STYLES)] for i, n in enumerate(dict.fromkeys(s.n_classes for s in drawn))}
    for ax, title, (section, (value, _)) in zip(axes[0], titles, printed.items(), strict=True):
        ax.axhline(100 * value, color="#bbbbbb", linewidth=4, label="printed", zorder=0)
        chosen = [share for share in drawn if share.section == section]
        for share in chosen:
            _draw(ax, share, color=colours[share.sampler], linestyle=styles[share.n_classes])
        _frame(ax, title, [100 * share.value for share in chosen])
    handles, names = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=4, frameon=False, fontsize=9)
    return figure


def _drawn(share: SimulatedShare) -> bool:
    """Not those of three classes, where one share is 1 by theorem, nor those with nothing to compare."""
    return share.n_classes != 3 and share.comparisons > 0


def _draw(ax: Any, share: SimulatedShare, **look: Any) -> None:
    weight = np.cumsum(share.weight)
    with np.errstate(invalid="ignore"):
        percent = 100 * np.cumsum(share.larger) / weight
    rounds = len(weight)
    number = share.comparisons * np.arange(1, rounds + 1) / rounds
    classes = "classes drawn" if share.n_classes is None else f"{share.n_classes} classes"
    ax.plot(number, percent, linewidth=1.3, label=f"{share.sampler}, {classes}", **look)


def _frame(ax: Any, title: str, ends: list[float]) -> None:
    spread = max(ends) - min(ends) or 1.0
    ax.set_title(title, fontsize=10)
    ax.set(
        xlabel="comparisons",
        ylabel="wrong forecast has the larger Brier score (%)",
        xscale="log",
        ylim=(min(ends) - 0.15 * spread, min(100 + 0.03 * spread, max(ends) + 0.15 * spread)),
    )
    ax.ticklabel_format(axis="y", useOffset=False)
    ax.spines[["top", "right"]].set_visible(False)
