"""The report on top lists that are not in memory: everything from one pass over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from verax.analyses.calibration.liststreams import (
    read_claims,
    read_list_decomposition,
    read_list_reliability,
)
from verax.analyses.calibration.listsums import ListEventRecipe
from verax.analyses.cards.listcard import ListCard
from verax.analyses.cards.recipes import CardRecipe
from verax.analyses.cards.scorecard import check_whole
from verax.analyses.comparison.conclusions import read_comparison
from verax.analyses.comparison.lengths import LengthRecipe, read_known_lengths
from verax.analyses.comparison.paired import PairedRecipe
from verax.analyses.comparison.references import UNIFORM
from verax.analyses.unitsums import UnitSums
from verax.analyses.worst_ranks import read_ranked, worst_recipes
from verax.common.texts import bound
from verax.errors import InputError
from verax.inference.intervals import Resampling, WeightsAre
from verax.inputs.handles import Handle, Recipe, Summaries
from verax.report.lists.checks import survey_checks
from verax.report.lists.contents import PANELS, PLACES, RESAMPLES, TESTS, WORST, ListContents, ListFindings
from verax.report.lists.counting import ListSurvey, ListSurveyRecipe
from verax.report.lists.problem import ListProblem, rules_of_lists
from verax.report.rowless import RANKS, Rowless
from verax.report.words import distinct
from verax.scores.base import Rule
from verax.scores.combinators import padded
from verax.scores.registry import RULES, name_of


@dataclass(frozen=True, eq=False)
class ListsElsewhere(Rowless, ListProblem):
    """What a report is about where the lists are elsewhere."""

    classes_in_all: int = 0
    weight: float | None = None

    @property
    def n_classes(self) -> int:
        """The number of classes."""
        return self.classes_in_all

    @property
    def total_weight(self) -> float | None:
        """The sum of the weights; None where rows have none."""
        return self.weight


def look_at_lists(
    handle: Handle,
    *,
    rules: Sequence[Rule | str] | None,
    weights_are: WeightsAre,
    confidence: float,
    seed: int,
) -> ListContents:
    """Everything that is on the page, from one pass over the lists of a handle."""
    chosen = rules_of_lists(rules)
    plan = Resampling(confidence, seed=seed, weights_are=weights_are)
    found = handle.summarise(_recipes(handle, chosen, plan))
    return _contents(handle, chosen, plan, found)


def _recipes(handle: Handle, rules: tuple[Rule, ...], plan: Resampling) -> dict[str, Recipe[Any]]:
    recipes: dict[str, Recipe[Any]] = {"survey": ListSurveyRecipe()}
    fined = tuple(padded(rule) for rule in rules)
    for name in handle.models:
        recipes[f"{name}/card"] = CardRecipe(name, fined, False, None, plan)
        recipes[f"{name}/stated"] = ListEventRecipe(name, PLACES)
        recipes[f"{name}/scored"] = ListEventRecipe(name, scored=True)
        recipes |= worst_recipes(handle, name, rules[0], WORST)
        lengths = LengthRecipe(name, fined)
        # Older versions saved none.
        recipes |= {f"{name}/lengths": lengths} if handle.knows(lengths) else {}
    recipes["pairs"] = PairedRecipe(tuple(handle.models), rules, reference=UNIFORM)
    return recipes


def _contents(handle: Handle, rules: tuple[Rule, ...], plan: Resampling, found: Summaries) -> ListContents:
    """Everything from the summaries."""
    shown = dict(zip(handle.models, distinct(handle.models), strict=True))
    survey: ListSurvey = found["survey"]
    first: ListCard = found[f"{handle.models[0]}/card"]
    check_whole(first, handle.name)
    if isinstance(first.n_groups, tuple):
        raise InputError("must be of one kind for the report", argument="groups", source=handle.name)
    problem = ListsElsewhere(
        models=dict.fromkeys(shown.values()),  # type: ignore[arg-type]
        full={},
        y=None,
        weights=None,
        groups=None,
        ids=None,
        rules=rules,
        weights_are=plan.weights_are,
        time_ordered=False,
        form={},
        skipped=found.skipped,
        size=found.n_rows,
        classes_in_all=handle.n_classes,
        weight=first.weight if survey.weighted else None,
        is_grouped=first.n_groups is not None,
        is_named=survey.named,
    )
    findings = [_findings(handle, name, shown[name], rules, plan, found) for name in handle.models]
    names = list(shown.values())
    comparison = read_comparison(
        found["pairs"], names, list(rules), ordered=False, reference=UNIFORM, plan=plan
    )
    cards = {each.name: each.card for each in findings}
    comparison = comparison.with_faults({name: card.of_lists for name, card in cards.items()})
    return ListContents(
        problem,
        name_of(rules[0]),
        findings,
        comparison,
        survey_checks(problem, {shown[name]: own for name, own in survey.models.items()}, survey.rows, cards),
        plan.confidence,
        plan.seed,
        precision=_precision(problem, findings),
        by=tuple(handle.by),
    )


def _findings(
    handle: Handle, name: str, shown: str, rules: tuple[Rule, ...], plan: Resampling, found: Summaries
) -> ListFindings:
    card: ListCard = found[f"{name}/card"]
    stated, scored = found[f"{name}/stated"], found[f"{name}/scored"]
    m, tested = handle.n_classes, replace(plan, replicates=TESTS)
    shorter: UnitSums | None = found.found.get(f"{name}/lengths")
    return ListFindings(
        name=shown,
        card=card,
        reliability=read_list_reliability(stated, PANELS, m, RESAMPLES, plan.seed, plan.confidence),
        claims=read_claims(stated, PLACES),
        decomposition=read_list_decomposition(scored, RULES["brier"], m, tested),
        worst=read_ranked(found, handle, name, rules[0]).with_faults({"": card.of_lists}),
        lengths=None
        if shorter is None
        else read_known_lengths(
            handle,
            LengthRecipe(name, tuple(padded(rule) for rule in rules)),
            shorter,
            found["survey"].models[name].longest,
            found,
            {"": card.of_lists},
            plan.confidence,
        ),
    )


def _precision(problem: ListProblem, findings: Sequence[ListFindings]) -> str:
    """What comes from histograms, and how far it can be off."""
    weighed = (
        "Intervals of what shorter lists lose take rows of other weights to have the same influence. "
        if problem.total_weight is not None and not problem.grouped
        else ""
    )
    parts = max(found.decomposition.whole.within or 0.0 for found in findings)
    return (
        "The lists were read once and not kept. Reliability curves and the parts of the score come from "
        "histograms of confidences: miscalibration and discrimination are those of the lists, or less by at "
        f"most {bound(parts)}. {RANKS} {weighed}All other figures are exact."
    )
