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
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from verax.analyses.calibration.accuracy import Accuracy, Scored, accuracy_of
from verax.analyses.calibration.bindraws import BinDraws
from verax.analyses.calibration.class_bias import ClassBias
from verax.analyses.calibration.components import Components, Decomposition
from verax.analyses.calibration.componentsums import RowEvents
from verax.analyses.calibration.curves import Reliability, ReliabilityCurve, shares_of
from verax.analyses.calibration.events import Split, recalibrate, split
from verax.analyses.calibration.eventsums import (
    CLAIM,
    HIT,
    INFINITE,
    LOSS,
    VARIANCE,
    EventRecipe,
    EventSums,
)
from verax.analyses.calibration.overconfidence import Overconfidence, p_of_gaps, p_of_rows
from verax.analyses.unitsums import check_weight
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
    """The decomposition of the score of all rows of a handle; intervals take another pass over them."""
    how = split(rule, handle.n_classes)
    recipe = EventRecipe(handle.one_model(), how.thresholds, how.binary)
    found = handle.summarise({"events": recipe})
    sums: EventSums = found["events"]
    check_weight(float(sums.weight.high[0]))
    events = [Scored(sums, i, 1.0, how.factor) for i in range(sums.n_events)]
    known = accuracy_of(handle, RowEvents(recipe.model, how), how, events, plan)
    result = read_decomposition(sums, rule, handle, plan, known)
    return replace(result, n_rows=found.n_rows).with_skipped(found.skipped)


def read_decomposition(
    found: EventSums, rule: Rule, handle: Handle, plan: Resampling, known: Accuracy | None = None
) -> Decomposition:
    """The decomposition from sums."""
    how, names = split(rule, handle.n_classes), event_names(handle, rule)
    events = [Scored(found, i, 1.0, how.factor) for i in range(len(names))]
    whole, parts = components_of_events(names, events, how, plan, known)
    return Decomposition(
        rule=repr(rule),
        whole=whole,
        parts=parts,
        total=how.total,
        thresholds=how.thresholds,
        n_rows=found.n_rows,
        n_classes=handle.n_classes,
        n_groups=None if found.groups is None else len(found.groups),
        resampling=plan,
    )


def components_of_events(
    names: Sequence[str], events: Sequence[Scored], how: Split, plan: Resampling, known: Accuracy | None
) -> tuple[Components, tuple[Components, ...]]:
    """The components of the whole and of every event.

    Independent rows are drawn event by event. These are taken to rise and fall together, so that no p-value
    is too small. Groups are drawn for all events at once.
    """

    def part(i: int) -> Components:
        event = events[i]
        observed, within = components_of_bins(event.sums, event.i, how)
        calibrated = np.zeros(0)
        if event.sums.groups is None and plan.replicates:
            draws = BinDraws(event.sums.of(event.i), how, plan.copies)
            calibrated = draws.calibrated(plan.replicates, _stream(plan.seed, i), observed[1])[1]
        elif known is not None and known.calibrated is not None:
            calibrated = observed[1] + known.calibrated[i]
        own = None if known is None else known.parts[i]
        return Components(names[i], observed, own, calibrated, plan.confidence, within)

    parts = side_by_side(part, range(len(events)), events[0].sums.n_rows)
    drawn = [each.calibrated for each in parts]
    if events[0].sums.groups is None:
        drawn = [np.sort(each) for each in drawn]
    factors = [event.factor * event.times for event in events]

    def total(values: Sequence[Any]) -> Any:
        return np.sum([f * value for f, value in zip(factors, values, strict=True)], axis=0)

    whole = Components(
        how.quantity,
        total([each.observed for each in parts]),
        None if known is None else known.whole,
        total(drawn),
        plan.confidence,
        float(total([each.within or 0.0 for each in parts])),
    )
    return whole, tuple(parts)


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
        drawn = BinDraws(bins, how, copies=False)
        curves, found_calibrated = drawn.calibrated(resamples, rng, observed[1])
        band = percentile_interval(curves, confidence)[:, drawn.cell]
        calibrated = found_calibrated if found.groups is None else calibrated
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
    # Losses were summed in natural logarithms.
    score = math.inf if totals[INFINITE] > 0 else how.unit * float(totals[LOSS]) / weight
    cells = bins.cells
    uncertainty = how.entropy(cells.sum(axis=0, keepdims=True)) / weight
    fitted = how.entropy(recalibrate(cells).blocks) / weight
    best = how.entropy(recalibrate(bins.sorted_cells).blocks) / weight
    return np.array([score, score - fitted, uncertainty - fitted, uncertainty]), max(fitted - best, 0.0)


# ---- claims on average -------------------------------------------------------------------------


def read_overconfidence(found: EventSums) -> Overconfidence:
    """The mean probability of the most likely class, and how often it happened."""
    i = found.n_events
    claimed, right = found.totals.high[i, [CLAIM, HIT]] / found.weight.high[0]
    return Overconfidence(float(claimed), float(right), p_value_of(found, i))


def read_class_biases(found: EventSums, n_classes: int, *, thresholds: bool) -> list[ClassBias]:
    """The leaning of every class or threshold; of two classes without an order, of the second."""
    weight = found.weight.high[0]
    only = [1] if n_classes == 2 and not thresholds else range(found.n_events)
    values = [
        (i, *(found.totals.high[i, [CLAIM, HIT]] / weight).tolist(), p_value_of(found, i)) for i in only
    ]
    known = [math.nan if each[3] is None else each[3] for each in values]
    adjusted = holm(np.array(known)).tolist()
    return [
        ClassBias(i, claimed, hit, p, q)
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
    # The weight of each row, if all rows have the same: the squares of weights then sum to the least.
    each = weight / found.n_rows
    even = math.isclose(float(found.weight.high[1]), each * weight, rel_tol=1e-12)
    if even and found.n_rows <= _EACH:
        bins = found.of(i)
        claims = np.repeat(np.clip(bins.forecast, 0, 1), np.rint(bins.weight / each).astype(np.int64))
        hits: Any = np.zeros(len(claims))
        hits[: round(hit / each)] = 1.0
        return p_of_rows(claims, hits, np.full(len(claims), 1 / len(claims)))
    return math.erfc(abs(gap) / math.sqrt(variance / weight**2) / math.sqrt(2)) if variance > 0 else 1.0
