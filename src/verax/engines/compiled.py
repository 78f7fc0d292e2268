"""Row statistics by compiled kernels, a block of rows at a time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import singledispatch
from typing import Any

import numpy as np

from verax.engines.arrays import compute, validate
from verax.engines.stats import RowStats, ShareStats
from verax.inputs.forecasts import Batch, Forecasts, ShareBatch
from verax.kernels.ledger import kernels
from verax.kernels.statistics import PLACE

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
        """The statistics of a block, and how many of its rows are invalid."""

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
