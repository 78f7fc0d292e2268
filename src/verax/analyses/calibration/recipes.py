"""From rows to the sums of their events: in memory when asked for, else part by part or in tables."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

import numpy as np

from verax._settings import settings
from verax.analyses.binary import BinaryEvent
from verax.analyses.calibration.events import Split, n_events, split
from verax.analyses.calibration.scored import log_odds, row_scores, scored_over_groups
from verax.analyses.calibration.sources import (
    ANY,
    LISTED,
    SQUARED,
    UNLISTED,
    WHOLE,
    EventSource,
    ListSource,
    PartEvents,
    RowEvents,
    list_event_names,
    lists_of,
    outcomes,
    place_name,
)
from verax.analyses.calibration.sums import Events, EventsInMemory, EventSums, SummedEvent, sample_of
from verax.analyses.parts import dense, probabilities
from verax.analyses.unitsums import check_weight
from verax.common.packing import UnreadableError
from verax.common.sorting import n_distinct
from verax.common.specs import Each, Valued, Whole
from verax.common.spelling import LATER
from verax.common.summaries import Summary, merges
from verax.engines.clusters import sums_by_label
from verax.engines.keyed import Keyed, KeyedSums, Run
from verax.engines.keys import EXACT, exact_keys, forecast_keys
from verax.engines.sums import Sum, Sums
from verax.inputs.arrays import Floats
from verax.inputs.handles import Part, Recipe
from verax.inputs.lists.rows import ListRows
from verax.kernels.ledger import compiles
from verax.kernels.threads import n_cores
from verax.scores.registry import RULES


def in_memory(
    rows: PartEvents,
    n_events: int,
    how: Split,
    *,
    first: int = 0,
    top: Callable[[], BinaryEvent] | None = None,
    sample: Callable[[], Keyed | None] = lambda: None,
    scored: Collection[int] = (),
) -> EventsInMemory:
    """The events of rows in memory from number `first` on, `top` about the most likely class, a `sample`.

    Groups have the sums of the `scored` events.
    """

    def events(only: Collection[int] | None = None) -> Iterator[BinaryEvent]:
        only = range(n_events + 1) if only is None else only
        yield from rows.events([first + i for i in only if i < n_events])
        if top is not None and n_events in only:
            yield top()

    def add_up() -> EventSums:
        return sums_of(rows, events(), n_events, how, scored=scored)

    return EventsInMemory(rows, n_events, events, add_up, sample)


def sums_of(
    rows: PartEvents,
    events: Iterable[BinaryEvent],
    n_events: int,
    how: Split,
    runs: Callable[[BinaryEvent, Sequence[Any]], None] | None = None,
    scored: Collection[int] = (),
) -> EventSums:
    """The sums of events but for their forecasts, which `runs` takes with their columns.

    The event after the first `n_events` is about the most likely class and has no loss. Lists have none.
    Groups also have the sums of the `scored` events.
    """
    totals: list[list[float]] = []
    gaps: list[Floats] = []
    scores: list[Floats] = []
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
            sums = [claim.sum(), hit.sum(), variance, loss.sum(), infinite]
        else:
            columns = [total, total * hit, total * claim, total * total]
            variance = (columns[3] * claim * (1 - claim)).sum()
            sums = [columns[2].sum(), columns[1].sum(), variance, (total * loss).sum(), infinite]
        totals.append([float(number) for number in sums])
        if rows.groups is not None:
            gaps.append(claim - hit if rows.weights is None else total * (claim - hit))
            if i in scored:
                q = np.clip(event.ranked, 0.0, 1.0)
                scores += row_scores(q, log_odds(q), -gaps[-1], total * total)
        if runs is not None:
            runs(event, columns)
    totals += [[0.0] * 5] * (n_events + 1 - len(totals))
    labels = groups = None
    if rows.groups is not None:
        if not rows.entries:
            # As wide with the event about the most likely class as without it.
            gaps += [np.zeros_like(total)] * (n_events + 1 - len(gaps))
        labels, groups = sums_by_label(event.of_rows(rows.labels), np.column_stack([total, *gaps, *scores]))
    return EventSums(
        n_events,
        KeyedSums(forecast_keys, EXACT, {}),
        Sum.of(totals),
        Sum.of([total.sum(), (total**2).sum(), len(total)]),
        bool((mass == np.floor(mass)).all()),
        labels,
        groups,
    )


def counted_sums(
    rows: PartEvents,
    events: Iterable[BinaryEvent],
    n_events: int,
    how: Split,
    *,
    level: int,
    scored: Collection[int] = (),
) -> EventSums:
    """The sums of events, by distinct forecast or in bins of a level."""
    tables: dict[int, Keyed] = {}

    def count(event: BinaryEvent, columns: Sequence[Any]) -> None:
        # A row may sum to more than one, within its tolerance.
        ranked = np.clip(event.ranked, 0.0, 1.0) if level == EXACT else event.ranked
        tables[len(tables)] = Keyed((Run.of_values(ranked, forecast_keys, level, columns),))

    sums = sums_of(rows, events, n_events, how, count, scored)
    return replace(sums, forecasts=KeyedSums(forecast_keys, level, tables)).fitting()


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
    scored : bool
        Whether groups have the sums of score tests. The name is the same.
    """

    model: str
    thresholds: bool
    binary: Literal["squared", "log"] = "squared"
    with_top: bool = field(default=True, repr=False)
    scored: bool = field(default=False, repr=False)

    def named_by(self) -> Mapping[str, Any]:
        """Neither whether the most likely class is counted matters, nor what groups have."""
        return {"model": self.model, "thresholds": self.thresholds, "binary": self.binary}

    def how(self, n_classes: int) -> Split:
        """The score of the events; of two classes there are always both."""
        names = {("squared", True): "rps", ("log", True): "ranked_log", ("squared", False): "brier"}
        return split(RULES[names.get((self.binary, self.thresholds), "log_score")], n_classes)

    def sizes(self, known: Mapping[str, int]) -> dict[str, int]:
        """The number of events."""
        if "classes" not in known:
            return {}
        return {"n_events": n_events(self.how(known["classes"]), known["classes"])}

    def take(self, part: Part) -> Any:
        """Sum up the rows of one part."""
        return self.more(part, None)

    def more(self, part: Part, before: EventSums | None) -> Any:
        """Sum up the rows of one part, in bins where the rows so far are; rows in memory when asked to."""
        n_classes = part.models[self.model].n_classes
        how = self.how(n_classes)
        source, n = RowEvents(self.model, how), n_events(how, n_classes)
        rows, top = source.read(part), partial(source.most_likely, part)
        scored = scored_over_groups(n, n_classes) if self.scored else ()
        if part.whole:
            return in_memory(rows, n, how, top=top, sample=partial(self.sample, part), scored=scored)
        events = itertools.chain(rows.events(), (make() for make in [top] if self.with_top))
        level = EXACT if before is None else before.forecasts.level
        if level == EXACT and _too_many(rows, n + self.with_top):
            level = 0
        sums = counted_sums(rows, events, n, how, level=level, scored=scored)
        return replace(sums, sample=self.sample(part))

    def sample(self, part: Part) -> Keyed | None:
        """A few rows of a part; None where events say nothing about each other."""
        forecasts = dense(part, self.model)
        if forecasts.groups is not None or forecasts.n_classes == 2:
            # Groups are drawn together, and two classes are one event and its opposite.
            return None
        p, weights = probabilities(part, self.model), outcomes(part, self.model)[1]
        if weights is not None and not weights.all():
            p, weights = p[weights > 0], weights[weights > 0]
        return sample_of(p, weights)


