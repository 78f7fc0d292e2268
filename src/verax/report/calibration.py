"""Calibration in the report: the decomposition, the reliability panels and the claims of every model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from verax.analyses.calibration.class_bias import ClassBias, read_class_biases
from verax.analyses.calibration.components import Decomposition
from verax.analyses.calibration.curves import curve_of
from verax.analyses.calibration.decomposition import accuracy_by, read_decomposition
from verax.analyses.calibration.events import event_names, split
from verax.analyses.calibration.eventsums import EventSums
from verax.analyses.calibration.overconfidence import Overconfidence, read_overconfidence
from verax.analyses.calibration.slope_fit import fit_slopes
from verax.analyses.calibration.slope_result import CalibrationSlopes
from verax.inference.intervals import Resampling
from verax.inputs.handles import Handle
from verax.kernels.threads import side_by_side
from verax.report.limits import RESAMPLES, SLOPES
from verax.report.problem import Problem
from verax.report.reliability import ReliabilityPanel, all_shown, most_miscalibrated, n_events, panel_of


def decomposed(
    handle: Handle, problem: Problem, plan: Resampling, sums: Mapping[str, EventSums]
) -> dict[str, Decomposition]:
    """The decomposition of every model, by the name on the page."""
    rule = problem.calibrated_by
    found = {}
    for model, shown in problem.models.items():
        known = accuracy_by(handle, model, rule, sums[model], plan) if problem.again else None
        parts = read_decomposition(sums[model], rule, handle, plan, known)
        found[shown] = replace(parts, n_rows=problem.n_rows)
    return found


def panels(
    handle: Handle,
    problem: Problem,
    plan: Resampling,
    sums: Mapping[str, EventSums],
    parted: Mapping[str, Decomposition],
) -> dict[str, list[ReliabilityPanel]]:
    """The panels of every model: of all events, or of the most miscalibrated ones where there are many."""
    rule = problem.calibrated_by
    how = split(rule, problem.n_classes)
    names, drawn = event_names(handle.class_names, how), replace(plan, replicates=RESAMPLES)
    positions = all_shown(problem) or most_miscalibrated(parted)
    found = {}
    for model, shown in problem.models.items():

        def panel(i: int, own: EventSums = sums[model]) -> ReliabilityPanel:
            rng = np.random.default_rng([plan.seed, i])
            return panel_of(problem, i, curve_of(own.event(i, names[i]), how, drawn, rng))

        found[shown] = side_by_side(panel, positions, sums[model].n_rows)
    return found


def overconfidence(sums: EventSums) -> Overconfidence:
    """The mean probability of the most likely class, and how often it happened."""
    return read_overconfidence(sums)


def class_biases(problem: Problem, sums: Mapping[str, EventSums]) -> dict[str, list[ClassBias]]:
    """Which events are forecast too high or too low on average, of every model."""
    return {
        shown: read_class_biases(sums[model], problem.n_classes, thresholds=problem.ordered)
        for model, shown in problem.models.items()
    }


def slopes(handle: Handle, problem: Problem, model: str, confidence: float) -> CalibrationSlopes | None:
    """The calibration slopes of a model, from further passes; None where these would take too long."""
    if not problem.again or problem.n_rows * n_events(problem) * len(problem.models) > SLOPES:
        return None
    return fit_slopes(handle, problem.ordered, 0, confidence, model=model)
