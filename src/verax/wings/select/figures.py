"""Rules over the epochs of a training run, one below the other, with their optima marked, as figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from verax.display.axes import Axis
from verax.display.figures import Figure, Sheet
from verax.display.marks import Guide, Line, Mark, Points, Ranged, Shape

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


def selection_sheet(selection: EpochChoice) -> Sheet:
    """The metrics judged by on top, a figure a rule below; each rule's optimum runs through all of them."""
    rules = [name for name in selection.rules if name not in selection.against]
    figures = [_targets(selection, rules)] if selection.against else []
    figures += [_rule(selection, name, i, rules) for i, name in enumerate(rules)]
    height = (0.3 + 1.6 * len(figures)) / len(figures)
    return Sheet(figures, 1, (7.0, height), x=selection.history.counter, shared="x")


def _targets(selection: EpochChoice, rules: Sequence[str]) -> Figure:
    history, marks = selection.history, _optima(selection, rules)
    for i, name in enumerate(selection.against):
        marks.append(Line(name, history.epochs, history.values[name], "ink", i % 4))
        marks.append(_best(selection.best[name], name, "star", f"the best {history.counter} by each"))
        for place, rule in enumerate(reversed(rules)):
            # The smaller on top, so that rules which agree are all seen.
            size = 4 + 2 * (len(rules) - place) ** 0.5
            kept = _best(selection.best[rule], name, "dot", f"what {rule} would keep")
            marks.append(replace(kept, colour=rules.index(rule), size=size))
    ends = _focus([(history.values[name], selection.best[name].at(name)) for name in selection.against])
    higher = all(selection.best[name].direction == "max" for name in selection.against)
    y = Axis("higher is better" if higher else "", *ends)
    facts = [Ranged(f"{name} at best", selection.best[name].at(name)) for name in selection.against]
    return Figure("", marks, Axis(whole=True), y, facts=facts)


def _rule(selection: EpochChoice, name: str, i: int, rules: Sequence[str]) -> Figure:
    history, best = selection.history, selection.best[name]
    marks = _optima(selection, rules)
    marks.append(Line("", history.epochs, history.values[name], i, 0))
    marks.append(replace(_best(best, name, "star", ""), colour=i))
    y = Axis(f"{'lower' if best.direction == 'min' else 'higher'} is better", *_focus(
        [(history.values[name], best.at(name))]
    ))  # fmt: skip
    there = _listed(" with ", [f"{target} {best.at(target):.3f}" for target in selection.against])
    moves = [f"{c.metric} {c.pearson:.2f}" for c in selection.correlations if c.rule == name]
    title = f"{name}: {history.counter} {best.epoch}{there}{_listed('; correlation with ', moves)}"
    facts = [
        Ranged(f"{target} at {history.counter} {best.epoch}", best.at(target)) for target in selection.against
    ]
    return Figure(title, marks, Axis(whole=True), y, facts=[Ranged(f"{name} at best", best.at(name)), *facts])


def _listed(before: str, parts: list[str]) -> str:
    """The parts in a row, with a text before them if there are any."""
    return before + ", ".join(parts) if parts else ""


def _optima(selection: EpochChoice, rules: Sequence[str]) -> list[Mark]:
    """The best epoch by each rule."""
    epochs = selection.history.epochs
    return [Guide("", "x", float(epochs[selection.best[rule].index]), i, 1) for i, rule in enumerate(rules)]


def _best(best: EpochOptimum, name: str, shape: Shape, said: str) -> Points:
    return Points(said, [float(best.epoch)], [best.at(name)], colour="ink", shape=shape)


def _focus(curves: list[tuple[Any, float]]) -> tuple[float | None, float | None]:
    """What is near the optima: a few bad epochs, such as the first ones, do not set the scale."""
    low, high = [], []
    for values, best in curves:
        seen = np.asarray(values, dtype=float)
        away = np.abs(seen[np.isfinite(seen)] - best)
        reach = min(float(away.max()), _REACH * float(np.quantile(away, 0.75)))
        shown = seen[np.abs(seen - best) <= reach]
        low.append(float(shown.min()))
        high.append(float(shown.max()))
    room = 0.08 * (max(high) - min(low))
    return (min(low) - room, max(high) + room) if room > 0 else (None, None)
