"""What is summed up in every subgroup, and what follows from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from verax.analyses.calibration.decomposition import Fitted, event_recipe, fitted
from verax.analyses.calibration.uncertainty import SecondLook, SecondRecipe
from verax.analyses.cards.recipes import CardRecipe
from verax.analyses.cards.scorecard import Scorecard, check_whole
from verax.analyses.comparison.compare import compare
from verax.analyses.comparison.conclusions import in_subgroups, read_comparison
from verax.analyses.comparison.paired import PairedRecipe
from verax.analyses.comparison.result import Comparison
from verax.analyses.subgroups.result import Subgroup, Subgroups
from verax.analyses.subgroups.testing import check_sizes, corrected
from verax.common.checks import check_count
from verax.errors import InputError, Remedy, join, show
from verax.inference.intervals import Resampling
from verax.inputs.arrays import Floats
from verax.inputs.breakdown import Breakdown, SubgroupRecipe, labels_of, parts_by, ungrouped
from verax.inputs.handles import Handle, Recipe
from verax.inputs.memory import InMemory
from verax.kernels.ledger import expecting
from verax.scores.base import Rule
from verax.scores.combinators import Padded
from verax.scores.metrics import CostsLike
from verax.scores.registry import fitting_rules, name_of, padded_rules


@dataclass(frozen=True)
class SubgroupRequest:
    """What is asked about the subgroups of one column; the names are those of `subgroups`.

    Without `rules`, cards have all applicable ones.
    """

    by: object
    rule: Rule
    rules: tuple[Rule, ...] | None
    ordered: bool
    costs: CostsLike | None
    least: int
    among: int | None


def subgroup_recipes(handle: Handle, asked: SubgroupRequest, plan: Resampling) -> dict[str, Recipe[Any]]:
    """What is summed in every subgroup."""
    recipes: dict[str, Recipe[Any]] = {}
    # The draws asked for are those of the tests of calibration; cards have their own.
    of_card = Resampling(plan.confidence, seed=plan.seed, weights_are=plan.weights_are)
    for model in handle.models:
        rules = asked.rules
        if rules is None:
            rules = tuple(padded_rules() if model in handle.listed else fitting_rules(None, asked.ordered))
        recipes[f"card:{model}"] = CardRecipe(model, rules, asked.ordered, asked.costs, of_card)
        recipes[f"events:{model}"] = event_recipe(handle, model, asked.rule, with_top=False)
    if len(handle.models) > 1:
        traits = len(handle.listed) < len(handle.models)
        recipes["pairs"] = PairedRecipe(handle.models, (asked.rule,), traits=traits)
    return recipes


def cards_of(found: Breakdown, handle: Handle) -> dict[Any, Scorecard]:
    """The card of the first model in every subgroup."""
    return {label: found[label][f"card:{handle.models[0]}"] for label in found.labels}


def read_subgroups(
    found: Breakdown,
    column: str,
    handle: Handle,
    asked: SubgroupRequest,
    plan: Resampling,
    *,
    again: bool,
    within_groups: bool = False,
    names: Mapping[str, str] | None = None,
) -> Subgroups:
    """The subgroups from their sums; `within_groups` if each is one group and the sums have none. Models may
    have other names in the result. Rows that are not in memory are read `again` for intervals, and for the
    tests of groups.
    """
    shown = {model: model if names is None else names[model] for model in handle.models}
    cards = cards_of(found, handle)
    check_sizes({label: card.n_rows for label, card in cards.items()}, asked.least)
    _check_weights(cards)
    check_groups(cards)
    if asked.among is not None:
        check_count("among", asked.among, least=len(found.labels))
    n_rows = sum(card.n_rows for card in cards.values())
    # Draws of many small subgroups are worth compiled loops.
    with expecting(plan.replicates * n_rows * min(handle.n_classes, n_rows)):
        looked = _look_again(found, column, handle, asked, plan, again=again, grouped=not within_groups)
        return _tested_subgroups(
            found, looked, column, handle, asked, plan, shown, within_groups=within_groups
        )


# The events of a subgroup and a model, what a second look at their rows found, and the means it knew.
_Looked = tuple[Fitted, SecondLook | None, Floats | None]


def _look_again(
    found: Breakdown,
    column: str,
    handle: Handle,
    asked: SubgroupRequest,
    plan: Resampling,
    *,
    again: bool,
    grouped: bool,
) -> dict[tuple[Any, str], _Looked]:
    """The events of every subgroup and model, with one more pass over all rows that are not in memory."""
    rule = asked.rule.rule if isinstance(asked.rule, Padded) else asked.rule
    looked: dict[tuple[Any, str], _Looked] = {}
    later: dict[Any, dict[str, SecondRecipe]] = {}
    for label in found.labels:
        for model in handle.models:
            events = fitted(found[label][f"events:{model}"], rule, handle, plan, model)
            if not plan.replicates:
                looked[label, model] = events, None, None
                continue
            recipe = events.again()
            look = None
            if events.rows is not None:
                look = recipe.at(events.rows)
            elif again and handle.has_rows:
                later.setdefault(label, {})[model] = recipe
            looked[label, model] = events, look, recipe.means
    if later:
        looks = handle.summarise({"again": SubgroupRecipe(column, later, grouped)})["again"]
        for label, model in looked:
            events, _, means = looked[label, model]
            looked[label, model] = events, looks[label][model], means
    return looked


def _tested_subgroups(
    found: Breakdown,
    looked: Mapping[tuple[Any, str], _Looked],
    column: str,
    handle: Handle,
    asked: SubgroupRequest,
    plan: Resampling,
    shown: Mapping[str, str],
    *,
    within_groups: bool,
) -> Subgroups:
    """The subgroups, whose models have these names in the result."""
    lines: list[Subgroup] = []
    comparisons: dict[Any, Comparison] = {}
    draw: dict[tuple[Any, str], Callable[[int, int], Floats]] = {}
    for label in found.labels:
        own = found[label]
        for model in handle.models:
            card, (events, look, means) = own[f"card:{model}"], looked[label, model]
            check_whole(card, f"{handle.name}, {column} {label}")
            parted = replace(events.result(handle, look, means), n_rows=card.n_rows)
            lines.append(Subgroup(label, shown[model], card, parted, parted.p_value, None, False))
            draw[label, shown[model]] = partial(_drawn, events, look, plan.seed)
        if "pairs" in own:
            comparisons[label] = read_comparison(
                own["pairs"],
                list(shown.values()),
                [asked.rule],
                ordered=asked.ordered,
                reference=None,
                plan=plan,
                dense=[shown[model] for model in handle.models if model not in handle.listed],
            )
    among = asked.among or len(found.labels)
    tested = corrected(lines, 1 - plan.confidence, draw, among)
    comparisons = in_subgroups(comparisons, among)
    return Subgroups(
        tested, comparisons, name_of(asked.rule), column, within_groups=within_groups, among=among
    )


def in_order_of_time(
    found: Subgroups,
    handle: Handle,
    asked: SubgroupRequest,
    plan: Resampling,
    names: Mapping[str, str] | None = None,
) -> Subgroups:
    """The same of rows in memory, whose models are compared as series. Models may have other names."""
    part = handle.kept
    assert part is not None
    comparisons = {}
    labels = {line.label for line in found.lines}
    if len(handle.models) > 1:
        for label, own in parts_by(part, labels_of(part.by[found.by], part.n_rows)):
            if label not in labels:
                continue
            rows = ungrouped(own) if found.within_groups else own
            models = {name if names is None else names[name]: each for name, each in rows.models.items()}
            comparisons[label] = compare(
                InMemory(models, several=True),
                rule=asked.rule,
                ordered=asked.ordered,
                time_ordered=True,
                confidence=plan.confidence,
                weights_are=plan.weights_are,
            )
    compared = in_subgroups(comparisons, asked.among or len(labels))
    return found.changed(comparisons=compared, time_ordered=True)


def _drawn(events: Fitted, look: SecondLook | None, seed: int, n: int, stage: int) -> Floats:
    """More miscalibrations by chance, from a random stream of their own."""
    return events.by_chance(look, n, seed + stage)


def _check_weights(cards: Mapping[Any, Scorecard]) -> None:
    """Refuse subgroups in which no row has weight."""
    empty = [label for label, card in cards.items() if not card.weight > 0]
    if empty:
        raise InputError(
            "must not all be zero in a subgroup",
            argument="weights",
            found=f"they are in {join(show(label) for label in empty[:5])}",
            values=empty,
            remedies=[Remedy("Leave these rows out.")],
        )


def check_groups(cards: Mapping[Any, Scorecard]) -> None:
    """Refuse subgroups that are one group each, where others have several."""
    alone = [label for label, card in cards.items() if card.n_groups == 1]
    if alone:
        raise InputError(
            "must give at least two groups to every subgroup",
            argument="by",
            found=f"all rows of {join(show(label) for label in alone[:5])} belong to one group",
            values=alone,
            remedies=[Remedy("Join them with others, or leave out the groups.")],
        )
