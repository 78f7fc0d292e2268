"""Compiled sums of what forecasts stated about an event and what happened."""

from __future__ import annotations

from typing import Any

import numpy as np

from verax.kernels.functions import compiled


@compiled
def add_event(
    stated: Any, happened: Any, codes: Any, weights: Any, n_bins: int, first: Any, second: Any, bins: Any
) -> None:
    """Add the probability, the outcome, their difference and its tilted form, and their squares, by cell.

    Without weights, `weights` is empty; without cells, `codes` is. Sums of neighbours in the same cell are
    held in registers.
    """
    last = 0
    sx, sh, sg, st, sxx, sgg, stt = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(stated.size + 1):
        at = last
        if i < stated.size and codes.size:
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
            place = min(int(x * n_bins), n_bins - 1)
            bins[at, place, 0] += w * gap
            bins[at, place, 1] += square


def add_plain_event(stated: Any, happened: Any, n_bins: int, first: Any, second: Any, bins: Any) -> None:
    """The same for rows of one cell without weights."""
    _add_plain_event(stated, happened, n_bins, np.zeros(8 * n_bins), first, second, bins)


@compiled
def _add_plain_event(
    stated: Any, happened: Any, n_bins: int, copies: Any, first: Any, second: Any, bins: Any
) -> None:
    """The same with copies of the bins, to which neighbours add by turns.

    An addition need not wait for the one before it. The sums of differences are those of the bins.
    """
    sx, sh, st, sxx, stt = 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(stated.size):
        x = min(max(stated[i], 0.0), 1.0)
        h = 1.0 if happened[i] else 0.0
        gap = h - x
        tilted = (1.0 - 2.0 * x) * gap
        sx += x
        sh += h
        st += tilted
        sxx += x * x
        stt += tilted * tilted
        place = 8 * min(int(x * n_bins), n_bins - 1) + 2 * (i & 3)
        copies[place] += gap
        copies[place + 1] += gap * gap
    sg, sgg = 0.0, 0.0
    for b in range(n_bins):
        for copy in range(4):
            gap, square = copies[8 * b + 2 * copy], copies[8 * b + 2 * copy + 1]
            bins[0, b, 0] += gap
            bins[0, b, 1] += square
            sg += gap
            sgg += square
    first[0, 0] += sx
    first[0, 1] += sh
    first[0, 2] += sg
    first[0, 3] += st
    second[0, 0] += sxx
    second[0, 1] += sh
    second[0, 2] += sgg
    second[0, 3] += stt
