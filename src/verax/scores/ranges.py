"""The Brier score of two classes, restricted to the thresholds at which somebody decides."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from verax.engines.stats import RowStats
from verax.errors import InputError, Remedy, show
from verax.inputs.arrays import Array
from verax.scores.base import Rule
from verax.scores.properties import Holds, Properties


@dataclass(frozen=True, repr=False)
class ThresholdBrier(Rule):
    """Brier score of two classes over the decision thresholds from `low` to `high`.

    It is twice the integral of the elementary score over these thresholds: t for acting where class 1 does
    not happen, 1 - t for not acting where it does. Forecasts below `low` all count as `low`, and those above
    `high` as `high`: nobody decides differently because of them. Lower is better. With thresholds from 0 to
    1 it is the Brier score with scale="half". Proper, and strictly if all thresholds are included.

    Parameters
    ----------
    low : float, default 0.0
        The lowest threshold at which anybody acts.
    high : float, default 1.0
        The highest.

    References
    ----------
    Flores, Schulz, Levine and Wallach (2025), arXiv:2504.04528

    Examples
    --------
    >>> import verax as vx
    >>> rule = vx.rules.ThresholdBrier(0.1, 0.3)
    >>> y, p = [0, 1, 1], [0.05, 0.2, 0.9]
    >>> rule.samples(y, p).round(3).tolist(), round(rule(y, p), 3)
    ([0.0, 0.15, 0.0], 0.05)
    >>> rule == vx.parse("threshold_brier(0.1, 0.3)")
    True
    """

    low: float = 0.0
    high: float = 1.0

    name = "threshold_brier"
    title = "Brier score of a range of thresholds"
    summary = "squared error that matters between two thresholds"
    description = (
        "Twice the integral of the elementary score over the decision thresholds from the lowest to the "
        "highest at which anybody acts. What forecasts are beyond these does not count. Proper. For two "
        "classes."
    )
    latex = r"\bigl(\operatorname{clip}(1 - p_y, n, f)\bigr)^2 - n^2"
    use = (
        "Two classes, and costs that are known within a range: if everybody acts between 5 and 20 percent, "
        "only what happens there counts."
    )
    avoid = "Costs that are not known: the Brier score averages over all thresholds. More than two classes."
    reference = "arXiv:2504.04528"
    # The outcome is what was decided where that was right, else the other class.
    needs: ClassVar[frozenset[str]] = frozenset({"decision", "hit_lowest"})

    def __post_init__(self) -> None:
        numbers = all(isinstance(x, (int, float)) and not isinstance(x, bool) for x in (self.low, self.high))
        if not numbers or not 0 <= self.low < self.high <= 1:
            raise InputError(
                "must be two increasing probabilities, such as (0.05, 0.2)",
                argument="thresholds",
                found=f"they are ({show(self.low)}, {show(self.high)})",
                values=[self.low, self.high],
            )

    @property
    def properties(self) -> Properties:
        whole = Holds.BINARY if (self.low, self.high) == (0, 1) else Holds.NEVER
        even = Holds.BINARY if math.isclose(self.low + self.high, 1) else Holds.NEVER
        return Properties(
            proper=Holds.BINARY,
            strictly_proper=whole,
            local=Holds.BINARY,
            symmetric=even,
            distance_sensitive=whole,
            superior=even,
            bounded=Holds.BINARY,
        )

    def formula(self, stats: RowStats) -> Array:
        if stats.n_classes != 2:
            raise InputError(
                f"must fit {stats.n_classes:,} classes",
                argument="rule",
                found="threshold_brier is for two",
                remedies=[Remedy("For one class against the rest, pass its column of probabilities.")],
            )
        right = stats.hit_lowest
        happened = stats.decision * right + (1 - stats.decision) * (1 - right)
        # The least and the greatest error that anybody notices.
        near = self.low + happened * (1 - self.high - self.low)
        far = self.high + happened * (1 - self.low - self.high)
        error = stats.xp.minimum(stats.xp.maximum(1 - stats.p_true, near), far)
        return error * error - near * near

    def bounds(self, n_classes: int) -> tuple[float, float]:
        low, high = self.low, self.high
        return 0.0, max(high**2 - low**2, (1 - low) ** 2 - (1 - high) ** 2)
