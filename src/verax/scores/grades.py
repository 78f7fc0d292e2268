"""Grades of answers as losses: their distance from the best possible grade."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from verax.common.checks import plain_number
from verax.engines.stats import RowStats
from verax.errors import InputError, show
from verax.inputs.arrays import Array, Floats
from verax.scores.base import Rule
from verax.scores.properties import Holds, Properties


@dataclass(frozen=True, repr=False)
class Grade(Rule):
    """Grade loss: the best possible grade minus the grade of an answer.

    For right-or-wrong grades (1 and 0) its mean is the error rate, one minus the accuracy. It scores grades,
    not probabilities: pass them as `compare_grades({name: values})`. Lower is better; from 0 to high - low.

    Parameters
    ----------
    low : float, default 0.0
        The worst possible grade.
    high : float, default 1.0
        The best possible grade.

    Examples
    --------
    >>> import numpy as np, verax as vx
    >>> rule = vx.rules.Grade(low=1, high=5)
    >>> rule.loss(np.array([5.0, 4.0, 1.0])).tolist(), rule.bounds(2)
    ([0.0, 1.0, 4.0], (0.0, 4.0))
    """

    low: float = 0.0
    high: float = 1.0

    name = "grade"
    title = "grade loss"
    summary = "best possible grade minus the grade"
    description = (
        "The best possible grade minus the grade of the answer. For right-or-wrong grades its mean is the "
        "error rate."
    )
    latex = r"g_{\max} - g"
    use = "Answers that were graded: right or wrong, or a rubric or judge score in a stated range."
    avoid = "Probabilities: use brier or log_score."
    needs: ClassVar[frozenset[str]] = frozenset({"grade"})
    properties: ClassVar[Properties] = Properties(
        proper=Holds.UNKNOWN,
        strictly_proper=Holds.NEVER,
        local=Holds.UNKNOWN,
        symmetric=Holds.UNKNOWN,
        distance_sensitive=Holds.NEVER,
        superior=Holds.UNKNOWN,
        bounded=Holds.ALWAYS,
    )

    def __post_init__(self) -> None:
        ends = [plain_number(end) for end in (self.low, self.high)]
        if any(end is None or not math.isfinite(end) for end in ends) or not self.low < self.high:
            raise InputError(
                "must be the worst and the best possible grade, such as (0, 1)",
                argument="grade_range",
                found=f"it is ({show(self.low)}, {show(self.high)})",
                values=[self.low, self.high],
            )

    def formula(self, stats: RowStats) -> Array:
        return self.high - stats.grade

    def loss(self, grades: Floats) -> Floats:
        """Compute the losses of grades.

        Parameters
        ----------
        grades : array of shape (N,)
            The grades; NaN where there is none.

        Returns
        -------
        array of shape (N,)
            The losses.
        """
        return np.asarray(self.high - grades)

    def bounds(self, n_classes: int) -> tuple[float, float]:
        return 0.0, float(self.high - self.low)
