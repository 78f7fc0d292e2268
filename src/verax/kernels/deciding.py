"""Compiled decisions of smallest expected cost."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from verax.kernels.arithmetic import OPTIONS, select

# How many rows are decided at a time: the nearest cache holds what their decisions cost.
_STRIP = 512


@numba.njit(**OPTIONS)
def cheapest(columns: Any, costs: Any, tie: float, out: Any) -> None:
    """The first class whose expected cost is the smallest, or larger by rounding alone: at most by `tie`
    times the smallest cost, or times 1.

    `columns` has a row for each class, with its probabilities; `costs` those of each outcome by decision.
    """
    k = len(columns)
    cost, best, found = np.empty(k * _STRIP), np.empty(_STRIP), np.empty(_STRIP, np.int64)
    for start in range(0, out.size, _STRIP):
        n = min(_STRIP, out.size - start)
        for d in range(k):
            own = cost[d * _STRIP : d * _STRIP + n]
            own[:] = 0.0
            for c in range(k):
                column, price = columns[c, start : start + n], costs[c, d]
                for i in range(n):
                    own[i] += price * column[i]
        best[:n] = cost[:n]
        for d in range(1, k):
            own = cost[d * _STRIP : d * _STRIP + n]
            for i in range(n):
                best[i] = select(own[i] < best[i], own[i], best[i])
        for i in range(n):
            size = abs(best[i])
            best[i] += tie * select(size > 1.0, size, 1.0)
            found[i] = k - 1
        for d in range(k - 2, -1, -1):
            own, number = cost[d * _STRIP : d * _STRIP + n], np.int64(d)
            for i in range(n):
                found[i] = select(own[i] <= best[i], number, found[i])
        out[start : start + n] = found[:n]
