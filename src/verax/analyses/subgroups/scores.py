"""Tests of the calibration of subgroups: score statistics of shift, slope and shape, from sums that merge.

With L the log-odds of a forecast p, v = p (1 - p) and d = y - p, each event of a subgroup has the sums of d,
dL, dL^2 and of v, vL, ..., vL^4. From them come three statistics, each centred so that none moves another:
the shift sum d, the slope sum d c with c = L - m, and the shape sum d h with h = c^2 - b1 c - b0. Where
normal tails may be inexact, the tail is that of the saddlepoint, from the distinct forecasts. Sums of groups
give variances that allow for rows of a group to be alike (CR2, Bell and McCaffrey 2002).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from verax.analyses.calibration.claims import average_variance
from verax.analyses.calibration.scored import log_odds, row_scores
from verax.analyses.calibration.sums import SummedEvent, unpacked
from verax.inference.saddlepoint import EventSegments, log_tails
from verax.inputs.arrays import Floats, Ints

KINDS = ("shift", "slope", "shape")
SHIFT, SLOPE, SHAPE = range(3)
# The shares of the level of an event.
_SHARES = (0.5, 0.25, 0.25)
# The number of rows of the rarer outcome that must be expected for each test, and the number of groups.
FEWEST = (2.0, 10.0, 20.0)
_FEWEST_GROUPS = 4
# Below this p-value the tail is that of the saddlepoint, unless this number of the rarer outcome is expected;
# for the shift, this number times its squared z.
_REFINED, _MANY, _MANY_FOR_SHIFT = 0.05, 3000.0, 300.0
# Variances that are a smaller part of what they are a difference of are rounding.
_ROUNDING = 1e-10
# The number of distinct forecasts whose tails are computed together.
_TOGETHER = 2**17


@dataclass(frozen=True)
class Centred:
    """The three statistics of S events, (S, 3), their variances, and how they were centred, (S,).

    Variances that are rounding are 0.
    """

    statistics: Floats
    variances: Floats
    m: Floats
    b1: Floats
    b0: Floats

    @classmethod
    def of(cls, sums: Floats) -> Centred:
        """Those of the (8, S) sums."""
        v0, v1, v2, _, v4 = sums[3:]
        with np.errstate(invalid="ignore", divide="ignore"):
            m = np.where(v0 > 0, v1 / v0, 0.0)
            d0, d1, d2, _, _, c2, c3, c4 = _about(sums, m)
            sloped = c2 > _ROUNDING * v2
            b1, b0 = np.where(sloped, c3 / c2, 0.0), np.where(sloped, c2 / v0, 0.0)
        last = c4 - b1 * c3 - b0 * c2
        variances = np.stack(
            [v0, np.where(sloped, c2, 0.0), np.where(sloped & (last > _ROUNDING * v4), last, 0.0)]
        )
        return cls(np.stack([d0, d1, d2 - b1 * d1 - b0 * d0]).T, variances.T, m, b1, b0)

    def at(self, i: int) -> Centred:
        """One of them."""
        one = slice(i, i + 1)
        return Centred(self.statistics[one], self.variances[one], self.m[one], self.b1[one], self.b0[one])

    def scores(self, at: Ints, kind: int, odds: Floats) -> Floats:
        """What a row of event `at` with these log-odds adds to a statistic where the event happens."""
        if kind == SHIFT:
            return np.ones(len(odds))
        c = odds - self.m[at]
        return c if kind == SLOPE else c * c - self.b1[at] * c - self.b0[at]

    def of_groups(self, sums: Floats) -> tuple[Floats, Floats]:
        """What groups add to the statistics of the only event and to their variances, from (G, 8) sums."""
        d0, d1, d2, v0, c1, c2, c3, c4 = _about(sums.T, self.m)
        b1, b0 = self.b1, self.b0
        last = c4 + b1 * b1 * c2 + b0 * b0 * v0 - 2 * b1 * c3 - 2 * b0 * c2 + 2 * b1 * b0 * c1
        return np.stack([d0, d1, d2 - b1 * d1 - b0 * d0]), np.stack([v0, c2, last])


def _about(sums: Floats, m: Floats) -> list[Floats]:
    """The same sums with log-odds that are centred at m."""
    d0, d1, d2, v0, v1, v2, v3, v4 = sums
    return [
        d0,
        d1 - m * d0,
        d2 - 2 * m * d1 + m * m * d0,
        v0,
        v1 - m * v0,
        v2 - 2 * m * v1 + m * m * v0,
        v3 - 3 * m * v2 + 3 * m * m * v1 - m**3 * v0,
        v4 - 4 * m * v3 + 6 * m * m * v2 - 4 * m**3 * v1 + m**4 * v0,
    ]


# ---- groups --------------------------------------------------------------------------------------


def cr2(excess: Floats, variance: Floats) -> tuple[float, float]:
    """The variance of the sum of what groups add to a statistic, and its degrees of freedom.

    `variance` is that of each group if its rows are independent. The degrees of freedom are those of Bell and
    McCaffrey where groups vary as independent rows do; zero with fewer than four groups, or where one group
    has all of the variance.

    >>> spread, freedom = cr2(np.array([2.0, -1.0, 3.0, -4.0, 1.0]), np.ones(5))
    >>> round(spread, 4), round(freedom, 4)
    (38.5, 4.0)
    """
    filled = variance > 0
    excess, variance = excess[filled], variance[filled]
    share = variance / variance.sum() if len(variance) else variance
    if len(share) < _FEWEST_GROUPS or share.max() >= 1:
        return math.nan, 0.0
    left = share * share / (1 - share)
    trace = float((share * share).sum() + left.sum() ** 2 - (left * left).sum())
    return float(((excess - share * excess.sum()) ** 2 / (1 - share)).sum()), 1 / trace


def p_over_groups(total: float, least: float, variance: float, freedom: float) -> float:
    """The two-sided p-value of a sum over groups, by Student's t, but no smaller than of independent rows."""
    from scipy.special import stdtr

    if not (freedom > 0 and least > 0):
        return math.nan
    normal = math.erfc(abs(total) / math.sqrt(2 * least))
    return max(normal, 2 * float(stdtr(freedom, -abs(total) / math.sqrt(variance))) if variance > 0 else 0.0)


