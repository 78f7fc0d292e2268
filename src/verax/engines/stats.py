"""Row statistics: the few numbers of each row that every rule is a formula over, and how they are computed.

Array-API calls compute them on any array, where it lives; compiled kernels, a block of rows at a time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import singledispatch
from itertools import accumulate
from typing import Any, Protocol

import numpy as np

from verax.errors import RuleError
from verax.inputs.arrays import (
    Array,
    Floats,
    Ints,
    Namespace,
    by_column,
    device_of,
    is_traced,
    to_host,
    to_index,
    widen,
)
from verax.inputs.forecasts import Batch, Forecasts, ShareBatch, log_softmax
from verax.inputs.sets.rows import SetRows
from verax.kernels.ledger import kernels
from verax.kernels.statistics import LOGARITHMS, MODE, OF_GRADES, OF_SETS, PLACE, STATISTICS


class Formula(Protocol):
    """Anything with a loss that is a formula over row statistics. Rules are; they live above."""

    @property
    def needs(self) -> frozenset[str]: ...

    def formula(self, stats: RowStats) -> Array: ...


@dataclass(frozen=True)
class RowStatistic:
    """The formula that is a row statistic itself."""

    name: str

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({self.name})

    def formula(self, stats: RowStats) -> Array:
        values: Array = getattr(stats, self.name)
        return values


class RowStats:
    """The statistics of some rows that rules are formulas over: an array of length n for each one required.

    The statistics are attributes; `verax.kernels.statistics.STATISTICS` says what each means. `log_p`, where
    it is known from logits, is the logarithm of `p_true`; `buffer` holds the statistics of the compiled pass.
    """

    xp: Namespace
    n_classes: int
    log_p: Any | None
    buffer: np.ndarray[Any, Any] | None

    def __init__(
        self,
        xp: Namespace,
        n_classes: int,
        *,
        log_p: Array | None = None,
        buffer: np.ndarray[Any, Any] | None = None,
        **statistics: Array,
    ) -> None:
        self.xp, self.n_classes, self.log_p, self.buffer = xp, n_classes, log_p, buffer
        self._losses: dict[Formula, Array] = {}
        self.add(**statistics)

    def add(self, **statistics: Array) -> None:
        """Note further statistics of the same rows."""
        # Older versions of PyTorch compile this, but no update of `__dict__`.
        for name, value in statistics.items():
            setattr(self, name, value)

    def __getattr__(self, name: str) -> Array:
        if name in STATISTICS:
            raise AttributeError(f"the statistic {name} was not asked for")
        raise AttributeError(f"there is no statistic called {name}")

    @property
    def log_true(self) -> Array:
        return self.xp.log(self.sure) if self.log_p is None else self.log_p

    @property
    def sure(self) -> Array:
        """`p_true`, at most 1: a valid row may sum to a little more."""
        return self.xp.minimum(self.p_true, 1.0)

    @property
    def impossible(self) -> Array:
        """Whether the outcome had probability zero."""
        return self.p_true == 0 if self.log_p is None else self.log_p == -self.xp.inf

    def loss(self, rule: Formula) -> Array:
        """The losses of `rule` on these rows, computed once however many rules build on it."""
        if rule not in self._losses:
            try:
                self._losses[rule] = rule.formula(self)
            except (TypeError, AttributeError) as error:
                raise RuleError(
                    f"The formula of {rule} failed ({error}). "
                    "Does it use a statistic that `needs` does not name?"
                ) from error
        return self._losses[rule]

    def forget(self) -> None:
        """Drop the losses computed so far: the arrays hold other rows now."""
        self._losses.clear()


# The rows, shares and statistics of pairs of a row and an outcome; without rows, those of all, (n, K).
OfOutcomes = tuple[Ints | None, Array, RowStats]
# What does not depend on the outcome.
_OF_FORECAST = frozenset({"decision", "top"})


class ShareStats(RowStats):
    """Statistics of rows whose outcomes are shares of the classes.

    A loss, like any statistic that depends on the outcome, is the mean over the outcomes, weighted by their
    shares. An outcome whose share is zero costs nothing, even if its loss is infinite.
    """

    def __init__(self, xp: Namespace, n_classes: int, n_rows: int, outcomes: OfOutcomes) -> None:
        super().__init__(xp, n_classes)
        self.n_rows: int = n_rows
        self.outcomes: OfOutcomes = outcomes

    @classmethod
    def of_pairs(cls, batch: ShareBatch, compute: Callable[[Batch], RowStats]) -> ShareStats:
        """The statistics of NumPy rows, from those of each row with each class that has a share in it."""
        place, y = np.nonzero(batch.shares > 0)
        logits = None if batch.logits is None else batch.logits[place]
        pairs = Batch(
            p=batch.p[place],
            y=y,
            weights=None,
            groups=None,
            start=batch.start,
            n_classes=batch.n_classes,
            unity=batch.unity,
            xp=batch.xp,
            logits=logits,
        )
        return cls(np, batch.n_classes, batch.n_rows, (place, batch.shares[place, y], compute(pairs)))

    def loss(self, rule: Formula) -> Array:
        if isinstance(rule, RowStatistic):
            return getattr(self, rule.name)
        if rule not in self._losses:
            self._losses[rule] = self._mean(lambda stats: stats.loss(rule))
        return self._losses[rule]

    def __getattr__(self, name: str) -> Array:
        if name not in STATISTICS:
            raise AttributeError(f"there is no statistic called {name}")
        if name not in _OF_FORECAST:
            return self._mean(lambda stats: getattr(stats, name))
        place, _, stats = self.outcomes
        values = getattr(stats, name)
        return values[:, 0] if place is None else values[np.searchsorted(place, np.arange(self.n_rows))]

    @property
    def impossible(self) -> Array:
        """Whether an outcome with a share had probability zero."""
        return self._mean(lambda stats: self.xp.where(stats.impossible, 1.0, 0.0)) > 0

    def _mean(self, of: Callable[[RowStats], Array]) -> Array:
        """The mean over the outcomes of each row."""
        place, share, stats = self.outcomes
        values = of(stats)
        if place is not None:
            return np.bincount(place, share * values, self.n_rows)
        return self.xp.sum(share * self.xp.where(share > 0, values, self.xp.zeros_like(values)), axis=1)


@dataclass(frozen=True)
class Decided:
    """Outcomes with the decisions of their rows.

    Attributes
    ----------
    y, decision : Ints
        The outcomes, and the decisions of their rows.
    place : Ints or None
        The row of each outcome in its batch; None where every row has one.
    share : Floats or None
        The share of each outcome in its row; None where every row has one.
    """

    y: Ints
    decision: Ints
    place: Ints | None = None
    share: Floats | None = None

    @classmethod
    def of(cls, batch: Any, decision: Array) -> Decided:
        """The outcomes of a batch with these decisions, on the host."""
        decisions = to_host(decision)
        if not isinstance(batch, ShareBatch):
            return cls(to_host(batch.y), decisions)
        shares = to_host(batch.shares)
        place, y = np.nonzero(shares > 0)
        return cls(y, decisions[place], place, shares[place, y])

    def at(self, rows: Any) -> Any:
        """The value of each outcome, from a value per row."""
        return rows if self.place is None else rows[self.place]

    def weights(self, weights: Floats | None) -> Floats | None:
        """The weight of each outcome, from those of the rows; None where all are 1."""
        if self.share is None:
            return weights
        return self.share if weights is None else self.share * self.at(weights)

    def right(self, n_rows: int) -> Floats:
        """The share of each row's outcomes that the decision names."""
        hits: Floats = (self.y == self.decision).astype(float)
        if self.place is None or self.share is None:
            return hits
        return np.bincount(self.place, self.share * hits, n_rows).astype(float)


