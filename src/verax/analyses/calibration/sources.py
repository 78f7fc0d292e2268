"""Where the binary events of a part come from: the classes or thresholds of rows, or top lists."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from verax.analyses.binary import BinaryEvent
from verax.analyses.calibration.events import Split, binary_events, event_names
from verax.analyses.calibration.list_events import ListEvents
from verax.analyses.parts import checked, dense, known_valid, probabilities, scaled, seen
from verax.inputs.arrays import Floats, Ints, to_host
from verax.inputs.forecasts import Forecasts
from verax.inputs.groups import Groups, check_one_way
from verax.inputs.handles import Part

# Weights in memory beyond this, or below one over it, are scaled, so that no sum of squares overflows.
_EXTREME = 2.0**256

# The events one after the other: all, or only some of them by their numbers.
Each = Callable[..., Iterator[BinaryEvent]]


@dataclass(frozen=True)
class PartEvents:
    """The events of the rows, or lists, of a part that have weight.

    Attributes
    ----------
    weights : array of shape (N,) or None
        The weights; None where every row has weight 1.
    groups : Groups or None
        The group of each row.
    n_rows : int
        The number of rows, N.
    each : callable
        Yields the events one after the other: all of them, or only some by their numbers.
    taken : callable
        Makes the same of the rows from one place to another.
    entries : bool
        Whether an event may have several elements of a row, as the entries of a list are.
    """

    weights: Floats | None
    groups: Groups | None
    n_rows: int
    each: Each
    taken: Callable[[int, int], PartEvents]
    entries: bool = False

    @property
    def mass(self) -> Floats:
        """The weight of each row, (N,)."""
        return np.ones(self.n_rows) if self.weights is None else self.weights

    def pieces(self, most: int) -> Iterator[PartEvents]:
        """The same rows, no more than some at a time."""
        if self.n_rows <= most:
            yield self
            return
        for start in range(0, self.n_rows, most):
            yield self.taken(start, min(start + most, self.n_rows))

    @property
    def labels(self) -> Any:
        """The name of each row's group, (N,)."""
        assert self.groups is not None
        return self.groups.labels[self.groups.codes]


class EventSource(ABC):
    """Where the events of a part come from. Sources are sent along with recipes."""

    @abstractmethod
    def read(self, part: Part) -> PartEvents:
        """The events of a part."""


@dataclass(frozen=True)
class RowEvents(EventSource):
    """The events of distributions, as a rule is made of them.

    Attributes
    ----------
    model : str
        The model whose forecasts they are.
    how : Split
        What the events are.
    """

    model: str
    how: Split

    def read(self, part: Part) -> PartEvents:
        """The events of a part."""
        forecasts = dense(part, self.model)
        check_one_way(forecasts.groups, "calibration")
        y, weights = outcomes(part, self.model)
        p, groups = probabilities(part, self.model), forecasts.groups
        weights = usable(part, weights)
        at = rows_taken(weights)
        if at is not None:
            assert weights is not None
            y, p, weights, groups = y[at], p[at], weights[at], _some_of(groups, at)
        names = event_names(labels_of(forecasts), self.how)
        return _events_of(y, p, weights, groups, self.how, names, forecasts.unity.decimals)

    def most_likely(self, part: Part) -> BinaryEvent:
        """The event that the most likely class happens, in the rows that have weight."""
        rows = seen(part, self.model, ())
        at = rows_taken(usable(part, rows.weights))
        given, happened = rows.top, rows.decision == rows.y
        if at is not None:
            given, happened = given[at], happened[at]
        given = np.minimum(given, 1.0)
        return BinaryEvent("most likely class", given, None, given, happened)


@dataclass(frozen=True)
class ListSource(EventSource):
    """Events of top lists, those that a list is too short for without elements.

    Attributes
    ----------
    model : str
        The model whose lists they are.
    names : tuple of str
        The events: places, any place and the whole list; or with `scored` those of the score.
    scored : bool
        Whether the lists are taken as they are scored: as their largest valid sublists.
    """

    model: str
    names: tuple[str, ...]
    scored: bool = False

    def read(self, part: Part) -> PartEvents:
        """The events of a part."""
        return self.of(lists_of(part, self.model))

    def of(self, found: ListEvents) -> PartEvents:
        """The events of lists that were read."""
        return self._of(found.as_scored() if self.scored else found)

    def _of(self, found: ListEvents) -> PartEvents:
        makes = found.scored() if self.scored else found.stated(len(self.names))
        each = partial(_each_of, [makes.get(name, partial(_nothing, name)) for name in self.names])

        def taken(start: int, stop: int) -> PartEvents:
            return self._of(found.taken(np.arange(start, stop)))

        return PartEvents(found.weights, found.groups, found.n_lists, each, taken, entries=True)


def _events_of(
    y: Ints,
    p: Floats,
    weights: Floats | None,
    groups: Groups | None,
    how: Split,
    names: Sequence[str],
    decimals: int,
) -> PartEvents:
    """The events of rows that have weight."""

    def taken(start: int, stop: int) -> PartEvents:
        some = slice(start, stop)
        own = None if weights is None else weights[some]
        return _events_of(y[some], p[some], own, _some_of(groups, some), how, names, decimals)

    each = partial(binary_events, y, p, how, names, decimals)
    return PartEvents(weights, groups, len(y), each, taken)


def _some_of(groups: Groups | None, rows: Any) -> Groups | None:
    """The groups of some rows."""
    return None if groups is None else Groups(groups.codes[rows], groups.labels)


def _nothing(name: str) -> BinaryEvent:
    none = np.zeros(0)
    return BinaryEvent(name, none, none, none, none.astype(bool), none.astype(np.int64))


def _each_of(
    makes: Sequence[Callable[[], BinaryEvent]], only: Collection[int] | None = None
) -> Iterator[BinaryEvent]:
    return (make() for i, make in enumerate(makes) if only is None or i in only)


def outcomes(part: Part, model: str) -> tuple[Ints, Floats | None]:
    """Outcomes and weights of rows, which are checked; of rows in memory, and of those that were checked
    before, nothing else is computed.
    """
    if not (part.whole or known_valid(part, model)):
        rows = seen(part, model, ())
        return rows.y, rows.weights

    def read() -> tuple[Ints, Floats | None]:
        forecasts = dense(part, model)
        checked(part, model)
        batch = forecasts.batch(0, forecasts.n_rows)
        return to_host(batch.y), None if batch.weights is None else to_host(batch.weights)

    return part.once(("outcomes", model), read)


def rows_taken(weights: Floats | None) -> Ints | None:
    """The rows that have weight; None where all do."""
    return None if weights is None or weights.all() else np.flatnonzero(weights)


def usable(part: Part, weights: Floats | None) -> Floats | None:
    """Weights whose squares can be summed; where parts merge, they must be that as they are."""
    if weights is None or not part.whole or 1 / _EXTREME < weights.max(initial=1.0) < _EXTREME:
        return weights
    return scaled(part, weights)


def lists_of(part: Part, model: str) -> ListEvents:
    """The lists of a part that have weight."""
    found = ListEvents.of(part.models[model], "calibration")
    return replace(found, weights=usable(part, found.weights))


def labels_of(forecasts: Forecasts) -> list[str]:
    """The names of the classes as texts."""
    return [str(c) for c in (range(forecasts.n_classes) if forecasts.classes is None else forecasts.classes)]
