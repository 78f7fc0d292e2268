"""Reliability curves on a grid, small enough to draw: one panel per event."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from verax.analyses.calibration.components import Components, Decomposition
from verax.analyses.calibration.curves import ReliabilityCurve, curve_of
from verax.analyses.calibration.decomposition import decomposition_of
from verax.analyses.calibration.events import Event, Recalibration, events, split
from verax.analyses.table import RowTable
from verax.inference.intervals import Resampling
from verax.inputs.arrays import Floats
from verax.report.problem import Problem
from verax.scores.registry import RULES

# The largest number of panels, and the number of cells of the grid: each is two percent of the axis.
PANELS = 12
_CELLS = 50
RESAMPLES = 200


@dataclass(frozen=True, eq=False)
class ReliabilityPanel:
    """One event: a class, or a threshold of ordered classes.

    Attributes
    ----------
    position : int
        The position of the class, or of the class at the threshold.
    title : str
        What the event is called.
    points : array of shape (P, 5)
        Forecast, frequency, lower and upper end of the band, share of the weight.
    histogram : array of shape (20,)
        Shares of the weight in bins from 0 to 1.
    components : Components
        Of the squared error of the event.
    """

    position: int
    title: str
    points: Floats
    histogram: Floats
    components: Components

    def to_dict(self) -> dict[str, Any]:
        """The panel as plain Python values."""
        return {
            "event": self.title,
            "points": self.points.tolist(),
            "histogram": self.histogram.tolist(),
            **self.components.to_dict(stored=False),
        }


def calibration_of(
    problem: Problem, replicates: int, *, confidence: float, seed: int
) -> tuple[dict[str, Decomposition], dict[str, list[ReliabilityPanel]]]:
    """The decomposition and the panels of every model.

    There is a panel of every event, or of the most miscalibrated ones where there are many. Rows are sorted
    once for both where all events are shown.
    """
    plan = Resampling.checked(
        confidence, replicates, seed, least=2, or_none=True, weights_are=problem.weights_are
    )
    rule = RULES["rps" if problem.ordered else "brier"]
    shown = all_shown(problem)
    parted: dict[str, Decomposition] = {}
    panels: dict[str, list[ReliabilityPanel]] = {}
    for name in problem.models:
        drawn: dict[int, ReliabilityPanel] = {}

        def draw(
            i: int,
            event: Event,
            fit: Recalibration,
            rows: RowTable,
            drawn: dict[int, ReliabilityPanel] = drawn,
        ) -> None:
            if i in shown:
                drawn[i] = _panel(problem, event, fit, rows, i, confidence, seed)

        parted[name] = decomposition_of(problem.forecasts(name), rule, plan, draw)
        panels[name] = [drawn[i] for i in shown]
    if not shown:
        shown = most_miscalibrated(parted)
        for name in problem.models:
            forecasts = problem.forecasts(name)
            rows = RowTable.of(forecasts, [])
            chosen = zip(shown, events(forecasts, rows, split(rule, rows.n_classes), shown), strict=True)
            panels[name] = [
                _panel(problem, event, event.fit(rows.weights), rows, i, confidence, seed)
                for i, event in chosen
            ]
    return parted, panels


def n_events(problem: Problem) -> int:
    """How many events there are: thresholds of ordered classes, classes, or the one of two classes."""
    k = problem.n_classes
    return k - 1 if problem.ordered else k if k > 2 else 1


def all_shown(problem: Problem) -> list[int]:
    """The positions of all events, of which two classes have one; none where they are too many to show."""
    if not problem.ordered and problem.n_classes == 2:
        return [1]
    return list(range(n_events(problem))) if n_events(problem) <= PANELS else []


def most_miscalibrated(parted: Mapping[str, Decomposition]) -> list[int]:
    """The positions of the events with the largest miscalibration of all models."""
    total = np.sum([[part.miscalibration for part in d.parts] for d in parted.values()], axis=0)
    return sorted(np.argsort(-total, kind="stable")[:PANELS].tolist())


def _panel(
    problem: Problem,
    event: Event,
    fit: Recalibration,
    rows: RowTable,
    position: int,
    confidence: float,
    seed: int,
) -> ReliabilityPanel:
    """The curve of one event, which is a binary problem of its own."""
    curve = curve_of(event, fit, rows, RESAMPLES, np.random.default_rng(seed), confidence)
    return panel_of(problem, position, curve)


def panel_of(problem: Problem, position: int, curve: ReliabilityCurve) -> ReliabilityPanel:
    """The panel that shows a curve."""
    name = problem.names[position]
    title = f"at most {name}" if problem.ordered else name
    return ReliabilityPanel(position, title, on_grid(curve), curve.histogram, curve.components)


def on_grid(curve: ReliabilityCurve) -> Floats:
    """The points of a curve, averaged over cells of the grid where there are more than cells."""
    band = np.full((2, len(curve.weight)), np.nan) if curve.band is None else curve.band
    weight = curve.weight
    columns = [curve.forecast, curve.frequency, *band]
    if len(weight) > _CELLS:
        # Forecasts increase, so that a cell is where it begins.
        begins = np.unique(np.searchsorted(curve.forecast, np.arange(_CELLS) / _CELLS))
        begins = begins[begins < len(weight)]
        mass = np.add.reduceat(weight, begins)
        columns = [np.add.reduceat(weight * column, begins) / mass for column in columns]
        weight = mass
    # A row may sum to more than one, within its tolerance.
    columns[0] = np.clip(columns[0], 0, 1)
    return np.column_stack([*columns, weight / weight.sum()])
