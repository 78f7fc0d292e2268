"""Ranks of the worst rows by other rules, where the rows are read once: from histograms of losses.

How many rows are worse than one of them is known but for the rows in the same bin. Bins are fixed in
advance, so parts add up; of each the smallest and the largest loss are known, so that bins of equal losses,
and rows at the upper end of their bin, have exact ranks.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from verax.analyses.parts import seen
from verax.analyses.worst import Worst, ranking, read_worst
from verax.analyses.worst_rows import WorstRecipe, rounded_losses
from verax.common.packing import dump, load, refusing
from verax.engines.histograms import Keyed, Run, bin_numbers, compiled
from verax.engines.tables import RankTable
from verax.inputs.forecasts import Forecasts
from verax.inputs.handles import Gathering, Handle, Part, Recipe, Summaries
from verax.scores.base import Rule
from verax.scores.registry import name_of

_KIND = "numbers of losses"


@dataclass(frozen=True)
class LossCounts:
    """How many rows have a loss in each bin, by rule; with the extremes of the losses there."""

    rules: Mapping[str, Keyed]

    def merge(self, other: LossCounts) -> LossCounts:
        """Of the rows of both."""
        return LossCounts({name: own.merge(other.rules[name]) for name, own in self.rules.items()})

    def to_bytes(self) -> bytes:
        """As bytes that `from_bytes` reads."""
        return dump(_KIND, {"rules": {name: own.total.to_values() for name, own in self.rules.items()}})

    @classmethod
    def from_bytes(cls, data: bytes) -> LossCounts:
        """What `to_bytes` wrote."""
        values = load(data, _KIND)
        with refusing("is missing or of another type"):
            return cls({name: Keyed((Run.from_values(own),)) for name, own in values["rules"].items()})

    def rank(self, rule: str, loss: float) -> tuple[int, int]:
        """The smallest rank that a row of this loss can have, and by how much it can be larger."""
        run = self.rules[rule].total
        number = int(bin_numbers(np.array([loss]))[0])
        place = int(np.searchsorted(run.keys, number))
        counts = run.sums.high[:, 0]
        above = int(counts[place + 1 :].sum())
        if run.most[place, 0] <= loss:
            return 1 + above, 0
        # The row with the largest loss is worse. This one is not, nor is the one with the smallest loss.
        others = int(counts[place]) - (1 if run.least[place, 0] >= loss else 2)
        return 1 + above + 1, others - 1


@dataclass(frozen=True)
class LossCountRecipe(Recipe[LossCounts]):
    """Histograms of the losses of one model by some rules."""

    model: str
    rules: tuple[Rule, ...]

    def gathering(self) -> Gathering[LossCounts]:
        """Tables that rows are added to in place."""
        return _Gathered(self)

    def take(self, part: Part) -> LossCounts:
        """Of some rows."""
        losses = rounded_losses(part, self.model, self.rules)
        return LossCounts(
            {
                name_of(rule): Keyed((Run.of(bin_numbers(own), [None], [own]),))
                for rule, own in zip(self.rules, np.ascontiguousarray(losses.T), strict=True)
            }
        )

    def load(self, stored: bytes) -> LossCounts:
        """From bytes."""
        return LossCounts.from_bytes(stored)


class _Gathered:
    """Histograms of parts, whose rows are added to tables in place where there are many."""

    def __init__(self, recipe: LossCountRecipe) -> None:
        self._recipe = recipe
        self._tables: dict[str, RankTable] = {}
        self._others: LossCounts | None = None

    def add(self, part: Part) -> None:
        recipe = self._recipe
        if not isinstance(part.models[recipe.model], Forecasts) or not compiled(part.n_rows):
            found = recipe.take(part)
            self._others = found if self._others is None else self._others.merge(found)
            return
        rows = seen(part, recipe.model, recipe.rules)
        one_kind = part.once("rows of one kind", lambda: np.zeros(part.n_rows, np.uint8))
        for rule in recipe.rules:
            table = self._tables.setdefault(name_of(rule), RankTable(0, 1))
            table.add(np.ascontiguousarray(rows.losses[rule]), (), one_kind)

    def summary(self) -> LossCounts:
        runs = {name: table.histogram((), 0).bins.total for name, table in self._tables.items()}
        found = LossCounts({name: Keyed((_counts_of(run),)) for name, run in runs.items()})
        if self._others is None:
            return found
        return found.merge(self._others) if runs else self._others


def _counts_of(run: Run) -> Run:
    """The numbers of rows alone."""
    sums = replace(run.sums, high=run.sums.high[:, :1].copy(), low=run.sums.low[:, :1].copy())
    return replace(run, sums=sums)


# ---- the worst rows with their ranks ---------------------------------------------------------------


def worst_recipes(handle: Handle, model: str, rule: Rule, n: int) -> dict[str, Recipe[Any]]:
    """What finds the worst rows of a model and their ranks; summaries that were saved may have no ranks."""
    rules = tuple(ranking(rule))
    counts = LossCountRecipe(model, rules[1:])
    if not handle.knows(counts):
        return {f"{model}/worst": WorstRecipe(model, rules[:1], n)}
    return {f"{model}/worst": WorstRecipe(model, rules, n), f"{model}/ranks": counts}


def read_ranked(
    found: Summaries, handle: Handle, model: str, rule: Rule, classes: tuple[Hashable, ...] | None = None
) -> Worst:
    """The worst rows with their ranks by all rules, from what these recipes found."""
    rules, rows = tuple(ranking(rule)), found[f"{model}/worst"]
    worst = read_worst(rows, handle, rules, classes=classes)
    counts: LossCounts | None = found.found.get(f"{model}/ranks")
    if counts is None:
        return worst
    cases = []
    for case, losses in zip(worst.cases, rows.losses.tolist(), strict=True):
        ranks, within = dict(case.ranks), dict(case.rank_within)
        for other, loss in zip(rules[1:], losses[1:], strict=True):
            name = name_of(other)
            ranks[name], beyond = counts.rank(name, loss)
            within |= {name: beyond} if beyond else {}
        cases.append(replace(case, ranks=ranks, rank_within=within))
    return replace(worst, cases=tuple(cases))
