"""Class balance: how often each class was observed, and what it was given on average."""

from __future__ import annotations

from typing import Any

import numpy as np

from verax.analyses.words import count, part_of
from verax.common.texts import percent
from verax.inputs.arrays import Floats
from verax.report.contents import Contents, Distributions
from verax.report.limits import CLASSES
from verax.report.problem import Problem


def balance_exhibit(contents: Contents) -> dict[str, Any]:
    """The classes with their observed shares and the mean forecasts of each model, the most frequent ones."""
    problem, weights = contents.problem, contents.findings[0].card.class_counts
    observed = weights / max(float(weights.sum()), 1e-300)
    rows = contents.class_rows
    assert rows is not None
    shown = np.argsort(-observed, kind="stable")[:CLASSES]
    order = sorted(shown.tolist()) if problem.ordered or problem.n_classes == 2 else shown.tolist()
    means = [_mean_forecasts(problem, f.dense) for f in contents.findings if f.dense is not None]
    highest = float(observed.max())
    lines = [
        {
            "name": problem.titles[i],
            "n": f"{int(rows[i]):,}",
            "share": part_of(float(observed[i])),
            "bar": round(100 * float(observed[i]) / highest, 1) if highest else 0.0,
            "means": [part_of(float(np.clip(mean[i], 0, 1))) for mean in means],
        }
        for i in order
    ]
    rest = problem.n_classes - len(lines)
    left = ""
    if rest:
        share = percent(max(0.0, 1 - float(observed[shown].sum())))
        left = f"The other {count(rest, 'class', 'classes')} together have {share} of the rows."
    return {"lines": lines, "left_out": left}


def _mean_forecasts(problem: Problem, distributions: Distributions) -> Floats:
    """The mean probability of every class."""
    claimed = np.array([bias.claimed for bias in distributions.class_biases])
    if problem.ordered:
        return np.diff(claimed, prepend=0.0, append=1.0)
    return np.array([1 - claimed[0], claimed[0]]) if problem.n_classes == 2 else claimed
