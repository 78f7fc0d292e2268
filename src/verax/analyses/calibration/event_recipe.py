"""From rows to the sums of their events: in memory when asked for, else part by part or in tables."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any, Literal

import numpy as np

from verax._settings import settings
from verax.analyses.binary import BinaryEvent
from verax.analyses.calibration.dependence import sample_of
from verax.analyses.calibration.event_keys import EXACT, NO_BINS, ONE, counted, run_of
from verax.analyses.calibration.events import Split, n_events, split
from verax.analyses.calibration.eventsums import (
    INFINITE,
    LEVELS,
    EventBins,
    EventSums,
    SummedEvent,
    bins_of_rows,
)
from verax.analyses.calibration.sources import PartEvents, RowEvents, outcomes
from verax.analyses.parts import dense, probabilities, seen
from verax.common.caching import cached_property
from verax.common.sorting import n_distinct
from verax.engines.clusters import sums_by_label
from verax.engines.histograms import Keyed, Run, compiled
from verax.engines.ranks import exact_keys
from verax.engines.sums import Sum
from verax.engines.tables import EventTable, cumulated, group_gaps
from verax.inputs.arrays import Floats, Ints
from verax.inputs.groups import Groups, check_one_way
from verax.inputs.handles import Gathering, Part, Recipe
from verax.scores.registry import RULES

# How many events may have tables of all bins.
_TABLES = 64


class HeldEvents(EventSums):
    """The events of rows in memory: what they add up to is added up when it is asked for.

    They may be merged and stored as others are. Conclusions ask for one event after the other, whose rows are
    then sorted, and not for the sums of all.
    """

    def __init__(
        self,
        rows: PartEvents,
        n_events: int,
        how: Split,
        top: Callable[[], BinaryEvent] | None = None,
        first: int = 0,
        sample: Callable[[], Keyed | None] | None = None,
    ) -> None:
        """The events from number `first` on, `top` about the most likely class, and what samples rows."""
        # Frozen: what is not a field, or is made later, is put in place past the check.
        held = {"_rows": rows, "_how": how, "_top": top, "_first": first, "_sample": sample}
        vars(self).update(n_events=n_events, level=EXACT, bins=NO_BINS, **held)

    @property
    def rows(self) -> PartEvents:
        """The rows themselves."""
        found: PartEvents = vars(self)["_rows"]
        return found

    @property
    def n_groups(self) -> int | None:
        """The number of groups; None without groups."""
        groups = self.rows.groups
        return None if groups is None else n_distinct(groups.codes)

    def event(self, i: int, name: str) -> SummedEvent:
        """What is known of one event."""
        return SummedEvent(name, self, i, next(self._own([i])))

    def each(self, names: Sequence[str]) -> Iterator[Callable[[], SummedEvent]]:
        """What gives each event, one after the other."""
        events = zip(names, self._own(range(self.n_events)), strict=True)
        return (partial(SummedEvent, name, self, i, event) for i, (name, event) in enumerate(events))

    def of(self, i: int) -> EventBins:
        """The distinct forecasts of one event."""
        return self.event(i, "").bins

    def numbers(self, i: int) -> Ints:
        """The keys of one event."""
        return exact_keys(next(self._own([i])).values)

    def _own(self, only: Collection[int] | None = None) -> Iterator[BinaryEvent]:
        """Some of the events, or all; the one about the most likely class is the last."""
        top, first = vars(self)["_top"], vars(self)["_first"]
        only = range(self.n_events + 1) if only is None else only
        yield from self.rows.each([first + i for i in only if i < self.n_events])
        if top is not None and self.n_events in only:
            yield top()

    def merge(self, other: EventSums) -> EventSums:  # type: ignore[override]
        """The sums of the rows of both; neither is changed."""
        own = {field.name: getattr(self, field.name) for field in fields(EventSums)}
        return EventSums(**own).merge(other)

    def fitting(self) -> EventSums:
        """Themselves: rows in memory are not counted in bins."""
        return self

    def at_most(self, keys: int, spare: int = 1) -> EventSums:
        """Themselves: rows in memory are not counted in bins."""
        return self

    @cached_property
    def _added_up(self) -> EventSums:
        """What needs no order of the rows."""
        return sums_of(self.rows, self._own(), self.n_events, vars(self)["_how"])

    @cached_property  # type: ignore[misc]
    def weight(self) -> Sum:
        """(3,) sums of w, of w*w, and the number of rows."""
        w = next(self._own([0])).of_rows(self.rows.mass)
        return Sum.of([w.sum(), (w * w).sum(), len(w)])

    @cached_property  # type: ignore[misc]
    def totals(self) -> Sum:
        """(n_events + 1, 5) sums over all rows."""
        return self._added_up.totals

    @cached_property  # type: ignore[misc]
    def whole(self) -> bool:
        """Whether all weights are whole numbers."""
        return self._added_up.whole

    @cached_property  # type: ignore[misc]
    def labels(self) -> Any:
        """The groups."""
        return self._added_up.labels

    @cached_property  # type: ignore[misc]
    def groups(self) -> Floats | None:
        """The sums of each group."""
        return self._added_up.groups

    @cached_property  # type: ignore[misc]
    def sample(self) -> Keyed | None:
        """A few rows."""
        make = vars(self)["_sample"]
        return None if make is None else make()

    @cached_property  # type: ignore[misc]
    def values(self) -> Mapping[int, Keyed]:
        """The sums of every event by exact key."""
        found = {}
        for i, event in enumerate(self._own()):
            bins = bins_of_rows(event, event.of_rows(self.rows.weights))
            sums = np.stack([bins.weight, bins.happened, bins.claimed, bins.squares], axis=1)
            least = bins.least[:, None]
            found[i] = Keyed((Run(exact_keys(bins.least), Sum.of(sums), least, least),))
        return found


def sums_of(
    rows: PartEvents,
    events: Iterable[BinaryEvent],
    n_events: int,
    how: Split,
    runs: Callable[[BinaryEvent, Sequence[Any]], None] | None = None,
) -> EventSums:
    """What events add up to but for their forecasts, which `runs` takes with their columns.

    The event after the first `n_events` is about the most likely class and has no loss. Lists have none.
    """
    totals: list[list[float]] = []
    gaps: list[Floats] = []
    mass = total = rows.mass
    for i, event in enumerate(events):
        # A row may sum to more than one, within its tolerance.
        claim = np.minimum(event.given, 1.0) if event.given.max(initial=0.0) > 1 else event.given
        hit = event.happened.astype(float)
        loss = how.losses(event.given, event.rest, event.happened) if i < n_events else claim
        infinite = 0.0
        total = event.of_rows(mass)
        if not np.isfinite(loss.sum()):
            lost = np.isinf(loss)
            infinite = float(total[lost].sum())
            loss = np.where(lost, 0.0, loss)
        if rows.weights is None:
            columns: list[Any] = [None, hit, claim, None]
            variance = claim.sum() - np.einsum("i,i->", claim, claim)
            own = [claim.sum(), hit.sum(), variance, loss.sum(), infinite]
        else:
            columns = [total, total * hit, total * claim, total * total]
            variance = (columns[3] * claim * (1 - claim)).sum()
            own = [columns[2].sum(), columns[1].sum(), variance, (total * loss).sum(), infinite]
        totals.append([float(each) for each in own])
        if rows.groups is not None:
            gaps.append(claim - hit if rows.weights is None else total * (claim - hit))
        if runs is not None:
            runs(event, columns)
    totals += [[0.0] * 5] * (n_events + 1 - len(totals))
    labels = groups = None
    if rows.groups is not None:
        if not rows.entries:
            # As wide with the event about the most likely class as without it.
            gaps += [np.zeros_like(total)] * (n_events + 1 - len(gaps))
        labels, groups = sums_by_label(event.of_rows(rows.labels), np.column_stack([total, *gaps]))
    return EventSums(
        n_events,
        EXACT,
        NO_BINS,
        Sum.of(totals),
        Sum.of([total.sum(), (total**2).sum(), len(total)]),
        bool((mass == np.floor(mass)).all()),
        labels,
        groups,
    )


def counted_sums(
    rows: PartEvents, events: Iterable[BinaryEvent], n_events: int, how: Split, *, exact: bool
) -> EventSums:
    """What events add up to, by distinct forecast or in bins."""
    runs: list[Run] = []
    found = sums_of(
        rows,
        events,
        n_events,
        how,
        lambda event, columns: runs.append(run_of(event.ranked, columns, exact=exact)),
    )
    level, bins = counted(runs, exact=exact)
    values = dict(enumerate(Keyed((run,)) for run in runs)) if exact else {}
    return replace(found, level=level, bins=bins, values=values).fitting()


@dataclass(frozen=True)
class EventRecipe(Recipe[EventSums]):
    """The events of one model: every class, or every threshold of ordered classes.

    Attributes
    ----------
    model : str
        The model.
    thresholds : bool
        Whether the events are thresholds.
    binary : {"squared", "log"}
        The score of each.
    with_top : bool
        Whether the event about the most likely class is counted, where rows come in parts. What is saved has
        the same name either way: who asks for the others only does not look at it.
    """

    model: str
    thresholds: bool
    binary: Literal["squared", "log"] = "squared"
    with_top: bool = field(default=True, repr=False)

    def how(self, n_classes: int) -> Split:
        """How the events are scored; of two classes there are always both."""
        names = {("squared", True): "rps", ("log", True): "ranked_log", ("squared", False): "brier"}
        return split(RULES[names.get((self.binary, self.thresholds), "log_score")], n_classes)

    def sizes(self, known: Mapping[str, int]) -> dict[str, int]:
        """The number of events."""
        if "classes" not in known:
            return {}
        return {"n_events": n_events(self.how(known["classes"]), known["classes"])}

    def gathering(self) -> Gathering[EventSums]:
        """Tables that rows are added to in place."""
        return _Gathered(self)

    def take(self, part: Part) -> EventSums:
        """Sum up the rows of one part."""
        return self.more(part, None)

    def more(self, part: Part, found: EventSums | None) -> EventSums:
        """Sum up the rows of one part, in bins where the rows so far are; rows in memory when asked to."""
        n_classes = part.models[self.model].n_classes
        how = self.how(n_classes)
        source, n = RowEvents(self.model, how), n_events(how, n_classes)
        rows, top = source.read(part), partial(source.most_likely, part)
        if part.whole:
            return HeldEvents(rows, n, how, top, sample=partial(self.sample, part))
        events = itertools.chain(rows.each(), (make() for make in [top] if self.with_top))
        sums = counted_sums(rows, events, n, how, exact=found is None or found.level == EXACT)
        return replace(sums, sample=self.sample(part))

    def sample(self, part: Part, before: Keyed | None = None) -> Keyed | None:
        """A few rows of a part, and of those before; None where events say nothing about each other."""
        forecasts = dense(part, self.model)
        if forecasts.groups is not None or forecasts.n_classes == 2:
            # Groups are drawn together, and two classes are one event and its opposite.
            return None
        p, weights = probabilities(part, self.model), outcomes(part, self.model)[1]
        if weights is not None and not weights.all():
            p, weights = p[weights > 0], weights[weights > 0]
        return sample_of(p, weights, before)


class _Gathered:
    """Sums of parts, whose rows are added to tables in place where that is possible."""

    def __init__(self, recipe: EventRecipe) -> None:
        self._recipe = recipe
        self._tables: list[EventTable] = []
        self._weight, self._whole = Sum.zeros(3), True
        self._groups: tuple[Any, Floats] | None = None
        self._sample: Keyed | None = None
        self._others: EventSums | None = None
        self._most, self._most_bins = settings.exact_up_to, settings.bins_up_to
        self._n_rows, self._counted, self._n_events = 0, 0, 0

    def add(self, part: Part) -> None:
        exact = not self._tables and (self._others is None or self._others.level == EXACT)
        if (exact and not self._too_many(part)) or not self._added(part):
            found = self._recipe.more(part, self._others)
            self._others = found if self._others is None else self._others.merge(found)

    def at_most(self, keys: int) -> None:
        """Keep no more keys than that, from now on. Tables are counted when they have four times the rows."""
        settled = keys == self._most_bins and self._n_rows < 4 * self._counted
        self._most = self._most_bins = keys
        if self._others is not None:
            self._others = self._others.at_most(keys)
        if not settled:
            self._join_bins()

    def _join_bins(self) -> None:
        """Join neighbouring bins of the tables until there are no more than may be kept."""
        self._counted = self._n_rows
        while self._tables and self._tables[0].level < LEVELS:
            if sum(table.n_used for table in self._tables) <= self._most_bins:
                break
            for table in self._tables:
                table.join()

    def _too_many(self, part: Part) -> bool:
        """Whether the first rows of a part have more distinct forecasts than are kept: counting all of them
        exactly would be in vain.
        """
        recipe, n_classes = self._recipe, part.models[self._recipe.model].n_classes
        n = n_events(recipe.how(n_classes), n_classes) + recipe.with_top
        if part.n_rows * n <= self._most:
            return False
        first = slice(0, 2 * self._most // n)
        rows = RowEvents(recipe.model, recipe.how(n_classes)).read(part)
        found = itertools.accumulate(n_distinct(event.ranked[first]) for event in rows.each())
        return any(n_values > self._most for n_values in found)

    def _added(self, part: Part) -> bool:
        """Add the rows to the tables, if there are few events that are scored by squared errors."""
        recipe, forecasts = self._recipe, dense(part, self._recipe.model)
        check_one_way(forecasts.groups, "calibration")
        how, weighted = recipe.how(forecasts.n_classes), forecasts.weights is not None
        n = n_events(how, forecasts.n_classes)
        if n > _TABLES or how.binary != "squared" or not compiled(part.n_rows):
            return False
        self._n_events = n
        self._tables = self._tables or [
            EventTable(ONE, weighted=weighted) for _ in range(n + recipe.with_top)
        ]
        if self._tables[0].weighted != weighted:
            return False
        self._n_rows += part.n_rows
        events = list(self._events(part, how))
        weights = outcomes(part, recipe.model)[1]
        for table, event in zip(self._tables, events, strict=True):
            table.add(*event, weights)
        if weights is None:
            self._weight += Sum.of([part.n_rows] * 3)
        else:
            self._weight += Sum.of([weights.sum(), (weights * weights).sum(), np.count_nonzero(weights)])
            self._whole = self._whole and bool((weights == np.floor(weights)).all())
        self._sample = recipe.sample(part, self._sample)
        if forecasts.groups is not None:
            self._add_groups(forecasts.groups, weights, [(given, hit) for _, given, _, hit, _ in events])
        return True

    def _events(self, part: Part, how: Split) -> Iterator[tuple[Floats, Floats, Floats | None, Any, float]]:
        """What ranks each event, its probability and that of the rest, where it happened, and to how many
        digits it is rounded; as `binary_events` has them, and the most likely class in the end if asked for.
        """
        model, p = self._recipe.model, probabilities(part, self._recipe.model)
        below: Any
        if how.thresholds:
            below, above = cumulated(np.ascontiguousarray(p.T))
            scale = 10.0 ** dense(part, model).unity.decimals
        else:
            # Columns of a subgroup are contiguous, each by itself.
            below, scale = [np.ascontiguousarray(column) for column in p.T], 0.0
            above = below
        # Short numbers are compared faster.
        y = outcomes(part, model)[0].astype(np.uint8)
        for i in range(self._n_events):
            rest = above[i + 1] if how.thresholds else None
            yield below[i], below[i], rest, y <= i if how.thresholds else y == i, scale
        if self._recipe.with_top:
            rows = seen(part, model, ())
            yield rows.top, rows.top, None, rows.decision == rows.y, 0.0

    def _add_groups(self, groups: Groups, weights: Floats | None, events: list[tuple[Floats, Any]]) -> None:
        """Add to the sums of each group; those without weight are left out."""
        codes, n = groups.codes, len(groups.labels)
        weight = np.bincount(codes, weights, n).astype(float)
        columns = [weight, *(group_gaps(given, hit, weights, codes, n) for given, hit in events)]
        columns += [np.zeros(n)] * (self._n_events + 1 - len(events))
        here = weight > 0
        labels, sums = groups.labels[here], np.stack(columns, axis=1)[here]
        if self._groups is not None:
            labels = np.concatenate([self._groups[0], labels])
            labels, sums = sums_by_label(labels, np.concatenate([self._groups[1], sums]))
        self._groups = labels, sums

    def summary(self) -> EventSums:
        if not self._tables:
            assert self._others is not None
            return self._others
        self._join_bins()
        runs = [table.run() for table in self._tables]
        n = self._n_events
        totals = np.zeros((2, n + 1, 5))
        for i, table in enumerate(self._tables):
            totals[:, i, :INFINITE] = table.totals.to_values()
        sums = Sum.from_values(totals, (n + 1, 5))
        labels, groups = (None, None) if self._groups is None else self._groups
        level, bins = self._tables[0].level, counted(runs, exact=False)[1]
        found = EventSums(n, level, bins, sums, self._weight, self._whole, labels, groups)
        found = replace(found, sample=self._sample).fitting()
        return found if self._others is None else found.merge(self._others)
