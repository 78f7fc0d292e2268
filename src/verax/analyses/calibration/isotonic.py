"""Isotonic fits: pools of forecasts drawn together until their frequencies do not decrease."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from verax.analyses.calibration.events import Split
from verax.inputs.arrays import Floats, Ints
from verax.kernels.ledger import compiles, spend

# Up to this number of pools, in one fit or in all, fitting in Python is faster than importing
# `scipy.optimize`.
_SMALL, _SMALL_IN_ALL = 20_000, 100_000


def isotonic_edges(values: Floats, weights: Floats) -> Ints:
    """Where the blocks of the non-decreasing fit begin, and the number of values last.

    >>> isotonic_edges(np.array([0.1, 0.5, 0.3, 0.9]), np.ones(4)).tolist()
    [0, 1, 3, 4]
    """
    many = len(values) > _SMALL or spend("isotonic fits", len(values)) > _SMALL_IN_ALL
    if many or "scipy.optimize" in sys.modules:
        from scipy.optimize import isotonic_regression

        return np.asarray(isotonic_regression(values, weights=weights).blocks)
    return _pool(values.tolist(), weights.tolist())


def _pool(values: list[float], weights: list[float]) -> Ints:
    """The same by pooling adjacent violators: a value joins the block before it unless it is larger."""
    means: list[float] = []
    masses: list[float] = []
    starts: list[int] = []
    for i, (mean, mass) in enumerate(zip(values, weights, strict=True)):
        start = i
        while means and means[-1] >= mean:
            before, start = masses.pop(), starts.pop()
            mean = (before * means.pop() + mass * mean) / (before + mass)
            mass += before
        means.append(mean)
        masses.append(mass)
        starts.append(start)
    return np.array([*starts, len(values)])


# The time for one pool of a fit, in probabilities scored.
_POOL_WORK = 16


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


def recalibrate(cells: Floats) -> IsotonicFit:
    """The non-decreasing function of the forecast that fits the event best, by every proper score.

    `cells` are the weights of pools without and with the event, (P, 2).
    """
    n = cells[:, 0] + cells[:, 1]
    kept = n > 0
    if not kept.all():
        cells, n = cells[kept], n[kept]
    if not len(n):
        return IsotonicFit(kept, np.zeros(0, np.int64), np.zeros((0, 2)))
    # Frequencies that do not increase from pool to pool end up in one block, so they are added up at once.
    frequency = cells[:, 1] / n
    begins = np.flatnonzero(np.concatenate([[True], frequency[1:] > frequency[:-1]]))
    del frequency
    edges, blocks = isotonic_blocks(_added(cells, begins) if len(begins) < len(n) else cells)
    return IsotonicFit(kept, np.diff(np.append(begins, len(n))[edges]), blocks)


def recalibrate_many(cells: Floats) -> IsotonicFit:
    """The same, by a compiled loop where pools are many; sums of weights may be rounded otherwise."""
    if not compiles(_POOL_WORK * len(cells), "fits to pools"):
        return recalibrate(cells)
    from verax.kernels.refits import fit_cells

    kept = cells[:, 0] + cells[:, 1] > 0
    cells = cells if kept.all() else cells[kept]
    first = np.zeros(len(cells), np.bool_)
    first[:1] = True
    blocks, _, pools = fit_cells(cells.T, first)
    return IsotonicFit(kept, np.diff(pools, append=len(cells)), blocks)


def isotonic_blocks(cells: Floats) -> tuple[Ints, Floats]:
    """Where the blocks of the isotonic fit to pools begin, with the end, and their weights, (B, 2)."""
    n = cells[:, 0] + cells[:, 1]
    edges = isotonic_edges(cells[:, 1] / n, n)
    # Values are read off the sums of the blocks: 0 and 1 are exact, and so are their entropies.
    return edges, _added(cells, edges[:-1])


def _added(cells: Floats, begins: Ints) -> Floats:
    """The sums of the rows from each beginning to the next."""
    added = np.empty((len(begins), 2))
    for column, total in zip(cells.T, added.T, strict=True):
        np.add.reduceat(column, begins, out=total)
    return added


# So many outcomes are drawn and fitted at a time: a cache holds them.
_BLOCK = 2**14
# Drawing and fitting a number by array calls takes this many times as long as scoring one: for a card of
# three classes a tenth of a second, and loading kernels takes half a second.
WORK = 3


def at_once(n_cells: int) -> int:
    """Number of draws fitted together, given the number of cells."""
    return max(1, _BLOCK // max(n_cells, 1))


@lru_cache(maxsize=64)
def draw_keys(n: int, *seed: int) -> Any:
    """One key for each of n draws; subgroups have the same, so they are kept."""
    keys = np.random.SeedSequence(seed).generate_state(n, np.uint64)
    keys.flags.writeable = False
    return keys


def block_losses(how: Split, blocks: Floats) -> Floats:
    """The loss of forecasting each block's frequency. Wild ones may be less than 0 or more than 1."""
    n = blocks.sum(axis=1)
    fit = np.clip(blocks[:, 1] / n, 0.0, 1.0)
    return np.asarray(n * how.expected(fit, 1 - fit, blocks[:, 1] / n))


def isotonic_fits(cells: Floats, first: Any) -> tuple[Floats, Ints, Ints]:
    """The blocks of several isotonic fits, (M, 2), where those of each begin, and the first pool of each.

    `cells` has the weights of the pools of all fits without and with the event, (2, P), and `first` says
    which pools begin a fit. Frequencies that do not increase from pool to pool end up in one block, so they
    are added up at once, again and again until all increase.

    >>> cells = np.array([[1.0, 0.0, 2.0, 0.0, 1.0], [0.0, 1.0, 1.0, 1.0, 0.0]])
    >>> isotonic_fits(cells, np.array([True, False, False, True, False]))
    (array([[1., 0.],
           [2., 2.],
           [1., 1.]]), array([0, 2]), array([0, 1, 3]))
    """
    if compiles(WORK * len(first), "isotonic fits"):
        from verax.kernels.refits import fit_cells

        return fit_cells(np.ascontiguousarray(cells, float), first)
    pools = np.arange(len(first))
    while True:
        with np.errstate(invalid="ignore"):
            frequency = cells[1] / (cells[0] + cells[1])
        rises = first.copy()
        rises[1:] |= frequency[1:] > frequency[:-1]
        if rises.all():
            return np.ascontiguousarray(cells.T), np.flatnonzero(first), pools
        begins = np.flatnonzero(rises)
        cells, first, pools = np.add.reduceat(cells, begins, axis=1), first[begins], pools[begins]


def first_of_each(shape: tuple[int, ...]) -> Any:
    """Which elements of b rows, one after the other, begin a row."""
    first = np.zeros(shape, np.bool_)
    first[:, 0] = True
    return first.ravel()


def sides(how: Split, given: Floats, rest: Floats) -> tuple[Floats, Floats]:
    """The losses if the event does not happen, and if it does."""
    return how.losses(given, rest, False), how.losses(given, rest, True)


def finite(losses: Floats) -> Floats:
    """The losses, zero instead of infinite."""
    infinite = np.isinf(losses)
    return np.where(infinite, 0.0, losses) if infinite.any() else losses
