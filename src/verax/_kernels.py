"""The one pass compiled for NumPy blocks, and the counting that goes with it.

These kernels know row statistics and counts, never a rule: rules reach compiled code through
`_fusion`, which translates their own formulas.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numba
import numpy as np

Kernel = Callable[..., Any]

OPTIONS: dict[str, Any] = {"nogil": True, "cache": True, "error_model": "numpy"}


@cache
def row_stats(*, ordinal: bool, ranked_log: bool) -> Kernel:
    """A kernel (p, y, tolerance, out, decision) -> number of invalid rows.

    `out` has one row a statistic, in the order of `rowstats.STATS`; what is not asked for stays as
    it was. The loops below and above the outcome are separate so that no cumulative error is ever
    found by subtracting from one, and because a comparison with y in the loop costs more.
    """

    @numba.njit(**OPTIONS)
    def kernel(
        p: np.ndarray[Any, Any],
        y: np.ndarray[Any, Any],
        tolerance: float,
        out: np.ndarray[Any, Any],
        decision: np.ndarray[Any, Any],
    ) -> int:
        n, n_classes = p.shape
        n_bad = 0
        for i in range(n):
            outcome = y[i]
            if outcome < 0 or outcome >= n_classes:
                n_bad += 1
                continue
            row = p[i]
            p_true = np.float64(row[outcome])
            lowest = p_true
            highest = p_true
            rest_sq = 0.0
            cdf_l1 = 0.0
            cdf_l2 = 0.0
            below = 0.0
            for j in range(outcome):
                v = np.float64(row[j])
                lowest = v if v < lowest else lowest
                highest = v if v > highest else highest
                rest_sq += v * v
                below += v
                if ordinal:
                    cdf_l1 += below
                    cdf_l2 += below * below
            above = 0.0
            for j in range(n_classes - 1, outcome, -1):
                v = np.float64(row[j])
                lowest = v if v < lowest else lowest
                highest = v if v > highest else highest
                rest_sq += v * v
                above += v
                if ordinal:
                    cdf_l1 += above
                    cdf_l2 += above * above
            if not (lowest >= 0.0 and abs(below + p_true + above - 1.0) <= tolerance):
                n_bad += 1
            n_modes = 0
            first = 0
            for j in range(n_classes - 1, -1, -1):
                is_mode = np.float64(row[j]) == highest
                n_modes += is_mode
                first = j if is_mode else first
            out[0, i] = p_true
            out[1, i] = rest_sq
            if ordinal:
                out[2, i] = cdf_l2
                out[3, i] = cdf_l1
            if ranked_log:
                cdf_log = 0.0
                tail = 0.0
                for j in range(n_classes - 1):
                    tail += np.float64(row[j])
                    if j >= outcome:
                        cdf_log -= math.log(tail)
                tail = 0.0
                for j in range(n_classes - 1, 0, -1):
                    tail += np.float64(row[j])
                    if j <= outcome:
                        cdf_log -= math.log(tail)
                out[4, i] = cdf_log
            out[5, i] = (1.0 if p_true == highest else 0.0) / n_modes
            out[6, i] = 1.0 if first == outcome else 0.0
            decision[i] = first
        return n_bad

    return kernel  # type: ignore[no-any-return]


@numba.njit(**OPTIONS)
def count(y: Any, decision: Any, p_true: Any, weights: Any, counts: Any) -> int:
    """Add each row's weight to `counts[outcome, decision]`; an empty `weights` means ones.

    Returns the number of rows with weight whose outcome had probability zero.
    """
    n_zero = 0
    for i in range(y.size):
        w = weights[i] if weights.size else 1.0
        counts[y[i], decision[i]] += w
        n_zero += p_true[i] == 0.0 and w > 0.0
    return n_zero
