"""Reliability curves on a grid, small enough to draw: one panel per event."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from verax.analyses.calibration.components import Components, Decomposition
from verax.analyses.calibration.curves import ListReliability, ReliabilityCurve
from verax.inputs.arrays import Floats
from verax.report.limits import PANELS
from verax.report.problem import Problem

# The number of cells of the grid: each is two percent of the axis.
_CELLS = 50


@dataclass(frozen=True, eq=False)
class ReliabilityPanel:
    """One event: a class, a threshold of ordered classes, or a place of lists.

    Attributes
    ----------
    position : int
        The position of the class, or of the class at the threshold.
    title : str
        What the event is called.
    points : array of shape (P, 5)
        Forecast, frequency, lower and upper end of the band, share of the weight; empty where no list of a
        model is long enough.
    histogram : array of shape (20,)
        Shares of the weight in bins from 0 to 1.
    components : Components or None
        Of the squared error of the event.
    event : str
        Its label, where the title has the name of the outcome too.
    """

    position: int
    title: str
    points: Floats
    histogram: Floats
    components: Components | None
    event: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The panel as plain Python values."""
        return {
            "event": self.event or self.title,
            "points": self.points.tolist(),
            "histogram": self.histogram.tolist(),
            **({} if self.components is None else self.components.to_dict(stored=False)),
        }


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


def panel_of(problem: Problem, position: int, curve: ReliabilityCurve) -> ReliabilityPanel:
    """The panel that shows a curve."""
    title, event = (
        f"at most {names[position]}" if problem.ordered else names[position]
        for names in (problem.titles, problem.names)
    )
    return ReliabilityPanel(position, title, on_grid(curve), curve.histogram, curve.components, event)


def panels_of_places(models: Sequence[ListReliability]) -> list[list[ReliabilityPanel]]:
    """The panels of each model's lists: the same events for all, those of the model with the most places."""
    names = [curve.name for curve in max(models, key=len)]
    panels = []
    for model in models:
        curves = {curve.name: curve for curve in model}
        panels.append(
            [
                ReliabilityPanel(i, name, on_grid(curve), curve.histogram, curve.components)
                if (curve := curves.get(name)) is not None
                else ReliabilityPanel(i, name, np.zeros((0, 5)), np.ones(1), None)
                for i, name in enumerate(names)
            ]
        )
    return panels


def on_grid(curve: ReliabilityCurve) -> Floats:
    """The points of a curve, averaged over cells of the grid where there are more than cells."""
    weight = curve.weight
    band = np.full((2, len(weight)), np.nan) if curve.band is None else curve.band
    columns = [curve.forecast, curve.frequency, *band]
    if len(weight) > _CELLS:
        # Forecasts increase, so that a cell is where it begins.
        begins = np.unique(np.searchsorted(curve.forecast, np.arange(_CELLS) / _CELLS))
        begins = begins[begins < len(weight)]
        mass = np.add.reduceat(weight, begins)
        columns = [np.add.reduceat(weight * column, begins) / mass for column in columns]
        weight = mass
    forecast, *others = columns
    # A row may sum to more than one, within its tolerance.
    return np.column_stack([np.clip(forecast, 0, 1), *others, weight / weight.sum()])
