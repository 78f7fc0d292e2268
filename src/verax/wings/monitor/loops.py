"""Compiled loops of a monitor: sums over losses and events."""

from __future__ import annotations

from typing import Any

import numpy as np

from verax.kernels.functions import compiled, higher, lower, plus, select

# Bins of probabilities; bets that adapt to the past are constant in each.
BINS = 16
# Rows at a time, which a cache holds.
_STRIP = 512
# Neighbours add to copies of the bins by turns: an addition need not wait for the one before it.
_COPIES = 4


@compiled
def add_event(
    stated: Any, happened: Any, codes: Any, weights: Any, first: Any, second: Any, bins: Any
) -> None:
    """Add the probability, the outcome, their difference and its tilted form, and their squares, by cell.

    Without weights, `weights` is empty. Sums of neighbours in the same cell are held in registers.
    """
    last = 0
    sx, sh, sg, st, sxx, sgg, stt = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(stated.size + 1):
        at = last
        if i < stated.size:
            at = codes[i]
        if at != last or i == stated.size:
            first[last, 0] += sx
            first[last, 1] += sh
            first[last, 2] += sg
            first[last, 3] += st
            second[last, 0] += sxx
            second[last, 1] += sh
            second[last, 2] += sgg
            second[last, 3] += stt
            sx, sh, sg, st, sxx, sgg, stt = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
            last = at
        if i < stated.size:
            w = weights[i] if weights.size else 1.0
            x = min(max(stated[i], 0.0), 1.0)
            h = 1.0 if happened[i] else 0.0
            gap = h - x
            square = w * gap * gap
            tilt = 1.0 - 2.0 * x
            sx += w * x
            sh += w * h
            sg += w * gap
            st += w * tilt * gap
            sxx += w * x * x
            sgg += square
            stt += tilt * tilt * square
            place = min(int(x * BINS), BINS - 1)
            bins[at, place, 0] += w * gap
            bins[at, place, 1] += square


def add_run(
    losses: Any, most: float, top: Any, decision: Any, p: Any, y: Any, least: int, *, ordered: bool
) -> tuple[Any, Any]:
    """Sums of rows of one cell without weights.

    Returns, in the first row, the sums of the losses and of their squares, and then for each event those of
    its probability, its outcome, the tilted difference, and the squares of the first and the last. The other
    array has for each event and bin the sums of the difference and of its square.
    """
    n_events = 1 + p.shape[1] - least
    sums, table = np.zeros((1 + n_events, 5)), np.zeros((n_events, BINS * _COPIES * 2))
    _add_run(losses, most, top, decision, p.T, y, least, ordered, sums, table)
    return sums, table.reshape(n_events, BINS, _COPIES, 2).sum(axis=2)


@compiled
def _add_run(
    losses: Any,
    most: float,
    top: Any,
    decision: Any,
    p: Any,
    y: Any,
    least: int,
    ordered: bool,
    sums: Any,
    table: Any,
) -> None:
    """Add rows to the sums of the most likely class, then each class or, from the highest, each threshold."""
    xs, gaps = np.empty(_STRIP), np.empty(_STRIP)
    hits, places = np.empty(_STRIP, np.int64), np.empty(_STRIP, np.uint64)
    for start in range(0, losses.size, _STRIP):
        n = min(_STRIP, losses.size - start)
        strip, decided, outcomes = (
            losses[start : start + n],
            decision[start : start + n],
            y[start : start + n],
        )
        total, squares = 0.0, 0.0
        for i in range(n):
            loss = lower(strip[i], most)
            total = plus(total, loss)
            squares = plus(squares, loss * loss)
            hits[i] = select(decided[i] == outcomes[i], 1, 0)
        sums[0, 0] += total
        sums[0, 1] += squares
        added = _add_strip(top[start : start + n], hits, 1, 1, n, gaps, places, sums[1], table[0])
        for turn in range(p.shape[0] - least):
            k = p.shape[0] - 1 - turn
            claims = p[k, start : start + n]
            for i in range(n):
                xs[i] = claims[i] + select(ordered and turn > 0, xs[i], 0.0)
            last = select(ordered, p.shape[0], k)
            e = 1 + k - least
            added += _add_strip(xs, outcomes, k, last, n, gaps, places, sums[1 + e], table[e])


def _add_strip(
    claims: Any, outcomes: Any, k: int, last: int, n: int, gaps: Any, places: Any, sums: Any, cells: Any
) -> int:
    """Add some rows of an event, which are the outcomes from `k` to `last`."""
    sx, sh, st, sxx, stt = 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(n):
        x = lower(higher(claims[i], 0.0), 1.0)
        h = select((outcomes[i] >= k) & (outcomes[i] <= last), 1.0, 0.0)
        gap = h - x
        tilted = (1.0 - 2.0 * x) * gap
        sx = plus(sx, x)
        sh = plus(sh, h)
        st = plus(st, tilted)
        sxx = plus(sxx, x * x)
        stt = plus(stt, tilted * tilted)
        gaps[i] = gap
    sums[0] += sx
    sums[1] += sh
    sums[2] += st
    sums[3] += sxx
    sums[4] += stt
    for i in range(n):
        place = min(int(lower(higher(claims[i], 0.0), 1.0) * BINS), BINS - 1)
        places[i] = np.uint64(2 * (_COPIES * place + (i & (_COPIES - 1))))
    for i in range(n):
        at, gap = places[i], gaps[i]
        cells[at] += gap
        cells[at + np.uint64(1)] += gap * gap
    return n
