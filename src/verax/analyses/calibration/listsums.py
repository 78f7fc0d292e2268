"""The events of top lists that are not in memory: histograms of confidences with outcomes, which merge."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from verax.analyses.calibration.binsums import Binning, BinSums, binned
from verax.analyses.calibration.eventsums import EventSums, forecast_bins
from verax.analyses.calibration.lists import SQUARED
from verax.analyses.calibration.mass import as_scored, left_out_of, scored_events
from verax.analyses.calibration.places import ListEvent, ListEvents
from verax.analyses.parts import scaled
from verax.common.packing import dump, load, refusing
from verax.engines.clusters import sums_by_label
from verax.engines.histograms import Keyed, Run
from verax.engines.sums import Sum
from verax.inputs.arrays import Floats
from verax.inputs.handles import Part, Recipe

_KIND = "event histograms of lists"
# The sums over all lists.
WEIGHT, LENGTH, LEFT_OUT = range(3)


@dataclass(frozen=True)
class ListSums:
    """What is known of the events of lists, without the lists.

    Attributes
    ----------
    events : Mapping
        The sums of each event by its name; a place that no list reaches has none.
    totals : Sum
        (3,) sums over all lists of the weight, of the weight times the length, and of the weight times what
        the padded Brier score has more than that of the events.
    n_lists, n_invalid, longest : int
        Of the lists that have weight: their number, how many are invalid, and the length of the longest.
    """

    events: Mapping[str, EventSums]
    totals: Sum
    n_lists: int
    n_invalid: int
    longest: int

    def merge(self, other: ListSums) -> ListSums:
        """The sums of the lists of both."""
        events = dict(self.events)
        for name, theirs in other.events.items():
            events[name] = events[name].merge(theirs) if name in events else theirs
        return ListSums(
            events,
            self.totals + other.totals,
            self.n_lists + other.n_lists,
            self.n_invalid + other.n_invalid,
            max(self.longest, other.longest),
        )

    def to_bytes(self) -> bytes:
        """As bytes that `from_bytes` reads."""
        numbers = {name: getattr(self, name) for name in ("n_lists", "n_invalid", "longest")}
        events = {name: found.to_bytes() for name, found in self.events.items()}
        return dump(_KIND, {**numbers, "events": events, "totals": self.totals.to_values()})

    @classmethod
    def from_bytes(cls, data: bytes) -> ListSums:
        """What `to_bytes` wrote."""
        values = load(data, _KIND)
        with refusing("is missing or of another type"):
            return cls(
                {str(name): EventSums.from_bytes(found) for name, found in values["events"].items()},
                Sum.from_values(values["totals"], 3),
                *(int(values[name]) for name in ("n_lists", "n_invalid", "longest")),
            )


@dataclass(frozen=True)
class ListEventRecipe(Recipe[ListSums]):
    """The events of the lists of one model.

    Attributes
    ----------
    places : int
        How many of the first places are events, beside any place and the whole list.
    scored : bool
        Instead the events that the score is made of: those of the largest valid sublists.
    """

    model: str
    places: int = 0
    scored: bool = False

    def take(self, part: Part) -> ListSums:
        """The sums of some lists."""
        found = ListEvents.of(part.models[self.model], "calibration")
        if not found.n_lists:
            return ListSums({}, Sum.zeros((3,)), 0, 0, 0)
        w = np.ones(found.n_lists) if found.weights is None else found.weights
        numbers = found.n_lists, found.n_invalid, found.longest
        left_out = np.zeros(found.n_lists)
        if self.scored:
            found = as_scored(found)
            left_out = left_out_of(found)
        sums = Sum.of([w.sum(), (w * found.lists.lengths).sum(), (w * left_out).sum()])
        return ListSums({event.name: _sums_of(found, event) for event in self._events(found)}, sums, *numbers)

    def _events(self, found: ListEvents) -> Iterator[ListEvent]:
        return (event for event, _ in scored_events(found)) if self.scored else found.all(self.places)

    def load(self, stored: bytes) -> ListSums:
        """Sums from their bytes."""
        return ListSums.from_bytes(stored)


def _sums_of(found: ListEvents, event: ListEvent) -> EventSums:
    """The sums of one event, which is all that these are about."""
    claim, hit = np.clip(event.given, 0.0, 1.0), event.happened.astype(float)
    weights = event.taken(found.weights)
    w = np.ones(len(claim)) if weights is None else weights
    losses = SQUARED.losses(event.given, event.rest, event.happened)
    run = Run.of(forecast_bins(claim), [w, w * hit, w * claim, w * w], [claim])
    variance = (w * w * claim * (1 - claim)).sum()
    totals = [(w * claim).sum(), (w * hit).sum(), variance, (w * losses).sum(), 0.0]
    labels = groups = None
    if found.groups is not None:
        named = found.groups.labels[event.taken(found.groups.codes)]
        labels, groups = sums_by_label(named, np.column_stack([w, w * (claim - hit)]))
    return EventSums(
        1,
        0,
        Keyed((run,)),
        Sum.of([totals, [0.0] * 5]),
        Sum.of([w.sum(), (w * w).sum(), len(w)]),
        bool((w == np.floor(w)).all()),
        labels,
        groups,
    ).fitting()


@dataclass(frozen=True)
class ListBinRecipe(Recipe[BinSums]):
    """Sums in bins of one kind of event of the lists of a model, as `ece` names it."""

    model: str
    bins: int
    kind: str
    binning: Binning = "width"

    def take(self, part: Part) -> BinSums:
        """The sums of some lists."""
        found = ListEvents.of(part.models[self.model], "calibration errors")
        sums: Floats = np.zeros((4, self.bins))
        if found.n_lists and (self.kind == "mass" or found.longest):
            event = event_of_kind(found, self.kind)
            weights: Any = event.taken(found.weights)
            w = np.ones(len(event.given)) if weights is None else scaled(part, weights)
            sums = binned(event.given, event.happened, w, self.bins, self.binning)
        return BinSums(Sum.of(sums))

    def load(self, stored: bytes) -> BinSums:
        """Sums from their bytes."""
        return BinSums.from_bytes(stored)


def event_of_kind(found: ListEvents, kind: str) -> ListEvent:
    """The event that a kind of calibration error is about."""
    return {"confidence": lambda: found.at(1), "listed": found.entries, "mass": found.whole}[kind]()
