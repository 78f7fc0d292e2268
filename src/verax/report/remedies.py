"""What recalibration would bring to each model, in cross-validation; of very many rows a part is used."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from verax.analyses.calibration.class_bias import ClassBias, class_biases
from verax.analyses.calibration.reliability import reliability
from verax.analyses.recalibration.recalibration import recalibrate
from verax.analyses.recalibration.result import Recalibration
from verax.errors import RuleError
from verax.inputs.arrays import Floats, Ints, to_host, widen
from verax.inputs.groups import Groups
from verax.report.problem import Problem
from verax.report.reliability import ReliabilityPanel
from verax.scores.base import Rule
from verax.scores.gradients.logits import check_trainable
from verax.scores.registry import RULES

# How many probabilities all models together may be recalibrated from; of more, rows are drawn at random.
# With fewer rows than the least there would be nothing to see, and nothing is done.
_PROBABILITIES = 60_000
_LEAST, _ENOUGH = 20, 500
# Few and simple methods, whose names readers know.
_METHODS = ("temperature", "bcts", "isotonic")
# Beyond so many probabilities events are not looked at one by one.
_LEANINGS = 20_000_000
# The largest number of curves, and the cells of their grid.
_CURVES = 4
_CELLS = 50
# The panels of every model.
Panels = Mapping[str, Sequence[ReliabilityPanel]]


@dataclass(frozen=True, eq=False)
class Curve:
    """One event before and after recalibration: (P, 3) forecast, frequency and share of the weight."""

    title: str
    before: Floats
    after: Floats


@dataclass(frozen=True, eq=False)
class Remedy:
    """What recalibration would bring to one model.

    Attributes
    ----------
    recalibration : Recalibration or None
        None where there are too few rows, or too many classes to be done in time.
    leanings : list
        Which events are too high or too low.
    curves : list
        Reliability before and after, of the same events for all models; empty where no model gains.
    """

    recalibration: Recalibration | None
    leanings: list[ClassBias]
    curves: list[Curve]

    @property
    def helps(self) -> bool:
        """Whether a method was chosen, and choosing gains something on held-out rows."""
        found = self.recalibration
        return found is not None and found.method != "none" and self.share > 0

    @property
    def share(self) -> float:
        """The gain in nested cross-validation, as a share of the loss; NaN where nothing was tried."""
        return math.nan if self.recalibration is None else self.recalibration.gain.share

    @property
    def undecided(self) -> tuple[int, int] | None:
        """The number of rows tried and of all rows, where no gain was seen on a part of the rows."""
        found = self.recalibration
        return None if found is None or self.helps else found.sampled

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain Python values."""
        found = self.recalibration
        return {
            "recalibration": None if found is None else found.to_dict(stored=False),
            "verdict": None if found is None else found.verdict,
            "leanings": [leaning.to_dict() for leaning in self.leanings],
        }


def remedies_of(
    problem: Problem,
    panels: Callable[[], Panels],
    *,
    confidence: float,
    seed: int,
    of_rows: int | None = None,
) -> dict[str, Remedy]:
    """The remedy of every model; the panels of all models are asked for last.

    Parameters
    ----------
    of_rows : int | None
        The number of all rows, where those of the problem are a sample.
    """
    groups = None if problem.groups is None else Groups.of(problem.groups, problem.n_rows)
    rows = _drawn(problem, groups, seed)
    found: dict[str, Remedy] = {}
    forecasts = {name: _probabilities(problem, name) for name in problem.models}
    for name, p in forecasts.items():
        leaning = []
        if p.size <= _LEANINGS:
            leaning = class_biases(
                problem.y, p, thresholds=problem.ordered, weights=problem.weights, groups=groups
            )
        better = None if rows is None else _recalibration(problem, p, rows, confidence, seed)
        n_rows = problem.n_rows if of_rows is None else of_rows
        if rows is not None and better is not None and len(rows) < n_rows:
            better = better.with_sample(len(rows), n_rows)
        found[name] = Remedy(better, leaning, [])
    if rows is None or not any(remedy.helps for remedy in found.values()):
        return found
    # The same events for all models, so that one figure serves them.
    shown = _most_miscalibrated(panels())
    return {
        name: replace(remedy, curves=_curves(problem, forecasts[name][rows], rows, remedy, shown))
        for name, remedy in found.items()
    }


def _probabilities(problem: Problem, name: str) -> Floats:
    forecasts = problem.forecasts(name)
    return np.asarray(to_host(widen(forecasts.batch(0, forecasts.n_rows).p)))


def _most_miscalibrated(panels: Panels) -> list[ReliabilityPanel]:
    """Of each event the panel of the first model; the events with the largest miscalibration of all."""
    first = next(iter(panels.values()))
    total = np.sum([[panel.components.miscalibration for panel in each] for each in panels.values()], axis=0)
    return [first[i] for i in sorted(np.argsort(-total, kind="stable")[:_CURVES].tolist())]


def sample_size(n_classes: int, n_models: int) -> int:
    """How many rows recalibration is tried on at most."""
    return max(_PROBABILITIES // (n_classes * n_models), _ENOUGH)


def _drawn(problem: Problem, groups: Groups | None, seed: int) -> Ints | None:
    """The rows to learn from: all, or whole groups or rows at random; None where it cannot be done."""
    n = problem.n_rows
    most = _PROBABILITIES // (problem.n_classes * len(problem.models))
    units = np.arange(n) if groups is None else groups.as_seen
    if n < _LEAST or int(units.max()) < 2:
        return None
    if n <= max(most, _ENOUGH) and n * problem.n_classes <= 10 * _PROBABILITIES:
        return np.arange(n)
    if most < _ENOUGH:
        return None
    order = np.random.default_rng(seed).permutation(int(units.max()) + 1)
    filled = np.cumsum(np.bincount(units)[order])
    kept = order[: max(3, int(np.searchsorted(filled, most, side="right")))]
    return np.flatnonzero(np.isin(units, kept))


def _recalibration(
    problem: Problem, p: Floats, rows: Ints, confidence: float, seed: int
) -> Recalibration | None:
    weights = None if problem.weights is None else problem.weights[rows]
    if weights is not None and np.count_nonzero(weights) < _LEAST:
        return None
    return recalibrate(
        problem.y[rows],
        p[rows],
        method=list(_METHODS),
        rule=_rule(problem),
        ordered=problem.ordered,
        weights=weights,
        groups=None if problem.groups is None else problem.groups[rows],
        confidence=confidence,
        seed=seed,
        # Softmax and rescaling leave rounding behind.
        normalize=True,
    )


def _rule(problem: Problem) -> Rule:
    """The rule that the page goes by, or the nearest one that can be minimised."""
    try:
        check_trainable(problem.primary, problem.n_classes)
    except RuleError:
        return RULES["rps" if problem.ordered else "brier"]
    return problem.primary


def _curves(
    problem: Problem, p: Floats, rows: Ints, remedy: Remedy, shown: Sequence[ReliabilityPanel]
) -> list[Curve]:
    """Some events before and after recalibration."""
    found = remedy.recalibration
    assert found is not None
    assert found.held_out is not None
    y, w = problem.y[rows], None if problem.weights is None else problem.weights[rows]
    curves = []
    for panel in shown:
        i = panel.position
        happened = y <= i if problem.ordered else y == i
        columns = (x[:, : i + 1].sum(axis=1) if problem.ordered else x[:, i] for x in (p, found.held_out))
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
