"""Hard decisions and what they cost: kappa, expected cost, accuracy, F1, all from confusion counts.

Counts are (..., K, K): outcome by row, decision by column. Functions that take counts work on any
number of tables at once, so a bootstrap of them costs no loop.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from verax.arrays import Array, device_of, kind_of, move_like, namespace_of, to_array, to_host, widen
from verax.errors import InputError, RuleError
from verax.forecasts import Forecasts
from verax.outcomes import Outcomes, check_classes

Floats = np.ndarray[Any, np.dtype[np.float64]]
Costs = Literal["quadratic", "linear", "zero_one"]
CostsLike = Costs | Sequence[Sequence[float]] | Floats
Normalization = Literal["max", "naive"] | None

COSTS = ("quadratic", "linear", "zero_one")


def cost_matrix(costs: CostsLike, n_classes: int) -> Floats:
    """The cost of deciding for column j when row i happened, as a (K, K) array.

    >>> from verax.decisions import cost_matrix
    >>> cost_matrix("quadratic", 3).tolist()
    [[0.0, 1.0, 4.0], [1.0, 0.0, 1.0], [4.0, 1.0, 0.0]]
    """
    distance = np.abs(np.subtract.outer(np.arange(n_classes), np.arange(n_classes))).astype(float)
    if isinstance(costs, str):
        if costs not in COSTS:
            raise RuleError(f"`costs` must be a matrix or one of {', '.join(COSTS)}, not {costs!r}.")
        return {"quadratic": distance**2, "linear": distance, "zero_one": (distance > 0).astype(float)}[costs]
    matrix = to_host(to_array(costs, "costs")[0])
    if matrix.shape != (n_classes, n_classes) or kind_of(matrix) not in ("real", "integer", "bool"):
        raise InputError(
            f"`costs` must be a table of {n_classes} x {n_classes} numbers, outcome by row; "
            f"its shape is {matrix.shape} and its type {matrix.dtype}.",
            argument="costs",
        )
    matrix = matrix.astype(float)
    if not np.isfinite(matrix).all() or matrix.max() <= 0:
        raise InputError("`costs` must be finite, and some mistake must cost something.", argument="costs")
    return matrix


# ---- decisions ---------------------------------------------------------------------------------


def decide(
    p: object, *, costs: CostsLike | None = None, normalize: bool = False, logits: bool = False
) -> Array:
    """The decision for each forecast: the class with the smallest expected cost.

    Without `costs` that is the most likely class. Where several are best, the lowest index. For
    quadratic costs the best decision is the class nearest the mean, often not the most likely one.

    Parameters
    ----------
    p : (N, K) probabilities, or (N,) probabilities of class 1 in a binary problem.
    costs : "quadratic", "linear", "zero_one", or a (K, K) matrix, outcome by row.
    normalize, logits : as for `evaluate`.

    Examples
    --------
    >>> import verax as vx
    >>> p = [[0.40, 0.25, 0.35]]
    >>> int(vx.decide(p)[0]), int(vx.decide(p, costs="quadratic")[0])
    (0, 1)
    """
    raw, _ = to_array(p, "p")
    nobody = np.zeros(int(raw.shape[0]) if raw.ndim else 0, np.int64)
    forecasts = Forecasts(nobody, raw, normalize=normalize, logits=logits)
    forecasts.check()
    return cheapest(widen(forecasts.batch(0, forecasts.n_rows).p), costs)


def cheapest(p: Array, costs: CostsLike | None) -> Array:
    """The decision for each of some valid (N, K) rows, as `decide` makes it."""
    xp, k = namespace_of(p), int(p.shape[1])
    if costs is None:
        value, best = -p, -xp.max(p, axis=1, keepdims=True)
    else:
        value = p @ move_like(cost_matrix(costs, k), p)
        # Equal costs that differ by rounding alone are a tie.
        best = xp.min(value, axis=1, keepdims=True)
        best = best + 1e-14 * xp.maximum(xp.abs(best), xp.ones_like(best))
    columns = xp.arange(k, device=device_of(p))[None, :]
    return xp.min(xp.where(value <= best, columns, k), axis=1)


def count_decisions(
    y: object,
    decisions: object,
    *,
    n_classes: int,
    classes: Sequence[Hashable] | None = None,
    weights: object | None = None,
) -> Floats:
    """Confusion counts, outcome by row and decision by column, of `n_classes` declared classes."""
    if isinstance(n_classes, bool) or not isinstance(n_classes, (int, np.integer)) or n_classes < 2:
        raise InputError(f"`n_classes` must be at least 2, not {n_classes!r}.", argument="n_classes")
    truth = _positions(y, "y", int(n_classes), classes)
    decided = _positions(decisions, "decisions", int(n_classes), classes)
    if truth.shape != decided.shape or truth.size == 0:
        raise InputError(
            f"`decisions` must be as many as the outcomes, and at least one; "
            f"there are {decided.size} and `y` has {truth.size}.",
            argument="decisions",
        )
    w = None if weights is None else _weights(weights, truth.size)
    cells = np.bincount(truth * n_classes + decided, w, minlength=n_classes**2)
    return cells.reshape(n_classes, n_classes).astype(float)


def _positions(
    values: object, argument: str, n_classes: int, classes: Sequence[Hashable] | None
) -> np.ndarray[Any, Any]:
    outcomes = Outcomes(
        values,
        n_classes=n_classes,
        classes=check_classes(classes, n_classes),
        columns=None,
        ordered=False,
        like=np.zeros((0, n_classes)),
    )
    positions: np.ndarray[Any, Any] = outcomes.positions(0, outcomes.n_rows)
    invalid = (positions < 0) | (positions >= n_classes)
    if invalid.any():
        offenders = outcomes.offenders()
        offenders.add(invalid, to_host(outcomes.raw), 0)
        raise offenders.error(*outcomes.remedies()).replace(argument=argument)
    return positions


def _weights(weights: object, n: int) -> Floats:
    w = to_host(to_array(weights, "weights")[0])
    if w.shape != (n,) or kind_of(w) not in ("real", "integer", "bool"):
        raise InputError(f"`weights` must be {n} numbers, one a row.", argument="weights")
    w = w.astype(float)
    if not (np.isfinite(w).all() and w.min() >= 0 and w.max() > 0):
        raise InputError("`weights` must be finite, not negative, and not all zero.", argument="weights")
    return w


# ---- from counts -------------------------------------------------------------------------------


def kappa_of(counts: Floats, kind: Literal["quadratic", "linear"] = "quadratic") -> Floats:
    """Weighted kappa of each table of counts; NaN where outcomes and decisions are one and the same class."""
    if kind not in ("quadratic", "linear"):
        raise RuleError(f"`kind` must be 'quadratic' or 'linear', not {kind!r}.")
    cost = cost_matrix(kind, counts.shape[-1])
    truth, decided = counts.sum(axis=-1), counts.sum(axis=-2)
    observed = (cost * counts).sum(axis=(-2, -1)) * truth.sum(axis=-1)
    by_chance = np.einsum("...i,ij,...j->...", truth, cost, decided)
    one_sided = ((truth > 0).sum(axis=-1) == 1) | ((decided > 0).sum(axis=-1) == 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        agreement = np.where(one_sided, 0.0, 1 - observed / by_chance)
    return np.where(by_chance > 0, agreement, np.nan)


def expected_cost_of(
    counts: Floats,
    costs: CostsLike = "quadratic",
    normalize: Normalization = None,
    priors: Sequence[float] | None = None,
) -> Floats:
    """Expected cost of each table of counts."""
    cost = cost_matrix(costs, counts.shape[-1])
    truth = counts.sum(axis=-1)
    total = truth.sum(axis=-1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        shares = truth / total if priors is None else _priors(priors, counts.shape[-1])
        if priors is None:
            value = (cost * counts).sum(axis=(-2, -1)) / total[..., 0]
        else:
            per_class = (cost * counts).sum(axis=-1) / truth
            value = np.where(shares > 0, shares * per_class, 0.0).sum(axis=-1)
        if normalize is None:
            return np.asarray(value)
        if normalize == "max":
            return np.asarray(value / cost.max())
        if normalize == "naive":
            return np.asarray(value / (shares @ cost).min(axis=-1))
    raise RuleError(f"`normalize` must be None, 'max' or 'naive', not {normalize!r}.")


def _priors(priors: Sequence[float], n_classes: int) -> Floats:
    values = np.asarray(priors, dtype=float)
    if values.shape != (n_classes,) or not (values >= 0).all() or abs(values.sum() - 1) > 1e-6:
        raise InputError(
            f"`priors` must be {n_classes} probabilities that sum to 1, not {priors!r}.", argument="priors"
        )
    return values


def accuracy_of(counts: Floats) -> Floats:
    """Share of right decisions of each table of counts."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.trace(counts, axis1=-2, axis2=-1) / counts.sum(axis=(-2, -1)))


