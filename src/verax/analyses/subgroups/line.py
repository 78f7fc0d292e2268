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
        As `decompose` gives it for the rows of the subgroup.
    p_value : float or None
        How often a calibrated forecast would look as miscalibrated, or, of two classes, as far from the
        expected number of events; None where it was not tested.
    p_adjusted : float or None
        The same with Holm's correction over the subgroups; None where it was not tested, or has too few
        groups for the test.
    stands_out : bool
        Whether the miscalibration is beyond chance after the correction.
    undecided : bool
        Whether it took too many draws to find that out.
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
    undecided: bool = False
    events: EventRatio | None = None
