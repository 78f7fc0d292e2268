"""Whether classes or thresholds are forecast too high or too low on average, with a test for each."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from verax.analyses.calibration.eventsums import CLAIM, HIT, EventSums
from verax.analyses.calibration.overconfidence import p_value_of
from verax.inference.estimates import holm


@dataclass(frozen=True)
class ClassBias:
    """The mean probability of an event, and how often it happened.

    Attributes
    ----------
    position : int
        The position of the class, or of the class at the threshold.
    claimed : float
        Mean probability of the event.
    happened : float
        Share of rows in which it happened.
    p_value, p_adjusted : float
        Two-sided p-value of the difference, and after Holm's correction over all events; NaN where all rows
        belong to one group.
    """

    position: int
    claimed: float
    happened: float
    p_value: float
    p_adjusted: float

    @property
    def gap(self) -> float:
        """Claimed minus happened: positive means too high."""
        return self.claimed - self.happened

    def to_dict(self) -> dict[str, Any]:
        """The numbers as plain Python values."""
        return {**vars(self), "gap": self.gap}


def read_class_biases(found: EventSums, n_classes: int, *, thresholds: bool) -> list[ClassBias]:
    """The bias of every class or threshold; of two classes without an order, of the second.

    >>> from verax.analyses.calibration.event_recipe import EventRecipe
    >>> from verax.inputs.memory import ONLY, open_rows
    >>> rows = open_rows([0] * 10 + [1] * 30, np.full((40, 2), 0.5))
    >>> sums = rows.summarise({"events": EventRecipe(ONLY, False)})["events"]
    >>> (found,) = read_class_biases(sums, 2, thresholds=False)
    >>> found.claimed, found.happened, round(found.p_value, 4)
    (0.5, 0.75, 0.0022)
    """
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
