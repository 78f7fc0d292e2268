"""Whether classes or thresholds are forecast too high or too low on average, with a test for each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from verax.analyses.calibration.overconfidence import p_of_groups, p_of_rows
from verax.analyses.units import SamplingUnits
from verax.inference.estimates import holm
from verax.inputs.arrays import Floats, Ints
from verax.inputs.groups import Groups


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


def class_biases(
    y: Ints, p: Floats, *, thresholds: bool, weights: Floats | None = None, groups: Groups | None = None
) -> list[ClassBias]:
    """The leaning of every class, or of every threshold; of two classes without an order, of the second.

    >>> y, p = np.array([0] * 10 + [1] * 30), np.full((40, 2), 0.5)
    >>> (found,) = class_biases(y, p, thresholds=False)
    >>> found.claimed, found.happened, round(found.p_value, 4)
    (0.5, 0.75, 0.0022)
    """
    k = p.shape[1]
    w = np.ones(len(y)) if weights is None else weights / weights.max()
    kept = w > 0
    y, p, share = y[kept], p[kept], w[kept] / w[kept].sum()
    units = None if groups is None else SamplingUnits(share, Groups(groups.codes[kept], groups.labels))
    found = []
    below = np.zeros(len(y))
    for i in range(k - 1) if thresholds else range(k) if k > 2 else (1,):
        if thresholds:
            below = below + p[:, i]
        # A row may sum to more than one, within its tolerance.
        claim = np.clip(below if thresholds else p[:, i].astype(float), 0.0, 1.0)
        hit = (y <= i if thresholds else y == i).astype(float)
        p_value = p_of_rows(claim, hit, share) if units is None else p_of_groups(claim, hit, units)
        known = np.nan if p_value is None else p_value
        found.append((i, float((share * claim).sum()), float((share * hit).sum()), known))
    adjusted = holm(np.array([each[3] for each in found])).tolist()
    return [ClassBias(*each, p) for each, p in zip(found, adjusted, strict=True)]
