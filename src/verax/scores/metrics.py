"""Metrics of hard decisions: kappa, expected cost, accuracy and others, as functions of confusion counts.

Counts are (..., K, K): outcome by row, decision by column. Functions of counts take any number of
tables at once. A new metric is a function, one line of METRICS and one test.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any, Literal

import numpy as np

from verax.common.checks import check_choice, check_flag
from verax.errors import InputError, Remedy, join, show
from verax.inputs.arrays import (
    Floats,
    Ints,
    Namespace,
    device_of,
    kind_of,
    namespace_of,
    to_array,
    to_host,
)
from verax.scores.cells import (
    are_elsewhere,
    kappa_of_cells,
    of_counts,
    slopes_by_class,
    slopes_of_kappa,
    slopes_of_macro_f1,
    slopes_of_macro_ppv,
    slopes_of_mean,
)
from verax.scores.naming import suggestions
from verax.scores.tworates import (
    check_two,
    likelihood_ratio_of,
    share_of,
    slopes_of_likelihood_ratio,
    slopes_of_share,
    slopes_of_youden,
    youden_of,
)

Costs = Literal["quadratic", "linear", "zero_one"]
CostsLike = Costs | Sequence[Sequence[float]] | Floats
Normalization = Literal["max", "naive"] | None
KappaKind = Literal["quadratic", "linear", "unweighted"]

LOWER, HIGHER = "lower is better", "higher is better"
ORDERED_COSTS = ("quadratic", "linear")
COSTS = (*ORDERED_COSTS, "zero_one")
NORMALIZATIONS = (None, "max", "naive")
KAPPA_COSTS: dict[str, Costs] = {"quadratic": "quadratic", "linear": "linear", "unweighted": "zero_one"}


def _check_name(costs: str) -> None:
    check_choice("costs", costs, COSTS, also="a table")


# ---- costs -------------------------------------------------------------------------------------


def cost_matrix(costs: CostsLike, n_classes: int) -> Floats:
    """The cost of deciding for column j when row i happened, as a (K, K) array.

    >>> from verax.scores.metrics import cost_matrix
    >>> cost_matrix("quadratic", 3).tolist()
    [[0.0, 1.0, 4.0], [1.0, 0.0, 1.0], [4.0, 1.0, 0.0]]
    """
    if not isinstance(costs, str):
        return _given_costs(costs, n_classes)
    return _named_costs(costs, n_classes)


@lru_cache(maxsize=4)
def _named_costs(costs: str, n_classes: int) -> Floats:
    """The matrix of costs that have a name; kept, because a bootstrap asks for it again and again."""
    positions = np.arange(n_classes)
    matrix = row_costs(positions[:, None], positions[None, :], costs)  # type: ignore[arg-type]
    matrix.flags.writeable = False
    return matrix


def _costs_like(costs: CostsLike, counts: Floats) -> Floats:
    """The matrix of costs, on the device of the tables of counts."""
    n_classes = counts.shape[-2]
    if not are_elsewhere(counts):
        return cost_matrix(costs, n_classes)
    xp, device = namespace_of(counts), device_of(counts)
    matrix: Floats
    if isinstance(costs, str):
        matrix = _named_costs_at(costs, n_classes, xp, device)
    else:
        matrix = xp.asarray(_given_costs(costs, n_classes), device=device)
    return matrix


@lru_cache(maxsize=4)
def _named_costs_at(costs: str, n_classes: int, xp: Namespace, device: Any) -> Any:
    return xp.asarray(_named_costs(costs, n_classes).copy(), device=device)


def row_costs(y: Ints, decisions: Ints, costs: CostsLike) -> Floats:
    """The cost of each decision, without a table of the costs of all."""
    if not isinstance(costs, str):
        return np.asarray(costs, dtype=float)[y, decisions]
    _check_name(costs)
    distance: Floats = np.abs(np.subtract(y, decisions, dtype=float))
    if costs == "zero_one":
        return (distance > 0).astype(float)
    return distance if costs == "linear" else np.square(distance)


def _given_costs(costs: object, n_classes: int) -> Floats:
    matrix = to_host(to_array(costs, "costs")[0])
    if matrix.shape != (n_classes, n_classes) or kind_of(matrix) not in ("real", "integer", "bool"):
        raise InputError(
            f"must be one of {join(COSTS)}, or a table of {n_classes} x {n_classes} numbers with a row per "
            "outcome and a column per decision",
            argument="costs",
            kind="type",
            found=f"its shape is {matrix.shape} and its type {matrix.dtype}",
        )
    matrix = matrix.astype(float)
    if not np.isfinite(matrix).all():
        raise InputError("must be finite", argument="costs", kind="finite")
    if matrix.max() <= 0:
        raise InputError("must hold at least one positive cost", argument="costs")
    return matrix


def cost_range(costs: CostsLike, normalize: Normalization, n_classes: int) -> tuple[float, float]:
    """The smallest and the largest expected cost, without a table of costs where these have a name."""
    check_choice("normalize", normalize, NORMALIZATIONS)
    if isinstance(costs, str):
        _check_name(costs)
        steps = n_classes - 1.0
        low, high = 0.0, {"quadratic": steps**2, "linear": steps, "zero_one": 1.0}[costs]
    else:
        matrix = _given_costs(costs, n_classes)
        # The best and the worst decision for each outcome: what lies between them can be reached.
        low, high = float(matrix.min(axis=1).min()), float(matrix.max())
    if normalize == "naive":
        return (0.0 if low >= 0 else -math.inf), math.inf
    return (low / high, 1.0) if normalize == "max" else (low, high)


# ---- functions of counts -----------------------------------------------------------------------


def _total_cost(counts: Floats, cost: Floats) -> Floats:
    """The cost of all decisions in each table, as one product of matrices."""
    if are_elsewhere(counts):
        # The first product of matrices on a GPU takes a tenth of a second.
        total: Floats = (counts * cost).sum(axis=(-2, -1))
        return total
    return np.asarray(counts.reshape(*counts.shape[:-2], -1) @ cost.ravel())


def _by_chance(truth: Floats, decided: Floats, cost: Floats) -> Floats:
    """The cost of all decisions if these were shuffled at random, times their weight."""
    if are_elsewhere(truth):
        total: Floats = ((truth[..., None] * cost).sum(axis=-2) * decided).sum(axis=-1)
        return total
    return np.asarray(((truth @ cost) * decided).sum(axis=-1))


@of_counts
def kappa_of(counts: Floats, kind: KappaKind = "quadratic") -> Floats:
    """Kappa of each table of counts; NaN where outcomes and decisions are one and the same class."""
    check_choice("kind", kind, tuple(KAPPA_COSTS))
    xp, cost = namespace_of(counts), _costs_like(KAPPA_COSTS[kind], counts)
    truth, decided = counts.sum(axis=-1), counts.sum(axis=-2)
    observed = _total_cost(counts, cost) * truth.sum(axis=-1)
    by_chance = _by_chance(truth, decided, cost)
    # A side that is constant agrees as chance does: exactly 0, without rounding.
    one_sided = ((truth > 0).sum(axis=-1) == 1) | ((decided > 0).sum(axis=-1) == 1)
    agreement = xp.where(one_sided, xp.zeros_like(by_chance), 1 - observed / by_chance)
    kappa: Floats = xp.where(by_chance > 0, agreement, xp.full_like(by_chance, np.nan))
    return kappa


@of_counts
def expected_cost_of(
    counts: Floats,
    costs: CostsLike = "quadratic",
    normalize: Normalization = None,
    priors: Sequence[float] | None = None,
    defer: float | None = None,
) -> Floats:
    """Expected cost of each table of counts; with `defer` the last column counts deferred decisions."""
    check_choice("normalize", normalize, NORMALIZATIONS)
    n_classes = counts.shape[-2]
    cost = _costs_like(costs, counts)
    largest = cost.max()
    if defer is not None:
        cost = np.column_stack([cost, np.full(n_classes, defer)])
    truth = counts.sum(axis=-1)
    total = truth.sum(axis=-1)
    if priors is None:
        shares = truth / total[..., None]
        value = _total_cost(counts, cost) / total
    else:
        shares = _check_priors(priors, n_classes)
        per_class = (cost * counts).sum(axis=-1) / truth
        value = np.where(shares > 0, shares * per_class, 0.0).sum(axis=-1)
    divisor: Any = 1.0
    if normalize is not None:
        divisor = largest if normalize == "max" else namespace_of(counts).min(shares @ cost, axis=-1)
    expected: Floats = value / divisor
    return expected


def _check_priors(priors: Sequence[float], n_classes: int) -> Floats:
    values = to_host(to_array(priors, "priors")[0])
    if values.shape != (n_classes,) or kind_of(values) not in ("real", "integer", "bool"):
        raise InputError(
            f"must be {n_classes} probabilities, one per class",
            argument="priors",
            kind="length",
            found=f"its shape is {values.shape} and its type {values.dtype}",
        )
    if not ((values >= 0).all() and abs(values.sum() - 1) <= 1e-6):
        raise InputError(
            "must not be negative and must sum to 1",
            argument="priors",
            kind="sum",
            found=f"they sum to {values.sum():.9g}",
            values=values.tolist(),
        )
    return values.astype(float)


@of_counts
def accuracy_of(counts: Floats) -> Floats:
    """Share of right decisions of each table of counts."""
    if are_elsewhere(counts):
        share: Floats = namespace_of(counts).linalg.trace(counts) / counts.sum(axis=(-2, -1))
        return share
    return np.asarray(np.trace(counts, axis1=-2, axis2=-1) / counts.sum(axis=(-2, -1)))


@of_counts
def balanced_accuracy_of(counts: Floats) -> Floats:
    """Mean share of right decisions over the classes that happened, of each table of counts."""
    truth = counts.sum(axis=-1)
    hits = np.diagonal(counts, axis1=-2, axis2=-1)
    recall = np.where(truth > 0, hits / truth, 0.0)
    return np.asarray(recall.sum(axis=-1) / (truth > 0).sum(axis=-1))


@of_counts
def macro_mae_of(counts: Floats) -> Floats:
    """Mean distance of decisions from outcomes over the classes that happened, of each table of counts."""
    truth = counts.sum(axis=-1)
    distances = (counts * cost_matrix("linear", counts.shape[-1])).sum(axis=-1)
    per_class = np.where(truth > 0, distances / truth, 0.0)
    return np.asarray(per_class.sum(axis=-1) / (truth > 0).sum(axis=-1))


@of_counts
def macro_f1_of(counts: Floats) -> Floats:
    """Mean F1 over the classes that happened or were decided for, of each table of counts."""
    hits = np.diagonal(counts, axis1=-2, axis2=-1)
    involved = counts.sum(axis=-1) + counts.sum(axis=-2)
    f1 = np.where(involved > 0, 2 * hits / involved, 0.0)
    return np.asarray(f1.sum(axis=-1) / (involved > 0).sum(axis=-1))


@of_counts
def macro_ppv_of(counts: Floats) -> Floats:
    """Mean share of right decisions over the classes that were decided for, of each table of counts."""
    return balanced_accuracy_of(np.swapaxes(counts, -1, -2))


@of_counts
def within_one_of(counts: Floats) -> Floats:
    """Share of decisions at most one class away from the outcome, of each table of counts."""
    near = sum(np.trace(counts, offset, axis1=-2, axis2=-1) for offset in (-1, 0, 1))
    return np.asarray(near / counts.sum(axis=(-2, -1)))


# ---- metrics -----------------------------------------------------------------------------------


def _from_0_to_1(_: int) -> tuple[float, float]:
    return 0.0, 1.0


def _from_minus_1_to_1(_: int) -> tuple[float, float]:
    return -1.0, 1.0


def _of_two(n_classes: int, name: str, low: float, high: float) -> tuple[float, float]:
    """The bounds of a rate of two classes; other numbers of classes are refused."""
    check_two(name, n_classes)
    return low, high


def _right(y: Ints, decisions: Ints) -> Floats:
    return np.equal(y, decisions).astype(float)


def _within_one(y: Ints, decisions: Ints) -> Floats:
    return (row_costs(y, decisions, "linear") <= 1).astype(float)


@dataclass(frozen=True)
class DecisionMetric:
    """A number that confusion counts give.

    Attributes
    ----------
    name : str
        What functions and options call it.
    title : str
        What people call it, for headings.
    summary : str
        What it is, in a few words.
    description : str
        What it is and which conventions it follows, for readers of a report.
    of : callable
        The value of each of the (..., K, K) tables of counts.
    bounds : callable
        The smallest and the largest value for K classes.
    higher_is_better : bool
        Whether larger values are better.
    ordinal : bool
        Whether the order of the classes matters.
    for_two : bool
        Whether it is a rate of two classes, about the second one.
    reference : str
        The DOI of where it is defined.
    of_row : callable or None
        For metrics that are means over rows: the value of each row, given outcomes and decisions.
        They need no table, whatever the number of classes.
    of_cells : callable or None
        The value of each of (b, C) weights of the cells that occur, given their outcomes and decisions: for
        tables of many classes, most cells of which are empty. Metrics that are means over rows need none.
    with_costs : callable or None
        For metrics that depend on costs: the metric of these costs and this normalization.
    slopes : callable or None
        Its derivatives by the weights of cells, given a table and the outcomes and decisions of the cells.
        Metrics that are means over rows need none.
    on_card : bool
        Whether it is on a scorecard when it fits.
    settings : tuple or None
        The costs and the normalization of metrics that depend on costs.
    """

    name: str
    title: str
    summary: str
    description: str
    of: Callable[[Floats], Floats]
    bounds: Callable[[int], tuple[float, float]] = _from_0_to_1
    higher_is_better: bool = True
    ordinal: bool = False
    for_two: bool = field(default=False, repr=False)
    reference: str = ""
    of_row: Callable[[Ints, Ints], Floats] | None = None
    of_cells: Callable[[Ints, Ints, Floats], Floats] | None = None
    with_costs: Callable[[CostsLike, Normalization], DecisionMetric] | None = None
    slopes: Callable[[Floats, Ints, Ints], Floats] | None = None
    on_card: bool = False
    settings: tuple[CostsLike, Normalization] | None = field(default=None, compare=False)

    def named_by(self) -> Mapping[str, Any]:
        """What saved summaries know it by: how it is described and computed may change."""
        return {"name": self.name, "settings": self.settings}

    def slopes_at(self, counts: Floats, y: Ints, decisions: Ints) -> Floats | None:
        """(C,) derivatives by the weights of cells of a (K, K) table; None if no formula is known."""
        slopes = self.slopes
        if slopes is None and self.of_row is not None:
            slopes = partial(slopes_of_mean, of_row=self.of_row)
        with np.errstate(invalid="ignore", divide="ignore"):
            return None if slopes is None else slopes(counts, y, decisions)

    @property
    def orientation(self) -> str:
        """Which way is better, in words."""
        return HIGHER if self.higher_is_better else LOWER


def expected_cost_metric(costs: CostsLike = "quadratic", normalize: Normalization = None) -> DecisionMetric:
    """Expected cost with these costs, divided by the largest ("max") or a constant decision's ("naive")."""
    kind = f"{costs} costs" if isinstance(costs, str) else "given costs"
    check_choice("normalize", normalize, NORMALIZATIONS)
    if normalize is not None:
        divisor = {"max": "the largest cost", "naive": "the cost of the best constant decision"}[normalize]
        kind = f"{kind} divided by {divisor}"
    return DecisionMetric(
        "ec",
        "Expected cost",
        f"expected cost, {kind}",
        "The mean cost of the decisions, each counted at the cost of its outcome and decision. "
        f"Here: {kind}. Decisions take the most likely class.",
        partial(expected_cost_of, costs=costs, normalize=normalize),
        partial(cost_range, costs, normalize),
        higher_is_better=False,
        ordinal=isinstance(costs, str) and costs in ORDERED_COSTS,
        reference="doi:10.48550/arXiv.2209.05355",
        of_row=partial(row_costs, costs=costs) if normalize is None else None,
        with_costs=expected_cost_metric,
        on_card=True,
        settings=(costs, normalize),
    )


