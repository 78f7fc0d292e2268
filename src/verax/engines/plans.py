"""How a pass goes through the rows: compiled or by array calls, and in which blocks."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from verax.common.sizes import beyond_floats
from verax.inputs.rows import Rows
from verax.kernels.ledger import compiles

# How much is held at a time: what a cache holds, and for other devices what keeps them busy.
_NUMPY_ELEMENTS = 2**16
_DEVICE_ELEMENTS = 2**24
# How many blocks a thread takes in one go, and of how many numbers at least.
_CHUNK_BLOCKS, _CHUNK_ELEMENTS = 16, 2**20


@dataclass(frozen=True)
class Plan:
    """How a pass cuts the rows: into blocks that fit a cache, and chunks of blocks for the threads."""

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
