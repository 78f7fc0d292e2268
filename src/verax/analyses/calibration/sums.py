"""Sums of the events of rows by distinct forecast, or by bins where there are too many.

Beside the sums a few rows are kept, those with the smallest hashes of their probabilities: they tell how the
events of a forecast depend on each other. So they are the same wherever the rows are and however they are
divided, and those of parts merge. Outcomes play no part in which rows are kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from verax._settings import settings
from verax.analyses.binary import BinaryEvent
from verax.analyses.calibration.events import Split
from verax.analyses.calibration.isotonic import IsotonicFit, isotonic_fit
from verax.analyses.calibration.scored import N_SUMS
from verax.analyses.calibration.sources import PartEvents
from verax.common.caching import cached_property
from verax.common.hashing import mixed
from verax.common.packing import UnreadableError
from verax.common.sorting import n_distinct
from verax.common.specs import Spec, Truth, Valued, Whole
from verax.common.stored import Sizes, mapping, only_weights, within
from verax.common.stored import whole as whole_number
from verax.common.summaries import Summary, merges
from verax.engines.clusters import ByLabel, GroupLabels
from verax.engines.keyed import Keyed, KeyedSums, Run
from verax.engines.keys import EXACT, MOST_KEY, exact_keys, forecast_keys
from verax.engines.sums import Sum, Sums
from verax.inputs.arrays import Floats, Ints
from verax.kernels.ledger import compiles

# Different rows that are kept: fewer where they have very many classes.
KEPT, _FEWEST, _NUMBERS = 256, 16, 2**17
# The factors of the probabilities of a row before they are added up and hashed, some rows at a time.
_GOLDEN, _HASHED = (5**0.5 - 1) / 2, 2**13


def _most(n_classes: int) -> int:
    """The number of different rows that are kept."""
    return int(min(KEPT, max(_FEWEST, _NUMBERS // n_classes)))


def sample_of(p: Floats, weights: Floats | None) -> Keyed:
    """The rows to keep, with the weight of all rows that are like each."""
    n, k = p.shape
    most = _most(k)
    keys = np.empty(n, np.uint64)
    # Some rows at a time, whose numbers a cache holds.
    for start in range(0, n, _HASHED):
        keys[start : start + _HASHED] = _row_keys(p[start : start + _HASHED])
    at = _smallest(keys, most)
    different, place, count = np.unique(keys[at], return_inverse=True, return_counts=True)
    mass = count if weights is None else np.bincount(place, weights[at], len(different))
    rows = np.empty((len(different), k))
    rows[place] = p[at]
    if len(at) > len(different):
        # Rows that differ by less than the rounding are the smallest of them, in whatever order they come.
        np.minimum.at(rows, place, p[at])
    sums = Sum.of(mass[:, None].astype(float))
    return trimmed(Keyed((Run(different.astype(np.int64), sums, rows, rows),)))


def _row_keys(p: Floats) -> Any:
    """The hashes of rows of probabilities."""
    # Probabilities are rounded, so that hashes do not depend on how many rows were computed at a time.
    total = np.zeros(len(p))
    for i in range(p.shape[1]):
        total += p[:, i].astype(np.float32) * (1 + (i + 1) * _GOLDEN % 1)
    return mixed(total.view(np.uint64)) >> np.uint64(1)


def _smallest(keys: Any, most: int) -> Ints:
    """The places of the smallest different keys; and of others."""
    if len(keys) > 4 * most:
        least = np.partition(keys, 2 * most)[2 * most]
        at = np.flatnonzero(keys <= least)
        if len(np.unique(keys[at])) >= most:
            return at
    return np.arange(len(keys))


def trimmed(sample: Keyed) -> Keyed:
    """No more rows than are kept."""
    run = sample.total
    return Keyed((run.at(slice(0, _most(run.least.shape[1]))),))


def is_all(sample: Keyed, n_rows: float) -> bool:
    """Whether these are all rows, and each counts alike."""
    mass = sample.total.sums.high[:, 0]
    times = mass * (n_rows / float(mass.sum()))
    return n_rows <= KEPT and bool((np.abs(times - np.round(times)) < 1e-9).all())


def check_sample(sample: Keyed, n_events: int) -> None:
    """Refuse a stored sample that cannot be one."""
    run = sample.total
    # There is an event for each class, or for each threshold between them.
    shaped = run.least.shape[1] in (n_events, n_events + 1) and run.sums.high.shape[1] == 1
    if not shaped or not (run.sums.high > 0).all() or not ((run.least >= 0) & (run.least <= 1.1)).all():
        raise UnreadableError("has other rows than probabilities of the classes", "sample")


# The blocks of a fit to n rows have about n^(2/3) rows, so each has some cells, however many rows there are.
_PER_BLOCK, _MOST = 8, 2048
# The time for one row, in probabilities scored.
_WORK = 16
# Cells are looked for in parts of equal width, at least this number of them per cell.
_PARTS = 16


def cells_for(n_rows: float) -> int:
    """The number of cells in which the outcomes of this many rows are drawn for a test.

    >>> cells_for(1000), cells_for(250_000), cells_for(10**8)
    (256, 503, 2048)
    """
    return max(settings.fewest_cells, min(_MOST, int(_PER_BLOCK * n_rows ** (1 / 3))))


def sorted_rows(event: BinaryEvent) -> Any:
    """The bits of each forecast, increasing, and last whether the event happened; None where a forecast is no
    probability. To sort both together takes a quarter of the time of finding the order of the forecasts.
    """
    ranked, happened = np.ascontiguousarray(event.ranked, dtype=np.float64), event.happened.view(np.uint8)
    packed = np.empty(len(ranked), np.uint64)
    if compiles(_WORK * len(ranked), "draws in cells"):
        from verax.kernels.walking import pack_rows

        n_others = pack_rows(ranked, happened, packed)
    else:
        n_others = len(ranked) - np.count_nonzero((ranked >= 0) & (ranked <= 1))
        # The sign of a probability is known, so that there is room for a bit.
        np.left_shift(ranked.view(np.uint64), np.uint64(1), out=packed)
        packed |= happened
    if n_others:
        return None
    packed.sort()
    return packed


def unpacked(packed: Any) -> tuple[Floats, Floats]:
    """The forecasts of `sorted_rows`, and whether the event happened."""
    return (packed >> np.uint64(1)).view(np.float64), (packed & np.uint64(1)).astype(float)


@dataclass(frozen=True)
class Walk:
    """The results of one pass over the rows of an event, which count alike.

    Attributes
    ----------
    blocks : array of shape (B, 2)
        The blocks of the isotonic fit: the numbers of rows without and with the event.
    starts : array of shape (C,)
        The smallest forecast of each cell of neighbouring forecasts.
    size, happened, claimed : arrays of shape (C,)
        The number of its rows, of those with the event, and the sum of the forecasts.
    """

    blocks: Floats
    starts: Floats
    size: Floats
    happened: Floats
    claimed: Floats

    @staticmethod
    def pays(event: BinaryEvent) -> bool:
        """Whether an event is worth the pass; not where elements are not rows."""
        n = len(event.ranked)
        return event.owner is None and compiles(_WORK * n, "draws in cells")

    @classmethod
    def of(cls, packed: Any) -> Walk:
        """The pass over `sorted_rows`."""
        from verax.kernels.walking import count_pools, walk

        n = len(packed)
        most = cells_for(n)
        scale = most / float(n) if count_pools(packed, most) > most else 0.0
        starts, sums, blocks = np.empty(most), np.empty((3, most)), np.empty((n, 2))
        n_cells, n_blocks = walk(packed, scale, starts, sums, blocks)
        size, happened, claimed = sums[:, :n_cells].copy()
        return cls(blocks[:n_blocks].copy(), starts[:n_cells].copy(), size, happened, claimed)


def cells_of(starts: Floats, values: Floats) -> Any:
    """The cell of each forecast, of cells that begin at `starts`."""
    n = len(values)
    if not compiles(_WORK * n, "draws in cells"):
        return np.maximum(np.searchsorted(starts, values, side="right") - 1, 0)
    from verax.kernels.walking import find_cells

    out = np.empty(n, np.uint16)
    # A power of two, so that multiples of its inverse are exact: the last cell that begins at or below each.
    parts = 1 << (_PARTS * len(starts) - 1).bit_length()
    first = np.ceil(starts * parts).astype(np.int64)
    guide = np.maximum(np.cumsum(np.bincount(first, minlength=parts + 1)) - 1, 0).astype(np.uint16)
    find_cells(np.ascontiguousarray(values, dtype=np.float64), np.ascontiguousarray(starts), guide, out)
    return out


def squared_error(event: BinaryEvent) -> float:
    """The mean squared error of an event."""
    from verax.kernels.walking import squared_losses

    # An empty array: one minus the probabilities of the event.
    others = np.zeros(0) if event.others is None else event.others
    total: float = squared_losses(event.given, others, event.happened.view(np.uint8))
    return total / len(event.given)


# Distinct forecasts of all events together are told apart. Many of them are counted in bins, whose neighbours
# are joined up to this number of times.
LEVELS = 10
# The sums over all rows of each event.
CLAIM, HIT, VARIANCE, LOSS, INFINITE = range(5)


# In what is stored, the bins of each event have these numbers after those of the event before it.
_SPAN = 2**16
_NO_KEYS = Run(np.zeros(0, np.int64), Sum.zeros((0, 4)), np.zeros((0, 1)), np.zeros((0, 1)))


class _Forecasts(Spec):
    """Sums by forecast, for each event. Bins of all events are stored as one run, exact keys each alone."""

    flat, parts = True, ("level", "bins", "values")

    def __init__(self) -> None:
        super().__init__("merge")

    def merged(self, name: str) -> str:
        return f"self.{name}.merge(other.{name})"

    def pack(self, value: KeyedSums) -> dict[str, Any]:
        runs = {i: table.total for i, table in sorted(value.tables.items())}
        exact = value.level == EXACT
        binned = [replace(run, keys=run.keys + _SPAN * i) for i, run in runs.items() if not exact]
        return {
            "level": value.level,
            "bins": Run.one_after_the_other([_NO_KEYS, *binned]).to_values(),
            "values": {i: run.to_values() for i, run in runs.items() if exact},
        }

    def read(self, stored: Any, sizes: Sizes) -> KeyedSums:
        level, n_events = whole_number(stored["level"], EXACT, LEVELS), sizes["n_events"]
        bins, values = Run.from_values(mapping(stored["bins"])), mapping(stored["values"])
        if len(bins) if level == EXACT else values:
            raise UnreadableError("has both exact values and bins", "values")
        within(bins.keys, 0, _SPAN * (n_events + 1) - 1)
        ends = np.searchsorted(bins.keys, _SPAN * np.arange(n_events + 2)).tolist()
        runs = {whole_number(i, 0, n_events): Run.from_values(mapping(table)) for i, table in values.items()}
        for i in range(n_events + 1 if level != EXACT else 0):
            run = bins.at(slice(ends[i], ends[i + 1]))
            runs[i] = replace(run, keys=run.keys - _SPAN * i)
        for run in (bins, *runs.values()):
            if run.sums.high.shape[1] != 4 or run.least.shape[1] != 1 or not (run.sums.high[:, 0] > 0).all():
                raise UnreadableError("has other sums than those of forecasts and outcomes", "bins")
            within(run.keys, 0, MOST_KEY)
            only_weights(run.sums.high[:, :3])
        return KeyedSums(forecast_keys, level, {i: Keyed((run,)) for i, run in runs.items()})


class EventSums(Summary, kind="event histograms", version=3):
    """The sums of the events of rows, without the rows.

    Attributes
    ----------
    n_events : int
        The number of classes or thresholds; one more event is that the most likely class happens.
    forecasts : KeyedSums
        By event and key of its forecast q: the sums of w, of w where it happened, of w*q and of w*w; and the
        extremes of q.
    totals : Sum
        (n_events + 1, 5) sums over all rows: of w*q and w of where it happened, of w*w*q*(1-q), of w times
        the loss, and of w where that is infinite.
    weight : Sum
        (3,) sums of w, of w*w, and the number of rows that have weight.
    whole : bool
        Whether all weights are whole numbers.
    labels, groups : arrays or None
        The groups, and the sums of w and of w*(q - happened) for each event in each of them; and where they
        were asked for, those of score tests (`scored.row_scores`).
    sample : Keyed or None
        A few rows of independent ones, which tell how the events depend on each other (`dependence`). None
        where it is not needed, and in what older versions stored.
    """

    n_events: int = merges(Whole("equal", least=1))
    forecasts: KeyedSums = merges(_Forecasts())
    totals: Sum = merges(Sums("n_events+1", 5))
    weight: Sum = merges(Sums(3, least=0))
    whole: bool = merges(Truth("all"))
    labels: Any = merges(GroupLabels(), default=None)
    groups: Floats | None = merges(ByLabel("sums"), default=None)
    sample: Keyed | None = merges(Valued(Keyed, optional=True), default=None)

    @classmethod
    def _named(cls, values: Mapping[str, Any]) -> Mapping[str, Any]:
        # Version 1 had bins only, and version 2 no sample of rows.
        return {"values": {}, "sample": None, **values}

    def _aligned(self, other: EventSums) -> tuple[EventSums, EventSums]:
        """Without the sums of score tests where one of them has none, as files of 0.3 do."""
        if self.groups is None or other.groups is None or self.groups.shape == other.groups.shape:
            return self, other
        n = min(self.groups.shape[1], other.groups.shape[1])
        return replace(self, groups=self.groups[:, :n]), replace(other, groups=other.groups[:, :n])

    def _merged(self) -> EventSums:
        sums = self if self.sample is None else replace(self, sample=trimmed(self.sample))
        return sums.fitting()

    def _check(self) -> None:
        # The most likely class is one more event, except of lists; sums of score tests may follow.
        more = 0 if self.groups is None else self.groups.shape[1] - (self.n_events + 1)
        if more < 0 or more % N_SUMS > 1:
            raise UnreadableError("has sums of other events", "groups")
        only_weights(self.weight.high[:1])
        if not np.isfinite(self.weight.high[2]):
            raise UnreadableError("has no number of rows", "weight")
        tables = self.forecasts.tables
        if self.n_rows and not all(i in tables and len(tables[i]) for i in range(self.n_events)):
            raise UnreadableError("has rows without forecasts of all events", "forecasts")
        if self.sample is not None:
            check_sample(self.sample, self.n_events)

    def fitting(self) -> EventSums:
        """With as few bins joined as fit into memory, whatever the order of merging."""
        return self._with_keys(settings.exact_up_to, settings.bins_up_to)

    def at_most(self, keys: int, spare: int = 1) -> EventSums:
        """With neighbouring bins joined until there are no more than that, if possible. They are not even
        added up where there are at most `spare` times `keys`.
        """
        if sum(map(len, self.forecasts.tables.values())) <= keys * spare:
            return self
        return self._with_keys(keys, keys)

    def _with_keys(self, values: int, bins: int) -> EventSums:
        """At the finest level at which there are no more values, or bins, than that, if possible."""

        def full(level: int, sizes: Mapping[int, int]) -> bool:
            return sum(sizes.values()) > (values if level == EXACT else bins)

        fitting = self.forecasts.fitting(full, range(LEVELS + 1))
        return self if fitting is self.forecasts else replace(self, forecasts=fitting)

    @property
    def exact(self) -> bool:
        """Whether every distinct forecast has a key of its own."""
        return self.forecasts.level == EXACT

    @property
    def n_rows(self) -> int:
        """The number of rows that have weight."""
        return int(self.weight.high[2])

    def of(self, i: int) -> EventBins:
        """The distinct forecasts of one event, or its bins."""
        run = self.forecasts.tables[i].total if i in self.forecasts.tables else _NO_KEYS
        weight, happened, claimed, squares = run.sums.high.T
        return EventBins(weight, happened, claimed, squares, run.least[:, 0], run.most[:, 0])

    # ---- what conclusions ask ----------------------------------------------------------------

    # The rows themselves, where they are in memory.
    rows: ClassVar[None] = None

    @property
    def sums(self) -> EventSums:
        """Themselves, as of rows in memory."""
        return self

    @property
    def n_groups(self) -> int | None:
        """The number of groups; None without groups."""
        return None if self.groups is None else len(self.groups)

    def event(self, i: int, name: str) -> SummedEvent:
        """One event."""
        return SummedEvent(name, self, i)

    def makers(self, names: Sequence[str]) -> Iterator[Callable[[], SummedEvent]]:
        """Functions that make the events, in order."""
        return (partial(self.event, i, name) for i, name in enumerate(names))


@dataclass(frozen=True, eq=False)
class EventsInMemory:
    """The events of rows in memory: what they add up to is added up when it is asked for.

    Conclusions ask for one event after the other, whose rows are then sorted, and not for the sums of all.

    Attributes
    ----------
    rows : PartEvents
        The rows.
    n_events : int
        The number of classes or thresholds.
    events : callable
        Yields the events one after the other: all of them, or only some by their numbers. One more is that
        the most likely class happens, except of lists.
    add_up, draw : callable
        Make the sums, without those by forecast, and the sample.
    """

    rows: PartEvents
    n_events: int
    events: Callable[..., Iterator[BinaryEvent]]
    add_up: Callable[[], EventSums]
    draw: Callable[[], Keyed | None]
    # They are not counted in bins.
    exact: ClassVar[bool] = True

    @cached_property
    def _added_up(self) -> EventSums:
        return self.add_up()

    @cached_property
    def weight(self) -> Sum:
        """(3,) sums of w, of w*w, and the number of rows."""
        if self.rows.weights is None and not self.rows.entries:
            return Sum.of([self.rows.n_rows] * 3)
        w = next(self.events([0])).of_rows(self.rows.mass)
        return Sum.of([w.sum(), (w * w).sum(), len(w)])

    @property
    def n_rows(self) -> int:
        """The number of rows that have weight."""
        return int(self.weight.high[2])

    @property
    def n_groups(self) -> int | None:
        """The number of groups; None without groups."""
        return None if self.rows.groups is None else n_distinct(self.rows.groups.codes)

    @property
    def totals(self) -> Sum:
        """(n_events + 1, 5) sums over all rows."""
        return self._added_up.totals

    @property
    def whole(self) -> bool:
        """Whether all weights are whole numbers."""
        return self._added_up.whole

    @property
    def labels(self) -> Any:
        """The groups."""
        return None if self.rows.groups is None else self._added_up.labels

    @property
    def groups(self) -> Floats | None:
        """The sums of each group."""
        return None if self.rows.groups is None else self._added_up.groups

    @cached_property
    def sample(self) -> Keyed | None:
        """A few rows."""
        return self.draw()

    def of(self, i: int) -> EventBins:
        """The distinct forecasts of one event."""
        return self.event(i, "").bins

    def event(self, i: int, name: str) -> SummedEvent:
        """One event."""
        return SummedEvent(name, self, i, next(self.events([i])))

    def makers(self, names: Sequence[str]) -> Iterator[Callable[[], SummedEvent]]:
        """Functions that make the events, in order."""
        events = zip(names, self.events(range(self.n_events)), strict=True)
        return (partial(SummedEvent, name, self, i, event) for i, (name, event) in enumerate(events))

    @property
    def sums(self) -> EventSums:
        """The sums of all, by exact forecast, as of rows that come in parts."""
        tables = {}
        for i, event in enumerate(self.events()):
            bins = SummedEvent("", self, i, event).bins
            columns = np.stack([bins.weight, bins.happened, bins.claimed, bins.squares], axis=1)
            least = bins.least[:, None]
            tables[i] = Keyed((Run(exact_keys(bins.least), Sum.of(columns), least, least),))
        forecasts = KeyedSums(forecast_keys, EXACT, tables)
        return replace(self._added_up, forecasts=forecasts, sample=self.sample)

    def merge(self, other: Events) -> EventSums:
        """The sums of the rows of both; neither is changed."""
        return self.sums.merge(other.sums)

    def to_bytes(self) -> bytes:
        """The sums as bytes."""
        return self.sums.to_bytes()


# The sums of events, wherever their rows are.
Events = EventSums | EventsInMemory


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
    """One event of sums: its distinct forecasts or bins and, in memory, its rows.

    Attributes
    ----------
    name : str
        The name of the event.
    sums : Events
        The sums that it belongs to.
    i : int
        Its number in them.
    rows : BinaryEvent or None
        Its rows, where they are in memory.
    """

    name: str
    sums: Events
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
        return bins_of_rows(self.rows, self.weights, self.packed)

    @property
    def cells(self) -> Floats:
        """(P, 2) weights without and with the event; not kept, because they may be many."""
        if self.rows is None or self.weights is None:
            return self.bins.cells
        return self.rows.cells(self.weights)

    @cached_property
    def packed(self) -> Any:
        """Its rows in memory in the order of their forecasts (`sorted_rows`); None where weights differ."""
        return None if self.rows is None or self.weights is not None else sorted_rows(self.rows)

    @cached_property
    def walk(self) -> Walk | None:
        """One pass over many rows in memory that count alike; None elsewhere."""
        if self.rows is None or not Walk.pays(self.rows) or self.packed is None:
            return None
        return Walk.of(self.packed)

    @property
    def inflation(self) -> float:
        """The variance of what happened in groups, as a multiple of that of independent rows.

        It is 1 where all forecasts differ: neighbours are of other groups then.
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
        return isotonic_fit(self.cells)

    def score(self, how: Split) -> float:
        """The mean loss; infinite where a row has an infinite loss."""
        if self.rows is None:
            totals, weight = self.sums.totals.high[self.i], float(self.sums.weight.high[0])
            # Losses were summed in natural logarithms.
            return math.inf if totals[INFINITE] > 0 else how.unit * float(totals[LOSS] / weight)
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
        if self.rows is None and not self.sums.exact:
            best = how.entropy(isotonic_fit(self.bins.sorted_cells).blocks) / weight
            within = max(fitted - best, 0.0)
        return np.array([score, score - fitted, uncertainty - fitted, uncertainty]), within


def bins_of_rows(event: BinaryEvent, weights: Floats | None, packed: Any) -> EventBins:
    """The distinct forecasts of rows in memory; `packed` are their `sorted_rows` where they count alike."""
    if packed is None:
        forecast = event.values
        weights = np.ones(len(event.ranked)) if weights is None else weights
        columns = (weights, weights * event.happened, weights * weights)
        weight, happened, squares = (event.sums(column) for column in columns)
        return EventBins(weight, happened, weight * forecast, squares, forecast, forecast)
    forecast, happened = unpacked(packed)
    rises = forecast[1:] != forecast[:-1]
    if rises.all():
        # One number, however many rows there are.
        weight = np.broadcast_to(1.0, len(forecast))
        return EventBins(weight, happened, forecast, weight, forecast, forecast)
    begins = np.flatnonzero(np.concatenate([[True], rises]))
    weight, forecast = np.diff(begins, append=len(forecast)).astype(float), forecast[begins]
    happened = np.add.reduceat(happened, begins)
    return EventBins(weight, happened, weight * forecast, weight, forecast, forecast)