_EVENT = " The event is the second of two classes. Decisions take the more likely class."


def _share_metric(name: str, title: str, summary: str, description: str) -> DecisionMetric:
    """A share of the rows with or without an event, or acted on or not."""
    return DecisionMetric(
        name,
        title,
        summary,
        description + _EVENT,
        partial(share_of, name=name),
        partial(_of_two, name=name, low=0.0, high=1.0),
        slopes=partial(slopes_of_share, name=name),
        for_two=True,
        reference="doi:10.1002/sim.3095",
    )


def _ratio_metric(name: str, title: str, summary: str, description: str, *, positive: bool) -> DecisionMetric:
    """A likelihood ratio."""
    return DecisionMetric(
        name,
        title,
        summary,
        description + _EVENT,
        partial(likelihood_ratio_of, positive=positive),
        partial(_of_two, name=name, low=0.0, high=math.inf),
        higher_is_better=positive,
        slopes=partial(slopes_of_likelihood_ratio, positive=positive),
        for_two=True,
        reference="doi:10.1177/0962280210383082",
    )


_BEYOND_CHANCE = (
    "One minus the mean cost of the decisions over the mean cost of the same decisions shuffled at random, "
    "with costs that are {}. The number of classes declared counts, not the number of those present. "
    "Undefined where outcomes and decisions are all one and the same class."
)
_MOST_LIKELY = " Decisions take the most likely class, the lowest index where several are."

