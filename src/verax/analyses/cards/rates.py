"""Sensitivity, specificity, predictive values and F1 on the card of two classes, from its confusion counts.

Decisions take the most likely class, and the event is the second class. So these are the rates of
`operating_points` at a threshold of one half, but that a row with one half for both classes is left alone.
"""

from __future__ import annotations

import numpy as np

from verax.analyses.cards.lines import CardLine
from verax.analyses.decisions.bands import States, ThresholdCells
from verax.analyses.operating.rates import RATES, Rates, quantile_of
from verax.analyses.operating.result import rate_of
from verax.analyses.units import CountedUnits
from verax.engines.tally import RuleSums
from verax.inference.intervals import Resampling, few_groups
from verax.inputs.arrays import Floats

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
        occurring, own = clusters.cells.matrix(len(clusters.labels))
        by_group: Floats = np.zeros((len(clusters.labels), len(weights)))
        by_group[:, occurring] = own.toarray() / total
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
    rates, quantile = Rates(states), quantile_of(states, plan.confidence)
    caution = few_groups(units.n) if units.grouped else ""
    found = {}
    for name, kind in RATES.items():
        ends = rates.limits(name, quantile)[:, 0] if len(kinds) < 2 else np.full(2, np.nan)
        why = caution if len(kinds) < 2 else _TWO_WAYS
        each = rate_of(name, float(rates.value(name)[0]), ends, plan.confidence, "Wilson and MOVER", why)
        bounds = kind.bounds(2)
        found[name] = CardLine(name, each.value, each.interval, bounds, kind.orientation, kind.summary)
    return found
