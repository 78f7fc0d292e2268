"""Subgroups in the report: the largest of every breakdown, from sums over their rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from verax._settings import settings
from verax.analyses.subgroups.analysis import (
    BoundedBreakdown,
    BoundedRecipe,
    SubgroupRequest,
    in_order_of_time,
    read_subgroups,
    subgroup_recipes,
)
from verax.analyses.subgroups.line import Subgroup
from verax.analyses.subgroups.result import Subgroups
from verax.inference.intervals import Resampling
from verax.inputs.breakdown import Breakdown
from verax.inputs.handles import Handle, Recipe
from verax.report.limits import LEAST, SUBGROUPS, most_subgroups
from verax.report.problem import Problem
from verax.scores.combinators import padded

_NAME = "by {}"


@dataclass(frozen=True)
class Breakdowns:
    """The subgroups of each breakdown that are tested, those that are left out with their sizes, and what has
    too many.
    """

    shown: dict[str, Subgroups] = field(default_factory=dict)
    left_out: dict[str, list[tuple[str, int]]] = field(default_factory=dict)
    too_many: tuple[str, ...] = ()


def breakdown_recipes(handle: Handle, problem: Problem, plan: Resampling) -> dict[str, Recipe[Any]]:
    """What is summed in the subgroups of every column."""
    recipes = subgroup_recipes(handle, _request(problem, None, 1), plan)
    by_column = {
        _NAME.format(column): BoundedRecipe(column, recipes, settings.report_subgroups)
        for column in handle.by
    }
    # Older versions saved none.
    return {name: recipe for name, recipe in by_column.items() if handle.knows(recipe)}


def read_breakdowns(
    handle: Handle, problem: Problem, plan: Resampling, summaries: Mapping[str, Any]
) -> Breakdowns:
    """The largest subgroups of every breakdown."""
    shown, left_out, too_many = {}, {}, []
    for column, name in zip(handle.by, problem.by, strict=True):
        sums: BoundedBreakdown | None = summaries.get(_NAME.format(column))
        if sums is None:
            continue
        sums = sums.fitting(1)
        if sums.found is None:
            too_many.append(name)
            continue
        parts = sums.found if sums.alone is None else sums.alone
        kept, left = _largest(handle, problem, parts)
        first = f"card:{handle.models[0]}"
        sizes = {label: parts[label][first].n_rows for label in left}
        left_out[name] = [(str(label), n) for label, n in (sizes | dict(sums.beyond)).items()]
        if kept:
            some = Breakdown({label: parts[label] for label in kept})
            n_labels = len(parts.labels) + len(sums.beyond)
            request, names = _request(problem, column, n_labels), problem.models
            within = sums.alone is not None
            found_in = read_subgroups(some, column, handle, request, plan, within_groups=within, names=names)
            if problem.time_ordered:
                found_in = in_order_of_time(found_in, handle, request, plan, names)
            shown[name] = found_in
    return Breakdowns(shown, left_out, tuple(too_many))


def drawn(subgroups: Subgroups) -> list[Subgroup]:
    """The lines of the subgroups that fit on a page: the largest, but first those that stand out."""
    by_size = sorted(subgroups.lines, key=lambda line: (not line.stands_out, -line.card.n_rows))
    labels = list(dict.fromkeys(line.label for line in by_size))[:SUBGROUPS]
    return [line for line in subgroups.lines if line.label in labels]


def _request(problem: Problem, column: str | None, among: int) -> SubgroupRequest:
    rule = problem.calibrated_by
    rules = tuple(dict.fromkeys([rule, *problem.rules]))
    if problem.lists:
        rule, rules = padded(rule), tuple(padded(other) for other in rules)
    return SubgroupRequest(column, rule, rules, problem.ordered, problem.costs, LEAST, among)


def _largest(handle: Handle, problem: Problem, parts: Breakdown) -> tuple[list[Any], list[Any]]:
    """The labels of the largest subgroups that are large enough, and the others; the largest first."""
    kept: list[Any] = []
    left: list[Any] = []
    most = most_subgroups(problem.n_classes, len(problem.models))
    # One copy of one row says nothing about a variance. Of other weights only the ratios matter.
    lightest = 1 if problem.weighted and problem.weights_are == "counts" else 0
    cards = {label: parts[label][f"card:{handle.models[0]}"] for label in parts.labels}
    for label, card in sorted(cards.items(), key=lambda pair: -pair[1].n_rows):
        units = card.n_rows if card.n_groups is None else card.n_groups
        enough = card.n_rows >= LEAST and units >= 2 and card.weight > lightest
        (kept if enough and len(kept) < most else left).append(label)
    return kept, left