METRICS: dict[str, DecisionMetric] = {
    metric.name: metric
    for metric in (
        DecisionMetric(
            "accuracy",
            "Accuracy",
            "share of right decisions",
            "The share of rows whose most likely class happened." + _MOST_LIKELY,
            accuracy_of,
            reference="doi:10.1038/s41592-023-02151-z",
            of_row=_right,
            on_card=True,
        ),
        DecisionMetric(
            "qwk",
            "Quadratic kappa",
            "quadratic kappa",
            "Agreement of decisions with outcomes beyond chance. "
            + _BEYOND_CHANCE.format("the squared distances in classes")
            + _MOST_LIKELY,
            kappa_of,
            _from_minus_1_to_1,
            ordinal=True,
            reference="doi:10.1037/h0026256",
            of_cells=partial(kappa_of_cells, cost_of=partial(row_costs, costs="quadratic")),
            slopes=partial(slopes_of_kappa, cost_of=partial(row_costs, costs="quadratic")),
            on_card=True,
        ),
        expected_cost_metric(),
        DecisionMetric(
            "linear_kappa",
            "Linear kappa",
            "linear kappa",
            "Agreement of decisions with outcomes beyond chance. "
            + _BEYOND_CHANCE.format("the distances in classes")
            + _MOST_LIKELY,
            partial(kappa_of, kind="linear"),
            _from_minus_1_to_1,
            ordinal=True,
            reference="doi:10.1037/h0026256",
            of_cells=partial(kappa_of_cells, cost_of=partial(row_costs, costs="linear")),
            slopes=partial(slopes_of_kappa, cost_of=partial(row_costs, costs="linear")),
        ),
        DecisionMetric(
            "kappa",
            "Kappa",
            "Cohen's kappa, unweighted",
            "Agreement of decisions with outcomes beyond chance. "
            + _BEYOND_CHANCE.format("1 for every mistake")
            + _MOST_LIKELY,
            partial(kappa_of, kind="unweighted"),
            _from_minus_1_to_1,
            reference="doi:10.1177/001316446002000104",
            of_cells=partial(kappa_of_cells, cost_of=partial(row_costs, costs="zero_one")),
            slopes=partial(slopes_of_kappa, cost_of=partial(row_costs, costs="zero_one")),
        ),
        DecisionMetric(
            "balanced_accuracy",
            "Balanced accuracy",
            "mean share of right decisions over the classes",
            "The share of right decisions among the rows of each class, averaged over the classes that "
            "happened." + _MOST_LIKELY,
            balanced_accuracy_of,
            slopes=partial(slopes_by_class, of_row=_right),
            reference="doi:10.1109/ICPR.2010.764",
        ),
        DecisionMetric(
            "macro_f1",
            "Macro F1",
            "mean F1 of the classes",
            "The harmonic mean of precision and recall of each class, averaged over the classes that "
            "happened or were decided for." + _MOST_LIKELY,
            macro_f1_of,
            slopes=slopes_of_macro_f1,
            reference="doi:10.48550/arXiv.1911.03347",
        ),
        DecisionMetric(
            "mae",
            "Mean absolute error",
            "mean distance of decisions from outcomes, in classes",
            "The mean distance of the decision from the outcome, in classes." + _MOST_LIKELY,
            partial(expected_cost_of, costs="linear"),
            partial(cost_range, "linear", None),
            higher_is_better=False,
            ordinal=True,
            reference="doi:10.1007/978-3-642-01818-3_25",
            of_row=partial(row_costs, costs="linear"),
        ),
        DecisionMetric(
            "macro_mae",
            "Macro-averaged mean absolute error",
            "mean distance of decisions from outcomes over the classes",
            "The mean distance of the decision from the outcome, in classes, among the rows of each class, "
            "averaged over the classes that happened: rare classes count as much as frequent ones."
            + _MOST_LIKELY,
            macro_mae_of,
            partial(cost_range, "linear", None),
            slopes=partial(slopes_by_class, of_row=partial(row_costs, costs="linear")),
            higher_is_better=False,
            ordinal=True,
            reference="doi:10.1109/ISDA.2009.230",
        ),
        DecisionMetric(
            "off_by_one",
            "Accuracy within one class",
            "share of decisions at most one class off",
            "The share of rows whose decision is the outcome or a class next to it." + _MOST_LIKELY,
            within_one_of,
            ordinal=True,
            reference="doi:10.1109/TIFS.2014.2359646",
            of_row=_within_one,
        ),
        DecisionMetric(
            "macro_ppv",
            "Macro precision",
            "mean precision of the classes",
            "The share of right decisions among the rows decided for each class, averaged over the classes "
            "that were decided for." + _MOST_LIKELY,
            macro_ppv_of,
            slopes=slopes_of_macro_ppv,
            reference="doi:10.1016/j.ipm.2009.03.002",
        ),
        _share_metric(
            "sensitivity",
            "Sensitivity",
            "share of events acted on (recall)",
            "The share of rows with the event that are acted on; also called recall and true positive rate.",
        ),
        _share_metric(
            "specificity",
            "Specificity",
            "share of non-events left alone",
            "The share of rows without the event that are left alone; also called true negative rate.",
        ),
        _share_metric(
            "ppv",
            "Positive predictive value",
            "share of events among rows acted on (precision)",
            "The share of rows with the event among those acted on; also called precision. It depends on how "
            "frequent the event is.",
        ),
        _share_metric(
            "npv",
            "Negative predictive value",
            "share of non-events among rows left alone",
            "The share of rows without the event among those left alone. It depends on how frequent the "
            "event is.",
        ),
        _share_metric(
            "f1",
            "F1",
            "harmonic mean of sensitivity and ppv",
            "The harmonic mean of sensitivity (recall) and positive predictive value (precision).",
        ),
        DecisionMetric(
            "youden",
            "Youden's J",
            "sensitivity + specificity - 1",
            "Sensitivity plus specificity minus 1: 0 for decisions that know nothing, 1 for perfect ones."
            + _EVENT,
            youden_of,
            partial(_of_two, name="youden", low=-1.0, high=1.0),
            slopes=slopes_of_youden,
            for_two=True,
            reference="doi:10.1002/1097-0142(1950)3:1<32::AID-CNCR2820030106>3.0.CO;2-3",
        ),
        _ratio_metric(
            "lr_positive",
            "Positive likelihood ratio",
            "sensitivity / (1 - specificity)",
            "How many times more often rows with the event are acted on than rows without it.",
            positive=True,
        ),
        _ratio_metric(
            "lr_negative",
            "Negative likelihood ratio",
            "(1 - sensitivity) / specificity",
            "How many times more often rows with the event are left alone than rows without it.",
            positive=False,
        ),
    )
}


