"""Models compared by one rate of decisions at a threshold."""

from __future__ import annotations

from dataclasses import dataclass, replace

from verax.analyses.comparison.sides import partner_of
from verax.analyses.rates import COMPARED
from verax.inference.findings import Verdict
from verax.inputs.handles import Handle
from verax.wings.decide.rates.points import operating_points
from verax.wings.decide.rates.result import OperatingPoints, RateDifference


@dataclass(frozen=True)
class ComparedRates:
    """Rates of several models, compared by one of them.

    Attributes
    ----------
    points : OperatingPoints
        All rates.
    rate : str
        The name of the one.
    """

    points: OperatingPoints
    rate: str

    @property
    def verdict(self) -> Verdict:
        """Which model is best by the rate."""
        return self.points.verdict_by(self.rate)

    def difference(self, a: str, b: str) -> RateDifference:
        """The rate of one model minus that of another."""
        return self.points.difference(a, b, self.rate)

    def _text(self) -> str:
        rates = {self.rate, partner_of(self.rate, COMPARED)}
        shown = [gap for gap in self.points.differences if gap.rate in rates]
        return repr(replace(self.points, differences=tuple(shown)))


def compare_rates(
    handle: Handle, rate: str, threshold: float | str, *, ordered: bool, confidence: float, seed: int
) -> ComparedRates:
    """Compare the models of some rows by a rate at a threshold, given or chosen on these rows."""
    points = operating_points(handle, threshold=threshold, ordered=ordered, confidence=confidence, seed=seed)
    return ComparedRates(points, rate)
