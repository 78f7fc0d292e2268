"""What recalibration would bring to each model, in cross-validation; of very many rows a part is used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from verax._settings import settings
from verax.analyses.calibration.reliability import reliability
from verax.analyses.list_samples import ListSample
from verax.analyses.samples import Sample
from verax.errors import RuleError
from verax.inputs.arrays import Floats
from verax.inputs.forecasts import Forecasts
from verax.inputs.lists.rows import ListRows
from verax.report.problem import Problem
from verax.report.reliability import ReliabilityPanel
from verax.scores.base import Rule
from verax.scores.gradients.logits import check_trainable
from verax.scores.metrics import needs_order
from verax.scores.registry import headline_rule
from verax.wings.recalibrate.analysis import methods_named, recalibrate_lists, recalibrated
from verax.wings.recalibrate.records import FOLDS, LISTS, TITLES, rows_tried
from verax.wings.recalibrate.result import Recalibration

# Recalibration is not tried on fewer rows than this.
_FEWEST_ROWS = 20
# Before-and-after curves, and the cells of their grid.
_CURVES, _CELLS = 4, 50
# The panels of every model.
Panels = Mapping[str, Sequence[ReliabilityPanel]]


@dataclass(frozen=True, eq=False)
class Curve:
    """One event before and after recalibration: (P, 3) forecast, frequency and share of the weight."""

    title: str
    before: Floats
    after: Floats


@dataclass(frozen=True, eq=False)
class RecalibrationBenefit:
    """What recalibration would bring to one model.

    Attributes
    ----------
    recalibration : Recalibration or None
        None where there are too few rows, or too many classes to be done in time.
    curves : list
        Reliability before and after, of the same events for all models; empty where no model gains.
    """

    recalibration: Recalibration | None
    curves: list[Curve]

    @property
    def helps(self) -> bool:
        """Whether a method passed the test of choices."""
        return self.recalibration is not None and self.recalibration.helps


@dataclass(frozen=True, eq=False)
class Tried:
    """What recalibration did to a sample of the rows.

    Attributes
    ----------
    rows : Sample or None
        The rows that it was tried on; None where it was not tried.
    recalibrations : mapping of str to Recalibration
        That of every model, by the name on the page.
    """

    rows: Sample | None
    recalibrations: Mapping[str, Recalibration]


def try_recalibration(problem: Problem, sample: Sample | None, *, confidence: float, seed: int) -> Tried:
    """Recalibrate every model on a sample of the rows, where there is one."""
    rows = None if sample is None else _usable(problem, sample)
    recalibrations = {}
    for i, name in enumerate(problem.models.values() if rows is not None else ()):
        assert rows is not None
        better = _recalibration(problem, rows, i, confidence, seed)
        recalibrations[name] = rows.tell(better, problem.n_rows)
    return Tried(rows, recalibrations)


def remedies_of(problem: Problem, tried: Tried, panels: Panels) -> dict[str, RecalibrationBenefit]:
    """The remedy of every model, from what was tried and the panels of all models."""
    remedies = {
        name: RecalibrationBenefit(tried.recalibrations.get(name), []) for name in problem.models.values()
    }
    if tried.rows is None or not any(remedy.helps for remedy in remedies.values()):
        return remedies
    # The same events for all models, so that one figure serves them.
    shown = _most_miscalibrated(panels)
    return {
        name: replace(remedy, curves=_curves(problem, tried.rows, i, remedy, shown))
        for i, (name, remedy) in enumerate(remedies.items())
    }


def remedies_of_lists(
    problem: Problem, samples: Mapping[str, ListSample], *, confidence: float, seed: int
) -> dict[str, RecalibrationBenefit]:
    """The remedy of the lists of every model, tried on a sample of them; saved lists may have none."""
    remedies: dict[str, RecalibrationBenefit] = {}
    rows = {}
    for model, shown in problem.models.items():
        sample = samples[model].at_most(LISTS) if model in samples else None
        remedies[shown] = RecalibrationBenefit(None, [])
        if sample is None or not _enough(len(sample.place), sample.groups):
            continue
        rows[shown] = sample.lists(problem.n_classes)
        better = recalibrate_lists(
            sample,
            problem.n_rows,
            problem.n_classes,
            rule=_rule(problem),
            confidence=confidence,
            seed=seed,
        )
        remedies[shown] = RecalibrationBenefit(better, [])
    if len(rows) < len(remedies) or not any(remedy.helps for remedy in remedies.values()):
        return remedies
    return {
        name: replace(remedy_of, curves=_list_curves(rows[name], remedy_of))
        for name, remedy_of in remedies.items()
    }


def _list_curves(rows: ListRows, remedy: RecalibrationBenefit) -> list[Curve]:
    """The class listed first, and any listed class, before and after recalibration."""
    assert remedy.recalibration is not None
    after = remedy.recalibration.held_out
    assert isinstance(after, ListRows)
    lists, batch = rows.lists, rows.batch(0, rows.n_rows)
    some, weights = np.flatnonzero(lists.lengths), batch.weights
    firsts = lists.offsets[:-1][some]
    happened = lists.classes == batch.y[lists.row_of]
    entries = None if weights is None else weights[lists.row_of]
    curves = []
    for title, at in (("the class listed first", firsts), ("any listed class", slice(None))):
        w = None if entries is None else entries[at]
        points = (
            _points(happened[at], np.clip(kind.lists.confidences[at], 0, 1), w) for kind in (rows, after)
        )
        curves.append(Curve(title, *points))
    return curves


def _enough(n: int, groups: Any) -> bool:
    return n >= _FEWEST_ROWS and (groups is None or len(np.unique(groups)) >= 3)


def _usable(problem: Problem, sample: Sample) -> Sample | None:
    """The rows to learn from, whole groups in an order of their own; None where it cannot be done."""
    n_classes = problem.n_classes
    in_time = min(problem.n_rows, rows_tried(n_classes)) * n_classes <= settings.report_recalibrated
    if not (settings.report_methods and in_time):
        return None
    rows = sample.at_most(rows_tried(problem.n_classes))
    n = len(rows.y) if rows.weights is None else int(np.count_nonzero(rows.weights))
    return rows if _enough(n, rows.groups) else None


def _most_miscalibrated(panels: Panels) -> list[ReliabilityPanel]:
    """Of each event the panel of the first model; the events with the largest miscalibration of all."""
    first = next(iter(panels.values()))
    total = np.sum([[_miscalibration(panel) for panel in of_model] for of_model in panels.values()], axis=0)
    return [first[i] for i in sorted(np.argsort(-total, kind="stable")[:_CURVES].tolist())]


def _miscalibration(panel: ReliabilityPanel) -> float:
    return 0.0 if panel.components is None else panel.components.miscalibration


def _recalibration(problem: Problem, rows: Sample, i: int, confidence: float, seed: int) -> Recalibration:
    rule, ordered = _rule(problem), problem.ordered
    given = Forecasts(
        rows.y,
        rows.p[:, i],
        ordered=needs_order([rule], ordered=ordered),
        weights=rows.weights,
        groups=rows.groups,
        # Softmax and rescaling leave rounding behind.
        normalize=True,
    )
    asked = methods_named(settings.report_methods, TITLES)
    return recalibrated(given, asked, rule, FOLDS, confidence, seed, ordered=ordered)


def _rule(problem: Problem) -> Rule:
    """The rule that the page goes by, or the nearest one that can be minimised."""
    try:
        check_trainable(problem.primary, min(problem.n_classes, 3) if problem.lists else problem.n_classes)
    except RuleError:
        return headline_rule(ordered=problem.ordered)
    return problem.primary


def _curves(
    problem: Problem,
    rows: Sample,
    model: int,
    remedy: RecalibrationBenefit,
    shown: Sequence[ReliabilityPanel],
) -> list[Curve]:
    """Some events before and after recalibration."""
    recalibration = remedy.recalibration
    assert recalibration is not None
    assert isinstance(recalibration.held_out, np.ndarray)
    y, w, p = rows.y, rows.weights, rows.p[:, model]
    curves = []
    for panel in shown:
        i = panel.position
        happened = y <= i if problem.ordered else y == i
        columns = (
            x[:, : i + 1].sum(axis=1) if problem.ordered else x[:, i] for x in (p, recalibration.held_out)
        )
        before, after = (_points(happened, np.clip(column, 0, 1), w) for column in columns)
        curves.append(Curve(panel.title, before, after))
    return curves


def _points(happened: Any, given: Floats, weights: Floats | None) -> Floats:
    """A reliability curve, averaged over cells of a grid."""
    curve = reliability(happened, np.round(given, 6), weights=weights, resamples=0)[1]
    cell = np.minimum((curve.forecast * _CELLS).astype(np.int64), _CELLS - 1)
    _, place = np.unique(cell, return_inverse=True)
    mass = np.bincount(place, curve.weight)
    means = [np.bincount(place, curve.weight * x) / mass for x in (curve.forecast, curve.frequency)]
    return np.column_stack([*means, mass / mass.sum()])
