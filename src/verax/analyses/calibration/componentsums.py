"""How uncertain the components of a score are whose rows are not in memory: a second pass over the rows.

The first pass gave the fits of all events. Now the losses of each row are known against those of the fits,
and so are the variances of the components, as `overfitting` has them. Where rows belong to groups, their
deviations are summed by group, or by a hash of it, and by a few cells of the forecast: giving each sum a
random sign draws outcomes in which rows of a group keep together.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from verax.analyses.calibration.bindraws import EventFit
from verax.analyses.calibration.events import Split, event_columns
from verax.analyses.calibration.eventsums import keys_of
from verax.analyses.calibration.mass import LISTED, as_scored, scored_events
from verax.analyses.calibration.places import ListEvents
from verax.analyses.parts import dense, probabilities, seen
from verax.analyses.table import RowTable
from verax.analyses.units import sums_at
from verax.analyses.unitsums import Columns, UnitRecipe, UnitSums
from verax.common.hashing import name_hash
from verax.common.summaries import Summary, merges
from verax.engines.sums import Sum, Sums
from verax.inputs.arrays import Floats, Ints
from verax.inputs.groups import Groups
from verax.inputs.handles import Part, Recipe

# The sums by group, event and cell: at most so many numbers, and so many groups and cells.
_MOST, _SLOTS, _CELLS = 2**20, 512, 128


def n_cells_for(n_events: int) -> int:
    """How many cells of the forecast the deviations of groups are summed in."""
    return max(8, min(_CELLS, _MOST // (8 * n_events)))


@dataclass(frozen=True)
class EventPart:
    """An event in a part: what bins go by, forecasts of it and of the rest, and whether it happened.

    Entries of lists know the list that they belong to.
    """

    key: Floats
    given: Floats
    rest: Floats
    happened: Any
    owner: Ints | None = None


@dataclass(frozen=True)
class PartEvents:
    """The events of the rows, or lists, of a part that have weight."""

    events: tuple[EventPart, ...]
    weights: Floats
    groups: Groups | None

    def summed(self, event: EventPart, values: Floats) -> Floats:
        """The sums of values of an event over each row, or list."""
        return values if event.owner is None else sums_at(event.owner, values, len(self.weights))

    def spread(self, event: EventPart, values: Any) -> Any:
        """Values of the rows, or lists, for each element of an event."""
        return values if event.owner is None else values[event.owner]


class EventSource(ABC):
    """Where the events of a part come from. Sources are sent along with recipes."""

    @abstractmethod
    def read(self, part: Part) -> PartEvents:
        """The events of a part."""


@dataclass(frozen=True)
class RowEvents(EventSource):
    """The events of distributions, as a rule is made of them."""

    model: str
    how: Split

    def read(self, part: Part) -> PartEvents:
        """The events of a part."""
        forecasts, rows = dense(part, self.model), seen(part, self.model, ())
        p = probabilities(part, self.model)
        table = RowTable(rows.y, p, rows.decision, {}, rows.weights, None, forecasts.n_classes)
        w = np.ones(len(rows.y)) if rows.weights is None else rows.weights
        kept = np.flatnonzero(w > 0)
        events = [
            EventPart(key[kept], given[kept], (1 - given if rest is None else rest)[kept], happened[kept])
            for _, key, given, rest, happened, _, _ in event_columns(forecasts, table, self.how)
        ]
        groups = forecasts.groups
        own = None if groups is None else Groups(groups.codes[kept], groups.labels)
        return PartEvents(tuple(events), w[kept], own)


@dataclass(frozen=True)
class ListEventsSource(EventSource):
    """The events that the score of top lists is made of: "listed", unless all are empty, and "not listed"."""

    model: str
    listed: bool

    def read(self, part: Part) -> PartEvents:
        """The events of a part."""
        rows = part.models[self.model]
        found = ListEvents.of(rows, "calibration")
        none = np.zeros(0)
        nothing = EventPart(none, none, none, none.astype(bool))
        if not found.n_lists:
            groups = None if rows.groups is None else Groups(none.astype(np.int64), rows.groups.labels)
            return PartEvents((nothing,) * (1 + self.listed), none, groups)
        found = as_scored(found)
        events = {
            event.name: EventPart(
                np.clip(event.given, 0.0, 1.0), event.given, event.rest, event.happened, event.of
            )
            for event, _ in scored_events(found)
        }
        if self.listed and LISTED not in events:
            events = {LISTED: EventPart(none, none, none, none.astype(bool), none.astype(np.int64)), **events}
        weights = np.ones(found.n_lists) if found.weights is None else found.weights
        return PartEvents(tuple(events.values()), weights, found.groups)


@dataclass(frozen=True)
class ComponentRecipe(UnitRecipe):
    """The losses of each row beside those of the fits: for each event, and for what they add up to.

    Attributes
    ----------
    source : EventSource
        The events.
    how : Split
        How they are scored.
    fits : tuple of EventFit
        The fit of each.
    times, factors : tuple of float
        How many elements of each event a row has on average, and what its score is multiplied by in the sum.
    copies : bool
        Whether weights are numbers of copies.
    """

    source: EventSource
    how: Split
    fits: tuple[EventFit, ...]
    times: tuple[float, ...]
    factors: tuple[float, ...]
    copies: bool = False

    def take(self, part: Part) -> UnitSums:
        """The sums of some rows."""
        return UnitSums.of(self.columns(part), copies=self.copies)

    def columns(self, part: Part) -> Columns:
        """Of some rows: the loss, less that of the fit, that of a constant less that of the fit, and it."""
        found = part.once(("events", self.source), lambda: self.source.read(part))
        n = len(found.weights)
        blocks = np.zeros((len(self.fits) + 1, 4, n))
        with np.errstate(invalid="ignore"):
            for i, (event, fit) in enumerate(zip(found.events, self.fits, strict=True)):
                limit = fit.limit[bins_of(event.key, fit)]
                rate = np.full(len(limit), fit.rate)
                loss, fitted, constant = (
                    self.how.losses(given, rest, event.happened)
                    for given, rest in ((event.given, event.rest), (limit, 1 - limit), (rate, 1 - rate))
                )
                for j, column in enumerate((loss, loss - fitted, constant - fitted, constant)):
                    blocks[i, j] = found.summed(event, column) / self.times[i]
                blocks[-1] += self.factors[i] * blocks[i]
            return Columns(found.weights, blocks * found.weights, found.groups)


def bins_of(key: Floats, fit: EventFit) -> Ints:
    """The place of each forecast among the bins of a fit."""
    return np.minimum(np.searchsorted(fit.numbers, keys_of(key, fit.level)), len(fit.numbers) - 1)


class Deviations(Summary, kind="deviations of groups"):
    """(S, E, C, 2) sums of the weights of what happened, less chances: of the recalibration, of the forecast.

    S are groups or hashes of them, E events, C cells of the forecast.
    """

    sums: Sum = merges(Sums("slots", "events", "cells", 2))


@dataclass(frozen=True)
class DeviationRecipe(Recipe[Deviations]):
    """The deviations of groups in cells of the forecast.

    Attributes
    ----------
    source : EventSource
        The events.
    fits : tuple of EventFit
        The fit of each.
    slots : int
        In how many parts groups are told apart.
    names : array or None
        The hashes of the groups' names, in order, where each has a slot of its own; None where the hash
        decides. So slots do not depend on whether names are numbers or texts.
    """

    source: EventSource
    fits: tuple[EventFit, ...]
    slots: int
    names: Any

    @classmethod
    def of(cls, source: EventSource, fits: tuple[EventFit, ...], labels: Any) -> DeviationRecipe:
        """For these groups."""
        cells = max(int(fit.cell[-1]) + 1 for fit in fits)
        slots = max(8, min(_SLOTS, _MOST // (len(fits) * cells)))
        names = np.sort(_hashed(labels)) if len(labels) <= slots else None
        return cls(source, fits, min(slots, len(labels)), names)

    def take(self, part: Part) -> Deviations:
        """Of some rows."""
        found = part.once(("events", self.source), lambda: self.source.read(part))
        assert found.groups is not None
        cells = max(int(fit.cell[-1]) + 1 for fit in self.fits)
        sums = np.zeros((self.slots, len(self.fits), cells, 2))
        slot = self._slots(found.groups.labels)[found.groups.codes]
        for i, (event, fit) in enumerate(zip(found.events, self.fits, strict=True)):
            at = bins_of(event.key, fit)
            place = found.spread(event, slot) * cells + fit.cell[at]
            w = found.spread(event, found.weights)
            for j, chance in enumerate((fit.chance[at], np.clip(event.given, 0.0, 1.0))):
                own = sums_at(place, w * (event.happened - chance), self.slots * cells)
                sums[:, i, :, j] = own.reshape(self.slots, cells)
        return Deviations(Sum.of(sums))

    def _slots(self, labels: Any) -> Ints:
        hashed = _hashed(labels)
        if self.names is not None:
            return np.asarray(np.searchsorted(self.names, hashed))
        return np.asarray(hashed % np.uint64(self.slots), dtype=np.int64)


def _hashed(labels: Any) -> Any:
    """The hashes of names of groups."""
    return np.array([name_hash(label) for label in labels.tolist()], np.uint64)
