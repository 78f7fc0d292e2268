"""Reliability curves on a grid, small enough to draw: one panel per event."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from verax.analyses.calibration.decomposition import Components, Decomposition
from verax.analyses.calibration.reliability import ReliabilityCurve, reliability
from verax.inputs.arrays import Floats
from verax.report.problem import Problem

# The largest number of panels, and the number of cells of the grid: each is two percent of the axis.
PANELS = 12
_CELLS = 50
_RESAMPLES = 200


@dataclass(frozen=True, eq=False)
class ReliabilityPanel:
    """One event: a class, or a threshold of ordered classes.

    Attributes
    ----------
    position : int
        The position of the class, or of the class at the threshold.
    title : str
        What the event is called.
    points : (P, 5) array
        Forecast, frequency, lower and upper end of the band, share of the weight.
    histogram : (20,) array
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
            **self.components.to_dict(),
        }


def panels_of(
    problem: Problem, parted: Mapping[str, Decomposition], *, confidence: float, seed: int
) -> dict[str, list[ReliabilityPanel]]:
    """The panels of every model: all events, or the most miscalibrated ones where there are many."""
    shown = _chosen(problem, parted)
    found = {}
    for name in problem.models:
        forecasts = problem.forecasts(name)
        p = np.asarray(forecasts.batch(0, forecasts.n_rows).p)
        found[name] = [_panel(problem, p, i, confidence, seed) for i in shown]
    return found


def n_events(problem: Problem) -> int:
    """How many events there are: thresholds of ordered classes, classes, or the one of two classes."""
    k = problem.n_classes
    return k - 1 if problem.ordered else k if k > 2 else 1


def _chosen(problem: Problem, parted: Mapping[str, Decomposition]) -> list[int]:
    if not problem.ordered and problem.n_classes == 2:
        return [1]
    if n_events(problem) <= PANELS:
        return list(range(n_events(problem)))
    total = np.sum([[part.miscalibration for part in d.parts] for d in parted.values()], axis=0)
    return sorted(np.argsort(-total, kind="stable")[:PANELS].tolist())


def _panel(problem: Problem, p: Any, position: int, confidence: float, seed: int) -> ReliabilityPanel:
    """The curve of one event, which is a binary problem of its own."""
    if problem.ordered:
        # Sums that differ by rounding alone are the same forecast.
        given = np.round(p[:, : position + 1].sum(axis=1, dtype=float), 12 if p.dtype == np.float64 else 6)
        happened, title = problem.y <= position, f"at most {problem.names[position]}"
    else:
        given = p[:, position].astype(float)
        happened, title = problem.y == position, problem.names[position]
    curve = reliability(
        happened,
        # A row may sum to more than one, within its tolerance.
        np.clip(given, 0, 1),
        weights=problem.weights,
        resamples=_RESAMPLES,
        seed=seed,
        confidence=confidence,
    )[1]
    return ReliabilityPanel(position, title, on_grid(curve), curve.histogram, curve.components)


def on_grid(curve: ReliabilityCurve) -> Floats:
    """The points of a curve, averaged over cells of the grid where there are more than cells."""
    assert curve.band is not None
    columns = np.column_stack([curve.forecast, curve.frequency, *curve.band])
    weight = curve.weight
    if len(weight) > _CELLS:
        grid = np.minimum((curve.forecast * _CELLS).astype(np.int64), _CELLS - 1)
        _, cell = np.unique(grid, return_inverse=True)
        mass = np.bincount(cell, weight)
        columns = np.column_stack([np.bincount(cell, weight * column) / mass for column in columns.T])
        weight = mass.astype(float)
    return np.column_stack([columns, weight / weight.sum()])
