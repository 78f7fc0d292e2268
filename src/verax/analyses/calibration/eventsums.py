"""Events of rows, counted by distinct forecast, or by bins of forecasts where there are too many."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from verax._settings import settings
from verax.analyses.binary import BinaryEvent
from verax.analyses.calibration.dependence import check_sample, trimmed
from verax.analyses.calibration.event_keys import (
    EXACT,
    NO_BINS,
    SPAN,
    forecast_bins,
    joined_keys,
    one_after_the_other,
)
from verax.analyses.calibration.events import IsotonicFit, Split, recalibrate_many
from verax.analyses.calibration.sources import PartEvents
from verax.analyses.calibration.walks import Walk, sorted_rows, squared_error
from verax.common.caching import cached_property
from verax.common.packing import UnreadableError
from verax.common.sorting import n_distinct
from verax.common.specs import Each, Truth, Valued, Whole
from verax.common.stored import only_weights, within
from verax.common.stored import whole as whole_number
from verax.common.summaries import Summary, merges
from verax.engines.clusters import ByLabel, GroupLabels
from verax.engines.histograms import Keyed, Run
from verax.engines.ranks import MOST_KEY, values_of
from verax.engines.sums import Sum, Sums
from verax.inputs.arrays import Floats, Ints

# Distinct forecasts of all events together are told apart. Many of them are counted in bins, whose neighbours
# are joined up to this number of times.
LEVELS = 10
# The sums over all rows of each event.
CLAIM, HIT, VARIANCE, LOSS, INFINITE = range(5)


class EventSums(Summary, kind="event histograms", version=3):
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
    sample : Keyed or None
        A few rows of independent ones, which tell how the events depend on each other (`dependence`). None
        where it is not needed, and in what older versions stored.
    """

    n_events: int = merges(Whole("equal", least=1))
    level: int = merges(Whole("first", least=EXACT, most=LEVELS))
    bins: Keyed = merges(Valued(Keyed))
    totals: Sum = merges(Sums("n_events+1", 5))
    weight: Sum = merges(Sums(3, least=0))
    whole: bool = merges(Truth("all"))
    labels: Any = merges(GroupLabels(), default=None)
    groups: Floats | None = merges(ByLabel("sums"), default=None)
    values: Mapping[int, Keyed] = merges(Each(Valued(Keyed), "union", names=whole_number), factory=dict)
    sample: Keyed | None = merges(Valued(Keyed, optional=True), default=None)

    @classmethod
    def _named(cls, values: Mapping[str, Any]) -> Mapping[str, Any]:
        # Version 1 had bins only, and version 2 no sample of rows.
        return {"values": {}, "sample": None, **values}

    def _aligned(self, other: EventSums) -> tuple[EventSums, EventSums]:
        level = max(self.level, other.level)
        return self._at(level), other._at(level)

    def _merged(self) -> EventSums:
        found = self if self.sample is None else replace(self, sample=trimmed(self.sample))
        return found.fitting()

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
        within(run.keys, 0, SPAN * (self.n_events + 1) - 1)
        only_weights(run.sums.high[:, :3])
        only_weights(self.weight.high[:1])
        if not (run.sums.high[:, 0] > 0).all() or not np.isfinite(self.weight.high[2]):
            raise UnreadableError("has bins without rows, or no number of rows", "bins")
        if self.sample is not None:
            check_sample(self.sample, self.n_events)

    def _at(self, level: int) -> EventSums:
        if level == self.level:
            return self
        if self.level == EXACT:
            return self._in_bins()._at(level)
        run = self.bins.total
        fewer = replace(run, keys=joined_keys(run.keys, level - self.level))
        return replace(self, level=level, bins=Keyed((Run.merged([fewer]),)))

    def _in_bins(self) -> EventSums:
        """The same in bins of forecasts instead of exact values."""

        def binned(i: int, run: Run) -> Run:
            return Run.merged([replace(run, keys=forecast_bins(values_of(run.keys)) + SPAN * i)])

        # Run by run: exact values of several parts may be many.
        runs = [Run.merged([binned(i, run) for run in self.values[i].runs]) for i in sorted(self.values)]
        bins = Keyed((one_after_the_other(runs),)) if runs else NO_BINS
        return replace(self, level=0, bins=bins, values={})

    def _with_runs_added(self) -> EventSums:
        """The same with the runs of every event added up."""
        return replace(self, values={i: Keyed((own.total,)) for i, own in self.values.items()})

    @property
    def n_keys(self) -> int:
        """The number of keys of all events, some of them several times before runs are added up."""
        return sum(len(run.keys) for keyed in (self.bins, *self.values.values()) for run in keyed.runs)

    @property
    def _n_values(self) -> int:
        """The number of distinct forecasts of all events, without adding up what is known of them."""
        return sum(n_distinct(np.concatenate([run.keys for run in own.runs])) for own in self.values.values())

    def fitting(self) -> EventSums:
        """With as few bins joined as fit into memory, whatever the order of merging."""
        if self.level == EXACT:
            if self.n_keys <= settings.exact_up_to:
                return self
            few = self._n_values <= settings.exact_up_to
            return self._with_runs_added() if few else self._at(0).fitting()
        found, most = self, settings.bins_up_to
        while found.level < LEVELS and sum(len(run.keys) for run in found.bins.runs) > most:
            if len(found.bins.total.keys) <= most:
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
            return self._with_runs_added() if self._n_values <= keys else self._at(0).at_most(keys, spare)
        own, times = self.bins.total.keys, 0
        # Keys stay in order when neighbours are joined.
        while self.level + times < LEVELS and 1 + np.count_nonzero(np.diff(joined_keys(own, times))) > keys:
            times += 1
        return self._at(self.level + times)

    @property
    def n_rows(self) -> int:
        """The number of rows that have weight."""
        return int(self.weight.high[2])

    @cached_property
    def _edges(self) -> Ints:
        return np.searchsorted(self.bins.total.keys, SPAN * np.arange(self.n_events + 2))

    def numbers(self, i: int) -> Ints:
        """The keys of one event: of its distinct forecasts, or of its bins."""
        if self.level == EXACT:
            return self._exact(i).keys
        return self.bins.total.keys[self._edges[i] : self._edges[i + 1]] - SPAN * i

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
        """The same as if in each bin the rows without the event had the smaller forecasts; ties stay pooled.

        Rows with the event are in one block with what follows them, so they are with the next bin.
        """
        n, tied = len(self.weight), self.least == self.most
        cells = np.zeros((n + 1, 2))
        cells[:n, 0] = np.maximum(self.weight - self.happened, 0.0)
        cells[:n, 1] = np.where(tied, self.happened, 0.0)
        cells[1:, 1] += np.where(tied, 0.0, self.happened)
        # There may be nothing before the first bin's rows with the event, and after the last bin.
        return cells[int(not cells[0].any()) : n + int(cells[n].any())]


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
        # Bins are made of the rows as the pass has sorted them, and take their memory.
        return bins_of_rows(self.rows, self.weights, vars(self).pop("_sorted", None))

    @property
    def cells(self) -> Floats:
        """(P, 2) weights without and with the event; not kept, because they may be many."""
        if self.rows is None or self.weights is None:
            return self.bins.cells
        return self.rows.cells(self.weights)

    @cached_property
    def walk(self) -> Walk | None:
        """One pass over many rows in memory that count alike; None elsewhere."""
        if self.rows is None or self.sums.rows is None or self.sums.rows.weights is not None:
            return None
        packed = sorted_rows(self.rows) if Walk.pays(self.rows) else None
        if packed is None:
            return None
        vars(self)["_sorted"] = packed
        return Walk.of(packed)

    @property
    def inflation(self) -> float:
        """How many times as large as that of independent rows the variance of what happened is where rows of
        a group share their forecasts; not where all forecasts differ, because neighbours are of other groups.
        """
        if self.sums.n_groups is None:
            return 1.0
        groups, variance = self.sums.groups, float(self.sums.totals.high[self.i, VARIANCE])
        assert groups is not None
        weight, gaps = groups[:, 0], groups[:, 1 + self.i]
        around = gaps - weight * (gaps.sum() / weight.sum())
        alike = self.sums.n_rows / len(self.bins.weight)
        return min(alike, max(1.0, float((around**2).sum()) / variance)) if variance > 0 else 1.0

    @cached_property
    def fit(self) -> IsotonicFit:
        """The isotonic fit."""
        if self.walk is not None:
            return IsotonicFit.of_blocks(self.walk.blocks, self.bins.weight)
        return recalibrate_many(self.cells)

    def score(self, how: Split) -> float:
        """The mean loss; infinite where a row has an infinite loss."""
        if self.rows is None:
            return self.sums.mean_loss(self.i, how)
        if self.walk is not None and how.binary == "squared":
            return squared_error(self.rows)
        losses, weights = how.losses(self.rows.given, self.rows.rest, self.rows.happened), self.weights
        # No matrix product: its sums depend on the number of threads.
        return float(losses.mean() if weights is None else (weights * losses).sum() / weights.sum())

    def components(self, how: Split) -> tuple[Floats, float]:
        """Score, miscalibration, discrimination, uncertainty, and how much larger the middle two may be."""
        blocks = self.fit.blocks if self.walk is None else self.walk.blocks
        whole = blocks.sum(axis=0, keepdims=True)
        weight, score = float(whole.sum()), self.score(how)
        uncertainty, fitted = how.entropy(whole) / weight, how.entropy(blocks) / weight
        within = 0.0
        if self.rows is None and self.sums.level != EXACT:
            best = how.entropy(recalibrate_many(self.bins.sorted_cells).blocks) / weight
            within = max(fitted - best, 0.0)
        return np.array([score, score - fitted, uncertainty - fitted, uncertainty]), within


