"""Designs that nothing was tuned to, through default calls: what is wrong and carries no caution."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
from scipy.special import expit, softmax

import verax as vx
from covers.claims import claim, share_of

# A sample of two models that are equally good: arguments of `compare`.
Equal = Callable[[np.random.Generator], dict[str, Any]]
VALUES = np.array([0.02, 0.1, 0.3, 0.6, 0.95])


def drawn(q: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Outcomes with these probabilities."""
    return np.minimum((rng.random((len(q), 1)) > np.cumsum(q, axis=1)).sum(axis=1), q.shape[1] - 1)


# ---- leads ---------------------------------------------------------------------------------------


def noisy(rng: np.random.Generator, n: int, k: int, models: int = 2, tail: float = 0.0) -> dict[str, Any]:
    """Models that see the logits with noise; weights with a Pareto tail if it has an exponent."""
    z = 1.2 * rng.normal(size=(n, k))
    y = drawn(softmax(z, axis=1), rng)
    forecasts = {f"m{i}": softmax(z + 0.5 * rng.normal(size=z.shape), axis=1) for i in range(models)}
    own = {"weights": (1 - rng.random(n)) ** (-1 / tail)} if tail else {}
    return {"y": y, "forecasts": forecasts, **own}


def overlapping(rng: np.random.Generator, n: int, share: float, spread: float) -> dict[str, Any]:
    """Models that are the same in all rows but a share of them."""
    z = 1.2 * rng.normal(size=(n, 3))
    base, differs = z + 0.4 * rng.normal(size=z.shape), rng.random((n, 1)) < share
    forecasts = {
        name: softmax(np.where(differs, z + spread * rng.normal(size=z.shape), base), axis=1) for name in "ab"
    }
    return {"y": drawn(softmax(z, axis=1), rng), "forecasts": forecasts}


def rare(rng: np.random.Generator, n: int) -> dict[str, Any]:
    """An event of about 0.5 %."""
    z = -6 + 1.2 * rng.normal(size=n)
    forecasts = {name: expit(z + 0.7 * rng.normal(size=n)) for name in "ab"}
    return {"y": (rng.random(n) < expit(z)).astype(int), "forecasts": forecasts}


def in_groups(rng: np.random.Generator, count: int) -> dict[str, Any]:
    """600 rows in few groups, one of which holds half of the rows; each model is sharper in some of them."""
    shares = rng.exponential(size=count) + 0.2
    shares[0] = shares[1:].sum()
    groups = np.concatenate([np.arange(count), rng.choice(count, 600 - count, p=shares / shares.sum())])
    z = 1.2 * rng.normal(size=600)
    forecasts = {
        name: expit(z + 0.8 * rng.normal(size=count)[groups] + 0.3 * rng.normal(size=600)) for name in "ab"
    }
    return {"y": (rng.random(600) < expit(z)).astype(int), "forecasts": forecasts, "groups": groups}


def reckless(rng: np.random.Generator, n: int) -> dict[str, Any]:
    """Constant forecasts of 0.9 and 0.9999 of an event that makes their log scores equal."""
    right, wrong = math.log(0.9999 / 0.9), math.log(0.1 / 0.0001)
    y = (rng.random(n) < wrong / (wrong + right)).astype(int)
    return {"y": y, "forecasts": {"a": np.full(n, 0.9), "b": np.full(n, 0.9999)}, "rule": "log_score"}


def seasonal(rng: np.random.Generator, n: int, period: int, memory: float) -> dict[str, Any]:
    """Rows in order of time whose losses remember the last season, and nothing in between."""
    drift = rng.normal(size=n + 40 * period)
    for t in range(period, len(drift)):
        drift[t] += memory * drift[t - period]
    gap = 0.06 * math.sqrt(1 - memory**2) * drift[-n:]
    # The Brier score of a forecast 1 - p of what happened is 2 p^2.
    forecasts = {name: 1 - np.sqrt((0.6 + side * gap) / 2) for name, side in (("a", 1), ("b", -1))}
    return {"y": np.ones(n, int), "forecasts": forecasts, "rule": "brier", "time_ordered": True}


def false_leads(equal: Equal, replications: int, seed: int) -> tuple[float, float]:
    """How often a model is said to be the best, without a caution."""
    hits = []
    for i in range(replications):
        said = vx.compare(**equal(np.random.default_rng([seed, i]))).verdict.findings
        hits.append(any(f.claim == "best_model" and not f.caution for f in said))
    return share_of(hits)


