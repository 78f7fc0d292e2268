"""Retained-samples curves with a bootstrap: verax against the plain loop with scikit-learn.

The size is that of Galdran's larger test set: 53,576 x 5, 4 rules, 2 metrics, 20 cuts, 50 replicates.
The loop runs one replicate of one rule and is scaled by 200, which is what it would do.
"""

from __future__ import annotations

import resource
import time

import numpy as np
from sklearn.metrics import cohen_kappa_score

import verax as vx
from machine import describe

SHARES = np.array([39533, 3762, 7861, 1214, 1206]) / 53576
REMOVED = [i / 100 for i in range(20)]
RULES = ["brier", "log_score", "rps", "sa_rps"]
REPLICATES = 50


def grades(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Outcomes of those shares and forecasts that are right about four times in five."""
    y = rng.choice(5, n, p=SHARES)
    z = rng.normal(size=(n, 5)) - 0.8 * np.abs(np.arange(5) - y[:, None])
    z = np.exp(2 * z)
    return y, z / z.sum(axis=1, keepdims=True)


def ours(y: np.ndarray, p: np.ndarray) -> float:
    start = time.perf_counter()
    vx.retention(y, p, rule=RULES, metric=["qwk", "ec"], removed=REMOVED, bootstrap=REPLICATES)
    return time.perf_counter() - start


def loop(y: np.ndarray, p: np.ndarray, rng: np.random.Generator) -> float:
    start = time.perf_counter()
    rows = rng.integers(0, len(y), len(y))
    y, p = y[rows], p[rows]
    target = y[:, None] <= np.arange(4)
    order = np.argsort(((np.cumsum(p, axis=1)[:, :-1] - target) ** 2).sum(axis=1), kind="stable")
    decisions = p.argmax(axis=1)
    for removed in REMOVED:
        kept = order[: len(order) - int(removed * len(order))]
        cohen_kappa_score(y[kept], decisions[kept], weights="quadratic")
        np.mean((y[kept] - decisions[kept]) ** 2)
    return time.perf_counter() - start


def main() -> None:
    print(describe())
    rng = np.random.default_rng(0)
    y, p = grades(53_576, rng)
    ours(y, p)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    us = min(ours(y, p) for _ in range(5))
    extra = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    them = min(loop(y, p, rng) for _ in range(3)) * len(RULES) * REPLICATES
    print(f"53,576 x 5, 4 rules, 2 metrics, 20 cuts, 50 replicates: {us:.3f} s")
    print(
        f"plain loop, one replicate of one rule x 200: {them:.1f} s, {them / us:.0f}x slower (promise: 300x)"
    )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"memory: {extra:.1f} MB above the warm-up, {peak:.0f} MB for the whole process (promise: under 200)"
    )
    big = grades(535_760, rng)
    growth = min(ours(*big) for _ in range(2)) / us
    print(f"ten times the rows: {growth:.1f}x the time (promise: at most 12x)")


if __name__ == "__main__":
    main()
