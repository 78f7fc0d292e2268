"""The one pass: each forecast row reduced to a few numbers, from which every rule is a formula.

Large NumPy inputs go through the compiled kernel, in parallel; everything else through array-API
calls, where it lives. Both validate on the way and fill the same `RowStats`. The pass reads any
`Rows`; what depends on their kind (`validate`, `compute`, `reduction`) goes by type.
"""

from __future__ import annotations

import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, singledispatch
from itertools import accumulate
from types import ModuleType
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from verax.arrays import Array, Namespace, device_of, to_host, to_index, widen
from verax.clusters import Groups
from verax.errors import RuleError, VeraxError
from verax.forecasts import Batch, Forecasts, log_softmax
from verax.statistics import CUMULATIVE, LOGARITHMS, MODE, PLACE, STATISTICS

# From this many probabilities on, compiling once pays; below, the first call must not wait for it.
COMPILED_FROM = 2**19
# How much is held at a time: what a cache holds, and for other devices what keeps them busy.
_NUMPY_ELEMENTS = 2**16
_DEVICE_ELEMENTS = 2**24
_CHUNK_BLOCKS = 16
# Below this, probabilities made of logits begin to lose digits, and the logits are asked instead.
_TINY = 2.0**-1000


class Formula(Protocol):
    """Anything with a loss that is a formula over row statistics. Rules are; they live above."""

    @property
    def needs(self) -> frozenset[str]: ...

    def formula(self, stats: RowStats) -> Array: ...


class RowStats:
    """What the rules need to know of some rows: an array of length n for each statistic asked for.

    The statistics are attributes; `verax.statistics.STATISTICS` says what each means. `log_p`, where it is
    known from logits, is the logarithm of `p_true`; `buffer` holds the statistics of the compiled pass.
    """

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
        self.__dict__.update(statistics)

    def __getattr__(self, name: str) -> Array:
        if name in STATISTICS:
            raise AttributeError(f"the statistic {name} was not asked for")
        raise AttributeError(f"there is no statistic called {name}")

    @property
    def log_true(self) -> Array:
        return self.xp.log(self.p_true) if self.log_p is None else self.log_p

    @property
    def impossible(self) -> Array:
        """Whether the outcome had been given probability zero."""
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


class RowBatch(Protocol):
    """Consecutive rows of one kind or another: what can be read without knowing which."""

    @property
    def y(self) -> Array: ...
    @property
    def weights(self) -> Array | None: ...
    @property
    def groups(self) -> Array | None: ...
    @property
    def start(self) -> int: ...
    @property
    def n_classes(self) -> int: ...
    @property
    def xp(self) -> Namespace: ...


class Rows(Protocol):
    """Rows that can be scored. `Forecasts` are dense ones; top lists make theirs in `listed`."""

    n_classes: int
    weights: Array | None
    groups: Groups | None
    xp: Namespace

    @property
    def n_rows(self) -> int: ...
    @property
    def width(self) -> int: ...
    def batch(self, start: int, stop: int) -> RowBatch: ...
    def batches(self, rows: int) -> Iterator[RowBatch]: ...
    def check(self) -> None: ...


def pair(y: object, p: object, **options: Any) -> Rows:
    """Outcomes and forecasts as rows. A `p` that knows how to meet its outcomes does it itself."""
    meet = None if isinstance(p, type) else getattr(p, "with_outcomes", None)
    return Forecasts(y, p, **options) if meet is None else meet(y, **options)


class Visitor(Protocol):
    """Takes the statistics of one block of rows after the other; every thread has its own."""

    def visit(self, stats: RowStats, batch: RowBatch, chunk: int) -> None: ...


V = TypeVar("V", bound=Visitor)


