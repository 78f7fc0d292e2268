"""Curves of rows wherever they are: what is asked of a handle, and what its summaries say.

recipe = curve_recipe(model, keys, metrics, options, n_classes)
read_curves(handle.summarise({"curves": recipe})["curves"], recipe, metrics, options, n_classes)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from verax.analyses.listfaults import faults_in, with_fault_recipes
from verax.analyses.retention.bins import binned_curves
from verax.analyses.retention.cuts import (
    CurveMetric,
    Cuts,
    Metric,
    Options,
    RowOrder,
    RowWeights,
    bounds_of,
    measured,
)
from verax.analyses.retention.result import RetentionCurve, RetentionCurves, curve_of
from verax.analyses.retention.summaries import CurveRecipe, CurveRows, Histograms, Measures
from verax.analyses.retention.uncertainty_scores import MANY, UncertaintyScore
from verax.common.memory import give_back
from verax.errors import InputError
from verax.inference.bootstrap import multiplicities, widened_over_groups
from verax.inputs.arrays import Floats
from verax.inputs.handles import Handle
from verax.kernels.threads import in_order, n_cores
from verax.scores.base import Rule
from verax.scores.coverage import RowMetric
from verax.scores.metrics import CostsLike, DecisionMetric
from verax.scores.registry import name_of


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
    functions = [metric for metric in metrics if not _own(metric)]
    if functions and handle.kept is None:
        name = getattr(functions[0], "__name__", repr(functions[0]))
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
        options.bootstrap,
        options.seed,
        bool(functions),
        bounded,
    )
    found = handle.summarise(with_fault_recipes(handle, {"curves": recipe}))
    curves = read_curves(found["curves"], recipe, metrics, options, handle.n_classes)
    return curves.with_skipped(found.skipped).with_faults(faults_in(handle, found))


def read_curves(
    found: Histograms,
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
    found = recipe.fitting(found)
    if found.rows is None:
        return binned_curves(found, recipe, metrics, options, n_classes)
    # Without draws and with tied rows counted in part, the order of the rows does not matter.
    kept = found.rows.in_order() if options.bootstrap or options.ties == "order" else found.rows
    ranks = dict(kept.ranks)
    if last:
        kept.forget_ranks()
    return _curves_of_rows(kept, ranks, recipe, metrics, options, n_classes)


def _curves_of_rows(
    kept: CurveRows,
    ranks: dict[str, Floats],
    recipe: CurveRecipe,
    metrics: Sequence[Metric],
    options: Options,
    n_classes: int,
) -> RetentionCurves:
    """The same of rows; `ranks` is empty in the end."""
    rows = kept.table(metrics, n_classes)
    if not options.copies:
        rows = rows.in_units()
    measures = [CurveMetric(rows, metric) for metric in metrics]
    orders = {name: RowOrder(ranks.pop(name), options.ties) for name in list(ranks)}
    counting = any(measure.counts is not None for measure in measures)
    cells = []
    if counting:
        cells = [rows.cells[order.rows] for order in orders.values()]
    if len(kept) >= MANY:
        # Sorting takes more memory than all that follows.
        give_back()

    def values(weights: Any) -> Floats:
        """All curves for one vector of weights: (metrics, orders, cuts)."""
        sample = RowWeights(rows, weights, options, counting=counting)
        cuts = [Cuts(order, sample) for order in orders.values()]
        return options.fill(measured(measures, cuts, cells))

    observed = values(np.ones(len(kept), np.uint8) if rows.weights is None else rows.weights)
    draws: Iterator[Any]
    if rows.weights is None:
        draws = map(_narrow, multiplicities(len(kept), rows.groups, options.bootstrap, options.seed))
    else:
        draws = rows.multiplicities(options.bootstrap, options.seed, copies=options.copies)
    # Functions of users are not called by several threads at once.
    threads = len(kept) >= MANY and all(map(_own, metrics))
    replicates = np.array(list(in_order(values, draws, n_cores()) if threads else map(values, draws)))
    n_groups = rows.effective_groups
    if n_groups is not None and options.bootstrap:
        replicates = widened_over_groups(replicates, observed, n_groups, options.confidence)
    curves: dict[Any, RetentionCurve] = {}
    by_outcome = {name_of(key) for key in recipe.keys if isinstance(key, Rule)}
    for i, name in enumerate(orders):
        for j, measure in enumerate(measures):
            drawn = replicates[:, j, i] if options.bootstrap else np.zeros((0, len(options.removed)))
            key = name if len(measures) == 1 else (name, measure.name)
            curves[key] = curve_of(
                name,
                (measure.name, measure.higher_is_better, bounds_of(metrics[j], n_classes)),
                observed[j, i],
                drawn,
                options,
                sees_outcome=name in by_outcome,
            )
    return RetentionCurves(curves)


def _narrow(copies: Any) -> Any:
    """Numbers of copies in as few bytes as they need: a cache holds them, and rows take them in any order."""
    return copies.astype(np.min_scalar_type(int(copies.max())))


def _own(metric: Metric) -> bool:
    """Whether verax defines this metric, not a user."""
    return isinstance(metric, (DecisionMetric, Rule, RowMetric))