def find_metric(
    name: str, *, costs: CostsLike = "quadratic", normalize: Normalization = None
) -> DecisionMetric:
    """The metric of that name; `costs` and `normalize` are for metrics that depend on costs."""
    if not isinstance(name, str) or name not in METRICS:
        raise InputError(
            f"There is no metric called {show(name)}",
            argument="metric",
            values=[name],
            remedies=[Remedy(text) for text in suggestions(name, METRICS)],
        )
    metric = METRICS[name]
    return metric if metric.with_costs is None else metric.with_costs(costs, normalize)


def fitting_metrics(ordered: bool, costs: CostsLike | None, n_classes: int) -> tuple[DecisionMetric, ...]:
    """The metrics on the card of classes with or without an order, and with or without costs."""
    costs = "quadratic" if ordered and costs is None else costs
    if costs is None or isinstance(costs, str):
        return _metrics_for(ordered, costs, n_classes)
    return _metrics_of_card(ordered, costs, n_classes)


def _metrics_of_card(ordered: bool, costs: CostsLike | None, n_classes: int) -> tuple[DecisionMetric, ...]:
    fitting = []
    for metric in METRICS.values():
        if metric.on_card and metric.with_costs is not None and costs is not None:
            fitting.append(metric.with_costs(costs, None))
            # A table of another shape is refused before any row is read.
            fitting[-1].bounds(n_classes)
        elif metric.on_card and metric.with_costs is None and (ordered or not metric.ordinal):
            fitting.append(metric)
    return tuple(fitting)


