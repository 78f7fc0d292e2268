"""Retention curves in the report: what is left of a metric when the hardest cases are dropped."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from verax._settings import settings
from verax.analyses.uncertainty_scores import UncertaintyScore, doubt
from verax.analyses.words import number, short_of, span, title_of
from verax.common.texts import bound
from verax.display.axes import Axis
from verax.display.figures import Figure
from verax.display.marks import Band, Line, Mark, Ranged
from verax.inference.intervals import Resampling
from verax.report.contents import Contents, Findings
from verax.report.figures import Shown, Variant
from verax.report.limits import FEWEST
from verax.report.problem import Problem
from verax.report.section import Answered, Asked, Placed, Rank, Section, Turn
from verax.scores.base import Rule
from verax.scores.metrics import HIGHER, LOWER
from verax.scores.registry import parse
from verax.wings.retain.curves import as_list_metrics, as_metrics, read_curves
from verax.wings.retain.cuts import Metric, Options
from verax.wings.retain.result import SEES_THE_OUTCOME, RetentionCurve
from verax.wings.retain.summaries import CurveRecipe, Histograms, Measures

_CUTS = (0, 5, 10, 15, 20)
# Beyond this number of classes there are no curves of kappa: every cut takes a table of all pairs of classes.
_COUNTED = 64
# Draws behind the bands: at most, where rows in parts belong to groups, and how many rows they may take.
_BANDS, _OF_GROUPS, _BUDGET = 100, 20, 2e7
# The loss that a forecast itself expects takes a pass for every class that might happen.
_EXPECTED = 5e8


@dataclass(frozen=True, eq=False)
class Curves:
    """The curves of one model: dropping the cases of largest loss, and the most uncertain ones."""

    retained: list[RetentionCurve]
    selected: list[RetentionCurve]

    @classmethod
    def of(cls, curves: Sequence[RetentionCurve]) -> Curves:
        """All curves, by what their order sees."""
        return cls([c for c in curves if c.sees_outcome], [c for c in curves if not c.sees_outcome])


class Retention(Section[dict[str, Curves]]):
    """The curves of every model, by its name on the page; none of lists that were saved without."""

    key = "retention"
    title = "Hardest cases"
    after = "worst"
    template = "retain/section.html.j2"
    turn: ClassVar[Turn] = "first"

    def recipes(self, asked: Asked) -> dict[str, CurveRecipe]:
        """What the curves of each model are made of."""
        recipes = {model: _recipe(asked, model) for model in asked.handle.models}
        if not asked.problem.lists:
            return recipes
        return {model: recipe for model, recipe in recipes.items() if asked.handle.knows(recipe)}

    def kept(self, asked: Asked, model: str) -> list[Rule]:
        """Those that rank rows, and those that are measured."""
        recipe = _recipe(asked, model)
        return [*(key for key in recipe.keys if isinstance(key, Rule)), *recipe.measures.rules]

    def ranked(self, asked: Asked, model: str) -> list[Rule]:
        """The rules that rank rows."""
        return [key for key in _recipe(asked, model).keys if isinstance(key, Rule)]

    def rank(self, answers: Mapping[str, Any], model: str) -> Rank | None:
        """Ranks from the histograms of losses that the curves are read from."""
        return answers[model].rank if model in answers else None

    def read(self, found: Answered) -> dict[str, Curves]:
        """The curves of each model; of rows in memory, nobody else has the ranks."""
        last = found.handle.kept is not None
        curves: dict[str, Curves] = {}
        for model, shown in found.problem.models.items():
            recipe: Any = found.recipes.get(model)
            histograms = found.answers.get(model)
            drawn = (
                [] if histograms is None else _read(found.problem, histograms, recipe, found.plan, last=last)
            )
            curves[shown] = Curves.of(drawn)
        return curves

    def exhibit(self, contents: Contents) -> dict[str, Any] | None:
        """The curves of what is left when rows are removed."""
        models = list((self.found(contents) or {}).values())
        if not models or not models[0].selected:
            return None
        titles = {curve.metric: _metric_title(curve) for curve in models[0].retained}
        return {
            "metrics": list(titles.values()),
            "retained_band": _band(models[0].retained, contents.confidence),
            "selected_band": _band(models[0].selected, contents.confidence),
            "caution": SEES_THE_OUTCOME,
            "cuts": _CUTS,
            "retained": [_curve_table(model.retained) for model in models],
            "selected": [_curve_table(model.selected) for model in models],
        }

    def figures(self, contents: Contents) -> dict[str, Shown]:
        """The curves, by metric and model."""
        models = self.found(contents) or {}
        if not models or not next(iter(models.values())).selected:
            return {}
        return {
            key: Shown(
                [
                    Variant({"metric": i, "model": m}, f"{name}, {title_of(metric)}", _figure(curves))
                    for m, (name, model) in enumerate(models.items())
                    for i, (metric, curves) in enumerate(_by_metric(getattr(model, key)).items())
                ]
            )
            for key in ("retained", "selected")
        }

    def conventions(self, contents: Contents) -> list[Placed[str]]:
        """What replaces kappa where there are too many classes."""
        many = contents.problem.ordered and contents.problem.n_classes > _COUNTED
        return (
            [("limits", f"Beyond {_COUNTED} classes, curves show accuracy instead of kappa.")] if many else []
        )

    def precision(self, contents: Contents) -> str:
        """How far curves from histograms can be off."""
        models = (self.found(contents) or {}).values()
        curves = [c for model in models for c in (*model.retained, *model.selected)]
        largest = max((float(np.max(c.within)) for c in curves if c.within is not None), default=0.0)
        if not largest:
            return ""
        return (
            "Curves after dropping the hardest cases come from histograms of losses: every value is "
            f"within {bound(largest)} of the exact one."
        )

    def of_model(self, contents: Contents, model: Findings) -> dict[str, Any]:
        """The curves of one model."""
        curves = (self.found(contents) or {})[model.name]
        return {
            "retention": [curve.to_dict(stored=False) for curve in curves.retained],
            "selective": [curve.to_dict(stored=False) for curve in curves.selected],
        }


RETENTION = Retention()


# ---- what it asks, and reads from the answers ------------------------------------------------------


def _recipe(asked: Asked, model: str) -> CurveRecipe:
    """What the curves of a model are made of.

    Files of text do not say how many rows they have, so that sums saved of them have no costly order.
    """
    sizes = (asked.handle.most_rows, math.inf)
    recipes = [_recipe_of(asked.problem, model, n_rows, asked.plan.seed) for n_rows in sizes]
    return next((recipe for recipe in recipes if asked.handle.knows(recipe)), recipes[0])


def _keys(problem: Problem, n_rows: float) -> list[Rule | UncertaintyScore]:
    """What ranks the rows of curves: losses first, then the forecasts alone."""
    losses = dict.fromkeys([problem.primary, *(parse(r) for r in ("brier", "log_score", "sa_rps"))])
    keys: list[Rule | UncertaintyScore] = [rule for rule in losses if rule in problem.rules]
    keys.append(doubt("max_probability"))
    if not problem.lists and problem.n_classes**2 * n_rows <= _EXPECTED:
        keys += [doubt("entropy"), doubt(problem.primary)]
    return keys


def _metrics(problem: Problem) -> list[Metric]:
    if problem.lists:
        return as_list_metrics(["accuracy", problem.primary])
    counted = "qwk" if problem.ordered and problem.n_classes <= _COUNTED else "accuracy"
    metrics: list[str | Rule] = [counted, problem.primary, *(["ec"] if problem.costs is not None else [])]
    return as_metrics(metrics, "zero_one" if problem.costs is None else problem.costs)


def _recipe_of(problem: Problem, model: str, n_rows: float, seed: int) -> CurveRecipe:
    """What the curves of a model are made of."""
    measures = Measures.of(_metrics(problem), problem.n_classes)
    return CurveRecipe(model, tuple(_keys(problem, n_rows)), measures, None, _OF_GROUPS, seed)


def _replicates(n_rows: int, n_models: int) -> int:
    """The number of bootstrap samples behind the curves."""
    return int(min(_BANDS, settings.report_tests, max(FEWEST, _BUDGET / n_rows / n_models)))


def _read(
    problem: Problem, histograms: Histograms, recipe: CurveRecipe, plan: Resampling, *, last: bool = False
) -> list[RetentionCurve]:
    """The curves of every metric in every order; `last` is as in `read_curves`."""
    n = _replicates(problem.n_rows, len(problem.models))
    if histograms.rows is None and problem.grouped:
        n = _OF_GROUPS
    options = Options(replace(plan, replicates=n, weights_are=problem.weights_are))
    return list(
        read_curves(histograms, recipe, _metrics(problem), options, problem.n_classes, last=last).values()
    )


# ---- tables and figures ----------------------------------------------------------------------------


def _band(curves: list[RetentionCurve], confidence: float) -> str:
    """Which line the band belongs to."""
    first = curves[0]
    if first.band is None:
        return ""
    line = short_of(first.order)
    return f"The shaded area is the {100 * confidence:g}% simultaneous confidence band of the line {line}."


def _metric_title(curve: RetentionCurve) -> str:
    """The title of what a curve measures, and which way is better."""
    return f"{title_of(curve.metric)} ({HIGHER if curve.higher_is_better else LOWER})"


def _curve_table(curves: list[RetentionCurve]) -> list[dict[str, Any]]:
    rows = []
    for curve in curves:
        at = {round(100 * float(r)): float(v) for r, v in zip(curve.removed, curve.values, strict=True)}
        rows.append(
            {
                "metric": _metric_title(curve),
                "order": short_of(curve.order),
                "values": [number(at[cut]) for cut in _CUTS],
                "area": f"{number(curve.area)} ({span(curve.interval)})",
            }
        )
    return rows


def _by_metric(curves: Sequence[RetentionCurve]) -> dict[str, list[RetentionCurve]]:
    found: dict[str, list[RetentionCurve]] = {}
    for curve in curves:
        found.setdefault(curve.metric, []).append(curve)
    return found


def _figure(curves: Sequence[RetentionCurve]) -> Figure:
    """A metric as rows are removed: a line for each order, and the band of the first."""
    marks: list[Mark] = []
    for i, curve in enumerate(curves):
        x = 100 * curve.removed
        marks.append(Line(short_of(curve.order), x, curve.values, i))
        if i == 0 and curve.band is not None:
            level = f"{100 * curve.confidence:g}% simultaneous band"
            low, high = curve.band
            marks.append(Band(f"{level} of {short_of(curve.order)}", x, low, high, i))
    first = curves[0]
    name = f"mean height, {short_of(first.order)}"
    facts = [Ranged(name, first.area, *(first.interval or ()))]
    return Figure("", marks, Axis("percent of rows removed"), Axis(_metric_title(first)), facts=facts)
