"""What is summed up in every subgroup, and what follows from it."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from verax._settings import settings
from verax.analyses.calibration.decomposition import Fitted, event_recipe, fitted
from verax.analyses.calibration.recipes import ListSums
from verax.analyses.calibration.sums import EventSums
from verax.analyses.calibration.uncertainty import SecondLook, SecondRecipe
from verax.analyses.cards.evaluation import CardRecipe
from verax.analyses.cards.rows import check_whole
from verax.analyses.cards.scorecard import Scorecard
from verax.analyses.comparison.compare import compare
from verax.analyses.comparison.conclusions import in_subgroups, read_comparison
from verax.analyses.comparison.paired import PairedRecipe
from verax.analyses.comparison.result import Comparison
from verax.analyses.subgroups.family import FamilyColumn, in_one_family, level_of_subgroups
from verax.analyses.subgroups.line import Subgroup
from verax.analyses.subgroups.ratios import EventRatio
from verax.analyses.subgroups.result import Subgroups
from verax.common.checks import check_count
from verax.common.specs import Valued, Whole
from verax.common.summaries import Summary, merges
from verax.errors import InputError, Remedy, join, passing, show
from verax.inference.intervals import Resampling
from verax.inputs.arrays import Floats
from verax.inputs.breakdown import (
    MISSING,
    Breakdown,
    SubgroupRecipe,
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

# So many draws that reach what was observed show that it is nothing special.
_ENOUGH = 20
# The gamma distribution has lighter tails than miscalibration by chance: at 1e-4 by a factor of up to 70.
# The root of ten times its tail is a p-value that is too large instead.
_SLACK = 10.0
# A distribution is fitted to no fewer draws.
_FITTED = 50
# A fit of a handful of rows costs as much as one of this many.
_OVERHEAD = 1000


@dataclass(frozen=True)
class Chance:
    """The miscalibration that was observed, and what calibrated forecasts of the same values show by chance.

    Attributes
    ----------
    observed : float
        The miscalibration.
    draws : array
        Miscalibrations of outcomes drawn from the forecasts.
    score : float
        The mean score: smaller differences than 1e-12 of it are rounding.
    """

    observed: float
    draws: Floats
    score: float

    @property
    def reached(self) -> int:
        """How many draws are at least as large as what was observed."""
        return int((self.draws >= self.observed - 1e-12 * (1 + abs(self.score))).sum())

    @property
    def tail(self) -> float:
        """A p-value beyond what the draws resolve, from a gamma distribution with their mean and variance."""
        from scipy.special import gammaincc

        mean, variance = float(self.draws.mean()), float(self.draws.var())
        if self.reached or len(self.draws) < _FITTED:
            return 1.0
        if self.observed == math.inf or variance <= 0:
            return 0.0
        return math.sqrt(_SLACK * float(gammaincc(mean**2 / variance, self.observed * mean / variance)))

    @property
    def p_value(self) -> float:
        """How often a calibrated forecast would show at least as much."""
        return min((1 + self.reached) / (1 + len(self.draws)), self.tail)

    def settled(self, level: float) -> bool:
        """Whether more draws would not change on which side of the level the p-value is."""
        return self.reached >= _ENOUGH or self.tail <= level

    def could_pass(self, level: float) -> bool:
        """Whether this number of draws can give a p-value within the level."""
        return self.settled(level) or 1 / (1 + len(self.draws)) <= level


@dataclass
class WorkBudget:
    """How many probabilities may still be looked at."""

    left: float

    def affordable(self, n_rows: int, n_classes: int) -> int:
        """Draws the remaining budget allows."""
        return int(self.left // self._cost(n_rows, n_classes))

    def spend(self, draws: int, n_rows: int, n_classes: int) -> None:
        """Count draws that were made."""
        self.left -= draws * self._cost(n_rows, n_classes)

    def _cost(self, n_rows: int, n_classes: int) -> int:
        return n_classes * (n_rows + _OVERHEAD)


def settle(
    chance: Chance, level: float, draw: Callable[[int, int], Floats], work: WorkBudget, shape: tuple[int, int]
) -> Chance:
    """Double the draws until the decision at the level is clear.

    Parameters
    ----------
    level : float
        The level of this one test.
    draw : callable
        Gives more draws: from how many, and the number of the stage.
    work : WorkBudget
        What all tests together may cost.
    shape : (int, int)
        The numbers of rows and classes.
    """
    most = math.ceil(2 / level)
    stage = 0
    while not chance.settled(level) and len(chance.draws) < most:
        n = min(len(chance.draws), most - len(chance.draws), work.affordable(*shape))
        if n < 2:
            break
        stage += 1
        work.spend(n, *shape)
        chance = replace(chance, draws=np.append(chance.draws, draw(n, stage)))
    return chance


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


def corrected(
    lines: list[Subgroup],
    level: float,
    draw: Mapping[tuple[Any, str], Callable[[int, int], Floats]],
    among: int,
) -> FamilyColumn:
    """With p-values from enough draws, and corrected for all subgroups of each model."""
    result: dict[tuple[Any, str], Subgroup] = {(line.label, line.model): line for line in lines}
    # The least level of one test: half of the level is that of all subgroups together, and half of that of a
    # subgroup of two classes is for its shift.
    least = level / (4 * among)
    for model in dict.fromkeys(line.model for line in lines):
        own = [line for line in lines if line.model == model]
        if any(line.p_value is None for line in own):
            continue
        work = WorkBudget(settings.subgroup_draws)
        for line in own:
            test = _tested(line, least, draw[line.label, model], work)
            result[line.label, model] = replace(
                line, p_value=_with_shift(test.p_value, line), undecided=not test.could_pass(least)
            )
    return in_one_family([FamilyColumn(list(result.values()), among)], level)[0]


def _with_shift(p: float, line: Subgroup) -> float:
    """The p-value of a subgroup: of two classes the smaller of two, that of their shift and that of draws."""
    shift = None if line.events is None else line.events.p_value
    return p if shift is None else min(1.0, 2 * min(p, shift))


def _tested(line: Subgroup, level: float, draw: Callable[[int, int], Floats], work: WorkBudget) -> Chance:
    """The test of one subgroup, with the draws that the level needs."""
    whole = line.decomposition.whole
    first = Chance(whole.miscalibration, whole.calibrated, whole.score)
    return settle(first, level, draw, work, (line.card.n_rows, line.decomposition.n_classes))


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
            counts = _counts(own[f"events:{model}"], handle, plan)
            lines.append(
                Subgroup(label, shown[model], card, parted, parted.p_value, None, False, events=counts)
            )
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
                n_classes=handle.n_classes,
            )
    among = asked.among or len(found.labels)
    level = level_of_subgroups(plan.confidence)
    column_of = corrected(lines, level, draw, among)
    comparisons = in_subgroups(comparisons, among)
    return Subgroups(
        column_of.lines,
        comparisons,
        name_of(asked.rule),
        column,
        within_groups=within_groups,
        among=among,
        level=level,
        pooled=column_of.pooled,
    )


def _counts(events: Any, handle: Handle, plan: Resampling) -> EventRatio | None:
    """Observed and expected events of two classes."""
    if handle.n_classes != 2 or isinstance(events, ListSums):
        return None
    return EventRatio.of(events, plan.confidence, copies=plan.copies and events.n_groups is None)


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
