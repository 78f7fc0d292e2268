"""The report on predictions that are not in memory: everything from one pass over the rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

import numpy as np

from verax.analyses.calibration.components import Decomposition
from verax.analyses.calibration.events import split
from verax.analyses.calibration.eventsums import EventRecipe, EventSums
from verax.analyses.calibration.streams import event_names, read_class_biases, read_curve, read_decomposition
from verax.analyses.calibration.streams import read_overconfidence as overconfidence_from
from verax.analyses.cards.recipes import CardRecipe
from verax.analyses.cards.scorecard import Scorecard, check_whole
from verax.analyses.classsums import ClassRecipe, ClassSums, with_frequencies
from verax.analyses.comparison.claims import Claims
from verax.analyses.comparison.conclusions import claims_of, read_comparison
from verax.analyses.comparison.paired import OF_RULE, PairedRecipe, PairedSums
from verax.analyses.comparison.references import FREQUENCIES, OtherGroups
from verax.analyses.comparison.result import Comparison
from verax.analyses.parts import probabilities, seen
from verax.analyses.retention.analysis import read_curves
from verax.analyses.retention.cuts import Options
from verax.analyses.retention.result import RetentionCurve
from verax.analyses.retention.summaries import CurveRecipe, Measures
from verax.analyses.samples import Sample, SampleRecipe
from verax.analyses.subgroups.result import Subgroups
from verax.analyses.worst import ranking
from verax.analyses.worst_ranks import read_ranked, worst_recipes
from verax.common.summaries import Summary, merges
from verax.common.texts import bound
from verax.engines.counts import CONFUSION_UP_TO
from verax.engines.sums import Sum, Sums
from verax.errors import InputError
from verax.inference.intervals import Resampling, WeightsAre
from verax.inputs.handles import Handle, Part, Recipe, Summaries
from verax.kernels.threads import meanwhile, side_by_side
from verax.report.breakdowns import breakdown_recipes, read_breakdowns
from verax.report.contents import (
    WORST,
    ClassLoss,
    Contents,
    Decisions,
    Findings,
    curve_replicates,
    curves_shown,
    heaviest,
    mean_with_interval,
)
from verax.report.problem import Problem, fitting
from verax.report.reliability import RESAMPLES, ReliabilityPanel, all_shown, most_miscalibrated, panel_of
from verax.report.remedies import Panels, Remedy, remedies_of, sample_size
from verax.report.rowless import RANKS, Elsewhere
from verax.report.survey import SurveyRecipe, survey_checks
from verax.scores.base import Rule
from verax.scores.decisions import cheapest
from verax.scores.metrics import CostsLike, cost_matrix, expected_cost_of, needs_order
from verax.scores.registry import RULES, as_rules, name_of

_DECISIONS = "cheapest decisions"
# What the page needs after the pass over the rows.
_PACKAGES = ("scipy.optimize", "altair")
# How many replicates curves and tests of calibration have; curves fewer where groups are drawn row by row.
_REPLICATES, _OF_GROUPS = 100, 20
# Up to how many rows with weights are read a second time, for the loss of class frequencies.
_READ_AGAIN = 2**20


def look_at(
    handle: Handle,
    *,
    rules: Sequence[Rule | str] | None,
    ordered: bool,
    costs: CostsLike | None,
    weights_are: WeightsAre,
    confidence: float,
    seed: int,
) -> Contents:
    """Everything that is on the page, from one pass over the rows of a handle."""
    chosen = fitting(ordered) if rules is None else as_rules(rules)
    handle = handle.in_order() if needs_order(chosen, costs=costs, ordered=ordered) else handle
    problem = Elsewhere.at(handle, rules, ordered=ordered, costs=costs, weights_are=weights_are)
    plan = Resampling(confidence, _REPLICATES, seed, weights_are)
    recipes = recipes_of(handle, problem, plan)
    with meanwhile(_load_packages):
        found = handle.summarise(recipes)
    return read_contents(handle, problem, plan, recipes, found)


def _load_packages() -> None:
    """Import what the page takes long to import; where something is missing, whoever needs it says so."""
    for name in _PACKAGES:
        with suppress(ImportError):
            import_module(name)


# ---- what is asked -----------------------------------------------------------------------------


def recipes_of(handle: Handle, problem: Problem, plan: Resampling) -> dict[str, Recipe[Any]]:
    """What is summed up, by name; the first recipe of a model computes the losses of all rules."""
    keys, metrics = curves_shown(problem, math.inf if handle.n_rows is None else handle.n_rows)
    measures = Measures.of(metrics, handle.n_classes)
    card_plan = Resampling(plan.confidence, 1000, plan.seed, plan.weights_are)
    # What the other recipes ask for; those of several models and of subgroups ask for all.
    alone = len(handle.models) == 1 and not handle.by
    asked = (*(key for key in keys if isinstance(key, Rule)), *measures.rules, *ranking(problem.primary))
    found: dict[str, Recipe[Any]] = {}
    for name in handle.models:
        found[f"{name}/classes"] = ClassRecipe(name, problem.rules, asked if alone else None)
        found[f"{name}/card"] = CardRecipe(name, problem.rules, problem.ordered, problem.costs, card_plan)
        found[f"{name}/events"] = EventRecipe(name, problem.ordered)
        found[f"{name}/curves"] = CurveRecipe(name, tuple(keys), measures, None, _OF_GROUPS, plan.seed)
        found |= worst_recipes(handle, name, problem.primary, WORST, counted=keys)
        if problem.costs is not None and handle.n_classes <= CONFUSION_UP_TO:
            found[f"{name}/decisions"] = DecisionRecipe(name, problem.costs)
    found |= breakdown_recipes(handle, problem, plan)
    found["survey"] = SurveyRecipe()
    found["sample"] = SampleRecipe(sample_size(handle.n_classes, len(handle.models)))
    if len(handle.models) > 1:
        found["pairs"] = PairedRecipe(tuple(handle.models), problem.rules, traits=True)
    return found


class DecisionCounts(Summary, kind="cheapest decisions"):
    """(K, K) weights of outcomes against the decisions of smallest expected cost."""

    counts: Sum = merges(Sums("classes", "classes", least=0))


@dataclass(frozen=True)
class DecisionRecipe(Recipe[DecisionCounts]):
    """What deciding by the smallest expected cost of one model comes to."""

    model: str
    costs: CostsLike

    def take(self, part: Part) -> DecisionCounts:
        """In some rows."""
        rows, k = seen(part, self.model, ()), part.models[self.model].n_classes
        decided = cheapest(probabilities(part, self.model), cost_matrix(self.costs, k))
        counts = np.bincount(rows.y * k + decided, rows.weights, k * k)
        return DecisionCounts(Sum.of(counts.reshape(k, k)))


# ---- what it says ------------------------------------------------------------------------------


def read_contents(
    handle: Handle,
    problem: Elsewhere,
    plan: Resampling,
    recipes: Mapping[str, Recipe[Any]],
    found: Summaries,
) -> Contents:
    """Everything that is on the page, from the summaries."""
    shown = dict(zip(handle.models, problem.models, strict=True))
    cards: dict[str, Scorecard] = {shown[name]: found[f"{name}/card"] for name in handle.models}
    first, survey = next(iter(cards.values())), found["survey"]
    check_whole(first, handle.name)
    if isinstance(first.n_groups, tuple):
        raise InputError("must be of one kind for the report", argument="groups", source=handle.name)
    problem = replace(
        problem,
        size=found.n_rows,
        is_weighted=survey.weighted,
        is_named=survey.named,
        is_grouped=first.n_groups is not None,
        skipped=found.skipped,
    )
    events = {shown[name]: found[f"{name}/events"] for name in handle.models}
    classes: list[ClassSums] = [found[f"{name}/classes"] for name in handle.models]

    def look_at_curves() -> dict[str, list[RetentionCurve]]:
        return {name: _curves(found, name, recipes, problem, plan, handle.n_classes) for name in shown}

    # Most of this is done outside of Python; what follows waits for calibration at its end alone.
    with ThreadPoolExecutor(2) as pool:
        calibration = pool.submit(_calibration, handle, problem, plan, events)
        tried = pool.submit(
            _remedies, problem, plan, found["sample"], lambda: calibration.result()[1], events
        )
        read = pool.submit(look_at_curves)
        (parted, panels), remedies, curves = calibration.result(), tried.result(), read.result()
    comparison = _comparison(handle, problem, plan, classes, found.found.get("pairs"))
    in_order = heaviest(
        problem,
        np.sum([own.losses.high[:, 0, 0] for own in classes], axis=0),
        classes[0].rows.high[:, 1],
    )
    parts = read_breakdowns(handle, problem, plan, found.found)
    problem = replace(problem, by={name: groups for name, groups in problem.by.items() if parts.has(name)})
    findings = []
    for i, name in enumerate(handle.models):
        model = shown[name]
        findings.append(
            Findings(
                name=model,
                card=cards[model],
                decomposition=parted[model],
                sureness=overconfidence_from(events[model]),
                worst=read_ranked(
                    found, handle, name, problem.primary, problem.names, found[f"{name}/curves"].rank
                ),
                panels=panels[model],
                remedy=remedies[model],
                retained=[curve for curve in curves[name] if curve.sees_outcome],
                selected=[curve for curve in curves[name] if not curve.sees_outcome],
                by_class=_by_class(problem, classes[i], in_order, plan.confidence),
                decisions=_decisions(problem, cards[model], found.found.get(f"{name}/decisions")),
            )
        )
    return Contents(
        problem=problem,
        primary=name_of(problem.primary),
        findings=findings,
        comparison=comparison,
        subgroups=parts.shown,
        left_out=parts.left_out,
        too_many=parts.too_many,
        checks=survey_checks(problem, survey, cards, classes[0].rows.high[:, 0], parts),
        replicates=0 if problem.grouped else plan.replicates,
        confidence=plan.confidence,
        seed=plan.seed,
        precision=_precision(findings, parts.shown.values()),
    )


def _precision(findings: Sequence[Findings], subgroups: Iterable[Subgroups]) -> str:
    """What comes from histograms, and how far it can be off."""
    curves = [curve for found in findings for curve in (*found.retained, *found.selected)]
    bounds = [float(np.max(curve.within)) for curve in curves if curve.within is not None]
    removed = ""
    if bounds:
        removed = (
            "Curves of what is left when rows are removed come from histograms of losses: every value is "
            f"within {bound(max(bounds))} of that of the rows. "
        )
    parts = max(found.decomposition.whole.within or 0.0 for found in findings)
    smaller = [line.decomposition.whole.within or 0.0 for found in subgroups for line in found.lines]
    of_subgroups = f" (of subgroups {bound(max(smaller))})" if smaller else ""
    return (
        f"The rows were read once and not kept. {removed}Reliability "
        "curves and the parts of the score come from histograms of forecasts: miscalibration and "
        f"discrimination are those of the rows, or less by at most {bound(parts)}{of_subgroups}. {RANKS} All "
        "other figures are exact."
    )


def _calibration(
    handle: Handle, problem: Problem, plan: Resampling, events: Mapping[str, EventSums]
) -> tuple[dict[str, Decomposition], dict[str, list[ReliabilityPanel]]]:
    """The decomposition and the panels of every model."""
    rule = RULES["rps" if problem.ordered else "brier"]
    how, names = split(rule, problem.n_classes), event_names(handle, rule)
    parted = {name: read_decomposition(sums, rule, handle, plan) for name, sums in events.items()}
    positions = all_shown(problem) or most_miscalibrated(parted)
    panels = {}
    for name, sums in events.items():

        def panel(i: int, sums: EventSums = sums) -> ReliabilityPanel:
            rng = np.random.default_rng(plan.seed)
            return panel_of(problem, i, read_curve(sums, i, names[i], how, RESAMPLES, rng, plan.confidence))

        panels[name] = side_by_side(panel, positions, sums.n_rows)
    return parted, panels


def _curves(
    found: Summaries,
    name: str,
    recipes: Mapping[str, Recipe[Any]],
    problem: Problem,
    plan: Resampling,
    n_classes: int,
) -> list[RetentionCurve]:
    recipe = recipes[f"{name}/curves"]
    assert isinstance(recipe, CurveRecipe)
    _, metrics = curves_shown(problem, 0)
    n = _OF_GROUPS if problem.grouped else plan.replicates
    if found[f"{name}/curves"].rows is not None:
        n = curve_replicates(problem)
    options = Options(None, "mean", "nan", n, plan.seed, plan.confidence, weights_are=problem.weights_are)
    curves = read_curves(found[f"{name}/curves"], recipe, metrics, options, n_classes)
    return list(curves.values())


def _by_class(problem: Problem, sums: ClassSums, shown: list[int], confidence: float) -> list[ClassLoss]:
    found = []
    for k in shown:
        n, weight, _ = sums.rows.high[k]
        if not weight:
            continue
        means, intervals = {}, {}
        for r, rule in enumerate(problem.rules):
            bounds = rule.bounds(problem.n_classes)
            means[name_of(rule)], intervals[name_of(rule)] = mean_with_interval(
                *sums.mean(k, r), bounds, confidence
            )
        found.append(ClassLoss(k, int(n), means, intervals))
    return found


def _decisions(problem: Problem, card: Scorecard, found: DecisionCounts | None) -> Decisions | None:
    if found is None or problem.costs is None or card.confusion is None:
        return None
    matrix = cost_matrix(problem.costs, problem.n_classes)
    return Decisions(
        float(expected_cost_of(card.confusion, matrix)), float(expected_cost_of(found.counts.high, matrix))
    )


def _comparison(
    handle: Handle,
    problem: Problem,
    plan: Resampling,
    classes: list[ClassSums],
    pairs: PairedSums | None,
) -> Comparison:
    names, known = list(problem.models), {} if pairs is None else dict(pairs.tallies)
    frequencies = classes[0].frequency_losses(problem.rules, copies=plan.copies)
    again = _read_again(handle, problem, plan, classes[0])
    for r, rule in enumerate(problem.rules):
        key = OF_RULE.format(name_of(rule))
        known[key] = (
            with_frequencies(classes, known.get(key), r, frequencies) if again is None else again[key]
        )
    found = read_comparison(
        PairedSums(known), names, problem.rules, ordered=problem.ordered, reference=FREQUENCIES, plan=plan
    )
    claims: Claims | None = None
    if pairs is not None and len(problem.rules) > 1:
        claims = claims_of(pairs, None, found.traits, plan)
    return replace(found, n_rows=problem.n_rows, claims=claims)


def _read_again(handle: Handle, problem: Problem, plan: Resampling, classes: ClassSums) -> PairedSums | None:
    """Sums with class frequencies as the last model where each row leaves out a weight of its own.

    Sums by class are as exact for more rows.
    """
    if not classes.weighted or classes.groups is not None or plan.copies:
        return None
    if not handle.has_rows or problem.n_rows > _READ_AGAIN:
        return None
    reference = OtherGroups(classes.counts)
    recipe = PairedRecipe(tuple(handle.models), problem.rules, FREQUENCIES, reference)
    found: PairedSums = handle.summarise({"pairs": recipe})["pairs"]
    return found


def _remedies(
    problem: Problem,
    plan: Resampling,
    sample: Sample,
    panels: Callable[[], Panels],
    events: Mapping[str, EventSums],
) -> dict[str, Remedy]:
    """What recalibration would bring, tried on a sample of the rows."""
    leanings = {
        name: read_class_biases(sums, problem.n_classes, thresholds=problem.ordered)
        for name, sums in events.items()
    }
    rows = sample.whole_groups().in_order()
    if not len(rows.y) or (rows.weights is not None and not rows.weights.any()):
        return {name: Remedy(None, found, []) for name, found in leanings.items()}
    drawn = Problem.of(
        rows.y,
        {name: rows.p[:, i] for i, name in enumerate(problem.models)},
        classes=None,
        ordered=problem.ordered,
        costs=problem.costs,
        weights=rows.weights,
        groups=rows.groups,
        by=None,
        ids=None,
        rules=problem.rules,
        # Softmax and rescaling leave rounding behind.
        normalize=True,
        logits=False,
        weights_are=problem.weights_are,
        time_ordered=False,
    )
    tried = remedies_of(drawn, panels, confidence=plan.confidence, seed=plan.seed, of_rows=problem.n_rows)
    return {name: replace(tried[name], leanings=found) for name, found in leanings.items()}
