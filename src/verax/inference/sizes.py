"""Sample sizes: rows or groups that a question needs, given the variation of a mean in a pilot."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from verax.inference.intervals import t_quantile
from verax.inputs.arrays import Floats

# More units than this are as good as none: nobody collects them.
MOST = 10**12
# From this many degrees of freedom on, the noncentral t distribution is a normal one to four digits.
_MANY = 10_000.0
# A power above this is one but for rounding.
_CERTAIN = 1 - 1e-12


@dataclass(frozen=True)
class MeanSpread:
    """The variation of a mean over units, which are rows or groups.

    Attributes
    ----------
    error : float
        The standard error of the mean over `units` units.
    freedom : float
        Its degrees of freedom.
    units : float
        The number of units of the pilot.
    certainty : float or None
        The degrees of freedom of the variance, which are fewer where tails are heavy; None for `freedom`,
        infinite for a spread that is known.
    """

    error: float
    freedom: float
    units: float
    certainty: float | None = None

    @classmethod
    def at_most(cls, deviation: float) -> MeanSpread:
        """The variation of rows whose standard deviation is at most this."""
        return cls(deviation, 0.0, 1.0)

    def error_at(self, units: float) -> float:
        """The standard error over another number of units."""
        return self.error * math.sqrt(self.units / units)

    def freedom_at(self, units: float) -> float:
        """The degrees of freedom over another number of units."""
        return max(1.0, (self.freedom + 1) * units / self.units - 1)

    @property
    def known(self) -> float:
        """The degrees of freedom of the variance; infinite where it is known or bounded."""
        return (self.freedom or math.inf) if self.certainty is None else self.certainty

    def exceeded_in(self, share: float) -> MeanSpread:
        """The spread that the true one exceeds in this share of pilots, by the chi-square distribution."""
        from scipy.special import chdtri

        if math.isinf(self.known):
            return self
        factor = math.sqrt(self.known / chdtri(self.known, 1 - share))
        return replace(self, error=self.error * factor, certainty=math.inf)

    def range(self, confidence: float) -> tuple[MeanSpread, MeanSpread]:
        """The smallest and the largest spread that the pilot supports."""
        tail = (1 - confidence) / 2
        return self.exceeded_in(1 - tail), self.exceeded_in(tail)


@dataclass(frozen=True)
class Goal:
    """The goal of a study: the effect to show, its level and power.

    Attributes
    ----------
    size : float
        How far the truth is from what is to be excluded; for an interval its half-width.
    level : float
        The level of the test, 0.05 at a confidence of 0.95.
    power : float or None
        The probability of showing it; None for the width of an interval.
    sides : int
        2 for a difference in either direction, 1 where the direction is given.
    """

    size: float
    level: float
    power: float | None
    sides: int = 2

    def mean_power_at(self, spread: MeanSpread, units: float) -> float:
        """The probability that a number of units shows it, over what the pilot leaves open of the spread.

        Given the spread the power is P(Z + a <= x), a the quantile of the test and x the effect in standard
        errors. The variance of a pilot is a chi-square variable, so over pilots it is P(T <= x) with T of the
        noncentral t distribution (Julious and Owen 2006, doi:10.1002/pst.197).
        """
        from scipy.special import nctdtr, ndtri

        plain, known = self.power_at(spread, units), spread.known
        if known >= _MANY or spread.error == 0:
            return plain
        limit = -float(ndtri(self.level / self.sides))
        # Near one, the power of the test is lost in rounding; then the effect itself tells.
        away = limit + float(ndtri(plain)) if plain < _CERTAIN else self.size / spread.error_at(units)
        return float(nctdtr(known, limit, away))

    def power_at(self, spread: MeanSpread, units: float) -> float:
        """The probability that a number of units shows it, if the spread is known."""
        if spread.error == 0:
            return 1.0
        freedom, away = spread.freedom_at(units), self.size / spread.error_at(units)
        limit = t_quantile(freedom, 1 - 2 * self.level / self.sides)
        power = _tail(freedom, away, limit)
        return power + (_tail(freedom, -away, limit) if self.sides == 2 else 0.0)

    def half_width_at(self, spread: MeanSpread, units: float) -> float:
        """The half-width of the interval over a number of units."""
        return t_quantile(spread.freedom_at(units), 1 - self.level) * spread.error_at(units)

    def reached(self, spread: MeanSpread, units: float) -> bool:
        """Whether a number of units is enough."""
        if self.power is None:
            return self.half_width_at(spread, units) <= self.size
        return self.mean_power_at(spread, units) >= self.power

    def units(self, spread: MeanSpread) -> float:
        """The smallest sufficient number of units, at least two; infinite if none is."""
        if not (spread.error < math.inf and self.size > 0):
            return math.inf
        low, high = 1, 2
        while not self.reached(spread, high):
            low, high = high, 2 * high
            if high > MOST:
                return math.inf
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.reached(spread, middle) else (middle, high)
        return high


def _tail(freedom: float, away: float, limit: float) -> float:
    """The probability that a t statistic whose mean is shifted by `away` exceeds a limit."""
    from scipy.special import nctdtr, ndtr

    if freedom < _MANY and abs(away) < 30:
        return 1 - float(nctdtr(freedom, away, limit))
    # The statistic varies more than a normal one because its error is estimated.
    return float(ndtr((away - limit) / math.sqrt(1 + limit * limit / (2 * freedom))))


@dataclass(frozen=True)
class Sharing:
    """The correlation of rows of a group, which limits the value of more rows per group.

    Attributes
    ----------
    deviation : float
        The standard deviation of a row.
    correlation : float
        That of two rows of one group, from 0 to 1.
    """

    deviation: float
    correlation: float

    @classmethod
    def of(cls, spread: MeanSpread, deviation: float, n_rows: float) -> Sharing:
        """From the error over groups, and the error if all rows were independent."""
        # The same number of groups of equal size is as informative as those of the pilot.
        size = n_rows / (spread.freedom + 1)
        inflated = (spread.error / deviation) ** 2 * n_rows
        correlation = (inflated - 1) / (size - 1) if size > 1 else 0.0
        return cls(deviation, min(max(correlation, 0.0), 1.0))

    def spread(self, rows_per_group: float) -> MeanSpread:
        """The variation of means over groups of this size."""
        per_group = self.correlation + (1 - self.correlation) / rows_per_group
        return MeanSpread.at_most(self.deviation * math.sqrt(per_group))

    def rows_per_group(self, goal: Goal, groups: float, certainty: float | None = None) -> float:
        """The number of rows that each group needs; infinite if no number is enough."""

        def reached(rows: float) -> bool:
            return goal.reached(replace(self.spread(rows), certainty=certainty), groups)

        if not reached(math.inf):
            return math.inf
        low, high = 0, 1
        while not reached(high):
            low, high = high, 2 * high
            if high > MOST:
                return math.inf
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if reached(middle) else (middle, high)
        return high


def rows_until_decided(
    stakes: Floats, shares: Floats, difference: float, deviation: float, level: float
) -> float:
    """Approximate mean number of rows until a confidence sequence excludes zero.

    The capital of a stake s grows by s d - s^2 (d^2 + deviation^2) / 2 per row in logarithms, up to terms of
    third order; the sequence stops where the mixture reaches 2 / level.
    """
    growth = stakes * abs(difference) - stakes**2 * (difference**2 + deviation**2) / 2
    weights, enough = np.log(shares / shares.sum()), math.log(2 / level)

    def decided(rows: float) -> bool:
        return bool(np.logaddexp.reduce(weights + rows * growth) >= enough)

    high = 1.0
    while not decided(high):
        high *= 2
        if high > MOST:
            return math.inf
    low = high / 2
    while high - low > 0.5:
        middle = (low + high) / 2
        low, high = (low, middle) if decided(middle) else (middle, high)
    return math.ceil(high)