def macro_f1_of(counts: Floats) -> Floats:
    """Mean F1 over the classes that happened or were decided for, of each table of counts."""
    hits = np.diagonal(counts, axis1=-2, axis2=-1)
    involved = counts.sum(axis=-1) + counts.sum(axis=-2)
    with np.errstate(invalid="ignore", divide="ignore"):
        f1 = np.where(involved > 0, 2 * hits / involved, 0.0)
        return np.asarray(f1.sum(axis=-1) / (involved > 0).sum(axis=-1))


# ---- from decisions ----------------------------------------------------------------------------


def kappa(
    y: object,
    decisions: object,
    *,
    n_classes: int,
    kind: Literal["quadratic", "linear"] = "quadratic",
    classes: Sequence[Hashable] | None = None,
    weights: object | None = None,
) -> float:
    """Weighted kappa: agreement of decisions with outcomes beyond chance. Higher is better, from -1 to 1.

    One minus the mean cost of the decisions over the cost of the same decisions shuffled. The
    declared number of classes counts, not the labels present. Where outcomes and decisions are all
    one and the same class it is 0/0: NaN.

    References
    ----------
    Cohen (1968), doi:10.1037/h0026256

    Examples
    --------
    >>> import verax as vx
    >>> vx.kappa([0, 0, 1, 1, 2, 2], [0, 1, 1, 2, 2, 0], n_classes=3)
    0.25
    """
    counts = count_decisions(y, decisions, n_classes=n_classes, classes=classes, weights=weights)
    return float(kappa_of(counts, kind))


