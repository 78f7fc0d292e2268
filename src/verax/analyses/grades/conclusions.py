"""The mean grade and its interval, from sums of graded answers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from verax.analyses.grades.summaries import GradeSums
from verax.engines.differences import PairedTally
from verax.inference.answers import mean_in_range
from verax.inference.estimates import Estimate, Units
from verax.inference.intervals import Interval, Resampling
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
    estimate = Estimate.of(losses, np.zeros((0, 0)), Units("rows"))
    interval = mean_in_range(losses, 0, scale.bounds(2), estimate, plan.confidence)
    return {
        "mean": scale.high - float(losses.means[0]),
        "interval": (-interval).shifted(scale.high),
        "n_groups": losses.n_groups,
        "standard_error": float(estimate.error[0]),
        "freedom": float(np.max(estimate.freedom)),
        "deviation": float(losses.moments.std[1]),
        **known,
    }
