"""The events of top lists as summaries: histograms of confidences with outcomes, which merge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from verax.analyses.binary import BinaryEvent
from verax.analyses.calibration.binsums import Binning, BinSums, binned
from verax.analyses.calibration.event_recipe import HeldEvents, counted_sums
from verax.analyses.calibration.eventsums import EventSums
from verax.analyses.calibration.list_events import LISTED, SQUARED, UNLISTED, ListEvents, list_event_names
from verax.analyses.calibration.sources import ListSource, lists_of
from verax.analyses.calibration.statements import Statements
from verax.analyses.parts import scaled
from verax.common.packing import UnreadableError
from verax.common.specs import Each, Valued, Whole
from verax.common.summaries import Summary, merges
from verax.engines.sums import Sum, Sums
from verax.inputs.arrays import Floats
from verax.inputs.handles import LATER, Part, Recipe
from verax.inputs.lists.rows import ListRows

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
    cells : bool
        Whether very many lists in memory may be counted in cells of nearly equal confidences.
    """

    model: str
    places: int = 0
    scored: bool = False
    cells: bool = field(default=False, metadata=LATER)

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
        return list_event_names(found.longest, self.places)

    def take(self, part: Part) -> ListSums:
        """Sum up the lists of one part."""
        return self.more(part, None)

    def more(self, part: Part, before: ListSums | None) -> ListSums:
        """Sum up the lists of one part, in bins where the lists so far are; lists in memory when asked to."""
        found = lists_of(part, self.model)
        if not found.n_lists:
            return ListSums({}, Sum.zeros((3,)), 0, 0, 0)
        w = np.ones(found.n_lists) if found.weights is None else found.weights
        numbers = found.n_lists, found.n_invalid, found.longest
        scored = found.as_scored() if self.scored else found
        left_out = scored.left_out if self.scored else np.zeros(1)
        sums = Sum.of([w.sum(), (w * scored.lists.lengths).sum(), (w * left_out).sum()])
        names = tuple(scored.scored() if self.scored else scored.stated(self.places))
        lists = part.models[self.model]
        assert isinstance(lists, ListRows)
        if self.cells and Statements.fit(lists):
            # There, weights are relative to the largest.
            sums = Sum.of(sums.high / w.max())
            return ListSums(Statements.of(lists).sums(self.places), sums, *numbers)
        rows = ListSource(self.model, names, self.scored).of(found)
        events: dict[str, EventSums] = {}
        for i, name in enumerate(names):
            if part.whole:
                events[name] = HeldEvents(rows, 1, SQUARED, first=i)
                continue
            exact = before is None or name not in before.events or before.events[name].exact
            events[name] = counted_sums(rows, rows.each([i]), 1, SQUARED, exact=exact)
        return ListSums(events, sums, *numbers)


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
        found = ListEvents.of(part.models[self.model], None)
        sums: Floats = np.zeros((4, self.bins))
        if found.n_lists and (self.kind == "mass" or found.longest):
            event = event_of_kind(found, self.kind)
            weights: Any = event.of_rows(found.weights)
            w = np.ones(len(event.given)) if weights is None else scaled(part, weights)
            sums = binned(event.given, event.happened, w, self.bins, self.binning)
        return BinSums(Sum.of(sums))


def event_of_kind(found: ListEvents, kind: str) -> BinaryEvent:
    """The event that a kind of calibration error is about."""
    return {"confidence": lambda: found.at(1), "listed": found.entries, "mass": found.whole}[kind]()
