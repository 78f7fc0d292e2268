"""Outcomes of calibrated forecasts, drawn in cells of neighbouring forecasts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from verax.analyses.calibration.events import Split
from verax.analyses.calibration.eventsums import EventBins
from verax.analyses.calibration.refits import (
    at_once,
    block_losses,
    draw_keys,
    finite,
    first_of_each,
    isotonic_fits,
    sides,
)
from verax.analyses.calibration.walks import Walk, cells_for
from verax.common.caching import cached_property
from verax.common.hashing import mixed
from verax.inputs.arrays import Floats, Ints
from verax.kernels.ledger import compiles

# The largest number of values that a band is computed for. Beyond, neighbouring forecasts are drawn
# together in cells of a two-thousandth of the weight, which is far finer than the blocks of the fit.
BAND_CELLS = 2048
# So many values are halved at a time: a cache holds them.
_BLOCK = 2**14
# So many shares of cells are drawn together, which a cache holds, but at least some draws.
_TOGETHER, _FEWEST_DRAWS = 2**16, 32
# Chances are rounded, so that draws do not depend on the order in which rows were added up.
_DECIMALS = 12
# Counts with at least this variance are drawn from the normal distribution, as one of these quantiles.
_NORMAL, _QUANTILES = 25.0, 2**12
# Counts of less variance do not reach the first number; where to look for them is found in so many places.
_COUNTS, _PLACES = 160, 128
# Drawing and fitting by array calls takes so many times as long as scoring.
_WORK = 16


def effective_rows(weight: Floats, squares: Floats, *, copies: bool) -> Ints:
    """How many rows of one weight tell as much as the rows of each bin; of copies, as many as there are."""
    rows = weight if copies else weight**2 / squares
    return np.maximum(np.round(rows), 1).astype(np.int64)


def cell_of(weight: Floats, most: int) -> Ints:
    """The cell of each value; neighbours share one where there are more values than cells."""
    if len(weight) <= most:
        return np.arange(len(weight))
    middle = np.cumsum(weight)
    for start in range(0, len(weight), _BLOCK):
        # Some at a time, because there may be many.
        middle[start : start + _BLOCK] -= weight[start : start + _BLOCK] / 2
    middle *= most / weight.sum()
    cell = middle.astype(np.int16)
    # They do not decrease, so those without any value are left out by counting.
    rises = np.zeros(len(cell), np.bool_)
    np.greater(cell[1:], cell[:-1], out=rises[1:])
    return np.cumsum(rises, dtype=np.int32)


class CellDraws:
    """Outcomes of calibrated forecasts in cells: bins, or neighbouring bins where there are very many.

    Attributes
    ----------
    cell : (P,) int array
        The cell of each bin.
    n : int
        The number of cells.
    begins : (n,) int array
        The first bin of each cell.
    size, claimed, happened : (n,) arrays
        The weight of each cell, that of its rows times their forecasts, and that of the rows with the event.
    """

    def __init__(self, bins: EventBins, how: Split, cell: Ints) -> None:
        self.cell: Ints = cell
        self._how = how
        self.n: int = int(cell[-1]) + 1
        self.begins: Ints = np.append(0, np.flatnonzero(cell[1:] != cell[:-1]) + 1)
        self.size: Floats
        self.claimed: Floats
        self.happened: Floats
        self.size, self.claimed, self.happened, self._squares = (
            self.sums(column) for column in (bins.weight, bins.claimed, bins.happened, bins.squares)
        )
        chance: Floats = np.clip(self.claimed / self.size, 0.0, 1.0)
        self._chance = np.round(chance, _DECIMALS)
        # An infinite loss belongs to an outcome that is never drawn.
        self._never, self._ever = (finite(each) for each in sides(how, self._chance, 1 - self._chance))
        self._weight = float(self.size.sum())

    @classmethod
    def for_band(cls, bins: EventBins, how: Split) -> CellDraws:
        """Cells that are narrow enough for a curve."""
        return cls(bins, how, cell_of(bins.weight, BAND_CELLS))

    @classmethod
    def for_test(cls, bins: EventBins, how: Split, n_rows: int) -> CellDraws:
        """Cells that are narrow enough for a test of this many rows."""
        return cls(bins, how, cell_of(bins.weight, cells_for(n_rows)))

    @classmethod
    def walked(cls, walk: Walk, how: Split) -> CellDraws:
        """The same of rows in memory that a pass has put in cells."""
        forecast = walk.claimed / walk.size
        bins = EventBins(walk.size, walk.happened, walk.claimed, walk.size, forecast, forecast)
        return cls(bins, how, np.arange(len(walk.size)))

    def sums(self, values: Floats) -> Floats:
        """The sums of values of bins in each cell."""
        return values if self.n == len(self.cell) else np.add.reduceat(values, self.begins)

    def binomial(self, rng: np.random.Generator, *, copies: bool) -> Callable[[], Floats]:
        """What draws the weight of the event in each cell from independent rows."""
        rows = effective_rows(self.size, self._squares, copies=copies)
        return lambda: rng.binomial(rows, self._chance) / rows * self.size

    def miscalibrations(self, n: int, seed: list[int], exact: float, *, copies: bool) -> Floats:
        """The miscalibrations of calibrated forecasts of independent rows, without the curves.

        They are moved by what `exact`, the miscalibration of the bins, exceeds that of the cells by.
        """
        rows = effective_rows(self.size, self._squares, copies=copies)
        more, base = self._ever - self._never, float((self.size * self._never).sum())
        fits = drawn_fits(self._how, rows, self._chance, n, seed, self.size, more)
        return (base + fits.extra - fits.least) / self._weight + self._shift(exact)

    def gains(
        self, n: int, seed: list[int], chance: Floats, limit: Floats, *, exact: float, copies: bool
    ) -> Floats:
        """What an isotonic fit gains on `limit`, and a constant on the mean chance, by following the noise of
        outcomes that have these chances in the cells: (n, 2).

        A fit to bins gains more than one to cells: by what their least losses of the outcomes that were
        observed differ, of which `exact` is that of the bins.
        """
        how, size = self._how, self.size / self._weight
        rows = effective_rows(self.size, self._squares, copies=copies)
        chance = np.asarray(np.round(np.clip(chance, 0.0, 1.0), _DECIMALS), float)
        never, ever = sides(how, limit, 1 - limit)
        base, rate = float((size * never).sum()), float((size * chance).sum())
        within = max(self._least / self._weight - exact, 0.0)
        fits = drawn_fits(how, rows, chance, n, seed, size, ever - never)
        whole, frequency = np.stack([1 - fits.event, fits.event], axis=1), np.full(n, rate)
        constant = how.expected(frequency, 1 - frequency, fits.event) - block_losses(how, whole)
        return np.stack([base + fits.extra - fits.least + within, constant], axis=1)

    @cached_property
    def _least(self) -> float:
        """The least loss of an isotonic fit to the outcomes that were observed."""
        shares = (self.happened / self.size)[:, None]
        return float(CellFits(*_fitted_shares(self._how, shares, self.size, self.size)).least[0])

    def _shift(self, exact: float) -> float:
        """How much `exact`, the miscalibration of the bins, exceeds that of the cells, which are wider."""
        without = self.size - self.happened
        loss = float((without * self._never).sum() + (self.happened * self._ever).sum())
        observed = (loss - self._least) / self._weight
        return exact - observed if math.isfinite(exact) and math.isfinite(observed) else 0.0

    def calibrated(self, n: int, draw: Callable[[int], Floats], exact: float) -> tuple[Floats, Floats]:
        """The curves and the miscalibrations of calibrated forecasts, of which `draw` makes some at a time.

        The miscalibrations are moved by what `exact`, that of the bins, exceeds that of the cells by.
        """
        curves, found = np.empty((n, self.n)), np.empty(n)
        step = at_once(self.n)
        for i in range(0, n, step):
            part = slice(i, min(i + step, n))
            drawn = draw(part.stop - part.start)
            fit, pools, found[part] = self._fitted(drawn)
            curves[part] = np.repeat(fit, np.diff(pools, append=drawn.size)).reshape(drawn.shape)
        return curves, found + self._shift(exact)

    def _fitted(self, happened: Floats) -> tuple[Floats, Ints, Floats]:
        """The isotonic fits to weights of the event in cells, (b, n): the frequency and the first cell of
        each block, and what the fits gain on the forecasts.

        Wild outcomes may be less than nothing or more than all of a cell: frequencies are kept in [0, 1].
        """
        without = self.size - happened
        cells = np.stack([without, happened]).reshape(2, -1)
        blocks, begins, pools = isotonic_fits(cells, first_of_each(happened.shape))
        fit = np.clip(blocks[:, 1] / blocks.sum(axis=1), 0.0, 1.0)
        # No matrix product: its sums depend on the number of threads.
        loss = np.einsum("bi,i->b", without, self._never) + np.einsum("bi,i->b", happened, self._ever)
        least = np.add.reduceat(block_losses(self._how, blocks), begins)
        return fit, pools, (loss - least) / self._weight


@dataclass(frozen=True)
class CellFits:
    """Isotonic fits to shares of cells that have the event: what is known of each.

    Attributes
    ----------
    event : (n,) array
        The weight with the event.
    extra : (n,) array
        The sum over the cells of that weight times what was asked for.
    least : (n,) array
        The loss of the fit.
    """

    event: Floats
    extra: Floats
    least: Floats


def drawn_fits(
    how: Split, rows: Ints, chance: Floats, n: int, seed: list[int], size: Floats, more: Floats
) -> CellFits:
    """Fits to n draws of the events of each cell's independent rows, some of them at a time.

    Like outcomes of rows (`refits`), draws come from the place of the cell and the key of the draw alone.
    """
    drawn = drawn_shares(rows, chance, n, seed)
    found = [np.zeros((3, 0)), *(_fitted_shares(how, shares, size, more) for shares in drawn)]
    return CellFits(*np.concatenate(found, axis=1))


def drawn_shares(rows: Ints, chance: Floats, n: int, seed: list[int]) -> Iterator[Floats]:
    """The share of each cell's independent rows that have the event, (C, b), in n draws: some at a time."""
    keys = draw_keys(n, *seed)
    # Chances above a half are drawn as those of the opposite, so that the chance of no row is not tiny.
    opposite = chance > 0.5
    chance, count = np.where(opposite, 1 - chance, chance), rows.astype(float)
    variance = chance * (1 - chance) / count
    spread = np.where(variance * count**2 >= _NORMAL, np.sqrt(variance), 0.0)
    none = np.where(spread > 0, 0.0, (1 - chance) ** count)
    quick = compiles(_WORK * n * len(rows), "draws in cells")
    step = max(_FEWEST_DRAWS, _TOGETHER // len(rows))
    for i in range(0, n, step):
        own = keys[i : i + step]
        if quick:
            from verax.kernels.celldraws import draw_shares

            drawn = np.empty((len(rows), len(own)))
            room = np.empty(_COUNTS), np.empty(_PLACES, np.int64)
            draw_shares(own, count, chance, none, spread, opposite, _quantiles(), *room, drawn)
        else:
            drawn = _shares(own, count, chance, none, spread).T
            drawn = np.where(opposite[:, None], 1 - drawn, drawn) if opposite.any() else drawn
        yield drawn


@cache
def _quantiles() -> Floats:
    """Equally likely values with the distribution of a standard normal variable."""
    from scipy.special import ndtri

    z: Floats = ndtri((np.arange(_QUANTILES) + 0.5) / _QUANTILES)
    return np.asarray(z / z.std())


def _shares(keys: Any, rows: Floats, chance: Floats, none: Floats, spread: Floats) -> Floats:
    """The same by array calls."""
    uniform = (mixed(np.arange(len(rows), dtype=np.uint64) ^ keys[:, None]) >> np.uint64(11)) * 2.0**-53
    at = (uniform * _QUANTILES).astype(np.int64)
    drawn: Floats = np.clip(chance + spread * _quantiles()[at], 0.0, 1.0)
    few = np.flatnonzero(spread == 0)
    n, odds, each = rows[few], chance[few] / (1 - chance[few]), none[few]
    most = int(min(n.max(initial=0), _COUNTS - 1))
    below = np.empty((most + 1, len(few)))
    total = below[0] = each
    for k in range(most):
        each = each * ((n - k) / (k + 1)) * odds
        total = total + each
        below[k + 1] = total
    for i, c in enumerate(few):
        counts = np.searchsorted(below[: int(min(n[i], most)), i], uniform[:, c], side="right")
        drawn[:, c] = counts / n[i]
    return drawn


def _fitted_shares(how: Split, shares: Floats, size: Floats, more: Floats) -> Floats:
    """The numbers of `CellFits` for shares of cells of these sizes, (C, b): (3, b)."""
    if compiles(_WORK * shares.size, "draws in cells"):
        from verax.kernels.celldraws import fit_shares

        out = np.empty((3, shares.shape[1]))
        unit = how.unit if how.binary == "log" else 0.0
        fit_shares(np.ascontiguousarray(shares), size, more, unit, np.empty((len(size), 2)), out)
        return out
    event = shares.T * size
    cells = np.stack([size - event, event]).reshape(2, -1)
    blocks, begins, _ = isotonic_fits(cells, first_of_each(event.shape))
    least = np.add.reduceat(block_losses(how, blocks), begins)
    # No matrix product: its sums depend on the number of threads.
    return np.stack([np.add.reduceat(blocks[:, 1], begins), np.einsum("bi,i->b", event, more), least])


def gains(how: Split, share: Floats, limit: Floats, chance: Floats, draws: Floats) -> Floats:
    """What an isotonic fit gains on `limit`, and a constant on the mean chance, in each draw: (n, 2)."""
    here = share > 0
    share, limit, draws = share[here], limit[here], draws[:, here]
    rate = float(share @ chance[here])

    def each(s: Floats) -> Floats:
        given, total = np.tile(limit, (len(s), 1)), s.sum(axis=1)
        loss = np.einsum("bi,i->b", how.expected(given, 1 - given, s / share), share)
        blocks, begins, _ = isotonic_fits(np.stack([share - s, s]).reshape(2, -1), first_of_each(s.shape))
        least = np.add.reduceat(block_losses(how, blocks), begins)
        whole, frequency = np.stack([1 - total, total], axis=1), np.full(len(s), rate)
        constant = how.expected(frequency, 1 - frequency, total) - block_losses(how, whole)
        return np.stack([loss - least, constant], axis=1)

    step = at_once(len(share))
    return np.concatenate([each(draws[i : i + step]) for i in range(0, len(draws), step)])
