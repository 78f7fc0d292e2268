"""Derivatives of the row statistics of a forecast p = softmax(z) in its logits z.

For a statistic with a = ds/dp the derivative is ds/dz_k = p_k (a_k - sum of p_j a_j); here it is written
out for each, with sums of positive terms shared between them, so that all cost O(K) a row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from weakref import proxy

import numpy as np

from verax.common.caching import cached_property
from verax.inputs.arrays import Array
from verax.kernels.shared import FAR

# Rows of fewer numbers are added up by one call.
_SHORT = 512


class Block:
    """Some rows of logits, (K, n), with the parts of the statistics and their derivatives.

    Arrays over classes hold, in row k, what would be so if class k happened.
    """

    y: Array
    n_classes: int

    def __init__(self, z: Array, y: Array) -> None:
        self.y, self.n_classes = y, len(z)
        self._cells = (y, np.arange(len(y)))
        self._shifted = z - z.max(axis=0)
        e = np.exp(self._shifted)
        self._total = e.sum(axis=0)
        self.p: Array = np.divide(e, self._total, out=e)

    def at_outcome(self, x: Array) -> Array:
        """The value for the class that happened."""
        return x[self._cells]

    def beside_outcome(self, x: Array) -> Array:
        """The sum over the classes that did not happen; `x` is overwritten."""
        return np.add.reduce(self.with_outcome(x, np.zeros(())), axis=0)

    def with_outcome(self, x: Array, value: Array) -> Array:
        """`x`, overwritten in the row of the outcome."""
        x[self._cells] = value
        return x

    @cached_property
    def values(self) -> Values:
        """The statistics, (K, n): row k for the case that class k happens."""
        return Values(self)

    @cached_property
    def happened(self) -> Happened:
        """The statistics of the outcomes, (n,)."""
        return Happened(self)

    @cached_property
    def complement(self) -> Array:
        """1 - p as the sum of the others, which keeps all digits where p is nearly one."""
        return _before(self.p[:-1]) + _after(self.p[1:])

    @cached_property
    def log_p(self) -> Array:
        return self._shifted - np.log(self._total)

    @cached_property
    def below(self) -> Array:
        """The probability of the classes up to each threshold."""
        return _before(self.p)[1:-1]

    @cached_property
    def above(self) -> Array:
        return _after(self.p)[1:-1]

    @cached_property
    def distance_below(self) -> Array:
        return _before(self.below)

    @cached_property
    def distance_above(self) -> Array:
        return _after(self.above)

    @cached_property
    def far(self) -> bool:
        """Whether some probabilities are so small that only their logarithms can be told apart."""
        return bool(self._shifted.min() < FAR)

    @cached_property
    def log_below(self) -> Array:
        return np.logaddexp.accumulate(self.log_p, axis=0)[:-1] if self.far else np.log(self.below)

    @cached_property
    def log_above(self) -> Array:
        if not self.far:
            return np.log(self.above)
        return np.logaddexp.accumulate(self.log_p[::-1], axis=0)[::-1][1:]

    @cached_property
    def odds(self) -> tuple[Array, Array]:
        """The sums of 1/P over the thresholds from each class on, of 1/(1 - P) before it; logs if far."""
        if not self.far:
            return _after(1 / self.below), _before(1 / self.above)
        edge = np.full_like(self.p[:1], -np.inf)
        from_below = np.logaddexp.accumulate(np.concatenate([edge, -self.log_below[::-1]]), axis=0)[::-1]
        return from_below, np.logaddexp.accumulate(np.concatenate([edge, -self.log_above]), axis=0)

    def times_odds(self, odds: Array) -> Array:
        return np.exp(self.log_p + odds) if self.far else self.p * odds


def _before(x: Array) -> Array:
    """Row k: the sum of the rows of `x` before it. One row more than `x` has."""
    out = np.empty((len(x) + 1, x.shape[1]))
    out[0] = 0
    if x.shape[1] < _SHORT:
        np.add.accumulate(x, axis=0, out=out[1:])
        return out
    # Rows are long and few: this runs along memory, which accumulating over the first axis does not.
    for k, row in enumerate(x):
        np.add(out[k], row, out=out[k + 1])
    return out


def _after(x: Array) -> Array:
    """Row k: the sum of the rows of `x` from it on. One row more than `x` has."""
    return _before(x[::-1])[::-1]


# ---- statistics ------------------------------------------------------------------------------


class Values:
    """The row statistics of a block, (K, n): row k for the case that class k happens."""

    def __init__(self, block: Block) -> None:
        # The block holds these: in a circle, arrays would stay until the next collection of garbage.
        self._block: Block = proxy(block)

    @cached_property
    def p_true(self) -> Array:
        return self._block.p

    @cached_property
    def log_true(self) -> Array:
        return self._block.log_p

    @cached_property
    def rest_sq(self) -> Array:
        squares = self._block.p**2
        return _before(squares[:-1]) + _after(squares[1:])

    @cached_property
    def cdf_l2(self) -> Array:
        return _before(self._block.below**2) + _after(self._block.above**2)

    @cached_property
    def cdf_l1(self) -> Array:
        return self._block.distance_below + self._block.distance_above

    @cached_property
    def cdf_log(self) -> Array:
        return _before(-self._block.log_above) + _after(-self._block.log_below)

    @cached_property
    def top(self) -> Array:
        return np.broadcast_to(self._block.p.max(axis=0), self._block.p.shape)

    @cached_property
    def hit(self) -> Array:
        modes = self._block.p == self.top
        return modes / modes.sum(axis=0)

    @property
    def answered(self) -> Array:
        return self.hit

    @cached_property
    def decision(self) -> Array:
        return np.broadcast_to(self._block.p.argmax(axis=0), self._block.p.shape)

    @cached_property
    def hit_lowest(self) -> Array:
        return (self.decision == np.arange(self._block.n_classes)[:, None]).astype(np.float64)

    @cached_property
    def invalid(self) -> Array:
        return np.zeros_like(self._block.p)


class Happened:
    """The row statistics of a block for the classes that did happen, (n,)."""

    def __init__(self, block: Block) -> None:
        # The block holds these: in a circle, arrays would stay until the next collection of garbage.
        self._block: Block = proxy(block)

    def __getattr__(self, name: str) -> Array:
        """A value that is computed for all classes, at the outcome."""
        return self._block.at_outcome(getattr(self._block.values, name))

    @cached_property
    def complement(self) -> Array:
        """1 - p as the sum of the others, which keeps all digits where p is nearly one."""
        return self._block.beside_outcome(self._block.p.copy())

    @cached_property
    def rest_sq(self) -> Array:
        return self._block.beside_outcome(self._block.p**2)

    @cached_property
    def cdf_l2(self) -> Array:
        block = self._block
        before = np.arange(block.n_classes - 1)[:, None] < block.y
        return np.add.reduce(np.where(before, block.below, block.above) ** 2, axis=0)


@dataclass(frozen=True)
class Direction:
    """The derivatives of a statistic in the logits: ds/dz_k given the outcome, and given that k happens."""

    slopes: Callable[[Block], Array]
    of_class: Callable[[Block], Array]


def _log_true(block: Block) -> Array:
    return block.with_outcome(-block.p, block.happened.complement)


def _rest_sq(block: Block) -> Array:
    rest = block.happened.rest_sq
    return block.with_outcome(2 * block.p * (block.p - rest), -2 * block.at_outcome(block.p) * rest)


def _cdf_l2(block: Block) -> Array:
    # a_k is twice the sum of the cumulative errors over the thresholds from k on: P before the
    # outcome, P - 1 from it on. Both sums are monotone in k, so extremes stand for case distinctions.
    up, down = block.distance_below, block.distance_above
    a = np.maximum(block.at_outcome(up) - up, 0)
    a -= np.minimum(down, block.at_outcome(down))
    a -= np.einsum("kn,kn->n", block.p, a)
    a *= block.p
    a *= 2
    return a


def _cdf_l1(block: Block) -> Array:
    distance = np.abs(np.arange(block.n_classes)[:, None] - block.y)
    return block.p * (distance - block.happened.cdf_l1)


def _cdf_log(block: Block) -> Array:
    # A threshold's side that holds class k gains from it the share that k is of that side.
    below, above = block.odds
    share = block.times_odds(np.minimum(below, block.at_outcome(below)))
    share += block.times_odds(np.minimum(above, block.at_outcome(above)))
    return (block.n_classes - 1) * block.p - share


def _cdf_log_of_class(block: Block) -> Array:
    below, above = block.odds
    return (block.n_classes - 1) * block.p - block.times_odds(below) - block.times_odds(above)


def _top(block: Block) -> Array:
    mode = block.values.decision[0], np.arange(len(block.y))
    slope = -block.p * block.values.top
    slope[mode] += block.values.top[0]
    return slope


DIRECTIONS = {
    "log_true": Direction(_log_true, lambda block: block.complement),
    "rest_sq": Direction(_rest_sq, lambda block: -2 * block.p * block.values.rest_sq),
    "cdf_l2": Direction(_cdf_l2, lambda block: -2 * block.p * block.values.cdf_l2),
    "cdf_l1": Direction(_cdf_l1, lambda block: -block.p * block.values.cdf_l1),
    "cdf_log": Direction(_cdf_log, _cdf_log_of_class),
    "top": Direction(_top, _top),
}
