"""The binary events that forecasts are used for: a class against the rest, or an outcome above a class.

The events of ordered classes are `> class`, as decisions are made ("refer what is worse than mild"); score
decompositions have their complements, `<= class`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np

from verax.analyses.parts import dense, probabilities, scaled, seen
from verax.analyses.units import CountedUnits, SamplingUnits, sums_at
from verax.common.caching import cached_property
from verax.common.checks import as_name, is_called
from verax.errors import show
from verax.inputs.arrays import Bools, Floats, Ints
from verax.inputs.groups import Groups
from verax.inputs.handles import Part


@dataclass(frozen=True)
class BinaryEvent:
    """An event in N rows, or in N entries of top lists.

    It is sorted by its forecasts once something asks for their order, and equal forecasts form a pool.

    Attributes
    ----------
    name : str
        The class, "<= class" or "> class" for a threshold, or the place of a list.
    given : array of shape (N,)
        The probabilities of the event.
    others : array of shape (N,) or None
        Those of its opposite; None for one minus those of the event.
    ranked : array of shape (N,)
        The probabilities of the event as they are compared with each other: sums are rounded, so that
        equal sums are equal.
    happened : (N,) bool array
        Whether it happened.
    owner : (N,) int array or None
        The row that each element belongs to; None where the elements are the rows, one after the other.
    """

    name: str
    given: Floats
    others: Floats | None
    ranked: Floats
    happened: Bools
    owner: Ints | None = None

    @property
    def rest(self) -> Floats:
        """The probabilities of the opposite, (N,)."""
        return 1 - self.given if self.others is None else self.others

    def of_rows(self, values: Any) -> Any:
        """Values of the rows for each element; None stays None."""
        return values if values is None or self.owner is None else values[self.owner]

    def by_row(self, values: Floats, n_rows: int) -> Floats:
        """The sums of values of the elements over each row."""
        return values if self.owner is None else sums_at(self.owner, values, n_rows)

    # ---- in the order of the forecasts -----------------------------------------------------

    @cached_property
    def order(self) -> Ints:
        """The elements by increasing forecast, (N,)."""
        return np.argsort(self.ranked)

    @cached_property
    def begins(self) -> Ints:
        """Where each of the P different forecasts begins in that order; empty where all differ."""
        ordered = self.ranked[self.order]
        new = np.empty(len(ordered), np.bool_)
        new[:1] = True
        np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
        return np.zeros(0, np.int64) if new.all() else np.flatnonzero(new)

    @property
    def all_differ(self) -> bool:
        """Whether no two elements have the same forecast."""
        return not len(self.begins)

    @property
    def values(self) -> Floats:
        """The different forecasts, increasing, (P,)."""
        return self.ranked[self.order if self.all_differ else self.order[self.begins]]

    @cached_property
    def pools(self) -> Ints:
        """The place of each element's forecast among the different ones, (N,)."""
        pools = np.empty(len(self.order), np.int64)
        pools[self.order] = np.arange(len(self.order)) if self.all_differ else self._pools_in_order
        return pools

    @property
    def _pools_in_order(self) -> Ints:
        return np.repeat(np.arange(len(self.begins)), np.diff(self.begins, append=len(self.order)))

    def sums(self, values: Floats) -> Floats:
        """The sums of values of the elements over the pools, (P,)."""
        return self.pooled(values.take(self.order))

    def pooled(self, values: Floats) -> Floats:
        """The sums over the pools of values that are in order, (P,)."""
        return values if self.all_differ else np.add.reduceat(values, self.begins)

    def spread(self, values: Floats) -> Floats:
        """The value of each element, from those of the pools."""
        spread = np.empty(len(self.order))
        spread[self.order] = values if self.all_differ else values.take(self._pools_in_order)
        return spread

    def cells(self, weights: Floats | None) -> Floats:
        """The weight of each forecast without (column 0) and with (column 1) the event: (P, 2)."""
        happened = self.happened.take(self.order)
        mass = np.ones(len(self.order)) if weights is None else weights.take(self.order)
        return np.stack([self.pooled(mass * ~happened), self.pooled(mass * happened)], axis=1)


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
        below = running_sums(self.p)
        above = running_sums(self.p[:, ::-1])[:, ::-1]
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

    def right(self) -> BinaryEvent:
        """The event that the most likely class happens, the lowest where several are."""
        given = self.p.max(axis=1)
        return BinaryEvent("right", given, None, given, self.y == np.argmax(self.p, axis=1))


def running_sums(p: Floats) -> Floats:
    """Sums of the columns up to each, column by column and in double precision."""
    sums = np.empty(p.shape, order="F")
    sums[:, 0] = p[:, 0]
    for i in range(1, p.shape[1]):
        np.add(sums[:, i - 1], p[:, i], out=sums[:, i])
    return sums


@dataclass(frozen=True)
class ScannedRows:
    """Facts on the rows of predictions that are not in memory, for results.

    Attributes
    ----------
    n_rows : int
        The number of rows, with those of weight zero; a case of several raters is one.
    n_groups : int or None
        The number of groups; None where rows stand for themselves.
    n_classes : int
        The number of classes.
    ordered : bool
        Whether the events are thresholds.
    units : CountedUnits
        The independent units.
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
    """The names of the events; of two classes there is one."""
    if ordered:
        return [f"> {label}" for label in labels[:-1]]
    return [str(label) for label in (labels[1:] if len(labels) == 2 else labels)]


def event_in_words(event: str, *, ordered: bool) -> str:
    """A class or threshold in headings.

    >>> event_in_words("> low", ordered=True), event_in_words("low", ordered=False)
    ('y > low', 'class low')
    """
    return f"y {event}" if ordered else f"class {event}"


class OfEvent(Protocol):
    """A curve or a point of one event and one model."""

    @property
    def event(self) -> str: ...
    @property
    def model(self) -> str: ...


_Found = TypeVar("_Found", bound=OfEvent)


def first_of(lines: Iterable[_Found], event: object | None, model: str | None, what: str) -> _Found:
    """The first curve or point of an event and a model, each unless it is None."""
    of_event = as_name(event)
    for line in lines:
        if of_event in (None, line.event) and (model is None or is_called(model, line.model)):
            return line
    raise KeyError(f"there is no {what} of {show(event)} and {show(model)}")


def heading(what: str, n_rows: int, n_groups: int | None, n_classes: int, *, ordered: bool) -> str:
    """The first line of a result."""
    groups = "" if n_groups is None else f", {n_groups:,} groups"
    kind = "ordered classes" if ordered else "classes"
    return f"verax {what}: {n_rows:,} rows{groups}, {n_classes:,} {kind}"


def rows_of_part(part: Part, model: str, *, ordered: bool, copies: bool = False) -> EventRows:
    """The rows of a part that have weight; the shares of the weight are the weights themselves.

    They may be scaled, unless they are numbers of `copies`.
    """

    def read() -> EventRows:
        forecasts, rows, p = dense(part, model), seen(part, model, ()), probabilities(part, model)
        y, groups = rows.y, forecasts.groups
        w = np.ones(len(y)) if rows.weights is None else rows.weights
        w = w if copies else scaled(part, w)
        if not w.all():
            kept = w > 0
            y, p, w = y[kept], p[kept], w[kept]
            groups = None if groups is None else Groups(groups.codes[kept], groups.labels)
        labels = tuple(map(str, range(forecasts.n_classes)))
        return EventRows(y, p, SamplingUnits(w, groups), labels, ordered, forecasts.unity.decimals)

    return part.once(("event rows", model, ordered, copies), read)
