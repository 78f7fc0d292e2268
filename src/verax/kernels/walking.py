"""Compiled passes over the rows of an event: in the order of their forecasts, and against a fit in cells."""

from __future__ import annotations

from typing import Any

import numpy as np

from verax.kernels.functions import bits, compiled, from_bits, plus, select

# Rounding must not decide on which side of an edge a forecast is.
_EDGE = 1e-9


@compiled
def pack_rows(ranked: Any, happened: Any, out: Any) -> int:
    """The bits of each forecast, and last whether the event happened; returns how many are no probabilities.

    The sign of a probability is known, so that there is room for a bit.
    """
    n_others = 0
    for i in range(ranked.size):
        x = ranked[i]
        out[i] = (bits(x) << np.uint64(1)) | np.uint64(happened[i])
        n_others += 1 - int((x >= 0.0) & (x <= 1.0))
    return n_others


@compiled
def count_pools(packed: Any, most: int) -> int:
    """The number of different forecasts, or one more than `most` where there are more."""
    n, i = 1, 1
    while i < packed.size and n <= most:
        n += int((packed[i] >> np.uint64(1)) != (packed[i - 1] >> np.uint64(1)))
        i += 1
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
    whole, event = 0.0, 0.0
    while i < n:
        key, j, hits = packed[i] >> np.uint64(1), i, 0
        while j < n and (packed[j] >> np.uint64(1)) == key:
            hits += int(packed[j] & np.uint64(1))
            j += 1
        size, x, more = float(j - i), from_bits(key), float(hits)
        middle = int((float(j) - size / 2.0) * scale + _EDGE)
        if scale == 0.0 or middle > last:
            cell += 1
            last = middle
            starts[cell] = x
            sums[0, cell], sums[1, cell], sums[2, cell] = 0.0, 0.0, 0.0
        sums[0, cell] += size
        sums[1, cell] += more
        sums[2, cell] += size * x
        if i > 0 and more * whole > event * size:
            n_blocks = close_block(whole, event, blocks, 0, n_blocks)
            whole, event = size, more
        else:
            whole += size
            event += more
        i = j
    n_blocks = close_block(whole, event, blocks, 0, n_blocks)
    take_out(blocks, 0, n_blocks)
    return cell + 1, n_blocks


def joined(pools: Any, n: int) -> int:
    """Join neighbouring pools, numbers of rows and of those with the event, whose frequencies do not rise:
    they belong to one block. Returns how many are left.

    There is no branch for each, because a wrong guess takes longer than all else.
    """
    last, whole, event = 0, pools[0, 0], pools[0, 1]
    size, happened = whole, event
    for b in range(1, n):
        rises = pools[b, 1] * size > happened * pools[b, 0]
        size, happened = pools[b, 0], pools[b, 1]
        last += int(rises)
        whole = select(rises, size, whole + size)
        event = select(rises, happened, event + happened)
        pools[last, 0], pools[last, 1] = whole, event
    return last + 1


def close_block(size: float, event: float, blocks: Any, start: int, n: int) -> int:
    """Write a block as the next one, joined with those before it whose frequencies are not below its own.

    A fit begins with block `start`. Returns how many blocks there are; their first column has whole weights.
    """
    while n > start and blocks[n - 1, 1] * size >= event * blocks[n - 1, 0]:
        n -= 1
        size += blocks[n, 0]
        event += blocks[n, 1]
    blocks[n, 0], blocks[n, 1] = size, event
    return n + 1


def take_out(blocks: Any, start: int, n: int) -> None:
    """Make whole weights, from block `start` on, those of rows without the event."""
    for b in range(start, n):
        blocks[b, 0] -= blocks[b, 1]


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
def look_again(
    given: Any,
    rest: Any,
    happened: Any,
    at: Any,
    chance: Any,
    limit: Any,
    rate: float,
    factor: float,
    means: Any,
    whole: Any,
    sums: Any,
) -> None:
    """A second look at the squared errors of an event, whose rows count alike (`calibration.uncertainty`).

    Adds the losses times a factor to the lines of `whole`, the squared deviations of the four losses from
    their means to `sums`, and last what the error is expected to be; `rest` may be empty.
    """
    first, second, third, fourth, expected = 0.0, 0.0, 0.0, 0.0, 0.0
    even, uneven = rate * rate, (1.0 - rate) * (1.0 - rate)
    for i in range(given.size):
        cell, hit, p = np.int64(at[i]), happened[i] > 0, given[i]
        other = rest[i] if rest.size else 1.0 - p
        without, with_event = p * p, other * other
        loss = select(hit, with_event, without)
        gap = select(hit, 1.0 - limit[cell], limit[cell])
        of_rate = select(hit, uneven, even)
        more, less = loss - gap * gap, of_rate - gap * gap
        whole[0, i] += factor * loss
        whole[1, i] += factor * more
        whole[2, i] += factor * less
        whole[3, i] += factor * of_rate
        a, b, c, d = loss - means[0], more - means[1], less - means[2], of_rate - means[3]
        first = plus(first, a * a)
        second = plus(second, b * b)
        third = plus(third, c * c)
        fourth = plus(fourth, d * d)
        expected = plus(expected, without + chance[cell] * (with_event - without))
    sums[0] += first
    sums[1] += second
    sums[2] += third
    sums[3] += fourth
    sums[4] += expected