# ---- by array calls ---------------------------------------------------------------------------


@singledispatch
def validate(batch: Any) -> tuple[bool, bool]:
    """Check a batch in one transfer: whether all rows are valid, and whether any has weight."""
    return _validate(batch, (batch.y < 0) | (batch.y >= batch.n_classes))


@validate.register
def _validate_shares(batch: ShareBatch) -> tuple[bool, bool]:
    xp, shares = batch.xp, batch.shares
    clear = batch.unity.clear(batch.n_classes, float(xp.finfo(shares.dtype).eps))
    return _validate(batch, ~((xp.min(shares, axis=1) >= 0) & (xp.abs(xp.sum(shares, axis=1) - 1) <= clear)))


def _validate(batch: Any, bad: Array) -> tuple[bool, bool]:
    """Check a batch whose invalid outcomes are already marked."""
    xp, p = batch.xp, by_column(widen(batch.p))
    clear = batch.unity.clear(batch.n_classes, float(xp.finfo(p.dtype).eps))
    unclear = ~((xp.min(p, axis=1) >= 0) & (xp.abs(xp.sum(p, axis=1) - 1) <= clear))
    flags = [xp.any(unclear), xp.any(bad)]
    if batch.weights is not None:
        flags[1] = flags[1] | xp.any(~((batch.weights >= 0) & xp.isfinite(batch.weights)))
        flags.append(xp.any(batch.weights > 0))
    stacked = xp.stack(flags)
    if is_traced(stacked):
        # There are no values to look at: inside `jax.jit` valid rows are the caller's affair.
        return True, True
    some_unclear, some_bad, *weighty = to_host(stacked).tolist()
    if some_unclear:
        some_bad = some_bad or not batch.unity.holds(to_host(p)).all()
    return not some_bad, all(weighty)


