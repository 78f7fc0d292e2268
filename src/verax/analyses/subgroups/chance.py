"""Sequential test of miscalibration: draws continue until the decision is clear."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from verax.inputs.arrays import Floats

# So many draws that reach what was observed show that it is nothing special.
_ENOUGH = 20
# The gamma distribution has lighter tails than miscalibration by chance: at 1e-4 by a factor of up to 70.
# The root of ten times its tail is a p-value that is too large instead.
_SLACK = 10.0
# A distribution is fitted to no fewer draws.
_FITTED = 50
# A fit of a handful of rows costs as much as one of this many.
_OVERHEAD = 1000


@dataclass(frozen=True)
class Chance:
    """The miscalibration that was observed, and what calibrated forecasts of the same values show by chance.

    Attributes
    ----------
    observed : float
        The miscalibration.
    draws : array
        Miscalibrations of outcomes drawn from the forecasts.
    score : float
        The mean score: smaller differences than 1e-12 of it are rounding.
    """

    observed: float
    draws: Floats
    score: float

    @property
    def reached(self) -> int:
        """How many draws are at least as large as what was observed."""
        return int((self.draws >= self.observed - 1e-12 * (1 + abs(self.score))).sum())

    @property
    def tail(self) -> float:
        """A p-value beyond what the draws resolve, from a gamma distribution with their mean and variance."""
        from scipy.special import gammaincc

        mean, variance = float(self.draws.mean()), float(self.draws.var())
        if self.reached or len(self.draws) < _FITTED:
            return 1.0
        if self.observed == math.inf or variance <= 0:
            return 0.0
        return math.sqrt(_SLACK * float(gammaincc(mean**2 / variance, self.observed * mean / variance)))

    @property
    def p_value(self) -> float:
        """How often a calibrated forecast would show at least as much."""
        return min((1 + self.reached) / (1 + len(self.draws)), self.tail)

    def settled(self, level: float) -> bool:
        """Whether more draws would not change on which side of the level the p-value is."""
        return self.reached >= _ENOUGH or self.tail <= level

    def could_pass(self, level: float) -> bool:
        """Whether this number of draws can give a p-value within the level."""
        return self.settled(level) or 1 / (1 + len(self.draws)) <= level


@dataclass
class WorkBudget:
    """How many probabilities may still be looked at."""

    left: float

    def affordable(self, n_rows: int, n_classes: int) -> int:
        """Draws the remaining budget allows."""
        return int(self.left // self._cost(n_rows, n_classes))

    def spend(self, draws: int, n_rows: int, n_classes: int) -> None:
        """Count draws that were made."""
        self.left -= draws * self._cost(n_rows, n_classes)

    def _cost(self, n_rows: int, n_classes: int) -> int:
        return n_classes * (n_rows + _OVERHEAD)


def settle(
    chance: Chance, level: float, draw: Callable[[int, int], Floats], work: WorkBudget, shape: tuple[int, int]
) -> Chance:
    """Double the draws until the decision at the level is clear.

    Parameters
    ----------
    level : float
        The level of this one test.
    draw : callable
        Gives more draws: from how many, and the number of the stage.
    work : WorkBudget
        What all tests together may cost.
    shape : (int, int)
        The numbers of rows and classes.
    """
    most = math.ceil(2 / level)
    stage = 0
    while not chance.settled(level) and len(chance.draws) < most:
        n = min(len(chance.draws), most - len(chance.draws), work.affordable(*shape))
        if n < 2:
            break
        stage += 1
        work.spend(n, *shape)
        chance = replace(chance, draws=np.append(chance.draws, draw(n, stage)))
    return chance
