"""How far isotonic fits to bins follow the noise of outcomes, by draws of each event on its own.

`optimism` has the same for rows in memory. Here rows of a bin have one forecast, and rows of unequal weights
count as the number of rows of one weight that are as informative.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from verax.analyses.calibration.cells import effective_rows, gains
from verax.analyses.calibration.events import Split, recalibrate
from verax.analyses.calibration.eventsums import EventBins, SummedEvent
from verax.analyses.calibration.optimism import smooth_frequencies
from verax.analyses.units import sums_at
from verax.inputs.arrays import Floats, Ints

# Chances are rounded, so that draws do not depend on the order in which rows were added up.
_DECIMALS = 12
# Smaller gains of the squared error are rounding.
_ROUNDING = 1e-14


@dataclass(frozen=True)
class EventFit:
    """The smooth recalibration of an event, which need not be monotone, and the isotonic fit to it.

    Attributes
    ----------
    numbers : Ints
        (B,) the numbers of the bins, increasing.
    level : int
        How many times neighbouring bins were joined.
    share, rows : arrays
        (B,) the share of the weight of each bin, and how many rows it counts for.
    chance, limit : Floats
        (B,) the smooth recalibration, and the isotonic fit to it.
    cell : Ints
        (B,) which of a few cells each bin belongs to.
    rate : float
        How often the event happened.
    """

    numbers: Ints
    level: int
    share: Floats
    rows: Ints
    chance: Floats
    limit: Floats
    cell: Ints
    rate: float

    @classmethod
    def of(cls, event: SummedEvent, how: Split, n_cells: int, *, copies: bool) -> EventFit:
        """From the bins of an event."""
        bins, sums = event.bins, event.sums
        total = float(bins.weight.sum())
        share = bins.weight / total
        rows = effective_rows(bins.weight, bins.squares, copies=copies)
        smooth = smooth_frequencies(share, bins.happened / total, share**2 / rows)
        limit = smooth
        if not bool((smooth[1:] >= smooth[:-1]).all()):
            limit = recalibrate(np.stack([share - share * smooth, share * smooth], axis=1)).values
        if how.binary == "log":
            # Never certain, so that no loss is infinite.
            limit = np.clip(limit, 0.25 / sums.n_rows, 1 - 0.25 / sums.n_rows)
        middle = (np.cumsum(share) - share / 2) * n_cells
        cell = np.minimum(middle.astype(np.int64), n_cells - 1)
        rate = float(bins.happened.sum()) / total
        return cls(sums.numbers(event.i), sums.level, share, rows, smooth, limit, cell, rate)

    def plug_in(self, bins: EventBins, how: Split) -> tuple[float, float]:
        """Miscalibration and discrimination under the smooth recalibration; infinite where that may be."""
        expected = float(self.share @ how.expected(self.limit, 1 - self.limit, self.chance))
        given = float(self.share @ how.expected(bins.forecast, 1 - bins.forecast, self.chance))
        mean = float(self.share @ self.chance)
        return given - expected, how.entropy(np.array([[1 - mean, mean]])) - expected

    def optimism(self, how: Split, n: int, rng: np.random.Generator) -> Floats:
        """What the isotonic fit and the frequency gain by following noise of independent rows, (n, 2)."""
        return gains(how, self.share, self.limit, self.chance, self._drawn(n, rng))

    def _drawn(self, n: int, rng: np.random.Generator) -> Floats:
        chance = np.round(np.clip(self.chance, 0.0, 1.0), _DECIMALS)
        return np.array([rng.binomial(self.rows, chance) / self.rows * self.share for _ in range(n)])

    # ---- rows that belong together ---------------------------------------------------------

    def wild_optimism(self, how: Split, wild: Floats, n: int, rng: np.random.Generator) -> Floats:
        """The same where rows belong to groups: `wild` are the weights of the event in cells, (n, C).

        Cells are wider than bins, and wild outcomes are no zeros and ones. So it is the gain of the bins,
        times what groups make of that of the cells, by the squared error.
        """
        squared = replace(how, binary="squared", unit=1.0)
        share, limit, chance = self.in_cells(self.share), self.mean(self.limit), self.mean(self.chance)
        drawn = self._drawn(n, rng)
        plain = np.array([self.in_cells(each) for each in drawn])
        found = gains(squared, share, limit, chance, wild)
        independent = gains(squared, share, limit, chance, plain).mean(axis=0)
        own = gains(how, self.share, self.limit, self.chance, drawn).mean(axis=0)
        ratio: Floats = np.divide(own, independent, out=np.ones(2), where=independent > _ROUNDING)
        return found * ratio

    def wild_miscalibration(self, how: Split, bins: EventBins, wild: Floats, observed: Floats) -> Floats:
        """What the miscalibrations of wild outcomes, (n, C), exceed that of the outcomes in cells by."""
        share, given = self.in_cells(self.share), self.mean(np.clip(bins.forecast, 0.0, 1.0))
        found = gains(how, share, given, given, np.concatenate([observed[None], wild]))[:, 0]
        return np.asarray(found[1:] - found[0])

    def in_cells(self, values: Floats) -> Floats:
        """The sums of values of bins in each cell."""
        return sums_at(self.cell, values, int(self.cell[-1]) + 1)

    def mean(self, values: Floats) -> Floats:
        """The means of values of bins in each cell; zero in cells without any."""
        share = self.in_cells(self.share)
        return np.divide(self.in_cells(self.share * values), share, out=np.zeros_like(share), where=share > 0)
