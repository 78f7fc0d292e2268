"""The binary events inside a forecast: a class against the rest, or a threshold of ordered classes.

Rows are sorted once for each event, and rows with equal forecasts are pooled. For any weights of the
rows, recalibrating an event is one isotonic fit to its pools.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from verax.analyses.calibration.isotonic import isotonic_edges
from verax.analyses.table import RowTable
from verax.common.caching import cached_property
from verax.errors import RuleError
from verax.inputs.arrays import Floats, Ints
from verax.inputs.forecasts import Forecasts
from verax.scores.base import Rule
from verax.scores.combinators import Penalized
from verax.scores.properties import Holds
from verax.scores.rules import RPS, Brier, Log, RankedLog

# ---- which events ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Split:
    """How a score is made of scores of binary events: `factor` times their sum.

    Attributes
    ----------
    quantity : str
        The name of the score that the events add up to.
    total : str
        How they add up, in words.
    thresholds : bool
        Whether the events are thresholds of ordered classes instead of classes.
    binary : {"squared", "log"}
        The score of each event.
    factor : float
        What the sum is multiplied by.
    unit : float
        For log scores: one over the logarithm of the base.
    """

    quantity: str
    total: str
    thresholds: bool
    binary: Literal["squared", "log"]
    factor: float
    unit: float = 1.0

    def losses(self, given: Floats, rest: Floats, happened: Any) -> Floats:
        """The loss of each row, from the probabilities of the event and of the rest."""
        if self.binary == "squared":
            return np.asarray(np.where(happened, rest, given) ** 2)
        with np.errstate(divide="ignore"):
            return np.asarray(-self.unit * np.log(np.where(happened, given, rest)))

    def expected(self, given: Floats, rest: Floats, chance: Floats) -> Floats:
        """The mean loss of each row whose event happens with this chance; linear in the chance."""
        if self.binary == "squared":
            lost, gained = given**2, rest**2
            gained -= lost
            gained *= chance
            lost += gained
            return np.asarray(lost)
        from scipy.special import xlogy

        return np.asarray(-self.unit * (xlogy(chance, given) + xlogy(1 - chance, rest)))

    def entropy(self, cells: Floats) -> float:
        """The total loss of pools that forecast the frequency they have: cells are (n, 2) weights."""
        without, happened = cells[:, 0], cells[:, 1]
        n = without + happened
        if self.binary == "squared":
            return float((without * happened / n).sum())
        from scipy.special import xlogy

        # 0 * log(0) = 0: a pool where the event always or never happens loses nothing.
        return -self.unit * float((xlogy(without, without / n) + xlogy(happened, happened / n)).sum())


def split(rule: Rule, n_classes: int) -> Split:
    """The binary events that `rule` is made of; other rules are refused with the reason."""
    largest = rule.bounds(n_classes)[1]
    name = repr(rule)
    if isinstance(rule, Brier):
        shares = {"sum": "the sum", "half": "half the sum", "mean": "the mean"}
        total = f"{shares[rule.scale]} over the classes"
        return Split(name, total, False, "squared", largest / 2)
    if isinstance(rule, RPS):
        total = f"the {'mean' if rule.normalized else 'sum'} over the thresholds"
        return Split(name, total, True, "squared", largest / (n_classes - 1))
    if isinstance(rule, RankedLog):
        return Split(name, "the mean over the thresholds", True, "log", 1 / (n_classes - 1))
    if isinstance(rule, Log) and rule.clip is None:
        unit = 1.0 if rule.base == math.e else 1 / math.log(rule.base)
        if n_classes == 2:
            return Split(name, "that of its one event", False, "log", 1.0, unit)
        total = f"the sum over the classes; it is not the {name} score, which looks at one class only"
        return Split(f"one-vs-rest {name}", total, False, "log", 1.0, unit)
    raise _refusal(rule)


def _refusal(rule: Rule) -> RuleError:
    if rule.properties.proper is not Holds.ALWAYS:
        reason = "is not proper, so recalibration need not improve it and the components mean nothing"
    elif isinstance(rule, Penalized):
        reason = f"has a penalty that looks at all classes at once; decompose {rule.rule!r} instead"
    else:
        reason = "looks at all classes at once and is no sum of scores of binary events"
    return RuleError(
        "Only rules made of proper scores of binary events can be decomposed, such as brier, log, rps and "
        f"ranked_log; {rule!r} {reason}."
    )


def n_events(how: Split, n_classes: int) -> int:
    """How many events there are."""
    first, last = _positions(how, n_classes)
    return last - first


def _positions(how: Split, n_classes: int) -> tuple[int, int]:
    """The position of the first event, and where they end."""
    # With two classes and the log score, the one event says all.
    return (0, n_classes - 1) if how.thresholds else (int(n_classes == 2 and how.binary == "log"), n_classes)


def events(
    forecasts: Forecasts, rows: RowTable, how: Split, only: Collection[int] | None = None
) -> Iterator[Event]:
    """The events of valid rows, one after the other; by default all, or `only` those of some positions."""
    return (make() for make in unsorted_events(forecasts, rows, how, only))


def unsorted_events(
    forecasts: Forecasts, rows: RowTable, how: Split, only: Collection[int] | None = None
) -> Iterator[Callable[[], Event]]:
    """What makes the events, one after the other: they take less memory before their rows are sorted."""
    for columns in event_columns(forecasts, rows, how, only):
        yield partial(Event.of, *columns)


# The name of an event, what it is sorted by, its probability and that of the rest, whether it happened, how
# it is scored, and where its part of the unit interval begins.
EventColumns = tuple[str, Floats, Floats, Floats | None, Any, Split, Floats]


def event_columns(
    forecasts: Forecasts, rows: RowTable, how: Split, only: Collection[int] | None = None
) -> Iterator[EventColumns]:
    """The columns of the events, one after the other."""
    k = rows.n_classes
    labels = range(k) if forecasts.classes is None else forecasts.classes
    names = [str(label) for label in labels]
    first, last = _positions(how, k)
    above = None if not how.thresholds and how.binary == "squared" else _running(rows.p[:, ::-1])[:, ::-1]
    below = np.zeros(len(rows.y))
    for i in range(last):
        # In double precision where the forecasts' device has none.
        given = np.ascontiguousarray(rows.p[:, i], dtype=np.float64)
        start, below = below, below + given
        if i < first or (only is not None and i not in only):
            continue
        if how.thresholds:
            assert above is not None
            key = np.round(below, forecasts.unity.decimals)
            name, happened = f"<= {names[i]}", rows.y <= i
            start = np.broadcast_to(0.0, key.shape)
            yield name, key, below, above[:, i + 1], happened, how, start
            continue
        rest = None
        if above is not None:
            # Not one minus: what is left beside a nearly certain class would be rounding.
            rest = start + above[:, i + 1] if i < k - 1 else start
        yield names[i], given, given, rest, rows.y == i, how, start


def _running(p: Floats) -> Floats:
    """Sums of the columns up to each, column by column and in double precision."""
    sums = np.empty(p.shape, order="F")
    sums[:, 0] = p[:, 0]
    for i in range(1, p.shape[1]):
        np.add(sums[:, i - 1], p[:, i], out=sums[:, i])
    return sums


# ---- one event ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Event:
    """A binary event in N rows, with the P different forecasts of it.

    Attributes
    ----------
    name : str
        The class, or "<= class" for a threshold.
    key : array of shape (N,)
        What rows are sorted by; where it is the same, forecasts are.
    order : (N,) int array
        The rows by increasing forecast.
    begins : (P,) int array
        Where the rows of each of them begin in that order; empty where all rows differ.
    given, rest : array of shape (N,)
        The probabilities of the event and of its opposite.
    happened : (N,) bool array
        Whether the event happened.
    how : Split
        How events are scored.
    start : array of shape (N,)
        Where the event's part of the unit interval begins: one uniform random number per row draws the
        outcomes of all events together.
    """

    name: str
    key: Floats
    order: Ints
    begins: Ints
    given: Floats
    rest: Floats
    happened: Any
    how: Split
    start: Floats

    @classmethod
    def of(
        cls,
        name: str,
        key: Floats,
        given: Floats,
        rest: Floats | None,
        happened: Any,
        how: Split,
        start: Floats,
    ) -> Event:
        """Sort by `key` and pool the rows where it is the same; `rest` is one minus `given` by default."""
        rest = 1 - given if rest is None else rest
        order = np.argsort(key)
        ordered = key[order]
        new = np.empty(len(key), np.bool_)
        new[0] = True
        np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
        begins = np.zeros(0, np.int64) if new.all() else np.flatnonzero(new)
        return cls(name, key, order, begins, given, rest, happened, how, start)

    @property
    def values(self) -> Floats:
        """The different forecasts, increasing, (P,)."""
        return self.key[self.order if self.all_differ else self.order[self.begins]]

    @cached_property
    def pools(self) -> Ints:
        """Which of the different forecasts each row has, (N,)."""
        pools = np.empty(len(self.order), np.int64)
        pools[self.order] = np.arange(len(self.order)) if self.all_differ else self._pools_in_order
        return pools

    @property
    def all_differ(self) -> bool:
        """Whether no two rows have the same forecast."""
        return not len(self.begins)

    @property
    def _pools_in_order(self) -> Ints:
        return np.repeat(np.arange(len(self.begins)), np.diff(self.begins, append=len(self.order)))

    @cached_property
    def losses(self) -> Floats:
        """What each row loses."""
        return self.how.losses(self.given, self.rest, self.happened)

    def cells(self, weights: Floats | None) -> Floats:
        """The weight of each forecast without (column 0) and with (column 1) the event: (P, 2)."""
        happened = self.happened.take(self.order)
        if weights is None and self.all_differ:
            cells = np.empty((len(happened), 2))
            cells[:, 0], cells[:, 1] = ~happened, happened
            return cells
        mass = np.ones(len(self.order)) if weights is None else weights.take(self.order)
        return np.stack([self.pooled(mass * ~happened), self.pooled(mass * happened)], axis=1)

    def fit(self, weights: Floats | None) -> Recalibration:
        """The isotonic fit to the pools."""
        return recalibrate(self.cells(weights))

    def score(self, weights: Floats | None) -> float:
        """The mean loss; infinite where a row of positive weight has an infinite loss."""
        if weights is None:
            return float(self.losses.mean())
        # No matrix product: its sums depend on the number of threads.
        with np.errstate(invalid="ignore"):
            total = float((weights * self.losses).sum())
        if math.isnan(total):
            total = float((weights * np.where(weights > 0, self.losses, 0.0)).sum())
        return total / float(weights.sum())

    def components(self, weights: Floats | None) -> Floats:
        """Mean score, miscalibration, discrimination and uncertainty: score = mcb - dsc + unc."""
        return self.components_of(self.fit(weights), weights)

    def components_of(self, fit: Recalibration, weights: Floats | None) -> Floats:
        """The same, from the isotonic fit to the pools with these weights."""
        blocks = fit.blocks
        whole = blocks.sum(axis=0, keepdims=True)
        if not whole.any():
            return np.full(4, np.nan)
        score = self.score(weights)
        uncertainty = self.how.entropy(whole) / whole.sum()
        recalibrated = self.how.entropy(blocks) / whole.sum()
        return np.array([score, score - recalibrated, uncertainty - recalibrated, uncertainty])

    def sums(self, values: Floats) -> Floats:
        """The sums of values of rows over the pools, (P,)."""
        return self.pooled(values.take(self.order))

    def pooled(self, values: Floats) -> Floats:
        """The sums over the pools of values that are in order, (P,)."""
        return values if self.all_differ else np.add.reduceat(values, self.begins)

    def spread(self, values: Floats) -> Floats:
        """The value of each row, from those of the pools."""
        spread = np.empty(len(self.order))
        spread[self.order] = values if self.all_differ else values.take(self._pools_in_order)
        return spread

    def among(self, rows: Any) -> Event:
        """The event in some of the rows only, by a mask."""
        return Event.of(
            self.name,
            self.key[rows],
            self.given[rows],
            self.rest[rows],
            self.happened[rows],
            self.how,
            self.start[rows],
        )


@dataclass(frozen=True)
class Recalibration:
    """The isotonic fit to an event's pools.

    Attributes
    ----------
    kept : (P,) bool array
        Which pools have a positive weight; the others have no part in the fit.
    cells : array of shape (Q, 2)
        The weights of these pools without and with the event.
    sizes : (B,) int array
        The number of these pools in each block of equal recalibrated value.
    blocks : array of shape (B, 2)
        The weights of the blocks without and with the event.
    """

    kept: Any
    cells: Floats
    sizes: Any
    blocks: Floats

    @property
    def values(self) -> Floats:
        """The recalibrated value of each pool that carries weight."""
        return np.repeat(self.blocks[:, 1] / self.blocks.sum(axis=1), self.sizes)


def recalibrate(cells: Floats) -> Recalibration:
    """The non-decreasing function of the forecast that fits the event best, by every proper score."""
    n = cells[:, 0] + cells[:, 1]
    kept = n > 0
    if not kept.all():
        cells, n = cells[kept], n[kept]
    if not len(n):
        return Recalibration(kept, cells, np.zeros(0, np.int64), np.zeros((0, 2)))
    # Frequencies that do not increase from pool to pool end up in one block, so they are added up at once.
    frequency = cells[:, 1] / n
    begins = np.flatnonzero(np.concatenate([[True], frequency[1:] > frequency[:-1]]))
    del frequency
    edges, blocks = isotonic_blocks(_added(cells, begins) if len(begins) < len(n) else cells)
    return Recalibration(kept, cells, np.diff(np.append(begins, len(n))[edges]), blocks)


def isotonic_blocks(cells: Floats) -> tuple[Ints, Floats]:
    """Where the blocks of the isotonic fit to pools begin, with the end, and their weights, (B, 2)."""
    n = cells[:, 0] + cells[:, 1]
    edges = isotonic_edges(cells[:, 1] / n, n)
    # Values are read off the sums of the blocks: 0 and 1 are exact, and so are their entropies.
    return edges, _added(cells, edges[:-1])


def _added(cells: Floats, begins: Ints) -> Floats:
    """The sums of the rows from each beginning to the next."""
    return np.stack([np.add.reduceat(column, begins) for column in cells.T], axis=1)
