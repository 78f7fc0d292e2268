"""Metrics of decisions from the cells of a confusion table that occur, for tables of very many cells.

A table of a thousand classes has a million cells, and a few hundred rows fill a few hundred of them. Cells
are given by (C,) outcomes and (C,) decisions; weights are (b, C), one row per table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, Concatenate, ParamSpec

import numpy as np

from verax._settings import settings
from verax.inputs.arrays import Floats, Ints

# How many counts are held at a time.
_NUMBERS_AT_ONCE = 2**22
# Weights beyond 2**400 or all below 2**-400 are scaled before they are multiplied.
EXTREME = 400

# What a cell costs, from outcomes and decisions.
CostOf = Callable[[Ints, Ints], Floats]
_P = ParamSpec("_P")


def are_elsewhere(counts: object) -> bool:
    """Whether tables of counts are on a GPU, as arrays of another library."""
    return not isinstance(counts, np.ndarray)


def of_counts(
    function: Callable[Concatenate[Floats, _P], Floats],
) -> Callable[Concatenate[Floats, _P], Floats]:
    """A function of counts that does not overflow: tables of extreme weights are scaled to near 1.

    The factor is a power of two, so no digit is lost. Divisions of zero by zero give NaN.
    """

    @wraps(function)
    def scaled(counts: Floats, /, *args: _P.args, **kwargs: _P.kwargs) -> Floats:
        if are_elsewhere(counts):
            # On a GPU, where to look at a number takes as long as the rest. Weights are moderate there.
            return function(counts, *args, **kwargs)
        exponents = np.frexp(np.max(counts, axis=(-2, -1), keepdims=True))[1]
        if np.abs(exponents).max(initial=0) > EXTREME:
            counts = np.ldexp(counts, -exponents)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(function(counts, *args, **kwargs))

    return scaled


def table_metrics(metrics: Sequence[Any], n_classes: int, cells: Ints, weights: Floats) -> Floats:
    """(b, M) metrics of tables whose cells, numbered row by row, have these (b, C) weights."""
    y, decisions = np.divmod(cells, n_classes)
    columns = []
    for metric in metrics:
        if n_classes**2 <= settings.filled_up_to or (metric.of_cells is None and metric.of_row is None):
            columns.append(_of_tables(metric.of, n_classes, cells, weights))
        elif metric.of_cells is not None:
            columns.append(metric.of_cells(y, decisions, weights))
        else:
            columns.append(mean_of_cells(metric.of_row(y, decisions), weights))
    return np.stack(columns, axis=1)


def _of_tables(of: Callable[[Floats], Floats], n_classes: int, cells: Ints, weights: Floats) -> Floats:
    """The metric of filled tables, some at a time."""
    step = max(1, _NUMBERS_AT_ONCE // n_classes**2)
    values = []
    for start in range(0, len(weights), step):
        part = weights[start : start + step]
        tables = np.zeros((len(part), n_classes * n_classes))
        tables[:, cells] = part
        values.append(of(tables.reshape(-1, n_classes, n_classes)))
    return np.concatenate(values)


def mean_of_cells(values: Floats, weights: Floats) -> Floats:
    """The weighted mean of the values of cells, (b,); NaN without weight.

    >>> mean_of_cells(np.array([0.0, 4.0]), np.array([[1.0, 1.0], [3.0, 1.0]])).tolist()
    [2.0, 1.0]
    """
    weights = _moderate(weights)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((weights @ values) / weights.sum(axis=1))


def kappa_of_cells(y: Ints, decisions: Ints, weights: Floats, cost_of: CostOf) -> Floats:
    """Kappa with costs, (b,), as `metrics.kappa_of` has it of whole tables."""
    weights = _moderate(weights)
    outcomes, truth = _margin(y, weights)
    choices, decided = _margin(decisions, weights)
    observed = (weights @ cost_of(y, decisions)) * weights.sum(axis=1)
    by_chance = ((truth @ cost_of(outcomes[:, None], choices[None, :])) * decided).sum(axis=1)
    one_sided = ((truth > 0).sum(axis=1) == 1) | ((decided > 0).sum(axis=1) == 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        agreement = np.where(one_sided, 0.0, 1 - observed / by_chance)
    return np.where(by_chance > 0, agreement, np.nan)


def _margin(labels: Ints, weights: Floats) -> tuple[Ints, Floats]:
    """The labels that occur, increasing, and the sums of the weights of each, (b, L)."""
    occurring = np.flatnonzero(np.bincount(labels))
    return occurring, np.stack([np.bincount(labels, row)[occurring] for row in weights])


def _moderate(weights: Floats) -> Floats:
    """Weights, scaled by a power of two if their products would overflow."""
    exponents = np.frexp(weights.max(axis=1, keepdims=True))[1]
    return np.ldexp(weights, -exponents) if np.abs(exponents).max(initial=0) > EXTREME else weights


# ---- derivatives in the weights of cells


def slopes_of_mean(counts: Floats, y: Ints, decisions: Ints, of_row: CostOf) -> Floats:
    """The derivatives of a metric that is a mean over rows.

    >>> from verax.scores.metrics import METRICS
    >>> right = METRICS["accuracy"].of_row
    >>> slopes_of_mean(np.array([[3.0, 1], [0, 4]]), np.array([0, 0]), np.array([0, 1]), right)
    array([ 0.015625, -0.109375])
    """
    at = np.nonzero(counts)
    total = counts.sum()
    mean = (counts[at] @ of_row(*at)) / total
    return np.asarray((of_row(y, decisions) - mean) / total)


def slopes_of_kappa(counts: Floats, y: Ints, decisions: Ints, cost_of: CostOf) -> Floats:
    """The derivatives of kappa, 1 - observed / by_chance (the cost of the product of the margins)."""
    at = np.nonzero(counts)
    classes = np.arange(len(counts))
    cost = cost_of(classes[:, None], classes[None, :])
    truth, decided, total = counts.sum(axis=1), counts.sum(axis=0), counts.sum()
    observed, by_chance = counts[at] @ cost[at], truth @ cost @ decided
    chance = (cost @ decided)[y] + (truth @ cost)[decisions]
    return np.asarray(
        (observed * total * chance / by_chance - cost[y, decisions] * total - observed) / by_chance
    )


def slopes_by_class(counts: Floats, y: Ints, decisions: Ints, of_row: CostOf) -> Floats:
    """The derivatives of the mean, over the classes that happened, of the means over their rows."""
    classes = np.arange(len(counts))
    truth = counts.sum(axis=1)
    per_class = (counts * of_row(classes[:, None], classes[None, :])).sum(axis=1) / truth
    return np.asarray((of_row(y, decisions) - per_class[y]) / truth[y] / np.count_nonzero(truth))


def slopes_of_macro_ppv(counts: Floats, y: Ints, decisions: Ints) -> Floats:
    """The derivatives of the mean over the classes of hits / number of decisions for it."""
    decided = counts.sum(axis=0)
    precision = np.diagonal(counts) / decided
    right = np.equal(y, decisions)
    return np.asarray((right - precision[decisions]) / decided[decisions] / np.count_nonzero(decided))


def slopes_of_macro_f1(counts: Floats, y: Ints, decisions: Ints) -> Floats:
    """The derivatives of the mean over the classes of 2 * hits / (outcomes + decisions of it)."""
    involved = counts.sum(axis=1) + counts.sum(axis=0)
    loss = 2 * np.diagonal(counts) / involved**2
    gain = np.where(y == decisions, 2 / involved[y], 0.0)
    return np.asarray((gain - loss[y] - loss[decisions]) / np.count_nonzero(involved))
