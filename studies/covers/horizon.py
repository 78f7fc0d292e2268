"""Outcomes at a horizon of which some are censored: intervals of rows with inverse probability weights."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

import verax as vx
from covers.claims import Measure, claim, share_of

HORIZON = 5.0
# The last times of follow-ups that end uniformly, by the share of rows censored before the horizon.
LAST = {"20 %": 21.0, "42 %": 10.0, "65 %": 6.0}


def risks(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Rates of exponential times to the event, and the risks of it by the horizon."""
    rate = 0.08 * np.exp(0.8 * rng.normal(size=n))
    return rate, 1 - np.exp(-HORIZON * rate)


@cache
def truth() -> dict[str, float]:
    """The values of true risks, by integration over two million of them."""
    _, p = risks(np.random.default_rng(0), 2_000_000)
    p = np.sort(p)
    cases = (np.cumsum(1 - p) - (1 - p) / 2) @ p
    return {
        "brier": float(2 * (p * (1 - p)).mean()),
        "AUC": float(cases / (p.sum() * (1 - p).sum())),
        "observed against expected": 0.0,
        "slope": 1.0,
    }


def of_brier(y: np.ndarray, p: np.ndarray, **given: Any) -> Any:
    return vx.evaluate(y, p, rules=["brier"], **given).scores["brier"].interval


def of_auc(y: np.ndarray, p: np.ndarray, **given: Any) -> Any:
    return vx.roc_auc(y, p, **given).interval


def of_large(y: np.ndarray, p: np.ndarray, **given: Any) -> Any:
    """The log odds of the observed share of events against that of the expected one."""
    return next(iter(vx.calibration_slope(y, p, **given))).in_the_large_interval


def of_slope(y: np.ndarray, p: np.ndarray, **given: Any) -> Any:
    return next(iter(vx.calibration_slope(y, p, **given))).slope_interval


OF: dict[str, Callable[..., Any]] = {
    "brier": of_brier,
    "AUC": of_auc,
    "observed against expected": of_large,
    "slope": of_slope,
}


def coverage(name: str, n: int, last: float, n_groups: int = 0) -> Measure:
    """How often an interval covers, of rows that are censored at uniform times up to the last."""

    def measure(replications: int, seed: int) -> tuple[float, float]:
        hits = []
        for i in range(replications):
            rng = np.random.default_rng([seed, i])
            rate, p = risks(rng, n)
            event, end = rng.exponential(1 / rate), rng.uniform(0, last, n)
            found = vx.at_horizon(np.minimum(event, end), event <= end, horizon=HORIZON)
            groups = {"groups": np.arange(n) % n_groups} if n_groups else {}
            low, high = OF[name](found.outcomes, p, weights=found.weights, **groups)
            hits.append(bool(low <= truth()[name] <= high))
        return share_of(hits)

    return measure


# Weights are treated as known, and knowing them less well makes estimates better: intervals are too wide.
for name in OF:
    for share, last in LAST.items():
        claim(f"horizon: {name}, 500 rows, {share} censored", 0.93, 0.99, coverage(name, 500, last), 1000)
    claim(f"horizon: {name}, 50 groups of 20, 42 % censored", 0.93, 0.99, coverage(name, 1000, 10.0, 50), 400)
