"""Rows counted by what ranks them and by outcome: exactly, or in bins where there are too many values.

Rows of a bin are treated as tied. That gives a ranking score up to the order inside the bins, which bounds
the error, and the influence of a row on the score by bin and outcome.

AUC, average precision and c-index are smooth functions of the empirical distribution, so their variances come
from their influence functions: DeLong's components for AUC. Sorting is all that grows faster than the rows.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from verax._settings import settings
from verax.analyses.binary import EventRows, rows_of_part
from verax.analyses.units import dot, sums_at
from verax.analyses.unitsums import check_weight
from verax.common.packing import UnreadableError
from verax.common.sorting import stable_order
from verax.common.specs import Truth, Whole
from verax.common.stored import only_weights, within
from verax.common.summaries import Summary, merges
from verax.engines.keyed import ExactOrBins, Keyed, KeyedSums, Run
from verax.engines.keys import EXACT, MOST_RANKS, exact_values, places, rank_keys
from verax.inputs.arrays import Bools, Floats, Ints
from verax.inputs.handles import Part, Recipe


@dataclass(frozen=True)
class Estimated:
    """A value with the deviation that each row brings; `n` rows tell about it. NaN where it is undefined."""

    value: float
    influence: Floats
    n: float

    @classmethod
    def undefined(cls, n_rows: int) -> Estimated:
        """An undefined value, with its number of rows."""
        return cls(math.nan, np.zeros(n_rows), 0.0)


def average_precision_of(given: Floats, happened: Bools, share: Floats) -> tuple[float, Floats]:
    """The average precision of one event, and the influence of each row on it."""
    order = stable_order(-given)
    s, h, w = given[order], happened[order], share[order]
    last = np.append(s[1:] != s[:-1], True)
    # Where the rows that tie with each one end: they are all above its threshold.
    end = np.flatnonzero(last)[np.cumsum(last) - last]
    hits, all_above = np.cumsum(w * h)[end], np.cumsum(w)[end]
    rate = float(w[h].sum())
    value = dot(w * h, hits / all_above) / rate
    # A row at s moves the precision at every lower or equal threshold where the event happened.
    start = np.flatnonzero(np.append(True, s[1:] != s[:-1]))[np.cumsum(last) - last]
    gain = np.cumsum((w * h / all_above)[::-1])[::-1][start]
    loss = np.cumsum((w * h * hits / all_above**2)[::-1])[::-1][start]
    influence = np.empty(len(s))
    influence[order] = (h * hits / all_above + h * gain - loss - h * value) / rate
    return value, influence


def placed(rank: Ints, y: Ints, share: Floats) -> Estimated:
    """The c-index of increasing ranks for outcomes y, of rows with y >= 0, with the influence function."""
    concordant, pairs = _placements(rank, y, share)
    total = dot(share, pairs)
    value = dot(share, concordant) / total
    return Estimated(value, 2 * (concordant - value * pairs) / total, math.nan)


def delong_factor(share: Floats, of_class: Floats) -> Floats:
    """The correction of the influence of independent rows, from their shares of all and of their class."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(of_class < 1 - 1e-12, np.sqrt((1 - share) / (1 - of_class)), np.nan)


def _placements(rank: Ints, y: Ints, w: Floats) -> tuple[Floats, Floats]:
    """For each row the weight of rows with another outcome, and of those among them that rank right.

    Two outcomes differ first in one binary digit. For each digit, rows that agree in all higher digits are
    compared: one sort of integers each, so that the work is N log N times the digits of K.
    """
    counted = np.flatnonzero(y >= 0)
    concordant, pairs = np.zeros(len(y)), np.zeros(len(y))
    n_digits = int(y.max()).bit_length()
    for digit in range(n_digits):
        prefix = y[counted] >> (digit + 1)
        order: Any = counted
        if digit < n_digits - 1:
            within = np.argsort(prefix, kind="stable")
            prefix, order = prefix[within], counted[within]
        elif len(counted) == len(y):
            # All rows agree in the digits above the highest, and are in order.
            order = slice(None)
        ranks, weight, higher = rank[order], w[order], ((y[order] >> digit) & 1).astype(bool)
        begins = np.append(True, prefix[1:] != prefix[:-1])
        starts = np.flatnonzero(begins)
        group: Any = np.cumsum(begins) - 1 if len(starts) > 1 else slice(None)
        begins[1:] |= ranks[1:] != ranks[:-1]
        tie = np.cumsum(begins) - 1
        sides = np.where(higher, 0.0, weight), np.where(higher, weight, 0.0)
        # Up to the middle of the ties, and in all of the groups up to this one.
        low, high = (np.cumsum(tied) - tied / 2 for tied in (np.bincount(tie, side) for side in sides))
        all_low, all_high = (np.add.reduceat(side, starts) for side in sides)
        right = np.where(
            higher,
            low[tie] - (np.cumsum(all_low) - all_low)[group],
            np.cumsum(all_high)[group] - high[tie],
        )
        concordant[order] += right
        pairs[order] += np.where(higher, all_low[group], all_high[group])
    return concordant, pairs


