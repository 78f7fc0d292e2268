"""Independent units of a sample, and the uncertainty of estimates with known influence functions."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from verax.common.caching import cached_property
from verax.inference.intervals import Interval, Resampling, bounded, few, t_quantile
from verax.inputs.arrays import Floats, Ints
from verax.inputs.groups import Groups


def sums_at(places: Ints, values: Floats, n: int) -> Floats:
    """The sums of the values at each of n places."""
    return np.bincount(places, values, n).astype(np.float64, copy=False)


def dot(a: Floats, b: Floats) -> float:
    """The sum of products. No matrix product: its sums depend on the number of threads."""
    return float(np.einsum("i,i->", a, b))


class IndependentUnits(ABC):
    """The independent units of a sample: rows, or groups of rows."""

    @property
    @abstractmethod
    def n(self) -> int:
        """The number of units that have rows."""

    @property
    @abstractmethod
    def freedom(self) -> float:
        """Degrees of freedom: one less than the effective number of units, small where they are unequal."""

    @property
    @abstractmethod
    def grouped(self) -> bool:
        """Whether the units are groups."""

    @property
    def caution(self) -> str:
        """Why intervals are unreliable with few units; empty where there are enough."""
        return few(self.n, "group", "groups") if self.grouped else few(self.n, "row", "rows")

    # ---- intervals of estimates whose influence functions are known --------------------------------

    @property
    def method(self) -> str:
        """How intervals are computed, in words."""
        return f"t, over {self.n:,} groups" if self.grouped else "t"

    def interval(
        self,
        value: float,
        variance: float,
        confidence: float,
        *,
        bounds: tuple[float, float] | None = None,
        n: float | None = None,
        caution: str = "",
    ) -> Interval:
        """The t interval of an estimate; with finite `bounds` on a scale that does not collapse at them.

        `n` is how many rows tell about an estimate at one of its bounds; by default all units in effect.
        """
        caution = "; ".join(filter(None, [self.caution, caution]))
        if self.n < 2 or not np.isfinite([value, variance]).all():
            why = caution or "the estimate is undefined"
            return Interval.undefined(why, method=self.method, confidence=confidence)
        if bounds is None:
            half = t_quantile(self.freedom, confidence) * math.sqrt(variance)
            interval = Interval(value - half, value + half, confidence=confidence)
        else:
            rows = self.freedom + 1 if n is None else n
            plan = Resampling(confidence)
            interval = bounded(value, variance, self.freedom, rows, bounds, plan)
        return interval.by(self.method, caution)

    def p_value(self, difference: float, variance: float) -> float:
        """The two-sided p-value of a difference, by Student's t distribution; NaN where it is undefined."""
        from scipy.special import stdtr

        if self.n < 2 or not np.isfinite([difference, variance]).all():
            return math.nan
        if variance == 0:
            return 1.0 if difference == 0 else 0.0
        return float(2 * stdtr(self.freedom, -abs(difference) / math.sqrt(variance)))


@dataclass(frozen=True)
class SamplingUnits(IndependentUnits):
    """The independent units of rows in memory.

    Attributes
    ----------
    share : array of shape (N,)
        The weights of the rows. They are positive and sum to one.
    groups : Groups or None
        Which rows belong together.
    """

    share: Floats
    groups: Groups | None

    @classmethod
    def of(cls, n_rows: int, weights: Floats | None, groups: Groups | None) -> tuple[SamplingUnits, Any]:
        """The units of the rows that have weight, and which rows these are; None if all are."""
        if weights is None:
            return cls(np.full(n_rows, 1 / n_rows), groups), None
        relative = weights / weights.max()
        weighty = None if relative.all() else relative > 0
        if weighty is not None:
            relative = relative[weighty]
            groups = None if groups is None else Groups(groups.codes[weighty], groups.labels)
        return cls(relative / relative.sum(), groups), weighty

    def sums(self, values: Floats) -> Floats:
        """The sums over the rows of each unit."""
        if self.groups is None:
            return values
        return sums_at(self.groups.codes, values, len(self.groups.labels))

    @cached_property
    def n(self) -> int:
        """The number of units that have rows."""
        return int(np.count_nonzero(self.sums(self.share)))

    def variances(self, influence: Floats) -> Floats:
        """The sandwich variances of weighted means, with each unit's square over one minus its weight."""
        with np.errstate(invalid="ignore", divide="ignore"):
            if self.groups is None and bool((self.share == self.share[0]).all()):
                return np.array([dot(column, column) for column in influence.T]) / (1 - float(self.share[0]))
            rest = 1 - self.sums(self.share)
            return np.array([dot(column / rest, column) for column in influence.T])

    @cached_property
    def freedom(self) -> float:
        """Degrees of freedom: one less than the effective number of units, small where they are unequal."""
        shares = self.sums(self.share)
        return max(1 / dot(shares, shares) - 1, 1.0)

    @property
    def grouped(self) -> bool:
        """Whether the units are groups."""
        return self.groups is not None


@dataclass(frozen=True)
class CountedUnits(IndependentUnits):
    """The independent units of rows that are not in memory: their number, and how unequal they are.

    Attributes
    ----------
    count : int
        The number of units that have weight.
    degrees : float
        Degrees of freedom.
    in_groups : bool
        Whether the units are groups.
    """

    count: int
    degrees: float
    in_groups: bool

    @classmethod
    def of(cls, n: int, weight: float, squares: float, *, in_groups: bool) -> CountedUnits:
        """Units from their number, the sum of their weights and that of the squares."""
        return cls(n, max(weight**2 / squares - 1, 1.0), in_groups)

    @staticmethod
    def variances(influence: Floats) -> Floats:
        """The variances of estimates from influences that are scaled so that their squares sum to these."""
        return np.asarray((influence**2).sum(axis=0))

    @property
    def n(self) -> int:
        """The number of units that have weight."""
        return self.count

    @property
    def freedom(self) -> float:
        """Degrees of freedom."""
        return self.degrees

    @property
    def grouped(self) -> bool:
        """Whether the units are groups."""
        return self.in_groups
