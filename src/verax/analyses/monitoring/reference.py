"""The baseline loss, from the card of a reference: an upper bound of its mean."""

from __future__ import annotations

import math

from verax.analyses.cards.scorecard import Scorecard
from verax.errors import InputError, Remedy
from verax.inference.betting import upper_mean
from verax.inputs.arrays import Floats
from verax.scores.base import Rule
from verax.scores.registry import name_of


def upper_bound(card: Scorecard, rule: Rule, error: float) -> tuple[float, str]:
    """An upper bound of the mean loss, which the truth exceeds with probability `error`, and a caution.

    Losses of bounded rules have a bound by betting, which heavy tails and few rows do not break. For other
    rules it is the upper end of the card's interval.
    """
    interval = card.scores[name_of(rule)].interval
    i, (_, most) = card.tally.rules.index(rule), rule.bounds(card.n_classes)
    if math.isfinite(most):
        high = max(upper_mean(*own, most, error, largest) for own, largest in _units(card, i))
        if not high < most:
            raise InputError(
                f"must have rows enough to bound the mean loss below {most:g}, the largest possible",
                argument="reference",
                found=interval.caution or f"it has {card.n_rows:,}",
                remedies=[Remedy("Evaluate more rows, or pass the mean loss as a number if it is known.")],
            )
        return high, interval.caution
    if not interval.defined or not 0 < interval.high < math.inf:
        raise InputError(
            "must have a confidence interval with a finite, positive upper end",
            argument="reference",
            found=interval.caution or f"the interval is {interval:.4g}",
        )
    return interval.high, interval.caution


def _units(card: Scorecard, i: int) -> list[tuple[tuple[float, float, tuple[float, float, float]], float]]:
    """What `upper_mean` takes of independent units: rows, or groups of each kind, with the largest weight.

    Only sums of weights are known, so the effective sample size counts (rows of equal weight).
    """
    tally, copies = card.tally, card.resampling.copies
    mean = float(tally.moments.mean[i])
    if tally.clusters is None:
        n = tally.effective_rows(copies=copies)
        return [((n, mean, (n * (n - 1) * float(tally.variances(copies=copies)[i]), 0.0, n)), 1.0)]
    found = []
    for kind in tally.clusters.kinds[:-1] or [tally.clusters]:
        unit = kind.weight.mean()
        weight: Floats = kind.weight / unit
        off = mean * weight - kind.sums.high[:, 2 + i] / unit
        squares = float(off @ off), 2 * float(off @ weight), float(weight @ weight)
        found.append(((float(len(weight)), mean, squares), float(weight.max())))
    return found
