"""Subgroups in the report on predictions that are not in memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from verax.analyses.subgroups.bounded import BoundedBreakdown, BoundedRecipe
from verax.analyses.subgroups.result import Subgroups
from verax.analyses.subgroups.streams import SubgroupRequest, read_subgroups, subgroup_recipes
from verax.inference.intervals import Resampling
from verax.inputs.breakdown import Breakdown
from verax.inputs.handles import Handle, Recipe
from verax.report.contents import LEAST, most_subgroups
from verax.report.problem import Problem
from verax.scores.registry import RULES

# How many values a column may have whose subgroups are kept while the rows are read.
MOST_VALUES = 100
_NAME = "by {}"


@dataclass(frozen=True)
class Breakdowns:
    """The subgroups of each breakdown, those that are left out with their sizes, and what has too many."""

    shown: dict[str, Subgroups] = field(default_factory=dict)
    left_out: dict[str, list[tuple[str, int]]] = field(default_factory=dict)
    too_many: tuple[str, ...] = ()

    def has(self, name: str) -> bool:
        """Whether there is something to say about a breakdown."""
        return name in self.left_out or name in self.too_many


def breakdown_recipes(handle: Handle, problem: Problem, plan: Resampling) -> dict[str, Recipe[Any]]:
    """What is summed in the subgroups of every column."""
    recipes = subgroup_recipes(handle, _request(problem, None, 1), plan)
    found = {_NAME.format(column): BoundedRecipe(column, recipes, MOST_VALUES) for column in handle.by}
    # Older versions saved none.
    return {name: recipe for name, recipe in found.items() if handle.knows(recipe)}


def read_breakdowns(
    handle: Handle, problem: Problem, plan: Resampling, found: Mapping[str, Any]
) -> Breakdowns:
    """The largest subgroups of every breakdown, as the report on rows in memory shows them."""
    shown, left_out, too_many = {}, {}, []
    for column, name in zip(handle.by, problem.by, strict=True):
        sums: BoundedBreakdown | None = found.get(_NAME.format(column))
        if sums is None:
            continue
        sums = sums.fitting(1)
        if sums.found is None:
            too_many.append(name)
            continue
        parts = sums.found if sums.alone is None else sums.alone
        kept, left = _largest(handle, problem, parts)
        first = f"card:{handle.models[0]}"
        left_out[name] = [(str(label), parts[label][first].n_rows) for label in left]
        if kept:
            some = Breakdown({label: parts[label] for label in kept})
            request = _request(problem, column, len(parts.labels))
            names = dict(zip(handle.models, problem.models, strict=True))
            within = sums.alone is not None
            shown[name] = read_subgroups(
                some, column, handle, request, plan, within_groups=within, names=names
            )
    return Breakdowns(shown, left_out, tuple(too_many))


def _request(problem: Problem, column: str | None, among: int) -> SubgroupRequest:
    rule = RULES["rps" if problem.ordered else "brier"]
    rules = tuple(dict.fromkeys([rule, *problem.rules]))
    return SubgroupRequest(column, rule, rules, problem.ordered, problem.costs, LEAST, among)


def _largest(handle: Handle, problem: Problem, parts: Breakdown) -> tuple[list[Any], list[Any]]:
    """The labels of the largest subgroups that are large enough, and the others; the largest first."""
    kept: list[Any] = []
    left: list[Any] = []
    cards = {label: parts[label][f"card:{handle.models[0]}"] for label in parts.labels}
    for label, card in sorted(cards.items(), key=lambda pair: -pair[1].n_rows):
        units = card.n_rows if card.n_groups is None else card.n_groups
        enough = card.n_rows >= LEAST and units >= 2 and (card.weight > 1 or not problem.weighted)
        (kept if enough and len(kept) < most_subgroups(problem) else left).append(label)
    return kept, left
