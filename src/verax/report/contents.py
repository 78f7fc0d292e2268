"""Everything a report says, computed: cards, skill, worst rows, curves, losses by class, comparisons."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from verax.analyses.calibration.components import Decomposition
from verax.analyses.calibration.overconfidence import Overconfidence, overconfidence_of
from verax.analyses.cards.evaluation import evaluate
from verax.analyses.cards.scorecard import Scorecard
from verax.analyses.comparison.compare import compare
from verax.analyses.comparison.result import Comparison
from verax.analyses.retention.analysis import curves_of
from verax.analyses.retention.curves import as_metrics
from verax.analyses.retention.cuts import Metric, Options
from verax.analyses.retention.result import RetentionCurve
from verax.analyses.retention.uncertainty_scores import UncertaintyScore, doubt
from verax.analyses.subgroups.result import Subgroups
from verax.analyses.subgroups.subgroups import subgroups
from verax.analyses.worst import Worst, worst
from verax.common.memory import give_back
from verax.engines.counts import CONFUSION_UP_TO
from verax.engines.differences import PairedTally
from verax.inference.estimates import Estimate
from verax.inputs.arrays import Floats
from verax.inputs.memory import InMemory
from verax.report.checks import Check, look_over
from verax.report.problem import Problem
from verax.report.reliability import ReliabilityPanel, calibration_of
from verax.report.remedies import Remedy, remedies_of
from verax.scores.base import Rule, losses_of
from verax.scores.decisions import cheapest, count_decisions
from verax.scores.metrics import cost_matrix, expected_cost_of
from verax.scores.registry import name_of, parse

T = TypeVar("T")

# How much is shown. The page says what is left out.
WORST = 9
CLASSES = 20
SUBGROUPS = 20
LEAST = 20
# Beyond so many classes there are no curves of kappa: every cut takes a table of all pairs of classes.
COUNTED = 64
# How many cells the tables of decisions of all subgroups may have together.
_CELLS = 2**25

# The loss that a forecast itself expects takes a pass for every class that might happen.
_EXPECTED = 5e8

# What replicates may cost: classes times rows, plus a constant number of rows for every sort and fit.
# Where the fewest would cost more than the limit there are none, and nothing is tested.
_BUDGET, _LIMIT = 1e8, 4.4e8
_OVERHEAD = 25_000
_FEWEST, _MOST = 20, 100


@dataclass(frozen=True)
class ClassLoss:
    """The mean loss of the rows of one class by each rule, with intervals."""

    position: int
    n_rows: int
    means: dict[str, float]
    intervals: dict[str, tuple[float, float]]


@dataclass(frozen=True)
class Decisions:
    """What deciding costs: by the most likely class, and by the smallest expected cost."""

    likeliest: float
    cheapest: float


@dataclass(frozen=True, eq=False)
class Findings:
    """What there is to say about one model."""

    name: str
    card: Scorecard
    decomposition: Decomposition
    sureness: Overconfidence
    worst: Worst
    panels: list[ReliabilityPanel]
    remedy: Remedy
    retained: list[RetentionCurve]
    selected: list[RetentionCurve]
    by_class: list[ClassLoss]
    decisions: Decisions | None


@dataclass(frozen=True, eq=False)
class Contents:
    """What there is to say about all of them.

    Attributes
    ----------
    comparison : Comparison
        Of the models, with their skill against class frequencies; also of a single model.
    subgroups : dict
        By the name of the breakdown.
    left_out : dict
        The subgroups that are too small or too many, by the name of the breakdown, with their sizes.
    too_many : tuple of str
        The breakdowns with so many subgroups that none was kept while the rows were read.
    precision : str
        What comes from histograms, and how far it can be off; empty where everything is exact.
    """

    problem: Problem
    primary: str
    findings: list[Findings]
    comparison: Comparison
    subgroups: dict[str, Subgroups]
    left_out: dict[str, list[tuple[str, int]]]
    checks: list[Check]
    replicates: int
    confidence: float
    seed: int
    too_many: tuple[str, ...] = ()
    precision: str = ""

    @property
    def breakdowns(self) -> tuple[str, ...]:
        """The names of the breakdowns, in the order of the page."""
        return tuple(dict.fromkeys([*self.left_out, *self.too_many]))

    @property
    def best(self) -> Findings:
        """The model with the smallest mean of the primary rule."""
        name = self.comparison.best(self.primary)
        return next(f for f in self.findings if f.name == name)

    def interval(self, model: str, rule: str) -> tuple[float, float]:
        """The interval of one model's mean: the card's, wherever the page shows it."""
        return next(f for f in self.findings if f.name == model).card.scores[rule].interval

    def skill(self, model: str, rule: str) -> tuple[float, tuple[float, float]]:
        """One minus the mean loss over that of class frequencies, with its interval."""
        found = next(m for m in self.comparison.models[rule] if m.name == model)
        return found.skill, found.skill_interval


def compute(problem: Problem, *, confidence: float, seed: int) -> Contents:
    """All that is on the page, from the library's own functions."""
    plan: dict[str, Any] = {"confidence": confidence, "seed": seed}
    replicates = affordable(problem)
    cards = _lean(lambda: {name: _card(problem, name, plan) for name in problem.models})
    parted, panels = _lean(lambda: calibration_of(problem, replicates, **plan))
    remedies = _lean(lambda: remedies_of(problem, lambda: panels, **plan))
    shown = _heaviest(problem)
    broken, left_out = _lean(lambda: _broken_down(problem, plan))

    def findings(name: str) -> Findings:
        curves = _lean(lambda: _curves(problem, name, plan))
        return Findings(
            name=name,
            card=cards[name],
            decomposition=parted[name],
            sureness=overconfidence_of(problem.forecasts(name), problem.groups),
            worst=_lean(lambda: _worst(problem, name)),
            panels=panels[name],
            remedy=remedies[name],
            retained=[curve for curve in curves if curve.sees_outcome],
            selected=[curve for curve in curves if not curve.sees_outcome],
            by_class=_lean(lambda: _by_class(problem, name, shown, confidence)),
            decisions=_decisions(problem, name, cards[name]),
        )

    return Contents(
        problem=problem,
        primary=name_of(problem.primary),
        findings=[findings(name) for name in problem.models],
        comparison=_lean(lambda: _comparison(problem, plan)),
        subgroups=broken,
        left_out=left_out,
        checks=look_over(problem, cards, left_out),
        replicates=replicates,
        **plan,
    )


