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

from verax._settings import settings
from verax.inference.products import inverse_of, sum_of_products
from verax.inputs.arrays import Bools, Floats
from verax.inputs.forecasts import softmax
from verax.kernels.shared import TINY
from verax.scores.base import Rule
from verax.scores.gradients.logits import expected_curvature, losses_with_gradient
from verax.scores.registry import RULES
from verax.wings.recalibrate.forms import CalibrationMap, checked_numbers, mixed_logs, number_in, unfit
from verax.wings.recalibrate.rows import Configuration, FittingRows
from verax.wings.recalibrate.scaling import fit_temperature, noise_of
from verax.wings.recalibrate.searching import RIDGE, smallest

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
        The number added to the logarithm of each class's probability afterwards.
    floor : float
        Smaller probabilities count as this one.
    power : float
        The power of the probabilities, which comes first: one over the temperature.
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
    """The addends of f at x by knot, in a last axis: the integral of the knot's share of the slope."""
    # A knot's addends lie side by side in memory.
    added = np.zeros((len(knots), *x.shape))
    np.minimum(x - knots[0], 0.0, out=added[0])
    added[-1] += np.maximum(x - knots[-1], 0.0)
    for i, width in enumerate(np.diff(knots).tolist()):
        u = np.minimum(np.maximum((x - knots[i]) / width, 0.0), 1.0)
        half = 0.5 * width * u * u
        added[i] += width * u - half
        added[i + 1] += half
    return np.moveaxis(added, 0, -1)


def class_logits(f: Floats) -> Floats:
    """Logarithms of the probabilities, (N, K), of classes between thresholds with log odds f, (N, K - 1)."""
    # log(s(b) - s(a)) = log s(b) + log s(-a) + log(1 - exp(a - b)) with the logistic function s.
    rest = np.log1p(np.exp(-np.abs(f)))
    low, high = -(np.maximum(-f, 0.0) + rest), -(np.maximum(f, 0.0) + rest)
    logits = np.concatenate([low, high[:, -1:]], axis=1)
    if f.shape[1] > 1:
        gaps = np.maximum(np.diff(f, axis=1), _LEAST_GAP)
        logits[:, 1:-1] += high[:, :-1] + np.log(-np.expm1(-gaps))
    return logits


def logit_slopes(f: Floats) -> tuple[Floats, Floats]:
    """Derivatives of `class_logits`: of class k in f_k, and of class k + 1 in f_k, (N, K - 1) both."""
    of_class = 1 / (1 + np.exp(np.clip(f, -_FAR, _FAR)))
    of_next = of_class - 1
    if f.shape[1] > 1:
        gaps = np.maximum(np.diff(f, axis=1), _LEAST_GAP)
        crowding = 1 / np.expm1(np.minimum(gaps, _FAR))
        of_class[:, 1:] += crowding
        of_next[:, :-1] -= crowding
    return of_class, of_next


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


# The number of knots of each method; between two the function is quadratic.
KNOTS = {"quadratic": 2, "spline": 8, "ordered": 2}
CURVES = tuple(KNOTS)
# Knots are at least this far apart, as a share of their range.
_APART = 0.02


