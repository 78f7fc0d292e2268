"""Fits of the methods to rows whose outcomes are known, by any proper rule."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from verax.analyses.calibration.events import recalibrate
from verax.analyses.recalibration.forms import CalibrationMap, Isotonic, LogLinear, Unchanged, cumulative
from verax.analyses.units import sums_at
from verax.inputs.arrays import Floats, Ints
from verax.scores.base import Rule
from verax.scores.gradients.logits import losses_with_gradient

# Every number fitted is held to its value for "unchanged" by this, against the sum of all losses: as much as
# a fraction of one row. It makes fits unique and keeps those of a class that never happens finite.
RIDGE = 0.01
# The strengths of the penalty on a matrix, among which cross-validation chooses; the stronger, the simpler.
STRENGTHS = (1.0, 0.1, 0.01)
# Most rows that forms with slopes and offsets are fitted to, drawn at random: their error is then far
# below anything that could be measured.
MOST_ROWS = 100_000
# The first temperatures tried, as logarithms of their inverse; some rules have a flat part far from the best.
FIRST = (-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0)
WIDEST = 6.0
# Relative precision of the mean loss at which the search ends, far below its standard error.
_ITERATIONS, _GAIN, _FLAT, _HALVINGS = 500, 1e-11, 1e-7, 40
# Most rows used for the curvature that scales the search for a matrix.
_CURVATURE_ROWS = 2**12
# From this many classes on, a search that begins near its end is scaled by the curvature as well: it takes a
# third of the steps.
_MANY_CLASSES = 20


@dataclass(frozen=True)
class Configuration:
    """A method, and the strength of its penalty where it has one."""

    method: str
    strength: float | None = None


@dataclass(frozen=True)
class FittingRows:
    """Rows to learn from: positions of outcomes, probabilities, weights of mean one."""

    y: Ints
    p: Floats
    weights: Floats

    @classmethod
    def of(cls, y: Ints, p: Floats, weights: Floats | None) -> FittingRows:
        if weights is None:
            return cls(y, p, relative(None, len(y)))
        kept = weights > 0
        return cls(y[kept], p[kept], relative(weights[kept], int(kept.sum())))

    @property
    def n_classes(self) -> int:
        return int(self.p.shape[1])

    def some(self, most: int, seed: int) -> FittingRows:
        """A random sample of the rows, if there are more than `most`."""
        if len(self.y) <= most:
            return self
        chosen = drawn(len(self.y), most, seed)
        return FittingRows.of(self.y[chosen], self.p[chosen], self.weights[chosen])


def relative(weights: Floats | None, n: int) -> Floats:
    """Weights of mean one."""
    if weights is None or not n:
        return np.ones(n)
    w = weights / weights.max()
    return np.asarray(w / w.mean())


def drawn(n: int, most: int, seed: int) -> Ints:
    """The numbers of `most` of n rows, drawn at random, in order."""
    return np.sort(np.random.default_rng(seed).choice(n, most, replace=False))


def fit(
    how: Configuration,
    rows: FittingRows,
    rule: Rule,
    *,
    ordered: bool,
    seed: int = 0,
    near: CalibrationMap | None = None,
) -> CalibrationMap:
    """The form of a method that loses least on the rows; the search begins at `near`, if that is given."""
    if how.method == "none" or not len(rows.y):
        return Unchanged()
    if how.method == "isotonic":
        return fit_isotonic(rows, thresholds=ordered or rows.n_classes == 2)
    begin = near if isinstance(near, LogLinear) else None
    return _fit_log_linear(how, rows.some(MOST_ROWS, seed), rule, begin)


# ---- isotonic ----------------------------------------------------------------------------------


def fit_isotonic(rows: FittingRows, *, thresholds: bool) -> Isotonic:
    """The non-decreasing functions of classes or thresholds that fit best, by every proper score."""
    given = cumulative(rows.p) if thresholds else rows.p
    knots = []
    for i in range(given.shape[1]):
        happened = rows.y <= i if thresholds else rows.y == i
        knots.append(_knots(given[:, i], happened, rows.weights))
    # As if one more row had been seen, spread over all classes: no class is ruled out for good.
    spread = 1 / (len(rows.y) + 1)
    return Isotonic(thresholds, tuple(x for x, _ in knots), tuple(y for _, y in knots), spread)


def _knots(given: Floats, happened: Any, weights: Floats) -> tuple[Floats, Floats]:
    """The ends of the steps of an isotonic fit, and their heights."""
    values, pools = np.unique(given, return_inverse=True)
    cells = np.stack([sums_at(pools, weights * part, len(values)) for part in (~happened, happened)], axis=1)
    fitted = recalibrate(cells)
    heights = fitted.blocks[:, 1] / fitted.blocks.sum(axis=1)
    last = np.cumsum(fitted.sizes) - 1
    ends = np.stack([last - fitted.sizes + 1, last], axis=1).ravel()
    single = np.append(np.diff(ends) == 0, False)
    return values[fitted.kept][ends][~single], np.repeat(heights, 2)[~single]


# ---- slopes and offsets ------------------------------------------------------------------------


@dataclass(frozen=True)
class _Numbers:
    """How the numbers that are fitted make slopes and offsets.

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
        """The gradient in the numbers, from those in slopes of each class, or a matrix, and in offsets."""
        if self.slopes == "fixed":
            return by_offset
        if self.slopes == "one":
            by_slope = np.exp(t[0]) * by_slope.sum()
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


