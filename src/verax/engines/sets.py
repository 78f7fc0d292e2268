"""Row statistics of prediction sets: their size, their ends, and whether they cover the outcome."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from verax.engines.stats import (
    Formula,
    Reduction,
    RowStats,
    compute,
    formula_for,
    reduction,
    refuse_set_scores,
    validate,
)
from verax.errors import RuleError
from verax.inputs.sets.rows import SetBatch, SetRows
from verax.kernels.statistics import OF_SETS

NO_ORDER = "The classes of these sets have no order: pass ordered=True. Top lists have no positions."


@formula_for.register
def _(_rows: SetRows, rule: Formula) -> Formula:
    refuse_set_scores(_rows, rule.needs)
    if not rule.needs <= OF_SETS:
        raise RuleError(
            f"{rule} scores probabilities, and a set states none. Score sets with level_set(t=0.1), or with "
            "winkler(level=0.9) where the classes have an order; or compare them as lists: `Sets.to_lists`."
        )
    return rule


@validate.register
def _(batch: SetBatch) -> tuple[bool, bool]:
    return True, batch.weights is None or bool(batch.weights.any())


@compute.register
def _(batch: SetBatch, needs: Collection[str]) -> RowStats:
    sets = batch.reduced
    stats = RowStats(
        np, batch.n_classes, size=sets.size.astype(np.float64), missed=(~sets.covered).astype(np.float64)
    )
    if {"span", "beyond"} & set(needs):
        if sets.low is None or sets.high is None:
            raise RuleError(NO_ORDER)
        span, beyond = ends_of(sets.low, sets.high, batch.y)
        stats.add(span=span, beyond=beyond)
    return stats


def ends_of(low: Any, high: Any, y: Any) -> tuple[Any, Any]:
    """The steps between the ends of sets, and from the outcomes to them; infinite for empty sets."""
    empty = low < 0
    span = np.where(empty, np.inf, high - low)
    beyond = np.where(empty, np.inf, np.maximum(np.maximum(low - y, y - high), 0))
    return span, beyond


class _SetReduction(Reduction):
    """A reduction that only collects, because sets are reduced when they are made."""

    def __init__(self, needs: frozenset[str]) -> None:
        self._needs = needs

    def __call__(self, batch: SetBatch) -> tuple[RowStats, int]:
        return compute(batch, self._needs), 0


@reduction.register
def _(_rows: SetRows, _block: int, needs: frozenset[str]) -> Reduction:
    return _SetReduction(needs)
