"""The measures of a card that need its rows, computed when they are asked for."""

from __future__ import annotations

import math
from dataclasses import dataclass

from verax.analyses.calibration.summary import Measure, measure_of, summarize
from verax.analyses.cards.lines import CardLine
from verax.analyses.measures import OF_ALL
from verax.common.caching import cached_property
from verax.inference.findings import Verdict
from verax.inference.intervals import Resampling
from verax.inputs.handles import Handle
from verax.scores.base import Rule


@dataclass(frozen=True, eq=False)
class RowMeasures:
    """The rows of a card, and how their measures are computed.

    Attributes
    ----------
    handle : Handle
        The rows.
    ordered : bool
        Whether the classes have an order.
    plan : Resampling
        Confidence, seed and what weights are.
    rules : tuple of Rule or None
        The rules that were asked for.
    """

    handle: Handle
    ordered: bool
    plan: Resampling
    rules: tuple[Rule, ...] | None = None

    @cached_property
    def lines(self) -> dict[str, CardLine]:
        """The measures that a card shows."""
        plan = self.plan
        found = summarize(
            self.handle,
            ordered=self.ordered,
            seed=plan.seed,
            confidence=plan.confidence,
            weights_are=plan.weights_are,
        )
        return {name: _line(measure) for name, measure in found.measures.items()}

    @cached_property
    def verdict(self) -> Verdict:
        """What there is to claim of the rows."""
        # Imported here: it imports SciPy, which takes longer than scoring a small file.
        from verax.analyses.verdicts.rows import judge

        return judge(self.handle, self.rules, ordered=self.ordered, plan=self.plan).verdict

    def line(self, name: str) -> CardLine:
        """One measure; those that are not shown are computed alone."""
        if name in OF_ALL:
            return self.lines[name]
        return _line(measure_of(self.handle, name, ordered=self.ordered, confidence=self.plan.confidence))


def _line(measure: Measure) -> CardLine:
    """A measure as a line of a card."""
    bounds = -math.inf, math.inf
    return CardLine(
        measure.name, measure.mean, measure.interval, bounds, measure.orientation, measure.summary
    )