# Named costs need no second look.
_metrics_for = lru_cache(maxsize=64)(_metrics_of_card)


def needs_order(
    rules: Iterable[Any] = (),
    metrics: Iterable[Any] = (),
    costs: CostsLike | None = None,
    ordered: bool = False,
) -> bool:
    """Whether a result depends on the order of the classes, so that labels need a stated order.

    Every function that takes rules, metrics or costs passes the answer on as `Forecasts(ordered=...)`,
    which refuses labels without a stated order.

    Parameters
    ----------
    rules : iterable of rules
        What rows are scored or ranked by.
    metrics : iterable of metrics
        What is measured: names, `DecisionMetric`s, rules, or functions of rows, which are not asked.
    costs : str, matrix or None
        What decisions cost. A matrix states the cost of each pair of classes, so it needs no order.
    ordered : bool
        Whether the caller says that the classes have an order.

    Examples
    --------
    >>> from verax.scores.metrics import needs_order
    >>> needs_order(metrics=["accuracy"]), needs_order(metrics=["qwk"]), needs_order(costs="linear")
    (False, True, True)
    """
    measured = [find_metric(metric) if isinstance(metric, str) else metric for metric in metrics]
    by_distance = isinstance(costs, str) and costs in ORDERED_COSTS
    return (
        check_flag("ordered", ordered)
        or by_distance
        or any(getattr(x, "ordinal", False) is True for x in [*rules, *measured])
    )
