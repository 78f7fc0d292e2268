"""How uncertain the components of a score are whose rows are not in memory.

What rows in memory give (`overfitting`) comes from bins and from a second pass: the variances from sums over
rows or groups (`componentsums`), what isotonic fits gain by following noise from outcomes that are drawn bin
by bin (`bindraws`). Where rows are independent, events are drawn one by one and are taken to rise and fall
together. Groups keep their signs in all events.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from verax.analyses.calibration.bindraws import EventFit
from verax.analyses.calibration.componentsums import (
    ComponentRecipe,
    DeviationRecipe,
    EventSource,
    n_cells_for,
)
from verax.analyses.calibration.events import Split
from verax.analyses.calibration.eventsums import EventSums
from verax.analyses.calibration.optimism import (
    FORECAST,
    SMOOTH,
    Uncertainty,
    refits_for,
    uncertainty_of,
)
from verax.analyses.unitsums import Means, means_of
from verax.errors import InputError
from verax.inference.intervals import Resampling
from verax.inputs.arrays import Floats
from verax.inputs.handles import Handle, Recipe


@dataclass(frozen=True)
class Scored:
    """An event of a score: its sums, its number in them, how many elements a row has, and its factor."""

    sums: EventSums
    i: int
    times: float
    factor: float


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


def accuracy_of(
    handle: Handle, source: EventSource, how: Split, events: Sequence[Scored], plan: Resampling
) -> Accuracy | None:
    """From another pass over the rows of a handle; None where there are no rows, only summaries."""
    if not plan.replicates or not handle.has_rows:
        return None
    found = events[-1].sums
    grouped, copies = found.groups is not None, plan.copies and found.groups is None
    _check(found, copies=copies)
    cells = n_cells_for(len(events))
    fits = tuple(EventFit.of(e.sums, e.i, how, cells, copies=copies) for e in events)
    times, factors = tuple(e.times for e in events), tuple(e.factor * e.times for e in events)
    recipe = ComponentRecipe(source, how, fits, times, factors, copies)
    also: dict[str, Recipe[Any]] = {}
    if grouped:
        also["deviations"] = DeviationRecipe.of(source, fits, found.labels)
    means = means_of(handle, recipe, also)
    n = refits_for(plan.replicates)
    optimism, calibrated = [], None
    if grouped:
        drawn = _Wild(means.found["deviations"].sums.high, events, fits, how, plan)
        optimism, calibrated = drawn.optimism(n), drawn.calibrated()
    else:
        optimism = [fit.optimism(how, n, _stream(plan, SMOOTH, i)) for i, fit in enumerate(fits)]
    return _read(means, events, fits, how, optimism, calibrated)


def _check(found: EventSums, *, copies: bool) -> None:
    if found.groups is not None and len(found.groups) < 2:
        raise InputError(
            "must name at least two groups for intervals", argument="groups", values=found.labels.tolist()
        )
    if copies and not found.whole:
        raise InputError("must be whole numbers where they count copies", argument="weights")


def _read(
    means: Means,
    events: Sequence[Scored],
    fits: Sequence[EventFit],
    how: Split,
    optimism: Sequence[Floats],
    calibrated: list[Floats] | None,
) -> Accuracy:
    variances = np.diagonal(means.covariance, axis1=1, axis2=2)
    parts, plug_ins, uncertain = [], [], []
    for i, (event, fit) in enumerate(zip(events, fits, strict=True)):
        plug_in = np.array(fit.plug_in(event.sums.of(event.i), how))
        certain = math.isinf(plug_in[0])
        if certain:
            # Where certain forecasts may fail, the mean over the smooth recalibration is infinite.
            plug_in[0] = means.mean[i, 1]
        plug_ins.append(event.factor * event.times * plug_in)
        uncertain.append(certain)
        parts.append(uncertainty_of(optimism[i], plug_in, variances[i], means.units, certain=certain))
    # Draws of independent rows are put in order, so that those of all events rise and fall together.
    drawn = [np.sort(own, axis=0) if calibrated is None else own for own in optimism]
    total = np.sum([e.factor * e.times * own for e, own in zip(events, drawn, strict=True)], axis=0)
    plug_in = np.sum(plug_ins, axis=0)
    whole = uncertainty_of(total, plug_in, variances[-1], means.units, certain=any(uncertain))
    return Accuracy(parts, whole, calibrated)


def _stream(plan: Resampling, stream: int, i: int) -> np.random.Generator:
    return np.random.default_rng([plan.seed, stream, i])


class _Wild:
    """Outcomes whose deviations keep or change their sign group by group: the wild bootstrap."""

    def __init__(
        self,
        deviations: Floats,
        events: Sequence[Scored],
        fits: Sequence[EventFit],
        how: Split,
        plan: Resampling,
    ) -> None:
        self._deviations, self._events, self._fits = deviations, events, fits
        self._how, self._plan = how, plan

    def optimism(self, n: int) -> list[Floats]:
        """What isotonic fit and frequency gain by following noise, for each event."""
        found = []
        for i, fit in enumerate(self._fits):
            base = fit.in_cells(fit.share * fit.chance)
            wild = self._drawn(i, 0, base, SMOOTH, n)
            found.append(fit.wild_optimism(self._how, wild, n, _stream(self._plan, SMOOTH, i)))
        return found

    def calibrated(self) -> list[Floats]:
        """For each event, by how much miscalibrations of calibrated forecasts exceed the observed one."""
        found = []
        for i, (event, fit) in enumerate(zip(self._events, self._fits, strict=True)):
            if self._how.binary != "squared":
                found.append(np.zeros(0))
                continue
            bins = event.sums.of(event.i)
            total = float(bins.weight.sum())
            base = fit.in_cells(bins.claimed / total)
            wild = self._drawn(i, 1, base, FORECAST, self._plan.replicates)
            observed = fit.in_cells(bins.happened / total)
            found.append(fit.wild_miscalibration(self._how, bins, wild, observed))
        return found

    def _drawn(self, i: int, kind: int, base: Floats, stream: int, n: int) -> Floats:
        """(n, C) the weights of an event in cells, with random signs of the deviations of groups."""
        event = self._events[i]
        own = self._deviations[:, i, : len(base), kind] / float(event.sums.of(event.i).weight.sum())
        # The same signs for all events.
        rng = np.random.default_rng([self._plan.seed, stream])
        signs = np.array([rng.choice([-1.0, 1.0], len(own)) for _ in range(n)])
        return np.asarray(base + np.einsum("ns,sc->nc", signs, own))
