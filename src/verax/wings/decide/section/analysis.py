"""Curves over thresholds: ROC, precision-recall, decision curves and operating points of two classes, and
accuracy by confidence for any number of classes.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from verax.errors import InputError
from verax.inference.intervals import Resampling
from verax.inputs.handles import Handle
from verax.report.problem import Problem
from verax.wings.decide.cells import DEFAULT_GRID
from verax.wings.decide.net_benefit import DecisionCurves, decision_curves
from verax.wings.decide.rates.chosen import Aim
from verax.wings.decide.rates.curves import confidence_curves, rate_curves
from verax.wings.decide.rates.points import chosen_points, given_points
from verax.wings.decide.rates.result import OperatingPoints, RateCurves

# Thresholds of the table of operating points, those that have numbers, and what others are chosen for.
SHOWN = (0.1, 0.2, 0.3, 0.5)
GIVEN = (0.05, *SHOWN[:3], 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
AIMS = ("sensitivity>=0.9", "youden")
# Up to this number of rows of all models, curves over thresholds are drawn: they take further passes.
_MOST_ROWS = 2**20
# The number of points of a curve, enough for its width on the page.
_POINTS = 100


@dataclass(frozen=True, eq=False)
class ThresholdCurves:
    """The curves of all models.

    Attributes
    ----------
    confidence : RateCurves
        Accuracy among the rows whose most likely class has at least a given probability.
    two : TwoClassCurves or None
        None unless there are two classes.
    """

    confidence: RateCurves
    two: TwoClassCurves | None

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain Python values."""
        facts: dict[str, Any] = {"confidence_curve": self.confidence.to_dict(stored=False)}
        return facts | (self.two.to_dict() if self.two is not None else {})


@dataclass(frozen=True, eq=False)
class TwoClassCurves:
    """What decisions about the second of two classes come to, for all models.

    Attributes
    ----------
    points : OperatingPoints
        Rates at given thresholds.
    chosen : tuple of OperatingPoints
        Rates at thresholds chosen for a purpose, corrected for the choice; empty where there is one row.
    """

    roc: RateCurves
    precision_recall: RateCurves
    net_benefit: DecisionCurves
    points: OperatingPoints
    chosen: tuple[OperatingPoints, ...]

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain Python values."""
        curves = {name: getattr(self, name) for name in ("roc", "precision_recall", "net_benefit")}
        return {
            **{name: part.to_dict(stored=False) for name, part in curves.items()},
            "operating_points": [part.to_dict(stored=False) for part in (self.points, *self.chosen)],
        }


def find_thresholds(handle: Handle, problem: Problem, plan: Resampling) -> ThresholdCurves | None:
    """The curves, from further passes over the rows; None where these would take too long."""
    if not problem.again or problem.n_rows * len(problem.models) > _MOST_ROWS:
        return None
    level, seed = plan.confidence, plan.seed
    confident = confidence_curves(handle, level, seed)
    if problem.n_classes != 2:
        return ThresholdCurves(confident, None)
    chosen: tuple[OperatingPoints, ...] = ()
    # None where a single row has weight, because nothing can be held out.
    with suppress(InputError):
        chosen = tuple([chosen_points(handle, Aim.of(aim, None), level, seed) for aim in AIMS])
    two = TwoClassCurves(
        roc=rate_curves("roc", handle, _POINTS, level, seed, ordered=False),
        precision_recall=rate_curves("precision_recall", handle, _POINTS, level, seed, ordered=False),
        net_benefit=decision_curves(handle, DEFAULT_GRID, level, seed),
        points=given_points(handle, np.array(GIVEN), level),
        chosen=chosen,
    )
    return ThresholdCurves(confident, two)