def _lean(part: Callable[[], T]) -> T:
    """One part of the page. What it took of memory does not stay while the next part is computed."""
    try:
        return part()
    finally:
        give_back()


def _card(problem: Problem, name: str, plan: dict[str, Any]) -> Scorecard:
    return evaluate(
        problem.y,
        problem.models[name],
        ordered=problem.ordered,
        costs=problem.costs,
        weights=problem.weights,
        groups=problem.groups,
        weights_are=problem.weights_are,
        rules=list(problem.rules),
        **plan,
        **problem.options,
    )


def _comparison(problem: Problem, plan: dict[str, Any]) -> Comparison:
    return compare(
        problem.y,
        problem.models,
        rule=list(problem.rules),
        ordered=problem.ordered,
        weights=problem.weights,
        groups=problem.groups,
        weights_are=problem.weights_are,
        time_ordered=problem.time_ordered,
        reference="frequencies",
        **plan,
        **problem.options,
    )


def affordable(problem: Problem, parts: int = 1) -> int:
    """How many replicates tests of calibration may have, of all rows or of several parts of them."""
    cost = problem.n_classes * (problem.n_copies + parts * _OVERHEAD) * len(problem.models)
    if cost * _FEWEST > _LIMIT:
        return 0
    return int(min(_MOST, max(_FEWEST, _BUDGET / cost)))


