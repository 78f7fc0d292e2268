"""Subgroups of predictions that are not in memory, from one pass over them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from verax.analyses.calibration.components import Decomposition
from verax.analyses.calibration.events import split
from verax.analyses.calibration.eventsums import EventRecipe
from verax.analyses.calibration.liststreams import read_list_decomposition
from verax.analyses.calibration.listsums import ListEventRecipe, ListSums
from verax.analyses.calibration.mass import split_of_lists
from verax.analyses.calibration.streams import read_decomposition
from verax.analyses.cards.recipes import CardRecipe
from verax.analyses.cards.scorecard import Scorecard, check_whole
from verax.analyses.comparison.conclusions import read_comparison
from verax.analyses.comparison.paired import PairedRecipe
from verax.analyses.comparison.result import Comparison
from verax.analyses.listfaults import faults_in, with_fault_recipes
from verax.analyses.subgroups.result import Subgroup, Subgroups
from verax.analyses.subgroups.testing import check_sizes, corrected
from verax.common.checks import check_count
from verax.errors import InputError, Remedy, join, show
from verax.inference.intervals import Resampling
from verax.inputs.arrays import Floats
from verax.inputs.breakdown import Breakdown, BreakdownRecipe
from verax.inputs.handles import Handle, Recipe
from verax.scores.base import Rule
from verax.scores.combinators import Padded
from verax.scores.metrics import CostsLike, needs_order
from verax.scores.registry import name_of


@dataclass(frozen=True)
class SubgroupRequest:
    """What is asked about the subgroups of one column; the names are those of `subgroups`."""

    by: object
    rule: Rule
    rules: tuple[Rule, ...]
    ordered: bool
    costs: CostsLike | None
    least: int
    among: int | None


def subgroups_of_handle(handle: Handle, asked: SubgroupRequest, plan: Resampling) -> Subgroups:
    """`subgroups` for predictions that are not in memory."""
    ordered = needs_order([asked.rule, *asked.rules], costs=asked.costs, ordered=asked.ordered)
    handle = handle.in_order() if ordered else handle
    column = _column(handle, asked.by)
    recipes = {"by": BreakdownRecipe(column, subgroup_recipes(handle, asked, plan))}
    found = handle.summarise(with_fault_recipes(handle, recipes))
    parts = read_subgroups(found["by"], column, handle, asked, plan)
    return parts.with_skipped(found.skipped).with_faults(faults_in(handle, found))


def subgroup_recipes(handle: Handle, asked: SubgroupRequest, plan: Resampling) -> dict[str, Recipe[Any]]:
    """What is summed in every subgroup."""
    recipes: dict[str, Recipe[Any]] = {}
    # The draws asked for are those of the tests of calibration; cards have their own.
    of_card = Resampling(plan.confidence, seed=plan.seed, weights_are=plan.weights_are)
    for model in handle.models:
        recipes[f"card:{model}"] = CardRecipe(model, asked.rules, asked.ordered, asked.costs, of_card)
        recipes[f"events:{model}"] = _event_recipe(handle, model, asked.rule)
    if len(handle.models) > 1:
        recipes["pairs"] = PairedRecipe(handle.models, (asked.rule,), traits=not handle.lists)
    return recipes


def _event_recipe(handle: Handle, model: str, rule: Rule) -> Recipe[Any]:
    """What the score of a model is decomposed from."""
    if handle.lists:
        split_of_lists(rule, handle.n_classes)
        return ListEventRecipe(model, scored=True)
    how = split(rule, handle.n_classes)
    return EventRecipe(model, how.thresholds, how.binary)


def _decomposition(events: Any, rule: Rule, handle: Handle, plan: Resampling) -> Decomposition:
    if isinstance(events, ListSums):
        inner = rule.rule if isinstance(rule, Padded) else rule
        return read_list_decomposition(events, inner, handle.n_classes, plan)
    return read_decomposition(events, rule, handle, plan)


def read_subgroups(
    found: Breakdown,
    column: str,
    handle: Handle,
    asked: SubgroupRequest,
    plan: Resampling,
    *,
    within_groups: bool = False,
    names: Mapping[str, str] | None = None,
) -> Subgroups:
    """The subgroups from their sums; `within_groups` if each is one group and the sums have none. Models may
    have other names in the result.
    """
    shown = {model: model if names is None else names[model] for model in handle.models}
    first = f"card:{handle.models[0]}"
    check_sizes({label: found[label][first].n_rows for label in found.labels}, asked.least)
    _check_groups({label: found[label][first] for label in found.labels})
    if asked.among is not None:
        check_count("among", asked.among, least=len(found.labels))
    lines: list[Subgroup] = []
    comparisons: dict[Any, Comparison] = {}
    draw: dict[tuple[Any, str], Callable[[int, int], Floats]] = {}
    for label in found.labels:
        own = found[label]
        for model in handle.models:
            card, events = own[f"card:{model}"], own[f"events:{model}"]
            check_whole(card, f"{handle.name}, {column} {label}")
            parted = replace(_decomposition(events, asked.rule, handle, plan), n_rows=card.n_rows)
            lines.append(Subgroup(label, shown[model], card, parted, parted.p_value, None, False))
            draw[label, shown[model]] = partial(_drawn, events, asked.rule, handle, plan)
        if "pairs" in own:
            comparisons[label] = read_comparison(
                own["pairs"],
                list(shown.values()),
                [asked.rule],
                ordered=asked.ordered,
                reference=None,
                plan=plan,
            )
    tested = corrected(lines, 1 - plan.confidence, draw, asked.among or len(found.labels))
    return Subgroups(tested, comparisons, name_of(asked.rule), column, within_groups=within_groups)


def _drawn(events: Any, rule: Rule, handle: Handle, plan: Resampling, n: int, stage: int) -> Floats:
    """More miscalibrations by chance, from a random stream of their own."""
    more = replace(plan, replicates=n, seed=plan.seed + stage)
    return _decomposition(events, rule, handle, more).whole.calibrated


def _column(handle: Handle, by: object) -> str:
    if isinstance(by, str) and by in handle.by:
        return by
    raise InputError(
        "must be a column of subgroups that `scan` was told of",
        argument="by",
        kind="label",
        found=f"it is {show(by)}; there {f'are {join(map(show, handle.by))}' if handle.by else 'is none'}",
        remedies=[Remedy("Say which when opening them: `scan(..., by=...)`.")],
    )


def _check_groups(cards: dict[Any, Scorecard]) -> None:
    alone = [label for label, card in cards.items() if card.n_groups == 1]
    if alone:
        raise InputError(
            "must give at least two groups to every subgroup",
            argument="by",
            found=f"all rows of {join(show(label) for label in alone[:5])} belong to one group",
            values=alone,
            remedies=[Remedy("Open the predictions without groups.")],
        )