@singledispatch
def compute(batch: Any, needs: Collection[str]) -> RowStats:
    """The statistics `needs` (and `p_true`) of a batch of valid rows."""
    p = by_column(widen(batch.p))
    columns = to_index(batch.xp.arange(batch.n_classes, device=device_of(p)))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return reduce_rows(batch.xp, p, batch.y, columns, needs, log_p=_log_p(batch, needs))


@compute.register
def _compute_shares(batch: ShareBatch, needs: Collection[str]) -> RowStats:
    if batch.xp is np:
        return ShareStats.of_pairs(batch, lambda pairs: compute(pairs, needs))
    # Elsewhere every class is scored for all rows: which shares are zero is not looked at.
    p, xp = by_column(widen(batch.p)), batch.xp
    columns = to_index(xp.arange(batch.n_classes, device=device_of(p)))
    stats = reduce_outcomes(xp, p, columns, needs, log_p=_log_p(batch, needs))
    return ShareStats(xp, batch.n_classes, batch.n_rows, (None, batch.shares, stats))


def _log_p(batch: Any, needs: Collection[str]) -> Array | None:
    """The logarithms of the probabilities, where there are logits and something needs them."""
    known = batch.logits is not None and LOGARITHMS & set(needs)
    return log_softmax(batch.logits, batch.xp) if known else None


@singledispatch
def formula_for(_rows: Any, rule: Formula) -> Formula:
    """The formula of a rule for rows of this kind: top lists add a fine to some."""
    return rule


@formula_for.register
def _(rows: Forecasts, rule: Formula) -> Formula:
    refuse_set_scores(rows, rule.needs)
    return rule


def refuse_set_scores(rows: object, needs: Collection[str]) -> None:
    """Refuse scores of sets, and of grades, for rows that are none."""
    if OF_GRADES & set(needs):
        raise RuleError("grade scores grades, not forecasts: `compare_grades({name: values})`.")
    if OF_SETS & set(needs) and not isinstance(rows, SetRows):
        raise RuleError(
            "level_set and winkler score sets. Make sets of the probabilities first: "
            "`Sets.from_probabilities(p, level=0.9)`, or `conformal(y, p).apply(p)`."
        )


