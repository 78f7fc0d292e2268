"""Calibration in the report: the decomposition, the reliability panels and the claims of every model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from verax._settings import settings
from verax.analyses.calibration.claims import (
    ClassBias,
    read_class_biases,
)
from verax.analyses.calibration.components import Decomposition
from verax.analyses.calibration.curves import curve_of
from verax.analyses.calibration.decomposition import fitted
from verax.analyses.calibration.events import Split, event_names, split
from verax.analyses.calibration.slope import fit_slopes
from verax.analyses.calibration.slope_result import CalibrationSlopes
from verax.analyses.calibration.sums import Events, SummedEvent
from verax.analyses.calibration.uncertainty import SecondLook
from verax.inference.intervals import Resampling
from verax.inputs.handles import Handle
from verax.kernels.threads import side_by_side
from verax.report.limits import SLOPES
from verax.report.problem import Problem
from verax.report.reliability import ReliabilityPanel, all_shown, most_miscalibrated, n_events, panel_of


def calibrated(
    handle: Handle, problem: Problem, tests: Resampling, plan: Resampling, sums: Mapping[str, Events]
) -> tuple[dict[str, Decomposition], dict[str, list[ReliabilityPanel]]]:
    """The decomposition and the panels of every model, by the name on the page.

    The panels are of all events, or of the most miscalibrated ones where there are many. Where they are known
    before, each event is sorted and fitted once for both; not where rows belong to groups, whose bands take a
    second look at the rows.
    """
    rule = problem.calibrated_by
    drawn = _Panels(problem, split(rule, problem.n_classes), replace(plan, replicates=settings.report_bands))
    names = event_names(handle.class_names, drawn.how)
    shown = all_shown(problem)
    at_once = set(shown)
    parted: dict[str, Decomposition] = {}
    looks: dict[str, SecondLook | None] = {}
    panels_of: dict[str, dict[int, ReliabilityPanel]] = {}
    for model, name in problem.models.items():
        panels = panels_of[name] = {}

        def also(i: int, event: SummedEvent, panels: dict[int, ReliabilityPanel] = panels) -> None:
            if i in at_once and event.sums.n_groups is None:
                panels[i] = drawn.of(i, event)

        fits = fitted(sums[model], rule, handle, tests, model, also)
        parts, looks[name] = fits.concluded(handle, again=problem.again)
        parted[name] = replace(parts, n_rows=problem.n_rows)
    shown = shown or most_miscalibrated(parted)
    for model, name in problem.models.items():
        panels, events = panels_of[name], sums[model]
        lacking = [i for i in shown if i not in panels]

        def panel(i: int, events: Events = events, look: SecondLook | None = looks[name]) -> ReliabilityPanel:
            return drawn.of(i, events.event(i, names[i]), look)

        panels |= zip(lacking, side_by_side(panel, lacking, events.n_rows) if lacking else [], strict=True)
    return parted, {name: [panels[i] for i in shown] for name, panels in panels_of.items()}


@dataclass(frozen=True)
class _Panels:
    """How panels are drawn."""

    problem: Problem
    how: Split
    plan: Resampling

    def of(self, i: int, event: SummedEvent, look: SecondLook | None = None) -> ReliabilityPanel:
        """The panel of an event."""
        return panel_of(self.problem, i, curve_of(i, event, self.how, self.plan, look))


def class_biases(problem: Problem, sums: Mapping[str, Events]) -> dict[str, list[ClassBias]]:
    """Which events are forecast too high or too low on average, of every model."""
    return {
        shown: read_class_biases(
            sums[model], problem.n_classes, thresholds=problem.ordered, copies=problem.weights_are == "counts"
        )
        for model, shown in problem.models.items()
    }


def slopes(handle: Handle, problem: Problem, model: str, plan: Resampling) -> CalibrationSlopes | None:
    """The calibration slopes of a model, from further passes; None where these would take too long."""
    if not problem.again or problem.n_rows * n_events(problem) * len(problem.models) > SLOPES:
        return None
    return fit_slopes(handle, problem.ordered, 0, plan, model=model)