def _too_many(rows: PartEvents, n: int) -> bool:
    """Whether the first rows of a part have more distinct forecasts of `n` events than are kept: counting all
    of them exactly would be in vain.
    """
    most = settings.exact_up_to
    if rows.n_rows * n <= most:
        return False
    first = slice(0, 2 * most // n)
    numbers = itertools.accumulate(n_distinct(event.ranked[first]) for event in rows.events())
    return any(n_values > most for n_values in numbers)


# Statements of longer lists are not counted in cells.
_LONGEST = 64


@dataclass(frozen=True)
class Statements:
    """The sums of the statements of all lists; (P + 1) rows: the places, and the whole list.

    Attributes
    ----------
    weight, claimed, happened : array of shape (P + 1, C)
        By cell: the weight, the weighted confidences, and the weight of those that happened.
    squares, hits : array of shape (P + 1,)
        The weighted squares of the confidences, and the weighted confidences of those that happened.
    variance : array of shape (P + 1,)
        The variance of the weighted number that happens, if lists are independent and confidences right.
    lists : (P + 1,) int array
        The number of lists that make each statement.
    """

    weight: Floats
    claimed: Floats
    happened: Floats
    squares: Floats
    hits: Floats
    variance: Floats
    lists: np.ndarray[tuple[int, ...], np.dtype[np.int64]]

    @classmethod
    def fit(cls, rows: ListRows) -> bool:
        """Whether there are enough lists for counting to pay. Groups need the single lists."""
        batch = rows.batch(0, rows.n_rows)
        n_entries, longest = batch.lists.confidences.size, int(batch.lists.lengths.max())
        if n_entries < settings.entries_in_cells_from or longest > _LONGEST or rows.groups is not None:
            return False
        return compiles(n_entries, Statements)

    @classmethod
    def of(cls, rows: ListRows) -> Statements:
        """One pass over the lists, by all threads; sums are added in the order of the rows."""
        from verax.kernels.lists import N_CELLS, count_statements

        batch = rows.batch(0, rows.n_rows)
        lists, n_rows = batch.lists, rows.n_rows
        n_events = int(lists.lengths.max()) + 1
        # Extreme weights are brought to the size of one.
        w = np.ones(1) if batch.weights is None else batch.weights / batch.weights.max()
        edges = np.linspace(0, n_rows, n_cores() + 1, dtype=np.int64).tolist()

        def count(a: int, b: int) -> tuple[Floats, Floats]:
            tables, sums = np.zeros((3, n_events, N_CELLS)), np.zeros((n_events, 4))
            weights = w if len(w) == 1 else w[a:b]
            given = (lists.classes, lists.confidences, lists.offsets[a : b + 1], batch.survey.total[a:b])
            count_statements(*given, batch.y[a:b], weights, *tables, sums)
            return tables, sums

        with ThreadPoolExecutor(n_cores()) as pool:
            parts = list(pool.map(count, edges[:-1], edges[1:]))
        weight, claimed, happened = np.sum([tables for tables, _ in parts], axis=0)
        squares, hits, first, second = np.sum([sums for _, sums in parts], axis=0).T
        variance = claimed.sum(axis=1) - squares if len(w) == 1 else first - second
        positive = lists.lengths if len(w) == 1 else lists.lengths[w > 0]
        makers = np.append([np.count_nonzero(positive > j) for j in range(n_events - 1)], len(positive))
        return cls(weight, claimed, happened, squares, hits, np.maximum(variance, 0.0), makers)

    def _events(self, places: int) -> Iterator[tuple[str, slice]]:
        """The names of the events, and the rows that they add up from."""
        last = len(self.weight) - 1
        for j in range(min(places, last)):
            yield place_name(j + 1), slice(j, j + 1)
        yield ANY, slice(0, last)
        yield WHOLE, slice(last, last + 1)

    def sums(self, places: int) -> dict[str, EventSums]:
        """The sums of every event, whose cells are like distinct confidences."""
        return {name: self._sums(name, rows) for name, rows in self._events(places)}

    def _sums(self, name: str, rows: slice) -> EventSums:
        weight, claimed, happened = (
            table[rows].sum(axis=0) for table in (self.weight, self.claimed, self.happened)
        )
        filled = weight > 0
        weight, claimed, happened = weight[filled], claimed[filled], happened[filled]
        squares, hits, variance = (
            float(column[rows].sum()) for column in (self.squares, self.hits, self.variance)
        )
        total, hit = float(weight.sum()), float(happened.sum())
        totals = [float(claimed.sum()), hit, variance, squares - 2 * hits + hit, 0.0]
        n_lists, mean = int(self.lists[rows].max()), np.minimum(claimed / weight, 1.0)
        run = Run(
            exact_keys(mean),
            Sum.of(np.stack([weight, happened, claimed, weight], axis=1)),
            mean[:, None],
            mean[:, None],
        )
        # Nothing is drawn, so nobody asks for the squares of the weights.
        sums = Sum.of([total, np.nan, n_lists])
        forecasts = KeyedSums(forecast_keys, EXACT, {0: Keyed((run,))})
        return EventSums(1, forecasts, Sum.of([totals, [0.0] * 5]), sums, False)


# The sums over all lists.
WEIGHT, LENGTH, LEFT_OUT = range(3)


class ListSums(Summary, kind="event histograms of lists"):
    """The sums of the events of lists, without the lists.

    Attributes
    ----------
    events : Mapping
        The sums of each event by its name; a place that no list reaches has none.
    totals : Sum
        (3,) sums over all lists of the weight, of the weight times the length, and of the weight times what
        the padded Brier score has more than that of the events.
    n_lists, longest : int
        The number of lists that have weight, and the length of the longest.
    n_invalid : int
        The number of invalid lists, with those of weight zero.
    """

    events: Mapping[str, Events] = merges(Each(Valued(EventSums, packed=True), "union"))
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
        The number of first places that are events, beside any place and the whole list.
    scored : bool
        Instead the events that the score is made of: those of the largest valid sublists.
    cells : bool
        Whether very many lists in memory may be counted in cells of nearly equal confidences.
    with_scores : bool
        Whether groups have the sums of score tests.
    """

    model: str
    places: int = 0
    scored: bool = False
    cells: bool = field(default=False, metadata=LATER)
    with_scores: bool = field(default=False, repr=False)

    def named_by(self) -> Mapping[str, Any]:
        """Whether groups have sums of score tests does not matter."""
        named = {"model": self.model, "places": self.places, "scored": self.scored}
        return {**named, **({"cells": True} if self.cells else {})}

    def check(self, sums: ListSums) -> None:
        """Refuse sums of other events."""
        missing = set(self.names(sums)).symmetric_difference(sums.events)
        # Invalid lists may have an empty valid sublist, whatever their length.
        if missing - ({LISTED} if self.scored and sums.n_invalid else set()):
            raise UnreadableError("is about other events", "events")

    def names(self, sums: ListSums) -> list[str]:
        """The events that lists of these lengths have."""
        if not sums.n_lists:
            return []
        if self.scored:
            return [*([LISTED] if sums.longest else []), UNLISTED]
        return list_event_names(sums.longest, self.places)

    def take(self, part: Part) -> ListSums:
        """Sum up the lists of one part."""
        return self.more(part, None)

    def more(self, part: Part, before: ListSums | None) -> ListSums:
        """Sum up the lists of one part, in bins where the lists so far are; lists in memory when asked to."""
        lists_read = lists_of(part, self.model)
        if not lists_read.n_lists:
            return ListSums({}, Sum.zeros((3,)), 0, lists_read.n_invalid, 0)
        w = np.ones(lists_read.n_lists) if lists_read.weights is None else lists_read.weights
        numbers = lists_read.n_lists, lists_read.n_invalid, lists_read.longest
        scored = lists_read.as_scored() if self.scored else lists_read
        left_out = scored.left_out if self.scored else np.zeros(1)
        sums = Sum.of([w.sum(), (w * scored.lists.lengths).sum(), (w * left_out).sum()])
        names = tuple(scored.scored() if self.scored else scored.stated(self.places))
        lists = part.models[self.model]
        assert isinstance(lists, ListRows)
        if self.cells and Statements.fit(lists):
            # There, weights are relative to the largest.
            sums = Sum.of(sums.high / w.max())
            return ListSums(Statements.of(lists).sums(self.places), sums, *numbers)
        rows = ListSource(self.model, names, self.scored).of(lists_read)
        events: dict[str, Events] = {}
        scored_places = (0,) if self.with_scores else ()
        for i, name in enumerate(names):
            if part.whole:
                events[name] = in_memory(rows, 1, SQUARED, first=i, scored=scored_places)
                continue
            earlier = None if before is None else before.events.get(name)
            level = earlier.forecasts.level if isinstance(earlier, EventSums) else EXACT
            events[name] = counted_sums(rows, rows.events([i]), 1, SQUARED, level=level, scored=scored_places)
        return ListSums(events, sums, *numbers)


# ---- all events --------------------------------------------------------------------------------


@dataclass(frozen=True)
class AllEvents:
    """The events of rows or of lists, one after the other, as they were summed.

    Attributes
    ----------
    how : Split
        The way each is scored.
    sums : tuple of Events
        Their sums: those of rows together, those of lists each alone.
    names : tuple of tuple of str
        The names of the events in each of the sums.
    source : EventSource
        The source of the events in another pass.
    """

    how: Split
    sums: tuple[Events, ...]
    names: tuple[tuple[str, ...], ...]
    source: EventSource

    @classmethod
    def of(
        cls, summary: Events | ListSums, how: Split, names: Sequence[str], model: str, *, scored: bool = False
    ) -> AllEvents:
        """The classes or thresholds of distributions, or the events of lists that have one; with weight."""
        if isinstance(summary, ListSums):
            check_weight(float(summary.totals.high[WEIGHT]))
            names = tuple(name for name in names if name in summary.events)
            sums, alone = tuple(summary.events[name] for name in names), tuple((name,) for name in names)
            return cls(how, sums, alone, ListSource(model, names, scored))
        if summary.rows is None:
            check_weight(float(summary.weight.high[0]))
        return cls(how, (summary,), (tuple(names),), RowEvents(model, how))

    @property
    def last(self) -> Events:
        """The sums of the event that all rows have an element of."""
        return self.sums[-1]

    def makers(self) -> Iterator[Callable[[], SummedEvent]]:
        """Functions that make the events."""
        for sums, names in zip(self.sums, self.names, strict=True):
            yield from sums.makers(names)
