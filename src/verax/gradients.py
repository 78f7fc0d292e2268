"""Derivatives of any rule in the logits of a forecast p = softmax(z), from the rule's own formula.

A formula run on duals gives its partial derivative in every row statistic (see `duals`). Each
statistic has a derivative in the logits that is known once and for all; the chain rule does the
rest, so a new rule has its gradient with no code of its own.

The derivative of a proper rule's expected loss vanishes at the truth, whatever the truth is.
Differentiating that once more gives the expected Hessian from the gradient alone: its entry (j, k)
is -p_k times entry j of the gradient in the case that class k happens.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from verax.arrays import to_array, to_host
from verax.complaints import Offenders
from verax.duals import Dual, DualNamespace
from verax.errors import InputError, RuleError
from verax.forecasts import Forecasts
from verax.rowstats import RowStats, n_cores
from verax.rule import Rule

Floats = np.ndarray[Any, np.dtype[np.float64]]
Integers = np.ndarray[Any, np.dtype[np.int64]]

# How many logits are worked on at a time: what a cache holds with all that is made of them.
_BLOCK = 2**16
_ROWS = 1024
# From here down, relative to the largest logit, a probability or its inverse may leave the range of floats.
_FAR = -600.0
# A statistic below this counts as this: its logarithm and its root then have finite derivatives.
_TINY = 1e-300


def gradient(
    rule: Rule, y: object, logits: object, *, classes: Sequence[Hashable] | None = None
) -> Floats:
    """The derivative of each row's loss in each of its logits.

    Every row sums to zero, for adding a number to all logits changes no probability. Jumps (of the
    zero-one loss, and so of a penalty) have no derivative and count as flat.

    Parameters
    ----------
    rule : any rule on full distributions.
    y : (N,) class positions or labels found in `classes`, or (N, K) one-hot rows.
    logits : (N, K) finite logits, or (N,) log odds of class 1 in a binary problem.
    classes : names of the columns, in order; for ordered classes lowest first.

    Returns
    -------
    Array of the shape of `logits`.

    Examples
    --------
    >>> import verax as vx
    >>> gradient(vx.rps, [0], [[0.0, 0.0, 0.0]]).round(4).tolist()
    [[-0.1852, 0.037, 0.1481]]
    """
    g, _ = _run(rule, _Logits.of(rule, y, logits, classes), hessian=False)
    return g


def expected_hessian(rule: Rule, logits: object) -> Floats:
    """The second derivative of the loss in each logit, expected if the forecast is right.

    It is never negative, unlike the second derivative of the row at hand, which is why boosting uses
    it. For the log score it is p_k (1 - p_k), for RPS 2 p_k^2 RPS(p, k). The rule must be proper and
    must have a gradient.

    Parameters
    ----------
    rule : a proper rule.
    logits : (N, K) finite logits, or (N,) log odds of class 1 in a binary problem.

    Returns
    -------
    Array of the shape of `logits`.

    Examples
    --------
    >>> import verax as vx
    >>> expected_hessian(vx.log_score, [[0.0, 0.0]]).tolist()
    [[0.25, 0.25]]
    """
    rows, _ = to_array(logits, "logits")
    anything = np.zeros(rows.shape[0] if rows.ndim else 0, np.int64)
    return derivatives(rule, anything, logits)[1]


def derivatives(
    rule: Rule, y: object, logits: object, *, classes: Sequence[Hashable] | None = None
) -> tuple[Floats, Floats]:
    """`gradient` and `expected_hessian` together, at little more than the price of one."""
    rows = _Logits.of(rule, y, logits, classes)
    check_trainable(rule, rows.n_classes)
    g, h = _run(rule, rows, hessian=True)
    return g, h


def check_trainable(rule: Rule, n_classes: int) -> None:
    """Refuse a rule that a model should not, or cannot, be trained on, and say why."""
    if not rule.properties.proper.at(n_classes):
        known = "is not known to be proper" if rule.properties.proper.up_to is None else "is not proper"
        raise RuleError(
            f"{rule} {known} for {n_classes} classes, so the truth need not minimise it and its expected "
            "Hessian need not be positive. Train with a strictly proper rule, such as rps, brier or log_score."
        )
    block = _Block(np.zeros((n_classes, 1)), np.zeros(1, np.int64))
    if not _partials(rule, block, _Block.at_outcome):
        raise RuleError(
            f"{rule} has no gradient: it changes only in jumps, so a small step never pays. "
            "Train with a strictly proper rule, such as rps, brier or log_score."
        )


# ---- rows ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Logits:
    """Logits and outcomes, checked; blocks of them with a row a class, so that sums run along memory."""

    z: np.ndarray[Any, Any]
    y: Integers

    @classmethod
    def of(cls, rule: Rule, y: object, logits: object, classes: Sequence[Hashable] | None) -> _Logits:
        try:
            forecasts = Forecasts(y, logits, classes=classes, logits=True, ordered=rule.ordinal)
        except InputError as error:
            argument = "logits" if error.argument == "p" else error.argument
            raise InputError(str(error).replace("`p`", "`logits`"), argument=argument) from None
        z = np.asarray(to_host(to_array(logits, "logits")[0]))
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

    def block(self, part: slice) -> _Block:
        z = self.z[part].astype(np.float64)
        z = np.stack([np.zeros_like(z), z]) if z.ndim == 1 else np.ascontiguousarray(z.T)
        return _Block(z, self.y[part])


def _check_finite(z: np.ndarray[Any, Any]) -> None:
    bad = ~np.isfinite(z)
    if bad.any():
        rows = z.reshape(len(z), -1)
        where = bad.reshape(len(z), -1)
        offenders = Offenders("logits", "`logits` must be finite")
        offenders.add(where.any(axis=1), rows[np.arange(len(z)), where.argmax(axis=1)], 0)
        raise offenders.error()


class _Block:
    """Some rows of logits, (K, n), with what the statistics and their derivatives are made of.

    Arrays over classes hold, in row k, what would be so if class k happened.
    """

    def __init__(self, z: Floats, y: Integers) -> None:
        self.y, self.n_classes = y, len(z)
        self._cells = (y, np.arange(len(y)))
        self._shifted = z - z.max(axis=0)
        e = np.exp(self._shifted)
        self._total = e.sum(axis=0)
        self.p = np.divide(e, self._total, out=e)

    def at_outcome(self, x: Floats) -> Floats:
        """What was so for the class that did happen."""
        return x[self._cells]

    def any_outcome(self, x: Floats) -> Floats:
        return x

    def with_outcome(self, x: Floats, value: Floats) -> Floats:
        """`x`, overwritten in the row of the outcome."""
        x[self._cells] = value
        return x

    @cached_property
    def values(self) -> _Values:
        return _Values(self)

    @cached_property
    def complement(self) -> Floats:
        """1 - p as the sum of the others, which keeps all digits where p is nearly one."""
        return _before(self.p[:-1]) + _after(self.p[1:])

    @cached_property
    def log_p(self) -> Floats:
        return self._shifted - np.log(self._total)

    @cached_property
    def below(self) -> Floats:
        """The probability of the classes up to each threshold."""
        return _before(self.p)[1:-1]

    @cached_property
    def above(self) -> Floats:
        return _after(self.p)[1:-1]

    @cached_property
    def distance_below(self) -> Floats:
        return _before(self.below)

    @cached_property
    def distance_above(self) -> Floats:
        return _after(self.above)

    @cached_property
    def far(self) -> bool:
        """Whether some probabilities are so small that only their logarithms can be told apart."""
        return bool(self._shifted.min() < _FAR)

    @cached_property
    def log_below(self) -> Floats:
        return np.logaddexp.accumulate(self.log_p, axis=0)[:-1] if self.far else np.log(self.below)

    @cached_property
    def log_above(self) -> Floats:
        if not self.far:
            return np.log(self.above)
        return np.logaddexp.accumulate(self.log_p[::-1], axis=0)[::-1][1:]

    @cached_property
    def odds(self) -> tuple[Floats, Floats]:
        """The sums of 1/P over the thresholds from each class on, of 1/(1 - P) before it; logs if far."""
        if not self.far:
            return _after(1 / self.below), _before(1 / self.above)
        edge = np.full_like(self.p[:1], -np.inf)
        from_below = np.logaddexp.accumulate(np.concatenate([edge, -self.log_below[::-1]]), axis=0)[::-1]
        return from_below, np.logaddexp.accumulate(np.concatenate([edge, -self.log_above]), axis=0)

    def times_odds(self, odds: Floats) -> Floats:
        return np.exp(self.log_p + odds) if self.far else self.p * odds


def _before(x: Floats) -> Floats:
    """Row k: the sum of the rows of `x` before it. One row more than `x` has."""
    out = np.zeros((len(x) + 1, x.shape[1]))
    # Rows are long and few: this runs along memory, which cumsum over the first axis does not.
    for k, row in enumerate(x):
        np.add(out[k], row, out=out[k + 1])
    return out


def _after(x: Floats) -> Floats:
    """Row k: the sum of the rows of `x` from it on. One row more than `x` has."""
    return _before(x[::-1])[::-1]


# ---- statistics ------------------------------------------------------------------------------


class _Values:
    """The row statistics of a block, (K, n): row k for the case that class k happens."""

    def __init__(self, block: _Block) -> None:
        self._block = block

    @cached_property
    def p_true(self) -> Floats:
        return self._block.p

    @cached_property
    def log_true(self) -> Floats:
        return self._block.log_p

    @cached_property
    def rest_sq(self) -> Floats:
        squares = self._block.p**2
        return _before(squares[:-1]) + _after(squares[1:])

    @cached_property
    def cdf_l2(self) -> Floats:
        return _before(self._block.below**2) + _after(self._block.above**2)

    @cached_property
    def cdf_l1(self) -> Floats:
        return self._block.distance_below + self._block.distance_above

    @cached_property
    def cdf_log(self) -> Floats:
        return _before(-self._block.log_above) + _after(-self._block.log_below)

    @cached_property
    def hit(self) -> Floats:
        modes = self._block.p == self._block.p.max(axis=0)
        return modes / modes.sum(axis=0)

    @cached_property
    def decision(self) -> Integers:
        return np.broadcast_to(self._block.p.argmax(axis=0), self._block.p.shape)

    @cached_property
    def hit_lowest(self) -> Floats:
        return (self.decision == np.arange(self._block.n_classes)[:, None]).astype(np.float64)

    @cached_property
    def invalid(self) -> Floats:
        return np.zeros_like(self._block.p)


@dataclass(frozen=True)
class _Direction:
    """How a statistic moves with the logits: ds/dz_k given the outcome, and given that k happens."""

    slopes: Callable[[_Block], Floats]
    own: Callable[[_Block], Floats]


def _log_true(block: _Block) -> Floats:
    return block.with_outcome(-block.p, block.at_outcome(block.complement))


def _rest_sq(block: _Block) -> Floats:
    rest = block.at_outcome(block.values.rest_sq)
    return block.with_outcome(2 * block.p * (block.p - rest), -2 * block.at_outcome(block.p) * rest)


def _cdf_l2(block: _Block) -> Floats:
    # a_k is twice the sum of the cumulative errors over the thresholds from k on: P before the
    # outcome, P - 1 from it on. Both sums are monotone in k, so extremes stand for case distinctions.
    up, down = block.distance_below, block.distance_above
    a = np.maximum(block.at_outcome(up) - up, 0)
    a -= np.minimum(down, block.at_outcome(down))
    a -= np.einsum("kn,kn->n", block.p, a)
    a *= block.p
    a *= 2
    return a


def _cdf_l1(block: _Block) -> Floats:
    distance = np.abs(np.arange(block.n_classes)[:, None] - block.y)
    return block.p * (distance - block.at_outcome(block.values.cdf_l1))


def _cdf_log(block: _Block) -> Floats:
    # A threshold's side that holds class k gains from it the share that k is of that side.
    below, above = block.odds
    share = block.times_odds(np.minimum(below, block.at_outcome(below)))
    share += block.times_odds(np.minimum(above, block.at_outcome(above)))
    return (block.n_classes - 1) * block.p - share


def _own_cdf_log(block: _Block) -> Floats:
    below, above = block.odds
    return (block.n_classes - 1) * block.p - block.times_odds(below) - block.times_odds(above)


_DIRECTIONS = {
    "log_true": _Direction(_log_true, lambda block: block.complement),
    "rest_sq": _Direction(_rest_sq, lambda block: -2 * block.p * block.values.rest_sq),
    "cdf_l2": _Direction(_cdf_l2, lambda block: -2 * block.p * block.values.cdf_l2),
    "cdf_l1": _Direction(_cdf_l1, lambda block: -block.p * block.values.cdf_l1),
    "cdf_log": _Direction(_cdf_log, _own_cdf_log),
}


# ---- the chain rule --------------------------------------------------------------------------


def _run(rule: Rule, rows: _Logits, *, hessian: bool) -> tuple[Floats, Floats]:
    g = np.empty(rows.z.shape)
    h = np.empty(rows.z.shape if hessian else 0)
    keep = 1 if rows.z.ndim == 1 else slice(None)

    def work(part: slice) -> None:
        block = rows.block(part)
        with np.errstate(divide="ignore", over="ignore", under="ignore", invalid="ignore"):
            g[part] = _gradient(rule, block)[keep].T
            if hessian:
                h[part] = _expected_hessian(rule, block)[keep].T

    parts = rows.parts()
    if len(parts) == 1:
        work(parts[0])
    else:
        # Blocks know nothing of each other, and NumPy lets other threads run while it works on one.
        with ThreadPoolExecutor(min(n_cores(), len(parts))) as pool:
            list(pool.map(work, parts))
    return g, h


def _gradient(rule: Rule, block: _Block) -> Floats:
    partials = _partials(rule, block, _Block.at_outcome)
    return _total(block, ((d, _DIRECTIONS[name].slopes(block)) for name, d in partials.items()))


def _expected_hessian(rule: Rule, block: _Block) -> Floats:
    partials = _partials(rule, block, _Block.any_outcome)
    own = _total(block, ((d, _DIRECTIONS[name].own(block)) for name, d in partials.items()))
    # Never negative in exact arithmetic.
    return np.maximum(-block.p * own, 0.0)


def _total(block: _Block, terms: Iterable[tuple[Any, Floats]]) -> Floats:
    total = np.zeros_like(block.p)
    for partial, slope in terms:
        total += partial * slope
    return total


def _partials(rule: Rule, block: _Block, pick: Callable[[_Block, Floats], Floats]) -> dict[str, Any]:
    """The derivative of the loss in each direction in which the statistics can move."""
    stats: dict[str, Any] = {}
    for name in {"p_true", *rule.needs}:
        if not hasattr(_Values, name):
            raise RuleError(f"{rule} needs `{name}`, which only top lists have: it has no gradient in logits.")
        stats[name] = _seed(name, pick(block, getattr(block.values, name)))
    loss = RowStats(DualNamespace(), block.n_classes, **stats).loss(rule)
    return loss.parts if isinstance(loss, Dual) else {}


def _seed(name: str, value: Floats) -> Any:
    if name == "p_true":
        # In the direction of its logarithm, so that log(p_true) is as safe as log_true.
        value = np.maximum(value, _TINY)
        return Dual(value, {"log_true": value})
    if name == "log_true":
        return Dual(value, {name: 1.0})
    return Dual(np.maximum(value, _TINY), {name: 1.0}) if name in _DIRECTIONS else value
