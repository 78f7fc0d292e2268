"""What is summed up in every subgroup, and what follows from it."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from verax.analyses.calibration.decomposition import event_recipe
from verax.analyses.calibration.sums import EventSums
from verax.analyses.cards.evaluation import CardRecipe
from verax.analyses.cards.rows import check_whole
from verax.analyses.cards.scorecard import Scorecard
from verax.analyses.comparison.compare import compare
from verax.analyses.comparison.conclusions import in_subgroups, read_comparison
from verax.analyses.comparison.paired import PairedRecipe
from verax.analyses.comparison.result import Comparison
from verax.analyses.subgroups.family import FamilyColumn, in_one_family, level_of_subgroups
from verax.analyses.subgroups.line import Subgroup
from verax.analyses.subgroups.ratios import event_ratios
from verax.analyses.subgroups.result import Subgroups
from verax.analyses.subgroups.scores import KINDS, TestQueue, p_by_kind
from verax.analyses.subgroups.tested import SubgroupTests
from verax.analyses.subgroups.together import MOST_LIKELY, Pooled
from verax.common.checks import check_count
from verax.common.specs import Valued, Whole
from verax.common.summaries import Summary, merges
from verax.errors import InputError, Remedy, join, passing, show
from verax.inference.intervals import Resampling
from verax.inputs.breakdown import (
    MISSING,
    Breakdown,
    labels_of,
    numbering,
    parts_by,
    ungrouped,
)
from verax.inputs.handles import Handle, Part, Recipe
from verax.inputs.memory import InMemory
from verax.kernels.ledger import expecting
from verax.scores.base import Rule
from verax.scores.combinators import Padded
from verax.scores.metrics import CostsLike
from verax.scores.registry import fitting_rules, name_of, padded_rules


def check_sizes(sizes: Mapping[Any, int], least: int) -> None:
    """Refuse subgroups that are too small."""
    small = {label: n for label, n in sizes.items() if n < least}
    if small:
        some = join(f"{show(label)} ({n})" for label, n in list(small.items())[:5])
        raise InputError(
            f"must give at least {show(least)} rows to every subgroup",
            argument="by",
            kind="length",
            found=f"{some} {'has' if len(small) == 1 else 'have'} fewer",
            values=list(small),
            remedies=[Remedy("Join small subgroups with others."), passing("to allow them", least=1)],
        )


# What the fit of an event takes, in probabilities scored.
_WORK = 16
# How many bins the events of all subgroups have together, for each model; each has the same share of them.
_BINS = 2**18
# Bins are counted only when there may be more than this multiple of the limit.
_SPARE = 4


class BoundedBreakdown(Summary, kind="bounded subgroups"):
    """Summaries of every subgroup, if there are few.

    Attributes
    ----------
    most : int
        How many subgroups are kept.
    found : Breakdown or None
        The summaries; None where there are more subgroups.
    alone : Breakdown or None
        The same without the groups of rows, as long as each subgroup is one group.
    beyond : mapping
        The numbers of rows of other subgroups: of rows in memory the largest subgroups are kept.
    """

    most: int = merges(Whole("equal"))
    found: Breakdown | None = merges(Valued(Breakdown, packed=True, optional=True))
    alone: Breakdown | None = merges(Valued(Breakdown, packed=True, optional=True))
    beyond: Mapping[Hashable, int] = field(default_factory=dict)

    def _aligned(self, other: BoundedBreakdown) -> tuple[BoundedBreakdown, BoundedBreakdown]:
        both = [each for each in (self.found, self.alone, other.found, other.alone) if each is not None]
        if not any(MISSING in each.by_label for each in both):
            return self, other
        return self._with_texts(), other._with_texts()

    def _merged(self) -> BoundedBreakdown:
        return self.fitting()

    def _with_texts(self) -> BoundedBreakdown:
        """With texts as labels, which they are as soon as a row has none."""
        return replace(self, found=_with_texts(self.found), alone=_with_texts(self.alone))

    def fitting(self, spare: int = _SPARE) -> BoundedBreakdown:
        """No more than is kept; while parts are merged there may be some bins to spare."""
        if self.found is None or len(self.found.by_label) > self.most:
            return BoundedBreakdown(self.most, None, None)
        alone = self.alone if self.alone is not None and _one_group_each(self.found) else None
        return replace(
            self, found=_coarse(self.found, spare), alone=None if alone is None else _coarse(alone, spare)
        )

    def to_values(self) -> dict[str, Any]:
        """The fields without bins to spare, to be stored."""
        return super(BoundedBreakdown, self.fitting(1)).to_values()


def _with_texts(found: Breakdown | None) -> Breakdown | None:
    return None if found is None else Breakdown({str(label): own for label, own in found.by_label.items()})


def _one_group_each(found: Breakdown) -> bool:
    """Whether each subgroup is one group."""
    cards = (own for summaries in found.by_label.values() for own in summaries.values())
    return all(card.n_groups == 1 for card in cards if isinstance(card, Scorecard))


def _coarse(found: Breakdown, spare: int) -> Breakdown:
    """With as few bins joined as fit into memory; without bins to spare, whatever the order of merging."""
    most = _BINS // max(1, len(found.by_label))
    return Breakdown(
        {
            label: {
                name: own.at_most(most, spare) if isinstance(own, EventSums) else own
                for name, own in summaries.items()
            }
            for label, summaries in found.by_label.items()
        }
    )


@dataclass(frozen=True)
class BoundedRecipe(Recipe[BoundedBreakdown], cases=True):
    """The summaries of each subgroup of a column by the same recipes, if there are no more than `most`."""

    column: str
    recipes: Mapping[str, Recipe[Any]]
    most: int
    longer = 4

    def take(self, part: Part) -> BoundedBreakdown:
        """Those of some rows."""
        return self.more(part, None)

    def more(self, part: Part, found: BoundedBreakdown | None) -> BoundedBreakdown:
        """Those of some rows, unless there are too many subgroups already."""
        assert part.subset is not None
        groups = labels_of(part.by[self.column], part.n_rows)
        many = len(groups.labels) > self.most
        if (found is not None and found.found is None) or (many and not part.whole):
            return BoundedBreakdown(self.most, None, None)
        sizes = np.bincount(groups.codes, minlength=len(groups.labels))
        largest = np.argsort(-sizes, kind="stable")
        kept = set(largest[: self.most].tolist())
        order = np.argsort(groups.codes, kind="stable")
        divided = np.split(order, np.cumsum(sizes)[:-1])
        labels = groups.labels.tolist()
        parts: dict[Hashable, Part] = {
            labels[code]: part if len(rows) == part.n_rows else part.subset(rows)
            for code, rows in enumerate(divided)
            if code in kept
        }
        beyond = {labels[code]: int(sizes[code]) for code in largest[self.most :].tolist()}
        alone = None
        if part.rows.groups is not None and (found is None or found.alone is not None):
            alone = self._taken({label: ungrouped(own) for label, own in parts.items()})
        with numbering(part):
            taken = BoundedBreakdown(self.most, self._taken(parts), alone, beyond)
        # What is merged with others is made to fit then.
        return taken.fitting() if found is None else taken

    def _taken(self, parts: Mapping[Hashable, Part]) -> Breakdown:
        return Breakdown(
            {
                label: {name: recipe.take(part) for name, recipe in self.recipes.items()}
                for label, part in parts.items()
            }
        )


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
    # Whatever else the plan is for, cards of subgroups have the same name where they are saved.
    of_card = Resampling(plan.confidence, seed=plan.seed, weights_are=plan.weights_are)
    for model in handle.models:
        rules = asked.rules
        if rules is None:
            rules = tuple(padded_rules() if model in handle.listed else fitting_rules(None, asked.ordered))
        recipes[f"card:{model}"] = CardRecipe(model, rules, asked.ordered, asked.costs, of_card)
        recipes[f"events:{model}"] = event_recipe(handle, model, asked.rule, scored=True)
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
    within_groups: bool = False,
    names: Mapping[str, str] | None = None,
) -> Subgroups:
    """The subgroups from their sums; `within_groups` if each is one group and the sums have none. Models may
    have other names in the result.
    """
    shown = {model: model if names is None else names[model] for model in handle.models}
    cards = cards_of(found, handle)
    check_sizes({label: card.n_rows for label, card in cards.items()}, asked.least)
    _check_weights(cards)
    check_groups(cards)
    if asked.among is not None:
        check_count("among", asked.among, least=len(found.labels))
    comparisons: dict[Any, Comparison] = {}
    for label in found.labels:
        for model in handle.models:
            check_whole(found[label][f"card:{model}"], f"{handle.name}, {column} {label}")
        if "pairs" in found[label]:
            comparisons[label] = read_comparison(
                found[label]["pairs"],
                list(shown.values()),
                [asked.rule],
                ordered=asked.ordered,
                reference=None,
                plan=plan,
                dense=[shown[model] for model in handle.models if model not in handle.listed],
                n_classes=handle.n_classes,
            )
    among = asked.among or len(found.labels)
    level = level_of_subgroups(plan.confidence)
    n_rows = sum(card.n_rows for card in cards.values())
    lines: dict[tuple[Any, str], Subgroup] = {}
    pooled: dict[str, Pooled] = {}
    # Fits of many small subgroups are worth compiled loops.
    with expecting(_WORK * n_rows * min(handle.n_classes, n_rows)):
        for model in handle.models:
            own, together = _of_model(found, handle, asked, plan, model, shown[model])
            lines |= {(line.label, model): line for line in own}
            if together is not None:
                # Of subgroups that are not here nothing is said.
                every = among == len(found.labels)
                pooled[shown[model]] = replace(together, alike=together.alike and every)
    in_order = [lines[label, model] for label in found.labels for model in handle.models]
    (tested,) = in_one_family([FamilyColumn(in_order, among, pooled)], level)
    return Subgroups(
        tested.lines,
        in_subgroups(comparisons, among),
        name_of(asked.rule),
        column,
        within_groups=within_groups,
        among=among,
        level=level,
        pooled=tested.pooled,
    )


def _of_model(
    found: Breakdown, handle: Handle, asked: SubgroupRequest, plan: Resampling, model: str, name: str
) -> tuple[list[Subgroup], Pooled | None]:
    """The subgroups of one model, and what they show together."""
    rule = asked.rule.rule if isinstance(asked.rule, Padded) else asked.rule
    undrawn, queue = replace(plan, replicates=0), TestQueue()
    tests = [
        SubgroupTests.of(found[label][f"events:{model}"], rule, handle, undrawn, model, queue)
        for label in found.labels
    ]
    queue.settle()
    counts = [each.counts if handle.n_classes == 2 else None for each in tests]
    ratios = event_ratios(counts, plan.confidence)
    lines = []
    for label, own, ratio in zip(found.labels, tests, ratios, strict=True):
        card, parted = found[label][f"card:{model}"], own.decomposition
        assert parted is not None
        p, kinds = own.p_value, [p_by_kind(own.events, kind) for kind in range(len(KINDS))]
        lines.append(
            Subgroup(
                label,
                name,
                card,
                replace(parted, n_rows=card.n_rows),
                None if math.isnan(p) else p,
                None,
                stands_out=False,
                untested=own.untested,
                p_shift=kinds[0],
                p_slope=kinds[1],
                p_shape=kinds[2],
                events=ratio,
            )
        )
    pooled = [each.pooled for each in tests if each.pooled is not None]
    of = "" if handle.n_classes == 2 else MOST_LIKELY
    return lines, Pooled.of(pooled, name, of) if len(pooled) == len(tests) else None


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