def claims_of_leads() -> None:
    """False leads of equal models."""
    designs: dict[str, Equal] = {
        "weights with a tail of 1.5, 300 rows": partial(noisy, n=300, k=3, tail=1.5),
        "weights with a tail of 2.5, 100 rows": partial(noisy, n=100, k=3, tail=2.5),
        "60 classes, 200 rows": partial(noisy, n=200, k=60),
        "six models, 150 rows": partial(noisy, n=150, k=3, models=6),
        "the same in 95 % of 400 rows": partial(overlapping, n=400, share=0.05, spread=1.5),
        "the same in 98 % of 2000 rows": partial(overlapping, n=2000, share=0.02, spread=4.0),
        "an event of 0.5 %, 2000 rows": partial(rare, n=2000),
        "5 groups, one with half of the rows": partial(in_groups, count=5),
        "12 groups, one with half of the rows": partial(in_groups, count=12),
        "reckless and shy, 100 rows": partial(reckless, n=100),
        "reckless and shy, 500 rows": partial(reckless, n=500),
        "a season of 7 rows, 1500 rows": partial(seasonal, n=1500, period=7, memory=0.6),
        "a season of 24 rows, 400 rows": partial(seasonal, n=400, period=24, memory=0.5),
        "a season of 24 rows, 1500 rows": partial(seasonal, n=1500, period=24, memory=0.5),
    }
    for label, equal in designs.items():
        claim(f"unforeseen: false leads, {label}", 0.0, 0.065, partial(false_leads, equal), 500)


claims_of_leads()


# ---- forecasts near 0 and 1 ------------------------------------------------------------------------


@cache
def nearly_certain(n: int, replications: int, seed: int) -> dict[str, list[bool]]:
    """Samples of calibrated forecasts, right in 99.75 %, whose mean scores are missed without a caution."""
    p = np.random.default_rng(12345).beta(400, 1, 400_000)
    chances = np.column_stack([1 - p, p])
    truth = {rule: float(vx.parse(rule).entropy(chances).mean()) for rule in ("brier", "log_score")}
    found: dict[str, list[bool]] = {rule: [] for rule in truth}
    for i in range(replications):
        rng = np.random.default_rng([seed, i])
        p = rng.beta(400, 1, n)
        scores = vx.evaluate((rng.random(n) < p).astype(int), p, rules=list(truth)).scores
        for rule, value in truth.items():
            interval = scores[rule].interval
            found[rule].append(not interval.caution and not interval.low <= value <= interval.high)
    return found


def slopes_rejected(n: int, replications: int, seed: int) -> tuple[float, float]:
    """How often the slope of calibrated forecasts near 0 and 1, 0.5 % of them surprising, excludes 1."""
    hits = []
    for i in range(replications):
        rng = np.random.default_rng([seed, i])
        p = np.where(rng.random(n) < 0.5, rng.beta(1, 200, n), rng.beta(200, 1, n))
        hits.append(vx.calibration_slope((rng.random(n) < p).astype(int), p)["1"].slope_p <= 0.05)
    return share_of(hits)


def claims_of_certain_forecasts() -> None:
    """Intervals and slopes of forecasts that are hardly ever wrong."""
    for n in (100, 300, 1000):
        for rule in ("brier", "log_score"):

            def missed(replications: int, seed: int, n: int = n, rule: str = rule) -> tuple[float, float]:
                return share_of(nearly_certain(n, replications, seed)[rule])

            claim(
                f"unforeseen: missed without a caution, {rule}, 99.75 % right, {n} rows", 0, 0.07, missed, 400
            )
        label = f"unforeseen: slopes that exclude 1, 0.5 % surprising, {n} rows"
        claim(label, 0.0, 0.065, partial(slopes_rejected, n), 400)


claims_of_certain_forecasts()


# ---- promises of tied forecasts ----------------------------------------------------------------------


@cache
def promises(n: int, aim: str, replications: int, seed: int) -> dict[str, list[bool]]:
    """Whether thresholds of forecasts with five values keep their promise, and intervals cover the rate."""
    shares = np.array([0.4, 0.3, 0.15, 0.1, 0.05])
    rate, _, least = aim.partition(">=")
    counted = shares * (VALUES if rate == "sensitivity" else 1 - VALUES)
    found: dict[str, list[bool]] = {"kept": [], "covered": []}
    for i in range(replications):
        rng = np.random.default_rng([seed, i])
        p = rng.choice(VALUES, n, p=shares)
        point = vx.operating_points((rng.random(n) < p).astype(int), p, threshold=aim).points[0]
        if np.isnan(point.threshold):
            continue
        acts = point.threshold <= VALUES
        truth = counted[acts if rate == "sensitivity" else ~acts].sum() / counted.sum()
        low, high = point.rate(rate).interval
        found["kept"].append(bool(truth >= float(least)))
        found["covered"].append(bool(low <= truth <= high))
    return found


def claims_of_promises() -> None:
    """Promises of forecasts that are mostly tied."""
    for n, aim in ((400, "sensitivity>=0.9"), (1500, "sensitivity>=0.7"), (400, "specificity>=0.5")):
        for what in ("kept", "covered"):

            def measure(
                replications: int, seed: int, own: tuple[int, str] = (n, aim), what: str = what
            ) -> tuple[float, float]:
                return share_of(promises(*own, replications, seed)[what])

            claim(f"unforeseen: five values, {aim}, {what}, {n} rows", 0.94, 1.0, measure, 400)


claims_of_promises()
