"""Retention curves in the report: what is left of a metric when the hardest cases are dropped."""

from __future__ import annotations

from dataclasses import replace

from verax.analyses.uncertainty_scores import UncertaintyScore, doubt
from verax.inference.intervals import Resampling
from verax.report.limits import COUNTED, EXPECTED, OF_GROUPS, curve_replicates
from verax.report.problem import Problem
from verax.scores.base import Rule
from verax.scores.registry import parse
from verax.wings.retain.curves import as_list_metrics, as_metrics, read_curves
from verax.wings.retain.cuts import Metric, Options
from verax.wings.retain.result import RetentionCurve
from verax.wings.retain.summaries import CurveRecipe, Histograms, Measures


def curve_keys(problem: Problem, n_rows: float) -> list[Rule | UncertaintyScore]:
    """What ranks the rows of curves: losses first, then the forecasts alone."""
    losses = dict.fromkeys([problem.primary, *(parse(r) for r in ("brier", "log_score", "sa_rps"))])
    keys: list[Rule | UncertaintyScore] = [rule for rule in losses if rule in problem.rules]
    keys.append(doubt("max_probability"))
    if not problem.lists and problem.n_classes**2 * n_rows <= EXPECTED:
        keys += [doubt("entropy"), doubt(problem.primary)]
    return keys


def _metrics(problem: Problem) -> list[Metric]:
    if problem.lists:
        return as_list_metrics(["accuracy", problem.primary])
    counted = "qwk" if problem.ordered and problem.n_classes <= COUNTED else "accuracy"
    metrics: list[str | Rule] = [counted, problem.primary, *(["ec"] if problem.costs is not None else [])]
    return as_metrics(metrics, "zero_one" if problem.costs is None else problem.costs)


def curve_recipe(problem: Problem, model: str, n_rows: float, seed: int) -> CurveRecipe:
    """What the curves of a model are made of."""
    measures = Measures.of(_metrics(problem), problem.n_classes)
    return CurveRecipe(model, tuple(curve_keys(problem, n_rows)), measures, None, OF_GROUPS, seed)


def curves(
    problem: Problem, histograms: Histograms, recipe: CurveRecipe, plan: Resampling, *, last: bool = False
) -> list[RetentionCurve]:
    """The curves of every metric in every order; `last` is as in `read_curves`."""
    n = curve_replicates(problem.n_rows, len(problem.models))
    if histograms.rows is None and problem.grouped:
        n = OF_GROUPS
    options = Options(replace(plan, replicates=n, weights_are=problem.weights_are))
    return list(
        read_curves(histograms, recipe, _metrics(problem), options, problem.n_classes, last=last).values()
    )
