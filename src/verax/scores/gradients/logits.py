"""Derivatives of any rule in the logits of a forecast p = softmax(z), from the rule's own formula.

A formula run on duals gives its partial derivative in every row statistic (see `duals`). Each
statistic has a derivative in the logits that is known once and for all; the chain rule does the
rest, so a new rule has its gradient with no code of its own.

The derivative of a proper rule's expected loss vanishes at the truth, whatever the truth is.
Differentiating that once more gives the expected Hessian from the gradient alone: its entry (j, k)
is -p_k times entry j of the gradient in the case that class k happens.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from verax._settings import settings
from verax.common.checks import check_number
from verax.engines.slopes import fuse_losses_with_slopes, fuse_slopes
from verax.engines.stats import RowStats
from verax.errors import InputError, Offenders, RuleError, show
from verax.inputs.arrays import Array, Floats, to_array, to_host
from verax.inputs.forecasts import Forecasts
from verax.kernels.fewclasses import FEW
from verax.kernels.ledger import compiles, kernels, spend
from verax.kernels.shared import TINY
from verax.kernels.threads import n_cores
from verax.scores.base import Rule
from verax.scores.gradients.duals import Dual, DualNamespace
from verax.scores.gradients.statistics import DIRECTIONS, Block, Happened, Values

# How many logits are worked on at a time: what a cache holds with all that is made of them.
_BLOCK = 2**16
_ROWS = 1024
# What rules of the outcome's probability alone need.
_LOCAL = {"log_true", "p_true"}
_REMEDY = "Train with a strictly proper rule, such as rps, brier or log_score."


@dataclass(frozen=True)
class Scaling:
    """Factors and limits applied to derivatives.

    Attributes
    ----------
    factor : float
        The factor of gradients.
    curvature : float
        The factor of expected Hessians.
    least : float
        The least that a Hessian becomes.
    weights : array of shape (N,), optional
        The weights of the rows: factors of both, at last.
    """

    factor: float = 1.0
    curvature: float = 1.0
    least: float = 0.0
    weights: Floats | None = None

    def of(self, rows: slice | Array) -> Scaling:
        """The scaling for some of the rows."""
        weights = None if self.weights is None else self.weights[rows]
        return Scaling(self.factor, self.curvature, self.least, weights)

    def apply(self, g: Floats, h: Floats) -> tuple[Floats, Floats]:
        """Scale derivatives whose last axis is that of the rows."""
        g, h = g * self.factor, np.maximum(h * self.curvature, self.least)
        return (g, h) if self.weights is None else (g * self.weights, h * self.weights)


AS_THEY_ARE = Scaling()


def gradient(rule: Rule, y: object, logits: object, *, classes: Sequence[Hashable] | None = None) -> Floats:
    """The derivative of each row's loss in each of its logits.

    Every row sums to zero, for adding a number to all logits changes no probability. Jumps (of the
    zero-one loss, and so of a penalty) have no derivative and count as flat.

    Parameters
    ----------
    rule : Rule
        Any rule on full distributions.
    y : array_like of shape (N,) or (N, K)
        Outcomes: class positions 0..K-1, labels found in `classes`, or one-hot rows.
    logits : array_like of shape (N, K) or (N,)
        Finite logits, or log odds of class 1 in a binary problem.
    classes : sequence of K labels, optional
        Names of the columns, in order; for ordered classes lowest first.

    Returns
    -------
    array of the shape of `logits`
        The derivatives.

    Examples
    --------
    >>> import verax as vx
    >>> vx.gradient(vx.rps, [0], [[0.0, 0.0, 0.0]]).round(4).tolist()
    [[-0.1852, 0.037, 0.1481]]
    """
    return _run(rule, _Logits.of(rule, y, logits, classes), None)[0]


def expected_hessian(rule: Rule, logits: object) -> Floats:
    """The second derivative of the loss in each logit, expected if the forecast is right.

    It is never negative, unlike the second derivative for the outcome that happened, so boosting uses
    it. For the log score it is p_k (1 - p_k), for RPS 2 p_k^2 RPS(p, k). The rule must be proper and
    must have a gradient.

    Parameters
    ----------
    rule : Rule
        A proper rule.
    logits : array_like of shape (N, K) or (N,)
        Finite logits, or log odds of class 1 in a binary problem.

    Returns
    -------
    array of the shape of `logits`
        The second derivatives.

    Examples
    --------
    >>> import verax as vx
    >>> vx.rules.expected_hessian(vx.log_score, [[0.0, 0.0]]).tolist()
    [[0.25, 0.25]]
    """
    rows, _ = to_array(logits, "logits")
    anything = np.zeros(rows.shape[0] if rows.ndim else 0, np.int64)
    return derivatives(rule, anything, logits)[1]


def derivatives(
    rule: Rule,
    y: object,
    logits: object,
    *,
    classes: Sequence[Hashable] | None = None,
    floor: float = 0.0,
    scaling: Scaling = AS_THEY_ARE,
) -> tuple[Floats, Floats]:
    """`gradient` and `expected_hessian` together, at little more than the price of one.

    `floor` lifts the second derivative to that multiple of the log score's, p_k (1 - p_k), at least. Many
    rows of few classes go through a compiled loop, the rows that it leaves and others through array calls.
    """
    rows = _Logits.of(rule, y, logits, classes)
    check_number("floor", floor, "must be a finite number that is not negative", lambda f: f >= 0)
    check_trainable(rule, rows.n_classes)
    compiled = run_compiled(rule, rows.z, rows.y, floor, scaling)
    if compiled is None:
        return _run(rule, rows, floor, scaling)
    g, h, left = compiled
    if left.any():
        g[left], h[left] = _run(rule, _Logits(rows.z[left], rows.y[left]), floor, scaling.of(left))
    return g, h


def expected_curvature(rule: Rule, z: Floats) -> Floats:
    """`expected_hessian` of few logits, (K, N), for optimisers; nothing is checked."""
    with np.errstate(divide="ignore", over="ignore", under="ignore", invalid="ignore"):
        return np.asarray(_expected_hessian(rule, Block(z, np.zeros(z.shape[1], np.int64)), 0.0))


def losses_with_gradient(rule: Rule, z: Array, y: Array, *, repeated: bool = False) -> tuple[Floats, Floats]:
    """The loss of each row and its derivative in each logit, for optimisers; nothing is checked.

    Parameters
    ----------
    z : array of shape (K, N)
        Finite logits, a row for each class, of float64 or float32.
    y : array of shape (N,)
        Positions of the outcomes, of int64.
    repeated : bool, default False
        Whether the same will be asked for many times, as in a training loop. Losses are then NaN where
        derivatives are not finite.
    """
    compiled = run_with_losses(rule, z, y, repeated=repeated)
    if compiled is None:
        losses, g = _losses_with_gradient(rule, np.ascontiguousarray(z, np.float64), y)
        return _without_slopes(losses, g) if repeated else losses, g
    losses, g, left = compiled
    if left.any():
        rest = np.ascontiguousarray(z[:, left], np.float64)
        own, slopes = _losses_with_gradient(rule, rest, y[left])
        losses[left], g[:, left] = _without_slopes(own, slopes) if repeated else own, slopes
    return losses, g


def _losses_with_gradient(rule: Rule, z: Floats, y: Array) -> tuple[Floats, Floats]:
    """The losses with their gradient, by array calls."""
    n = z.shape[1]
    losses, g = np.empty(n), np.empty(z.shape)
    step = max(_ROWS, _BLOCK // len(z))
    local = rule.needs <= _LOCAL
    for start in range(0, n, step):
        part = slice(start, start + step)
        with np.errstate(divide="ignore", over="ignore", under="ignore", invalid="ignore"):
            if local:
                losses[part] = _of_the_outcome(rule, z[:, part], y[part], g[:, part])
                continue
            block = Block(z[:, part], y[part])
            loss = loss_of_statistics(rule, block.n_classes, block.happened)
            losses[part], g[:, part] = loss.value, _chain(block, loss.parts)
    return losses, g


def _of_the_outcome(rule: Rule, z: Floats, y: Array, g: Floats) -> Floats:
    """The losses by a rule of the outcome's probability alone; the gradient is written into `g`."""
    cells = y, np.arange(len(y))
    np.subtract(z, z.max(axis=0), out=g)
    true = g[cells]
    np.exp(g, out=g)
    total = g.sum(axis=0)
    log_true = true - np.log(total)
    loss = loss_of_statistics(rule, len(z), _Outcome(log_true, np.exp(log_true)))
    along = loss.parts["log_true"]
    g *= -along / total
    g[cells] += along
    return np.asarray(loss.value)


