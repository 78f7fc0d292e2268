"""Derivatives of decision metrics in the weights of the cells of the confusion table.

Each function takes the (K, K) table and the (C,) outcomes and decisions of cells, and gives (C,) derivatives.
They say how much each group of rows moves a metric, without computing it once per group. All of them sum to
zero over the rows of the table, because metrics do not change when all weights are multiplied.
"""

from __future__ import annotations

import numpy as np

from verax.inputs.arrays import Floats, Ints
from verax.scores.cells import CostOf


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