def fit_curve(how: Configuration, rows: FittingRows, rule: Rule, near: MonotoneCurve | None) -> MonotoneCurve:
    """The function, and the offsets of ordered classes, that lose least; the search begins at `near`."""
    k, n, ordered = rows.n_classes, rows.n_rows, how.method == "ordered"
    power = 1.0
    if ordered or near is None:
        power = float(fit_temperature(rows, rule, None if near is None else near.power).slopes)
    before = (rows.floor, power if ordered else 1.0, 1 / (n + 1))
    x = rows.once(("thresholds", before), lambda: thresholds_of(rows.p, *before))
    knots, design = rows.once(("design", before, KNOTS[how.method]), lambda: _design(x, rows, how.method))
    fitting = _Fitting(design, rows, rule, ordered)
    m, offsets = len(knots), np.zeros(k if ordered else 0)
    # All slopes are one over the temperature, where that was not applied before.
    slope = 1.0 if ordered else power
    start = np.concatenate([[knots[0] * slope], np.full(m, slope), offsets])
    if near is not None:
        level = near.level + basis(knots[:1], near.knots) @ near.slopes
        start = np.concatenate(
            [level, np.interp(knots, near.knots, near.slopes), near.offsets[: len(offsets)]]
        )
    noise = fitting.noise(start)
    unchanged = np.concatenate([[knots[0]], np.ones(m), offsets])
    penalty = np.zeros((len(start), len(start)))
    if ordered:
        penalty[m + 1 :, m + 1 :] = noise * k * np.eye(k)
    elif how.strength is not None:
        penalty[1 : m + 1, 1 : m + 1] = noise * how.strength * _roughness(knots)
    penalty[: m + 1, : m + 1] += (noise * m + RIDGE if ordered else RIDGE) * _from_identity(knots)
    penalty /= n

    def objective(t: Floats) -> tuple[float, Floats]:
        value, slope = fitting.sums(t)
        pulled = penalty @ (t - unchanged)
        return value / n + float(pulled @ (t - unchanged)), slope / n + 2 * pulled

    low = np.full(len(start), -np.inf)
    low[1 : m + 1] = 0.0
    inverse = inverse_of(fitting.curvature(start) + 2 * penalty)
    best = smallest(objective, start, (low, np.full(len(start), np.inf)), inverse)
    factors = best[m + 1 :] if ordered else np.zeros(k)
    return MonotoneCurve(knots, best[1 : m + 1], float(best[0]), factors, *before)


def _from_identity(knots: Floats) -> Floats:
    """The matrix of the squared shift of even odds plus those of the slopes, as departures from identity.

    The curve of the classes in the other order departs by as much.
    """
    shift = np.append(1.0, basis(np.zeros(1), knots)[0])
    return np.outer(shift, shift) + np.diag(np.append(0.0, np.ones(len(knots))))


def _design(x: Floats, rows: FittingRows, method: str) -> tuple[Floats, Floats]:
    """The knots of a method, and what the slope at each adds to each threshold."""
    knots = _knots(x, rows.weights, KNOTS[method])
    return knots, basis(x, knots)


def _knots(x: Floats, weights: Floats, m: int) -> Floats:
    """Knots from the lowest to the highest log odds, evenly among the rows, some distance apart.

    Those of the classes in the other order are the same with the other sign.
    """
    order = np.argsort(x, axis=None, kind="stable")
    values, w = x.ravel()[order], np.repeat(weights, x.shape[1])[order]
    low, high = values[0], values[-1]
    if not high - low > 1e-6:
        return np.array([low - 1, low + 1])
    # In the middle of the weight of each row, and between two of them in proportion.
    mass = np.cumsum(w)
    inner = np.interp(np.linspace(0, 1, m)[1:-1] * mass[-1], mass - w / 2, values)
    least, half = _APART * (high - low), len(inner) // 2
    lower = _spaced(low, inner[:half][high - inner[:half] >= least], least)
    upper = -_spaced(-high, -inner[half:][inner[half:] - low >= least][::-1], least)[::-1]
    if len(lower) and len(upper) and upper[0] - lower[-1] < least:
        middle = (lower[-1] + upper[0]) / 2
        lower, upper = lower[:-1], np.append(middle, upper[1:])
    return np.array([low, *lower, *upper, high])


def _spaced(end: float, inner: Floats, least: float) -> Floats:
    """Of increasing knots on one side of the middle, those at least so far from the one before."""
    kept = [end]
    for knot in inner.tolist():
        if knot - kept[-1] >= least:
            kept.append(knot)
    return np.array(kept[1:])


