"""Ranks of the worst rows by other rules, where the rows are read once: from histograms of losses.

How many rows are worse than one of them is known but for the rows in the same bin. Bins are fixed in
advance, so parts add up; of each the smallest and the largest loss are known, so that bins of equal losses,
and rows at the upper end of their bin, have exact ranks.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from verax.analyses.worst import Worst, ranking, read_worst
from verax.analyses.worst_rows import WorstRecipe, rounded_losses
from verax.common.packing import UnreadableError
from verax.common.specs import Each, Valued
from verax.common.stored import only_counts
from verax.common.summaries import Summary, merges
from verax.engines.keyed import Keyed, Run
from verax.engines.keys import loss_keys
from verax.inputs.handles import Handle, Part, Recipe, Summaries
from verax.scores.base import Rule
from verax.scores.registry import name_of


class LossCounts(Summary, kind="numbers of losses"):
    """How many rows have a loss in each bin, by rule; with the extremes of the losses there."""

    rules: Mapping[str, Keyed] = merges(Each(Valued(Keyed)))

    def _check(self) -> None:
        for name, bins in self.rules.items():
            if bins.total.sums.high.shape[1] != 1 or bins.total.least.shape[1] != 1:
                raise UnreadableError("has other sums than numbers of rows", "rules", name)
            only_counts(bins.total.sums.high)

    def rank(self, rule: str, loss: float) -> tuple[int, int]:
        """The smallest rank that a row of this loss can have, and by how much it can be larger."""
        return rank_in(self.rules[rule].total, 0, loss)


def rank_in(run: Run, level: int, loss: float) -> tuple[int, int]:
    """The smallest rank of a row of this loss, and by how much it can be larger, from the bins of all rows.

    Neighbouring bins were joined `level` times; the last extremes of each are those of the losses.
    """
    number = int(loss_keys(np.array([loss]), level)[0])
    place = int(np.searchsorted(run.keys, number))
    counts = run.sums.high[:, 0]
    above = int(counts[place + 1 :].sum())
    if run.most[place, -1] <= loss:
        return 1 + above, 0
    # The row with the largest loss is worse. This one is not, nor is the one with the smallest loss.
    others = int(counts[place]) - (1 if run.least[place, -1] >= loss else 2)
    return 1 + above + 1, others - 1


@dataclass(frozen=True)
class LossCountRecipe(Recipe[LossCounts], cases=True):
    """Histograms of the losses of one model by some rules."""

    model: str
    rules: tuple[Rule, ...]

    def check(self, summary: LossCounts) -> None:
        """Refuse counts by other rules."""
        if set(summary.rules) != set(map(name_of, self.rules)):
            raise UnreadableError("is about other rules", "rules")

    def take(self, part: Part) -> LossCounts:
        """Count the losses of one part."""
        losses = rounded_losses(part, self.model, self.rules)
        return LossCounts(
            {
                name_of(rule): Keyed((Run.of_values(column, loss_keys, 0, [None]),))
                for rule, column in zip(self.rules, np.ascontiguousarray(losses.T), strict=True)
            }
        )


# ---- the worst rows with their ranks ---------------------------------------------------------------


def worst_recipes(
    handle: Handle, model: str, rule: Rule, n: int, counted: Collection[Any] = ()
) -> dict[str, Recipe[Any]]:
    """The recipes for the worst rows of a model and their ranks; saved summaries may have no ranks.

    Losses by the rules `counted` are kept or counted by others. Histograms have no rows without weight, so
    they serve where no row has a weight.
    """
    rules = tuple(ranking(rule))
    lacking = tuple(other for other in rules[1:] if handle.weighted or other not in counted)
    counts = LossCountRecipe(model, lacking)
    if lacking and not handle.knows(counts):
        return {f"{model}/worst": WorstRecipe(model, rules[:1], n)}
    return {f"{model}/worst": WorstRecipe(model, rules, n)} | ({f"{model}/ranks": counts} if lacking else {})


def read_ranked(
    summaries: Summaries,
    handle: Handle,
    model: str,
    rule: Rule,
    classes: tuple[Hashable, ...] | None = None,
    counted: Callable[[str, float], tuple[int, int]] | None = None,
) -> Worst:
    """The worst rows with their ranks by all rules, from what these recipes found; `counted` gives
    other ranks.
    """
    rules, rows = tuple(ranking(rule)), summaries[f"{model}/worst"]
    worst = read_worst(rows, handle, rules, classes=classes)
    counts: LossCounts | None = summaries.by_name.get(f"{model}/ranks")
    if rows.losses.shape[1] < len(rules):
        return worst
    cases = []
    for case, losses in zip(worst.cases, rows.losses.tolist(), strict=True):
        ranks, within = dict(case.ranks), dict(case.rank_within)
        for other, loss in zip(rules[1:], losses[1:], strict=True):
            name = name_of(other)
            if counts is not None and name in counts.rules:
                ranks[name], beyond = counts.rank(name, loss)
            else:
                assert counted is not None
                ranks[name], beyond = counted(name, loss)
            within |= {name: beyond} if beyond else {}
        cases.append(replace(case, ranks=ranks, rank_within=within))
    return replace(worst, cases=tuple(cases))
