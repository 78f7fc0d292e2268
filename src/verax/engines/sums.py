"""Sums that can be merged in any order: compensated sums, and the moments of weighted losses."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from verax.common.packing import UnreadableError
from verax.common.specs import Spec
from verax.common.stored import Size, Sizes, numbers, only_counts, only_weights, within
from verax.inputs.arrays import Array, Floats, Ints, Namespace, to_host
from verax.kernels.shared import two_sum

# Total weights between these bounds leave room for products with losses and for squares. Other weights
# are multiplied by a power of two first, which is exact.
_LIGHTEST, _HEAVIEST = 2.0**-500, 2.0**500
# Sums of a large array that are added at a time.
_PIECE = 2**14
# Sums of squared weights may be off by rounding.
_NEARLY = 1 + 1e-6
# Most numbers in columns whose moments are computed at once.
_AT_ONCE = 2**14
# Products added up one after the other.
_SHORT = 256


@dataclass(frozen=True)
class Sum:
    """An array of sums as unevaluated pairs of doubles, about 32 digits; `high` is the rounded sum."""

    high: Floats
    low: Floats

    @classmethod
    def zeros(cls, shape: int | tuple[int, ...]) -> Sum:
        """Empty sums."""
        return cls(np.zeros(shape), np.zeros(shape))

    @classmethod
    def of(cls, terms: Any) -> Sum:
        """One term for every element."""
        high = np.array(terms, dtype=float)
        return cls(high, np.zeros(high.shape))

    @classmethod
    def once(cls, terms: Floats) -> Sum:
        """One term for every element, without a copy of the array."""
        return cls(terms, np.zeros(terms.shape))

    def __add__(self, other: Sum) -> Sum:
        if len(self.high) > _PIECE:
            return self._plus_in_pieces(other)
        high, error = two_sum(self.high, other.high)
        low = error + (self.low + other.low)
        total = high + low
        return Sum(total, low - (total - high))

    def _plus_in_pieces(self, other: Sum) -> Sum:
        """Add large arrays, whose intermediate results would not fit a cache, piece by piece."""
        result = Sum(np.empty_like(self.high), np.empty_like(self.high))
        for start in range(0, len(self.high), _PIECE):
            piece = slice(start, start + _PIECE)
            part = Sum(self.high[piece], self.low[piece]) + Sum(other.high[piece], other.low[piece])
            result.high[piece], result.low[piece] = part.high, part.low
        return result

    def among(self, places: Ints, n: int) -> Sum:
        """The same among `n` lines, each at its place."""
        sums = Sum.zeros((n, *self.high.shape[1:]))
        sums.high[places], sums.low[places] = self.high, self.low
        return sums

    def add_others(self, places: Ints, other: Sum) -> None:
        """Add other sums in place to the elements at some places, none of which is named twice."""
        for start in range(0, len(places), _PIECE):
            piece = slice(start, start + _PIECE)
            at = places[piece]
            part = Sum(self.high[at], self.low[at]) + Sum(other.high[piece], other.low[piece])
            self.high[at], self.low[at] = part.high, part.low

    def plus(self, terms: Any) -> Sum:
        """With one more term for every element."""
        return self + Sum.of(terms)

    def scaled(self, factor: float) -> Sum:
        """Every sum times a power of two."""
        return self if factor == 1 else Sum(self.high * factor, self.low * factor)

    def add_at(self, index: Any, terms: Any) -> None:
        """Add terms to the elements at `index`, in place; elements may be named several times.

        `terms` is None for ones; a list of several arrays adds one to each column.
        """
        n = len(self.high)
        present: Any = slice(None)
        if n > 2 * len(index):
            present, index = np.unique(index, return_inverse=True)
            n = len(present)
        if isinstance(terms, list):
            new = np.stack([np.bincount(index, column, n) for column in terms], axis=1)
        else:
            new = np.bincount(index, terms, n)
        with np.errstate(over="ignore", invalid="ignore"):
            self.high[present], error = two_sum(self.high[present], new)
        self.low[present] += error

    def to_values(self) -> Floats:
        """Both parts as one array, to be stored."""
        return np.stack([self.high, self.low])

    def settled(self) -> Sum:
        """Round `high` in place, which is needed after terms were added in place; the sums stay the same."""
        for start in range(0, len(self.high), _PIECE):
            high, low = self.high[start : start + _PIECE], self.low[start : start + _PIECE]
            # Counts have no rounding errors, and memory that nobody wrote to is only looked at.
            if low.any():
                total = high + low
                low -= total - high
                high[...] = total
        return self


class Sums(Spec):
    """A field of sums of some shape, with the least value allowed."""

    def __init__(
        self, *shape: Size, least: float = -math.inf, finite: bool = False, optional: bool = False
    ) -> None:
        super().__init__("add", optional=optional)
        self._shape, self._least, self._finite = shape, least, finite

    def before(self, name: str) -> list[str]:
        return [f"if self.{name}.high.shape != other.{name}.high.shape: differ(self, {name!r})"]

    def merged(self, name: str) -> str:
        return f"self.{name} + other.{name}"

    def pack(self, value: Sum) -> Floats:
        return value.to_values()

    def read(self, stored: Any, sizes: Sizes) -> Sum:
        values = numbers(stored, np.float64, (2, *self._shape), sizes)
        if self._finite and not np.isfinite(values).all():
            raise UnreadableError("has numbers that are not finite")
        within(values[0], self._least, math.inf)
        return Sum(values[0], values[1])


class LateSum(Sum):
    """Sums of one term each, which are fetched at their first use."""

    _fetch: Callable[[], Any]

    def __init__(self, fetch: Callable[[], Any]) -> None:
        object.__setattr__(self, "_fetch", fetch)

    def _fetched(self) -> Sum:
        return Sum.once(self._fetch())

    def __getattr__(self, name: str) -> Any:
        # Called for what is not there yet.
        if name not in ("high", "low") or "_fetch" not in self.__dict__:
            raise AttributeError(name)
        sums = self._fetched()
        object.__setattr__(self, "high", sums.high)
        object.__setattr__(self, "low", sums.low)
        object.__delattr__(self, "_fetch")
        return getattr(self, name)

    def settled(self) -> Sum:
        """The sums as they are: one term has no rounding error. Nothing is fetched for that."""
        return self if "_fetch" in self.__dict__ else super().settled()

    def __reduce__(self) -> tuple[Any, ...]:
        return Sum, (self.high, self.low)


@dataclass(frozen=True)
class Moments:
    """Weighted first and second moments of several losses over the same rows.

    Attributes
    ----------
    weight : Sum
        The weights of the rows with a finite loss.
    total : Sum
        Weight times loss over the same rows.
    m2 : Floats
        Weight times the squared deviation from the mean over the same rows.
    infinite : Sum
        The weights of the rows with an infinite loss.
    n_infinite : Floats
        How many rows with an infinite loss have weight.
    """

    weight: Sum
    total: Sum
    m2: Floats
    infinite: Sum
    n_infinite: Floats

    @classmethod
    def zeros(cls, n: int) -> Moments:
        """No rows yet, for `n` losses."""
        return _no_moments(n)

    @classmethod
    def from_sums(
        cls,
        weight: Any,
        first: Any,
        second: Any,
        *,
        shift: Any = 0.0,
        infinite: Any = None,
        count: Any = None,
    ) -> Moments:
        """From the sums over rows with a finite loss of w, w*d and w*d*d with d = loss - shift.

        `infinite` and `count` are the weight and the number of the rows with an infinite loss.
        """
        first = np.asarray(first, dtype=float)
        none = np.zeros(first.shape)
        w = none + weight
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            m2 = np.maximum(second - first / w * first, 0.0)
            total = Sum(*two_sum(first, shift * w))
        if not (w > 0).all():
            m2[~(w > 0)] = 0.0
        infinite, count = (none if x is None else np.array(x, dtype=float) for x in (infinite, count))
        return cls(Sum(w, none), total, m2, Sum(infinite, none), count)

    @classmethod
    def of(cls, losses: Sequence[Array], weights: Array | None, xp: Namespace, unit: float = 1.0) -> Moments:
        """The moments of columns of losses; weights are divided by `unit`, a power of two."""
        if not losses:
            return cls.zeros(0)
        with np.errstate(invalid="ignore", over="ignore"):
            sums = _sums_of_few(losses, weights, unit)
            if sums is None:
                sums = xp.stack([_moment_sums(loss, weights, xp, unit) for loss in losses])
        shift, weight, first, second, infinite, count = to_host(sums).astype(np.float64).T
        return cls.from_sums(weight, first, second, shift=shift, infinite=infinite, count=count)

    def at(self, lines: slice | int) -> Moments:
        """The moments of some of the losses."""
        weight, total, infinite = (
            Sum(sums.high[lines], sums.low[lines]) for sums in (self.weight, self.total, self.infinite)
        )
        return Moments(weight, total, self.m2[lines], infinite, self.n_infinite[lines])

    def beside(self, other: Moments) -> Moments:
        """The moments of the losses of both, which have the same rows."""

        def joined(a: Sum, b: Sum) -> Sum:
            return Sum(np.concatenate([a.high, b.high]), np.concatenate([a.low, b.low]))

        return Moments(
            joined(self.weight, other.weight),
            joined(self.total, other.total),
            np.concatenate([self.m2, other.m2]),
            joined(self.infinite, other.infinite),
            np.concatenate([self.n_infinite, other.n_infinite]),
        )

    def __add__(self, other: Moments) -> Moments:
        weight = self.weight + other.weight
        light = np.minimum(self.weight.high, other.weight.high)
        heavy = np.maximum(self.weight.high, other.weight.high)
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            gap = self.finite_mean - other.finite_mean
            between = gap * gap * (light * (heavy / weight.high))
        m2 = self.m2 + other.m2 + np.where(light > 0, between, 0.0)
        return Moments(
            weight,
            self.total + other.total,
            m2,
            self.infinite + other.infinite,
            self.n_infinite + other.n_infinite,
        )

    def joined(self) -> Moments:
        """The moments of the rows of all parts, the first axis; halves are added until one is left."""
        parts = self
        while len(parts.m2) > 1:
            n = len(parts.m2) // 2
            rest = parts.at(slice(2 * n, None))
            parts = (parts.at(slice(0, n)) + parts.at(slice(n, 2 * n))).beside(rest)
        return parts.at(0)

    def to_values(self) -> Floats:
        """(8, R) numbers, to be stored."""
        sums = [
            part
            for compensated in (self.weight, self.total, self.infinite)
            for part in (compensated.high, compensated.low)
        ]
        return np.stack([*sums, self.m2, self.n_infinite])

    def scaled(self, factor: float) -> Moments:
        """With all weights multiplied by a power of two."""
        return Moments(
            self.weight.scaled(factor),
            self.total.scaled(factor),
            self.m2 * factor,
            self.infinite.scaled(factor),
            self.n_infinite,
        )

    @property
    def finite_mean(self) -> Floats:
        """The weighted mean over the rows with a finite loss; NaN where there are none."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return self.total.high / self.weight.high + self.total.low / self.weight.high

    @property
    def lightest(self) -> float:
        """The smallest positive weight of the rows with a finite loss."""
        return min([w for w in self.weight.high.tolist() if w > 0], default=math.inf)

    @property
    def mean(self) -> Floats:
        """The weighted mean; infinite as soon as one row with weight is."""
        return np.where(self.n_infinite > 0, np.inf, self.finite_mean)

    @property
    def variance(self) -> Floats:
        """The weighted variance of the losses over the rows; NaN where one is infinite."""
        with np.errstate(invalid="ignore", divide="ignore"):
            variance = self.m2 / self.weight.high
        return np.where(self.n_infinite > 0, np.nan, variance)

    @property
    def std(self) -> Floats:
        """The weighted standard deviation of the losses over the rows; NaN where one is infinite."""
        return np.sqrt(self.variance)


