"""Compiled draws of outcomes, and isotonic fits to them."""

from __future__ import annotations

from typing import Any

import numpy as np

from verax.kernels.functions import compiled
from verax.kernels.operations import plus, select
from verax.kernels.walking import close_block, take_out

# As `common.hashing.mixed` has them.
_ADDED, _FIRST, _SECOND = (
    np.uint64(0x9E3779B97F4A7C15),
    np.uint64(0xBF58476D1CE4E5B9),
    np.uint64(0x94D049BB133111EB),
)

_UNIT = 2.0**-53


@compiled
def draw(rows: Any, keys: Any, start: Any, ends: Any, more: Any, out: Any, extra: Any) -> int:
    """Whether the number of each row falls between its start and its end, or, beyond 1, at the beginning; for
    each of the keys.

    `extra` gets the sums of `more` over the rows for which that holds. Returns how often a row for which it
    holds follows one for which it does not.
    """
    n_rises = 0
    for k in range(keys.size):
        key, own = keys[k], out[k]
        total, rises = 0.0, 0
        for i in range(rows.size):
            x = (np.uint64(rows[i]) ^ key) + _ADDED
            x = (x ^ (x >> np.uint64(30))) * _FIRST
            x = (x ^ (x >> np.uint64(27))) * _SECOND
            x = x ^ (x >> np.uint64(31))
            # 53 bits fit a signed integer, which is converted faster.
            uniform = np.float64(np.int64(x >> np.uint64(11))) * _UNIT
            falls = ((start[i] <= uniform) & (uniform < ends[i])) | (uniform < ends[i] - 1.0)
            own[i] = falls
            total = plus(total, select(falls, more[i], 0.0))
        for i in range(1, rows.size):
            rises += int(own[i]) & (1 - int(own[i - 1]))
        extra[k] = total
        n_rises += rises
    return n_rises


