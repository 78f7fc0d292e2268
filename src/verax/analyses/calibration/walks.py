"""One compiled pass over many rows of an event, in the order of their forecasts: cells and isotonic fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from verax._settings import settings
from verax.analyses.binary import BinaryEvent
from verax.inputs.arrays import Floats
from verax.kernels.ledger import compiles

# The blocks of a fit to n rows have about n^(2/3) rows, so each has some cells, however many rows there are.
_PER_BLOCK, _MOST = 8, 2048
# Up to so many rows are not worth the pass.
FEW_ROWS = 1024
# A row takes as long as so many probabilities of a score.
_WORK = 16
# In how many parts of equal width cells are looked for: first so many times as many as there are cells, then
# more where some are narrower.
_TIMES, _MOST_PARTS = 16, 2**16


def cells_for(n_rows: float) -> int:
    """The number of cells in which the outcomes of this many rows are drawn for a test.

    >>> cells_for(1000), cells_for(250_000), cells_for(10**8)
    (256, 503, 2048)
    """
    return max(settings.fewest_cells, min(_MOST, int(_PER_BLOCK * n_rows ** (1 / 3))))


def sorted_rows(event: BinaryEvent) -> Any:
    """The bits of each forecast, increasing, and last whether the event happened; None where a forecast is no
    probability. To sort both together takes a quarter of the time of finding the order of the forecasts.
    """
    ranked, happened = np.ascontiguousarray(event.ranked, dtype=np.float64), event.happened.view(np.uint8)
    packed = np.empty(len(ranked), np.uint64)
    if compiles(_WORK * len(ranked), "draws in cells"):
        from verax.kernels.walking import pack_rows

        n_others = pack_rows(ranked, happened, packed)
    else:
        n_others = len(ranked) - np.count_nonzero((ranked >= 0) & (ranked <= 1))
        # The sign of a probability is known, so that there is room for a bit.
        np.left_shift(ranked.view(np.uint64), np.uint64(1), out=packed)
        packed |= happened
    if n_others:
        return None
    packed.sort()
    return packed


@dataclass(frozen=True)
class Walk:
    """What one pass over the rows of an event, which count alike, found.

    Attributes
    ----------
    blocks : array of shape (B, 2)
        The blocks of the isotonic fit: the numbers of rows without and with the event.
    starts : array of shape (C,)
        The smallest forecast of each cell of neighbouring forecasts.
    size, happened, claimed : arrays of shape (C,)
        The number of its rows, of those with the event, and the sum of the forecasts.
    """

    blocks: Floats
    starts: Floats
    size: Floats
    happened: Floats
    claimed: Floats

    @staticmethod
    def pays(event: BinaryEvent) -> bool:
        """Whether an event is worth the pass; not where elements are not rows."""
        n = len(event.ranked)
        return n > FEW_ROWS and event.owner is None and compiles(_WORK * n, "draws in cells")

    @classmethod
    def of(cls, packed: Any) -> Walk:
        """The pass over `sorted_rows`."""
        from verax.kernels.walking import count_pools, walk, walk_apart

        n = len(packed)
        most = cells_for(n)
        n_pools = count_pools(packed)
        scale = most / float(n) if n_pools > most else 0.0
        starts, sums, blocks = np.empty(most), np.empty((3, most)), np.empty((n, 2))
        if n_pools == n and scale > 0:
            turns = np.empty(n + 3, np.int64)
            n_cells, n_blocks = walk_apart(packed, scale, turns, starts, sums, blocks)
        else:
            n_cells, n_blocks = walk(packed, scale, starts, sums, blocks)
        size, happened, claimed = sums[:, :n_cells].copy()
        return cls(blocks[:n_blocks].copy(), starts[:n_cells].copy(), size, happened, claimed)


def cells_of(starts: Floats, values: Floats) -> Any:
    """The cell of each forecast, of cells that begin at `starts`."""
    n = len(values)
    if n <= FEW_ROWS or not compiles(_WORK * n, "draws in cells"):
        return np.maximum(np.searchsorted(starts, values, side="right") - 1, 0)
    from verax.kernels.walking import find_cells, find_near_cells

    out = np.empty(n, np.uint16)
    parts = 1 << (_TIMES * len(starts) - 1).bit_length()
    guide = _guide(starts, parts)
    while not _is_near(guide) and 2 * parts <= min(_MOST_PARTS, n):
        parts *= 2
        guide = _guide(starts, parts)
    values = np.ascontiguousarray(values, dtype=np.float64)
    if _is_near(guide):
        find_near_cells(values, np.append(starts, np.inf), guide, out)
    else:
        find_cells(values, np.ascontiguousarray(starts), guide, out)
    return out


def _guide(starts: Floats, parts: int) -> Any:
    """The last cell that begins at or below each multiple of one over the number of parts, from 0 to 1.

    The number is a power of two, so that the multiples are exact.
    """
    first = np.ceil(starts * parts).astype(np.int64)
    last = np.cumsum(np.bincount(first, minlength=parts + 1)) - 1
    return np.maximum(last, 0).astype(np.uint16)


def _is_near(guide: Any) -> bool:
    """Whether a guide tells the cell of every value but for the next one."""
    return bool(guide[0] == 0 and (guide[1:] - guide[:-1] <= 1).all())


def others_of(event: BinaryEvent) -> Floats:
    """The probabilities of the opposite; empty where they are one minus those of the event."""
    return np.zeros(0) if event.others is None else event.others


def squared_error(event: BinaryEvent) -> float:
    """The mean squared error of an event."""
    from verax.kernels.walking import squared_losses

    total: float = squared_losses(event.given, others_of(event), event.happened.view(np.uint8))
    return total / len(event.given)