@lru_cache(maxsize=64)
def _no_moments(n: int) -> Moments:
    none = np.zeros(n)
    none.flags.writeable = False
    empty = Sum(none, none)
    return Moments(empty, empty, none, empty, none)


class MomentSums(Spec):
    """A field of moments of a number of losses."""

    def __init__(self, n: Size, *, optional: bool = False) -> None:
        super().__init__("add", optional=optional)
        self._n = n

    def merged(self, name: str) -> str:
        return f"self.{name} + other.{name}"

    def pack(self, value: Moments | None) -> Floats | None:
        return None if value is None else value.to_values()

    def read(self, stored: Any, sizes: Sizes) -> Moments:
        values = numbers(stored, np.float64, (8, self._n), sizes)
        # Weights, sums of squares, and numbers of rows.
        for row in (0, 4, 6, 7):
            within(values[row], 0.0, math.inf)
        weight, total, infinite = (Sum(values[i], values[i + 1]) for i in (0, 2, 4))
        return Moments(weight, total, values[6], infinite, values[7])


def check_squares(weight: float, squares: float, n: float) -> None:
    """Refuse stored sums of weights and of their squares that `n` weights do not have."""
    only_weights(np.array([weight]))
    only_counts(np.array([n]))
    most, least = weight * weight * _NEARLY, n * squares * _NEARLY
    if len({n > 0, weight > 0, squares > 0}) > 1 or squares > most or weight * weight > least:
        raise UnreadableError("has sums of squared weights that do not belong to the weights", "squares")


