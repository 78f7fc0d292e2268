"""The events of top lists that are not in memory: histograms of confidences with outcomes, which merge."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from verax.analyses.calibration.binsums import Binning, BinSums, binned
from verax.analyses.calibration.eventsums import EXACT, EventSums, counted, run_of
from verax.analyses.calibration.lists import SQUARED
from verax.analyses.calibration.mass import LISTED, UNLISTED, as_scored, left_out_of, scored_events
from verax.analyses.calibration.places import ListEvent, ListEvents, event_names
from verax.analyses.parts import scaled
from verax.common.summaries import Each, Summary, UnreadableError, Valued, Whole, merges
from verax.engines.clusters import sums_by_label
from verax.engines.histograms import Keyed
from verax.engines.sums import Sum, Sums
from verax.inputs.arrays import Floats
from verax.inputs.handles import LATER, Part, Recipe

# The sums over all lists.
WEIGHT, LENGTH, LEFT_OUT = range(3)


class ListSums(Summary, kind="event histograms of lists"):
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

    events: Mapping[str, EventSums] = merges(Each(Valued(EventSums, packed=True), "union"))
    totals: Sum = merges(Sums(3))
    n_lists: int = merges(Whole())
    n_invalid: int = merges(Whole())
    longest: int = merges(Whole("most"))


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

    def check(self, found: ListSums) -> None:
        """Refuse sums of other events."""
        missing = set(self.names(found)).symmetric_difference(found.events)
        # Invalid lists may have an empty valid sublist, whatever their length.
        if missing - ({LISTED} if self.scored and found.n_invalid else set()):
            raise UnreadableError("is about other events", "events")

    def names(self, found: ListSums) -> list[str]:
        """The events that lists of these lengths have."""
        if not found.n_lists:
            return []
        if self.scored:
            return [*([LISTED] if found.longest else []), UNLISTED]
        return event_names(found.longest, self.places)

    def take(self, part: Part) -> ListSums:
        """Sum up the lists of one part."""
        return self.more(part, None)

    def more(self, part: Part, before: ListSums | None) -> ListSums:
        """Sum up the lists of one part, in bins where the lists so far are."""
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
        binned = {} if before is None else {k: own.level != EXACT for k, own in before.events.items()}
        events = {
            event.name: _sums_of(found, event, exact=not binned.get(event.name, False))
            for event in self._events(found)
        }
        return ListSums(events, sums, *numbers)

    def _events(self, found: ListEvents) -> Iterator[ListEvent]:
        return (event for event, _ in scored_events(found)) if self.scored else found.all(self.places)


def _sums_of(found: ListEvents, event: ListEvent, *, exact: bool) -> EventSums:
    """The sums of one event, which is all that these are about."""
    claim, hit = np.clip(event.given, 0.0, 1.0), event.happened.astype(float)
    weights = event.taken(found.weights)
    w = np.ones(len(claim)) if weights is None else weights
    losses = SQUARED.losses(event.given, event.rest, event.happened)
    run = run_of(claim, [w, w * hit, w * claim, w * w], exact=exact)
    variance = (w * w * claim * (1 - claim)).sum()
    totals = [(w * claim).sum(), (w * hit).sum(), variance, (w * losses).sum(), 0.0]
    labels = groups = None
    if found.groups is not None:
        named = found.groups.labels[event.taken(found.groups.codes)]
        labels, groups = sums_by_label(named, np.column_stack([w, w * (claim - hit)]))
    return EventSums(
        1,
        *counted([run], exact=exact),
        Sum.of([totals, [0.0] * 5]),
        Sum.of([w.sum(), (w * w).sum(), len(w)]),
        bool((w == np.floor(w)).all()),
        labels,
        groups,
        {0: Keyed((run,))} if exact else {},
    ).fitting()


@dataclass(frozen=True)
class ListBinRecipe(Recipe[BinSums]):
    """Sums in bins of one kind of event of the lists of a model, as `ece` names it."""

    model: str
    bins: int
    kind: str
    binning: Binning = field(default="width", metadata=LATER)

    def sizes(self, known: Mapping[str, int]) -> dict[str, int]:
        """The numbers of bins and of events."""
        return {"bins": self.bins, "events": 1}

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


def event_of_kind(found: ListEvents, kind: str) -> ListEvent:
    """The event that a kind of calibration error is about."""
    return {"confidence": lambda: found.at(1), "listed": found.entries, "mass": found.whole}[kind]()
