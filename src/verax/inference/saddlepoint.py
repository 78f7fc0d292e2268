"""Tail probabilities of weighted sums of independent events, in logarithms and without draws.

For S = sum a (Y - p) with Y of probability p, the saddlepoint t solves K'(t) = x for the cumulant generating
function K(t) = sum log(1 - p + p exp(t a)) - t a p. With w = sqrt(2 (t x - K(t))) and u = t sqrt(K''(t)) the
chance of at least x is about that of a normal variable beyond w + log(u / w) / w (Lugannani and Rice 1980,
doi:10.2307/1426607; Barndorff-Nielsen 1986, doi:10.1093/biomet/73.2.307). For counts it is close to the mid-P
tail.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from verax.common.caching import cached_property
from verax.inputs.arrays import Bools, Floats, Ints

# The most doublings of a bracket and steps to a root, which is known when it moves less than this.
_DOUBLINGS, _STEPS, _SETTLED = 60, 80, 1e-10
# Sums nearer than this to their largest value have reached it; brackets begin no further out.
_REACHED, _FURTHEST = 1e-9, 1e6
# Logarithms of odds beyond this would overflow.
_ODDS = 700.0
_TINY = 1e-300


@dataclass(frozen=True)
class EventSegments:
    """The events of several sums, those of each sum in a row.

    Attributes
    ----------
    score, chance, times : arrays of shape (N,)
        What each event adds, its probability, above 0 and below 1, and the number of such events.
    lengths : (S,) int array
        The number of events of each sum.
    """

    score: Floats
    chance: Floats
    times: Floats
    lengths: Ints

    @cached_property
    def log_odds(self) -> Floats:
        """The log-odds of the events, (N,)."""
        return np.asarray(np.log(self.chance) - np.log1p(-self.chance))

    @cached_property
    def _begins(self) -> Ints:
        return np.cumsum(self.lengths) - self.lengths

    @cached_property
    def _of(self) -> Ints:
        """The sum that each event belongs to, (N,)."""
        return np.repeat(np.arange(len(self.lengths)), self.lengths)

    def add(self, values: Any) -> Floats:
        """The sums of values over the events of each sum, (S,)."""
        return np.asarray(np.add.reduceat(values * self.times, self._begins))

    def spread(self, values: Any) -> Any:
        """The value of the sum that each event belongs to, (N,)."""
        return values[self._of]

    def at(self, kept: Bools) -> EventSegments:
        """Some of the sums."""
        events = kept[self._of]
        columns = (self.score[events], self.chance[events], self.times[events])
        return EventSegments(*columns, self.lengths[kept])

    def slopes(self, t: Floats) -> tuple[Floats, Floats]:
        """The first and second derivative of the cumulant generating function of each sum."""
        turned = np.clip(-self.log_odds - self.spread(t) * self.score, -_ODDS, _ODDS)
        tilted = 1 / (1 + np.exp(turned))
        first = self.add(self.score * (tilted - self.chance))
        return first, self.add(self.score**2 * tilted * (1 - tilted))


def log_tails(events: EventSegments, excess: Floats) -> Floats:
    """The logarithm of the chance that each sum is at least its positive excess over the mean.

    >>> coins = EventSegments(np.ones(30), np.full(30, 0.5), np.ones(30), np.array([30]))
    >>> np.exp(log_tails(coins, np.array([9.0]))).round(6)
    array([0.000379])
    """
    from scipy.special import log_ndtr

    a, p = events.score, events.chance
    log_p, log_q = np.log(p), np.log1p(-p)
    largest = events.add(np.where(a > 0, a * (1 - p), -a * p))
    # The largest value has one probability: that everything that raises the sum happens, and nothing else.
    edge = excess >= largest * (1 - _REACHED)
    tails = events.add(np.where(a > 0, log_p, np.where(a < 0, log_q, 0.0)))
    if edge.all():
        return tails
    inner, x = events.at(~edge), excess[~edge]
    t = _roots(inner, x)
    turned = inner.spread(t) * inner.score
    inside = events.spread(~edge)
    log_p, log_q = log_p[inside], log_q[inside]
    cumulant = inner.add(np.logaddexp(log_q, log_p + turned) - turned * inner.chance)
    with np.errstate(all="ignore"):
        w = np.sqrt(np.maximum(2 * (t * x - cumulant), _TINY))
        u = t * np.sqrt(inner.slopes(t)[1])
        tails[~edge] = log_ndtr(-(w + np.log(np.abs(u / w)) / w))
    return tails


def _roots(events: EventSegments, excess: Floats) -> Floats:
    """The saddlepoints: Newton's steps where they stay inside a bracket of the root, else its middle.

    Undamped steps diverge where a few events add most of a sum.
    """
    low = np.zeros(len(excess))
    high = np.minimum(excess / np.maximum(events.slopes(low)[1], _TINY), _FURTHEST) + _TINY
    for _ in range(_DOUBLINGS):
        short = events.slopes(high)[0] < excess
        if not short.any():
            break
        low, high = np.where(short, high, low), np.where(short, 2 * high, high)
    roots, left = (low + high) / 2, np.arange(len(excess))
    t, x = roots.copy(), excess
    for _ in range(_STEPS):
        first, second = events.slopes(t)
        low, high = np.where(first < x, t, low), np.where(first < x, high, t)
        moved = t - (first - x) / np.maximum(second, _TINY)
        moved = np.where((moved > low) & (moved < high), moved, (low + high) / 2)
        going = np.abs(moved - t) >= _SETTLED * (1 + np.abs(t))
        roots[left] = t = moved
        if not going.any():
            break
        if going.mean() < 0.5:
            # Most are known: the others alone go on.
            events, left = events.at(going), left[going]
            t, x, low, high = t[going], x[going], low[going], high[going]
    return roots