def sandwich(moments: Moments, squares: Moments, n: float) -> Floats:
    """The variance of weighted means: sum of w^2 (loss - mean)^2 / (sum of w)^2, times n / (n - 1).

    `squares` are the moments of the same losses with the weights squared, `n` is the number of rows that have
    weight. Multiplying all weights by a constant does not change it. NaN where a loss is infinite.

    >>> losses, weights = [np.array([1.0, 2.0, 4.0])], np.array([1.0, 1.0, 2.0])
    >>> both = [Moments.of(losses, w, np) for w in (weights, weights**2)]
    >>> round(float(sandwich(*both, n=3)[0]), 6)
    0.925781
    """
    total = moments.weight.high
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        gap = squares.finite_mean - moments.finite_mean
        around = squares.m2 / total + gap * gap * (squares.weight.high / total)
        variance = around / total / (1 - np.divide(1, n))
    return np.where(moments.n_infinite > 0, np.nan, variance)


def effective(weight: float, squares: float) -> float:
    """The effective number of rows (Kish): the squared sum of weights over the sum of squares.

    >>> effective(4.0, 4.0), effective(4.0, 6.0)
    (4.0, 2.6666666666666665)
    """
    return weight / (squares / weight) if squares > 0 else 0.0


def _moment_sums(loss: Array, weights: Array | None, xp: Namespace, unit: float) -> Array:
    """The shift and the five sums of `Moments.from_sums`. The shift is the mean, so nothing cancels."""
    if isinstance(loss, np.ndarray):
        finite_sums = _finite_sums(loss, weights, unit)
        if finite_sums is not None:
            return finite_sums
    infinite = loss == xp.inf
    zero = xp.zeros_like(loss)
    given = xp.ones_like(loss) if weights is None else weights
    scaled = given if unit == 1 else given * (1 / unit)
    finite = xp.where(infinite, zero, loss)
    w = xp.where(infinite, zero, scaled)
    weight = xp.sum(w)
    mean = xp.sum(w * finite) / xp.where(weight > 0, weight, xp.ones_like(weight))
    d = xp.where(infinite, zero, finite - mean)
    counted = xp.where(infinite & (given > 0), xp.ones_like(loss), zero)
    at_infinity = xp.where(infinite, scaled, zero)
    sums = [mean, weight, xp.sum(w * d), xp.sum(w * d * d), xp.sum(at_infinity), xp.sum(counted)]
    return xp.stack(sums)


