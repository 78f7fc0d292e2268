"""Compiled counting of decisions, and sums over rows of groups."""

from __future__ import annotations

from functools import cache
from typing import Any

from verax.kernels.compensation import two_sum
from verax.kernels.functions import compiled
from verax.kernels.operations import fetch
from verax.kernels.texts import Kernel

# How many rows ahead the sums of groups are asked for.
_AHEAD = 20
# How many losses with their rounding errors a line of the cache holds.
_OF_ONE_LINE = 4


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


@cache
def add_to_groups(n_losses: int) -> Kernel:
    """A kernel (codes, cells, losses, sums, counts) that adds rows of equal weight to their groups.

    Rows whose cell is negative are left out. A row of `sums` has the sums of the losses of a group, then
    their rounding errors; `counts` has the number of rows of each group in each cell.
    """

    @compiled
    def kernel(codes: Any, cells: Any, losses: Any, sums: Any, counts: Any) -> None:
        last, behind = codes.size - 1, sums.shape[1] - 1
        for i in range(codes.size):
            # Groups are anywhere: those of later rows are under way while this one is added.
            ahead = min(i + _AHEAD, last)
            fetch(sums[codes[ahead], 0])
            if n_losses > _OF_ONE_LINE:
                fetch(sums[codes[ahead], behind])
            fetch(counts[codes[ahead], max(cells[ahead], 0)])
            cell = cells[i]
            if cell >= 0:
                own = sums[codes[i]]
                for r in range(n_losses):
                    own[r], error = two_sum(own[r], losses[r, i])
                    own[r + n_losses] += error
                counts[codes[i], cell] += 1

    return kernel


@compiled
def settle_groups(sums: Any, counts: Any, n_classes: int, high: Any, low: Any, rows: Any) -> None:
    """Round the sums of `add_to_groups`, a row of `high` and of `low` for each loss.

    `rows` has the number of rows of each group, and of those whose decision is right.
    """
    n = high.shape[0]
    for group in range(sums.shape[0]):
        for r in range(n):
            total = sums[group, r] + sums[group, n + r]
            high[r, group] = total
            low[r, group] = sums[group, n + r] - (total - sums[group, r])
        every, right = 0, 0
        for cell in range(counts.shape[1]):
            every += counts[group, cell]
        for j in range(n_classes):
            right += counts[group, j * n_classes + j]
        rows[0, group] = float(every)
        rows[1, group] = float(right)
