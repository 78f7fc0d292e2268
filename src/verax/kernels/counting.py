"""Compiled counting of decisions, and sums over rows of groups."""

from __future__ import annotations

from typing import Any

from verax.kernels.compensation import two_sum
from verax.kernels.functions import compiled
from verax.kernels.operations import fetch

# How many rows ahead the sums of groups are asked for.
_AHEAD = 12


@compiled
def count(y: Any, decision: Any, p_true: Any, weights: Any, block: Any, high: Any, low: Any) -> int:
    """Add the weight of each row to its cell, outcome by decision; an empty `weights` means ones.

    Cells are compensated sums, so that the order of blocks does not matter. Rows outside the table are left
    out. `block` is a table of zeros, or empty: with it the rows are added up on their own first, which takes
    fewer operations per row. Returns the number of rows with weight whose outcome had probability zero.
    """
    n_classes = high.shape[0]
    small = block.shape[0] == n_classes and block.shape[1] == n_classes
    n_zero = 0
    for i in range(min(y.size, decision.size)):
        row, column = y[i], decision[i]
        if row < 0 or row >= n_classes or column < 0 or column >= n_classes:
            continue
        w = weights[i] if weights.size else 1.0
        if small:
            block[row, column] += w
        elif not weights.size:
            high[row, column] += w
        else:
            high[row, column], error = two_sum(high[row, column], w)
            low[row, column] += error
        n_zero += p_true[i] == 0.0 and w > 0.0
    if small:
        for row in range(n_classes):
            for column in range(n_classes):
                high[row, column], error = two_sum(high[row, column], block[row, column])
                low[row, column] += error
    return n_zero


@compiled
def add_rows(codes: Any, columns: Any, high: Any, low: Any) -> None:
    """Add the (C, n) values of rows to the (G, C) compensated sums of their groups."""
    for i in range(codes.size):
        group = codes[i]
        for column in range(columns.shape[0]):
            high[group, column], error = two_sum(high[group, column], columns[column, i])
            low[group, column] += error


@compiled
def add_to_groups(codes: Any, cells: Any, losses: Any, sums: Any, counts: Any) -> None:
    """Add rows of equal weight to their groups; those whose cell is negative are left out.

    `sums` has for each group both parts of the compensated sums of the (R, n) losses; `counts` has the number
    of rows of each group in each cell.
    """
    last = codes.size - 1
    for i in range(codes.size):
        # Groups are anywhere: those of later rows are under way while this one is added.
        ahead = min(i + _AHEAD, last)
        fetch(sums[codes[ahead], 0, 0])
        fetch(sums[codes[ahead], sums.shape[1] - 1, 1])
        fetch(counts[codes[ahead], max(cells[ahead], 0)])
        cell = cells[i]
        if cell >= 0:
            own = sums[codes[i]]
            for r in range(sums.shape[1]):
                own[r, 0], error = two_sum(own[r, 0], losses[r, i])
                own[r, 1] += error
            counts[codes[i], cell] += 1
