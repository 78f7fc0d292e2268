"""Fits of slopes and offsets for the logarithms of the probabilities.

Structured scaling is a temperature, and small regularised changes beyond it. The forecast is scaled by
the temperature that loses least, and mixed with one row spread over all classes, as if it had been seen
besides the n others. From the logarithms z of that, the logits are

    (I + diag(v)) z + b        or        (I + diag(v) + M) z + b,    M zero on the diagonal.

The fit minimises the sum of all losses plus c times (K |v|^2 + K |b|^2 + K (K - 1) |M|^2) with the
strength c of the penalty: the more numbers of a kind there are, the closer each is held to zero. The
penalty does not grow with n, so it fades as rows are added. Where c is one this is the objective of
Berta, Holzmueller, Jordan and Bach (2025), arXiv:2511.03685, for the log score. Another rule has losses
on another scale, so its penalty is multiplied by the scale of its noise (`noise_of`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from verax._settings import settings
from verax.inference.products import inverse_of
from verax.inputs.arrays import Floats, Ints
from verax.inputs.forecasts import softmax
from verax.scores.base import Rule
from verax.scores.gradients.logits import losses_with_gradient
from verax.scores.registry import RULES
from verax.wings.recalibrate.forms import LogLinear, mixed
from verax.wings.recalibrate.rows import Configuration, FittingRows, LogRows, floors_of
from verax.wings.recalibrate.searching import (
    FIRST,
    RIDGE,
    WIDEST,
    smallest,
    smallest_of_many,
)


@dataclass(frozen=True)
class _Numbers:
    """Slopes and offsets from the numbers that are fitted.

    Attributes
    ----------
    slopes : str
        "fixed" at one, "one" for all classes (as its logarithm), one for "each" class, or a "matrix".
    offsets : bool
        Whether there is an offset for each class.
    least : float, optional
        The smallest value of slopes of each class.
    """

    n_classes: int
    slopes: Literal["fixed", "one", "each", "matrix"]
    offsets: bool
    least: float | None = None

    def pack(self, slopes: Floats, offsets: Floats) -> Floats:
        """The numbers for slopes, of this kind or one for all classes, and offsets."""
        k = self.n_classes
        if self.slopes == "fixed":
            return offsets
        if self.slopes == "one":
            slopes = np.log(slopes)
        elif self.slopes == "each":
            slopes = np.broadcast_to(slopes, k)
        elif slopes.ndim < 2:
            slopes = slopes * np.eye(k)
        return np.append(slopes, offsets if self.offsets else [])

    def unpack(self, t: Floats) -> tuple[Floats, Floats]:
        """Slopes, () or (K,) or (K, K), and offsets (K,)."""
        first, offsets = self._split(t)
        k = self.n_classes
        if self.slopes == "fixed":
            return np.ones(()), offsets
        if self.slopes == "one":
            return np.exp(first[0]), offsets
        return (first.reshape(k, k) if self.slopes == "matrix" else first), offsets

    def pull(self, t: Floats, by_slope: Floats, by_offset: Floats) -> Floats:
        """The gradient in the numbers, from those in slopes and in offsets."""
        if self.slopes == "fixed":
            return by_offset
        if self.slopes == "one":
            by_slope = np.exp(t[0]) * by_slope
        return np.append(by_slope, by_offset if self.offsets else [])

    @property
    def bounds(self) -> tuple[Floats, Floats]:
        """The smallest and the largest value of each number."""
        least = -np.inf if self.least is None else self.least
        low, high = {"one": (-WIDEST, WIDEST), "each": (least, np.inf)}.get(self.slopes, (-np.inf, np.inf))
        n = {"fixed": 0, "one": 1, "each": self.n_classes, "matrix": self.n_classes**2}[self.slopes]
        free = np.full(self.n_classes if self.offsets else 0, np.inf)
        return np.append(np.full(n, low), -free), np.append(np.full(n, high), free)

    def _split(self, t: Floats) -> tuple[Floats, Floats]:
        k = self.n_classes
        return (t[:-k], t[-k:]) if self.offsets else (t, np.zeros(k))


def _numbers_of(method: str, k: int) -> _Numbers:
    kinds: dict[str, _Numbers] = {
        "prior": _Numbers(k, "fixed", True),
        "temperature": _Numbers(k, "one", False),
        "bcts": _Numbers(k, "one", True),
        "vector": _Numbers(k, "each", True),
        "beta": _Numbers(k, "each", True, 0.0),
        "dirichlet": _Numbers(k, "matrix", True),
    }
    return kinds[method]


def with_best_floor(rows: FittingRows, rule: Rule) -> FittingRows:
    """The rows with the floor for small probabilities by which temperature scaling loses least."""

    def loss(some: FittingRows) -> float:
        form = fit_temperature(some, rule, None)
        return some.logs.sums(rule, form.slopes, form.offsets)[0]

    def chosen() -> FittingRows:
        candidates = [rows.with_floor(floor) for floor in floors_of(rows.p)]
        return candidates[0] if len(candidates) == 1 else min(candidates, key=loss)

    return rows.once(("floor", rule), chosen)


def fit_temperature(rows: FittingRows, rule: Rule, near: float | None) -> LogLinear:
    """The one slope that loses least; the search begins at `near`. Other methods begin with it."""
    begin = None if near is None else LogLinear(np.array(near), np.zeros(rows.n_classes), rows.floor)
    how = Configuration("temperature")
    return rows.once((how, rule, near), lambda: fit_log_linear(how, rows, rule, begin))


def fit_log_linear(how: Configuration, rows: FittingRows, rule: Rule, near: LogLinear | None) -> LogLinear:
    """The slopes and offsets that lose least; the search begins at `near`."""
    k, logs = rows.n_classes, rows.logs
    numbers = _numbers_of(how.method, k)
    unchanged = numbers.pack(np.ones(()), np.zeros(k))

    def objective(t: Floats, logs: LogRows = logs) -> tuple[float, Floats]:
        value, by_slope, by_offset = logs.sums(rule, *numbers.unpack(t))
        gap = t - unchanged
        value += RIDGE * float(gap @ gap)
        slope = numbers.pull(t, by_slope, by_offset) + 2 * RIDGE * gap
        if how.strength is not None:
            penalty, along = _off_diagonal(t, k, how.strength * logs.n_rows)
            value, slope = value + penalty, slope + along
        return value / logs.n_rows, slope / logs.n_rows

    few = logs.some(settings.curvature_rows)
    if near is not None:
        start = numbers.pack(near.slopes, near.offsets)
    elif how.method == "temperature":
        of_few = LogRows([few], len(few[1]))
        start = min((np.array([t]) for t in FIRST), key=lambda t: objective(t, of_few)[0])
    else:
        first = fit_temperature(rows, rule, None)
        start = numbers.pack(first.slopes, first.offsets)
    inverse = None
    if how.strength is not None:
        inverse = _inverse_curvature(*numbers.unpack(start), few, how.strength)
    elif near is None and numbers.offsets:
        inverse = _inverse_curvature_near(numbers, start, few, rule)
    elif near is not None and (numbers.offsets or k >= settings.curvature_classes_from):
        inverse = rows.shared(
            ("curvature", how, rule),
            lambda: _inverse_curvature_near(numbers, start, logs.for_curvature(), rule),
        )
    best = smallest(objective, start, numbers.bounds, inverse)
    slopes, offsets = numbers.unpack(best)
    return LogLinear(np.asarray(slopes), np.asarray(offsets - offsets.mean()), rows.floor)


def _inverse_curvature_near(
    numbers: _Numbers, start: Floats, rows: tuple[Floats, Ints, Floats], rule: Rule
) -> Floats:
    """The inverse of the mean curvature near the end of a search: the log score's, as large as the rule's.

    It is the sum over the rows of the covariances of what the numbers add to the logit of a class that is
    drawn from q: a slope its z, and an offset one.
    """
    z, y, weights = rows
    slopes, offsets = numbers.unpack(start)
    added = slopes[..., None] * z
    moved = added + offsets[:, None]
    q = np.exp(moved - moved.max(axis=0))
    q /= q.sum(axis=0)
    if numbers.slopes == "each":
        curvature = vector_curvature(q, z, weights)
    else:
        added -= np.einsum("kn,kn->n", q, added)
        curvature = np.einsum("kn,kn->", q * added, weights * added).reshape(1, 1)
        if numbers.offsets:
            across = np.einsum("kn,kn,n->k", q, added, weights)[:, None]
            by_offset = np.diag(q @ weights) - (weights * q) @ q.T
            curvature = np.block([[curvature, across.T], [across, by_offset]])
        curvature = curvature[1:, 1:] if numbers.slopes == "fixed" else curvature
    if rule != RULES["log_score"]:
        curvature = curvature * noise_of(rule, moved, y, weights)[1]
    curvature[np.diag_indices(len(curvature))] += 2 * RIDGE
    return inverse_of(curvature / weights.sum())


def _inverse_curvature(
    slopes: Floats, offsets: Floats, rows: tuple[Floats, Ints, Floats], strength: float
) -> Floats:
    """The inverse of the mean curvature of the log score and its penalties, by the numbers of a matrix.

    Other proper rules have a similar one.
    """
    k, (z, _, weights) = len(offsets), rows
    moved = slopes @ z + offsets[:, None]
    q = np.exp(moved - moved.max(axis=0))
    q /= q.sum(axis=0)
    curvature = matrix_curvature(q, z, weights / weights.sum())
    penalty = (
        2 * strength * np.append(np.where(np.eye(k).ravel() > 0, 0.0, 1 / (k * (k - 1))), np.full(k, 1 / k))
    )
    curvature[np.diag_indices(len(curvature))] += penalty + 2 * RIDGE / weights.sum()
    return inverse_of(curvature)


def vector_curvature(q: Floats, z: Floats, weights: Floats) -> Floats:
    """The curvature of the log score by one number for each class, and then by offsets."""
    k, parts = len(z), np.concatenate([q * z, q])
    curvature = -(parts * weights) @ parts.T
    for i, j, factor in ((0, 0, z * z), (0, 1, z), (1, 0, z), (1, 1, np.ones_like(z))):
        block = curvature[i * k : (i + 1) * k, j * k : (j + 1) * k]
        block[np.diag_indices(k)] += np.einsum("kn,kn,n->k", q, factor, weights)
    return np.asarray(curvature)


def matrix_curvature(q: Floats, z: Floats, weights: Floats) -> Floats:
    """The curvature of the log score by the numbers of a matrix, class by class, and then by offsets.

    Where z has a row for each class and one of ones, the curvature by the numbers of classes i and k is the
    sum of q_i (1[i = k] - q_k) z z' over the rows.
    """
    k = len(q)
    ones = np.vstack([z, np.ones(len(weights))])
    curvature = np.empty((k, k + 1, k, k + 1))
    for i in range(k):
        for j in range(i + 1):
            share = weights * q[i] * ((i == j) - q[j])
            curvature[i, :, j, :] = (share * ones) @ ones.T
            curvature[j, :, i, :] = curvature[i, :, j, :]
    order = np.append(np.arange(k * (k + 1)).reshape(k, k + 1)[:, :k], np.arange(k, k * (k + 1), k + 1))
    return np.asarray(curvature.reshape(k * (k + 1), -1)[np.ix_(order, order)])


def _off_diagonal(t: Floats, k: int, strength: float) -> tuple[float, Floats]:
    """The penalty on what mixes classes, and on offsets (ODIR), with its gradient; diagonals are free."""
    along = t.copy()
    along[: k * k].reshape(k, k)[np.diag_indices(k)] = 0.0
    share = np.append(np.full(k * k, strength / (k * (k - 1))), np.full(k, strength / k))
    return float((share * along**2).sum()), 2 * share * along


def noise_of(rule: Rule, z: Floats, y: Ints, weights: Floats) -> tuple[float, float]:
    """The variance of a rule's gradient as a multiple of its curvature, and this as one of the log score's.

    The best penalty is proportional to the first, which is one for the log score. A proper rule's expected
    curvature is the covariance of its gradient with that of the log score.
    """
    _, slopes = losses_with_gradient(rule, z, y)
    _, logs = losses_with_gradient(RULES["log_score"], z, y)
    curvature = float(np.einsum("kn,kn,n->", slopes, logs, weights))
    if not curvature > 0:
        return 1.0, 1.0
    noise = float(np.einsum("kn,kn,n->", slopes, slopes, weights)) / curvature
    return noise, curvature / float(np.einsum("kn,kn,n->", logs, logs, weights))


STRUCTURED = ("svector", "smatrix")


def fit_structured(how: Configuration, rows: FittingRows, rule: Rule, near: LogLinear | None) -> LogLinear:
    """The temperature, and what is added to it, that lose least; the search begins at `near`."""
    k, n = rows.n_classes, rows.n_rows
    power = float(fit_temperature(rows, rule, None if near is None else near.power).slopes)
    floor, spread = rows.floor, 1 / (n + 1)
    logs = rows.once(("mixed", power), lambda: rows.logs.transformed(lambda z: mixed(z.T, power, spread).T))
    few = logs.some(2 * settings.curvature_rows)
    noise, bend = (1.0, 1.0) if rule == RULES["log_score"] else noise_of(rule, *few)
    strength = (1.0 if how.strength is None else how.strength) * noise
    matrix = how.method == "smatrix"
    unchanged = np.eye(k) if matrix else np.ones(k)
    penalties = _penalties(k, matrix) * strength / n

    def objective(t: Floats) -> tuple[float, Floats]:
        value, by_slope, by_offset = logs.sums(rule, t[:-k].reshape(unchanged.shape) + unchanged, t[-k:])
        return value / n + float(penalties @ t**2), np.append(by_slope, by_offset) / n + 2 * penalties * t

    size = len(penalties)
    start = np.zeros(size) if near is None else np.append(near.slopes - unchanged, near.offsets)
    by_class = matrix and size > settings.curvature_up_to

    def curvature() -> Floats:
        some = few if matrix or near is None else logs.for_curvature()
        at = _Point.of(some, start[:-k].reshape(unchanged.shape) + unchanged, start[-k:], bend)
        if by_class:
            return at.sums_by_class()
        return (matrix_curvature if matrix else vector_curvature)(at.q, at.z, at.weights)

    bends = curvature() if near is None else rows.shared(("curvature", how, rule), curvature)
    if by_class:
        best = smallest_of_many(objective, start, scaling_by_class(curvatures_by_class(bends), 2 * penalties))
    else:
        bound = np.full(size, np.inf)
        best = smallest(objective, start, (-bound, bound), inverse_of(bends + np.diag(2 * penalties)))
    return LogLinear(unchanged + best[:-k].reshape(unchanged.shape), best[-k:], floor, power, spread)


def _penalties(k: int, matrix: bool) -> Floats:
    """The penalty of each number: the number of numbers of its kind."""
    if not matrix:
        return np.full(2 * k, float(k))
    changes = np.full((k, k), float(k * (k - 1)))
    changes[np.diag_indices(k)] = k
    return np.append(changes, np.full(k, float(k)))


@dataclass(frozen=True)
class _Point:
    """The beginning of a search, on some of the rows: how the mean loss bends there.

    Attributes
    ----------
    z : (K, n) array
        Logarithms of the probabilities.
    q : (K, n) array
        The probabilities that the numbers make of them.
    weights : (n,) array
        Their sum is the curvature of the rule as a multiple of that of the log score.
    """

    z: Floats
    q: Floats
    weights: Floats

    @classmethod
    def of(cls, rows: tuple[Floats, Ints, Floats], slopes: Floats, offsets: Floats, bend: float) -> _Point:
        z, _, weights = rows
        moved = (slopes @ z if slopes.ndim == 2 else slopes[:, None] * z) + offsets[:, None]
        return cls(z, softmax(moved.T, np).T, weights * (bend / weights.sum()))

    def sums_by_class(self) -> Floats:
        """The curvature in the numbers of each class by itself, one half of what is symmetric: (pairs, K).

        Products of two logarithms are those of all classes: they are made once, for some rows at a time.
        """
        z, q, w, k = self.z, self.q, self.weights, len(self.z)
        ones = np.vstack([z, np.ones(len(w))])
        shares = (w * q * (1 - q)).T
        pairs = (k + 1) * (k + 2) // 2
        sums = np.zeros((pairs, k))
        step = max(settings.product_rows, settings.products_at_once // pairs)
        for start in range(0, len(w), step):
            rows = slice(start, start + step)
            products = np.empty((pairs, len(w[rows])))
            at = 0
            for i in range(k + 1):
                np.multiply(ones[i, rows], ones[i:, rows], out=products[at : at + k + 1 - i])
                at += k + 1 - i
            sums += products @ shares[rows]
        return sums


def curvatures_by_class(sums: Floats) -> Floats:
    """(K, K + 1, K + 1) the curvature in the numbers of each class by itself."""
    k = sums.shape[1]
    first, second = np.triu_indices(k + 1)
    curvatures = np.empty((k, k + 1, k + 1))
    curvatures[:, first, second] = sums.T
    curvatures[:, second, first] = sums.T
    return curvatures


def scaling_by_class(curvatures: Floats, penalties: Floats) -> Callable[[Floats], Floats]:
    """Multiplication by the inverse of the curvature in the numbers of each class, with penalties.

    What is added to the numbers of all classes alike changes no forecast, only the penalty, which is smallest
    where the means over the classes, weighted by `penalties`, are zero. The search keeps them there: the
    curvature by class does not know that the loss is flat in that direction, and would take many steps.
    """
    k = len(curvatures)
    diagonal = np.arange(k + 1)
    of_classes = np.column_stack([penalties[: k * k].reshape(k, k), penalties[k * k :]])
    shares = of_classes / of_classes.sum(axis=0)
    curvatures[:, diagonal, diagonal] += of_classes
    inverses = inverse_of(curvatures)

    def scaled(slope: Floats) -> Floats:
        by_class = np.concatenate([slope[: k * k].reshape(k, k), slope[k * k :, None]], axis=1)
        by_class -= shares * by_class.sum(axis=0)
        moved = np.matmul(inverses, by_class[:, :, None])[:, :, 0]
        moved -= (shares * moved).sum(axis=0)
        return np.append(moved[:, :k], moved[:, k])

    return scaled
