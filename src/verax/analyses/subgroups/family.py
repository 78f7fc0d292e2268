"""The tests of subgroups that share a level: each of them, and what the subgroups of a column show together.

What they show together has the weight of all subgroups of its column, and Holm's method hands the weight of
what is rejected to what is left.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from verax.analyses.cards.listcard import ListCard
from verax.analyses.subgroups.line import Subgroup
from verax.analyses.subgroups.ratios import Pooled
from verax.analyses.verdicts.calibration import enough_groups
from verax.inference.estimates import weighted_holm
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
        What the subgroups show together, by model, for two classes.
    """

    lines: list[Subgroup]
    among: int
    pooled: Mapping[str, Pooled] = field(default_factory=dict)


def in_one_family(columns: Sequence[FamilyColumn], level: float) -> list[FamilyColumn]:
    """The columns with corrected p-values, for each model over the subgroups of all columns.

    Subgroups whose groups are too few for the test have no corrected p-value.
    """
    found = list(columns)
    for model in dict.fromkeys(line.model for column in columns for line in column.lines):
        found = _of_model(found, model, level)
    return found


def _of_model(columns: Sequence[FamilyColumn], model: str, level: float) -> list[FamilyColumn]:
    """The columns with the p-values of one model corrected."""
    p: list[float] = []
    weights: list[float] = []
    pooled: list[Pooled | None] = []
    for column in columns:
        lines = [line for line in column.lines if line.model == model]
        tested = any(line.p_value is not None for line in lines)
        together = Pooled.of([line.events for line in lines]) if tested else None
        pooled.append(together)
        left = max(0, column.among - len(lines))
        p += [math.nan if together is None else together.p_value]
        p += [_p_value(line) for line in lines] + [1.0] * left
        weights += [float(column.among)] + [1.0] * (len(lines) + left)
    corrected = iter(weighted_holm(np.array(p), np.array(weights)).tolist())
    found = []
    for column, together in zip(columns, pooled, strict=True):
        whole = next(corrected)
        lines = [
            _with_p(line, next(corrected), level) if line.model == model else line for line in column.lines
        ]
        for _ in range(column.among - sum(line.model == model for line in lines)):
            next(corrected)
        known = dict(column.pooled)
        if together is not None:
            known[model] = replace(together, p_adjusted=whole)
        found.append(replace(column, lines=lines, pooled=known))
    return found


def _with_p(line: Subgroup, q: float, level: float) -> Subgroup:
    """A subgroup with its corrected p-value."""
    known, out = not math.isnan(q), q <= level
    return replace(
        line,
        p_adjusted=q if known else None,
        stands_out=out,
        undecided=line.undecided and not out,
    )


def _p_value(line: Subgroup) -> float:
    """The p-value of a subgroup; NaN where it was not tested, or the test does not hold its level."""
    if line.p_value is None:
        return math.nan
    card, parted = line.card, line.decomposition
    if parted.n_groups is None or isinstance(card, ListCard):
        return line.p_value
    counts = np.asarray(card.class_counts, float)
    rarer = card.effective_rows * (1 - counts.max() / counts.sum())
    return line.p_value if enough_groups(rarer, parted.n_groups, parted.n_classes) else math.nan