def _sums_of_few(losses: Sequence[Array], weights: Array | None, unit: float) -> Floats | None:
    """The sums of all columns at once, if they are few and finite; otherwise None."""
    if not isinstance(losses[0], np.ndarray) or len(losses) * len(losses[0]) > _AT_ONCE:
        return None
    columns = np.stack(losses)
    if columns.dtype != np.float64 or not columns.max(initial=-np.inf) < np.inf:
        return None
    w = None if weights is None else weights * (1 / unit)

    def total(terms: Floats) -> Any:
        return terms.sum(axis=1) / unit if w is None else (w * terms).sum(axis=1)

    weight = columns.shape[1] / unit if w is None else w.sum()
    mean = total(columns) / (weight if weight > 0 else 1.0)
    d = columns - mean[:, None]
    sums = np.zeros((len(columns), 6))
    sums[:, 0], sums[:, 1], sums[:, 2], sums[:, 3] = mean, weight, total(d), total(d * d)
    return sums


def _finite_sums(loss: Floats, weights: Floats | None, unit: float) -> Floats | None:
    """The sums of finite losses, in a fraction of the time; None if a loss is not finite."""
    plain = loss.sum()
    if not np.isfinite(plain):
        return None
    w = None if weights is None else weights * (1 / unit)
    weight = len(loss) / unit if w is None else w.sum()
    mean = (plain / unit if w is None else (w * loss).sum()) / (weight if weight > 0 else 1.0)
    d = loss - mean
    weighted = d if w is None else w * d
    scale = unit if w is None else 1.0
    return np.array([mean, weight, weighted.sum() / scale, _sum_of_products(weighted, d) / scale, 0.0, 0.0])


