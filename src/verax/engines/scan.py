"""The one pass over the rows: blocks, threads, and the choice between kernels and array calls.

Large NumPy inputs go through the compiled kernels, in parallel; everything else through array-API
calls. Both validate on the way and fill the same `RowStats`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

import verax.engines.lists
import verax.engines.sets  # noqa: F401 - how prediction sets are read
from verax.common.checks import beyond_floats
from verax.engines.stats import RowStats, compute, reduction, refuse_set_scores, validate
from verax.errors import VeraxError
from verax.inputs.arrays import Ints
from verax.inputs.rows import RowBatch, Rows
from verax.kernels.ledger import compiles
from verax.kernels.threads import n_cores

# Numbers of a block: few enough for a cache, and enough to keep other devices busy.
_NUMPY_ELEMENTS = 2**16
_DEVICE_ELEMENTS = 2**24
# How many blocks a thread takes in one go, and of how many numbers at least.
_CHUNK_BLOCKS, _CHUNK_ELEMENTS = 16, 2**20


@dataclass(frozen=True)
class Plan:
    """The division of rows into blocks that fit a cache, and chunks of blocks for the threads."""

    compiled: bool
    block: int
    chunk: int
    n_chunks: int

    @classmethod
    def of(cls, forecasts: Rows, work: Hashable) -> Plan:
        """The plan for these rows; `work` says what kernels are needed, besides for which kind of rows."""
        n, k = forecasts.n_rows, forecasts.width
        on_numpy = forecasts.xp is np
        kind = (type(forecasts), forecasts.n_classes, getattr(forecasts, "dtype", None), work)
        if on_numpy and not beyond_floats(forecasts.n_classes) and compiles(n * k, kind):
            block = max(64, min(8192, 2**17 // k))
            chunk = block * max(_CHUNK_BLOCKS, _CHUNK_ELEMENTS // (block * k))
            return cls(True, block, chunk, -(-n // chunk))
        block = max(1, (_NUMPY_ELEMENTS if on_numpy else _DEVICE_ELEMENTS) // k)
        return cls(False, block, block, -(-n // block))


class Visitor(Protocol):
    """A consumer of the statistics of block after block; every thread has its own.

    A visitor may have `absorb(start, stop, chunk)`, a kernel of its own that takes in the rows of a chunk, or
    None. It returns the numbers of the rows that were left out, to be shown like any others, and whether any
    row that was taken in has a positive weight.
    """

    def visit(self, stats: RowStats, batch: RowBatch, chunk: int) -> None: ...


V = TypeVar("V", bound=Visitor)


def scan_rows(
    forecasts: Rows, needs: Collection[str], make: Callable[[], V], *, plan: Plan | None = None
) -> list[V]:
    """Show every row to the visitors that `make` makes, and return them in a fixed order.

    Raises the error that names them if any rows are invalid. How the rows are cut into blocks and
    chunks of blocks depends on their number and on K alone, never on the number of threads.
    """
    refuse_set_scores(forecasts, needs)
    plan = Plan.of(forecasts, frozenset(needs)) if plan is None else plan
    n_shares = min(n_cores(), plan.n_chunks) if plan.compiled else 1
    shares = [_Share(forecasts, plan, frozenset(needs), make()) for _ in range(n_shares)]
    if plan.compiled:
        chunks = [range(i, plan.n_chunks, n_shares) for i in range(n_shares)]
        if n_shares == 1:
            shares[0].compiled(chunks[0])
        else:
            with ThreadPoolExecutor(n_shares) as pool:
                list(pool.map(lambda share, own_chunks: share.compiled(own_chunks), shares, chunks))
    else:
        shares[0].by_arrays()
    if not all(share.valid for share in shares):
        forecasts.check()
        raise VeraxError("Rows changed while they were read: at first some were invalid, and then none.")
    if not any(share.positive for share in shares):
        forecasts.check()
    seen = sum(share.n_seen for share in shares)
    if seen != forecasts.n_rows:
        raise VeraxError(f"Only {seen} of {forecasts.n_rows} rows were scored; this is a bug in verax.")
    return [share.visitor for share in shares]


class _Share(Generic[V]):
    """The rows that one thread shows to its visitor, and whether they are valid.

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
            self.visitor.visit(compute(batch, self._needs), batch, chunk)
            self.n_seen += batch.n_rows

    def compiled(self, chunks: Iterable[int]) -> None:
        absorb = getattr(self.visitor, "absorb", None)
        if absorb is None:
            self._by_blocks(chunks)
        else:
            self._by_chunks(chunks, absorb)

    def _by_chunks(self, chunks: Iterable[int], absorb: Callable[[int, int, int], tuple[Ints, bool]]) -> None:
        rows: Any = self._rows
        block, size = self._plan.block, self._plan.chunk
        for chunk in chunks:
            start, end = chunk * size, min((chunk + 1) * size, rows.n_rows)
            left, some_weight = absorb(start, end, chunk)
            self.positive = self.positive or some_weight
            self.n_seen += end - start - len(left)
            for first in range(0, len(left), block):
                batch = rows.batch_of(left[first : first + block])
                if not self._accepts(batch):
                    return
                self.visitor.visit(compute(batch, self._needs), batch, chunk)
                self.n_seen += batch.n_rows

    def _by_blocks(self, chunks: Iterable[int]) -> None:
        rows, block, size = self._rows, self._plan.block, self._plan.chunk
        reduce = reduction(rows, block, self._needs)
        for chunk in chunks:
            end = min((chunk + 1) * size, rows.n_rows)
            for start in range(chunk * size, end, block):
                batch = rows.batch(start, min(start + block, end))
                stats, n_unclear = reduce(batch)
                if n_unclear or not self._weights_hold(batch):
                    # The kernel accepts clear rows only; what the others are is decided by `validate`.
                    if not self._accepts(batch):
                        return
                    stats = compute(batch, self._needs)
                self.visitor.visit(stats, batch, chunk)
                self.n_seen += batch.n_rows

    def _accepts(self, batch: RowBatch) -> bool:
        self.valid, some_weight = validate(batch)
        self.positive = self.positive or some_weight
        return self.valid

    def _weights_hold(self, batch: RowBatch) -> bool:
        if batch.weights is None:
            return True
        self.positive = self.positive or bool(batch.weights.max() > 0)
        return bool(batch.weights.min() >= 0 and batch.weights.max() < np.inf)