# ---- tests ---------------------------------------------------------------------------------------


_NONE = np.zeros(0)


@dataclass
class EventTest:
    """The tests of one event in a subgroup, once they are settled.

    Attributes
    ----------
    share : float
        The share of the event among those of the subgroup.
    factor : float
        What normal scores are multiplied by; below one where the elements of a row depend on each other.
    sums_of_groups : (G, 8) array or None
        The sums of groups.
    statistics, variances, p_values : arrays of shape (3,)
        Each statistic, its variance if rows are independent and forecasts right, and its p-value; NaN where
        there is no test.
    of_groups : pair of (3, G) arrays, or None
        What each group adds to the statistics and to their variances.
    rarer : float
        The number of rows of the rarer outcome that were expected.
    impossible : bool
        Whether what was forecast with probability 0 happened.
    weight, observed, expected, squares : float
        The weight of the rows, of those with the event, of what was expected, and the sum of squared weights.
    average : float
        The variance of observed minus expected if forecasts are right on average.
    """

    share: float
    factor: float
    sums_of_groups: Floats | None
    statistics: Floats = field(default_factory=lambda: _NONE)
    variances: Floats = field(default_factory=lambda: _NONE)
    p_values: Floats = field(default_factory=lambda: _NONE)
    of_groups: tuple[Floats, Floats] | None = None
    rarer: float = 0.0
    impossible: bool = False
    weight: float = 0.0
    observed: float = 0.0
    expected: float = 0.0
    squares: float = 0.0
    average: float = 0.0

    @property
    def has_rows(self) -> bool:
        """Whether enough rows are expected for a test, whatever the groups."""
        return self.rarer >= FEWEST[SHIFT]


# Forecasts, weights, weights with the event, weights times forecasts, and squared weights.
_Columns = tuple[Floats, Floats, Floats, Floats, Floats]