def _worst(problem: Problem, name: str) -> Worst:
    labels = problem.names
    found = worst(
        np.array([*labels, None], dtype=object)[problem.y],
        problem.models[name],
        rule=problem.primary,
        n=min(WORST, problem.n_rows),
        classes=labels,
        ids=problem.ids,
        **problem.options,
    )
    return found.with_skipped(problem.skipped, problem.numbers)


def curve_replicates(problem: Problem) -> int:
    """How many replicates the curves of rows may have."""
    return int(min(_MOST, max(_FEWEST, _BUDGET / 5 / problem.n_rows / len(problem.models))))


def _curves(problem: Problem, name: str, plan: dict[str, Any]) -> list[RetentionCurve]:
    """Curves of every metric in every order, ranked by losses or by the forecasts alone.

    All from the same bootstrap samples, which take most of the time.
    """
    keys, metrics = curves_shown(problem, problem.n_rows)
    options = Options(None, "mean", "nan", curve_replicates(problem), weights_are=problem.weights_are, **plan)
    handle = InMemory({name: problem.forecasts(name)})
    return list(curves_of(handle, keys, metrics, options).values())


def curves_shown(problem: Problem, n_rows: float) -> tuple[list[Rule | UncertaintyScore], list[Metric]]:
    """What ranks the rows of curves, and what is measured along them."""
    losses = dict.fromkeys([problem.primary, *(parse(r) for r in ("brier", "log", "sa_rps"))])
    keys: list[Rule | UncertaintyScore] = [rule for rule in losses if rule in problem.rules]
    keys.append(doubt("max_probability"))
    if problem.n_classes**2 * n_rows <= _EXPECTED:
        keys += [doubt("entropy"), doubt(problem.primary)]
    counted = "qwk" if problem.ordered and problem.n_classes <= COUNTED else "accuracy"
    metrics: list[str | Rule] = [counted, problem.primary, *(["ec"] if problem.costs is not None else [])]
    return keys, as_metrics(metrics, "zero_one" if problem.costs is None else problem.costs)


def _heaviest(problem: Problem) -> list[int]:
    """The classes that most of the loss comes from."""
    w = np.ones(problem.n_rows) if problem.weights is None else problem.weights
    total = np.zeros(problem.n_classes)
    for name in problem.models:
        (loss,) = losses_of([problem.primary], problem.forecasts(name))
        total += np.bincount(problem.y, w * np.where(w > 0, loss, 0.0), problem.n_classes)
    return heaviest(problem, total, np.bincount(problem.y, w, problem.n_classes).astype(float))


def heaviest(problem: Problem, total: Floats, weight: Floats) -> list[int]:
    """The classes with the largest total loss: in their order, or by loss per row if they have none."""
    shown = np.argsort(-total, kind="stable")[:CLASSES]
    if problem.ordered:
        return sorted(shown.tolist())
    size = np.maximum(weight, 1e-300)
    return sorted(shown.tolist(), key=lambda i: (-total[i] / size[i], i))


def _by_class(problem: Problem, name: str, shown: list[int], confidence: float) -> list[ClassLoss]:
    losses = losses_of(problem.rules, problem.forecasts(name))
    rules = [name_of(rule) for rule in problem.rules]
    found = []
    for position in shown:
        rows = np.flatnonzero(problem.y == position)
        w = None if problem.weights is None else problem.weights[rows]
        if not len(rows) or (w is not None and w.sum() == 0):
            continue
        means, intervals = {}, {}
        for i, rule in enumerate(rules):
            tally = PairedTally(1).update(
                losses[i][rows, None], w, None if problem.groups is None else problem.groups[rows]
            )
            means[rule], intervals[rule] = _mean(
                tally, problem.rules[i].bounds(problem.n_classes), confidence
            )
        found.append(ClassLoss(position, len(rows), means, intervals))
    return found


