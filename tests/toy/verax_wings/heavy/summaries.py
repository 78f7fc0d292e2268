"""What is kept of rows: sums of weights and losses, of all rows and of those that lose much."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from verax.common.specs import Whole
from verax.common.summaries import Summary, merges
from verax.engines.sums import Sum, Sums
from verax.inputs.arrays import to_host
from verax.inputs.handles import Part, Recipe
from verax.rules import Rule
from verax.scores.base import losses_of


class HeavySums(Summary, kind="heavy losses"):
    """The number of rows, and sums of w, of w of heavy rows, of w * loss, and of w * loss of heavy rows."""

    n_rows: int = merges(Whole())
    sums: Sum = merges(Sums(4, least=0))


@dataclass(frozen=True)
class HeavyRecipe(Recipe[HeavySums]):
    """Sums of losses above a limit."""

    model: str
    rule: Rule
    limit: float

    def take(self, part: Part) -> HeavySums:
        """Sum up the rows of one part."""
        rows = part.models[self.model]
        losses = np.asarray(to_host(losses_of([self.rule], rows)[0]), float)
        weights = rows.batch(0, rows.n_rows).weights
        w = np.ones(len(losses)) if weights is None else np.asarray(to_host(weights), float)
        heavy = losses > self.limit
        return HeavySums(rows.n_rows, Sum.of([w.sum(), w[heavy].sum(), w @ losses, w[heavy] @ losses[heavy]]))
