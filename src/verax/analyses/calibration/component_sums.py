"""How uncertain the components of a score are where rows come in parts: a second pass over them.

The first pass gave the fits of all events. Now the losses of each row are known against those of the fits,
and so are the variances of the components, as `optimism` has them. Where rows belong to groups, their
deviations are summed by group, or by a hash of it, and by a few cells of the forecast: giving each sum a
random sign draws outcomes in which rows of a group keep together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from verax.analyses.calibration.event_fits import EventFit
from verax.analyses.calibration.event_keys import keys_of
from verax.analyses.calibration.events import Split
from verax.analyses.calibration.sources import EventSource
from verax.analyses.units import sums_at
from verax.analyses.unitsums import UnitColumns, UnitRecipe, UnitSums
from verax.common.hashing import name_hash
from verax.common.summaries import Summary, merges
from verax.engines.sums import Sum, Sums
from verax.inputs.arrays import Floats, Ints
from verax.inputs.handles import Part, Recipe

# The sums by group, event and cell: at most so many numbers, and so many groups and cells.
_MOST, _SLOTS, _CELLS = 2**20, 512, 128


def n_cells_for(n_events: int) -> int:
    """How many cells of the forecast the deviations of groups are summed in."""
    return max(8, min(_CELLS, _MOST // (8 * n_events)))


@dataclass(frozen=True)
class ComponentRecipe(UnitRecipe):
    """The losses of each row beside those of the fits: for each event, and for what they add up to.

    Attributes
    ----------
    source : EventSource
        The events.
    how : Split
        How they are scored.
    fits : tuple of EventFit
        The fit of each.
    times, factors : tuple of float
        How many elements of each event a row has on average, and what its score is multiplied by in the sum.
    copies : bool
        Whether weights are numbers of copies.
    """

    source: EventSource
    how: Split
    fits: tuple[EventFit, ...]
    times: tuple[float, ...]
    factors: tuple[float, ...]
    copies: bool = False

    def take(self, part: Part) -> UnitSums:
        """The sums of some rows."""
        return UnitSums.of(self.columns(part), copies=self.copies)

    def columns(self, part: Part) -> UnitColumns:
        """Of some rows: the loss, less that of the fit, that of a constant less that of the fit, and it."""
        found = self.source.read(part)
        blocks = np.zeros((len(self.fits) + 1, 4, found.n_rows))
        with np.errstate(invalid="ignore"):
            for i, (event, fit) in enumerate(zip(found.each(), self.fits, strict=True)):
                limit = fit.limit[bins_of(event.ranked, fit)]
                rate = np.full(len(limit), fit.rate)
                loss, fitted, constant = (
                    self.how.losses(given, rest, event.happened)
                    for given, rest in ((event.given, event.rest), (limit, 1 - limit), (rate, 1 - rate))
                )
                for j, column in enumerate((loss, loss - fitted, constant - fitted, constant)):
                    blocks[i, j] = event.by_row(column, found.n_rows) / self.times[i]
                blocks[-1] += self.factors[i] * blocks[i]
            return UnitColumns(found.mass, blocks * found.mass, found.groups)


def bins_of(key: Floats, fit: EventFit) -> Ints:
    """The place of each forecast among the bins of a fit."""
    return np.minimum(np.searchsorted(fit.numbers, keys_of(key, fit.level)), len(fit.numbers) - 1)


class Deviations(Summary, kind="deviations of groups"):
    """(S, E, C, 2) sums of the weights of what happened, less chances: of the recalibration, of the forecast.

    S are groups or hashes of them, E events, C cells of the forecast.
    """

    sums: Sum = merges(Sums("slots", "events", "cells", 2))


@dataclass(frozen=True)
class DeviationRecipe(Recipe[Deviations]):
    """The deviations of groups in cells of the forecast.

    Attributes
    ----------
    source : EventSource
        The events.
    fits : tuple of EventFit
        The fit of each.
    slots : int
        In how many parts groups are told apart.
    names : array or None
        The hashes of the groups' names, in order, where each has a slot of its own; None where the hash
        decides. So slots do not depend on whether names are numbers or texts.
    """

    source: EventSource
    fits: tuple[EventFit, ...]
    slots: int
    names: Any

    @classmethod
    def of(cls, source: EventSource, fits: tuple[EventFit, ...], labels: Any) -> DeviationRecipe:
        """For these groups."""
        cells = max(int(fit.cell[-1]) + 1 for fit in fits)
        slots = max(8, min(_SLOTS, _MOST // (len(fits) * cells)))
        names = np.sort(_hashed(labels)) if len(labels) <= slots else None
        return cls(source, fits, min(slots, len(labels)), names)

    def take(self, part: Part) -> Deviations:
        """Of some rows."""
        found = self.source.read(part)
        assert found.groups is not None
        cells = max(int(fit.cell[-1]) + 1 for fit in self.fits)
        sums = np.zeros((self.slots, len(self.fits), cells, 2))
        slot = self._slots(found.groups.labels)[found.groups.codes]
        for i, (event, fit) in enumerate(zip(found.each(), self.fits, strict=True)):
            at = bins_of(event.ranked, fit)
            place = event.of_rows(slot) * cells + fit.cell[at]
            w = event.of_rows(found.mass)
            for j, chance in enumerate((fit.chance[at], np.clip(event.given, 0.0, 1.0))):
                own = sums_at(place, w * (event.happened - chance), self.slots * cells)
                sums[:, i, :, j] = own.reshape(self.slots, cells)
        return Deviations(Sum.of(sums))

    def _slots(self, labels: Any) -> Ints:
        hashed = _hashed(labels)
        if self.names is not None:
            return np.asarray(np.searchsorted(self.names, hashed))
        return np.asarray(hashed % np.uint64(self.slots), dtype=np.int64)


def _hashed(labels: Any) -> Any:
    """The hashes of names of groups."""
    return np.array([name_hash(label) for label in labels.tolist()], np.uint64)
