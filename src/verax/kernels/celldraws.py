"""Compiled draws of outcomes in cells of neighbouring forecasts, and isotonic fits to them."""

from __future__ import annotations

from typing import Any

import numpy as np

from verax.kernels.functions import compiled
from verax.kernels.operations import plus

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
    keys: Any, rows: Any, chance: Any, none: Any, spread: Any, quantiles: Any, below: Any, at: Any, out: Any
) -> None:
    """The share of the rows of each cell that have the event, for each of the keys: (keys, cells).

    A cell without a spread has binomial counts, of which `none` is the chance of zero; others are normal, by
    one of the quantiles. `below` and `at` are room for the chances of counts and for where to look for them.
    """
    n_quantiles, n_places = quantiles.size, at.size
    for c in range(rows.size):
        n, p = rows[c], chance[c]
        last = 0
        if spread[c] == 0.0:
            odds, each, total = p / (1.0 - p), none[c], none[c]
            below[0] = total
            while float(last) < n and (float(last) < n * p or each > _NOTHING) and last < below.size - 1:
                each = each * ((n - float(last)) / float(last + 1)) * odds
                last += 1
                total += each
                below[last] = total
            count = 0
            for j in range(n_places):
                while count < last and below[count] <= float(j) / float(n_places):
                    count += 1
                at[j] = count
        for k in range(keys.size):
            x = (np.uint64(c) ^ keys[k]) + _ADDED
            x = (x ^ (x >> np.uint64(30))) * _FIRST
            x = (x ^ (x >> np.uint64(27))) * _SECOND
            x = x ^ (x >> np.uint64(31))
            uniform = np.float64(np.int64(x >> np.uint64(11))) * _UNIT
            if spread[c] == 0.0:
                count = at[int(uniform * float(n_places))]
                while count < last and below[count] <= uniform:
                    count += 1
                out[k, c] = float(count) / n
            else:
                share = p + spread[c] * quantiles[int(uniform * float(n_quantiles))]
                out[k, c] = min(max(share, 0.0), 1.0)


def fit_shares(shares: Any, size: Any, more: Any) -> tuple[Any, Any, Any]:
    """The isotonic fits to shares of cells of these sizes that have the event, (b, C).

    The weights of the blocks without and with the event, one fit after the other, where each fit begins, and
    the sum over the cells of the weight with the event times `more`.
    """
    blocks, begins = np.empty((shares.size, 2)), np.empty(len(shares), np.int64)
    extra = np.empty(len(shares))
    return blocks[: _fit_shares(shares, size, more, blocks, begins, extra)], begins, extra


@compiled
def _fit_shares(shares: Any, size: Any, more: Any, blocks: Any, begins: Any, extra: Any) -> int:
    """Write the blocks of all fits, where those of each begin, and the sums; returns how many blocks."""
    n = 0
    for k in range(begins.size):
        start, total, own = n, 0.0, shares[k]
        begins[k] = n
        for c in range(size.size):
            event = own[c] * size[c]
            total = plus(total, event * more[c])
            without = size[c] - event
            while n > start and blocks[n - 1, 1] * (without + event) >= event * (
                blocks[n - 1, 0] + blocks[n - 1, 1]
            ):
                n -= 1
                without += blocks[n, 0]
                event += blocks[n, 1]
            blocks[n, 0], blocks[n, 1] = without, event
            n += 1
        extra[k] = total
    return n
