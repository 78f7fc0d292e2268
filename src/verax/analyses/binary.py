"""The binary events that forecasts are used for: a class against the rest, or an outcome above a class.

The events of ordered classes are `> class`, as decisions are made ("refer what is worse than mild"); score
decompositions have their complements, `<= class`.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from verax.analyses.parts import dense, probabilities, scaled, seen
from verax.analyses.units import CountedUnits, SamplingUnits
from verax.inputs.arrays import Bools, Floats, Ints
from verax.inputs.groups import Groups
from verax.inputs.handles import Part


@dataclass(frozen=True)
class BinaryEvent:
    """An event in N rows.

    Attributes
    ----------
    name : str
        The class, or "> class" for a threshold.
    given, rest : array of shape (N,)
        The probabilities of the event and of its opposite.
    ranked : array of shape (N,)
        The probabilities of the event as they are compared with each other: sums are rounded, so that
        equal sums are equal.
    happened : (N,) bool array
        Whether it happened.
    """

    name: str
    given: Floats
    rest: Floats
    ranked: Floats
    happened: Bools


@dataclass(frozen=True)
class EventRows:
    """The rows of one model that have weight.

    Attributes
    ----------
    y, p : arrays
        Outcomes, and (N, K) probabilities.
    units : SamplingUnits
        The shares of the weight, and what is independent.
    labels : tuple of str
        Names of the classes.
    ordered : bool
        Whether the events are thresholds.
    decimals : int
        To how many decimals sums of probabilities are compared.
    """

    y: Ints
    p: Floats
    units: SamplingUnits
    labels: tuple[str, ...]
    ordered: bool
    decimals: int

    @property
    def n_classes(self) -> int:
        """The number of classes."""
        return int(self.p.shape[1])

    @property
    def n_rows(self) -> int:
        """The number of rows that have weight."""
        return len(self.y)

    @property
    def n_groups(self) -> int | None:
        """The number of groups; None where rows stand for themselves."""
        return None if self.units.groups is None else self.units.n

    def heading(self, what: str) -> str:
        """The first line of a result."""
        return heading(what, len(self.y), self.n_groups, self.n_classes, ordered=self.ordered)

    def events(self) -> list[BinaryEvent]:
        """All events; of two classes the one that class 1 happens."""
        below = np.cumsum(self.p, axis=1)
        above = np.cumsum(self.p[:, ::-1], axis=1)[:, ::-1]
        k = self.n_classes
        names = event_names(self.labels, ordered=self.ordered)
        if self.ordered:
            return [
                BinaryEvent(
                    names[i - 1],
                    above[:, i],
                    below[:, i - 1],
                    np.round(above[:, i], self.decimals),
                    self.y >= i,
                )
                for i in range(1, k)
            ]
        nothing = np.zeros(len(self.y))
        events = []
        for name, i in zip(names, range(int(k == 2), k), strict=True):
            given = self.p[:, i]
            # Not one minus: what is left beside a nearly certain class would be rounding.
            rest = (below[:, i - 1] if i else nothing) + (above[:, i + 1] if i < k - 1 else nothing)
            events.append(BinaryEvent(name, given, rest, given, self.y == i))
        return events


@dataclass(frozen=True)
class ScannedRows:
    """What results know of the rows of predictions that are not in memory.

    Attributes
    ----------
    n_rows : int
        The number of rows that have weight.
    n_groups : int or None
        The number of groups; None where rows stand for themselves.
    n_classes : int
        The number of classes.
    ordered : bool
        Whether the events are thresholds.
    units : CountedUnits
        What is independent.
    """

    n_rows: int
    n_groups: int | None
    n_classes: int
    ordered: bool
    units: CountedUnits

    def heading(self, what: str) -> str:
        """The first line of a result."""
        return heading(what, self.n_rows, self.n_groups, self.n_classes, ordered=self.ordered)


def event_names(labels: Sequence[Hashable], *, ordered: bool) -> list[str]:
    """What the events are called; of two classes there is one."""
    if ordered:
        return [f"> {label}" for label in labels[:-1]]
    return [str(label) for label in (labels[1:] if len(labels) == 2 else labels)]


def heading(what: str, n_rows: int, n_groups: int | None, n_classes: int, *, ordered: bool) -> str:
    """The first line of a result."""
    groups = "" if n_groups is None else f", {n_groups:,} groups"
    kind = "ordered classes" if ordered else "classes"
    return f"verax {what}: {n_rows:,} rows{groups}, {n_classes:,} {kind}"


def rows_of_part(part: Part, model: str, *, ordered: bool) -> EventRows:
    """The rows of a part that have weight; the shares of the weight are the weights themselves."""

    def read() -> EventRows:
        forecasts, rows, p = dense(part, model), seen(part, model, ()), probabilities(part, model)
        y, groups = rows.y, forecasts.groups
        w = np.ones(len(y)) if rows.weights is None else scaled(part, rows.weights)
        if not w.all():
            kept = w > 0
            y, p, w = y[kept], p[kept], w[kept]
            groups = None if groups is None else Groups(groups.codes[kept], groups.labels)
        labels = tuple(map(str, range(forecasts.n_classes)))
        return EventRows(y, p, SamplingUnits(w, groups), labels, ordered, forecasts.unity.decimals)

    return part.once(("event rows", model, ordered), read)