def fit_rows(happened: Any, n_rises: int) -> tuple[Any, Any]:
    """The isotonic fits to rows that count alike, (b, N), in which an event follows none `n_rises` times.

    The numbers of rows without and with the event by block, one fit after the other, and where each begins.
    """
    n_fits, n = happened.shape
    # A block begins with a row where the event happened after one where it did not, or with the first row.
    blocks, begins = np.empty((n_fits + n_rises, 2)), np.empty(n_fits, np.int64)
    sizes, events = np.empty((2, n // 2 + 1))
    return blocks[: _fit_all(happened, np.empty(n + 3, np.int64), sizes, events, blocks, begins)], begins


@compiled
def _fit_all(happened: Any, starts: Any, sizes: Any, events: Any, blocks: Any, begins: Any) -> int:
    """Write the blocks of all fits and where they begin, and return how many blocks there are."""
    n = 0
    for k in range(begins.size):
        begins[k] = n
        n = _fit_rows(happened[k], starts, sizes, events, blocks, n)
    return n


def _fit_rows(happened: Any, starts: Any, sizes: Any, events: Any, blocks: Any, at: int) -> int:
    """Write the blocks of a fit, and return where the next one begins."""
    # Where rows with the event begin and end, found without a branch: a wrong guess costs more than a row.
    starts[0] = 0
    n_runs = int(happened[0])
    for i in range(1, happened.size):
        starts[n_runs] = i
        n_runs += int(happened[i]) ^ int(happened[i - 1])
    starts[n_runs], starts[n_runs + 1], starts[n_runs + 2] = happened.size, happened.size, happened.size
    # Blocks whose frequencies increase; the last one, which is still open, is apart.
    n_blocks, size, event = 0, float(starts[0]), 0.0
    for run in range(0, n_runs, 2):
        # Rows with the event and those without it that follow are in one block.
        with_event = float(starts[run + 1] - starts[run])
        n = float(starts[run + 2] - starts[run])
        if with_event * size <= event * n:
            size += n
            event += with_event
            continue
        while n_blocks > 0 and events[n_blocks - 1] * size >= event * sizes[n_blocks - 1]:
            n_blocks -= 1
            size += sizes[n_blocks]
            event += events[n_blocks]
        sizes[n_blocks], events[n_blocks] = size, event
        n_blocks += 1
        size, event = n, with_event
    while n_blocks > 0 and events[n_blocks - 1] * size >= event * sizes[n_blocks - 1]:
        n_blocks -= 1
        size += sizes[n_blocks]
        event += events[n_blocks]
    for b in range(n_blocks):
        blocks[at + b, 0], blocks[at + b, 1] = sizes[b] - events[b], events[b]
    blocks[at + n_blocks, 0], blocks[at + n_blocks, 1] = size - event, event
    return at + n_blocks + 1


@compiled
def run_cells(happened: Any, share: Any, cells: Any, begins: Any) -> int:
    """Write the weights of rows without and with the event, (2, P), by runs of rows with the event and those
    without it that follow, and where those of each draw begin. Returns how many runs there are.
    """
    n = 0
    for k in range(begins.size):
        begins[k] = n
        own = happened[k]
        without, event, before = 0.0, 0.0, 1
        for i in range(share.size):
            # Without a branch: a wrong guess costs more than a row.
            hit, w = int(own[i]), share[i]
            rise = hit & (1 - before)
            n += rise
            without = select(rise > 0, 0.0, without) + select(hit > 0, 0.0, w)
            event = select(rise > 0, 0.0, event) + select(hit > 0, w, 0.0)
            cells[0, n], cells[1, n] = without, event
            before = hit
        n += 1
    return n


@compiled
def fit_pools(happened: Any, share: Any, pools: Any, sizes: Any, blocks: Any, begins: Any) -> int:
    """The isotonic fits to rows of which some have equal forecasts; pools and blocks are as in `fit_wild`."""
    n = 0
    for k in range(begins.size):
        begins[k] = n
        own = happened[k]
        for pool in range(sizes.size):
            event = 0.0
            for i in range(pools[pool], pools[pool + 1]):
                event += select(int(own[i]) > 0, share[i], 0.0)
            n = close_block(sizes[pool], event, blocks, begins[k], n)
        take_out(blocks, begins[k], n)
    return n


@compiled
def fit_wild(
    signs: Any,
    codes: Any,
    chance: Any,
    deviation: Any,
    more: Any,
    share: Any,
    pools: Any,
    sizes: Any,
    blocks: Any,
    begins: Any,
    extra: Any,
) -> int:
    """The isotonic fits to outcomes that are `chance` plus or minus a deviation, by the sign of the group.

    Rows are in the order of the forecasts: those of a pool, of which each begins at one of `pools` and has
    one of `sizes` as its weight, have equal ones. Writes the blocks of all fits, where those of each begin
    and the sums of outcomes times `more`. Returns how many blocks there are.
    """
    n = 0
    for k in range(begins.size):
        begins[k] = n
        total = 0.0
        for pool in range(sizes.size):
            event = 0.0
            for i in range(pools[pool], pools[pool + 1]):
                outcome = chance[i] + float(signs[k, codes[i]]) * deviation[i]
                total += outcome * more[i]
                event += outcome * share[i]
            n = close_block(sizes[pool], event, blocks, begins[k], n)
        extra[k] = total
        take_out(blocks, begins[k], n)
    return n


@compiled
def add_hits(uniform: Any, ends: Any, cells: Any, weights: Any, out: Any) -> None:
    """Add the weights of the rows whose number is below their end to those of their cells."""
    for i in range(uniform.size):
        out[cells[i]] += select(uniform[i] < ends[i], weights[i], 0.0)


@compiled
def add_wild(signs: Any, codes: Any, given: Any, deviation: Any, weights: Any, cells: Any, out: Any) -> None:
    """Add the weights times outcomes, as `fit_wild` has them, to those of the cells: (C, draws)."""
    for i in range(codes.size):
        cell, code = cells[i], codes[i]
        for k in range(out[0].size):
            out[cell, k] += weights[i] * (given[i] + float(signs[code, k]) * deviation[i])


def fit_cells(cells: Any, first: Any) -> tuple[Any, Any, Any]:
    """The isotonic fits to cells of any weight, as `analyses.calibration.refits.isotonic_fits` has them."""
    n = first.size
    blocks, begins = np.empty((n, 2)), np.empty(np.count_nonzero(first), np.int64)
    pools = np.empty(n, np.int64)
    n_blocks = _fit_cells(cells, first, blocks, begins, pools)
    return blocks[:n_blocks], begins, pools[:n_blocks]


@compiled
def _fit_cells(cells: Any, first: Any, blocks: Any, begins: Any, pools: Any) -> int:
    """Write the blocks of all fits, where those of each begin, and the first cell of each block. Returns how
    many blocks there are.

    Blocks of a fit whose frequencies do not increase are joined as soon as the next cell is known.
    """
    n_fits, start, n = 0, 0, 0
    for i in range(first.size):
        if first[i]:
            begins[n_fits] = n
            n_fits += 1
            start = n
        without, event, pool = cells[0, i], cells[1, i], i
        while n > start and blocks[n - 1, 1] * (without + event) >= event * (
            blocks[n - 1, 0] + blocks[n - 1, 1]
        ):
            n -= 1
            without += blocks[n, 0]
            event += blocks[n, 1]
            pool = pools[n]
        blocks[n, 0], blocks[n, 1], pools[n] = without, event, pool
        n += 1
    return n
