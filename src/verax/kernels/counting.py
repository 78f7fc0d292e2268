"""Compiled counting of decisions, and sums over rows of groups and of pairs of models."""

from __future__ import annotations

from typing import Any

from verax.kernels.compensation import two_sum
from verax.kernels.functions import compiled
from verax.kernels.operations import fetch, plus

# How many rows of all columns are compared at a time.
_STRIP = 256
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


@compiled
def add_deviations(values: Any, apart: int, n: int, weights: Any, means: Any, out: Any) -> None:
    """Add the sums of w*d and w*d*d over rows for each of C columns to `out`, a line each, and then for each
    pair of columns, if `out` has lines for them.

    The `n` numbers of a column lie side by side, and columns begin `apart` numbers from each other. d is the
    value minus the mean of its column, and for a pair the difference of the two columns minus that of their
    means; an empty `weights` means ones. Rows are taken in strips that the nearest cache holds, whatever the
    number of pairs.
    """
    n_columns = means.size
    for start in range(0, n, _STRIP):
        stop = min(start + _STRIP, n)
        for a in range(n_columns):
            alone, mean = values[a * apart + start : a * apart + stop], means[a]
            total, square = 0.0, 0.0
            if weights.size > 0:
                own = weights[start:stop]
                for i in range(stop - start):
                    d = alone[i] - mean
                    weighted = own[i] * d
                    total = plus(total, weighted)
                    square = plus(square, weighted * d)
            else:
                for i in range(stop - start):
                    d = alone[i] - mean
                    total = plus(total, d)
                    square = plus(square, d * d)
            out[a, 0] += total
            out[a, 1] += square
        at = n_columns
        for a in range(n_columns if out.shape[0] > n_columns else 0):
            for b in range(a + 1, n_columns):
                one, other = (
                    values[a * apart + start : a * apart + stop],
                    values[b * apart + start : b * apart + stop],
                )
                shift = means[a] - means[b]
                first, second = 0.0, 0.0
                if weights.size > 0:
                    own = weights[start:stop]
                    for i in range(stop - start):
                        d = (one[i] - other[i]) - shift
                        weighted = own[i] * d
                        first = plus(first, weighted)
                        second = plus(second, weighted * d)
                else:
                    for i in range(stop - start):
                        d = (one[i] - other[i]) - shift
                        first = plus(first, d)
                        second = plus(second, d * d)
                out[at, 0] += first
                out[at, 1] += second
                at += 1