def scan(forecasts: Rows, needs: Collection[str], make: Callable[[], V]) -> list[V]:
    """Show every row to the visitors that `make` makes, and return them in a fixed order.

    Raises the error that names them if any rows are invalid. How the rows are cut into blocks and
    chunks of blocks depends on their number and on K alone, never on the number of threads.
    """
    plan = Plan.of(forecasts)
    n_shares = min(n_cores(), plan.n_chunks) if plan.compiled else 1
    shares = [_Share(forecasts, plan, frozenset(needs), make()) for _ in range(n_shares)]
    if plan.compiled:
        chunks = [range(i, plan.n_chunks, n_shares) for i in range(n_shares)]
        with ThreadPoolExecutor(n_shares) as pool:
            list(pool.map(lambda share, own: share.compiled(own), shares, chunks))
    else:
        shares[0].by_arrays()
    if not all(share.valid for share in shares):
        forecasts.check()
        raise VeraxError("Rows changed while they were read: at first some were invalid, and then none.")
    if not any(share.positive for share in shares):
        forecasts.check()
    seen = sum(share.n_seen for share in shares)
    if seen != forecasts.n_rows:
        raise VeraxError(f"Only {seen} of {forecasts.n_rows} rows were scored; this is a defect of verax.")
    return [share.visitor for share in shares]