@dataclass
class TestQueue:
    """Events whose tests are computed many at a time, from their rows or distinct forecasts."""

    _rows: list[tuple[EventTest, Any]] = field(default_factory=list)
    _binned: list[tuple[EventTest, _Columns]] = field(default_factory=list)
    _size: int = 0

    def ask(
        self,
        event: SummedEvent,
        *,
        copies: bool = False,
        share: float = 1.0,
        factor: float = 1.0,
        groups: Floats | None = None,
    ) -> EventTest:
        """The tests of an event, which are complete once the queue is settled."""
        test = EventTest(share, factor, groups)
        if event.packed is not None:
            self._rows.append((test, event.packed))
            self._size += len(event.packed)
        else:
            bins = event.bins
            squares = bins.weight if copies else bins.squares
            self._binned.append((test, (bins.forecast, bins.weight, bins.happened, bins.claimed, squares)))
            self._size += len(bins.weight)
        if self._size > _TOGETHER:
            self.settle()
        return test

    def settle(self) -> None:
        """Compute what was asked for."""
        if self._rows:
            tests, packed = zip(*self._rows, strict=True)
            q, happened = unpacked(np.concatenate(packed))
            ones = np.ones(len(q))
            _settle(tests, (q, ones, happened, q, ones), [len(each) for each in packed])
        if self._binned:
            tests, binned = zip(*self._binned, strict=True)
            columns = [np.concatenate(each) for each in zip(*binned, strict=True)]
            lengths = [len(each[0]) for each in binned]
            _settle(tests, (columns[0], columns[1], columns[2], columns[3], columns[4]), lengths)
        self._rows, self._binned, self._size = [], [], 0


def _settle(tests: Sequence[EventTest], columns: _Columns, lengths: Sequence[int]) -> None:
    """Complete tests from the columns of their events, one after the other."""
    begins = np.cumsum([0, *lengths[:-1]])
    batch = _Batch.of(columns, begins, np.repeat(np.arange(len(lengths)), lengths))
    p = batch.p_values(np.array([test.factor for test in tests]), tests)
    for i, (test, counts) in enumerate(zip(tests, batch.counts.T.tolist(), strict=True)):
        test.statistics, test.variances = batch.centred.statistics[i], batch.centred.variances[i]
        test.p_values, test.rarer = p[i], float(batch.rarer[i])
        test.impossible = bool(batch.impossible[i])
        test.weight, test.observed, test.expected, test.squares, test.average = counts
        if test.sums_of_groups is not None:
            test.of_groups = batch.centred.at(i).of_groups(test.sums_of_groups)
            test.p_values = _over_groups(test)


