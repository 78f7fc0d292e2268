"""Grids of thresholds: which are allowed, the place of a forecast among them, and ranges of them in words."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Literal

import numpy as np

from verax.errors import InputError, show
from verax.inputs.arrays import Bools, Floats, Ints, to_array, to_host

# By default, thresholds from 1 to 99 percent. Thresholds are compared to this number of decimals.
DEFAULT_GRID = np.arange(1, 100) / 100
_DECIMALS = 12
_MOST = 1000


def check_grid(thresholds: object) -> Floats:
    """Increasing thresholds above 0 and below 1; by default 1 to 99 percent."""
    if thresholds is None:
        return DEFAULT_GRID
    given = to_host(to_array(thresholds, "thresholds")[0])
    grid = given.astype(float) if given.dtype.kind in "fiu" and given.ndim == 1 else np.zeros(0)
    fits = len(grid) and (grid > 0).all() and (grid < 1).all() and (np.diff(grid) > 0).all()
    if not fits or len(grid) > _MOST:
        raise InputError(
            f"must be increasing probabilities above 0 and below 1, at most {_MOST:,}",
            argument="thresholds",
            found=f"it is {show(given)}",
            values=given.ravel()[:8].tolist(),
        )
    return np.round(grid, _DECIMALS)


Side = Literal["left", "right"]


def places_of(given: Floats, grid: Floats, decimals: int, side: Side) -> Ints:
    """How many thresholds each forecast reaches ("right") or exceeds ("left")."""
    return np.asarray(np.searchsorted(grid, np.round(given, decimals), side=side))


def runs(flags: Bools, grid: Floats) -> list[tuple[float, float]]:
    """The first and last threshold of each run of flags that are true.

    >>> runs(np.array([True, True, False, True]), np.array([0.1, 0.2, 0.3, 0.4]))
    [(0.1, 0.2), (0.4, 0.4)]
    """
    found = []
    for true, places in groupby(range(len(grid)), key=lambda i: bool(flags[i])):
        if true:
            at = list(places)
            found.append((float(grid[at[0]]), float(grid[at[-1]])))
    return found


def in_words(ranges: Sequence[tuple[float, float]]) -> str:
    """Ranges of thresholds as a text.

    >>> in_words([(0.1, 0.2), (0.4, 0.4)])
    '0.1 to 0.2 and 0.4'
    >>> in_words([(0.1, 0.2), (0.4, 0.4), (0.6, 0.8)])
    '0.1 to 0.8, with gaps'
    """
    if len(ranges) > 2:
        return f"{ranges[0][0]:g} to {ranges[-1][1]:g}, with gaps"
    return " and ".join(f"{a:g}" if a == b else f"{a:g} to {b:g}" for a, b in ranges)
