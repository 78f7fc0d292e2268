"""Smooth monotone functions of the cumulative log odds: quadratic scaling, splines, and ordered classes.

The log odds x_k of P(Y <= k) become f(x_k), where f has a slope that is linear between knots, never negative,
and constant beyond them: f is quadratic between knots and linear outside. One f for all thresholds keeps them
in order, whatever it is. Two classes have one threshold. More classes have a temperature before it, and a
factor each after it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from verax.analyses.recalibration.forms import CalibrationMap, checked_numbers, mixed_logs, number_in, unfit
from verax.inputs.arrays import Floats
from verax.inputs.forecasts import softmax

# A curve that is flat between thresholds leaves this distance, so that no class is ruled out for good.
_LEAST_GAP = 1e-12
# Beyond this the exponential is infinite.
_FAR = 700.0
_SINGLE = ("level", "floor", "power", "spread")


@dataclass(frozen=True, eq=False)
class MonotoneCurve(CalibrationMap):
    """A smooth non-decreasing function of the log odds of each threshold, and offsets of the classes.

    Attributes
    ----------
    knots : array of shape (M,)
        Log odds at which the slope is given; two or more.
    slopes : array of shape (M,)
        The slope at each knot, not negative.
    level : float
        The value at the first knot.
    offsets : array of shape (K,)
        What is added to the logarithm of each class's probability afterwards.
    floor : float
        Smaller probabilities count as this one.
    power : float
        What the probabilities are raised to first: one over the temperature.
    spread : float
        The share of the probability that is then spread evenly over all classes.
    """

    kind = "curve"
    knots: Floats
    slopes: Floats
    level: float
    offsets: Floats
    floor: float
    power: float
    spread: float

    def apply(self, p: Floats) -> Floats:
        x = thresholds_of(p, self.floor, self.power, self.spread)
        f = self.level + basis(x, self.knots) @ self.slopes
        return np.asarray(softmax(class_logits(f) + self.offsets, np))

    def to_dict(self) -> dict[str, Any]:
        lists = {name: getattr(self, name).tolist() for name in ("knots", "slopes", "offsets")}
        return {"kind": self.kind, **lists, **{name: getattr(self, name) for name in _SINGLE}}

    @property
    def words(self) -> str:
        said = "" if self.power == 1 else f"temperature {1 / self.power:.3g}, "
        said += f"slopes {self.slopes.min():.3g} to {self.slopes.max():.3g}"
        if not self.offsets.any():
            return said
        low, high = np.exp(np.array([self.offsets.min(), self.offsets.max()]) - self.offsets.mean())
        return f"{said}, odds times {low:.3g} to {high:.3g}"


def thresholds_of(p: Floats, floor: float, power: float, spread: float) -> Floats:
    """The log odds of P(Y <= k), (N, K - 1), of probabilities after a power and an even spread."""
    q = np.exp(mixed_logs(p, floor, power, spread))
    below = np.cumsum(q, axis=1)[:, :-1]
    above = np.cumsum(q[:, :0:-1], axis=1)[:, ::-1]
    return np.asarray(np.log(below) - np.log(above))


def basis(x: Floats, knots: Floats) -> Floats:
    """What the slope at each knot adds to f at x, in a last axis: the integral of its share of the slope."""
    found = np.zeros((*x.shape, len(knots)))
    found[..., 0] = np.minimum(x - knots[0], 0.0)
    found[..., -1] += np.maximum(x - knots[-1], 0.0)
    for i, width in enumerate(np.diff(knots)):
        u = np.clip((x - knots[i]) / width, 0.0, 1.0)
        half = 0.5 * width * u * u
        found[..., i] += width * u - half
        found[..., i + 1] += half
    return found


def class_logits(f: Floats) -> Floats:
    """Logarithms of the probabilities, (N, K), of classes between thresholds with log odds f, (N, K - 1)."""
    # log(s(b) - s(a)) = log s(b) + log s(-a) + log(1 - exp(a - b)) with the logistic function s.
    rest = np.log1p(np.exp(-np.abs(f)))
    low, high = -(np.maximum(-f, 0.0) + rest), -(np.maximum(f, 0.0) + rest)
    found = np.concatenate([low, high[:, -1:]], axis=1)
    if f.shape[1] > 1:
        gaps = np.maximum(np.diff(f, axis=1), _LEAST_GAP)
        found[:, 1:-1] += high[:, :-1] + np.log(-np.expm1(-gaps))
    return found


def logit_slopes(f: Floats) -> tuple[Floats, Floats]:
    """Derivatives of `class_logits`: of class k in f_k, and of class k + 1 in f_k, (N, K - 1) both."""
    own = 1 / (1 + np.exp(np.clip(f, -_FAR, _FAR)))
    next_one = own - 1
    if f.shape[1] > 1:
        gaps = np.maximum(np.diff(f, axis=1), _LEAST_GAP)
        crowding = 1 / np.expm1(np.minimum(gaps, _FAR))
        own[:, 1:] += crowding
        next_one[:, :-1] -= crowding
    return own, next_one


def curve_of(stored: dict[str, Any], n_classes: int) -> MonotoneCurve:
    """The curve that JSON holds, with every number checked."""
    knots, slopes, offsets = (checked_numbers(stored.get(name)) for name in ("knots", "slopes", "offsets"))
    if knots.ndim != 1 or len(knots) < 2 or slopes.shape != knots.shape or (np.diff(knots) <= 0).any():
        raise unfit("must have two or more increasing knots with a slope each")
    if (slopes < 0).any() or offsets.shape != (n_classes,):
        raise unfit(f"must have slopes that are not negative, and offsets for {n_classes} classes")
    level, floor, power, spread = (number_in(stored.get(name)) for name in _SINGLE)
    if not (0 < floor < 1 and power > 0 and 0 < spread < 1):
        raise unfit("must have a positive power, and a floor and a spread between 0 and 1")
    return MonotoneCurve(knots, slopes, level, offsets, floor, power, spread)