def reduce_rows(
    xp: Namespace, p: Array, y: Array, columns: Array, needs: Collection[str], *, log_p: Array | None = None
) -> RowStats:
    """The statistics of valid (n, K) rows, in their own precision; `columns` are the positions 0..K-1.

    `log_p` are the logarithms of the probabilities, where they are known from logits. It calls `xp` alone and
    looks at no value: it can be traced and differentiated, and no device waits.
    """
    outcome, columns = y[:, None], columns[None, :]
    stats = RowStats(xp, int(p.shape[1]), p_true=xp.take_along_axis(p, outcome, axis=1)[:, 0])
    if log_p is not None and LOGARITHMS & set(needs):
        stats.log_p = xp.take_along_axis(log_p, outcome, axis=1)[:, 0]
    if "rest_sq" in needs:
        rest = xp.where(columns == outcome, xp.zeros_like(p), p)
        stats.add(rest_sq=xp.sum(rest * rest, axis=1))
    if MODE & set(needs):
        top, share, decision = _modes(xp, p, columns)
        hit = xp.where(stats.p_true == top, share, xp.zeros_like(share))
        stats.add(top=top, hit=hit, answered=hit, decision=decision)
        stats.add(hit_lowest=xp.astype(decision == y, p.dtype))
    if "invalid" in needs:
        stats.add(invalid=xp.zeros_like(stats.p_true))
    if {"cdf_l1", "cdf_l2"} & set(needs):
        below, above = _tails(xp, p)
        error = xp.where(columns[:, :-1] >= outcome, above, below)
        if "cdf_l1" in needs:
            stats.add(cdf_l1=xp.sum(error, axis=1))
        if "cdf_l2" in needs:
            stats.add(cdf_l2=xp.sum(error * error, axis=1))
    if "cdf_log" in needs:
        at_or_above = columns[:, :-1] >= outcome
        # Take the side that counts only: the other's logarithm may have no derivative.
        if log_p is None:
            below, above = _tails(xp, p)
            logs = xp.log(xp.where(at_or_above, below, above))
        else:
            logs = xp.where(at_or_above, *_log_tails(log_p, xp))
        stats.add(cdf_log=xp.sum(-logs, axis=1))
    return stats


def reduce_outcomes(
    xp: Namespace, p: Array, columns: Array, needs: Collection[str], *, log_p: Array | None = None
) -> RowStats:
    """The statistics of (n, K) rows for every outcome: in column k if class k happens.

    Those that do not depend on the outcome are (n, 1). Otherwise as `reduce_rows`.
    """
    columns = columns[None, :]
    stats = RowStats(xp, int(p.shape[1]), p_true=p)
    if LOGARITHMS & set(needs):
        stats.log_p = log_p
    if "rest_sq" in needs:
        squares = p * p
        stats.add(rest_sq=_before(xp, squares[:, :-1]) + _after(xp, squares[:, 1:]))
    if MODE & set(needs):
        top, share, decision = (x[:, None] for x in _modes(xp, p, columns))
        hit = xp.where(p == top, share, xp.zeros_like(p))
        stats.add(top=top, hit=hit, answered=hit, decision=decision)
        stats.add(hit_lowest=xp.astype(decision == columns, p.dtype))
    if "invalid" in needs:
        stats.add(invalid=xp.zeros_like(p))
    if {"cdf_l1", "cdf_l2"} & set(needs):
        below, above = _tails(xp, p)
        if "cdf_l1" in needs:
            stats.add(cdf_l1=_before(xp, below) + _after(xp, above))
        if "cdf_l2" in needs:
            stats.add(cdf_l2=_before(xp, below * below) + _after(xp, above * above))
    if "cdf_log" in needs:
        log_below, log_above = map(xp.log, _tails(xp, p)) if log_p is None else _log_tails(log_p, xp)
        stats.add(cdf_log=_before(xp, -log_above) + _after(xp, -log_below))
    return stats


def _modes(xp: Namespace, p: Array, columns: Array) -> tuple[Array, Array, Array]:
    """The largest probability of each row, one over the number of its modes, and the first mode."""
    top = xp.max(p, axis=1)
    ties = p == top[:, None]
    share = 1 / xp.sum(xp.astype(ties, p.dtype), axis=1)
    return top, share, xp.min(xp.where(ties, columns, int(p.shape[1])), axis=1)


def _tails(xp: Namespace, p: Array) -> tuple[Array, Array]:
    """The probabilities at or below, and above, each of the K-1 thresholds."""
    # A tail sum instead of 1 - P keeps all digits of forecasts that are nearly certain.
    below = xp.cumulative_sum(p, axis=1)[:, :-1]
    return below, xp.flip(xp.cumulative_sum(xp.flip(p, axis=1), axis=1), axis=1)[:, 1:]


