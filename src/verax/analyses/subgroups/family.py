"""The tests of subgroups that share a level: two families, each with half of it.

One family is what the subgroups of each column show together, the other is every subgroup by itself (Holm).
A family that is rejected hands its half to the other (Bretz et al. 2009, doi:10.1002/sim.3495).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from verax.analyses.subgroups.line import Subgroup
from verax.analyses.subgroups.together import Pooled
from verax.inference.estimates import holm
from verax.inference.findings import Level


def level_of_subgroups(confidence: float) -> float:
    """The level of the tests of subgroups, whatever else is tested beside them."""
    return round(Level.at(confidence).after(answered=False).level, 12)


@dataclass(frozen=True)
class FamilyColumn:
    """The subgroups of one column.

    Attributes
    ----------
    lines : list of Subgroup
        A line for each subgroup and model.
    among : int
        How many subgroups there are, where these are some of them.
    pooled : mapping of str to Pooled
        What the subgroups show together, by model.
    """

    lines: list[Subgroup]
    among: int
    pooled: Mapping[str, Pooled] = field(default_factory=dict)


def in_one_family(columns: Sequence[FamilyColumn], level: float) -> list[FamilyColumn]:
    """The columns with corrected p-values, for each model over the subgroups of all columns."""
    found = list(columns)
    for model in dict.fromkeys(line.model for column in columns for line in column.lines):
        found = _of_model(found, model, level)
    return found


def _of_model(columns: Sequence[FamilyColumn], model: str, level: float) -> list[FamilyColumn]:
    """The columns with the p-values of one model corrected."""
    lines = [line for column in columns for line in column.lines if line.model == model]
    p = np.array([math.nan if line.p_value is None else line.p_value for line in lines])
    unseen = sum(max(0, column.among - _size(column, model)) for column in columns)
    own = holm(p, int(np.count_nonzero(~np.isnan(p))) + unseen)
    # A column counts as one test of what its subgroups show together.
    together = {i: column.pooled[model] for i, column in enumerate(columns) if model in column.pooled}
    n = len(together)
    whole = max((min(1.0, n * pooled.p_whole) for pooled in together.values()), default=math.nan)
    every = 1.0 if unseen or np.isnan(own).all() else float(np.nanmax(own))
    corrected = iter([handed_on(q, whole) for q in own.tolist()])
    found = []
    for i, column in enumerate(columns):
        known = dict(column.pooled)
        if i in together:
            known[model] = replace(
                known[model],
                p_adjusted=handed_on(min(1.0, 2 * n * known[model].p_value), every),
                slope_p_adjusted=None
                if known[model].slope_p_value is None
                else handed_on(min(1.0, 2 * n * (known[model].slope_p_value or 0.0)), every),
            )
        with_p = [
            _with_p(line, next(corrected), level) if line.model == model else line for line in column.lines
        ]
        found.append(replace(column, lines=with_p, pooled=known))
    return found


def handed_on(p: float, other: float) -> float:
    """The p-value of a test of one family: at half of the level, or at all of it once the other is rejected.

    >>> handed_on(0.03, 0.5), handed_on(0.03, 0.02), handed_on(0.03, math.nan)
    (0.06, 0.04, 0.03)
    """
    return p if math.isnan(p) or math.isnan(other) else min(1.0, 2 * p, max(p, 2 * other))


def _size(column: FamilyColumn, model: str) -> int:
    return sum(line.model == model for line in column.lines)


def _with_p(line: Subgroup, q: float, level: float) -> Subgroup:
    """A subgroup with its corrected p-value."""
    return replace(line, p_adjusted=None if math.isnan(q) else q, stands_out=q <= level)
