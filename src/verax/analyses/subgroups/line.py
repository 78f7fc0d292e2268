"""One model in one subgroup."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from verax.analyses.calibration.components import Decomposition
from verax.analyses.cards.scorecard import Scorecard
from verax.analyses.subgroups.ratios import EventRatio
from verax.common.faces import Worded


@dataclass(frozen=True)
class Subgroup:
    """One model in one subgroup.

    Attributes
    ----------
    label : object
        The label of the subgroup.
    model : str
        The name of the model.
    card : Scorecard
        As `evaluate` gives it for the rows of the subgroup.
    decomposition : Decomposition
        As `decompose` gives it for the rows of the subgroup, without draws.
    p_value : float or None
        The p-value of calibration: the smallest of its tests over their shares of the level; None where there
        was no test.
    p_adjusted : float or None
        The same corrected for all subgroups and for what they show together; None where it was not tested.
    stands_out : bool
        Whether the miscalibration is beyond chance after the correction.
    untested : str, default ""
        Why there was no test, or what an earlier version did not save.
    p_shift, p_slope, p_shape : float or None
        The p-values of each kind of test: whether events happen as often as forecast, whether forecasts are
        too extreme or not extreme enough, and whether their calibration curve is bent. None where too few
        rows are expected for the test.
    events : EventRatio or None
        Of two classes, how often the second one happened and how often that was expected; else None.
    """

    label: Worded[Any]
    model: str
    card: Scorecard
    decomposition: Decomposition
    p_value: float | None
    p_adjusted: float | None
    stands_out: bool
    untested: str = ""
    p_shift: float | None = None
    p_slope: float | None = None
    p_shape: float | None = None
    events: EventRatio | None = None