def _before(xp: Namespace, x: Array) -> Array:
    """Column k: the sum of the columns of `x` before it. One column more than `x` has."""
    return xp.concat([xp.zeros_like(x[:, :1]), xp.cumulative_sum(x, axis=1)], axis=1)


def _after(xp: Namespace, x: Array) -> Array:
    """Column k: the sum of the columns of `x` from it on. One column more than `x` has."""
    return xp.flip(_before(xp, xp.flip(x, axis=1)), axis=1)


def _log_tails(log_p: Array, xp: Namespace) -> tuple[Array, Array]:
    """The logarithms of the probabilities at or below, and above, each of the K-1 thresholds."""
    columns = [log_p[:, j] for j in range(log_p.shape[1])]
    below = list(accumulate(columns[:-1], xp.logaddexp))
    above = list(accumulate(columns[:0:-1], xp.logaddexp))[::-1]
    return xp.stack(below, axis=1), xp.stack(above, axis=1)


# ---- by compiled kernels, a block of rows at a time ----------------------------------------------


# Below this, probabilities made of logits begin to lose digits, and the logits are asked instead.
_TINY = 2.0**-1000


class Reduction(ABC):
    """Blocks of rows through a kernel, into buffers that are used again and again."""

    def __init__(self, n_classes: int, block: int, needs: frozenset[str]) -> None:
        self._buffer = np.zeros((len(PLACE), block))
        self.needs: frozenset[str] = needs | {"p_true"}
        self._decision = np.empty(block, np.int64)
        self._n_classes = n_classes
        self._stats: RowStats | None = None

    @abstractmethod
    def __call__(self, batch: Any) -> tuple[RowStats, int]:
        """The statistics of a block, and the number of its invalid rows."""

    def _views(self, n: int) -> RowStats:
        if self._stats is None or len(self._stats.decision) != n:
            # Statistics that were not asked for may be stale, so they are left out.
            rows = {name: self._buffer[at, :n] for name, at in PLACE.items() if name in self.needs}
            decision = self._decision[:n]
            self._stats = RowStats(np, self._n_classes, **rows, decision=decision, buffer=self._buffer)
        self._stats.forget()
        return self._stats


class _DenseReduction(Reduction):
    def __init__(self, forecasts: Forecasts, block: int, needs: frozenset[str]) -> None:
        super().__init__(forecasts.n_classes, block, needs)
        module = kernels()
        assert module is not None
        self._kernel = module.row_stats(needs)
        self._clear = forecasts.unity.clear(forecasts.n_classes)

    def __call__(self, batch: Batch) -> tuple[RowStats, int]:
        # One type for the compiler, whether or not the caller's arrays are writeable.
        p = np.ascontiguousarray(batch.p).view()
        p.flags.writeable = False
        n_unclear = self._kernel(p, batch.y, self._clear, self._buffer, self._decision)
        if "answered" in self.needs:
            self._buffer[PLACE["answered"]] = self._buffer[PLACE["hit"]]
        stats = self._views(len(batch.y))
        if batch.logits is not None and n_unclear == 0 and stats.p_true.min() < _TINY:
            return compute(batch, self.needs), 0
        return stats, n_unclear


class _ShareReduction(Reduction):
    """Rows whose outcomes are shares of the classes: each row with each class that has a share in it."""

    def __init__(self, forecasts: Forecasts, block: int, needs: frozenset[str]) -> None:
        self._inner = _DenseReduction(forecasts, block * forecasts.n_classes, needs)

    def __call__(self, batch: ShareBatch) -> tuple[RowStats, int]:
        n_unclear = 0 if validate(batch)[0] else batch.n_rows

        def compute_pairs(pairs: Batch) -> RowStats:
            stats, n = self._inner(pairs)
            return stats if n == 0 else compute(pairs, self._inner.needs)

        return ShareStats.of_pairs(batch, compute_pairs), n_unclear


@singledispatch
def reduction(rows: Any, block: int, needs: frozenset[str]) -> Reduction:
    """The compiled reduction that fits these rows."""
    return (_ShareReduction if rows.shared else _DenseReduction)(rows, block, needs)
