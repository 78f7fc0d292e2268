"""Hard decisions: the cheapest class of each forecast, and kappa and expected cost of given decisions."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from verax.common.checks import check_choice, check_count
from verax.errors import InputError, Offenders
from verax.inputs.arrays import (
    Array,
    Floats,
    Ints,
    device_of,
    kind_of,
    move_like,
    namespace_of,
    to_array,
    to_host,
    widen,
)
from verax.inputs.forecasts import Forecasts
from verax.inputs.outcomes import Outcomes, check_classes
from verax.scores.metrics import (
    KAPPA_COSTS,
    CostsLike,
    KappaKind,
    Normalization,
    cost_matrix,
    expected_cost_of,
    kappa_of,
    needs_order,
    row_costs,
)

# Beyond, a table of counts would take more than 2 GiB.
MOST_CLASSES = 16_384
# How many costs are held at a time.
_CELLS = 2**22

# ---- decisions ---------------------------------------------------------------------------------


def decide(
    p: object, *, costs: CostsLike | None = None, normalize: bool = False, logits: bool = False
) -> Array:
    """The decision for each forecast: the class with the smallest expected cost.

    Without `costs` that is the most likely class; where several are best, the lowest index. For
    quadratic costs the best decision is the class nearest the mean, often not the most likely one.
    Linear and quadratic costs take the columns of `p` as ordered from lowest to highest.

    Parameters
    ----------
    p : array
        (N, K) probabilities, or (N,) probabilities of class 1 in a binary problem.
    costs : {"quadratic", "linear", "zero_one"}, (K, K) array or None
        What decisions cost; in a matrix each row is an outcome and each column a decision.
    normalize, logits : bool
        As for `evaluate`.

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
        value = _expected_costs(p, costs, k)
        # Equal costs that differ by rounding alone are a tie.
        best = xp.min(value, axis=1, keepdims=True)
        best = best + 1e-14 * xp.maximum(xp.abs(best), xp.ones_like(best))
    columns = xp.arange(k, device=device_of(p))[None, :]
    return xp.min(xp.where(value <= best, columns, k), axis=1)


