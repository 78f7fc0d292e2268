"""Isotonic fits: pools of forecasts drawn together until their frequencies do not decrease."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from verax.inputs.arrays import Floats, Ints
from verax.kernels.ledger import compiles

# Fitting a number by array calls takes this many times as long as scoring one: for a card of three classes a
# tenth of a second, and loading kernels takes half a second.
WORK = 3
# A fit of a handful of pools by array calls takes as long as one of this many.
OVERHEAD = 2000
# A few rounds join nearly all pools. Some shapes need one round per pool, and are left to a loop.
_ROUNDS = 100


@dataclass(frozen=True)
class IsotonicFit:
    """The isotonic fit to an event's pools.

    Attributes
    ----------
    kept : (P,) bool array
        Which pools have a positive weight; the others have no part in the fit.
    sizes : (B,) int array
        The number of these pools in each block of equal recalibrated value.
    blocks : array of shape (B, 2)
        The weights of the blocks without and with the event.
    """

    kept: Any
    sizes: Any
    blocks: Floats

    @classmethod
    def of_blocks(cls, blocks: Floats, weight: Floats) -> IsotonicFit:
        """The fit to pools of these numbers of rows, whose blocks are known."""
        ends = np.searchsorted(np.cumsum(weight), np.cumsum(blocks.sum(axis=1))) + 1
        return cls(np.ones(len(weight), np.bool_), np.diff(ends, prepend=0), blocks)

    @property
    def values(self) -> Floats:
        """The recalibrated value of each pool that carries weight."""
        return np.repeat(self.blocks[:, 1] / self.blocks.sum(axis=1), self.sizes)


def isotonic_fit(cells: Floats) -> IsotonicFit:
    """The non-decreasing function of the forecast that fits the event best, by every proper score.

    `cells` are the weights of pools without and with the event, (P, 2).

    >>> isotonic_fit(np.array([[9.0, 1.0], [5.0, 5.0], [7.0, 3.0], [1.0, 9.0]])).values.tolist()
    [0.1, 0.4, 0.4, 0.9]
    """
    kept = cells[:, 0] + cells[:, 1] > 0
    cells = cells if kept.all() else cells[kept]
    first = np.zeros(len(cells), np.bool_)
    first[:1] = True
    blocks, _, pools = isotonic_fits(cells.T, first)
    return IsotonicFit(kept, sizes_of(pools, len(cells)), blocks)


def sizes_of(begins: Ints, n: int) -> Ints:
    """How many of n items belong to each of the stretches that begin there."""
    return np.concatenate([begins[1:], [n]]) - begins


def isotonic_fits(cells: Floats, first: Any) -> tuple[Floats, Ints, Ints]:
    """The blocks of several isotonic fits, (M, 2), where those of each begin, and the first pool of each.

    `cells` has the weights of the pools of all fits without and with the event, (2, P), and `first` says
    which pools begin a fit. Values are read off the sums of the blocks: 0 and 1 are exact, and so are their
    entropies. By array calls, pools whose frequencies do not increase are added up at once, again and again
    until all increase.

    >>> cells = np.array([[1.0, 0.0, 2.0, 0.0, 1.0], [0.0, 1.0, 1.0, 1.0, 0.0]])
    >>> isotonic_fits(cells, np.array([True, False, False, True, False]))
    (array([[1., 0.],
           [2., 2.],
           [1., 1.]]), array([0, 2]), array([0, 1, 3]))
    """
    compiled = compiles(WORK * (len(first) + OVERHEAD), "isotonic fits")
    pools = np.arange(len(first))
    for _ in range(0 if compiled else _ROUNDS):
        with np.errstate(invalid="ignore"):
            frequency = cells[1] / (cells[0] + cells[1])
        rises = first.copy()
        rises[1:] |= frequency[1:] > frequency[:-1]
        if rises.all():
            return np.ascontiguousarray(cells.T), np.flatnonzero(first), pools
        begins = np.flatnonzero(rises)
        cells, first, pools = np.add.reduceat(cells, begins, axis=1), first[begins], pools[begins]
    from verax.kernels.celldraws import fit_cells

    blocks, fits, firsts = fit_cells(np.ascontiguousarray(cells, float), first, compiled=compiled)
    return blocks, fits, pools[firsts]
