"""Shares of simulated comparisons as their number grows, as figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from verax.display.axes import Axis
from verax.display.figures import Figure, Sheet
from verax.display.marks import Guide, Line, Mark


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


def shares_sheet(
    shares: Sequence[SimulatedShare], printed: Mapping[str, tuple[float, float]], titles: Sequence[str]
) -> Sheet:
    """A figure per section: the cumulative percentage under each sampler, and the printed one."""
    drawn = [share for share in shares if _drawn(share)]
    samplers = list(dict.fromkeys(share.sampler for share in drawn))
    kinds = list(dict.fromkeys(share.n_classes for share in drawn))
    figures = []
    for title, (section, (value, _)) in zip(titles, printed.items(), strict=True):
        chosen = [share for share in drawn if share.section == section]
        marks: list[Mark] = [Guide("printed", "y", 100 * value, "soft", 0)]
        marks += [_line(s, samplers.index(s.sampler), kinds.index(s.n_classes)) for s in chosen]
        ends = [100 * share.value for share in chosen]
        spread = max(ends) - min(ends) or 1.0
        low, high = min(ends) - 0.15 * spread, min(100 + 0.03 * spread, max(ends) + 0.15 * spread)
        y = Axis("wrong forecast has the larger Brier score (%)", low, high)
        figures.append(Figure(title, marks, Axis("comparisons", log=True, whole=True), y))
    return Sheet(figures, len(figures), (11.0 / len(figures), 4.5), key="above")


def _drawn(share: SimulatedShare) -> bool:
    """Not those of three classes, where one share is 1 by theorem, nor those with nothing to compare."""
    return share.n_classes != 3 and share.comparisons > 0


def _line(share: SimulatedShare, colour: int, dash: int) -> Line:
    weight = np.cumsum(share.weight)
    with np.errstate(invalid="ignore"):
        percent = 100 * np.cumsum(share.larger) / weight
    rounds = len(weight)
    number = share.comparisons * np.arange(1, rounds + 1) / rounds
    classes = "classes drawn" if share.n_classes is None else f"{share.n_classes} classes"
    return Line(f"{share.sampler}, {classes}", number, percent, colour, dash % 4)
