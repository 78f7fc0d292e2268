"""Compiled counting of decisions, and sums over rows of groups."""

from __future__ import annotations

from typing import Any

import numpy as np

from verax.kernels.compensation import two_sum
from verax.kernels.functions import compiled
from verax.kernels.limits import FULL
from verax.kernels.operations import select


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
def mark(values: Any, copied: Any, occurs: Any) -> int:
    """Copy integers, and mark those that occur in a table that begins with 0.

    Returns the greatest; -1 where one is outside of the table.
    """
    greatest, room = 0, occurs.size
    for i in range(values.size):
        value = np.int64(values[i])
        inside = (value >= 0) & (value < room)
        copied[i] = value
        occurs[select(inside, value, 0)] = True
        greatest = max(greatest, select(inside, value, room))
    return greatest if greatest < room else -1


@compiled
def add_rows(codes: Any, columns: Any, high: Any, low: Any) -> None:
    """Add the (C, n) values of rows to the (G, C) compensated sums of their groups."""
    for i in range(codes.size):
        group = codes[i]
        for column in range(columns.shape[0]):
            high[group, column], error = two_sum(high[group, column], columns[column, i])
            low[group, column] += error


@compiled
def merge_groups(
    totals: Any, tallies: Any, full: Any, more_totals: Any, more_tallies: Any, n_losses: int
) -> None:
    """Add the sums of groups over other rows, in the layout of `engines.gathering`."""
    n_cells = tallies.shape[1]
    for group in range(totals.shape[0]):
        for r in range(n_losses):
            high, error = two_sum(totals[group, r], more_totals[group, r])
            low = error + (totals[group, n_losses + r] + more_totals[group, n_losses + r])
            total = high + low
            totals[group, r] = total
            totals[group, n_losses + r] = low - (total - high)
        for cell in range(n_cells):
            tally = tallies[group, cell] + more_tallies[group, cell]
            tallies[group, cell] = tally
            if tally >= FULL:
                full[0] += 1
                full[full[0]] = group * n_cells + cell


@compiled
def settle_groups(
    totals: Any, tallies: Any, n_losses: int, n_classes: int, high: Any, low: Any, rows: Any
) -> None:
    """Round the sums of groups, a row of `high` and of `low` for each loss.

    `rows` has the number of rows of each group, and of those whose decision is right.
    """
    for group in range(totals.shape[0]):
        for r in range(n_losses):
            total = totals[group, r] + totals[group, n_losses + r]
            high[r, group] = total
            low[r, group] = totals[group, n_losses + r] - (total - totals[group, r])
        every, right = 0, 0
        for cell in range(n_classes * n_classes):
            every += tallies[group, cell]
        for j in range(n_classes):
            right += tallies[group, j * n_classes + j]
        rows[0, group] = float(every)
        rows[1, group] = float(right)
