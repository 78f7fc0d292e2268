"""Compiled counting of decisions, sums over rows of groups, and division of rows into groups."""

from __future__ import annotations

from typing import Any

import numpy as np

from verax.kernels.functions import compiled, fetch
from verax.kernels.shared import FULL, two_sum

# How many integers are copied before they are marked: the nearest cache holds them.
_PIECE = 1024
# How many rows ahead a count is asked for.
_AHEAD = 16


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

    Returns the greatest; -1 where one is outside of the table. Marking takes longer than copying; it ends
    where all up to the greatest so far are marked.
    """
    greatest, n_marked = -1, 0
    for start in range(0, values.size, _PIECE):
        n = min(_PIECE, values.size - start)
        given, copy = values[start : start + n], copied[start : start + n]
        least, most = np.int64(given[0]), np.int64(given[0])
        for i in range(n):
            value = np.int64(given[i])
            copy[i] = value
            least = min(least, value)
            most = max(most, value)
        if least < 0 or most >= occurs.size:
            return -1
        greatest = max(greatest, int(most))
        if n_marked <= greatest:
            for i in range(n):
                value = copy[i]
                n_marked += 1 - int(occurs[value])
                occurs[value] = True
    return greatest


@compiled
def add_rows(codes: Any, columns: Any, high: Any, low: Any) -> None:
    """Add the (C, n) values of rows to the (G, C) compensated sums of their groups."""
    for i in range(codes.size):
        group = codes[i]
        for column in range(columns.shape[0]):
            high[group, column], error = two_sum(high[group, column], columns[column, i])
            low[group, column] += error


@compiled
def merge_groups(totals: Any, places: Any, more: Any, n_losses: int) -> None:
    """Add the sums of groups over other rows, in the layout of `engines.gathering`, each at its place."""
    for group in range(more.shape[0]):
        at = places[group]
        for r in range(n_losses):
            high, error = two_sum(totals[at, r], more[group, r])
            low = error + (totals[at, n_losses + r] + more[group, n_losses + r])
            total = high + low
            totals[at, r] = total
            totals[at, n_losses + r] = low - (total - high)


@compiled
def merge_counts(counts: Any, full: Any, places: Any, more: Any) -> None:
    """Add lines of numbers of other rows, a byte each, each at its place; which bytes were full is noted in
    `full`.
    """
    for line in range(more.shape[0]):
        for c in range(more.shape[1]):
            tally = counts[places[line], c] + more[line, c]
            counts[places[line], c] = tally
            if tally >= FULL:
                full[0] += 1
                full[full[0]] = places[line] * more.shape[1] + c


@compiled
def count_keys(keys: Any, counts: Any, full: Any) -> None:
    """Count the rows with each key, a byte each, likewise; rows with a key outside are left out.

    Keys are anywhere in memory: later ones are under way while one is counted.
    """
    last = keys.size - 1
    for i in range(keys.size):
        key = keys[i]
        fetch(counts[keys[min(i + _AHEAD, last)]])
        if key < counts.size:
            tally = counts[key] + 1
            counts[key] = tally
            if tally == FULL:
                full[0] += 1
                full[full[0]] = np.int64(key)


# ---- division of rows into groups


# How many rows are moved at a time: fewer would go to each place by ones and twos.
_ROWS = 4096


@compiled
def find_places(codes: Any, begins: Any, places: Any, order: Any) -> None:
    """Where each row goes if rows are put in the order of their codes, and which rows come in that order.

    `begins` are the places of the first row of each code; they are moved to the places after the last.
    """
    for i in range(codes.size):
        code = codes[i]
        place = begins[code]
        begins[code] = place + 1
        places[i] = place
        order[place] = i


@compiled
def move_columns(columns: Any, places: Any, out: Any) -> None:
    """Move the rows of (C, N) columns, given as their bits, to their places.

    Blocks of rows that fit a cache, column by column: the loop then writes to one place per subgroup, and not
    to one per subgroup and column.
    """
    for begin in range(0, places.size, _ROWS):
        end = min(begin + _ROWS, places.size)
        for c in range(columns.shape[0]):
            for i in range(begin, end):
                out[c, places[i]] = columns[c, i]
