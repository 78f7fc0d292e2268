"""Compiled draws of outcomes in cells of neighbouring forecasts, and isotonic fits to them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from verax.kernels.functions import compiled
from verax.kernels.operations import plus, select

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
    """The share of the rows of each cell that have the event, for each of the keys: (keys, cells).

    A cell without a spread has binomial counts, of which `none` is the chance of zero; others are normal, by
    one of the quantiles. Of cells marked in `opposite` the chances are those of the opposite. `below` and
    `at` are room for the chances of counts and for where to look for them.
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
                share = float(count) / n
            else:
                share = min(max(p + spread[c] * quantiles[int(uniform * float(n_quantiles))], 0.0), 1.0)
            out[k, c] = select(opposite[c], 1.0 - share, share)


@compiled
def fit_shares(shares: Any, size: Any, more: Any, unit: float, blocks: Any, out: Any) -> None:
    """The isotonic fits to shares of cells of these sizes that have the event, (b, C).

    Writes for each fit the weight with the event, the sum over the cells of that weight times `more`, and the
    least loss: squared errors, or with a `unit` logarithms times it. `blocks` is room for the weights of the
    blocks without and with the event, (C, 2).
    """
    for k in range(shares.shape[0]):
        n, total, extra, own = 0, 0.0, 0.0, shares[k]
        for c in range(size.size):
            event = own[c] * size[c]
            total = plus(total, event)
            extra = plus(extra, event * more[c])
            without = size[c] - event
            while n > 0 and blocks[n - 1, 1] * (without + event) >= event * (
                blocks[n - 1, 0] + blocks[n - 1, 1]
            ):
                n -= 1
                without += blocks[n, 0]
                event += blocks[n, 1]
            blocks[n, 0], blocks[n, 1] = without, event
            n += 1
        least = 0.0
        for b in range(n):
            without, event = blocks[b, 0], blocks[b, 1]
            if unit == 0.0:
                least = plus(least, without * event / (without + event))
            elif without > 0.0 and event > 0.0:
                # Where the event always or never happens nothing is lost.
                whole = without + event
                least -= unit * (without * math.log(without / whole) + event * math.log(event / whole))
        out[0, k], out[1, k], out[2, k] = total, extra, least
