"""Events of rows, counted by distinct forecast, or by bins of forecasts where there are too many."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, Literal

import numpy as np

from verax.analyses.binary import BinaryEvent
from verax.analyses.calibration.events import IsotonicFit, Split, n_events, recalibrate, split
from verax.analyses.calibration.sources import PartEvents, RowEvents
from verax.analyses.parts import dense, probabilities, seen
from verax.common.caching import cached_property
from verax.common.packing import UnreadableError
from verax.common.sizes import EXACT_UP_TO
from verax.common.specs import Each, Truth, Valued, Whole
from verax.common.stored import only_weights, within
from verax.common.stored import whole as whole_number
from verax.common.summaries import Summary, merges
from verax.engines.clusters import ByLabel, GroupLabels, sums_by_label
from verax.engines.histograms import Keyed, Run, compiled, joined, share_numbers
from verax.engines.ranks import MOST_KEY, distinct, exact_keys, values_of
from verax.engines.sums import Sum, Sums
from verax.engines.tables import EventTable, cumulated, group_gaps
from verax.inputs.arrays import Floats, Ints
from verax.inputs.groups import Groups, check_one_way
from verax.inputs.handles import Gathering, Part, Recipe
from verax.scores.registry import RULES

# Numbers of bins from 0 to the middle, and from 1 downwards: bins are narrow near both ends.
_SPAN, _ONE = 2**16, 2**15
# The number of distinct forecasts of all events together that are told apart. Beyond it rows are counted in
# bins, whose neighbours are joined where there would be too many.
MOST_VALUES, _MOST, _LEVELS = EXACT_UP_TO, 2**20, 10
# The level at which every distinct forecast has a key of its own.
EXACT = -1
# How many events may have tables of all bins.
_TABLES = 64
# The sums over all rows of each event.
CLAIM, HIT, VARIANCE, LOSS, INFINITE = range(5)


def forecast_bins(q: Floats) -> Ints:
    """The number of the bin of each probability; it grows with it, and 0 and 1 have bins of their own.

    >>> forecast_bins(np.array([0.0, 1e-7, 0.3, 0.7, 1 - 1e-7, 1.0])).tolist()
    [0, 1, 8401, 24367, 32767, 32768]
    """
    return share_numbers(q, _ONE)


def _joined(keys: Ints, times: int) -> Ints:
    event, number = np.divmod(keys, _SPAN)
    upper = number > _ONE // 2
    return np.asarray(
        event * _SPAN + np.where(upper, _ONE - joined(_ONE - number, times), joined(number, times))
    )


def keys_of(q: Floats, level: int) -> Ints:
    """The key of each probability: an exact one, or the number of its bin after joining neighbours."""
    if level == EXACT:
        return exact_keys(np.clip(q, 0.0, 1.0))
    return _joined(forecast_bins(q), level)


def run_of(key: Floats, sums: Sequence[Any], *, exact: bool) -> Run:
    """Sums of rows by exact key, or by bin."""
    if not exact:
        return Run.of(forecast_bins(key), sums, [key])
    key = np.clip(key, 0.0, 1.0)
    different, place = distinct(key)
    run = Run.of(place, sums, [key])
    return replace(run, keys=exact_keys(different))


NO_BINS = Keyed((Run(np.zeros(0, np.int64), Sum.zeros((0, 4)), np.zeros((0, 1)), np.zeros((0, 1))),))


class EventSums(Summary, kind="event histograms", version=2):
    """What is known of the events of rows, without the rows.

    Attributes
    ----------
    n_events : int
        The number of classes or thresholds; one more event is that the most likely class happens.
    level : int
        How often neighbouring bins were joined; `EXACT` where there are no bins.
    bins : Keyed
        By event and bin of its forecast q: the sums of w, of w where it happened, of w*q and of w*w; and the
        extremes of q. Empty where rows are counted exactly.
    totals : Sum
        (n_events + 1, 5) sums over all rows: of w*q and w of where it happened, of w*w*q*(1-q), of w times
        the loss, and of w where that is infinite.
    weight : Sum
        (3,) sums of w, of w*w, and the number of rows that have weight.
    whole : bool
        Whether all weights are whole numbers.
    labels, groups : arrays or None
        The groups, and the sums of w and of w*(q - happened) for each event in each of them.
    values : mapping of int to Keyed
        The sums of `bins` by exact key, for each event; empty where there are bins.
    """

    n_events: int = merges(Whole("equal", least=1))
    level: int = merges(Whole("first", least=EXACT, most=_LEVELS))
    bins: Keyed = merges(Valued(Keyed))
    totals: Sum = merges(Sums("n_events+1", 5))
    weight: Sum = merges(Sums(3, least=0))
    whole: bool = merges(Truth("all"))
    labels: Any = merges(GroupLabels(), default=None)
    groups: Floats | None = merges(ByLabel("sums"), default=None)
    values: Mapping[int, Keyed] = merges(Each(Valued(Keyed), "union", names=whole_number), factory=dict)

    @classmethod
    def _named(cls, values: Mapping[str, Any]) -> Mapping[str, Any]:
        # Version 1 had bins only.
        return {"values": {}, **values}

    def _aligned(self, other: EventSums) -> tuple[EventSums, EventSums]:
        level = max(self.level, other.level)
        return self._at(level), other._at(level)

    def _merged(self) -> EventSums:
        return self.fitting()

    def _check(self) -> None:
        for i, keyed in self.values.items():
            within(np.array([i]), 0, self.n_events)
            run = keyed.total
            if run.sums.high.shape[1] != 4 or run.least.shape[1] != 1 or not (run.sums.high[:, 0] > 0).all():
                raise UnreadableError("has other sums than those of forecasts and outcomes", "values", str(i))
            within(run.keys, 0, MOST_KEY)
            only_weights(run.sums.high[:, :3])
        run = self.bins.total
        if len(run.keys) if self.level == EXACT else self.values:
            raise UnreadableError("has both exact values and bins", "values")
        if run.sums.high.shape[1] != 4 or run.least.shape[1] != 1:
            raise UnreadableError("has other sums than those of forecasts and outcomes", "bins")
        # The most likely class is one more event, except of lists.
        if self.groups is not None and self.groups.shape[1] not in (self.n_events + 1, self.n_events + 2):
            raise UnreadableError("has sums of other events", "groups")
        within(run.keys, 0, _SPAN * (self.n_events + 1) - 1)
        only_weights(run.sums.high[:, :3])
        only_weights(self.weight.high[:1])
        if not (run.sums.high[:, 0] > 0).all() or not np.isfinite(self.weight.high[2]):
            raise UnreadableError("has bins without rows, or no number of rows", "bins")

    def _at(self, level: int) -> EventSums:
        if level == self.level:
            return self
        if self.level == EXACT:
            return self._in_bins()._at(level)
        run = self.bins.total
        fewer = replace(run, keys=_joined(run.keys, level - self.level))
        return replace(self, level=level, bins=Keyed((Run.merged([fewer]),)))

    def _in_bins(self) -> EventSums:
        """The same in bins of forecasts instead of exact values."""
        runs = [
            replace(run, keys=forecast_bins(values_of(run.keys)) + _SPAN * i)
            for i in sorted(self.values)
            for run in [self.values[i].total]
        ]
        bins = Keyed((Run.merged([_one_after_the_other(runs)]),)) if runs else NO_BINS
        return replace(self, level=0, bins=bins, values={})

    def _with_runs_added(self) -> EventSums:
        """The same with the runs of every event added up."""
        return replace(self, values={i: Keyed((own.total,)) for i, own in self.values.items()})

    @property
    def n_keys(self) -> int:
        """The number of keys of all events, some of them several times before runs are added up."""
        return sum(len(run.keys) for keyed in (self.bins, *self.values.values()) for run in keyed.runs)

    def fitting(self) -> EventSums:
        """With as few bins joined as fit into memory, whatever the order of merging."""
        if self.level == EXACT:
            found = self if self.n_keys <= MOST_VALUES else self._with_runs_added()
            return found if found.n_keys <= MOST_VALUES else found._at(0).fitting()
        found = self
        while found.level < _LEVELS and sum(len(run.keys) for run in found.bins.runs) > _MOST:
            if len(found.bins.total.keys) <= _MOST:
                return replace(found, bins=Keyed((found.bins.total,)))
            found = found._at(found.level + 1)
        return found

    def at_most(self, keys: int, spare: int = 1) -> EventSums:
        """With neighbouring bins joined until there are no more than that, if possible. They are not even
        added up where there are no more than `spare` times as many.
        """
        if self.n_keys <= keys * spare:
            return self
        if self.level == EXACT:
            exact = self._with_runs_added()
            return exact if exact.n_keys <= keys else exact._at(0).at_most(keys, spare)
        own, times = self.bins.total.keys, 0
        # Keys stay in order when neighbours are joined.
        while self.level + times < _LEVELS and 1 + np.count_nonzero(np.diff(_joined(own, times))) > keys:
            times += 1
        return self._at(self.level + times)

    @property
    def n_rows(self) -> int:
        """The number of rows that have weight."""
        return int(self.weight.high[2])

    @cached_property
    def _edges(self) -> Ints:
        return np.searchsorted(self.bins.total.keys, _SPAN * np.arange(self.n_events + 2))

    def numbers(self, i: int) -> Ints:
        """The keys of one event: of its distinct forecasts, or of its bins."""
        if self.level == EXACT:
            return self._exact(i).keys
        return self.bins.total.keys[self._edges[i] : self._edges[i + 1]] - _SPAN * i

    def _exact(self, i: int) -> Run:
        return self.values[i].total if i in self.values else NO_BINS.total

    def of(self, i: int) -> EventBins:
        """The distinct forecasts of one event, or its bins."""
        run, own = self.bins.total, slice(self._edges[i], self._edges[i + 1])
        if self.level == EXACT:
            run, own = self._exact(i), slice(None)
        weight, happened, claimed, squares = run.sums.high[own].T
        return EventBins(weight, happened, claimed, squares, run.least[own, 0], run.most[own, 0])

    # ---- what conclusions ask ----------------------------------------------------------------

    @property
    def rows(self) -> PartEvents | None:
        """The rows themselves, where they are in memory."""
        return None

    def repeated(self) -> EventSums:
        """The same of rows that are repeated as often as their weights say, where they are in memory."""
        return self

    @property
    def n_groups(self) -> int | None:
        """The number of groups; None without groups."""
        return None if self.groups is None else len(self.groups)

    def mean_loss(self, i: int, how: Split) -> float:
        """The mean loss of an event; infinite where a row has an infinite one."""
        totals = self.totals.high[i]
        # Losses were summed in natural logarithms.
        return math.inf if totals[INFINITE] > 0 else how.unit * float(totals[LOSS] / self.weight.high[0])

    def event(self, i: int, name: str) -> SummedEvent:
        """What is known of one event."""
        return SummedEvent(name, self, i)

    def each(self, names: Sequence[str]) -> Iterator[Callable[[], SummedEvent]]:
        """What gives each event, one after the other."""
        return (partial(self.event, i, name) for i, name in enumerate(names))


@dataclass(frozen=True)
class EventBins:
    """The bins of one event, by increasing forecast: weights, with the event, times forecast, squared."""

    weight: Floats
    happened: Floats
    claimed: Floats
    squares: Floats
    least: Floats
    most: Floats

    @property
    def forecast(self) -> Floats:
        """The mean forecast in each bin."""
        return np.clip(self.claimed / self.weight, self.least, self.most)

    @property
    def cells(self) -> Floats:
        """(n, 2) weights without and with the event."""
        return np.stack([np.maximum(self.weight - self.happened, 0.0), self.happened], axis=1)

    @property
    def sorted_cells(self) -> Floats:
        """The same as if in each bin the rows without the event had the smaller forecasts; ties stay
        pooled.
        """
        without, happened = self.cells.T
        tied = self.least == self.most
        first = np.stack([without, np.where(tied, happened, 0.0)], axis=1)
        second = np.stack([np.zeros_like(without), np.where(tied, 0.0, happened)], axis=1)
        return np.stack([first, second], axis=1).reshape(-1, 2)


@dataclass(frozen=True)
class SummedEvent:
    """What is known of one event of sums: its distinct forecasts or bins and, in memory, its rows.

    Attributes
    ----------
    name : str
        What the event is called.
    sums : EventSums
        The sums that it belongs to.
    i : int
        Its number in them.
    rows : BinaryEvent or None
        Its rows, where they are in memory.
    """

    name: str
    sums: EventSums
    i: int
    rows: BinaryEvent | None = None

    @cached_property
    def weights(self) -> Floats | None:
        """The weight of each of its rows in memory; None where all have weight 1."""
        assert self.rows is not None
        assert self.sums.rows is not None
        return None if self.sums.rows.weights is None else self.rows.of_rows(self.sums.rows.weights)

    @cached_property
    def bins(self) -> EventBins:
        """The distinct forecasts, or the bins."""
        if self.rows is None:
            return self.sums.of(self.i)
        return bins_of_rows(self.rows, self.weights)

    @cached_property
    def cells(self) -> Floats:
        """(P, 2) weights without and with the event."""
        return self.bins.cells if self.rows is None else self.rows.cells(self.weights)

    @cached_property
    def fit(self) -> IsotonicFit:
        """The isotonic fit."""
        return recalibrate(self.cells)

    def score(self, how: Split) -> float:
        """The mean loss; infinite where a row has an infinite loss."""
        if self.rows is None:
            return self.sums.mean_loss(self.i, how)
        losses, weights = how.losses(self.rows.given, self.rows.rest, self.rows.happened), self.weights
        # No matrix product: its sums depend on the number of threads.
        return float(losses.mean() if weights is None else (weights * losses).sum() / weights.sum())

    def components(self, how: Split) -> tuple[Floats, float]:
        """Score, miscalibration, discrimination, uncertainty, and how much larger the middle two may be."""
        blocks = self.fit.blocks
        whole = blocks.sum(axis=0, keepdims=True)
        weight, score = float(whole.sum()), self.score(how)
        uncertainty, fitted = how.entropy(whole) / weight, how.entropy(blocks) / weight
        within = 0.0
        if self.rows is None and self.sums.level != EXACT:
            best = how.entropy(recalibrate(self.bins.sorted_cells).blocks) / weight
            within = max(fitted - best, 0.0)
        return np.array([score, score - fitted, uncertainty - fitted, uncertainty]), within


def bins_of_rows(event: BinaryEvent, weights: Floats | None) -> EventBins:
    """The distinct forecasts of rows in memory."""
    w = np.ones(len(event.given)) if weights is None else weights
    forecast = event.values
    weight, happened, squares = (event.sums(column) for column in (w, w * event.happened, w * w))
    return EventBins(weight, happened, weight * forecast, squares, forecast, forecast)


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
    ) -> None:
        """The events from number `first` on, and `top` about the most likely class."""
        # Frozen: what is not a field, or is made later, is put in place past the check.
        held = {"_rows": rows, "_how": how, "_top": top, "_first": first}
        vars(self).update(n_events=n_events, level=EXACT, bins=NO_BINS, **held)

    @property
    def rows(self) -> PartEvents:
        """The rows themselves."""
        found: PartEvents = vars(self)["_rows"]
        return found

    def repeated(self) -> EventSums:
        """The same of rows that are repeated as often as their weights say."""
        return HeldEvents(self.rows.repeated(), self.n_events, vars(self)["_how"], first=vars(self)["_first"])

    @property
    def n_groups(self) -> int | None:
        """The number of groups; None without groups."""
        groups = self.rows.groups
        return None if groups is None else len(np.unique(groups.codes))

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
    """The events of one model: every class, or every threshold of ordered classes."""

    model: str
    thresholds: bool
    binary: Literal["squared", "log"] = "squared"

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
            return HeldEvents(rows, n, how, top)
        events = itertools.chain(rows.each(), (make() for make in [top]))
        return counted_sums(rows, events, n, how, exact=found is None or found.level == EXACT)


class _Gathered:
    """Sums of parts, whose rows are added to tables in place where that is possible."""

    def __init__(self, recipe: EventRecipe) -> None:
        self._recipe = recipe
        self._tables: list[EventTable] = []
        self._weight, self._whole = Sum.zeros(3), True
        self._groups: tuple[Any, Floats] | None = None
        self._others: EventSums | None = None

    def add(self, part: Part) -> None:
        exact = not self._tables and (self._others is None or self._others.level == EXACT)
        if exact or not self._added(part):
            found = self._recipe.more(part, self._others)
            self._others = found if self._others is None else self._others.merge(found)

    def _added(self, part: Part) -> bool:
        """Add the rows to the tables, if there are few events that are scored by squared errors."""
        recipe, forecasts = self._recipe, dense(part, self._recipe.model)
        check_one_way(forecasts.groups, "calibration")
        how, weighted = recipe.how(forecasts.n_classes), forecasts.weights is not None
        n = n_events(how, forecasts.n_classes)
        if n > _TABLES or how.binary != "squared" or not compiled(part.n_rows):
            return False
        self._tables = self._tables or [EventTable(_ONE, weighted=weighted) for _ in range(n + 1)]
        if self._tables[0].weighted != weighted:
            return False
        events = list(self._events(part, how))
        weights = seen(part, recipe.model, ()).weights
        for table, event in zip(self._tables, events, strict=True):
            table.add(*event, weights)
        if weights is None:
            self._weight += Sum.of([part.n_rows] * 3)
        else:
            self._weight += Sum.of([weights.sum(), (weights * weights).sum(), np.count_nonzero(weights)])
            self._whole = self._whole and bool((weights == np.floor(weights)).all())
        if forecasts.groups is not None:
            self._add_groups(forecasts.groups, weights, [(given, hit) for _, given, _, hit, _ in events])
        return True

    def _events(self, part: Part, how: Split) -> Iterator[tuple[Floats, Floats, Floats | None, Any, float]]:
        """What ranks each event, its probability and that of the rest, where it happened, and to how many
        digits it is rounded; as `binary_events` has them, and the most likely class in the end.
        """
        model, n = self._recipe.model, len(self._tables) - 1
        rows, p = seen(part, model, ()), probabilities(part, model)
        below = above = np.ascontiguousarray(p.T)
        scale = 0.0
        if how.thresholds:
            below, above = cumulated(below)
            scale = 10.0 ** dense(part, model).unity.decimals
        # Short numbers are compared faster.
        y = rows.y.astype(np.uint8)
        for i in range(n):
            rest = above[i + 1] if how.thresholds else None
            yield below[i], below[i], rest, y <= i if how.thresholds else y == i, scale
        yield rows.top, rows.top, None, rows.decision == rows.y, 0.0

    def _add_groups(self, groups: Groups, weights: Floats | None, events: list[tuple[Floats, Any]]) -> None:
        """Add to the sums of each group; those without weight are left out."""
        codes, n = groups.codes, len(groups.labels)
        weight = np.bincount(codes, weights, n).astype(float)
        columns = [weight, *(group_gaps(given, hit, weights, codes, n) for given, hit in events)]
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
        runs = [table.run() for table in self._tables]
        totals = np.zeros((2, len(runs), 5))
        for i, table in enumerate(self._tables):
            totals[:, i, :INFINITE] = table.totals.to_values()
        n = len(runs) - 1
        sums = Sum.from_values(totals, (n + 1, 5))
        labels, groups = (None, None) if self._groups is None else self._groups
        bins = counted(runs, exact=False)
        found = EventSums(n, *bins, sums, self._weight, self._whole, labels, groups).fitting()
        return found if self._others is None else found.merge(self._others)


def counted(runs: Sequence[Run], *, exact: bool) -> tuple[int, Keyed]:
    """The level and the bins of events that have these runs."""
    if exact:
        return EXACT, NO_BINS
    numbered = [replace(run, keys=run.keys + _SPAN * i) for i, run in enumerate(runs)]
    return 0, Keyed((_one_after_the_other(numbered),))


def _one_after_the_other(runs: list[Run]) -> Run:
    """Runs whose keys follow one another as one."""
    return Run(
        np.concatenate([run.keys for run in runs]),
        Sum(*(np.concatenate([getattr(run.sums, name) for run in runs]) for name in ("high", "low"))),
        np.concatenate([run.least for run in runs]),
        np.concatenate([run.most for run in runs]),
    )
