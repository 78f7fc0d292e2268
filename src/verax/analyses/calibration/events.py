"""The binary events inside a forecast: a class against the rest, or a threshold of ordered classes.

Rows are sorted once for each event, and rows with equal forecasts are pooled. For any weights of the
rows, recalibrating an event is one isotonic fit to its pools.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from verax.analyses.calibration.isotonic import isotonic_edges
from verax.analyses.table import RowTable
from verax.analyses.units import sums_at
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
            return np.asarray(chance * rest**2 + (1 - chance) * given**2)
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


def events(forecasts: Forecasts, rows: RowTable, how: Split) -> Iterator[Event]:
    """The events of valid rows, one after the other."""
    k = rows.n_classes
    labels = range(k) if forecasts.classes is None else forecasts.classes
    names = [str(label) for label in labels]
    # By column, and in double precision where the forecasts' device has none.
    p = np.asfortranarray(rows.p, dtype=np.float64)
    below = _running(p)
    # With two classes and the log score, the one event says all.
    first, last = (0, k - 1) if how.thresholds else (int(k == 2 and how.binary == "log"), k)
    above = None if not how.thresholds and how.binary == "squared" else _running(p[:, ::-1])[:, ::-1]
    for i in range(first, last):
        if how.thresholds:
            assert above is not None
            given, rest, happened = below[:, i], above[:, i + 1], rows.y <= i
            key = np.round(given, forecasts.unity.decimals)
            yield Event.of(f"<= {names[i]}", key, given, rest, happened, how, np.zeros(len(given)))
            continue
        given = p[:, i]
        start = below[:, i - 1] if i else np.zeros(len(given))
        rest = 1 - given
        if above is not None:
            # Not one minus: what is left beside a nearly certain class would be rounding.
            rest = start + above[:, i + 1] if i < k - 1 else start
        yield Event.of(names[i], given, given, rest, rows.y == i, how, start)


def _running(p: Floats) -> Floats:
    """Sums of the columns up to each."""
    sums = np.empty_like(p, order="F")
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
    values : (P,) array
        The different forecasts, increasing.
    pools : (N,) int array
        Which of them each row has.
    given, rest : (N,) arrays
        The probabilities of the event and of its opposite.
    happened : (N,) bool array
        Whether the event happened.
    how : Split
        How events are scored.
    start : (N,) array
        Where the event's part of the unit interval begins: one uniform random number per row draws the
        outcomes of all events together.
    """

    name: str
    values: Floats
    pools: Ints
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
        rest: Floats,
        happened: Any,
        how: Split,
        start: Floats,
    ) -> Event:
        """Sort by `key` and pool the rows where it is the same."""
        order = np.argsort(key)
        ordered = key[order]
        new = np.empty(len(key), np.bool_)
        new[0] = True
        np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
        pools = np.empty(len(key), np.int64)
        pools[order] = np.cumsum(new)
        pools -= 1
        return cls(name, ordered[new], pools, given, rest, happened, how, start)

    @cached_property
    def losses(self) -> Floats:
        """What each row loses."""
        return self.how.losses(self.given, self.rest, self.happened)

    @cached_property
    def _codes(self) -> Any:
        return 2 * self.pools + self.happened

    def cells(self, weights: Floats | None) -> Floats:
        """The weight of each forecast without (column 0) and with (column 1) the event: (P, 2)."""
        counts = np.bincount(self._codes, weights, 2 * len(self.values))
        return counts.reshape(-1, 2).astype(np.float64, copy=False)

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
        blocks = recalibrate(self.cells(weights)).blocks
        whole = blocks.sum(axis=0, keepdims=True)
        if not whole.any():
            return np.full(4, np.nan)
        score = self.score(weights)
        uncertainty = self.how.entropy(whole) / whole.sum()
        recalibrated = self.how.entropy(blocks) / whole.sum()
        return np.array([score, score - recalibrated, uncertainty - recalibrated, uncertainty])

    def sums(self, values: Floats) -> Floats:
        """The sums of values of rows over the pools, (P,)."""
        return sums_at(self.pools, values, len(self.values))

    def among(self, rows: Any) -> Event:
        """The event in some of the rows only, by a mask."""
        key = self.values[self.pools][rows]
        return Event.of(
            self.name, key, self.given[rows], self.rest[rows], self.happened[rows], self.how, self.start[rows]
        )


@dataclass(frozen=True)
class Recalibration:
    """The isotonic fit to an event's pools.

    Attributes
    ----------
    kept : (P,) bool array
        Which pools have a positive weight; the others have no part in the fit.
    sizes : (B,) int array
        The number of these pools in each block of equal recalibrated value.
    blocks : (B, 2) array
        The weights of the blocks without and with the event.
    """

    kept: Any
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
        return Recalibration(kept, np.zeros(0, np.int64), np.zeros((0, 2)))
    edges = isotonic_edges(cells[:, 1] / n, n)
    # Values are read off the sums of the blocks: 0 and 1 are exact, and so are their entropies.
    return Recalibration(kept, np.diff(edges), np.add.reduceat(cells, edges[:-1]))