def bins_of_rows(event: BinaryEvent, weights: Floats | None, packed: Any = None) -> EventBins:
    """The distinct forecasts of rows in memory; `packed` are their `sorted_rows`, which are changed."""
    if packed is None and weights is None:
        packed = sorted_rows(event)
    if packed is not None:
        return _bins_of_alike(packed)
    forecast = event.values
    weights = np.ones(len(event.ranked)) if weights is None else weights
    columns = (weights, weights * event.happened, weights * weights)
    weight, happened, squares = (event.sums(column) for column in columns)
    return EventBins(weight, happened, weight * forecast, squares, forecast, forecast)


def _bins_of_alike(packed: Any) -> EventBins:
    """The same of rows that count alike, from `sorted_rows`, which it changes."""
    happened = (packed & np.uint64(1)).astype(float)
    packed >>= np.uint64(1)
    forecast: Floats = packed.view(np.float64)
    rises = forecast[1:] != forecast[:-1]
    if rises.all():
        # One number, however many rows there are.
        weight = np.broadcast_to(1.0, len(forecast))
        return EventBins(weight, happened, forecast, weight, forecast, forecast)
    begins = np.flatnonzero(np.concatenate([[True], rises]))
    weight, forecast = np.diff(begins, append=len(forecast)).astype(float), forecast[begins]
    happened = np.add.reduceat(happened, begins)
    return EventBins(weight, happened, weight * forecast, weight, forecast, forecast)
