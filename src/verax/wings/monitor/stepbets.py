"""Bets of a monitor on whole time steps, whose rows may depend on each other in any way.

A step's mean X (loss minus the tolerated one, or a gap between outcomes and probabilities) is divided by its
standard deviation, predicted from earlier steps. A bet of stake s multiplies its capital by 1 + tanh(s z),
whose expectation is at most 1 if X is symmetric about a mean of at most 0, whatever its standard deviation.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from verax.inputs.arrays import Bools, Floats
from verax.wings.monitor.bets import DIRECTIONS, adapted
from verax.wings.monitor.loops import BINS
from verax.wings.monitor.steps import EXCESS, OF_EVENT, PER_EVENT, SHIFT, STATED, TILT, Step

# Stakes in standard deviations of a step, and, for the bets that hold for any law with a least value, as
# shares of the distance to it.
STAKES: Floats = 1.4 * 2.0 ** (-np.arange(10) / 2)
BOUNDED: Floats = 0.75 * 2.0 ** (-np.arange(10) / 2)
# Half of the capital begins at the first step, the rest later and later.
_FIRST = 0.5
# Correlation of the rows of a step that is assumed before any is seen, and the steps it counts for.
_CORRELATION, _STEPS = 0.01, 4.0
# Steps of fewer rows say less about the variance between steps; one step says at most a multiple of its own.
_SMALL, _MOST = 20.0, 10.0
# Steps of one row are joined until there are five; claims about events until the sum of p(1 - p) is three.
_ROWS, _INFORMATION = 5, 3.0
# The smaller evidence counts for the loss before this number of steps; neighbours are compared after it.
SEEN = 20
# It counts later where past steps are more skewed to the left: those of the loss, and of joined events.
_LEFT, _LEFT_JOINED = -0.5, -1.0
# Neighbouring steps resemble each other if their correlation exceeds this many standard errors.
_ALIKE = 1.28
# The least values of means of tilted gaps: (1 - 2p)(h - p), its opposite, and any that adapts.
_TILTED, _REVERSED, _ADAPTED = 1 / 8, 1.0, 1.0
# The distance to the least value of what cannot happen, in place of zero.
_IMPOSSIBLE = 1e-9
# The share of the capital against events that is bet at once, by bets that hold for any law.
_AT_ONCE = 0.2
# Which mean each direction bets on (shift, tilt, adaptive), and its sign.
_COLUMN = np.array([0, 0, 1, 1, 2])
_SIGN = np.array([1.0, -1.0, 1.0, -1.0, 1.0])


def log_starts(steps: Floats) -> Floats:
    """Logarithms of the shares of the capital that begin at the 1st, 2nd, ... step; they sum to 1.

    >>> float(np.exp(log_starts(np.arange(1.0, 10**6))).sum().round(3))
    0.975
    """
    late = 1 / np.log2(steps + 1) - 1 / np.log2(steps + 2)
    return np.asarray(np.log((1 - _FIRST) * late + _FIRST * (steps == 1)))


def log_reserve(steps: Floats) -> Floats:
    """The logarithm of the share of the capital that has not begun after a number of steps."""
    return np.asarray(np.log(np.where(steps > 0, (1 - _FIRST) / np.log2(steps + 2), 1.0)))


def log_tanh(z: Any) -> Floats:
    """(..., 10) logarithms of 1 + tanh(s z) for each stake.

    >>> bool(np.allclose(np.exp(log_tanh(0.7)) + np.exp(log_tanh(-0.7)), 2))
    True
    """
    return np.asarray(math.log(2) - np.logaddexp(0.0, -2 * STAKES * np.asarray(z)[..., None]))


class BetSpread:
    """The variance of step means, predicted from earlier steps: one part between steps, one within."""

    def __init__(self, sums: Floats) -> None:
        # Within steps: squares and degrees of freedom. Between: excess and weight. So far: sums and rows.
        self.sums = sums

    def variance(self, n: Any) -> Floats:
        """The variance of the mean of the next step, of n rows; NaN before the first."""
        squares, freedom, excess, weight, _, _ = self.sums
        with np.errstate(invalid="ignore", divide="ignore"):
            within = np.where(freedom > 0, squares / freedom, np.nan)
        between = (_STEPS * _CORRELATION * within + excess) / (_STEPS + weight)
        return np.asarray(np.maximum(between, 0.0) + within / n)

    def learn(self, n: Any, mean: Floats, squares: Floats, which: Any = True) -> None:
        """Take in a step of n rows with their mean and the squares about it, where `which` is true."""
        several = which & (n > 1)
        self.sums[0] += np.where(several, squares, 0.0)
        self.sums[1] += np.where(several, n - 1, 0.0)
        within, freedom, _, _, total, rows = self.sums
        again = several & (rows > 0)
        with np.errstate(invalid="ignore", divide="ignore"):
            variance = within / freedom
            distance = (mean - total / rows) ** 2 - variance * (1 / n + 1 / rows)
        share = n / (n + _SMALL)
        self.sums[2] += np.where(again, share * np.minimum(distance, _MOST * variance), 0.0)
        self.sums[3] += np.where(again, share, 0.0)
        self.sums[4] += np.where(several, n * mean, 0.0)
        self.sums[5] += np.where(several, n, 0)


def _table(step: Step) -> Floats:
    """(8, 1 + E) sums of a step, as those of rows that wait."""
    at = OF_EVENT + PER_EVENT * np.arange((len(step.first) - OF_EVENT) // PER_EVENT)
    columns = np.array([np.append(EXCESS, at + column) for column in (STATED, SHIFT, TILT)])
    first, second = step.first[columns], step.second[columns]
    # The loss has one mean, in the place of the gap.
    first[[0, 2], 0], second[[0, 2], 0] = 0.0, 0.0
    return np.concatenate([np.full((2, columns.shape[1]), float(step.n_units)), first, second])


def _floors(table: Floats) -> Floats:
    """(1 + E, 5) distances of the least values that means can have below 0, given the probabilities."""
    stated = table[2] / np.maximum(table[0], 1)
    floors = np.ones((len(stated), len(DIRECTIONS)))
    floors[1:] = np.nan, np.nan, _TILTED, _REVERSED, _ADAPTED
    floors[1:, 0], floors[1:, 1] = stated[1:], 1 - stated[1:]
    return np.maximum(floors, _IMPOSSIBLE)


@dataclass
class StepBets:
    """The bets on whole time steps of all rows, or of a subgroup.

    The first claim is about the loss, the others are about events. A claim has three means (for the loss only
    the first counts): the gap, its tilted form, and one that adapts to earlier steps; five directions bet on
    them. Claims about events wait until steps, joined, tell enough, because means of rare events are skewed;
    a part of their capital is bet at once, by bets that hold for any law, which find what cannot happen.

    Attributes
    ----------
    share : float
        The share of the initial capital that was bet on these rows.
    restarts : bool
        Whether new capital begins at every step.
    capital, bounded : array of shape (1 + E, 5, 10)
        Logarithms of the capital of each stake, and of that of bets that hold for any law.
    steps : array of shape (2, 1 + E)
        The number of steps of both; for the first, joined ones count as one.
    left : array of shape (1 + E, 5)
        Whether the smaller of both capitals is the evidence.
    spread : array of shape (6, 1 + E, 3)
        What is known about the variance of step means.
    powers : array of shape (7, 1 + E, 3)
        Of the standardised means that were bet on: their number, the sums of three powers and of products of
        neighbours, the first and the last.
    waiting : array of shape (8, 1 + E)
        Rows that wait: their number, the largest number in a step, sums of the probability, gap and tilted
        gap, and of their squares.
    waiting_bins, bins : array of shape (E, 16, 2)
        Sums of outcome minus probability and of its square: of rows that wait, and of earlier ones.
    """

    share: float
    restarts: bool
    capital: Floats
    bounded: Floats
    steps: Floats
    left: Bools
    spread: Floats
    powers: Floats
    waiting: Floats
    waiting_bins: Floats
    bins: Floats

    @classmethod
    def fresh(cls, n_events: int, share: float, *, restarts: bool) -> Self:
        """The bets before the first step."""
        claims, ways, stakes = 1 + n_events, len(DIRECTIONS), len(STAKES)
        left = np.zeros((claims, ways), bool)
        left[0] = True
        return cls(
            share,
            restarts,
            np.full((claims, ways, stakes), -np.inf),
            np.full((claims, ways, stakes), -np.inf),
            np.zeros((2, claims)),
            left,
            np.zeros((6, claims, 3)),
            np.zeros((7, claims, 3)),
            np.zeros((8, claims)),
            np.zeros((n_events, BINS, 2)),
            np.zeros((n_events, BINS, 2)),
        )

    # ---- a step comes in -------------------------------------------------------------------------

    def bet(self, step: Step, *, opens: bool) -> None:
        """Take in a whole step."""
        assert opens, "a step enters as a whole"
        table = _table(step)
        self._bet_bounded(table, step.bins)
        most = np.maximum(self.waiting[1], table[1])
        self.waiting += table
        self.waiting[1] = most
        self.waiting_bins += step.bins
        information = self.waiting[2] - self.waiting[5]
        ready = information >= _INFORMATION
        ready[0] = most[0] > 1 or self.waiting[0, 0] >= _ROWS
        if ready.any():
            self._bet_joined(ready)
            self.bins[ready[1:]] += self.waiting_bins[ready[1:]]
            self.waiting[:, ready], self.waiting_bins[ready[1:]] = 0.0, 0.0

    def wait(self) -> None:
        """Begin a step without rows: no bet is made, and no capital begins."""

    def _means(self, table: Floats, bins: Floats) -> tuple[Floats, Floats]:
        """(1 + E, 3) means of some rows, and the squares about them."""
        n, slope = np.maximum(table[0], 1)[:, None], adapted(self.bins)
        first, second = np.zeros((2, len(n), 3))
        first[:, :2], second[:, :2] = table[3:5].T, table[6:8].T
        first[1:, 2] = (slope * bins[:, :, 0]).sum(axis=1)
        second[1:, 2] = (slope * slope * bins[:, :, 1]).sum(axis=1)
        return first / n, np.maximum(second - first * first / n, 0.0)

    def _starts(self, steps: Floats) -> Floats:
        """(1 + E, 1, 1) logarithms of the capital that begins at the last of these numbers of steps."""
        starts = np.zeros(len(steps)) if self.restarts else log_starts(np.maximum(steps, 1))
        return starts[:, None, None]

    def _bet_bounded(self, table: Floats, bins: Floats) -> None:
        """Bet on a step, whatever the law of its means: they have least values."""
        means, _ = self._means(table, bins)
        self.steps[1] += 1
        begun = np.logaddexp(self.bounded, self._starts(self.steps[1]))
        shares = np.maximum(means[:, _COLUMN] * _SIGN / _floors(table), -1.0)
        self.bounded = begun + np.log1p(BOUNDED * shares[..., None])

    def _bet_joined(self, ready: Bools) -> None:
        """Bet on the steps that wait, for the claims that are ready."""
        means, squares = self._means(self.waiting, self.waiting_bins)
        rows, spread = np.maximum(self.waiting[0], 1)[:, None], BetSpread(self.spread)
        with np.errstate(invalid="ignore", divide="ignore"):
            variance = spread.variance(rows)
            known = ready[:, None] & (variance > 0)
            z = np.where(known, means / np.sqrt(variance), 0.0)
        self.steps[0] += ready
        begun = np.logaddexp(self.capital, self._starts(self.steps[0]))
        factors = np.where(known[:, _COLUMN, None], log_tanh(z[:, _COLUMN] * _SIGN), 0.0)
        self.capital = np.where(ready[:, None, None], begun + factors, self.capital)
        skewness, early = self.skewness, self.powers[0][:, _COLUMN] < SEEN
        left = ~early & (skewness < _LEFT_JOINED)
        left[0] = early[0] | (skewness[0] < _LEFT)
        self.left = np.where(ready[:, None], left, self.left)
        self._note(known, z)
        spread.learn(rows, means, squares, ready[:, None])

    def _note(self, known: Bools, z: Floats) -> None:
        """Note the standardised means that were bet on."""
        count, last = self.powers[0].copy(), self.powers[6].copy()
        self.powers[4] += np.where(known & (count > 0), z * last, 0.0)
        self.powers[5] = np.where(known & (count == 0), z, self.powers[5])
        self.powers[6] = np.where(known, z, last)
        self.powers[:4] += np.where(known, np.stack([np.ones_like(z), z, z * z, z**3]), 0.0)

    # ---- evidence --------------------------------------------------------------------------------

    @property
    def logs(self) -> Floats:
        """(1 + E, 5) logarithms of the evidence of each direction; of the loss the first counts."""
        sure, exact = (
            np.logaddexp(np.logaddexp.reduce(each, axis=2) - math.log(len(STAKES)), self._kept(steps))
            for each, steps in zip((self.capital, self.bounded), self.steps, strict=True)
        )
        smaller = np.where(self.left, np.minimum(sure, exact), sure)
        both = np.logaddexp(math.log1p(-_AT_ONCE) + smaller, math.log(_AT_ONCE) + exact)
        both[0] = smaller[0]
        return np.asarray(both)

    def _kept(self, steps: Floats) -> Floats:
        """(1 + E, 1) logarithms of the capital that has not begun."""
        kept = np.full(len(steps), -np.inf) if self.restarts else log_reserve(steps)
        return kept[:, None]

    # ---- what is doubtful about it ------------------------------------------------------------------

    @property
    def skewness(self) -> Floats:
        """(1 + E, 5) skewness of the standardised means that were bet on, by direction."""
        count, *sums = self.powers[:4]
        with np.errstate(invalid="ignore", divide="ignore"):
            mean, square, cube = (each / count for each in sums)
            variance = square - mean * mean
            skewness = (cube - 3 * mean * square + 2 * mean**3) / variance**1.5
        some = (count >= 3) & (variance > 1e-12)
        return np.asarray(np.where(some, skewness, 0.0)[:, _COLUMN] * _SIGN)

    def n_bets(self, claim: int) -> int:
        """The number of steps that bets against a claim were made on."""
        return int(self.powers[0, claim].max())

    def correlation(self, claim: int) -> float:
        """The correlation of neighbouring steps, for the claim's strongest bet; 0 unless it is certain."""
        way = 0 if claim == 0 else int(self.logs[claim].argmax())
        count, total, squares, _, products, first, last = self.powers[:, claim, _COLUMN[way]].tolist()
        if count < SEEN:
            return 0.0
        mean = total / count
        spread = squares - count * mean * mean
        if not spread > 0:
            return 0.0
        r = (products - mean * (2 * total - first - last) + (count - 1) * mean * mean) / spread
        return float(r) if r + 1.5 / count > _ALIKE / math.sqrt(count) else 0.0

    # ---- storing ---------------------------------------------------------------------------------

    def to_values(self) -> dict[str, Any]:
        """The fields, for storing."""
        return dict(vars(self))

    @classmethod
    def from_values(cls, values: Mapping[str, Any], n_events: int, *, restarts: bool) -> Self:
        """The stored bets."""
        empty = cls.fresh(n_events, float(values["share"]), restarts=restarts)
        arrays: dict[str, Any] = {
            name: np.array(values[name], like.dtype)
            for name, like in vars(empty).items()
            if isinstance(like, np.ndarray)
        }
        if any(arrays[name].shape != getattr(empty, name).shape for name in arrays):
            raise ValueError("capital of another shape")
        return replace(empty, **arrays)
