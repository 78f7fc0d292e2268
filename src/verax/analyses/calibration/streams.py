"""Calibration of predictions that are not in memory, from histograms of forecasts and outcomes.

Score and uncertainty are sums over rows, so they are exact. The isotonic fit is made to bins. Of all orders
of the rows inside a bin, the fit loses most where those with the event come first, because it is constant
there: that is what the bins give. It loses least where they come last: swapping two neighbours so that the
one with the event comes later, and giving it the larger of both recalibrated values, makes no row lose more.
So the loss of the fit to the rows lies between that of the bins and that of bins that are split in two. Rows
that tie are pooled in either case.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from verax.analyses.calibration.components import Components, Decomposition
from verax.analyses.calibration.curves import Reliability, ReliabilityCurve, cell_of, shares_of
from verax.analyses.calibration.events import Split, recalibrate, split
from verax.analyses.calibration.eventsums import (
    CLAIM,
    HIT,
    INFINITE,
    LOSS,
    VARIANCE,
    EventBins,
    EventRecipe,
    EventSums,
)
from verax.analyses.calibration.leaning import Leaning
from verax.analyses.calibration.sureness import Sureness, p_of_gaps, p_of_rows
from verax.inference.bootstrap import percentile_interval
from verax.inference.estimates import holm
from verax.inference.intervals import Resampling
from verax.inputs.arrays import Floats
from verax.inputs.handles import Handle
from verax.kernels.threads import side_by_side
from verax.scores.base import Rule

# Up to so many rows, the distribution of the number of hits may be computed from every one of them.
_EACH = 2**20


def decomposition_of_handle(handle: Handle, rule: Rule, plan: Resampling) -> Decomposition:
    """The decomposition of the score of all rows of a handle."""
    how = split(rule, handle.n_classes)
    recipe = EventRecipe(handle.one_model(), how.thresholds, how.binary)
    found = handle.summarise({"events": recipe})
    return read_decomposition(found["events"], rule, handle, plan).with_skipped(found.skipped)


def read_decomposition(found: EventSums, rule: Rule, handle: Handle, plan: Resampling) -> Decomposition:
    """The decomposition from sums; events are taken to rise and fall together, so that no p-value is too
    small.
    """
    how, names = split(rule, handle.n_classes), event_names(handle, rule)

    def part(i: int) -> Components:
        return component_of(found, i, names[i], how, plan, _stream(plan.seed, i))

    parts = side_by_side(part, range(len(names)), found.n_rows)
    drawn = [np.sort(part.calibrated) for part in parts]
    whole = Components(
        how.quantity,
        how.factor * np.sum([part.observed for part in parts], axis=0),
        None,
        how.factor * np.sum(drawn, axis=0),
        plan.confidence,
        how.factor * sum(part.within or 0.0 for part in parts),
    )
    return Decomposition(
        rule=repr(rule),
        whole=whole,
        parts=tuple(parts),
        total=how.total,
        thresholds=how.thresholds,
        n_rows=found.n_rows,
        n_classes=handle.n_classes,
        n_groups=None if found.groups is None else len(found.groups),
        resampling=plan,
    )


def component_of(
    found: EventSums, i: int, name: str, how: Split, plan: Resampling, rng: np.random.Generator
) -> Components:
    """The components of one event, with draws of calibrated forecasts where rows have no groups."""
    observed, within = components_of_bins(found, i, how)
    calibrated = np.zeros(0)
    if plan.replicates and found.groups is None:
        calibrated = observed[1] + _Drawn(found.of(i), how, found.whole).gains(plan.replicates, rng)[1]
    return Components(name, observed, None, calibrated, plan.confidence, within)


def reliability_of_handle(
    handle: Handle, rule: Rule, resamples: int, seed: int, confidence: float
) -> Reliability:
    """The reliability curves of all rows of a handle."""
    how = split(rule, handle.n_classes)
    found = handle.summarise({"events": EventRecipe(handle.one_model(), how.thresholds)})
    only = [1] if handle.n_classes == 2 and not how.thresholds else range(found["events"].n_events)
    names = event_names(handle, rule)
    curves = [
        read_curve(found["events"], i, names[i], how, resamples, _stream(seed, i), confidence) for i in only
    ]
    return Reliability(
        tuple(curves), how.thresholds, found.n_rows, handle.n_classes, resamples, confidence, seed
    ).with_skipped(found.skipped)


def read_curve(
    found: EventSums,
    i: int,
    name: str,
    how: Split,
    resamples: int,
    rng: np.random.Generator,
    confidence: float,
) -> ReliabilityCurve:
    """The curve of one event: the isotonic regression on its bins, each at the mean of its forecasts."""
    bins = found.of(i)
    observed, within = components_of_bins(found, i, how)
    band, calibrated = None, np.zeros(0)
    if resamples:
        drawn = _Drawn(bins, how, found.whole)
        curves, gains = drawn.gains(resamples, rng)
        band = percentile_interval(curves, confidence)[:, drawn.cell]
        calibrated = gains + observed[1] if found.groups is None else calibrated
    components = Components(name, observed, None, calibrated, confidence, within)
    fit = recalibrate(bins.cells)
    return ReliabilityCurve(
        name, bins.forecast, fit.values, bins.weight, band, shares_of(bins.forecast, bins.weight), components
    )


def event_names(handle: Handle, rule: Rule) -> list[str]:
    """What the events are called."""
    how = split(rule, handle.n_classes)
    labels = range(handle.n_classes) if handle.classes is None else handle.classes
    names = [f"<= {label}" if how.thresholds else str(label) for label in labels]
    if how.thresholds:
        return names[:-1]
    return names[1:] if handle.n_classes == 2 and how.binary == "log" else names


def _stream(seed: int, i: int) -> np.random.Generator:
    """The random numbers of one event."""
    return np.random.default_rng([seed, i])


def components_of_bins(found: EventSums, i: int, how: Split) -> tuple[Floats, float]:
    """Score, miscalibration, discrimination and uncertainty, and by how much the middle two may be larger."""
    bins, weight = found.of(i), float(found.weight.high[0])
    totals = found.totals.high[i]
    score = math.inf if totals[INFINITE] > 0 else float(totals[LOSS]) / weight
    cells = bins.cells
    uncertainty = how.entropy(cells.sum(axis=0, keepdims=True)) / weight
    fitted = how.entropy(recalibrate(cells).blocks) / weight
    best = how.entropy(recalibrate(bins.sorted_cells).blocks) / weight
    return np.array([score, score - fitted, uncertainty - fitted, uncertainty]), max(fitted - best, 0.0)


class _Drawn:
    """Outcomes drawn from the forecasts of bins; very many bins are drawn together in cells."""

    def __init__(self, bins: EventBins, how: Split, whole: bool) -> None:
        self.cell = cell_of(bins.weight)
        self._how = how
        self._size = np.bincount(self.cell, bins.weight)
        # Rounded, so that draws do not depend on the order in which rows were added up.
        chance = np.clip(np.bincount(self.cell, bins.claimed) / self._size, 0.0, 1.0)
        self._chance: Floats = np.round(chance.astype(float), 12)
        self._happened = np.bincount(self.cell, bins.happened).astype(float)
        squares = np.bincount(self.cell, bins.squares)
        # Rows of other weights count as many rows of one weight as tell as much.
        self._unit = np.ones_like(self._size) if whole else squares / self._size

    def gains(self, n: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """The curves of calibrated forecasts, and what their miscalibration exceeds the observed one by."""
        rows = np.maximum(np.round(self._size / self._unit), 1).astype(np.int64)
        curves, found = np.empty((n, len(rows))), np.empty(n)
        observed = self._gain(self._happened)[1]
        for i in range(n):
            share = rng.binomial(rows, self._chance) / rows
            curves[i], found[i] = self._gain(share * self._size)
        return curves, found - observed

    def _gain(self, happened: Floats) -> tuple[Floats, float]:
        how, without = self._how, np.maximum(self._size - happened, 0.0)
        fit = recalibrate(np.stack([without, happened], axis=1))
        sides = (how.losses(self._chance, 1 - self._chance, happens) for happens in (False, True))
        loss = sum(
            float((mass * np.where(mass > 0, side, 0.0)).sum())
            for mass, side in zip((without, happened), sides, strict=True)
        )
        return fit.values, (loss - how.entropy(fit.blocks)) / float(self._size.sum())


# ---- claims on average -------------------------------------------------------------------------


def read_sureness(found: EventSums) -> Sureness:
    """The mean probability of the most likely class, and how often it happened."""
    i = found.n_events
    claimed, right = found.totals.high[i, [CLAIM, HIT]] / found.weight.high[0]
    return Sureness(float(claimed), float(right), p_value_of(found, i))


def read_leanings(found: EventSums, n_classes: int, *, thresholds: bool) -> list[Leaning]:
    """The leaning of every class or threshold; of two classes without an order, of the second."""
    weight = found.weight.high[0]
    only = [1] if n_classes == 2 and not thresholds else range(found.n_events)
    values = [
        (i, *(found.totals.high[i, [CLAIM, HIT]] / weight).tolist(), p_value_of(found, i)) for i in only
    ]
    known = [math.nan if each[3] is None else each[3] for each in values]
    adjusted = holm(np.array(known)).tolist()
    return [
        Leaning(i, claimed, hit, p, q)
        for (i, claimed, hit, _), p, q in zip(values, known, adjusted, strict=True)
    ]


def p_value_of(found: EventSums, i: int) -> float | None:
    """The p-value of the difference between what an event claims and how often it happened."""
    weight = float(found.weight.high[0])
    claim, hit, variance = found.totals.high[i, [CLAIM, HIT, VARIANCE]].tolist()
    gap = (claim - hit) / weight
    if found.groups is not None:
        share, gaps = found.groups[:, 0] / weight, found.groups[:, 1 + i] / weight
        return p_of_gaps(share, gaps, variance / weight**2)
    even = float(found.weight.high[1]) == weight == found.n_rows
    if even and found.n_rows <= _EACH:
        bins = found.of(i)
        claims = np.repeat(np.clip(bins.forecast, 0, 1), bins.weight.astype(np.int64))
        hits: Any = np.zeros(len(claims))
        hits[: round(hit)] = 1.0
        return p_of_rows(claims, hits, np.full(len(claims), 1 / len(claims)))
    return math.erfc(abs(gap) / math.sqrt(variance / weight**2) / math.sqrt(2)) if variance > 0 else 1.0