def _expected_costs(p: Array, costs: CostsLike, n_classes: int) -> Array:
    """What each decision is expected to cost: (N, K). Costs with a name are made some columns at a time."""
    if not isinstance(costs, str):
        return p @ move_like(cost_matrix(costs, n_classes), p)
    outcomes, step = np.arange(n_classes)[:, None], max(1, _CELLS // n_classes)
    blocks = [
        p @ move_like(row_costs(outcomes, np.arange(a, min(a + step, n_classes)), costs), p)
        for a in range(0, n_classes, step)
    ]
    return blocks[0] if len(blocks) == 1 else namespace_of(p).concat(blocks, axis=1)


def count_decisions(
    y: object,
    decisions: object,
    *,
    n_classes: int,
    classes: Sequence[Hashable] | None = None,
    weights: object | None = None,
    ordered: bool = False,
) -> Floats:
    """Confusion counts, outcome by row and decision by column, of `n_classes` declared classes."""
    check_count("n_classes", n_classes, least=2)
    if n_classes > MOST_CLASSES:
        raise InputError(
            f"must be at most {MOST_CLASSES:,}, because the table of counts grows with its square",
            argument="n_classes",
            values=[n_classes],
        )
    truth = _positions(y, "y", int(n_classes), classes, ordered)
    decided = _positions(decisions, "decisions", int(n_classes), classes, ordered)
    if truth.shape != decided.shape or truth.size == 0:
        raise InputError(
            "must be one per outcome, and at least one",
            argument="decisions",
            kind="length",
            found=f"there are {decided.size} decisions and {truth.size} outcomes",
        )
    w = None if weights is None else _weights(weights, truth.size)
    cells = np.bincount(truth * n_classes + decided, w, minlength=n_classes**2)
    return cells.reshape(n_classes, n_classes).astype(float)


def _positions(
    values: object, argument: str, n_classes: int, classes: Sequence[Hashable] | None, ordered: bool
) -> Ints:
    names = check_classes(classes, n_classes)
    like = np.zeros((0, n_classes))
    try:
        outcomes = Outcomes(
            values, n_classes=n_classes, classes=names, columns=None, ordered=ordered, like=like
        )
        positions: Ints = outcomes.positions(0, outcomes.n_rows)
        offenders = outcomes.offenders()
        offenders.add((positions < 0) | (positions >= n_classes), to_host(outcomes.raw), 0)
        if offenders.count:
            raise offenders.error(*outcomes.remedies())
    except InputError as error:
        raise (error.replace(argument=argument) if error.argument == "y" else error) from None
    return positions


def _weights(weights: object, n: int) -> Floats:
    w = to_host(to_array(weights, "weights")[0])
    if w.shape != (n,) or kind_of(w) not in ("real", "integer", "bool"):
        raise InputError(
            f"must be {n} numbers, one per row",
            argument="weights",
            kind="length",
            found=f"its shape is {w.shape} and its type {w.dtype}",
        )
    w = w.astype(float)
    offenders = Offenders("weights", "must be finite and not negative", "sign")
    offenders.add(~(np.isfinite(w) & (w >= 0)), w, 0)
    if offenders.count:
        raise offenders.error()
    with np.errstate(over="ignore"):
        total = float(w.sum())
    if not 0 < total < np.inf:
        raise InputError("must have a positive and finite sum", argument="weights", found=f"it is {total:g}")
    return w


# ---- from decisions ----------------------------------------------------------------------------


def kappa(
    y: object,
    decisions: object,
    *,
    n_classes: int,
    kind: KappaKind = "quadratic",
    classes: Sequence[Hashable] | None = None,
    weights: object | None = None,
) -> float:
    """Kappa: agreement of decisions with outcomes beyond chance. Higher is better, from -1 to 1.

    One minus the mean cost of the decisions over the mean cost of the same decisions shuffled at random.
    The declared number of classes counts, not the labels present. Where outcomes and decisions are all
    one and the same class it is 0/0: NaN.

    Parameters
    ----------
    y : array
        (N,) outcomes: class positions 0..K-1, or labels found in `classes`.
    decisions : array
        (N,) decisions, in the same form.
    n_classes : int
        The number of classes, K.
    kind : {"quadratic", "linear", "unweighted"}
        What a mistake costs: its squared distance in classes, its distance, or 1.
    classes : list or None
        Names of the classes, from lowest to highest.
    weights : array or None
        (N,) weights that are not negative.

    References
    ----------
    Cohen (1960), doi:10.1177/001316446002000104, for "unweighted"; Cohen (1968), doi:10.1037/h0026256

    Examples
    --------
    >>> import verax as vx
    >>> vx.kappa([0, 0, 1, 1, 2, 2], [0, 1, 1, 2, 2, 0], n_classes=3)
    0.25
    """
    check_choice("kind", kind, tuple(KAPPA_COSTS))
    ordered = needs_order(costs=KAPPA_COSTS[kind])
    counts = count_decisions(
        y, decisions, n_classes=n_classes, classes=classes, weights=weights, ordered=ordered
    )
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
    y, decisions, n_classes, classes, weights
        As for `kappa`.
    costs : {"quadratic", "linear", "zero_one"} or (K, K) array
        What decisions cost; in a matrix each row is an outcome and each column a decision.
    normalize : {None, "max", "naive"}
        "max" divides by the largest cost. "naive" divides by the cost of the best constant decision, so
        that 1 is no better than not looking (NaN where both are zero, infinite where only that one is).
    priors : list or None
        (K,) class probabilities to use instead of the shares in `y`. The result is NaN where a class with
        a positive prior never happens.

    References
    ----------
    Ferrer (2022), doi:10.48550/arXiv.2209.05355

    Examples
    --------
    >>> import verax as vx
    >>> vx.expected_cost([0, 0, 1, 1, 2, 2], [0, 1, 1, 2, 2, 0], n_classes=3)
    1.0
    """
    ordered = needs_order(costs=costs)
    counts = count_decisions(
        y, decisions, n_classes=n_classes, classes=classes, weights=weights, ordered=ordered
    )
    return float(expected_cost_of(counts, costs, normalize, priors))