def _mean(
    tally: PairedTally, bounds: tuple[float, float], confidence: float
) -> tuple[float, tuple[float, float]]:
    """A mean and its interval, cut at the bounds of the loss; NaN where there is only one unit."""
    mean = float(tally.means[0])
    error, freedom = tally.standard_errors()
    return mean_with_interval(mean, float(error[0]), float(np.max(freedom)), bounds, confidence)


def mean_with_interval(
    mean: float, error: float, freedom: float, bounds: tuple[float, float], confidence: float
) -> tuple[float, tuple[float, float]]:
    """A mean with its t interval, cut at the bounds of the loss."""
    if not np.isfinite(mean):
        return float("inf"), (float("nan"), float("nan"))
    if freedom <= 0:
        return mean, (float("nan"), float("nan"))
    low, high = Estimate(np.array([mean]), np.array([error]), freedom).intervals(confidence)[0]
    return mean, (max(bounds[0], float(low)), min(bounds[1], float(high)))


def _decisions(problem: Problem, name: str, card: Scorecard) -> Decisions | None:
    if problem.costs is None or card.confusion is None:
        return None
    k = problem.n_classes
    matrix = cost_matrix(problem.costs, k)
    counts = np.zeros((k, k))
    for batch in problem.forecasts(name).batches(2**18):
        decided = cheapest(np.asarray(batch.p, dtype=float), matrix)
        counts += count_decisions(batch.y, decided, n_classes=k, weights=batch.weights)
    return Decisions(float(expected_cost_of(card.confusion, matrix)), float(expected_cost_of(counts, matrix)))


def most_subgroups(problem: Problem) -> int:
    """How many subgroups are shown: fewer where their tables of decisions would take much memory."""
    cells = problem.n_classes**2 if problem.n_classes <= CONFUSION_UP_TO else problem.n_classes
    return min(SUBGROUPS, max(1, _CELLS // (cells * len(problem.models))))


def _one_group_each(codes: Any, groups: Any) -> bool:
    """Whether each subgroup is one group."""
    _, position = np.unique(groups, return_inverse=True)
    pairs = np.unique(np.column_stack([codes, position]), axis=0)
    return len(pairs) == len(np.unique(codes))


def _broken_down(
    problem: Problem, plan: dict[str, Any]
) -> tuple[dict[str, Subgroups], dict[str, list[tuple[str, int]]]]:
    """The subgroups of every breakdown that are large enough, the largest of them; and the others."""
    found, left_out = {}, {}
    for name, groups in problem.by.items():
        sizes = np.bincount(groups.codes)
        kept: list[int] = []
        left: list[int] = []
        alone = problem.groups is None or _one_group_each(groups.codes, problem.groups)
        for code in np.argsort(-sizes, kind="stable").tolist():
            rows = groups.codes == code
            w = None if problem.weights is None else problem.weights[rows]
            units = sizes[code] if alone else len(np.unique(problem.groups[rows]))
            enough = sizes[code] >= LEAST and units >= 2 and (w is None or w.sum() > 1)
            (kept if enough and len(kept) < most_subgroups(problem) else left).append(code)
        left_out[name] = [(str(groups.labels[code]), int(sizes[code])) for code in left]
        if not kept:
            continue
        rows = np.flatnonzero(np.isin(groups.codes, kept))
        found[name] = subgroups(
            problem.y[rows],
            {model: p[rows] for model, p in problem.models.items()},
            by=groups.labels[groups.codes[rows]],
            rules=list(problem.rules),
            ordered=problem.ordered,
            costs=problem.costs,
            weights=None if problem.weights is None else problem.weights[rows],
            groups=None if problem.groups is None else problem.groups[rows],
            bootstrap=affordable(problem, len(kept)),
            least=LEAST,
            weights_are=problem.weights_are,
            time_ordered=problem.time_ordered,
            among=len(sizes),
            **plan,
            **problem.options,
        )
    return found, left_out