@dataclass(frozen=True)
class PartCells:
    """The rows of a part by what ranks them.

    Attributes
    ----------
    keys : Ints
        (B,) the keys that occur, in order.
    place : Ints
        (N,) the place of each row's key among them.
    values : Floats
        (N,) what ranks the rows.
    y : Ints
        (N,) the outcomes.
    """

    keys: Ints
    place: Ints
    values: Floats
    y: Ints


@dataclass(frozen=True)
class RankSource:
    """The quantities ranked: the probability of each event, or with `means` the mean class, by outcome.

    Attributes
    ----------
    model : str
        The model.
    ordered : bool
        Whether events are thresholds.
    means : bool
        Whether rows are ranked by their mean class.
    n_events, n_outcomes : int
        The number of events, and of outcomes of each.
    copies : bool
        Whether weights are numbers of rows.
    """

    model: str
    ordered: bool
    means: bool
    n_events: int
    n_outcomes: int
    copies: bool = field(default=False, repr=False)

    @property
    def level(self) -> int:
        """The number of times that neighbouring bins are joined, so that those of all events fit."""
        return max(
            0, math.ceil(math.log2(self.n_events * self.n_outcomes * MOST_RANKS / settings.bins_up_to))
        )

    def rows(self, part: Part) -> EventRows:
        """The rows of a part that have weight."""
        return rows_of_part(part, self.model, ordered=self.ordered, copies=self.copies)

    def _ranked(self, part: Part) -> list[tuple[Floats, Ints]]:
        """The ranks of the rows, and their outcomes, for each event."""
        rows = self.rows(part)
        if self.means:
            most = rows.n_classes - 1
            score = np.round(rows.p @ np.arange(rows.n_classes), rows.decimals) / most
            return [(np.clip(score, 0.0, 1.0), rows.y)]
        return [(np.clip(event.ranked, 0.0, 1.0), event.happened.astype(np.int64)) for event in rows.events()]

    def cells(self, part: Part, *, exact: bool) -> list[PartCells]:
        """The rows of a part by exact keys, or by bins, for each event."""

        def made() -> list[PartCells]:
            by_event = []
            for values, y in self._ranked(part):
                keys, place = places(values, rank_keys, EXACT if exact else self.level)
                by_event.append(PartCells(keys, place, values, y))
            return by_event

        return part.once(("ranks", self, exact), made)