@dataclass(frozen=True)
class Plan:
    """How a pass cuts the rows: into blocks that fit a cache, and chunks of blocks for the threads."""

    compiled: bool
    block: int
    n_chunks: int

    @classmethod
    def of(cls, forecasts: Rows) -> Plan:
        n, k = forecasts.n_rows, forecasts.width
        on_numpy = forecasts.xp is np
        compiled = on_numpy and n * k >= COMPILED_FROM and kernels() is not None
        if compiled:
            block = max(64, min(8192, 2**17 // k))
            return cls(True, block, -(-n // (block * _CHUNK_BLOCKS)))
        block = max(1, (_NUMPY_ELEMENTS if on_numpy else _DEVICE_ELEMENTS) // k)
        return cls(False, block, -(-n // block))


@cache
def kernels() -> ModuleType | None:
    """The compiled kernels, or None where numba is missing or told not to compile."""
    try:
        import numba

        if getattr(numba.config, "DISABLE_JIT", False):
            warnings.warn(
                "NUMBA_DISABLE_JIT is set: large inputs are scored by array calls, which are slower.",
                RuntimeWarning,
                stacklevel=2,
            )
            return None
        from verax import _kernels
    except ImportError:
        return None
    return _kernels


class _Share(Generic[V]):
    """The rows that one thread shows to its visitor, and what it learnt about them.

    Attributes
    ----------
    n_seen : how many rows the visitor has seen.
    valid : False from the first invalid row on, where the share stops.
    positive : whether any row has a positive weight.
    """

    def __init__(self, rows: Rows, plan: Plan, needs: frozenset[str], visitor: V) -> None:
        self._rows, self._plan, self._needs, self.visitor = rows, plan, needs, visitor
        self.n_seen = 0
        self.valid = True
        self.positive = rows.weights is None

    def by_arrays(self) -> None:
        for chunk, batch in enumerate(self._rows.batches(self._plan.block)):
            if not self._accepts(batch):
                return
            self._visit(compute(batch, self._needs), batch, chunk)

    def compiled(self, chunks: Iterable[int]) -> None:
        rows, block = self._rows, self._plan.block
        reduce = reduction(rows, block, self._needs)
        for chunk in chunks:
            end = min((chunk + 1) * block * _CHUNK_BLOCKS, rows.n_rows)
            for start in range(chunk * block * _CHUNK_BLOCKS, end, block):
                batch = rows.batch(start, min(start + block, end))
                stats, n_unclear = reduce(batch)
                if n_unclear or not self._weights_hold(batch):
                    # The kernel accepts clear rows only; what the others are is decided by `validate`.
                    if not self._accepts(batch):
                        return
                    stats = compute(batch, self._needs)
                self._visit(stats, batch, chunk)

    def _accepts(self, batch: RowBatch) -> bool:
        self.valid, some_weight = validate(batch)
        self.positive = self.positive or some_weight
        return self.valid

    def _weights_hold(self, batch: RowBatch) -> bool:
        if batch.weights is None:
            return True
        self.positive = self.positive or bool(batch.weights.max() > 0)
        return bool(batch.weights.min() >= 0 and batch.weights.max() < np.inf)

    def _visit(self, stats: RowStats, batch: RowBatch, chunk: int) -> None:
        self.visitor.visit(stats, batch, chunk)
        self.n_seen += int(batch.y.shape[0])


def n_cores() -> int:
    """How many cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


class Reduction(ABC):
    """Blocks of rows through a kernel, into buffers that are used again and again."""

    def __init__(self, n_classes: int, block: int, needs: frozenset[str]) -> None:
        self._buffer = np.zeros((len(PLACE), block))
        self._needs = needs | {"p_true"}
        self._decision = np.empty(block, np.int64)
        self._n_classes = n_classes
        self._stats: RowStats | None = None

    @abstractmethod
    def __call__(self, batch: Any) -> tuple[RowStats, int]:
        """The statistics of a block, and how many of its rows are invalid."""

    def _views(self, n: int) -> RowStats:
        if self._stats is None or len(self._stats.decision) != n:
            # Statistics that were not asked for may be stale, so they are left out.
            rows = {name: self._buffer[at, :n] for name, at in PLACE.items() if name in self._needs}
            decision = self._decision[:n]
            self._stats = RowStats(np, self._n_classes, **rows, decision=decision, buffer=self._buffer)
        self._stats.forget()
        return self._stats


class _DenseReduction(Reduction):
    def __init__(self, forecasts: Forecasts, block: int, needs: frozenset[str]) -> None:
        super().__init__(forecasts.n_classes, block, needs)
        module = kernels()
        assert module is not None
        self._kernel = module.row_stats(forecasts.n_classes, needs)
        self._clear = forecasts.unity.clear(forecasts.n_classes)
        # Columns one after the other, as files have them, cost a short row nothing.
        self._short = forecasts.n_classes <= module.SHORT_ROWS

    def __call__(self, batch: Batch) -> tuple[RowStats, int]:
        p = batch.p
        if not self._short or p.strides[0] != p.itemsize:
            p = np.ascontiguousarray(p)
        # One type for the compiler, whether or not the caller's arrays are writeable.
        p = p.view()
        p.flags.writeable = False
        n_unclear = self._kernel(p, batch.y, self._clear, self._buffer, self._decision)
        stats = self._views(len(batch.y))
        if batch.logits is not None and n_unclear == 0 and stats.p_true.min() < _TINY:
            return compute(batch, self._needs), 0
        return stats, n_unclear


@singledispatch
def reduction(rows: Any, block: int, needs: frozenset[str]) -> Reduction:
    """The compiled reduction that fits these rows."""
    return _DenseReduction(rows, block, needs)


# ---- the same numbers by array-API calls -----------------------------------------------------


@singledispatch
def validate(batch: Any) -> tuple[bool, bool]:
    """Whether all rows of a batch are valid, and whether any has weight: one look at the device."""
    xp, p, y = batch.xp, widen(batch.p), batch.y
    clear = batch.unity.clear(batch.n_classes, float(xp.finfo(p.dtype).eps))
    unclear = ~((xp.min(p, axis=1) >= 0) & (xp.abs(xp.sum(p, axis=1) - 1) <= clear))
    bad = (y < 0) | (y >= batch.n_classes)
    flags = [xp.any(unclear), xp.any(bad)]
    if batch.weights is not None:
        flags[1] = flags[1] | xp.any(~((batch.weights >= 0) & xp.isfinite(batch.weights)))
        flags.append(xp.any(batch.weights > 0))
    some_unclear, some_bad, *weighty = to_host(xp.stack(flags)).tolist()
    if some_unclear:
        some_bad = some_bad or not batch.unity.holds(to_host(p)).all()
    return not some_bad, all(weighty)


@singledispatch
def compute(batch: Any, needs: Collection[str]) -> RowStats:
    """The statistics `needs` (and `p_true`) of a batch of valid rows."""
    p = widen(batch.p)
    columns = to_index(batch.xp.arange(batch.n_classes, device=device_of(p)))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return reduce_rows(batch.xp, p, batch.y, columns, needs, logits=batch.logits)


def reduce_rows(
    xp: Namespace, p: Array, y: Array, columns: Array, needs: Collection[str], *, logits: Array | None = None
) -> RowStats:
    """The statistics of valid (n, K) rows, in their own precision; `columns` are the positions 0..K-1.

    It calls `xp` alone and looks at no value: it can be traced and differentiated, and no device waits.
    """
    outcome, columns = y[:, None], columns[None, :]
    stats = RowStats(xp, int(p.shape[1]), p_true=xp.take_along_axis(p, outcome, axis=1)[:, 0])
    log_p = None if logits is None or not LOGARITHMS & set(needs) else log_softmax(logits, xp)
    if log_p is not None:
        stats.log_p = xp.take_along_axis(log_p, outcome, axis=1)[:, 0]
    if "rest_sq" in needs:
        rest = xp.where(columns == outcome, xp.zeros_like(p), p)
        stats.add(rest_sq=xp.sum(rest * rest, axis=1))
    if MODE & set(needs):
        _add_modes(stats, p, columns, y)
    if "invalid" in needs:
        stats.add(invalid=xp.zeros_like(stats.p_true))
    if CUMULATIVE & set(needs):
        _add_cumulative(stats, p, log_p, columns[:, :-1] >= outcome, needs)
    return stats


def _add_modes(stats: RowStats, p: Array, columns: Array, y: Array) -> None:
    xp = stats.xp
    top = xp.max(p, axis=1)
    ties = p == top[:, None]
    share = 1 / xp.sum(xp.astype(ties, p.dtype), axis=1)
    decision = xp.min(xp.where(ties, columns, stats.n_classes), axis=1)
    stats.add(
        top=top,
        hit=xp.where(stats.p_true == top, share, xp.zeros_like(share)),
        decision=decision,
        hit_lowest=xp.astype(decision == y, p.dtype),
    )


def _add_cumulative(
    stats: RowStats, p: Array, log_p: Array | None, at_or_above: Array, needs: Collection[str]
) -> None:
    # A tail sum instead of 1 - P keeps all digits of forecasts that are nearly certain.
    xp = stats.xp
    below = xp.cumulative_sum(p, axis=1)[:, :-1]
    above = xp.flip(xp.cumulative_sum(xp.flip(p, axis=1), axis=1), axis=1)[:, 1:]
    if {"cdf_l1", "cdf_l2"} & set(needs):
        error = xp.where(at_or_above, above, below)
        stats.add(cdf_l1=xp.sum(error, axis=1), cdf_l2=xp.sum(error * error, axis=1))
    if "cdf_log" in needs:
        # Of the probabilities only the side that counts: the other's logarithm may have no derivative.
        if log_p is None:
            logs = xp.log(xp.where(at_or_above, below, above))
        else:
            logs = xp.where(at_or_above, *_log_tails(log_p, xp))
        stats.add(cdf_log=xp.sum(-logs, axis=1))


def _log_tails(log_p: Array, xp: Namespace) -> tuple[Array, Array]:
    """The logarithms of the probabilities at or below, and above, each of the K-1 thresholds."""
    columns = [log_p[:, j] for j in range(log_p.shape[1])]
    below = list(accumulate(columns[:-1], xp.logaddexp))
    above = list(accumulate(columns[:0:-1], xp.logaddexp))[::-1]
    return xp.stack(below, axis=1), xp.stack(above, axis=1)