@dataclass(frozen=True)
class _Outcome:
    """The statistics of the outcome's probability."""

    log_true: Floats
    p_true: Floats


def check_trainable(rule: Rule, n_classes: int) -> None:
    """Refuse a rule that a model should not, or cannot, be trained on, and say why."""
    if not rule.properties.proper.at(n_classes):
        known = "is not known to be proper" if rule.properties.proper.up_to is None else "is not proper"
        raise RuleError(
            f"{rule} {known} for {n_classes} classes, so the truth need not minimise it and its expected "
            f"Hessian need not be positive. {_REMEDY}"
        )
    block = Block(np.zeros((n_classes, 1)), np.zeros(1, np.int64))
    if not _partials(rule, block, block.happened):
        raise RuleError(
            f"{rule} has no gradient: it is constant except for jumps, so training gets nowhere. {_REMEDY}"
        )


# ---- rows ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Logits:
    """Checked logits and outcomes. Blocks of them have one row per class, so that sums run along memory."""

    z: np.ndarray[Any, Any]
    y: Array

    @classmethod
    def of(cls, rule: Rule, y: object, logits: object, classes: Sequence[Hashable] | None) -> _Logits:
        if not isinstance(rule, Rule):
            raise InputError(f"must be a rule, not {show(rule)}", argument="rule", kind="type")
        try:
            forecasts = Forecasts(y, logits, classes=classes, logits=True, ordered=rule.ordinal)
        except InputError as error:
            raise error.replace(argument="logits") if error.argument == "p" else error from None
        z = to_host(forecasts.given)
        _check_finite(z)
        positions = to_host(forecasts.outcomes.positions(0, len(z)))
        if positions.min() < 0 or positions.max() >= forecasts.n_classes:
            forecasts.check()
        return cls(z, positions)

    @property
    def n_classes(self) -> int:
        return 2 if self.z.ndim == 1 else int(self.z.shape[1])

    def parts(self) -> list[slice]:
        rows = max(_ROWS, _BLOCK // self.n_classes)
        return [slice(start, start + rows) for start in range(0, len(self.z), rows)]

    def block(self, part: slice) -> Block:
        z = self.z[part].astype(np.float64)
        z = np.stack([np.zeros_like(z), z]) if z.ndim == 1 else np.ascontiguousarray(z.T)
        return Block(z, self.y[part])


def _check_finite(z: np.ndarray[Any, Any]) -> None:
    bad = ~np.isfinite(z)
    if bad.any():
        rows = z.reshape(len(z), -1)
        where = bad.reshape(len(z), -1)
        offenders = Offenders("logits", "must be finite", "finite")
        offenders.add(where.any(axis=1), rows[np.arange(len(z)), where.argmax(axis=1)], 0)
        raise offenders.error()


# ---- the chain rule --------------------------------------------------------------------------


def _run(
    rule: Rule, rows: _Logits, floor: float | None, scaling: Scaling = AS_THEY_ARE
) -> tuple[Floats, Floats]:
    """Gradients and expected Hessians of all rows; with no floor, no Hessians."""
    g = np.empty(rows.z.shape)
    h = np.empty(0 if floor is None else rows.z.shape)
    keep = 1 if rows.z.ndim == 1 else slice(None)

    def work(part: slice) -> None:
        block = rows.block(part)
        with np.errstate(divide="ignore", over="ignore", under="ignore", invalid="ignore"):
            slopes = _gradient(rule, block)[keep]
            if floor is not None:
                curvatures = _expected_hessian(rule, block, floor)[keep]
                slopes, curvatures = scaling.of(part).apply(slopes, curvatures)
                h[part] = curvatures.T
            g[part] = slopes.T

    parts = rows.parts()
    if len(parts) == 1:
        work(parts[0])
    else:
        # Blocks are independent of each other, and NumPy releases the interpreter lock while it computes.
        with ThreadPoolExecutor(min(n_cores(), len(parts))) as pool:
            list(pool.map(work, parts))
    return g, h


def _gradient(rule: Rule, block: Block) -> Array:
    return _chain(block, _partials(rule, block, block.happened))


def _chain(block: Block, partials: dict[str, Any]) -> Array:
    """The derivative in the logits, from those in the directions of the statistics."""
    return _total(block, ((d, DIRECTIONS[name].slopes(block)) for name, d in partials.items()))


def _expected_hessian(rule: Rule, block: Block, floor: float) -> Array:
    partials = _partials(rule, block, block.values)
    second = _total(block, ((d, DIRECTIONS[name].of_class(block)) for name, d in partials.items()))
    # `-own` is not negative in exact arithmetic.
    lowest = floor * block.complement if floor > 0 else 0.0
    return block.p * np.maximum(-second, lowest)


def _total(block: Block, terms: Iterable[tuple[Any, Array]]) -> Array:
    addends = (partial * slope for partial, slope in terms)
    total = next(addends, None)
    for addend in addends:
        total += addend
    return np.zeros_like(block.p) if total is None else total


def _partials(rule: Rule, block: Block, values: Values | Happened) -> dict[str, Any]:
    """The derivative of the loss in each direction in which the statistics can move."""
    loss = loss_of_statistics(rule, block.n_classes, values)
    return loss.parts if isinstance(loss, Dual) else {}


def loss_of_statistics(rule: Rule, n_classes: int, values: object) -> Any:
    """The losses with their partial derivatives in `DIRECTIONS`; plain numbers where the rule has none.

    `values` has the row statistics that the rule needs as attributes.
    """
    stats: dict[str, Any] = {}
    for name in {"p_true", *rule.needs}:
        if not hasattr(Values, name):
            raise RuleError(
                f"{rule} needs `{name}`, which only top lists and sets have: it has no gradient in logits."
            )
        field = "log_p" if name == "log_true" else name
        stats[field] = _seed(name, getattr(values, name))
    return RowStats(DualNamespace(), n_classes, **stats).loss(rule)


def _seed(name: str, value: Array) -> Any:
    if name == "p_true":
        # In the direction of its logarithm, so that log(p_true) is as safe as log_true.
        value = np.maximum(value, TINY)
        return Dual(value, {"log_true": value})
    if name == "log_true":
        return Dual(value, {name: 1.0})
    return Dual(np.maximum(value, TINY), {name: 1.0}) if name in DIRECTIONS else value


# ---- by compiled loops

# Logits that a thread is given at a time.
_PART = 2**18


def run_compiled(
    rule: Rule, z: Array, y: Array, floor: float, scaling: Scaling
) -> tuple[Floats, Floats, Array] | None:
    """Gradients and Hessians of all rows, and for each row whether it is left to array calls.

    None where there is no compiled loop for the rule or the rows, or where it does not pay.
    """
    k, binary, weighted = 2 if z.ndim == 1 else z.shape[1], z.ndim == 1, scaling.weights is not None
    if k > FEW or not compiles(z.size, (rule, k, binary, weighted, "slopes")):
        return None
    fused = fuse_slopes(rule, k, binary=binary, weighted=weighted)
    if fused is None:
        return None
    kernel, constants = fused
    if z.dtype not in (np.float32, np.float64) or not z.dtype.isnative:
        z = z.astype(np.float64)
    y = np.ascontiguousarray(y, np.int64)
    g, h = (np.empty_like(z, dtype=np.float64, subok=False) for _ in range(2))
    left = np.empty(len(z), np.bool_)
    weights = np.empty(0) if scaling.weights is None else np.ascontiguousarray(scaling.weights)
    numbers = constants, floor, scaling.factor, scaling.curvature, scaling.least

    def work(start: int) -> None:
        part = slice(start, start + step)
        kernel(z[part], y[part], weights[part], *numbers, g[part], h[part], left[part])

    step = _PART // k
    with ThreadPoolExecutor(n_cores()) as pool:
        list(pool.map(work, range(0, len(z), step)))
    return g, h, left


def run_with_losses(
    rule: Rule, z: Array, y: Array, *, repeated: bool = False
) -> tuple[Floats, Floats, Array] | None:
    """Losses and gradients of all rows of logits, of shape (K, N), and which rows are left to array calls.

    None as in `run_compiled`. Optimisers ask for these hundreds of times, and begin where they ended before:
    so size alone decides, not how often the loop was asked for. With `repeated`, for training loops, the
    number of calls decides as well.
    """
    k, n = z.shape
    often = repeated and spend((rule, k), 1) > settings.loss_compiled_after
    if z.size < settings.search_compiled_from and not often:
        return None
    fused = None if k > FEW or kernels() is None else fuse_losses_with_slopes(rule, k)
    if fused is None:
        return None
    kernel, constants = fused
    losses, g, left = np.empty(n), np.empty_like(z, dtype=np.float64), np.empty(n, np.bool_)
    kernel(z, y, constants, losses, g, left)
    return losses, g, left


def _without_slopes(losses: Floats, slopes: Floats) -> Floats:
    """The losses, but NaN where a gradient is not finite: a formula may lose a NaN, which slopes keep."""
    marked: Floats = losses + 0 * slopes.sum(axis=0)
    return marked
