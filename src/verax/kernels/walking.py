"""Compiled passes over the rows of an event: in the order of their forecasts, and against a fit in cells."""

from __future__ import annotations

from typing import Any

import numpy as np

from verax.kernels.functions import compiled
from verax.kernels.operations import from_bits, plus, select


@compiled
def count_pools(packed: Any, most: int) -> int:
    """How many different forecasts there are, or one more than `most` where there are more."""
    n = 1
    for i in range(1, packed.size):
        n += int((packed[i] >> np.uint64(1)) != (packed[i - 1] >> np.uint64(1)))
        if n > most:
            return n
    return n


@compiled
def walk(packed: Any, scale: float, starts: Any, sums: Any, blocks: Any) -> tuple[int, int]:
    """Go through rows that count alike in the order of their forecasts; equal ones are pooled.

    A row is the bits of its forecast, and last whether the event happened. A pool belongs to the cell of its
    middle, or to one of its own where the scale is 0. Writes the first forecast of each cell, its number of
    rows, of those with the event, and the sum of the forecasts; and the blocks of the isotonic fit, which are
    numbers of rows without and with the event. Returns how many cells and blocks there are.
    """
    n, cell, last, n_blocks, i = packed.size, -1, -1, 0, 0
    # The last block is still open, and apart from the others, whose frequencies increase.
    without, event = 0.0, 0.0
    while i < n:
        key, j, hits = packed[i] >> np.uint64(1), i, 0
        while j < n and (packed[j] >> np.uint64(1)) == key:
            hits += int(packed[j] & np.uint64(1))
            j += 1
        size, x, more = float(j - i), from_bits(key), float(hits)
        middle = int((float(j) - size / 2.0) * scale)
        if scale == 0.0 or middle > last:
            cell += 1
            last = middle
            starts[cell] = x
            sums[0, cell], sums[1, cell], sums[2, cell] = 0.0, 0.0, 0.0
        sums[0, cell] += size
        sums[1, cell] += more
        sums[2, cell] += size * x
        if i > 0 and more * (without + event) > event * size:
            n_blocks = _closed(blocks, n_blocks, without, event)
            without, event = size - more, more
        else:
            without += size - more
            event += more
        i = j
    return cell + 1, _closed(blocks, n_blocks, without, event)


def _closed(blocks: Any, n: int, without: float, event: float) -> int:
    """Add a block to some, and join it with those before it whose frequencies are not smaller."""
    while n > 0 and blocks[n - 1, 1] * (without + event) >= event * (blocks[n - 1, 0] + blocks[n - 1, 1]):
        n -= 1
        without += blocks[n, 0]
        event += blocks[n, 1]
    blocks[n, 0], blocks[n, 1] = without, event
    return n + 1


@compiled
def squared_losses(given: Any, rest: Any, happened: Any) -> float:
    """The sum of the squared errors of an event; `rest` may be empty, and is 1 minus the other then."""
    total = 0.0
    for i in range(given.size):
        other = rest[i] if rest.size else 1.0 - given[i]
        gap = select(happened[i] > 0, other, given[i])
        total = plus(total, gap * gap)
    return total


@compiled
def find_cells(values: Any, starts: Any, guide: Any, out: Any) -> None:
    """The cell of each value: the last one that begins at or below it, between two of a guide."""
    scale = float(guide.size - 1)
    for i in range(values.size):
        x = values[i]
        at = int(min(x, 1.0) * scale)
        low, high = int(guide[at]), int(guide[min(at + 1, guide.size - 1)])
        while low < high:
            middle = (low + high + 1) >> 1
            if starts[middle] <= x:
                low = middle
            else:
                high = middle - 1
        out[i] = low


@compiled
def deviations(
    given: Any, rest: Any, happened: Any, cells: Any, limit: Any, chance: Any, rate: float, means: Any
) -> tuple[float, float, float, float, float]:
    """The sums of squares of four losses minus their means: of the forecast, minus that of the fit in cells,
    of a constant minus that of the fit, and of the constant; and of the loss expected from the chances.
    """
    first, second, third, fourth, expected = 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(given.size):
        hit, c = happened[i] > 0, int(cells[i])
        other = rest[i] if rest.size else 1.0 - given[i]
        lower, upper = given[i] * given[i], other * other
        loss = select(hit, upper, lower)
        fit = select(hit, 1.0 - limit[c], limit[c])
        constant = select(hit, 1.0 - rate, rate)
        fitted, even = fit * fit, constant * constant
        a, b = loss - means[0], loss - fitted - means[1]
        d, e = even - fitted - means[2], even - means[3]
        first = plus(first, a * a)
        second = plus(second, b * b)
        third = plus(third, d * d)
        fourth = plus(fourth, e * e)
        expected = plus(expected, lower + (upper - lower) * chance[c])
    return first, second, third, fourth, expected


@compiled
def add_deviations(
    given: Any,
    rest: Any,
    happened: Any,
    cells: Any,
    limit: Any,
    rate: float,
    means: Any,
    factor: float,
    out: Any,
) -> None:
    """Add a multiple of the same deviations of each row to the columns of a table, (4, N)."""
    for i in range(given.size):
        hit, c = happened[i] > 0, int(cells[i])
        other = rest[i] if rest.size else 1.0 - given[i]
        gap = select(hit, other, given[i])
        fit = select(hit, 1.0 - limit[c], limit[c])
        constant = select(hit, 1.0 - rate, rate)
        loss, fitted, even = gap * gap, fit * fit, constant * constant
        out[0, i] += factor * (loss - means[0])
        out[1, i] += factor * (loss - fitted - means[1])
        out[2, i] += factor * (even - fitted - means[2])
        out[3, i] += factor * (even - means[3])
