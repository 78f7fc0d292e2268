"""Fitted recalibrations: numbers, and how they turn a row of probabilities into a better one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from verax.errors import InputError
from verax.inputs.arrays import Floats
from verax.inputs.forecasts import softmax

# To how many decimals cumulative sums are rounded: .1 + .7 and .2 + .6 are the same forecast.
_DECIMALS = 12


class CalibrationMap(ABC):
    """A function from forecasts to forecasts of the same kind, which JSON can hold."""

    kind: ClassVar[str]

    @abstractmethod
    def apply(self, p: Any) -> Any:
        """The recalibrated rows: an array of probabilities, or top lists."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """All numbers as plain Python values."""

    @property
    @abstractmethod
    def words(self) -> str:
        """The fit in a few words; empty where there is nothing short to say."""


@dataclass(frozen=True, eq=False)
class Unchanged(CalibrationMap):
    """The rows as they are."""

    kind = "unchanged"
    words = ""

    def apply(self, p: Any) -> Any:
        return p

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind}


@dataclass(frozen=True, eq=False)
class LogLinear(CalibrationMap):
    """The softmax of `slopes` times the logarithms of the probabilities plus `offsets`.

    Structured scaling first takes the probabilities to a power and mixes them with an even spread.

    Attributes
    ----------
    slopes : () array, (K,) array or (K, K) array
        One for all classes, one for each, or a matrix.
    offsets : array of shape (K,)
        One for each class.
    floor : float
        Smaller probabilities count as this one, because the logarithm of zero is infinite.
    power : float
        The power of the probabilities, which comes first: one over the temperature.
    spread : float
        The share of the probability that is then spread evenly over all classes.
    """

    kind = "log-linear"
    slopes: Floats
    offsets: Floats
    floor: float
    power: float = 1.0
    spread: float = 0.0

    def apply(self, p: Floats) -> Floats:
        z = mixed_logs(p, self.floor, self.power, self.spread)
        z = z @ self.slopes.T if self.slopes.ndim == 2 else z * self.slopes
        return np.asarray(softmax(z + self.offsets, np))

    def to_dict(self) -> dict[str, Any]:
        numbers = {"slopes": self.slopes.tolist(), "offsets": self.offsets.tolist()}
        first = {"power": self.power, "spread": self.spread} if self.spread else {}
        return {"kind": self.kind, **numbers, "floor": self.floor, **first}

    @property
    def words(self) -> str:
        if self.slopes.ndim:
            return f"temperature {1 / self.power:.3g}, {self._changes}" if self.spread else ""
        temperature = "" if float(self.slopes) == 1 else f"temperature {1 / float(self.slopes):.3g}"
        if not self.offsets.any():
            return temperature
        low, high = np.exp(self.offsets - self.offsets.mean())[[self.offsets.argmin(), self.offsets.argmax()]]
        factors = f"odds times {low:.3g} to {high:.3g}"
        return f"{temperature}, {factors}" if temperature else factors

    @property
    def _changes(self) -> str:
        """The slopes of the classes beyond the temperature."""
        slopes = np.diag(self.slopes) if self.slopes.ndim == 2 else self.slopes
        return f"slopes {slopes.min():.3g} to {slopes.max():.3g}"


# Between knots that are closer than the least normal number a slope would be infinite. A power of two changes
# no other result.
_WIDER = 2.0**600


@dataclass(frozen=True, eq=False)
class Isotonic(CalibrationMap):
    """A non-decreasing function for each class, or for each threshold of ordered classes.

    Attributes
    ----------
    thresholds : bool
        Whether the functions are of P(Y <= k); the results are then made monotone in k, else they are divided
        by their sum.
    forecasts, frequencies : tuples of arrays
        The knots of each function, between which it is linear.
    spread : float
        The share of the probability that is spread evenly over all classes.
    """

    kind = "isotonic"
    thresholds: bool
    forecasts: tuple[Floats, ...]
    frequencies: tuple[Floats, ...]
    spread: float

    def apply(self, p: Floats) -> Floats:
        columns = np.asarray(cumulative(p) if self.thresholds else p, float)
        fitted = np.empty(columns.shape)
        for i, (x, y) in enumerate(zip(self.forecasts, self.frequencies, strict=True)):
            fitted[:, i] = np.interp(columns[:, i] * _WIDER, x * _WIDER, y)
        if self.thresholds:
            fitted = np.diff(np.clip(nearest_monotone(fitted), 0.0, 1.0), axis=1, prepend=0.0, append=1.0)
        # A row all of whose classes are ruled out is spread evenly.
        total = fitted.sum(axis=1, keepdims=True)
        share = np.divide(fitted, total, out=np.full(fitted.shape, 1 / p.shape[1]), where=total > 0)
        return np.asarray((1 - self.spread) * share + self.spread / p.shape[1])

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "thresholds": self.thresholds,
            "forecasts": [x.tolist() for x in self.forecasts],
            "frequencies": [y.tolist() for y in self.frequencies],
            "spread": self.spread,
        }

    @property
    def words(self) -> str:
        steps = sum(len(np.unique(y)) for y in self.frequencies)
        return f"{steps:,} levels at {len(self.forecasts):,} {'thresholds' if self.thresholds else 'classes'}"


def mixed_logs(p: Floats, floor: float, power: float, spread: float) -> Floats:
    """Logarithms of the probabilities, raised to a power and mixed with an even spread, if there is one."""
    z = np.asarray(np.log(np.maximum(p, floor)))
    return mixed(z, power, spread) if spread else z


def mixed(z: Floats, power: float, spread: float) -> Floats:
    """Logarithms of the probabilities with logarithms z, (N, K), after a power and an even spread."""
    return np.asarray(np.log((1 - spread) * softmax(power * z, np) + spread / z.shape[1]))


def cumulative(p: Floats) -> Floats:
    """The probabilities of the classes up to each threshold, (N, K - 1)."""
    return np.clip(np.round(np.cumsum(p, axis=1)[:, :-1], _DECIMALS), 0.0, 1.0)


def nearest_monotone(rows: Floats) -> Floats:
    """The nearest rows, by squared distance, whose values do not decrease from left to right.

    What happened is such a row, too (0 below the outcome, 1 from it on), and such rows are a convex set: so
    the nearest one is never further from what happened, and no row has a larger RPS than before.

    >>> nearest_monotone(np.array([[0.2, 0.6, 0.4, 0.9]])).round(9).tolist()
    [[0.2, 0.5, 0.5, 0.9]]
    """
    falls = np.flatnonzero((np.diff(rows, axis=1) < 0).any(axis=1))
    if not len(falls):
        return rows
    x = rows[falls]
    n = x.shape[1]
    sums = np.concatenate([np.zeros((len(x), 1)), np.cumsum(x, axis=1)], axis=1)
    fitted = np.full_like(x, -np.inf)
    for first in range(n):
        # The smallest mean of values from `first` on that ends at or after each place.
        means = (sums[:, first + 1 :] - sums[:, [first]]) / np.arange(1, n - first + 1)
        least = np.minimum.accumulate(means[:, ::-1], axis=1)[:, ::-1]
        np.maximum(fitted[:, first:], least, out=fitted[:, first:])
    result = rows.copy()
    result[falls] = fitted
    return result


def log_linear_of(stored: dict[str, Any], n_classes: int) -> LogLinear:
    """The slopes and offsets that JSON holds, with every number checked."""
    slopes, offsets = checked_numbers(stored.get("slopes")), checked_numbers(stored.get("offsets"))
    if slopes.shape not in ((), (n_classes,), (n_classes, n_classes)) or offsets.shape != (n_classes,):
        raise unfit(f"must have slopes and offsets for {n_classes} classes")
    floor = number_in(stored.get("floor"))
    if not 0 < floor < 1:
        raise unfit("must have a floor between 0 and 1")
    power, spread = (number_in(stored.get(name, least)) for name, least in (("power", 1.0), ("spread", 0.0)))
    if not power > 0 or not 0 <= spread < 1:
        raise unfit("must have a positive power and a spread between 0 and 1")
    return LogLinear(slopes, offsets, floor, power, spread)


def isotonic_of(stored: dict[str, Any], n_classes: int) -> Isotonic:
    """The isotonic functions that JSON holds, with every number checked."""
    thresholds, x, y = stored.get("thresholds"), stored.get("forecasts"), stored.get("frequencies")
    if not isinstance(thresholds, bool) or not isinstance(x, list) or not isinstance(y, list):
        raise unfit("must have lists of forecasts and frequencies")
    if not len(x) == len(y) == n_classes - thresholds:
        raise unfit(f"must have functions for {n_classes} classes")
    pairs = [(checked_numbers(a), checked_numbers(b)) for a, b in zip(x, y, strict=True)]
    for a, b in pairs:
        fits = a.ndim == 1 and a.shape == b.shape and len(a) > 0
        if not fits or (np.diff(a) <= 0).any() or (np.diff(b) < 0).any() or not 0 <= b[0] <= b[-1] <= 1:
            raise unfit("must have increasing forecasts and non-decreasing frequencies between 0 and 1")
    spread = number_in(stored.get("spread"))
    if not 0 <= spread <= 1:
        raise unfit("must have a spread between 0 and 1")
    return Isotonic(thresholds, tuple(a for a, _ in pairs), tuple(b for _, b in pairs), spread)


def checked_numbers(value: Any) -> Floats:
    """An array of finite numbers."""
    try:
        array = np.array(value)
    except ValueError:
        raise unfit("must hold lists of equal length") from None
    if array.dtype.kind not in "if" or not np.isfinite(array).all():
        raise unfit("must hold finite numbers")
    return array.astype(float)


def number_in(value: Any) -> float:
    """A finite number."""
    number = checked_numbers(value)
    if number.ndim:
        raise unfit("must hold single numbers")
    return float(number)


def unfit(requirement: str) -> InputError:
    """The error about a stored recalibration that is none."""
    return InputError(f"The stored recalibration {requirement}", argument="path", kind="file")
