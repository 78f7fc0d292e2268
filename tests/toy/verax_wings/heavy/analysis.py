"""The public function: open rows, ask for what is needed of them, and conclude."""

from __future__ import annotations

from typing import Unpack

from verax.inputs.memory import open_rows
from verax.inputs.options import RowOptions, reads
from verax.rules import Rule
from verax.scores.registry import name_of, parse

from .result import HeavyLosses
from .summaries import HeavyRecipe, HeavySums


@reads
def heavy_losses(
    y: object,
    p: object = None,
    *,
    rule: str | Rule = "brier",
    limit: float = 0.5,
    **read: Unpack[RowOptions],
) -> HeavyLosses:
    """The share of the rows that lose more than `limit`, and their share of the loss."""
    chosen = parse(rule)
    handle = open_rows(y, p, ordered=chosen.ordinal, single=True, **read)
    summaries = handle.summarise({"heavy": HeavyRecipe(handle.one_model(), chosen, limit)})
    return concluded(summaries["heavy"], chosen, limit).with_skipped(summaries.skipped)


def concluded(sums: HeavySums, rule: Rule, limit: float) -> HeavyLosses:
    """The result, from the sums."""
    weight, heavy, loss, heavy_loss = sums.sums.high.tolist()
    return HeavyLosses(name_of(rule), limit, sums.n_rows, heavy / weight, heavy_loss / loss)
