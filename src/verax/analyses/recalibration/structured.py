"""Fits of structured vector and matrix scaling: a temperature, and small regularised changes beyond it.

The forecast is scaled by the temperature that loses least, and mixed with one row spread over all classes, as
if it had been seen besides the n others. From the logarithms z of that, the logits are

    (I + diag(v)) z + b        or        (I + diag(v) + M) z + b,    M zero on the diagonal.

The fit minimises the sum of all losses plus c times (K |v|^2 + K |b|^2 + K (K - 1) |M|^2) with the strength c
of the penalty: the more numbers of a kind there are, the closer each is held to zero. The penalty does not
grow with n, so it fades as rows are added. Where c is one this is the objective of Berta, Holzmueller, Jordan
and Bach (2025), arXiv:2511.03685, for the log score. Another rule has losses on another scale, so its penalty
is multiplied by the scale of its noise (`noise_of`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from verax._settings import settings
from verax.analyses.recalibration.forms import LogLinear, mixed
from verax.analyses.recalibration.rows import Configuration, FittingRows
from verax.analyses.recalibration.scaling import (
    fit_temperature,
    matrix_curvature,
    noise_of,
    vector_curvature,
)
from verax.analyses.recalibration.searching import inverse_of, smallest, smallest_of_many
from verax.inputs.arrays import Floats, Ints
from verax.inputs.forecasts import softmax
from verax.scores.base import Rule
from verax.scores.registry import RULES

METHODS = ("svector", "smatrix")


def fit_structured(how: Configuration, rows: FittingRows, rule: Rule, near: LogLinear | None) -> LogLinear:
    """The temperature, and what is added to it, that lose least; the search begins at `near`."""
    k, n = rows.n_classes, rows.n_rows
    power = float(fit_temperature(rows, rule, None if near is None else near.power).slopes)
    floor, spread = rows.floor, 1 / (n + 1)
    logs = rows.once(("mixed", power), lambda: rows.logs.made(lambda z: mixed(z.T, power, spread).T))
    few = logs.some(2 * settings.curvature_rows)
    noise, bend = (1.0, 1.0) if rule == RULES["log_score"] else noise_of(rule, *few)
    strength = (1.0 if how.strength is None else how.strength) * noise
    matrix = how.method == "smatrix"
    unchanged = np.eye(k) if matrix else np.ones(k)
    held = _penalties(k, matrix) * strength / n

    def objective(t: Floats) -> tuple[float, Floats]:
        value, by_slope, by_offset = logs.sums(rule, t[:-k].reshape(unchanged.shape) + unchanged, t[-k:])
        return value / n + float(held @ t**2), np.append(by_slope, by_offset) / n + 2 * held * t

    size = len(held)
    start = np.zeros(size) if near is None else np.append(near.slopes - unchanged, near.offsets)
    by_class = matrix and size > settings.curvature_up_to

    def curvature() -> Floats:
        some = few if matrix or near is None else logs.many()
        at = _Point.of(some, start[:-k].reshape(unchanged.shape) + unchanged, start[-k:], bend)
        if by_class:
            return at.sums_by_class()
        return (matrix_curvature if matrix else vector_curvature)(at.q, at.z, at.weights)

    found = curvature() if near is None else rows.alike(("curvature", how, rule), curvature)
    if by_class:
        best = smallest_of_many(objective, start, scaling_by_class(curvatures_by_class(found), 2 * held))
    else:
        bound = np.full(size, np.inf)
        best = smallest(objective, start, (-bound, bound), inverse_of(found + np.diag(2 * held)))
    return LogLinear(unchanged + best[:-k].reshape(unchanged.shape), best[-k:], floor, power, spread)


def _penalties(k: int, matrix: bool) -> Floats:
    """What holds each number to zero: the number of numbers of its kind."""
    if not matrix:
        return np.full(2 * k, float(k))
    changes = np.full((k, k), float(k * (k - 1)))
    changes[np.diag_indices(k)] = k
    return np.append(changes, np.full(k, float(k)))


@dataclass(frozen=True)
class _Point:
    """Where a search begins, on some of the rows: how the mean loss bends there.

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
        found = np.zeros((pairs, k))
        step = max(settings.product_rows, settings.products_at_once // pairs)
        for start in range(0, len(w), step):
            rows = slice(start, start + step)
            products = np.empty((pairs, len(w[rows])))
            at = 0
            for i in range(k + 1):
                np.multiply(ones[i, rows], ones[i:, rows], out=products[at : at + k + 1 - i])
                at += k + 1 - i
            found += products @ shares[rows]
        return found


def curvatures_by_class(sums: Floats) -> Floats:
    """(K, K + 1, K + 1) the curvature in the numbers of each class by itself."""
    k = sums.shape[1]
    first, second = np.triu_indices(k + 1)
    curvatures = np.empty((k, k + 1, k + 1))
    curvatures[:, first, second] = sums.T
    curvatures[:, second, first] = sums.T
    return curvatures


def scaling_by_class(curvatures: Floats, held: Floats) -> Callable[[Floats], Floats]:
    """Multiplies by the inverse of the curvature in the numbers of each class, with penalties `held`.

    What is added to the numbers of all classes alike changes no forecast, only the penalty, which is smallest
    where the means over the classes, weighted by `held`, are zero. The search keeps them there: the curvature
    by class does not know that the loss is flat in that direction, and would take many steps.
    """
    k = len(curvatures)
    diagonal = np.arange(k + 1)
    penalties = np.column_stack([held[: k * k].reshape(k, k), held[k * k :]])
    shares = penalties / penalties.sum(axis=0)
    curvatures[:, diagonal, diagonal] += penalties
    inverses = inverse_of(curvatures)

    def scaled(slope: Floats) -> Floats:
        by_class = np.concatenate([slope[: k * k].reshape(k, k), slope[k * k :, None]], axis=1)
        by_class -= shares * by_class.sum(axis=0)
        moved = np.matmul(inverses, by_class[:, :, None])[:, :, 0]
        moved -= (shares * moved).sum(axis=0)
        return np.append(moved[:, :k], moved[:, k])

    return scaled
