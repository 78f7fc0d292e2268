"""The report as an analysis: what it asks of the rows, at once, and what it concludes from the answers.

Rows in memory, in files or on a cluster are asked for the same summaries, in one pass. Where rows can be read
again at little cost, a second question settles what the first pass leaves open: ranks of the worst rows and
class frequencies of rows with weights.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from verax._settings import settings
from verax.analyses.calibration.claims import read_overconfidence
from verax.analyses.calibration.components import Decomposition
from verax.analyses.calibration.recipes import EventRecipe, ListEventRecipe
from verax.analyses.cards.evaluation import CardRecipe
from verax.analyses.cards.scorecard import Scorecard
from verax.analyses.classsums import ClassRecipe, ClassSums, with_frequencies
from verax.analyses.comparison.compare import compare_paired, error_sums, row_wise_of
from verax.analyses.comparison.conclusions import claims_of, read_comparison
from verax.analyses.comparison.paired import OF_RULE, PairedRecipe, PairedSums
from verax.analyses.comparison.references import FREQUENCIES, UNIFORM, OtherGroups
from verax.analyses.comparison.result import Comparison
from verax.analyses.parts import probabilities, seen
from verax.analyses.worst import Worst, ranking, read_ranked, read_worst, worst_recipes
from verax.analyses.worst_rows import Worse, WorseRecipe, WorstRecipe, WorstRows
from verax.common.memory import give_back
from verax.common.summaries import Summary, merges
from verax.common.texts import bound
from verax.engines.counts import CONFUSION_UP_TO
from verax.engines.sums import Sum, Sums
from verax.inference.estimates import Estimate
from verax.inference.intervals import Resampling
from verax.inputs.arrays import Floats
from verax.inputs.handles import Handle, Part, Recipe, Summaries
from verax.inputs.rows import Rows
from verax.report import calibration
from verax.report.breakdowns import breakdown_recipes, read_breakdowns
from verax.report.checks import checks_of
from verax.report.contents import ClassLoss, Contents, Decisions, Distributions, Findings
from verax.report.limits import (
    CLASSES,
    PLACES,
    WORST,
    WORST_LISTS,
    replicates_for,
)
from verax.report.places import decomposed, find_places
from verax.report.problem import Problem
from verax.report.reliability import ReliabilityPanel, panels_of_places
from verax.report.section import Answered, Asked, Section, of_section, section_recipes, sections
from verax.report.survey import ListSurveyRecipe, SurveyRecipe
from verax.scores.base import Rule
from verax.scores.combinators import padded
from verax.scores.decisions import cheapest
from verax.scores.metrics import CostsLike, cost_matrix, expected_cost_of
from verax.scores.registry import RULES, name_of

_RANKS = (
    "Ranks of the worst rows by other scores come from histograms of losses; where these do not settle a "
    "rank, its range is shown, such as “12 to 15”."
)


def look_at(
    handle: Handle, problem: Problem, *, confidence: float, seed: int, full: Mapping[str, Rows] | None = None
) -> Contents:
    """Everything that is on the page; `full` are distributions that lists were cut from."""
    replicates = settings.report_list_tests if problem.lists else settings.report_tests
    plan = Resampling(confidence, replicates, seed, problem.weights_are)
    # Scores and differences allow for two kinds of groups, all else for the kind with fewer.
    crossed, handle = handle, handle.one_way()
    recipes = recipes_of(handle, problem, plan)
    summaries = handle.summarise(recipes)
    if crossed is not handle:
        cards = {name: recipe for name, recipe in recipes.items() if isinstance(recipe, CardRecipe)}
        summaries = replace(summaries, by_name={**summaries.by_name, **crossed.summarise(cards).by_name})
    problem = problem.counted(handle, summaries)
    conclusion = _Conclusion(handle, crossed, problem, plan, recipes, summaries, full or {})
    # The conclusion lets go of what it does not need any more.
    del summaries
    findings = conclusion.findings()
    for section in sections():
        if section.turn == "last":
            conclusion.found[section.key] = section.read(conclusion.answers_of(section))
    return conclusion.contents(findings)


# ---- what is asked -----------------------------------------------------------------------------


def recipes_of(handle: Handle, problem: Problem, plan: Resampling) -> dict[str, Recipe[Any]]:
    """What is summed up, by name."""
    recipes = _list_recipes if problem.lists else _dense_recipes
    return {
        **recipes(handle, problem, plan),
        **section_recipes(Asked(handle, problem, plan)),
        **breakdown_recipes(handle, problem, plan),
    }


def _dense_recipes(handle: Handle, problem: Problem, plan: Resampling) -> dict[str, Recipe[Any]]:
    """Those of distributions; the first recipe of a model computes the losses of all rules."""
    # As many draws as cards have.
    card_plan = replace(plan, replicates=1000)
    asked, recipes = Asked(handle, problem, plan), dict[str, Recipe[Any]]()
    for name in handle.models:
        # What the other recipes ask for; those of several models and of subgroups ask for all.
        alone = len(handle.models) == 1 and not handle.by
        kept = [rule for section in sections() for rule in section.kept(asked, name)]
        kept_for = (*kept, *ranking(problem.primary)) if alone else None
        recipes[f"{name}/classes"] = ClassRecipe(name, problem.rules, kept_for)
        recipes[f"{name}/card"] = CardRecipe(name, problem.rules, problem.ordered, problem.costs, card_plan)
        recipes[f"{name}/events"] = EventRecipe(name, problem.ordered)
        ranked = [rule for section in sections() for rule in section.ranked(asked, name)]
        recipes |= _worst_recipes(handle, name, problem.primary, ranked)
        if problem.costs is not None and handle.n_classes <= CONFUSION_UP_TO:
            recipes[f"{name}/decisions"] = DecisionRecipe(name, problem.costs)
    recipes["survey"] = SurveyRecipe()
    if len(handle.models) > 1:
        recipes["pairs"] = PairedRecipe(tuple(handle.models), problem.rules, traits=True)
    return recipes


def _list_recipes(handle: Handle, problem: Problem, plan: Resampling) -> dict[str, Recipe[Any]]:
    recipes: dict[str, Recipe[Any]] = {"survey": ListSurveyRecipe()}
    fined = tuple(padded(rule) for rule in problem.rules)
    card_plan = replace(plan, replicates=1000)
    for name in handle.models:
        recipes[f"{name}/card"] = CardRecipe(name, fined, False, None, card_plan)
        recipes[f"{name}/stated"] = ListEventRecipe(name, PLACES)
        recipes[f"{name}/scored"] = ListEventRecipe(name, scored=True)
        recipes |= _worst_recipes(handle, name, problem.primary, ())
    recipes["pairs"] = PairedRecipe(tuple(handle.models), problem.rules, reference=UNIFORM)
    answers = PairedRecipe(tuple(handle.models), (RULES["zero_one"],))
    if len(handle.models) > 1 and not problem.time_ordered and handle.knows(answers):
        recipes["answers"] = answers
    return recipes


def _worst_recipes(handle: Handle, model: str, rule: Rule, counted: Sequence[Any]) -> dict[str, Recipe[Any]]:
    """What finds the worst rows; their ranks by other rules come from histograms, or from a second pass."""
    n = WORST_LISTS if handle.lists else WORST
    if handle.kept is not None:
        return {f"{model}/worst": WorstRecipe(model, tuple(ranking(rule)), n)}
    return worst_recipes(handle, model, rule, n, counted=counted)


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


class _Conclusion:
    """What the summaries say."""

    def __init__(
        self,
        handle: Handle,
        crossed: Handle,
        problem: Problem,
        plan: Resampling,
        recipes: Mapping[str, Recipe[Any]],
        summaries: Summaries,
        full: Mapping[str, Rows],
    ) -> None:
        self.handle, self.problem, self.plan, self.summaries, self.full = (
            handle,
            problem,
            plan,
            summaries,
            full,
        )
        self.recipes, self.crossed = recipes, crossed
        self.cards: dict[str, Scorecard] = {
            shown: summaries[f"{model}/card"] for model, shown in problem.models.items()
        }
        self.ranks = self._ranks()
        self.comparison = self._comparison()
        self.found: dict[str, Any] = {}
        self._forget_rows()

    def _forget_rows(self) -> None:
        """Let go of what recipes have shared of rows in memory: it takes much memory."""
        if self.handle.kept is not None:
            self.handle.kept.forget_all()
            give_back()

    def findings(self) -> list[Findings]:
        """What there is to say about each model, with what the first sections read."""
        problem, plan = self.problem, self.plan
        replicates = replicates_for(problem.n_copies, problem.n_classes, len(problem.models))
        tests = replace(plan, replicates=plan.replicates if problem.lists else replicates)
        findings = self._lists() if problem.lists else self._distributions(tests)
        self._forget_rows()
        return findings

    def contents(self, findings: list[Findings]) -> Contents:
        """Everything that is on the page, when all sections have read their results."""
        problem, plan = self.problem, self.plan
        self._forget_rows()
        results = {
            section.key: section.concluded(self.found[section.key], problem, findings)
            for section in sections()
            if self.found[section.key] is not None
        }
        parts = read_breakdowns(self.handle, problem, plan, self.summaries.by_name)
        class_rows = None
        if not problem.lists:
            class_rows = self.summaries[f"{self.handle.models[0]}/classes"].rows.high[:, 0]
        contents = Contents(
            problem=problem,
            primary=name_of(problem.primary),
            findings=findings,
            comparison=self.comparison,
            parts=parts,
            checks=checks_of(problem, self.summaries["survey"], self.cards, class_rows, parts),
            replicates=max(len(model.decomposition.whole.calibrated) for model in findings),
            confidence=plan.confidence,
            seed=plan.seed,
            class_rows=class_rows,
            answers=self._answers(),
            found={key: result for key, result in results.items() if result is not None},
        )
        return replace(contents, precision=_precision(contents))

    def _read(self, *turns: str) -> dict[str, Any]:
        """What the sections of wings read in their turn, by their keys."""
        found: dict[str, Any] = {}
        for section in sections():
            if section.turn in turns:
                found[section.key] = section.read(self.answers_of(section))
        return found

    def answers_of(self, section: Section[Any]) -> Answered:
        """What a section reads its results from."""
        recipes, answers = (of_section(section, of_all) for of_all in (self.recipes, self.summaries.by_name))
        asked = self.handle, self.problem, self.plan
        return Answered(*asked, recipes, self.summaries, full=self.full, answers=answers)

    def _forget_first(self) -> None:
        """Let go of the rows that the first sections were read from."""
        first = tuple(f"{section.key}: " for section in sections() if section.turn == "first")
        others = {
            name: summary for name, summary in self.summaries.by_name.items() if not name.startswith(first)
        }
        self.summaries = replace(self.summaries, by_name=others)

    def _lists(self) -> list[Findings]:
        problem, plan, summaries = self.problem, self.plan, self.summaries
        self.found |= self._read("beside", "first")
        places = [find_places(self.handle, problem, plan, summaries, model) for model in problem.models]
        panels = panels_of_places([of_model.curves for of_model in places])
        return [
            Findings(
                name=shown,
                card=self.cards[shown],
                decomposition=decomposed(self.handle, summaries, problem, plan, model),
                worst=self._worst(model),
                panels=drawn,
                dense=None,
                places=of_model,
            )
            for (model, shown), drawn, of_model in zip(problem.models.items(), panels, places, strict=True)
        ]

    def _distributions(self, tests: Resampling) -> list[Findings]:
        handle, problem, plan = self.handle, self.problem, self.plan
        events = {model: self.summaries[f"{model}/events"] for model in problem.models}

        def calibrated() -> tuple[dict[str, Decomposition], dict[str, list[ReliabilityPanel]]]:
            return calibration.calibrated(handle, problem, tests, plan, events)

        # Most of this is done outside of Python.
        with ThreadPoolExecutor(2) as pool:
            if handle.kept is not None:
                # The first sections and calibration one after the other: at once they take much memory.
                self.found |= self._read("first")
                self._forget_first()
                give_back()
                beside = pool.submit(self._read, "beside")
                parted, panels = calibrated()
                give_back()
            else:
                calibrating, beside = pool.submit(calibrated), pool.submit(self._read, "beside")
                self.found |= pool.submit(self._read, "first").result()
                parted, panels = calibrating.result()
            self.found |= beside.result()
        biases = calibration.class_biases(problem, events)
        classes = [self.summaries[f"{model}/classes"] for model in problem.models]
        shown = _heaviest(
            problem,
            np.sum([sums.losses.high[:, 0, 0] for sums in classes], axis=0),
            classes[0].rows.high[:, 1],
        )
        return [
            Findings(
                name=name,
                card=self.cards[name],
                decomposition=parted[name],
                worst=self._worst(model),
                panels=panels[name],
                dense=Distributions(
                    overconfidence=read_overconfidence(events[model], copies=plan.copies),
                    slopes=calibration.slopes(handle, problem, model, plan),
                    class_biases=biases[name],
                    by_class=_by_class(problem, classes[i], shown, plan.confidence),
                    decisions=self._decisions(model, self.cards[name]),
                ),
                places=None,
            )
            for i, (model, name) in enumerate(problem.models.items())
        ]

    def _decisions(self, model: str, card: Scorecard) -> Decisions | None:
        decisions: DecisionCounts | None = self.summaries.by_name.get(f"{model}/decisions")
        if decisions is None or self.problem.costs is None or card.confusion is None:
            return None
        matrix = cost_matrix(self.problem.costs, self.problem.n_classes)
        costs = (
            float(expected_cost_of(counts, matrix)) for counts in (card.confusion, decisions.counts.high)
        )
        return Decisions(*costs)

    # ---- the worst rows ------------------------------------------------------------------------

    def _ranks(self) -> dict[str, Worse]:
        """How many rows are worse than the worst by other rules, where rows can be read again."""
        if not self.problem.again:
            return {}
        rules = tuple(ranking(self.problem.primary))
        recipes = {}
        for model in self.problem.models:
            rows: WorstRows = self.summaries[f"{model}/worst"]
            if rows.losses.shape[1] == len(rules):
                recipes[model] = WorseRecipe(model, rules, tuple(map(tuple, rows.losses.tolist())))
        return dict(self.handle.summarise(recipes).by_name)

    def _worst(self, model: str) -> Worst:
        problem, rule = self.problem, self.problem.primary
        names = None if problem.lists else problem.names
        if model in self.ranks:
            counts = self.ranks[model].counts
            worst = read_worst(self.summaries[f"{model}/worst"], self.handle, ranking(rule), counts, names)
        else:
            known = (
                section.rank(of_section(section, self.summaries.by_name), model) for section in sections()
            )
            rank = next(filter(None, known), None)
            worst = read_ranked(self.summaries, self.handle, model, rule, names, rank)
        worst = worst.with_skipped(problem.skipped)
        card: Any = self.cards[problem.models[model]]
        return worst.with_faults({"": card.of_lists}) if problem.lists else worst

    # ---- models --------------------------------------------------------------------------------

    def _comparison(self) -> Comparison:
        problem, plan, handle = self.problem, self.plan, self.handle
        names, rules = list(problem.models.values()), list(problem.rules)
        pairs: PairedSums | None = self.summaries.by_name.get("pairs")
        if problem.time_ordered or self.crossed is not handle:
            reference = UNIFORM if problem.lists else FREQUENCIES
            row_wise = row_wise_of(self.crossed, "moments", problem.time_ordered, None, plan)
            return compare_paired(self.crossed, rules, problem.ordered, reference, plan, row_wise)
        if problem.lists:
            assert pairs is not None
            comparison = read_comparison(
                pairs, names, rules, ordered=False, reference=UNIFORM, plan=plan, n_classes=problem.n_classes
            )
            faults: dict[str, Any] = dict(self.cards)
            return comparison.with_faults({name: card.of_lists for name, card in faults.items()})
        classes: list[ClassSums] = [self.summaries[f"{model}/classes"] for model in problem.models]
        known = {} if pairs is None else dict(pairs.tallies)
        frequencies = classes[0].frequency_losses(problem.rules, copies=plan.copies)
        again = self._weighted_pairs(classes[0])
        for r, rule in enumerate(problem.rules):
            key = OF_RULE.format(name_of(rule))
            known[key] = (
                with_frequencies(classes, known.get(key), r, frequencies) if again is None else again[key]
            )
        comparison = read_comparison(
            PairedSums(known),
            names,
            rules,
            ordered=problem.ordered,
            reference=FREQUENCIES,
            plan=plan,
            n_classes=problem.n_classes,
        )
        claims = None
        if pairs is not None and len(rules) > 1:
            traits = dict(zip(problem.models, comparison.traits.values(), strict=True))
            errors = error_sums(handle, pairs, traits) if problem.again else None
            claims = claims_of(pairs, errors, comparison.traits, plan)
        return replace(comparison, n_rows=problem.n_rows, claims=claims)

    def _answers(self) -> Comparison | None:
        pairs: PairedSums | None = self.summaries.by_name.get("answers")
        if pairs is None:
            return None
        names = list(self.problem.models.values())
        return read_comparison(
            pairs, names, [RULES["zero_one"]], ordered=False, reference=None, plan=self.plan
        )

    def _weighted_pairs(self, classes: ClassSums) -> PairedSums | None:
        """Sums with class frequencies as the last model where each row leaves out a weight of its own.

        Sums by class are as exact for more rows.
        """
        if not classes.weighted or classes.groups is not None or self.plan.copies or not self.problem.again:
            return None
        reference = OtherGroups(classes.counts)
        recipe = PairedRecipe(tuple(self.handle.models), self.problem.rules, FREQUENCIES, reference)
        sums: PairedSums = self.handle.summarise({"pairs": recipe})["pairs"]
        return sums


def _precision(contents: Contents) -> str:
    """What comes from bins, and how far it can be off; empty where everything is exact."""
    findings, subgroups = contents.findings, contents.subgroups.values()
    parts = max(part.decomposition.whole.within or 0.0 for part in findings)
    smaller = max(
        (line.decomposition.whole.within or 0.0 for part in subgroups for line in part.lines),
        default=0.0,
    )
    texts = [text for section in sections() if (text := section.precision(contents))]
    if parts or smaller:
        some = f" (of subgroups {bound(smaller)})" if smaller else ""
        texts.append(
            "Reliability curves and the parts of the score come from histograms of forecasts: "
            f"miscalibration and discrimination are exact, or too small by at most {bound(parts)}{some}."
        )
    if any(case.rank_within for part in findings for case in part.worst):
        texts.append(_RANKS)
    if not texts:
        return ""
    return " ".join(["The rows were read once and not kept.", *texts, "All other figures are exact."])


def _heaviest(problem: Problem, total: Floats, weight: Floats) -> list[int]:
    """The classes with the largest total loss: in their order, or by loss per row if they have none."""
    shown = np.argsort(-total, kind="stable")[:CLASSES]
    if problem.ordered:
        return sorted(shown.tolist())
    size = np.maximum(weight, 1e-300)
    return sorted(shown.tolist(), key=lambda i: (-total[i] / size[i], i))


def _by_class(problem: Problem, sums: ClassSums, shown: list[int], confidence: float) -> list[ClassLoss]:
    by_class = []
    for k in shown:
        n, weight, _ = sums.rows.high[k]
        if not weight:
            continue
        means, intervals = {}, {}
        for rule, mean in zip(problem.rules, sums.means(k), strict=True):
            bounds = rule.bounds(problem.n_classes)
            means[name_of(rule)], intervals[name_of(rule)] = _with_interval(*mean, bounds, confidence)
        by_class.append(ClassLoss(k, int(n), means, intervals))
    return by_class


def _with_interval(
    mean: float, error: float, freedom: float, bounds: tuple[float, float], confidence: float
) -> tuple[float, tuple[float, float]]:
    """A mean with its t interval, cut at the bounds of the loss; NaN where there is only one unit."""
    if not np.isfinite(mean):
        return float("inf"), (float("nan"), float("nan"))
    if freedom <= 0:
        return mean, (float("nan"), float("nan"))
    low, high = Estimate(np.array([mean]), np.array([error]), freedom).intervals(confidence)[0]
    return mean, (max(bounds[0], float(low)), min(bounds[1], float(high)))