def expected_cost(
    y: object,
    decisions: object,
    *,
    n_classes: int,
    costs: CostsLike = "quadratic",
    normalize: Normalization = None,
    priors: Sequence[float] | None = None,
    classes: Sequence[Hashable] | None = None,
    weights: object | None = None,
) -> float:
    """Mean cost of the decisions. Lower is better.

    Parameters
    ----------
    costs : "quadratic", "linear", "zero_one", or a (K, K) matrix, outcome by row.
    normalize : None; "max" divides by the largest cost; "naive" by the cost of the best constant
        decision, so that 1 is useless (NaN where both are zero, infinite where only that one is).
    priors : class probabilities to use instead of the shares in `y`; a class with positive prior
        that never happens makes the cost unknown: NaN.

    References
    ----------
    Ferrer (2022), doi:10.48550/arXiv.2209.05355

    Examples
    --------
    >>> import verax as vx
    >>> vx.expected_cost([0, 0, 1, 1, 2, 2], [0, 1, 1, 2, 2, 0], n_classes=3)
    1.0
    """
    counts = count_decisions(y, decisions, n_classes=n_classes, classes=classes, weights=weights)
    return float(expected_cost_of(counts, costs, normalize, priors))


# ---- as metrics --------------------------------------------------------------------------------


@dataclass(frozen=True)
class CountMetric:
    """A number that confusion counts give: its name, its function, its direction and what it is."""

    name: str
    of: Callable[[Floats], Floats]
    higher_is_better: bool
    summary: str
    bounds: tuple[float, float] = (0.0, 1.0)


def count_metric(
    name: str, *, costs: CostsLike = "quadratic", normalize: Normalization = None
) -> CountMetric:
    """The metric of that name: qwk, linear_kappa, ec, accuracy or macro_f1; `costs` are for ec."""
    kind = costs if isinstance(costs, str) else "given"
    made = {
        "qwk": CountMetric("qwk", kappa_of, True, "quadratic kappa", (-1.0, 1.0)),
        "linear_kappa": CountMetric(
            "linear_kappa", partial(kappa_of, kind="linear"), True, "linear kappa", (-1.0, 1.0)
        ),
        "ec": CountMetric(
            "ec",
            partial(expected_cost_of, costs=costs, normalize=normalize),
            False,
            f"expected cost, {kind} costs" + (f" over {normalize}" if normalize else ""),
            (0.0, math.inf),
        ),
        "accuracy": CountMetric("accuracy", accuracy_of, True, "share of right decisions"),
        "macro_f1": CountMetric("macro_f1", macro_f1_of, True, "mean F1 of the classes"),
    }
    if name not in made:
        raise RuleError(f"There is no metric called {name!r}; known are {', '.join(made)}.")
    return made[name]