class RankCounts(Summary, kind="counts of ranks"):
    """Sums of w and w*w by event, outcome and key, with the extremes of what ranks the rows.

    Attributes
    ----------
    level : int
        The number of times that neighbouring bins are joined, where there are bins.
    bounded : bool
        Whether keys become bins when there are too many; not where all rows are in memory.
    cells : KeyedSums
        The sums, by event times the number of outcomes plus the outcome; those that occur.
    n_outcomes : int
        The number of outcomes.
    """

    level: int = merges(Whole("equal", most=32))
    bounded: bool = merges(Truth("any"))
    cells: KeyedSums = merges(ExactOrBins(rank_keys, "cells", "level", several=True))
    n_outcomes: int = merges(Whole("equal", least=2))

    def _check(self) -> None:
        for code, bins in self.cells.tables.items():
            run = bins.total
            if run.sums.high.shape[1] != 2 or run.least.shape[1] != 1:
                raise UnreadableError("has other sums than those of ranks", "cells", str(code))
            only_weights(run.sums.high[:, 0])
            within(run.sums.high, 0, math.inf)

    @property
    def exact(self) -> bool:
        """Whether every distinct value has a key of its own."""
        return self.cells.level == EXACT

    def _merged(self) -> RankCounts:
        """The same, in bins where there are too many values."""
        if not self.bounded:
            return self
        return replace(self, cells=self.cells.fitting(self._full, [self.level]))

    def _full(self, _: int, sizes: Mapping[int, int]) -> bool:
        events: Counter[int] = Counter()
        for code, n_keys in sizes.items():
            events[code // self.n_outcomes] += n_keys
        most = settings.exact_up_to
        return max(events.values(), default=0) > most or events.total() > 2 * most

    def in_bins(self) -> RankCounts:
        """The same, in bins."""
        return replace(self, cells=self.cells.at(self.level))


@dataclass(frozen=True)
class RankRecipe(Recipe[RankCounts]):
    """Counts of rows by what ranks them."""

    source: RankSource

    def named_by(self) -> Mapping[str, Any]:
        """Copies are counted as weights are: only what follows from the counts differs."""
        return {"source": replace(self.source, copies=False)}

    def sizes(self, known: Mapping[str, int]) -> dict[str, int]:
        """The number of outcomes, and how often bins are joined."""
        return {"n_outcomes": self.source.n_outcomes, "level": self.source.level}

    def check(self, counts: RankCounts) -> None:
        """Refuse counts of other events."""
        if max(counts.cells.tables, default=0) >= self.source.n_events * self.source.n_outcomes:
            raise UnreadableError("is about other events", "cells")

    def take(self, part: Part) -> RankCounts:
        """Count the rows of one part."""
        return self.more(part, None)

    def more(self, part: Part, counts: RankCounts | None) -> RankCounts:
        """Count the rows of one part, in bins where the rows so far are."""
        source, w = self.source, self.source.rows(part).units.share
        exact = counts is None or counts.exact
        cells = {}
        for event, event_cells in enumerate(source.cells(part, exact=exact)):
            for k, run in _by_outcome(event_cells, w, source.n_outcomes, exact=exact):
                cells[event * source.n_outcomes + k] = Keyed((run,))
        sums = KeyedSums(rank_keys, EXACT if exact else source.level, cells)
        return RankCounts(source.level, not part.whole, sums, source.n_outcomes)._merged()


def _by_outcome(cells: PartCells, w: Floats, n_outcomes: int, *, exact: bool) -> Iterator[tuple[int, Run]]:
    """The sums of the rows of each outcome that occurs, by key."""
    alike = bool((w == 1).all())
    for k in np.flatnonzero(np.bincount(cells.y, minlength=n_outcomes)).tolist():
        rows = np.flatnonzero(cells.y == k)
        weights = None if alike else w[rows]
        columns = [weights, None if weights is None else weights * weights]
        run = Run.of(cells.place[rows], columns, [] if exact else [cells.values[rows]])
        keys = cells.keys[run.keys]
        if exact:
            # A key has one value.
            value = exact_values(keys)[:, None]
            run = replace(run, least=value, most=value)
        yield k, replace(run, keys=keys)


@dataclass(frozen=True)
class Ranked:
    """The cells of one event: keys by outcome.

    Attributes
    ----------
    keys : Ints
        (B,) the keys that have rows, in order.
    place, y : Ints
        (C,) the place of the key of each cell, and its outcome; in order.
    share, squares : Floats
        (C,) the share of the weight, and the sum of the squared shares of the rows, or of their copies.
    least, most : Floats
        (B,) the extremes of what ranks the rows of each key.
    total : float
        The weight of all rows.
    n_outcomes : int
        The number of outcomes.
    """

    keys: Ints
    place: Ints
    y: Ints
    share: Floats
    squares: Floats
    least: Floats
    most: Floats
    total: float
    n_outcomes: int

    @classmethod
    def all(cls, counts: RankCounts, n_events: int, *, copies: bool = False) -> list[Ranked]:
        """The cells of every event; with `copies` weights are numbers of rows."""
        n, tables = counts.n_outcomes, counts.cells.tables
        events = [
            cls._of({k: tables[i * n + k].total for k in range(n) if i * n + k in tables}, n)
            for i in range(n_events)
        ]
        return (
            [replace(ranked, squares=ranked.share / ranked.total) for ranked in events] if copies else events
        )

    @classmethod
    def _of(cls, runs: Mapping[int, Run], n_outcomes: int) -> Ranked:
        if not runs:
            check_weight(0.0)
        # Sorted runs: a stable sort merges them.
        keys = np.concatenate([run.keys for run in runs.values()])
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        rises = np.concatenate([[True], keys[1:] != keys[:-1]])
        begins = np.flatnonzero(rises)
        # Column by column: rows of a few numbers are slow to gather.
        columns = zip(
            *([*run.sums.high.T, run.least[:, 0], run.most[:, 0]] for run in runs.values()), strict=True
        )
        weight, squares, least, most = (np.concatenate(column)[order] for column in columns)
        y = np.repeat(list(runs), [len(run) for run in runs.values()])
        total = float(weight.sum())
        check_weight(total)
        place = np.arange(len(keys))
        if len(begins) < len(keys):
            keys, place = keys[begins], np.cumsum(rises) - 1
            least, most = np.minimum.reduceat(least, begins), np.maximum.reduceat(most, begins)
        return cls(
            keys,
            place,
            y[order],
            weight / total,
            squares / total**2,
            least,
            most,
            total,
            n_outcomes,
        )

    def cells_of(self, part: PartCells) -> Ints:
        """The cell of each row of a part, all of whose cells are here."""
        place = part.place
        if not np.array_equal(self.keys, part.keys):
            place = np.searchsorted(self.keys, part.keys)[place]
        if len(self.keys) * self.n_outcomes <= max(2**22, 8 * len(self.y)):
            table = np.zeros(len(self.keys) * self.n_outcomes, np.int64)
            table[self.place * self.n_outcomes + self.y] = np.arange(len(self.y))
            return np.asarray(table[place * self.n_outcomes + part.y])
        numbers = self.place * self.n_outcomes + self.y
        return np.searchsorted(numbers, place * self.n_outcomes + part.y)

    @property
    def tied(self) -> Bools:
        """(B,) whether the rows of a key all rank the same."""
        return np.asarray(self.least == self.most)

    @property
    def sizes(self) -> Floats:
        """The share of each outcome."""
        return sums_at(self.y, self.share, self.n_outcomes)

    def effective(self, outcomes: Sequence[int]) -> float:
        """The smallest effective sample size of these outcomes."""
        squares = np.bincount(self.y, self.squares)
        return min(float(self.sizes[k] ** 2 / squares[k]) for k in outcomes)

    def concordance(self, outcomes: Sequence[int]) -> tuple[Estimated, float]:
        """The c-index of rows with these outcomes, and how far it can be from that of the rows."""
        y, share, counted = self.y, self.share, None
        if len(outcomes) < self.n_outcomes:
            counted = np.isin(y, outcomes)
            y, share = np.where(counted, y, -1), np.where(counted, share, 0.0)
        estimate = placed(self.place, y, self.share)
        off, influence = 0.0, estimate.influence
        if not self.tied.all():
            all_of = np.bincount(self.place, share)
            same = np.bincount(self.place, share**2)
            pairs = float(share.sum() ** 2 - (np.bincount(self.y, share) ** 2).sum())
            off = float(np.where(self.tied, 0.0, all_of**2 - same).sum()) / 2 / pairs
        if counted is not None:
            influence = np.where(counted, influence, 0.0)
        return Estimated(estimate.value, influence, self.effective(outcomes)), off

    def precision(self) -> tuple[Estimated, float]:
        """The average precision, and how far it can be from that of the rows."""
        happened = self.y == 1
        value, influence = average_precision_of(self.place.astype(float), happened, self.share)
        both = happened.any() and not happened.all()
        n = self.effective([0, 1]) if both else float(1 / self.squares.sum())
        hits, others = (np.bincount(self.place, self.share * side) for side in (happened, ~happened))
        above = np.cumsum((hits + others)[::-1])[::-1] - hits - others
        hits_above = np.cumsum(hits[::-1])[::-1] - hits
        with np.errstate(divide="ignore", invalid="ignore"):
            tie = (hits_above + hits) / (above + hits + others)
            low = np.where(above + others > 0, hits_above / (above + others), 1.0)
            high = (hits_above + hits) / (above + hits)
            off = np.where(self.tied | (hits <= 0), 0.0, hits * np.maximum(tie - low, high - tie))
        return Estimated(value, influence, n), float(off.sum() / hits.sum())
