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
    whole, event = 0.0, 0.0
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


@compiled
def walk_apart(packed: Any, scale: float, turns: Any, starts: Any, sums: Any, blocks: Any) -> tuple[int, int]:
    """The same where all forecasts differ and the scale is not 0, in half the time: what rows have in common
    is found without a branch for each. `turns` is room for three more integers than there are rows.
    """
    n_turns = _find_turns(packed, turns)
    # Rows before the first with the event; then those with it and those without it that follow are together.
    n = int(turns[0] > 0)
    blocks[0, 0], blocks[0, 1] = float(turns[0]), 0.0
    for turn in range(0, n_turns, 2):
        blocks[n, 0] = float(turns[turn + 2] - turns[turn])
        blocks[n, 1] = float(turns[turn + 1] - turns[turn])
        n += 1
    n = joined(blocks, joined(blocks, joined(blocks, n)))
    n_blocks = 0
    for b in range(n):
        n_blocks = close_block(blocks[b, 0], blocks[b, 1], blocks, 0, n_blocks)
    take_out(blocks, 0, n_blocks)
    return _fill_cells(packed, scale, starts, sums), n_blocks


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
    fit, which cells have without and with the event, (2C,); and of the loss expected from the chances.

    Sums of blocks are added up, so that they stay exact. What is gathered from the cells is added up one by
    one: several at a time would take longer.
    """
    first, second, expected = 0.0, 0.0, 0.0
    mean, gained = means[0], means[1]
    for begin in range(0, given.size, _BLOCK):
        a, b, c = 0.0, 0.0, 0.0
        for i in range(begin, min(begin + _BLOCK, given.size)):
            hit, cell = int(happened[i]), int(cells[i])
            other = rest[i] if rest.size else 1.0 - given[i]
            lower, upper = given[i] * given[i], other * other
            loss = select(hit > 0, upper, lower)
            own, gain = loss - mean, loss - fitted[2 * cell + hit] - gained
            a += own * own
            b += gain * gain
            c += lower + (upper - lower) * chance[cell]
        first += a
        second += b
        expected += c
    return first, second, expected


@compiled
def add_losses(
    given: Any,
    rest: Any,
    happened: Any,
    cells: Any,
    fitted: Any,
    even: Any,
    factor: float,
    begin: int,
    end: int,
    out: Any,
) -> None:
    """Add a multiple of the losses of the rows from `begin` to `end` to the columns of their table,
    (3, end - begin): of the forecast, of the fit, and of the constant.

    The last two are the multiples themselves: of the fit they are (2C,), for each cell without and with the
    event, and of the constant (2,). What is gathered from the cells has a loop of its own: the others then
    take several rows at a time.
    """
    without, with_event = even[0], even[1]
    loss, fit, constant = out[0], out[1], out[2]
    if rest.size:
        for i in range(begin, end):
            gap = select(happened[i] > 0, rest[i], given[i])
            loss[i - begin] += factor * gap * gap
            constant[i - begin] += select(happened[i] > 0, with_event, without)
    else:
        for i in range(begin, end):
            gap = select(happened[i] > 0, 1.0 - given[i], given[i])
            loss[i - begin] += factor * gap * gap
            constant[i - begin] += select(happened[i] > 0, with_event, without)
    for i in range(begin, end):
        fit[i - begin] += fitted[2 * int(cells[i]) + int(happened[i])]


@compiled
def add_deviations(losses: Any, n: int, means: Any, out: Any, squares: Any) -> None:
    """Add what follows from the losses of n rows, (3, n), to the columns of their table, (4, n), and then
    the squares of these to four sums: the losses of the forecast, the same minus those of the fit, those of
    the constant minus those of the fit, and those of the constant, all minus their means.

    The table may be empty, and is nothing then. The losses are set to zero, for other rows.
    """
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    mean, gained, resolved, even = means[0], means[1], means[2], means[3]
    for i in range(n):
        loss, fit, constant = losses[0, i], losses[1, i], losses[2, i]
        losses[0, i], losses[1, i], losses[2, i] = 0.0, 0.0, 0.0
        own, gain = loss - mean, loss - fit - gained
        kept, plain = constant - fit - resolved, constant - even
        if out.size:
            own, gain, kept, plain = own + out[0, i], gain + out[1, i], kept + out[2, i], plain + out[3, i]
            out[0, i], out[1, i], out[2, i], out[3, i] = own, gain, kept, plain
        a = plus(a, own * own)
        b = plus(b, gain * gain)
        c = plus(c, kept * kept)
        d = plus(d, plain * plain)
    squares[0] += a
    squares[1] += b
    squares[2] += c
    squares[3] += d
