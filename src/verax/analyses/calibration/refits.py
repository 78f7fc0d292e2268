"""Isotonic fits to outcomes that are drawn again and again."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from verax.analyses.calibration.events import Split
from verax.inputs.arrays import Floats, Ints
from verax.kernels.ledger import compiles

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
