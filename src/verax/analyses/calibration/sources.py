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
from verax.errors import InputError, passing
from verax.inputs.arrays import Floats, Ints, to_host
from verax.inputs.forecasts import Forecasts
from verax.inputs.groups import Groups, check_one_way
from verax.inputs.handles import Part

# The number of rows that weights may count as copies.
_MOST_COPIES = 10_000_000
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
    repeated : callable
        Makes the same of rows that are repeated as often as their weights say.
    entries : bool
        Whether an event may have several elements of a row, as the entries of a list are.
    """

    weights: Floats | None
    groups: Groups | None
    n_rows: int
    each: Each
    repeated: Callable[[], PartEvents]
    entries: bool = False

    @property
    def mass(self) -> Floats:
        """The weight of each row, (N,)."""
        return np.ones(self.n_rows) if self.weights is None else self.weights

    @property
    def labels(self) -> Any:
        """The name of each row's group, (N,)."""
        assert self.groups is not None
        return self.groups.labels[self.groups.codes]


class EventSource(ABC):
    """Where the events of a part come from. Sources are sent along with recipes."""

    @abstractmethod
    def read(self, part: Part, *, copies: bool = False) -> PartEvents:
        """The events of a part; with `copies` every row as often as its weight says."""


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

    def read(self, part: Part, *, copies: bool = False) -> PartEvents:
        """The events of a part; with `copies` every row as often as its weight says."""
        forecasts = dense(part, self.model)
        check_one_way(forecasts.groups, "calibration")
        y, weights = outcomes(part, self.model)
        p, groups = probabilities(part, self.model), forecasts.groups
        weights = weights if copies else usable(part, weights)
        at = rows_taken(weights, copies=copies)
        if at is not None:
            y, p, groups = y[at], p[at], None if groups is None else Groups(groups.codes[at], groups.labels)
            weights = None if copies or weights is None else weights[at]
        names = event_names(labels_of(forecasts), self.how)
        each = partial(binary_events, y, p, self.how, names, forecasts.unity.decimals)
        return PartEvents(weights, groups, len(y), each, partial(self.read, part, copies=True))

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

    def read(self, part: Part, *, copies: bool = False) -> PartEvents:
        """The events of a part; with `copies` every list as often as its weight says."""
        return self.of(part, lists_of(part, self.model, copies=copies))

    def of(self, part: Part, found: ListEvents) -> PartEvents:
        """The events of lists that were read."""
        found = found.as_scored() if self.scored else found
        makes = found.scored() if self.scored else found.stated(len(self.names))
        each = partial(_each_of, [makes.get(name, partial(_nothing, name)) for name in self.names])
        again = partial(self.read, part, copies=True)
        return PartEvents(found.weights, found.groups, found.n_lists, each, again, entries=True)


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


def rows_taken(weights: Floats | None, *, copies: bool = False) -> Ints | None:
    """The rows that have weight, with `copies` as often as it says; None where all rows are taken once."""
    if weights is None:
        return None
    if copies:
        if (weights != np.floor(weights)).any() or weights.sum() > _MOST_COPIES:
            raise InputError(
                f"must be whole numbers with a sum of at most {_MOST_COPIES:,} where they count copies",
                argument="weights",
                found=f"they sum to {weights.sum():,.12g}",
                remedies=[passing("if they are not", weights_are="importance")],
            )
        return np.repeat(np.arange(len(weights)), weights.astype(np.int64))
    return None if weights.all() else np.flatnonzero(weights)


def usable(part: Part, weights: Floats | None) -> Floats | None:
    """Weights whose squares can be summed; where parts merge, they must be that as they are."""
    if weights is None or not part.whole or 1 / _EXTREME < weights.max(initial=1.0) < _EXTREME:
        return weights
    return scaled(part, weights)


def lists_of(part: Part, model: str, *, copies: bool = False) -> ListEvents:
    """The lists of a part that have weight; with `copies` each as often as its weight says."""
    found = ListEvents.of(part.models[model], "calibration")
    weights = found.weights if copies else usable(part, found.weights)
    at = rows_taken(weights, copies=copies)
    found = replace(found, weights=weights)
    if at is None:
        return found
    found = found.taken(at)
    return replace(found, weights=None) if copies else found


def labels_of(forecasts: Forecasts) -> list[str]:
    """The names of the classes as texts."""
    return [str(c) for c in (range(forecasts.n_classes) if forecasts.classes is None else forecasts.classes)]
