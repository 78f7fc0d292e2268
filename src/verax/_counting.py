"""Compiled counting of decisions."""

from __future__ import annotations

from typing import Any

import numba

from verax._arithmetic import OPTIONS
from verax.sums import two_sum

_two_sum = numba.njit(**OPTIONS)(two_sum)


@numba.njit(**OPTIONS)
def count(y: Any, decision: Any, p_true: Any, weights: Any, high: Any, low: Any) -> int:
    """Add the weight of each row to its cell, outcome by decision; an empty `weights` means ones.

    Cells are compensated sums, so that their order does not matter. Outcomes and decisions outside the
    table are left out. Returns the number of rows with weight whose outcome had probability zero.
    """
    n_classes = high.shape[0]
    n_zero = 0
    for i in range(min(y.size, decision.size)):
        row, column = y[i], decision[i]
        if row < 0 or row >= n_classes or column < 0 or column >= n_classes:
            continue
        if weights.size:
            w = weights[i]
            high[row, column], error = _two_sum(high[row, column], w)
            low[row, column] += error
        else:
            w = 1.0
            high[row, column] += 1.0
        n_zero += p_true[i] == 0.0 and w > 0.0
    return n_zero
