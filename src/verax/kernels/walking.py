"""Compiled passes over the rows of an event: in the order of their forecasts, and against a fit in cells."""

from __future__ import annotations

from typing import Any

import numpy as np

from verax.kernels.functions import compiled
from verax.kernels.operations import bits, from_bits, plus, select

# How many rows are added up by themselves.
_BLOCK = 4096


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
def count_pools(packed: Any) -> int:
    """How many different forecasts there are."""
    n = 1
    for i in range(1, packed.size):
        n += int((packed[i] >> np.uint64(1)) != (packed[i - 1] >> np.uint64(1)))
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


@compiled
def walk_apart(packed: Any, scale: float, turns: Any, starts: Any, sums: Any, blocks: Any) -> tuple[int, int]:
    """The same where all forecasts differ and the scale is not 0, in half the time: what rows have in common
    is found without a branch for each. `turns` is room for three more integers than there are rows.
    """
    n_turns = _find_turns(packed, turns)
    # Rows before the first with the event; then those with it and those without it that follow are together.
    n_blocks, without, event = 0, float(turns[0]), 0.0
    for turn in range(0, n_turns, 2):
        more, size = float(turns[turn + 1] - turns[turn]), float(turns[turn + 2] - turns[turn])
        if more * (without + event) > event * size:
            n_blocks = _closed(blocks, n_blocks, without, event)
            without, event = size - more, more
        else:
            without += size - more
            event += more
    return _fill_cells(packed, scale, starts, sums), _closed(blocks, n_blocks, without, event)


def _find_turns(packed: Any, turns: Any) -> int:
    """Where rows with the event begin, where they end, and so on; returns how many places these are. The
    number of rows follows them.
    """
    n_turns = int(packed[0] & np.uint64(1))
    turns[0] = 0
    for i in range(1, packed.size):
        turns[n_turns] = i
        n_turns += int((packed[i] ^ packed[i - 1]) & np.uint64(1))
    turns[n_turns], turns[n_turns + 1], turns[n_turns + 2] = packed.size, packed.size, packed.size
    return n_turns


def _fill_cells(packed: Any, scale: float, starts: Any, sums: Any) -> int:
    """Write what `walk` writes of cells; returns how many there are."""
    cell, begin = 0, 0
    while begin < packed.size:
        middle = int((float(begin + 1) - 0.5) * scale)
        # A row or two beyond where the next cell begins, and back.
        end = min(packed.size, int(float(middle + 1) / scale) + 2)
        while int((float(end) - 0.5) * scale) > middle:
            end -= 1
        hits, claimed = 0, 0.0
        for i in range(begin, end):
            hits += int(packed[i] & np.uint64(1))
            claimed = plus(claimed, from_bits(packed[i] >> np.uint64(1)))
        starts[cell] = from_bits(packed[begin] >> np.uint64(1))
        sums[0, cell], sums[1, cell], sums[2, cell] = float(end - begin), float(hits), claimed
        cell += 1
        begin = end
    return cell


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
def find_near_cells(values: Any, starts: Any, guide: Any, out: Any) -> None:
    """The same where the next entry of the guide is at most one cell further: nothing is guessed.

    `starts` has one more entry, beyond all values.
    """
    scale = float(guide.size - 1)
    for i in range(values.size):
        x = values[i]
        low = int(guide[int(min(x, 1.0) * scale)])
        out[i] = low + int(starts[low + 1] <= x)


@compiled
def deviations(
    given: Any, rest: Any, happened: Any, cells: Any, fitted: Any, chance: Any, means: Any
) -> tuple[float, float, float]:
    """The sums of squares of two losses minus their means: of the forecast, and the same minus that of the
    fit, which cells have without and with the event, (C, 2); and of the loss expected from the chances.

    Sums of blocks are added up, so that they stay exact. Within a block they are added up one by one: several
    at a time would have to be gathered from the cells, which takes longer.
    """
    first, second, expected = 0.0, 0.0, 0.0
    for begin in range(0, given.size, _BLOCK):
        a, b, c = 0.0, 0.0, 0.0
        for i in range(begin, min(begin + _BLOCK, given.size)):
            hit, cell = int(happened[i]), int(cells[i])
            other = rest[i] if rest.size else 1.0 - given[i]
            lower, upper = given[i] * given[i], other * other
            loss = select(hit > 0, upper, lower)
            own, gain = loss - means[0], loss - fitted[cell, hit] - means[1]
            a += own * own
            b += gain * gain
            c += lower + (upper - lower) * chance[cell]
        first += a
        second += b
        expected += c
    return first, second, expected


@compiled
def add_deviations(
    given: Any,
    rest: Any,
    happened: Any,
    cells: Any,
    fitted: Any,
    even: Any,
    means: Any,
    factor: float,
    out: Any,
) -> None:
    """Add a multiple of the deviations of each row to the columns of a table, (4, N): of the loss of the
    forecast, the same minus that of the fit, that of a constant minus that of the fit, and that of the
    constant, which is `even` without and with the event.
    """
    for i in range(given.size):
        hit = int(happened[i])
        other = rest[i] if rest.size else 1.0 - given[i]
        gap = select(hit > 0, other, given[i])
        loss, fit, constant = gap * gap, fitted[int(cells[i]), hit], even[hit]
        out[0, i] += factor * (loss - means[0])
        out[1, i] += factor * (loss - fit - means[1])
        out[2, i] += factor * (constant - fit - means[2])
        out[3, i] += factor * (constant - means[3])
