"""Sensitivity, specificity, predictive values and F1 on the card of two classes, from its confusion counts.

Decisions take the most likely class, and the event is the second class. So these are the rates of
`operating_points` at a threshold of one half, but that a row with one half for both classes is left alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from verax.analyses.bands import States, ThresholdCells
from verax.analyses.calibration.summary import Measure, measure_of, summarize
from verax.analyses.cards.lines import CardLine
from verax.analyses.measures import OF_ALL
from verax.analyses.rates import RATES, Rates, rate_interval
from verax.analyses.units import CountedUnits
from verax.common.caching import cached_property
from verax.engines.tally import RuleSums
from verax.inference.findings import Verdict
from verax.inference.intervals import Resampling, few_groups
from verax.inputs.arrays import Floats
from verax.inputs.handles import Handle
from verax.scores.base import Rule

# The rates that a card shows; it knows all of them.
SHOWN = ("sensitivity", "specificity", "ppv", "npv", "f1")
_TWO_WAYS = "there are two kinds of groups"


def rate_lines(tally: RuleSums, plan: Resampling) -> dict[str, CardLine]:
    """All rates of the decisions of two classes, with their intervals."""
    assert tally.counts is not None
    counts = tally.counts
    weights = counts.cells.high
    total = float(weights.sum())
    if not total > 0:
        return {}
    squares = (counts.cells.scaled(tally.row) if plan.copies else counts.squared).high / total**2
    kinds = () if tally.clusters is None else tally.clusters.kinds
    groups = None
    if len(kinds) == 1:
        clusters = kinds[0]
        occurring, group_cells = clusters.cells.matrix(len(clusters.labels))
        by_group: Floats = np.zeros((len(clusters.labels), len(weights)))
        by_group[:, occurring] = group_cells.toarray() / total
        groups = by_group[by_group.sum(axis=1) > 0]
        sizes = groups.sum(axis=1)
        units = CountedUnits.of(len(groups), 1.0, float(sizes @ sizes), in_groups=True)
    else:
        n = tally.weight if plan.copies else tally.n_positive
        units = CountedUnits.of(round(n), 1.0, float(squares.sum()), in_groups=False)
    # Cells are numbered by outcome, then by decision.
    outcome, decision = np.divmod(np.arange(len(weights)), 2)
    cells = ThresholdCells(
        decision[:, None], outcome.astype(float), weights / total, squares, squares, groups, units
    )
    states = States(cells, 1)
    rates, tail = Rates(states, few=plan.few_groups), (1 - plan.confidence) / 2
    caution = few_groups(units.n) if units.grouped else ""
    lines = {}
    for name, kind in RATES.items():
        ends = rates.limits(name, tail)[:, 0] if len(kinds) < 2 else np.full(2, np.nan)
        why = caution if len(kinds) < 2 else _TWO_WAYS
        value, confidence = float(rates.value(name)[0]), plan.confidence
        method = rates.method(name, 0) if len(kinds) < 2 else "mid-P"
        told = rate_interval(name, value, ends, confidence=confidence, method=method, caution=why)
        lines[name] = CardLine(name, value, told, kind.bounds(2), kind.orientation, kind.summary)
    return lines


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
        summary = summarize(
            self.handle,
            ordered=self.ordered,
            seed=plan.seed,
            confidence=plan.confidence,
            weights_are=plan.weights_are,
        )
        return {name: _line(measure) for name, measure in summary.measures.items()}

    @cached_property
    def verdict(self) -> Verdict:
        """Claims about the rows."""
        # Imported here: it imports SciPy, which takes longer than scoring a small file.
        from verax.analyses.verdicts.rows import judge

        return judge(self.handle, self.rules, ordered=self.ordered, plan=self.plan).verdict

    def line(self, name: str) -> CardLine:
        """One measure; those that are not shown are computed alone."""
        if name in OF_ALL:
            return self.lines[name]
        return _line(measure_of(self.handle, name, ordered=self.ordered, plan=self.plan))


def _line(measure: Measure) -> CardLine:
    """A measure as a line of a card."""
    bounds = -math.inf, math.inf
    return CardLine(
        measure.name, measure.mean, measure.interval, bounds, measure.orientation, measure.summary
    )
