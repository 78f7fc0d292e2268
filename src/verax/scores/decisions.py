"""Hard decisions by costs, thresholds or deferral; kappa and expected cost of given decisions."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from verax.common.checks import check_choice, check_count, check_number
from verax.errors import InputError, Offenders
from verax.inputs.arrays import (
    Array,
    Bools,
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
from verax.kernels.ledger import compiles
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
# Up to how many classes decisions are found one column after the other.
_FEW = 32
# Costs that differ by so little of the smallest, or of 1, differ by rounding alone.
_TIE = 1e-14
# What stands for a decision that is left to somebody else.
DEFERRED = -1

# ---- decisions ---------------------------------------------------------------------------------


def decide(
    p: object,
    *,
    costs: CostsLike | None = None,
    thresholds: float | Sequence[float] | None = None,
    defer: float | None = None,
    normalize: bool = False,
    logits: bool = False,
) -> Array:
    """Decide for each forecast by expected cost or by thresholds, optionally deferring some rows.

    Without options the decision is the most likely class; among ties, the lowest index. With `costs` it is
    the class with the smallest expected cost. For quadratic costs that is the class nearest the mean, often
    not the most likely one. Linear and quadratic costs, and thresholds, assume that the columns of `p` are
    ordered from lowest to highest.

    Parameters
    ----------
    p : array_like of shape (N, K) or (N,)
        Forecasts: probabilities of the K classes; for two classes, one column with those of class 1
        is enough.
    costs : {"quadratic", "linear", "zero_one"} or array_like of shape (K, K), optional
        Cost of decisions; in a matrix each row is an outcome and each column a decision.
    thresholds : float or sequence of K - 1 floats, optional
        Choose the highest class k with P(Y >= k) >= t[k - 1], or class 0 if there is none. One number
        applies to all classes; 0.5 gives the median. `choose_thresholds` tunes them on data.
    defer : float, optional
        Cost of deferring a decision (Chow's rule). Rows whose smallest expected cost exceeds it are
        deferred and marked -1. Without `costs` an error costs 1, so rows whose largest probability is
        below 1 - `defer` are deferred.
    normalize : bool, default False
        Whether to divide each row of `p` by its sum first.
    logits : bool, default False
        Whether `p` holds logits; the softmax is applied first.

    Returns
    -------
    array of shape (N,)
        Class positions; -1 for deferred rows.

    See Also
    --------
    choose_thresholds : Tune thresholds on data.
    expected_cost : Mean cost of decisions.

    References
    ----------
    Chow (1970), doi:10.1109/TIT.1970.1054406, for `defer`

    Examples
    --------
    >>> import verax as vx
    >>> p = [[0.40, 0.25, 0.35]]
    >>> int(vx.decide(p)[0]), int(vx.decide(p, costs="quadratic")[0])
    (0, 1)
    >>> vx.decide([[0.40, 0.25, 0.35]] * 2, thresholds=[0.7, 0.3]).tolist()
    [2, 2]
    >>> vx.decide([0.45, 0.95], defer=0.2).tolist()
    [-1, 1]
    """
    raw, _ = to_array(p, "p")
    nobody = np.zeros(int(raw.shape[0]) if raw.ndim else 0, np.int64)
    forecasts = Forecasts(nobody, raw, normalize=normalize, logits=logits)
    limits = None if thresholds is None else check_thresholds(thresholds, forecasts.n_classes)
    if limits is not None and not (costs is None and defer is None):
        raise InputError(
            "decide without costs, so they cannot be combined with `costs` or `defer`", argument="thresholds"
        )
    limit = None if defer is None else check_deferral(defer)
    forecasts.check()
    rows = widen(forecasts.batch(0, forecasts.n_rows).p)
    if limits is not None:
        return at_thresholds(rows, limits, forecasts.unity.decimals)
    if limit is None:
        return cheapest(rows, costs)
    return cheapest_or_deferred(rows, "zero_one" if costs is None else costs, limit)


def check_thresholds(thresholds: object, n_classes: int) -> Floats:
    """K - 1 thresholds between 0 and 1; a single number holds for all."""
    single = isinstance(thresholds, (int, float, np.generic))
    given = np.atleast_1d(to_host(to_array([thresholds] if single else thresholds, "thresholds")[0]))
    numbers = [
        check_number("thresholds", t, "must be numbers from 0 to 1", lambda t: 0 <= t <= 1)
        for t in given.ravel().tolist()
    ]
    if len(numbers) not in (1, n_classes - 1) or given.ndim > 1:
        raise InputError(
            f"must be one number, or {n_classes - 1}: one for each class but the lowest",
            argument="thresholds",
            kind="length",
            found=f"there are {len(numbers)}",
        )
    return np.full(n_classes - 1, numbers[0]) if len(numbers) == 1 else np.array(numbers, dtype=float)


def check_deferral(defer: object) -> float:
    """The cost of deferring a decision."""
    return check_number("defer", defer, "must be a cost that is not negative", lambda c: c >= 0)


def at_thresholds(p: Array, thresholds: Floats, decimals: int) -> Array:
    """The highest class whose P(Y >= class) reaches its threshold, for each of some valid rows."""
    xp, k = namespace_of(p), int(p.shape[1])
    # Sums that differ from a threshold by rounding alone reach it.
    slack = 0.5 * 10.0**-decimals
    decided = xp.zeros_like(xp.arange(int(p.shape[0]), device=device_of(p)))
    above = xp.zeros_like(p[:, 0])
    for i in range(k - 1, 0, -1):
        above = above + p[:, i]
        reached = (decided == 0) & (above >= float(thresholds[i - 1]) - slack)
        decided = xp.where(reached, xp.full_like(decided, i), decided)
    return decided


def cheapest_or_deferred(p: Array, costs: CostsLike, defer: float) -> Array:
    """The cheapest class of each of some valid rows, or -1 where even that costs more than deferring."""
    xp = namespace_of(p)
    value = _expected_costs(p, costs, int(p.shape[1]))
    decided = _first_least(value)
    dear = xp.min(value, axis=1) > defer + _rounding(defer)
    return xp.where(dear, xp.full_like(decided, DEFERRED), decided)


def cheapest(p: Array, costs: CostsLike | None) -> Array:
    """The decision for each of some valid (N, K) rows, as `decide` makes it."""
    if costs is None:
        return _first_least(-p, exact=True)
    k = int(p.shape[1])
    if isinstance(p, np.ndarray) and p.dtype == np.float64 and k <= _FEW and compiles(p.size, "decisions"):
        from verax.kernels.deciding import cheapest as kernel

        decisions = np.empty(len(p), np.int64)
        kernel(np.ascontiguousarray(p.T), np.ascontiguousarray(cost_matrix(costs, k), float), _TIE, decisions)
        return decisions
    return _first_least(_expected_costs(p, costs, k))


def _first_least(value: Array, *, exact: bool = False) -> Array:
    """The first column with the smallest value of each row; values that differ by rounding alone tie."""
    xp, k = namespace_of(value), int(value.shape[1])
    if xp is np and k <= _FEW:
        return _first_least_by_columns(value, exact)
    best = xp.min(value, axis=1, keepdims=True)
    if not exact:
        best = best + _TIE * xp.maximum(xp.abs(best), xp.ones_like(best))
    columns = xp.arange(k, device=device_of(value))[None, :]
    return xp.min(xp.where(value <= best, columns, k), axis=1)


def _first_least_by_columns(value: Floats, exact: bool) -> Ints:
    """The first smallest value in few columns, one column after the other, which is several times as fast."""
    columns = np.ascontiguousarray(value.T)
    best = columns.min(axis=0)
    if not exact:
        best += _TIE * np.maximum(np.abs(best), 1.0)
    decisions = np.zeros(len(best), np.int64)
    for i in range(len(columns) - 1, -1, -1):
        np.copyto(decisions, i, where=columns[i] <= best)
    return decisions


def _rounding(cost: float) -> float:
    """The largest difference of costs that are equal but for rounding."""
    return 1e-12 * max(abs(cost), 1.0)


def _expected_costs(p: Array, costs: CostsLike, n_classes: int) -> Array:
    """(N, K) expected costs of each decision. Named costs are made some columns at a time."""
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
    deferral: bool = False,
) -> Floats:
    """Confusion counts, outcome by row and decision by column, of `n_classes` declared classes.

    With `deferral` decisions may be -1, and these are counted in one more column.
    """
    check_count("n_classes", n_classes, least=2)
    if n_classes > MOST_CLASSES:
        raise InputError(
            f"must be at most {MOST_CLASSES:,}, because the table of counts grows with its square",
            argument="n_classes",
            values=[n_classes],
        )
    truth = _positions(y, "y", int(n_classes), classes, ordered)
    decided = _positions(decisions, "decisions", int(n_classes), classes, ordered, deferral=deferral)
    if truth.shape != decided.shape or truth.size == 0:
        raise InputError(
            "must be one per outcome, and at least one",
            argument="decisions",
            kind="length",
            found=f"there are {decided.size} decisions and {truth.size} outcomes",
        )
    w = None if weights is None else _weights(weights, truth.size)
    width = n_classes + deferral
    cells = np.bincount(truth * width + decided % width, w, minlength=n_classes * width)
    return cells.reshape(n_classes, width).astype(float)


def _positions(
    values: object,
    argument: str,
    n_classes: int,
    classes: Sequence[Hashable] | None,
    ordered: bool,
    *,
    deferral: bool = False,
) -> Ints:
    """Labels or positions as positions; -1 for deferred decisions, if these are allowed."""
    names = check_classes(classes, n_classes)
    if deferral and names is not None and DEFERRED in names:
        raise InputError("must not hold -1, which marks deferred decisions", argument="classes", kind="label")
    like = np.zeros((0, n_classes))
    try:
        outcomes = Outcomes(
            values, n_classes=n_classes, classes=names, columns=None, ordered=ordered, like=like
        )
        positions: Ints = outcomes.positions(0, outcomes.n_rows)
        deferred = _deferred(to_host(outcomes.raw)) if deferral else np.zeros(len(positions), bool)
        offenders = outcomes.offenders()
        unknown = ((positions < 0) | (positions >= n_classes)) & ~deferred
        offenders.add(unknown, to_host(outcomes.raw), 0)
        if offenders.count:
            raise offenders.error(*outcomes.remedies())
    except InputError as error:
        raise (error.replace(argument=argument) if error.argument == "y" else error) from None
    return np.where(deferred, DEFERRED, positions)


def _deferred(raw: Array) -> Bools:
    """Which of some labels, positions or one-hot rows mark deferred decisions."""
    if raw.ndim != 1:
        return np.zeros(len(raw), bool)
    return np.array([value == DEFERRED for value in raw.tolist()], bool)


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

    One minus the mean cost of the decisions divided by that of the same decisions shuffled at random. The
    declared number of classes counts, not the labels present. NaN (0/0) if outcomes and decisions are all
    one class.

    Parameters
    ----------
    y : array_like of shape (N,)
        Outcomes: class positions 0..K-1, or labels found in `classes`.
    decisions : array_like of shape (N,)
        Decisions, in the same form.
    n_classes : int
        The number of classes, K.
    kind : {"quadratic", "linear", "unweighted"}, default "quadratic"
        Cost of an error: its squared distance in classes, its distance, or 1.
    classes : sequence of K labels, optional
        Names of the classes, from lowest to highest.
    weights : array_like of shape (N,), optional
        Importance weights of the rows, not negative, not all zero. Only their ratios matter.

    Returns
    -------
    float
        Kappa, from -1 to 1.

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
    defer: float | None = None,
    normalize: Normalization = None,
    priors: Sequence[float] | None = None,
    classes: Sequence[Hashable] | None = None,
    weights: object | None = None,
) -> float:
    """Mean cost of the decisions. Lower is better.

    Parameters
    ----------
    y : array_like of shape (N,)
        Outcomes: class positions 0..K-1, or labels found in `classes`.
    decisions : array_like of shape (N,)
        Decisions, in the same form.
    n_classes : int
        The number of classes, K.
    costs : {"quadratic", "linear", "zero_one"} or array_like of shape (K, K), default "quadratic"
        Cost of decisions; in a matrix each row is an outcome and each column a decision.
    defer : float, optional
        Cost of a deferred decision (-1, see `decide`), whatever the outcome. Without it -1 is refused.
    normalize : {None, "max", "naive"}, default None
        "max" divides by the largest cost. "naive" divides by the cost of the best constant decision, so
        that 1 means useless (NaN if both are zero, infinite if only that one is). Deferring everything is
        one of the constant decisions.
    priors : sequence of K floats, optional
        Class probabilities to use instead of the frequencies in `y`. The result is NaN if a class with
        a positive prior never occurs.
    classes : sequence of K labels, optional
        Names of the classes, from lowest to highest.
    weights : array_like of shape (N,), optional
        Importance weights of the rows, not negative, not all zero. Only their ratios matter.

    Returns
    -------
    float
        The mean cost, divided according to `normalize`.

    See Also
    --------
    decide : Decisions with the smallest expected cost.

    References
    ----------
    Ferrer (2022), doi:10.48550/arXiv.2209.05355

    Examples
    --------
    >>> import verax as vx
    >>> vx.expected_cost([0, 0, 1, 1, 2, 2], [0, 1, 1, 2, 2, 0], n_classes=3)
    1.0
    >>> vx.expected_cost([0, 1, 1], [0, -1, 0], n_classes=2, costs="zero_one", defer=0.5)
    0.5
    """
    ordered = needs_order(costs=costs)
    cost = None if defer is None else check_deferral(defer)
    counts = count_decisions(
        y,
        decisions,
        n_classes=n_classes,
        classes=classes,
        weights=weights,
        ordered=ordered,
        deferral=cost is not None,
    )
    return float(expected_cost_of(counts, costs, normalize, priors, cost))
