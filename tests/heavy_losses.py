"""An analysis as a newcomer would write it: the share of the loss that comes from rows above a limit.

It opens rows, declares what is kept of them, says how that is made of a part, and concludes. Nothing here
knows whether rows are distributions or top lists, in memory, in files, on a cluster, or saved.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from verax import parse
from verax.common.specs import Whole
from verax.common.summaries import Summary, merges
from verax.engines.sums import Sum, Sums
from verax.inputs.arrays import to_host
from verax.inputs.handles import Part, Recipe
from verax.inputs.memory import open_rows
from verax.rules import Rule
from verax.scores.base import losses_of


def heavy_losses(y, p=None, *, rule, limit, **read):
    """The share of the rows that lose more than `limit`, and their share of the loss."""
    chosen = parse(rule)
    handle = open_rows(y, p, ordered=chosen.ordinal, single=True, **read)
    found = handle.summarise({"losses": HeavyRecipe(handle.one_model(), chosen, limit)})
    weight, heavy, loss, heavy_loss = found["losses"].sums.high.tolist()
    return {"n_rows": found["losses"].n_rows, "rows": heavy / weight, "loss": heavy_loss / loss}


class HeavySums(Summary, kind="test: heavy losses"):
    """Sums of w, of w of heavy rows, of w * loss, and of w * loss of heavy rows."""

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