def _roughness(knots: Floats) -> Floats:
    """The matrix of the integral of the squared second derivative, times the range of the knots."""
    matrix = np.zeros((len(knots), len(knots)))
    for i, width in enumerate(np.diff(knots)):
        matrix[i : i + 2, i : i + 2] += np.array([[1.0, -1.0], [-1.0, 1.0]]) / width
    return np.asarray(matrix * (knots[-1] - knots[0]))


@dataclass(frozen=True)
class _Fitting:
    """The sum of the losses as a function of level, slopes and offsets.

    Attributes
    ----------
    design : (N, K - 1, M) array
        The addend of each threshold by knot, times the slope there.
    """

    design: Floats
    rows: FittingRows
    rule: Rule
    offset: bool

    def _moved(self, t: Floats, rows: slice | Bools = slice(None)) -> tuple[Floats, Floats]:
        """Log odds of the thresholds, and logits (N, K) of the classes."""
        n, k, m = self.design[rows].shape
        # One product of all rows: one of each row would take several times as long.
        f = t[0] + (self.design[rows].reshape(n * k, m) @ t[1 : m + 1]).reshape(n, k)
        z = class_logits(f)
        return f, z + t[m + 1 :] if self.offset else z

    def sums(self, t: Floats) -> tuple[float, Floats]:
        """The sum of the losses and its derivative in the numbers."""
        f, z = self._moved(t)
        losses, g = losses_with_gradient(self.rule, np.ascontiguousarray(z.T), self.rows.y)
        g = (g * self.rows.weights).T
        of_class, of_next = logit_slopes(f)
        by_f = g[:, :-1] * of_class + g[:, 1:] * of_next
        flat = self.design.reshape(-1, self.design.shape[2])
        slope = np.concatenate([[by_f.sum()], by_f.ravel() @ flat, g.sum(axis=0) if self.offset else []])
        return float(np.einsum("n,n->", self.rows.weights, losses)), slope

    def noise(self, t: Floats) -> float:
        """The scale of the rule's noise (`noise_of`)."""
        if self.rule == RULES["log_score"]:
            return 1.0
        some = slice(None, None, -(-len(self.rows.y) // (2 * settings.curvature_rows)))
        z = np.ascontiguousarray(self._moved(t, some)[1].T)
        return noise_of(self.rule, z, self.rows.y[some], self.rows.weights[some])[0]

    def curvature(self, t: Floats) -> Floats:
        """The mean expected curvature of the rule: exact for two classes and for the log score.

        That of the log score is the covariance of what the numbers add to the logits. Another rule has its
        own scale in each row.
        """
        n, _, m = self.design.shape
        k = self.design.shape[1] + 1
        step = -(-n // max(256, min(settings.curvature_rows, 2**22 // (k * (m + k)))))
        some = slice(None, None, step)
        f, z = self._moved(t, some)
        q = softmax(z, np)
        of_class, of_next = logit_slopes(f)
        ones = np.concatenate([np.ones((*f.shape, 1)), self.design[some]], axis=2)
        by_class = np.zeros((len(f), k, m + 1 + (k if self.offset else 0)))
        by_class[:, :-1, : m + 1] += of_class[:, :, None] * ones
        by_class[:, 1:, : m + 1] += of_next[:, :, None] * ones
        if self.offset:
            by_class[:, np.arange(k), m + 1 + np.arange(k)] = 1.0
        by_class -= np.einsum("nk,nkt->nt", q, by_class)[:, None, :]
        scale = self.rows.weights[some] / self.rows.weights[some].sum()
        if self.rule != RULES["log_score"]:
            of_logs = (q * (1 - q)).sum(axis=1)
            scale = (
                scale
                * expected_curvature(self.rule, np.ascontiguousarray(z.T)).sum(axis=0)
                / np.maximum(of_logs, TINY)
            )
        flat = (by_class * np.sqrt(q * scale[:, None])[:, :, None]).reshape(-1, by_class.shape[2])
        return sum_of_products(flat.T, flat.T)