def _fit_log_linear(how: Configuration, rows: FittingRows, rule: Rule, near: LogLinear | None) -> LogLinear:
    k, floor = rows.n_classes, zero_counts_as(rows.p)
    z = np.ascontiguousarray(np.log(np.maximum(rows.p, floor)).T)
    numbers = _numbers_of(how.method, k)
    matrix = how.method == "dirichlet"
    unchanged = numbers.pack(np.ones(()), np.zeros(k))

    def objective(t: Floats) -> tuple[float, Floats]:
        slopes, offsets = numbers.unpack(t)
        moved = (slopes @ z if matrix else np.atleast_1d(slopes)[:, None] * z) + offsets[:, None]
        losses, g = losses_with_gradient(rule, moved, rows.y)
        g *= rows.weights
        by_slope = g @ z.T if matrix else (g * z).sum(axis=1)
        gap = t - unchanged
        value = float((rows.weights * losses).sum()) + RIDGE * float(gap @ gap)
        slope = numbers.pull(t, by_slope, g.sum(axis=1)) + 2 * RIDGE * gap
        if how.strength is not None:
            penalty, along = _off_diagonal(t, k, how.strength * len(rows.y))
            value, slope = value + penalty, slope + along
        return value / len(rows.y), slope / len(rows.y)

    if near is not None:
        start = numbers.pack(near.slopes, near.offsets)
    elif how.method == "temperature":
        start = min((np.array([t]) for t in FIRST), key=lambda t: objective(t)[0])
    else:
        first = _fit_log_linear(Configuration("temperature"), rows, rule, None)
        start = numbers.pack(first.slopes, first.offsets)
    inverse = None
    if how.strength is not None:
        inverse = _inverse_curvature(*numbers.unpack(start), z, rows.weights, how.strength)
    elif near is not None and how.method == "bcts" and k >= _MANY_CLASSES:
        inverse = _inverse_curvature_near(*numbers.unpack(start), z, rows.weights)
    best = smallest(objective, start, numbers.bounds, inverse)
    slopes, offsets = numbers.unpack(best)
    return LogLinear(np.asarray(slopes), np.asarray(offsets - offsets.mean()), floor)


def smallest(
    objective: Callable[[Floats], tuple[float, Floats]],
    start: Floats,
    bounds: tuple[Floats, Floats],
    inverse: Floats | None,
) -> Floats:
    """Where a function is smallest within bounds, by the BFGS method; `inverse` is that of its curvature.

    There are few numbers, so this takes less time than calling a library, whose threads wait for each other.
    """
    x = np.clip(start, *bounds)
    value, slope = objective(x)
    known = inverse is not None
    inverse = np.eye(len(x)) / max(1.0, float(np.linalg.norm(slope))) if inverse is None else inverse
    for _ in range(_ITERATIONS):
        # Numbers at their bounds that would leave them stay.
        free = ~(((x <= bounds[0]) & (slope > 0)) | ((x >= bounds[1]) & (slope < 0)))
        if np.abs(slope[free]).max(initial=0.0) <= _FLAT:
            break
        along = np.where(free, -inverse @ np.where(free, slope, 0.0), 0.0)
        fall, size = float(along @ slope), 1.0
        for _ in range(_HALVINGS):
            moved = np.clip(x + size * along, *bounds)
            found, steep = objective(moved)
            if found <= value + 1e-4 * size * fall:
                break
            size /= 2
        else:
            break
        step, change = moved - x, steep - slope
        gained = value - found
        x, value, slope = moved, found, steep
        if gained <= _GAIN * max(abs(value), 1.0):
            break
        bend = float(step @ change)
        if bend > 0:
            if not known:
                inverse, known = np.eye(len(x)) * (bend / float(change @ change)), True
            turned = inverse @ change
            factor = (1 + float(change @ turned) / bend) / bend
            across = np.outer(step, turned) / bend
            inverse = inverse + factor * np.outer(step, step) - across - across.T
    return x


