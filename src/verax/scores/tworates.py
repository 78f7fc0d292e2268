"""Rates of decisions about one event, the second of two classes, as functions of confusion counts.

Counts are (..., 2, 2): outcome by row, decision by column. A share is a ratio of two weighted sums of the
four counts; Youden's J and the likelihood ratios follow from sensitivity and specificity.
"""

from __future__ import annotations

import numpy as np

from verax.errors import InputError, Remedy
from verax.inputs.arrays import Floats, Ints
from verax.scores.cells import of_counts

_TRUE_NEGATIVE, _FALSE_ALARM, _MISS, _HIT = np.eye(4).reshape(4, 2, 2)
# What a share counts, and among what.
SHARES: dict[str, tuple[Floats, Floats]] = {
    "sensitivity": (_HIT, _HIT + _MISS),
    "specificity": (_TRUE_NEGATIVE, _TRUE_NEGATIVE + _FALSE_ALARM),
    "ppv": (_HIT, _HIT + _FALSE_ALARM),
    "npv": (_TRUE_NEGATIVE, _TRUE_NEGATIVE + _MISS),
    "f1": (2 * _HIT, 2 * _HIT + _FALSE_ALARM + _MISS),
}
# What of more classes answers the same question.
_OF_SEVERAL = {
    "f1": "macro_f1",
    "ppv": "macro_ppv",
    "sensitivity": "balanced_accuracy",
    "youden": "balanced_accuracy",
}


def check_two(name: str, n_classes: int) -> None:
    """Refuse a rate of two classes for another number of them."""
    if n_classes == 2:
        return
    several = [Remedy(f"{_OF_SEVERAL[name]} averages over the classes.")] if name in _OF_SEVERAL else []
    advice = "vx.operating_points(y, p) has the rates of each class against the rest."
    raise InputError(
        f"must fit {n_classes:,} classes",
        argument="metric",
        found=f"{name} is a rate of two classes",
        values=[name],
        remedies=[*several, Remedy(advice, python_only=True)],
    )


@of_counts
def share_of(counts: Floats, name: str) -> Floats:
    """A share, from each table of counts; NaN if there is nothing to count.

    >>> float(share_of(np.array([[5.0, 1], [1, 3]]), "sensitivity"))
    0.75
    """
    check_two(name, counts.shape[-1])
    part, whole = SHARES[name]
    return np.asarray((counts * part).sum(axis=(-2, -1)) / (counts * whole).sum(axis=(-2, -1)))


def slopes_of_share(counts: Floats, y: Ints, decisions: Ints, name: str) -> Floats:
    """Derivatives of a share by the weights of cells, (C,)."""
    part, whole = SHARES[name]
    value = float(share_of(counts, name))
    return np.asarray((part[y, decisions] - value * whole[y, decisions]) / float((counts * whole).sum()))


@of_counts
def youden_of(counts: Floats) -> Floats:
    """Sensitivity plus specificity minus 1, of each table of counts."""
    return np.asarray(share_of(counts, "sensitivity") + share_of(counts, "specificity") - 1)


def slopes_of_youden(counts: Floats, y: Ints, decisions: Ints) -> Floats:
    """Derivatives of Youden's J by the weights of cells, (C,)."""
    both = (slopes_of_share(counts, y, decisions, name) for name in ("sensitivity", "specificity"))
    return np.asarray(sum(both))


@of_counts
def likelihood_ratio_of(counts: Floats, positive: bool) -> Floats:
    """How much likelier one decision is with the event than without it, of each table of counts.

    >>> counts = np.array([[8.0, 2], [1, 3]])
    >>> float(likelihood_ratio_of(counts, True)), round(float(likelihood_ratio_of(counts, False)), 4)
    (3.75, 0.3125)
    """
    over, under = _ratio_terms(counts, positive)
    return np.asarray(over / under)


def slopes_of_likelihood_ratio(counts: Floats, y: Ints, decisions: Ints, positive: bool) -> Floats:
    """Derivatives of a likelihood ratio by the weights of cells, (C,)."""
    over, under = (float(term) for term in _ratio_terms(counts, positive))
    sens, spec = (slopes_of_share(counts, y, decisions, name) for name in ("sensitivity", "specificity"))
    of_over, of_under = (sens, -spec) if positive else (-sens, spec)
    return np.asarray((of_over - over / under * of_under) / under)


def _ratio_terms(counts: Floats, positive: bool) -> tuple[Floats, Floats]:
    """The share with the event, and the share without it, of rows that are acted on, or that are not."""
    check_two("likelihood ratio", counts.shape[-1])
    decided, truth = counts[..., int(positive)], counts.sum(axis=-1)
    return decided[..., 1] / truth[..., 1], decided[..., 0] / truth[..., 0]
