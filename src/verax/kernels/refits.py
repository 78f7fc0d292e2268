"""Compiled isotonic fits to weights of cells."""

from __future__ import annotations

from inspect import unwrap
from typing import Any

import numpy as np

from verax.kernels.functions import compiled


def fit_cells(cells: Any, first: Any, *, compiled: bool) -> tuple[Any, Any, Any]:
    """The isotonic fits to cells of any weight, as `analyses.calibration.isotonic.isotonic_fits` has them."""
    fit = _fit_cells if compiled else unwrap(_fit_cells)
    n = first.size
    blocks, begins = np.empty((n, 2)), np.empty(np.count_nonzero(first), np.int64)
    pools = np.empty(n, np.int64)
    n_blocks = fit(cells, first, blocks, begins, pools)
    return blocks[:n_blocks], begins, pools[:n_blocks]


@compiled
def _fit_cells(cells: Any, first: Any, blocks: Any, begins: Any, pools: Any) -> int:
    """Write the blocks of all fits, where those of each begin, and the first cell of each block. Returns how
    many blocks there are.

    Blocks of a fit whose frequencies do not increase are joined as soon as the next cell is known.
    """
    n_fits, start, n = 0, 0, 0
    for i in range(first.size):
        if first[i]:
            begins[n_fits] = n
            n_fits += 1
            start = n
        without, event, pool = cells[0, i], cells[1, i], i
        while n > start and blocks[n - 1, 1] * (without + event) >= event * (
            blocks[n - 1, 0] + blocks[n - 1, 1]
        ):
            n -= 1
            without += blocks[n, 0]
            event += blocks[n, 1]
            pool = pools[n]
        blocks[n, 0], blocks[n, 1], pools[n] = without, event, pool
        n += 1
    return n
