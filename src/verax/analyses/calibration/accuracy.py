"""How uncertain the components of a score are where rows come in parts.

What rows in memory give (`optimism`) comes from bins and from a second pass: the variances from sums over
rows or groups (`component_sums`), what isotonic fits gain by following noise from outcomes that are drawn bin
by bin (`event_fits`). Independent rows are drawn event by event, and events are assumed to rise and fall
together. Groups keep their signs in all events.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from verax.analyses.calibration.component_sums import ComponentRecipe, DeviationRecipe, n_cells_for
from verax.analyses.calibration.event_fits import EventFit
from verax.analyses.calibration.events import Split
from verax.analyses.calibration.eventsums import EventSums, SummedEvent
from verax.analyses.calibration.optimism import Uncertainty, uncertainty_of
from verax.analyses.calibration.sampling import FORECAST, SMOOTH, refits_for
from verax.analyses.calibration.sources import EventSource
from verax.analyses.unitsums import Means, means_of
from verax.errors import InputError
from verax.inference.intervals import Resampling
from verax.inputs.arrays import Floats, Ints
from verax.inputs.handles import Handle, Recipe


@dataclass(frozen=True)
class Accuracy:
    """How uncertain the components of every event and of the whole are.

    Attributes
    ----------
    parts : list of Uncertainty
        Of each event.
    whole : Uncertainty
        Of what they add up to.
    calibrated : list of arrays or None
        Of groups, for each event what the miscalibrations of calibrated forecasts exceed the observed one by;
        those of all events belong together. None where rows are independent.
    """

    parts: list[Uncertainty]
    whole: Uncertainty
    calibrated: list[Floats] | None


@dataclass(frozen=True)
class GroupSigns:
    """The deviations of groups, or of hashes of them, whose signs are drawn: the wild bootstrap.

    Attributes
    ----------
    fits : tuple of EventFit
        The fit of each event, which knows its cells.
    sums : array of shape (S, E, C, 2)
        Sums of the weights of what happened minus chances: of the recalibration, of the forecast.
    """

    fits: tuple[EventFit, ...]
    sums: Floats

    @classmethod
    def of(
        cls, handle: Handle, source: EventSource, how: Split, events: Sequence[SummedEvent]
    ) -> GroupSigns | None:
        """From another pass over the rows; None where there are no rows or no groups."""
        sums = events[-1].sums
        if sums.groups is None or not handle.has_rows:
            return None
        fits = fits_of(how, events, copies=False)
        recipe = DeviationRecipe.of(source, fits, sums.labels)
        return cls(fits, handle.summarise({"deviations": recipe})["deviations"].sums.high)

    def at(self, i: int) -> EventSigns:
        """Those of one event, in the cells that have bins."""
        used, cell = np.unique(self.fits[i].cell, return_inverse=True)
        return EventSigns(cell, self.sums[:, i, used, 1])


@dataclass(frozen=True)
class EventSigns:
    """The same of one event, around the forecast: the cell of each bin, and (S, C) deviations."""

    cell: Ints
    sums: Floats

    def drawn(self, claimed: Floats, rng: np.random.Generator) -> Floats:
        """(C,) the weights of the event in cells where `claimed` is expected, with random signs."""
        signs = rng.choice([-1.0, 1.0], len(self.sums))
        return np.asarray(claimed + np.einsum("s,sc->c", signs, self.sums))


def fits_of(how: Split, events: Sequence[SummedEvent], *, copies: bool) -> tuple[EventFit, ...]:
    """The fit of each event."""
    cells = n_cells_for(len(events))
    return tuple(EventFit.of(event, how, cells, copies=copies) for event in events)


def accuracy_of(
    handle: Handle,
    source: EventSource,
    how: Split,
    events: Sequence[SummedEvent],
    times: Sequence[float],
    plan: Resampling,
) -> Accuracy | None:
    """From another pass over the rows of a handle; None where there are no rows, only summaries.

    Mean number of elements of each event per row.
    """
    if not plan.replicates or not handle.has_rows:
        return None
    found = events[-1].sums
    grouped, copies = found.groups is not None, plan.copies and found.groups is None
    check_units(found, copies=copies)
    fits = fits_of(how, events, copies=copies)
    factors = tuple(how.factor * each for each in times)
    recipe = ComponentRecipe(source, how, fits, tuple(times), factors, copies)
    also: dict[str, Recipe[Any]] = {}
    if grouped:
        also["deviations"] = DeviationRecipe.of(source, fits, found.labels)
    means = means_of(handle, recipe, also)
    n, calibrated = refits_for(plan.replicates), None
    if grouped:
        signs = GroupSigns(fits, means.found["deviations"].sums.high)
        optimism = [_wild_optimism(signs, i, event, how, plan, n) for i, event in enumerate(events)]
        calibrated = [_wild_miscalibration(signs, i, event, how, plan) for i, event in enumerate(events)]
    else:
        optimism = [fit.optimism(how, n, _stream(plan, SMOOTH, i)) for i, fit in enumerate(fits)]
    return _read(means, events, factors, fits, how, optimism, calibrated)


def check_units(found: EventSums, *, copies: bool) -> None:
    """Refuse a single group and fractional copies where intervals are requested."""
    if found.n_groups == 1:
        raise InputError("must name at least two groups for intervals", argument="groups")
    if copies and not found.whole:
        raise InputError("must be whole numbers where they count copies", argument="weights")


def _read(
    means: Means,
    events: Sequence[SummedEvent],
    factors: Sequence[float],
    fits: Sequence[EventFit],
    how: Split,
    optimism: Sequence[Floats],
    calibrated: list[Floats] | None,
) -> Accuracy:
    variances = np.diagonal(means.covariance, axis1=1, axis2=2)
    parts, plug_ins, uncertain = [], [], []
    for i, (event, fit) in enumerate(zip(events, fits, strict=True)):
        plug_in = np.array(fit.plug_in(event.bins, how))
        certain = math.isinf(plug_in[0])
        if certain:
            # Where certain forecasts may fail, the mean over the smooth recalibration is infinite.
            plug_in[0] = means.mean[i, 1]
        plug_ins.append(factors[i] * plug_in)
        uncertain.append(certain)
        parts.append(uncertainty_of(optimism[i], plug_in, variances[i], means.units, certain=certain))
    # Draws of independent rows are put in order, so that those of all events rise and fall together.
    drawn = [np.sort(own, axis=0) if calibrated is None else own for own in optimism]
    total = np.sum([factor * own for factor, own in zip(factors, drawn, strict=True)], axis=0)
    plug_in = np.sum(plug_ins, axis=0)
    whole = uncertainty_of(total, plug_in, variances[-1], means.units, certain=any(uncertain))
    return Accuracy(parts, whole, calibrated)


def _stream(plan: Resampling, stream: int, i: int) -> np.random.Generator:
    return np.random.default_rng([plan.seed, stream, i])


def _wild_optimism(
    signs: GroupSigns, i: int, event: SummedEvent, how: Split, plan: Resampling, n: int
) -> Floats:
    """What isotonic fit and frequency of an event gain by following noise."""
    fit = signs.fits[i]
    wild = _wild(signs, i, 0, fit.in_cells(fit.share * fit.chance), event, plan, SMOOTH, n)
    return fit.wild_optimism(how, wild, n, _stream(plan, SMOOTH, i))


def _wild_miscalibration(
    signs: GroupSigns, i: int, event: SummedEvent, how: Split, plan: Resampling
) -> Floats:
    """By how much the miscalibrations of calibrated forecasts exceed the observed one of an event."""
    if how.binary != "squared":
        return np.zeros(0)
    fit, bins = signs.fits[i], event.bins
    total = float(bins.weight.sum())
    base = fit.in_cells(bins.claimed / total)
    wild = _wild(signs, i, 1, base, event, plan, FORECAST, plan.replicates)
    return fit.wild_miscalibration(how, bins, wild, fit.in_cells(bins.happened / total))


def _wild(
    signs: GroupSigns,
    i: int,
    kind: int,
    base: Floats,
    event: SummedEvent,
    plan: Resampling,
    stream: int,
    n: int,
) -> Floats:
    """(n, C) the shares of an event in cells, with random signs that are the same for all events."""
    total = float(event.bins.weight.sum())
    rng = np.random.default_rng([plan.seed, stream])
    drawn = np.array([rng.choice([-1.0, 1.0], len(signs.sums)) for _ in range(n)])
    own = signs.sums[:, i, : len(base), kind] / total
    return np.asarray(base + np.einsum("ns,sc->nc", drawn, own))
