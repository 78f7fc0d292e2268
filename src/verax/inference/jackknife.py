"""Variances of metrics of decisions over groups: what becomes of a metric as each group is left out."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from verax._settings import settings
from verax.engines.clusters import Clusters
from verax.inputs.arrays import Floats, Ints
from verax.scores.cells import table_metrics
from verax.scores.metrics import DecisionMetric


def metric_variances(clusters: Clusters, metrics: Sequence[DecisionMetric], n_classes: int) -> Floats:
    """(M,) jackknife variances of metrics of the confusion counts of groups.

    The variance is (G-1)/G times the sum of the squared changes of the metric as each group is left out. The
    derivative gives a change up to a share of the group in the weight, less than a thousandth.
    """
    filled = np.flatnonzero(clusters.weight > 0)
    n = len(filled)
    if n < 2:
        return np.full(len(metrics), np.nan)
    occurring, weights = clusters.cells.matrix(len(clusters.labels))
    total = np.asarray(weights.sum(axis=0)).ravel()
    scale = math.ldexp(1.0, -math.frexp(total.sum())[1])
    share = clusters.weight * (scale / (total.sum() * scale))
    exact = share > settings.left_out_share if n > settings.left_out_up_to else share > 0
    rest = filled[~exact[filled]]
    table = np.zeros(n_classes**2)
    table[occurring] = total * scale
    cells = np.divmod(occurring, n_classes)
    squares = np.zeros(len(metrics))
    for i, metric in enumerate(metrics):
        slopes = metric.slopes_at(table.reshape(n_classes, n_classes), *cells) if len(rest) else None
        left_out = np.flatnonzero(exact) if slopes is not None else filled
        squares[i] = _squared_changes(clusters, metric, n_classes, left_out)
        if slopes is not None:
            change = (weights @ (slopes * scale))[rest] / (1 - share[rest])
            squares[i] += change @ change
    return np.asarray(squares * (n - 1) / n)


def _squared_changes(clusters: Clusters, metric: DecisionMetric, n_classes: int, groups: Ints) -> float:
    """The sum of the squared changes of a metric as each of some groups is left out."""
    if not len(groups):
        return 0.0

    def value(cells: Ints, counts: Floats) -> Floats:
        return table_metrics([metric], n_classes, cells, counts)

    occurring, weights = clusters.cells.matrix(len(clusters.labels))
    whole = value(occurring, np.asarray(weights.sum(axis=0)).reshape(1, -1))
    return float(((clusters.without_each(value, groups) - whole) ** 2).sum())
