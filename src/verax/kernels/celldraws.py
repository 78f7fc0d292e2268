"""Compiled draws of outcomes in cells of neighbouring forecasts, and isotonic fits to them."""

from __future__ import annotations

import math
from inspect import unwrap
from typing import Any

import numpy as np

from verax.kernels.functions import compiled, plus, select
from verax.kernels.walking import joined

# As `common.hashing.mixed` has them.
_ADDED, _FIRST, _SECOND = (
    np.uint64(0x9E3779B97F4A7C15),
    np.uint64(0xBF58476D1CE4E5B9),
    np.uint64(0x94D049BB133111EB),
)
_UNIT = 2.0**-53
# Smaller chances of a count cannot change a sum of chances.
_NOTHING = 1e-18


@compiled
def draw_shares(
    keys: Any,
    rows: Any,
    chance: Any,
    none: Any,
    spread: Any,
    opposite: Any,
    quantiles: Any,
    below: Any,
    at: Any,
    out: Any,
) -> None:
    """The share of the rows of each cell that have the event, for each of the keys: (cells, keys).

    A cell without a spread has binomial counts, of which `none` is the chance of zero; others are normal, by
    one of the quantiles. Of cells marked in `opposite` the chances are those of the opposite. `below` and
    `at` are room for the chances of counts and for where to look for them.
    """
    n_quantiles, n_places = float(quantiles.size), float(at.size)
    for c in range(rows.size):
        n, p, shares = rows[c], chance[c], out[c]
        for k in range(keys.size):
            x = (np.uint64(c) ^ keys[k]) + _ADDED
            x = (x ^ (x >> np.uint64(30))) * _FIRST
            x = (x ^ (x >> np.uint64(27))) * _SECOND
            x = x ^ (x >> np.uint64(31))
            shares[k] = np.float64(np.int64(x >> np.uint64(11))) * _UNIT
        if spread[c] == 0.0:
            _find_counts(n, p, none[c], below, at)
            for k in range(keys.size):
                count = at[int(shares[k] * n_places)]
                while below[count] <= shares[k]:
                    count += 1
                shares[k] = float(count) / n
        else:
            wide = spread[c]
            for k in range(keys.size):
                shares[k] = min(max(p + wide * quantiles[int(shares[k] * n_quantiles)], 0.0), 1.0)
        if opposite[c]:
            for k in range(keys.size):
                shares[k] = 1.0 - shares[k]


def _find_counts(n: float, p: float, none: float, below: Any, at: Any) -> None:
    """Write the chance of each count of n rows or fewer, and the first count that each of some places of the
    unit interval may have. Of the last count the chance is beyond all numbers that are drawn.
    """
    last, odds, chance, total = 0, p / (1.0 - p), none, none
    below[0] = total
    while float(last) < n and (float(last) < n * p or chance > _NOTHING) and last < below.size - 1:
        chance = chance * ((n - float(last)) / float(last + 1)) * odds
        last += 1
        total += chance
        below[last] = total
    below[last] = 2.0
    place = 0
    for count in range(last + 1):
        end = min(int(below[count] * float(at.size)) + 1, at.size)
        while place < end:
            at[place] = count
            place += 1


@compiled
def fit_shares(shares: Any, size: Any, more: Any, unit: float, pools: Any, out: Any) -> None:
    """The isotonic fits to shares of cells of these sizes that have the event, (C, b).

    Writes for each fit the weight with the event, the sum over the cells of that weight times `more`, and the
    least loss: squared errors, or with a `unit` logarithms times it. `pools` is room for the weights of the
    blocks and of those with the event, (C, 2).

    Neighbours whose frequencies do not rise are joined three times without a branch for each (`joined`). Then
    the rest is joined one by one.
    """
    for k in range(shares.shape[1]):
        total, extra, last = 0.0, 0.0, 0
        whole, event, before = 0.0, 0.0, shares[0, k]
        for c in range(size.size):
            share = shares[c, k]
            weight = share * size[c]
            total = plus(total, weight)
            extra = plus(extra, weight * more[c])
            rises = share > before
            last += int(rises)
            whole = select(rises, size[c], whole + size[c])
            event = select(rises, weight, event + weight)
            pools[last, 0], pools[last, 1] = whole, event
            before = share
        n_pools = joined(pools, joined(pools, last + 1))
        n = 0
        for b in range(n_pools):
            whole, event = pools[b, 0], pools[b, 1]
            while n > 0 and pools[n - 1, 1] * whole >= event * pools[n - 1, 0]:
                n -= 1
                whole += pools[n, 0]
                event += pools[n, 1]
            pools[n, 0], pools[n, 1] = whole, event
            n += 1
        least = 0.0
        for b in range(n):
            whole, event = pools[b, 0], pools[b, 1]
            without = whole - event
            if unit == 0.0 and event >= 0.0 and without >= 0.0:
                least = plus(least, without * event / whole)
            elif unit == 0.0:
                # A frequency below 0 or above 1 is kept there.
                least = plus(least, min(event, without))
            elif without > 0.0 and event > 0.0:
                # Where the event always or never happens nothing is lost.
                least -= unit * (without * math.log(without / whole) + event * math.log(event / whole))
        out[0, k], out[1, k], out[2, k] = total, extra, least


# ---- isotonic fits to cells of any weight


def fit_cells(cells: Any, first: Any, *, compiled: bool) -> tuple[Any, Any, Any]:
    """The isotonic fits to cells of any weight, as `analyses.calibration.isotonic.isotonic_fits` has them."""
    fit = _fit_cells if compiled else unwrap(_fit_cells)
    n = first.size
    blocks, begins = np.empty((n, 2)), np.empty(np.count_nonzero(first), np.int64)
    pools = np.empty(n, np.int64)
    n_blocks = fit(cells, first, blocks, begins, pools)
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
