"""Calibration slopes, AUC and average precision."""

from __future__ import annotations

from functools import cache

import numpy as np
from scipy.special import expit

import verax as vx
from covers.claims import claim, share_of


@cache
def slopes_and_ranks(n: int, replications: int, seed: int) -> dict[str, list[bool]]:
    """In which samples of calibrated forecasts of an event slopes, intercepts and AUC cover."""
    rng = np.random.default_rng(12345)
    x = rng.uniform(0.02, 0.98, 400_000)
    auc = vx.roc_auc((rng.random(len(x)) < x).astype(int), x).value
    found: dict[str, list[bool]] = {}
    for i in range(replications):
        rng = np.random.default_rng([seed, i])
        x = rng.uniform(0.02, 0.98, n)
        y = (rng.random(n) < x).astype(int)
        line, ranks = vx.calibration_slope(y, x)["1"], vx.roc_auc(y, x)
        for name, (low, high), truth in (
            ("slope", line.slope_interval, 1.0),
            ("intercept", line.intercept_interval, 0.0),
            ("in the large", line.in_the_large_interval, 0.0),
            ("AUC", ranks.interval, auc),
            ("AUC of a class", ranks.parts[0].interval, auc),
        ):
            found.setdefault(name, []).append(low <= truth <= high)
    return found


def claims_of_slopes_and_ranks() -> None:
    """Coverage of calibration slopes, intercepts and AUC."""
    for n in (100, 300):
        for name in ("slope", "intercept", "in the large", "AUC", "AUC of a class"):

            def measure(replications: int, seed: int, n: int = n, name: str = name) -> tuple[float, float]:
                return share_of(slopes_and_ranks(n, replications, seed)[name])

            claim(f"slopes and ranks: {name}, {n} rows", 0.92, 0.98, measure, 500)


claims_of_slopes_and_ranks()


def average_precision_rejections(
    n: int, offset: float, spread: float, replications: int, seed: int
) -> tuple[float, float]:
    """How often two equally good forecasts differ in average precision, with lognormal weights."""
    hits = []
    for i in range(replications):
        rng = np.random.default_rng([seed, i])
        x = 1.5 * rng.normal(size=n)
        y = (rng.random(n) < expit(x + offset)).astype(int)
        models = {name: expit(x + 0.7 * rng.normal(size=n)) for name in "ab"}
        own = {"weights": rng.lognormal(sigma=spread, size=n)} if spread else {}
        hits.append(vx.average_precision(y, models, **own).difference("a", "b").p_value <= 0.05)
    return share_of(hits)


def claims_of_average_precision() -> None:
    """The size of the test of two average precisions."""
    for n, offset, rate in ((300, -1.2, 30), (1000, -1.2, 30), (500, -3.0, 10)):
        for spread in (0.0, 1.0, 1.5) if n == 1000 else (0.0, 1.0):

            def measure(
                replications: int, seed: int, n: int = n, offset: float = offset, spread: float = spread
            ) -> tuple[float, float]:
                found: tuple[float, float] = average_precision_rejections(
                    n, offset, spread, replications, seed
                )
                return found

            weights = f"weights of spread {spread:g}" if spread else "equal weights"
            claim(f"average precision: size, {n} rows, event {rate} %, {weights}", 0.04, 0.07, measure, 1000)


claims_of_average_precision()