@dataclass(frozen=True)
class _Batch:
    """The sums of several events, and their distinct forecasts one after the other.

    Attributes
    ----------
    centred : Centred
        The statistics.
    rarer, impossible : arrays of shape (S,)
        As in `EventTest`.
    counts : array of shape (5, S)
        Weight, observed, expected, sum of squared weights, and variance where right on average.
    q, odds, times, unit : arrays of shape (N,)
        The forecasts and their log-odds, the number of independent rows that each is worth, and their weight.
    begins, at : int arrays of shape (S,), (N,)
        Where each event begins, and the event of each forecast.
    """

    centred: Centred
    rarer: Floats
    impossible: Any
    counts: Floats
    q: Floats
    odds: Floats
    times: Floats
    unit: Floats
    begins: Ints
    at: Ints

    @classmethod
    def of(cls, columns: _Columns, begins: Ints, at: Ints) -> _Batch:
        q, weight, happened, claimed, squares = columns

        def add(values: Any) -> Floats:
            return np.asarray(np.add.reduceat(values, begins))

        odds, rest = log_odds(q), weight - happened
        centred = Centred.of(np.stack([add(c) for c in row_scores(q, odds, happened - claimed, squares)]))
        unit = squares / weight
        times = weight / unit
        likely = add(times * q)
        wrong = ((q <= 0) & (happened > 0)) | ((q >= 1) & (rest > 0))
        totals = [add(column) for column in (weight, happened, claimed)]
        with_event, without = add(unit * happened * (1 - q) ** 2), add(unit * rest * q**2)
        average = average_variance(totals[0], totals[1], totals[2], with_event, without)
        return cls(
            centred,
            np.minimum(likely, add(times) - likely),
            np.logical_or.reduceat(wrong, begins),
            np.stack([*totals, add(squares), average]),
            q,
            odds,
            times,
            unit,
            begins,
            at,
        )

    def p_values(self, factor: Floats, tests: Sequence[EventTest]) -> Floats:
        """(S, 3) p-values of events without groups; NaN where there is no test."""
        from scipy.special import erfc, ndtri

        variances = self.centred.variances
        with np.errstate(invalid="ignore", divide="ignore"):
            z = np.abs(self.centred.statistics) / np.sqrt(variances)
        p = np.where((self.rarer[:, None] >= FEWEST) & (variances > 0), erfc(z / np.sqrt(2)), np.nan)
        ungrouped = np.array([test.sums_of_groups is None for test in tests])
        many = np.stack(
            [_MANY_FOR_SHIFT * np.maximum(z[:, 0] ** 2, 1), *[np.full(len(z), _MANY)] * 2], axis=1
        )
        refined = (p < _REFINED) & (self.rarer[:, None] < many) & ungrouped[:, None]
        self._refine(p, refined)
        weak = factor < 1
        p[weak] = erfc(-factor[weak, None] * ndtri(p[weak] / 2) / np.sqrt(2))
        return p

    def _refine(self, p: Floats, refined: Any) -> None:
        """Put the tails of saddlepoints in the place of normal ones."""
        inner = (self.q > 0) & (self.q < 1)
        # Of weights only the ratios matter.
        scale = self.counts[3] / self.counts[0]
        columns, sizes = [], []
        for kind in range(len(KINDS)):
            rows = np.flatnonzero(refined[self.at, kind] & inner)
            at = self.at[rows]
            sign = np.sign(self.centred.statistics[:, kind])
            score = self.centred.scores(at, kind, self.odds[rows]) * self.unit[rows] * (sign / scale)[at]
            columns.append((score, self.q[rows], self.times[rows]))
            sizes.append(np.bincount(at, minlength=len(p))[refined[:, kind]])
        if not refined.any():
            return
        joined = [np.concatenate(each) for each in zip(*columns, strict=True)]
        events = EventSegments(joined[0], joined[1], joined[2], np.concatenate(sizes))
        tails = log_tails(events, np.abs(self.centred.statistics.T / scale)[refined.T])
        p.T[refined.T] = np.minimum(2 * np.exp(tails), 1.0)


def _over_groups(test: EventTest) -> Floats:
    """The p-values of an event whose rows are in groups."""
    p = np.full(len(KINDS), np.nan)
    assert test.of_groups is not None
    for kind, (excess, variance) in enumerate(zip(*test.of_groups, strict=True)):
        if test.rarer >= FEWEST[kind] and test.variances[kind] > 0:
            spread = cr2(excess, variance)
            p[kind] = p_over_groups(float(test.statistics[kind]), float(test.variances[kind]), *spread)
    return p


def p_of_subgroup(tests: Sequence[EventTest]) -> float:
    """The p-value of a subgroup: the smallest of its tests over its share of the level; NaN without tests.

    Tests that there are none of leave their share to the others. What was forecast as impossible and happened
    has a p-value of 0.
    """
    if any(test.impossible for test in tests):
        return 0.0
    known = [
        (p, test.share * share)
        for test in tests
        for p, share in zip(test.p_values.tolist(), _SHARES, strict=True)
        if not math.isnan(p)
    ]
    total = sum(share for _, share in known)
    return min((min(1.0, p * total / share) for p, share in known), default=math.nan)


def p_by_kind(tests: Sequence[EventTest], kind: int) -> float | None:
    """The p-value of one kind of test over the events of a subgroup; None without one."""
    known = [(p, test.share) for test in tests if not math.isnan(p := float(test.p_values[kind]))]
    total = sum(share for _, share in known)
    return min((min(1.0, p * total / share) for p, share in known), default=None)
