"""What sums of graded answers say: the mean grade and its interval."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any

import numpy as np

from verax.analyses.grades.summaries import GradeSums
from verax.engines.differences import PairedTally
from verax.inference.estimates import Estimate, Units
from verax.inference.intervals import Interval, Resampling, bounded, wilson
from verax.inputs.memory import ONLY
from verax.scores.grades import Grade


def facts_of(sums: GradeSums, scale: Grade, plan: Resampling) -> dict[str, Any]:
    """The mean grade of some answers, and what belongs to it, by the names of the fields of a card."""
    losses: PairedTally = sums.losses.of_rule(scale)
    (answers,) = sums.answers.answered((ONLY,), scale.bounds(2))
    known = {"answers": answers, "rule": scale, "confidence": plan.confidence}
    if not losses.n_rows:
        none = Interval.undefined("no answer was graded", confidence=plan.confidence)
        return {"mean": math.nan, "interval": none, "n_groups": None, **known}
    loss = float(losses.means[0])
    estimate = Estimate.of(losses, np.zeros((0, 0)), Units("rows"))
    return {
        "mean": scale.high - loss,
        "interval": (-_interval(losses, loss, scale, plan, estimate)).shifted(scale.high),
        "n_groups": losses.n_groups,
        "standard_error": float(estimate.error[0]),
        "freedom": float(np.max(estimate.freedom)),
        "deviation": float(losses.moments.std[1]),
        **known,
    }


def _interval(
    tally: PairedTally, loss: float, scale: Grade, plan: Resampling, estimate: Estimate
) -> Interval:
    """The interval of a mean loss in its range: Wilson's for right or wrong, else a t interval like it."""
    least, most = scale.bounds(2)
    share, std = loss / most, float(tally.moments.std[1]) / most
    # Weights of 1 are none; their sum and that of their squares are the number of rows.
    sums = [float(own.weight.high[0]) for own in (tally.moments, tally.squares)]
    plain = tally.labels is None and sums == [tally.n_rows, tally.n_rows]
    if plain and math.isclose(std * std, share * (1 - share), rel_tol=1e-9, abs_tol=1e-12):
        z = NormalDist().inv_cdf((1 + plan.confidence) / 2)
        low, high = wilson(share, tally.n_rows, z, plan.confidence)
        return Interval(low * most, high * most, method="Wilson", confidence=plan.confidence)
    freedom, error = float(np.max(estimate.freedom)), float(estimate.error[0])
    if not (freedom > 0 and math.isfinite(error)):
        return Interval.undefined("there is only one unit to learn from", confidence=plan.confidence)
    caution = estimate.intervals(plan.confidence)[0].caution
    found = bounded(loss, error**2, freedom, freedom + 1, (least, most), plan)
    return found.by(found.method, caution)
