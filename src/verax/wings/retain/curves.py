"""Retained-samples curves: a metric as the worst rows are removed.

`retention` ranks rows by a rule, which sees the outcome; `selective` by what is known without it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any, Unpack

import numpy as np

from verax.analyses.parts import faults_in, with_fault_recipes
from verax.analyses.uncertainty_scores import MANY, UncertaintyScore, doubt
from verax.common.checks import check_flag
from verax.common.memory import give_back
from verax.errors import InputError, show
from verax.inference.bootstrap import multiplicities, widened_over_groups
from verax.inference.intervals import Resampling, WeightsAre
from verax.inputs.arrays import Floats
from verax.inputs.handles import Handle
from verax.inputs.memory import holds_lists, open_rows
from verax.inputs.options import RowOptions, reads, reads_ranking
from verax.kernels.threads import in_order, n_cores
from verax.scores.base import Rule
from verax.scores.coverage import RowMetric, find_list_metric, refuse_costs
from verax.scores.metrics import CostsLike, DecisionMetric, Normalization, find_metric, needs_order
from verax.scores.registry import as_rules, default_rules
from verax.wings.retain.bins import binned_values
from verax.wings.retain.cuts import (
    Area,
    CurveMetric,
    Metric,
    Options,
    RowCuts,
    RowOrder,
    RowWeights,
    Ties,
    Undefined,
    measured,
    named,
)
from verax.wings.retain.result import Measured, RetentionCurve, RetentionCurves, curves_of_values
from verax.wings.retain.summaries import CurveRecipe, CurveRows, Histograms, Measures


def curves_of(
    handle: Handle,
    keys: Sequence[Rule | UncertaintyScore],
    metrics: Sequence[Metric],
    options: Options,
    decision_costs: CostsLike | None = None,
    *,
    bounded: bool = True,
) -> RetentionCurves:
    """All curves of the rows of a handle, from one pass over them.

    Unless `bounded`, all rows are kept wherever they are.
    """
    functions = [metric for metric in metrics if not _is_known(metric)]
    if functions and handle.kept is None:
        name = named(functions[0])
        raise InputError(
            "must be a rule or a metric by name where predictions are not in memory",
            argument="metric",
            found=f"{name} needs all rows at once",
            values=[name],
        )
    recipe = CurveRecipe(
        handle.one_model(),
        tuple(keys),
        Measures.of(metrics, handle.n_classes),
        decision_costs,
        options.plan.replicates,
        options.plan.seed,
        bool(functions),
        bounded,
    )
    summaries = handle.summarise(with_fault_recipes(handle, {"curves": recipe}))
    curves = read_curves(summaries["curves"], recipe, metrics, options, handle.n_classes)
    return curves.with_skipped(summaries.skipped).with_faults(faults_in(handle, summaries))


def read_curves(
    histograms: Histograms,
    recipe: CurveRecipe,
    metrics: Sequence[Metric],
    options: Options,
    n_classes: int,
    *,
    last: bool = False,
) -> RetentionCurves:
    """The curves of every metric in every order, from what a recipe found.

    If that is the `last` use of rows in memory, what ranks them is let go, because it takes much memory.
    """
    histograms = recipe.fitting(histograms)
    if histograms.rows is None:
        values = binned_values(histograms, recipe, metrics, options, n_classes)
    else:
        # Without draws and with tied rows counted in part, the order of the rows does not matter.
        ordered = options.plan.replicates or options.ties == "order"
        kept = (histograms.rows.in_order() if ordered else histograms.rows).weighty()
        ranks = dict(kept.ranks)
        if last:
            kept.forget_ranks()
        values = _values_of_rows(kept, ranks, metrics, options, n_classes)
    by_outcome = {named(key) for key in recipe.keys if isinstance(key, Rule)}
    return curves_of_values(values, metrics, options, n_classes, by_outcome)


def _values_of_rows(
    kept: CurveRows, ranks: dict[str, Floats], metrics: Sequence[Metric], options: Options, n_classes: int
) -> dict[str, list[Measured]]:
    """Every metric in every order of rows; `ranks` is empty in the end."""
    rows, plan = kept.table(metrics, n_classes), options.plan
    if not plan.copies:
        rows = rows.in_units()
    measures = [CurveMetric(rows, metric) for metric in metrics]
    orders: list[RowOrder] = []
    # Rules rank the rows of two classes alike: equal orders are followed once.
    place_of: dict[str, int] = {}
    for name in list(ranks):
        order = RowOrder(ranks.pop(name), options.ties)
        place_of[name] = next((i for i, known in enumerate(orders) if order.is_as(known)), len(orders))
        if place_of[name] == len(orders):
            orders.append(order)
    counting = any(measure.counts is not None for measure in measures)
    cells = [rows.cells[order.rows] for order in orders] if counting else []
    if len(kept) >= MANY:
        # Sorting takes more memory than all that follows.
        give_back()

    def values(weights: Any) -> Floats:
        """All curves for one vector of weights: (metrics, orders, cuts)."""
        sample = RowWeights(rows, weights, options, counting=counting)
        cuts = [RowCuts(order, sample) for order in orders]
        return options.fill(measured(measures, cuts, cells))

    observed = values(np.ones(len(kept), np.uint8) if rows.weights is None else rows.weights)
    draws: Iterator[Any]
    if rows.weights is None:
        draws = map(_narrow, multiplicities(len(kept), rows.groups, plan.replicates, plan.seed))
    else:
        draws = rows.multiplicities(plan.replicates, plan.seed, copies=plan.copies)
    # Functions of users are not called by several threads at once.
    threads = len(kept) >= MANY and all(map(_is_known, metrics))
    replicates = np.array(list(in_order(values, draws, n_cores()) if threads else map(values, draws)))
    n_groups = rows.effective_groups
    if n_groups is not None and plan.replicates:
        replicates = widened_over_groups(replicates, observed, n_groups, plan.confidence)
    empty = np.zeros((0, len(options.removed)))
    return {
        name: [
            (observed[j, i], replicates[:, j, i] if plan.replicates else empty, None)
            for j in range(len(metrics))
        ]
        for name, i in place_of.items()
    }


def _narrow(copies: Any) -> Any:
    """Numbers of copies in as few bytes as they need: a cache holds them, and rows take them in any order."""
    return copies.astype(np.min_scalar_type(int(copies.max())))


def _is_known(metric: Metric) -> bool:
    """Whether verax defines this metric, not a user."""
    return isinstance(metric, (DecisionMetric, Rule, RowMetric))


MetricLike = str | Metric

# ---- the two questions -------------------------------------------------------------------------


@reads
def retention(
    y: object,
    p: object = None,
    *,
    rule: Rule | str | Sequence[Rule | str] | None = None,
    metric: MetricLike | Sequence[MetricLike] | None = None,
    ordered: bool = False,
    removed: Sequence[float | Fraction] | None = None,
    area: Area = "mean",
    costs: CostsLike = "quadratic",
    cost_scale: Normalization = None,
    decision_costs: CostsLike | None = None,
    undefined: Undefined = "nan",
    ties: Ties = "share",
    bootstrap: int = 0,
    seed: int = 0,
    confidence: float = 0.95,
    weights_are: WeightsAre = "importance",
    **read: Unpack[RowOptions],
) -> RetentionCurve | RetentionCurves:
    """The curve of a metric as the rows that a rule scores worst are removed, and the area under it.

    The order uses the outcome: the curve shows which rows a rule calls worst. It cannot certify a
    rule: ordering by the hard cost itself, which ignores probabilities, does best for expected cost by
    construction, and for kappa did best or nearly so in simulations.
    `selective` is the sibling whose order uses the forecasts alone.

    Cuts remove whole rows where the weights are whole multiples of a number and at most 1,024 of them differ;
    otherwise shares of the weight.
    Metrics and rules that depend on the order of the classes refuse labels without `classes`. Beyond
    1,024 classes no tables of counts are kept: only metrics that are means over rows are available
    ("accuracy", "ec", "mae", "off_by_one"), and rules.

    Parameters
    ----------
    y
        Beyond 2^20 rows curves then come from histograms of losses; `within` says how far they can be from
        those of the rows.
    p
    rule : Rule, str or sequence of these, optional
        What ranks the rows; by default RPS for ordered classes, and Brier for others.
    metric : str, Rule, callable or sequence of these, optional
        What is measured of the rows kept: the name of a metric of decisions ("qwk", "linear_kappa", "kappa",
        "ec", "mae", "macro_mae", "accuracy", "balanced_accuracy", "macro_f1", "off_by_one"), a rule (its mean
        loss), or a function f(y, p) of the rows kept. For `TopLists`: "accuracy", "error", "coverage",
        "top_5_accuracy", "top_5_error" (any number), "invalid", or a rule. By default "qwk"; "accuracy" for
        `TopLists`, and if neither `rule` nor `ordered` is given.
    ordered
    removed : sequence of floats, optional
        Increasing shares of rows to remove; by default 0, 1, ..., 20 percent.
    area : {"mean", "steps"}, default "mean"
        What the area is: the mean height of the curve, or the trapezoid sum with unit spacing.
    costs : {"quadratic", "linear", "zero_one"} or array_like of shape (K, K), default "quadratic"
        The costs of the metric "ec".
    cost_scale : {None, "max", "naive"}, default None
        What these costs are divided by; see `expected_cost`.
    decision_costs : {"quadratic", "linear", "zero_one"} or array_like of shape (K, K), optional
        Decide by the smallest expected cost instead of by the most likely class.
    undefined : {"nan", "one", "zero", "omit"}, default "nan"
        What an undefined value (kappa of a single class) counts as; "omit" leaves it out of the area.
    ties : {"share", "order"}, default "share"
        How a cut splits rows that tie. "share": each of them counts in part, so that the curve does not
        depend on the order of the rows; a function of rows then gets all rows repeated until these parts
        are whole numbers. "order": rows that come later are removed first (a stable sort).
    bootstrap : int, default 0
        Number of bootstrap replicates; 0 gives no intervals.
    seed
    confidence
    weights_are
    **read

    Returns
    -------
    RetentionCurve or RetentionCurves
        The curve; `RetentionCurves` for several rules or metrics.

    See Also
    --------
    selective : The same with an order that is known beforehand.
    worst : The rows themselves.

    References
    ----------
    Galdran (2023), doi:10.1007/978-3-031-43898-1_35

    Examples
    --------
    >>> import verax as vx
    >>> y = [0, 1, 2, 2, 1]
    >>> p = [[0.8, 0.2, 0], [0.3, 0.6, 0.1], [0.1, 0.2, 0.7], [0.7, 0.2, 0.1], [0.2, 0.5, 0.3]]
    >>> curve = vx.retention(y, p, rule=vx.rps, metric="accuracy", removed=[0, 0.2, 0.4])
    >>> curve.values.tolist(), round(curve.area, 3)
    ([0.8, 1.0, 1.0], 0.95)
    """
    lists, in_order = holds_lists(y, p), check_flag("ordered", ordered)
    if metric is None:
        metric = "accuracy" if lists or (rule is None and not in_order) else "qwk"
    rule = default_rules(ordered=in_order)[0] if rule is None else rule
    rules, metrics = as_rules(rule), _metrics(lists, metric, costs, cost_scale, decision_costs)
    plan = Resampling.checked(confidence, bootstrap, seed, or_none=True, weights_are=weights_are)
    options = Options(plan, removed, area, undefined, ties)
    in_order = needs_order(rules, metrics, decision_costs, ordered=in_order)
    handle = open_rows(y, p, single=True, ordered=in_order, **read)
    curves = curves_of(handle, rules, metrics, options, decision_costs)
    return curves.simplified() if isinstance(rule, (Rule, str)) else curves


@reads_ranking
def selective(
    y: object,
    p: object = None,
    *,
    by: Rule | str | Sequence[Rule | str] = "max_probability",
    metric: MetricLike | Sequence[MetricLike] = "accuracy",
    removed: Sequence[float | Fraction] | None = None,
    area: Area = "mean",
    costs: CostsLike = "quadratic",
    cost_scale: Normalization = None,
    decision_costs: CostsLike | None = None,
    undefined: Undefined = "nan",
    ties: Ties = "share",
    bootstrap: int = 0,
    seed: int = 0,
    confidence: float = 0.95,
    weights_are: WeightsAre = "importance",
    **read: Unpack[RowOptions],
) -> RetentionCurve | RetentionCurves:
    """The curve of a metric as the least certain rows are removed.

    The order uses the forecasts alone, so this is the gain from deferring uncertain cases (risk-coverage
    curve, selective prediction).

    Parameters
    ----------
    y
        Beyond 2^20 rows curves then come from histograms; `within` says how far they can be from those of the
        rows.
    p
    by : {"max_probability", "entropy"}, Rule, str or sequence of these, default "max_probability"
        What ranks the rows: the largest probability, the entropy, or the loss that each forecast itself
        expects under a rule.
    metric : str, Rule, callable or sequence of these, default "accuracy"
        What is measured of the rows kept, as for `retention`.
    removed : sequence of floats, optional
        Increasing shares of rows to remove; by default 0, 1, ..., 20 percent.
    area : {"mean", "steps"}, default "mean"
        What the area is: the mean height of the curve, or the trapezoid sum with unit spacing.
    costs : {"quadratic", "linear", "zero_one"} or array_like of shape (K, K), default "quadratic"
        The costs of the metric "ec".
    cost_scale : {None, "max", "naive"}, default None
        What these costs are divided by; see `expected_cost`.
    decision_costs : {"quadratic", "linear", "zero_one"} or array_like of shape (K, K), optional
        Decide by the smallest expected cost instead of by the most likely class.
    undefined : {"nan", "one", "zero", "omit"}, default "nan"
        What an undefined value (kappa of a single class) counts as; "omit" leaves it out of the area.
    ties : {"share", "order"}, default "share"
        How a cut splits rows that tie, as for `retention`.
    bootstrap : int, default 0
        Number of bootstrap replicates; 0 gives no intervals.
    seed
    confidence
    weights_are
    **read

    Returns
    -------
    RetentionCurve or RetentionCurves
        The curve; `RetentionCurves` for several orders or metrics.

    See Also
    --------
    risk_coverage : The same for a loss, with every row as a point.
    deferral : What handing cases on brings at a cost.

    Examples
    --------
    >>> import verax as vx
    >>> y, p = [0, 1, 1, 0], [[0.9, 0.1], [0.2, 0.8], [0.4, 0.6], [0.45, 0.55]]
    >>> vx.selective(y, p, removed=[0, 0.25, 0.5]).values.round(3).tolist()
    [0.75, 1.0, 1.0]
    """
    keys = [doubt(key) for key in _listed(by)]
    metrics = _metrics(holds_lists(y, p), metric, costs, cost_scale, decision_costs)
    plan = Resampling.checked(confidence, bootstrap, seed, or_none=True, weights_are=weights_are)
    options = Options(plan, removed, area, undefined, ties)
    handle = open_rows(y, p, single=True, ordered=needs_order(keys, metrics, decision_costs), **read)
    curves = curves_of(handle, keys, metrics, options, decision_costs)
    return curves.simplified() if isinstance(by, (Rule, str)) else curves


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _metrics(
    lists: bool,
    metric: MetricLike | Sequence[MetricLike],
    costs: CostsLike,
    cost_scale: Normalization,
    decision_costs: CostsLike | None,
) -> list[Metric]:
    """The metrics for what the forecasts are: top lists have metrics of their own, and no costs."""
    if not lists:
        return as_metrics(metric, costs, cost_scale)
    refuse_costs("decision_costs", decision_costs)
    return as_list_metrics(metric)


def as_list_metrics(metric: MetricLike | Sequence[MetricLike]) -> list[Metric]:
    """One or several metrics of top lists, names looked up; each once."""
    metrics = [m if isinstance(m, (Rule, RowMetric)) else find_list_metric(m) for m in _listed(metric)]
    if not metrics:
        raise InputError("must name at least one metric", argument="metric")
    return list(dict.fromkeys(metrics))


def as_metrics(
    metric: MetricLike | Sequence[MetricLike],
    costs: CostsLike = "quadratic",
    normalize: Normalization = None,
) -> list[Metric]:
    """One or several metrics, names looked up; each once."""
    metrics: dict[Any, Metric] = {}
    for given in _listed(metric):
        if isinstance(given, str):
            metrics[given] = find_metric(given, costs=costs, normalize=normalize)
        elif isinstance(given, (DecisionMetric, Rule)) or (callable(given) and not isinstance(given, type)):
            metrics[given] = given
        else:
            raise InputError(
                f"must be a name, a rule or a function, not {show(given)}",
                argument="metric",
                kind="type",
                values=[given],
            )
    if not metrics:
        raise InputError("must name at least one metric", argument="metric")
    return list(metrics.values())
