"""Compiled decisions of smallest expected cost."""

from __future__ import annotations

from typing import Any

import numpy as np

from verax.kernels.functions import compiled, select

# Rows decided at a time: the nearest cache holds the costs of their decisions.
_STRIP = 512


def cheapest(columns: Any, costs: Any, tie: float, out: Any) -> None:
    """The first class whose expected cost is the smallest, or larger by rounding alone: at most by `tie`
    times the smallest cost, or times 1.

    `columns` has a row for each class, with its probabilities; `costs` those of each outcome by decision.
    """
    _cheapest(columns, costs, tie, np.empty((len(columns), _STRIP)), out)


@compiled
def _cheapest(columns: Any, costs: Any, tie: float, cost: Any, out: Any) -> None:
    """The decisions, with room for the costs of the decisions of some rows."""
    k = len(columns)
    best, decided = np.empty(_STRIP), np.empty(_STRIP, np.int64)
    for start in range(0, out.size, _STRIP):
        n = min(_STRIP, out.size - start)
        for d in range(k):
            costs_of_decision = cost[d]
            for i in range(n):
                costs_of_decision[i] = 0.0
            for c in range(k):
                column, price = columns[c, start : start + n], costs[c, d]
                for i in range(n):
                    costs_of_decision[i] += price * column[i]
        for i in range(n):
            best[i] = cost[0, i]
        for d in range(1, k):
            costs_of_decision = cost[d]
            for i in range(n):
                best[i] = select(costs_of_decision[i] < best[i], costs_of_decision[i], best[i])
        for i in range(n):
            size = abs(best[i])
            best[i] += tie * select(size > 1.0, size, 1.0)
            decided[i] = k - 1
        for d in range(k - 2, -1, -1):
            costs_of_decision = cost[d]
            for i in range(n):
                decided[i] = select(costs_of_decision[i] <= best[i], d, decided[i])
        for i in range(n):
            out[start + i] = decided[i]