def _sum_of_products(a: Floats, b: Floats) -> float:
    """The sum of a * b without an array of products: block by block, as exact as NumPy's own sums.

    No product of vectors by BLAS: its sums depend on the number of threads.
    """
    n = len(a) - len(a) % _SHORT
    blocks = np.einsum("ij,ij->i", a[:n].reshape(-1, _SHORT), b[:n].reshape(-1, _SHORT))
    return float(blocks.sum() + (a[n:] * b[n:]).sum())


def exponent_of(weight: float, lightest: float = math.inf) -> int:
    """The power of two to divide weights with this total by: 0 unless they are extreme.

    Weights stay as heavy as is safe, so that light ones among heavy ones are not lost. `lightest` is the
    smallest total of some of the rows that is needed on its own.

    >>> exponent_of(1e6), exponent_of(1e300), exponent_of(1e-300), exponent_of(1, 1e-300)
    (0, 498, -996, -498)
    """
    least = min(weight, lightest)
    if weight == 0 or (least >= _LIGHTEST and weight <= _HEAVIEST):
        return 0
    if not math.isfinite(weight):
        return 600
    return max(min(math.frexp(least)[1], 0), math.frexp(weight)[1] - 499, -1000)


def common_exponent(weights: Sequence[float], exponents: Sequence[int]) -> tuple[int, list[float]]:
    """The exponent of the sums of several parts, and the factor for the weights of each.

    It is the smallest that is safe for the total weight, so that light parts among heavy ones are not lost.

    >>> common_exponent([1.0, 4.0, 0.0], [0, -3, 0])
    (-3, [8.0, 1.0, 1.0])
    """
    parts = list(zip(weights, exponents, strict=True))
    exponents_used = [exponent for weight, exponent in parts if weight > 0] or [0]
    safe = max(math.frexp(weight)[1] + exponent for weight, exponent in parts) - 499
    common = min(max(exponents_used), max(min(exponents_used), safe))
    return common, [math.ldexp(1.0, e - common) if weight > 0 else 1.0 for weight, e in parts]


def relative(weights: Floats) -> Floats:
    """Weights whose sums and products do not overflow: extreme ones are divided by a power of two."""
    with np.errstate(over="ignore"):
        exponent = exponent_of(float(weights.sum()))
    return weights if exponent == 0 else weights * math.ldexp(1.0, -exponent)
