"""What is known of the calibration of one subgroup: its decomposition, its tests, and its events."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from verax.analyses.calibration.components import Decomposition
from verax.analyses.calibration.decomposition import fitted
from verax.analyses.calibration.recipes import ListSums
from verax.analyses.calibration.scored import scored_events, scored_over_groups, sums_of_groups
from verax.analyses.calibration.sources import LISTED
from verax.analyses.calibration.sums import Events, SummedEvent
from verax.analyses.subgroups.ratios import EventCounts
from verax.analyses.subgroups.scores import (
    EventTest,
    TestQueue,
    p_of_subgroup,
)
from verax.analyses.subgroups.together import PooledEvent
from verax.common.caching import cached_property
from verax.inference.intervals import Resampling
from verax.inputs.handles import Handle
from verax.scores.base import Rule

# The entries of a list depend on each other: their sum has at most half of the cumulants that independent
# entries have at twice the argument, so a normal score is smaller by this factor.
_ENTRIES = 0.5**0.5
# Why there is no test.
FEW = "fewer than 2 rows of either outcome expected"
FEW_GROUPS = "fewer than 4 groups"
NO_GROUPS = "saved by an earlier version, without the sums of groups"
NO_TOP = "the most likely class, which an earlier version did not save"


@dataclass
class SubgroupTests:
    """The tests of one model in one subgroup, complete once their queue is settled.

    Attributes
    ----------
    queue : TestQueue
        Where tests are computed, many at a time.
    copies : bool
        Whether weights are numbers of rows, where there are no groups.
    two, flipped : bool
        Whether there are two classes, and whether their event is the first one.
    events : list of EventTest
        The tests of each event.
    about : EventTest or None
        The tests of the event whose rows are counted and added up over subgroups: the second of two classes,
        else the most likely class.
    decomposition : Decomposition or None
        The parts of the score.
    lacks : str
        What saved sums lack.
    """

    queue: TestQueue
    copies: bool
    two: bool
    flipped: bool
    events: list[EventTest] = field(default_factory=list)
    about: EventTest | None = None
    decomposition: Decomposition | None = None
    _sums: Any = None
    _number: int = 0
    lacks: str = ""

    @classmethod
    def of(
        cls,
        summary: Events | ListSums,
        rule: Rule,
        handle: Handle,
        plan: Resampling,
        model: str,
        queue: TestQueue,
    ) -> SubgroupTests:
        """Those of a model in a subgroup, from its sums."""
        two = handle.n_classes == 2
        found = cls(queue, plan.copies, two, two and rule.ordinal)
        if isinstance(summary, ListSums):
            # All listed classes have half of the level, and that none of them happens the other half.
            fits = fitted(summary, rule, handle, plan, model, lambda _, event: found._add_of_list(event))
        else:
            scored = scored_events(summary.n_events, handle.n_classes)
            fits = fitted(
                summary, rule, handle, plan, model, lambda i, event: found._add(i, event, handle, scored)
            )
            if summary.n_events in scored and _has(summary, summary.n_events):
                found._add(summary.n_events, summary.event(summary.n_events, ""), handle, scored)
            elif summary.n_events in scored:
                found.lacks = NO_TOP
        found.decomposition = fits.result(handle)
        return found

    def _add_of_list(self, event: SummedEvent) -> None:
        self._test(event, 0, 1, 1.0, _ENTRIES if event.name == LISTED else 1.0)

    def _add(self, i: int, event: SummedEvent, handle: Handle, scored: tuple[int, ...]) -> None:
        """Test an event of rows, if it is one of those that are."""
        n_events = event.sums.n_events
        counted = self.two or i == n_events
        if event.sums.n_groups is not None:
            scored = scored_over_groups(n_events, handle.n_classes)
        if i not in scored:
            return
        # The most likely class has half of the level, and all classes together the other half.
        test = self._test(event, scored.index(i), len(scored), float(n_events) if i == n_events else 1.0, 1.0)
        if counted:
            self.about, self._sums, self._number = test, event.sums, i

    def _test(self, event: SummedEvent, place: int, n_scored: int, share: float, factor: float) -> EventTest:
        """The tests of an event; not one of the subgroup's where the sums of groups are missing."""
        sums, groups = event.sums, None
        if sums.groups is not None:
            groups = sums_of_groups(sums.groups, sums.n_events, place, n_scored)
        copies = self.copies and sums.n_groups is None
        test = self.queue.ask(event, copies=copies, share=share, factor=factor, groups=groups)
        if sums.groups is not None and groups is None:
            self.lacks = NO_GROUPS
        else:
            self.events.append(test)
        return test

    @property
    def counts(self) -> EventCounts | None:
        """What was observed and expected of the event whose rows are counted."""
        if self.about is None:
            return None
        sums, copies = self._sums, self.copies and self._sums.n_groups is None
        return EventCounts.of(self.about, sums, self._number, flipped=self.flipped, copies=copies)

    @property
    def pooled(self) -> PooledEvent | None:
        """The event that is added up over subgroups, if it was tested."""
        counts = self.counts
        if self.lacks or self.about is None or counts is None:
            return None
        return PooledEvent(self.about, counts, self._sums.labels)

    @cached_property
    def p_value(self) -> float:
        """The p-value of the subgroup; NaN without a test."""
        return p_of_subgroup(self.events)

    @property
    def untested(self) -> str:
        """Why there is no test, or what was not tested; empty where all was."""
        if self.lacks:
            return self.lacks
        if not math.isnan(self.p_value):
            return ""
        return FEW_GROUPS if any(test.has_rows for test in self.events) else FEW


def _has(summary: Any, i: int) -> bool:
    """Whether an event was summed; files of 0.3 lack the most likely class of subgroups."""
    return summary.rows is not None or i in summary.forecasts.tables