def _inverse_curvature_near(slope: Floats, offsets: Floats, z: Floats, weights: Floats) -> Floats:
    """The inverse of the mean curvature of the log score, by the logarithm of one slope and by offsets.

    Other proper rules have a similar one. It is the sum over the rows of the covariances of what the numbers
    add to the logit of a class that is drawn from q: `slope` times z, and one for each offset.
    """
    added = slope * z
    moved = added + offsets[:, None]
    q = np.exp(moved - moved.max(axis=0))
    q /= q.sum(axis=0)
    mean = np.einsum("kn,kn->n", q, added)
    found = np.empty((len(q) + 1, len(q) + 1))
    found[0, 0] = weights @ (np.einsum("kn,kn,kn->n", q, added, added) - mean**2)
    found[0, 1:] = found[1:, 0] = (q * (added - mean)) @ weights
    found[1:, 1:] = np.diag(q @ weights) - (weights * q) @ q.T
    found[np.diag_indices(len(found))] += 2 * RIDGE
    return np.asarray(np.linalg.inv(found / len(weights)))


def _inverse_curvature(
    slopes: Floats, offsets: Floats, z: Floats, weights: Floats, strength: float
) -> Floats:
    """The inverse of the mean curvature of the log score and its penalties, by the numbers of a matrix.

    Other proper rules have a similar one. Where z has a row for each class and one of ones, the curvature by
    the numbers of classes i and k is the sum of q_i (1[i = k] - q_k) z z' over the rows.
    """
    k = len(offsets)
    step = -(-len(weights) // _CURVATURE_ROWS)
    z, weights = z[:, ::step], weights[::step]
    moved = slopes @ z + offsets[:, None]
    q = np.exp(moved - moved.max(axis=0))
    q /= q.sum(axis=0)
    ones = np.vstack([z, np.ones(len(weights))])
    curvature = np.empty((k, k + 1, k, k + 1))
    for i in range(k):
        for j in range(k):
            share = weights * q[i] * ((i == j) - q[j]) / len(weights)
            curvature[i, :, j, :] = (share * ones) @ ones.T
    # Slopes come first, class by class, and then offsets.
    order = np.append(np.arange(k * (k + 1)).reshape(k, k + 1)[:, :k], np.arange(k, k * (k + 1), k + 1))
    found = curvature.reshape(k * (k + 1), -1)[np.ix_(order, order)]
    penalty = (
        2 * strength * np.append(np.where(np.eye(k).ravel() > 0, 0.0, 1 / (k * (k - 1))), np.full(k, 1 / k))
    )
    found[np.diag_indices(len(found))] += penalty + 2 * RIDGE / len(weights)
    return np.asarray(np.linalg.inv(found))


def _off_diagonal(t: Floats, k: int, strength: float) -> tuple[float, Floats]:
    """The penalty on what mixes classes, and on offsets (ODIR), with its gradient; diagonals are free."""
    along = t.copy()
    along[: k * k].reshape(k, k)[np.diag_indices(k)] = 0.0
    share = np.append(np.full(k * k, strength / (k * (k - 1))), np.full(k, strength / k))
    return float((share * along**2).sum()), 2 * share * along


def zero_counts_as(p: Floats) -> float:
    """Half the smallest positive probability: what a zero counts as."""
    positive = p[p > 0]
    return float(min(max(positive.min() / 2, 1e-300), 0.1 / p.shape[1]))
