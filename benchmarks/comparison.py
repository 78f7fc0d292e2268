"""Comparing seven forecasters on 72,676 x 3 rows by three rules, all pairs, clustered in 13 seasons.

As a ratio to the plain scores of the same forecasts by scikit-learn and scoringrules, which is the
least that anyone must compute before comparing.
"""

from __future__ import annotations

import time

import numpy as np
import scoringrules
from sklearn.metrics import brier_score_loss, log_loss

import verax as vx
from machine import describe


def main() -> None:
    print(describe())
    rng = np.random.default_rng(0)
    n = 72_676
    y, season = rng.integers(0, 3, n), rng.integers(0, 13, n)
    base = rng.dirichlet(np.ones(3) * 3, n)
    models = {f"m{i}": 0.97 * base + 0.03 * rng.dirichlet(np.ones(3), n) for i in range(7)}
    best, plain = np.inf, np.inf
    for _ in range(3):
        start = time.perf_counter()
        vx.compare(y, models, rule=["rps", "brier", "log_score"], groups=season, reference="frequencies")
        best = min(best, time.perf_counter() - start)
        start = time.perf_counter()
        for p in models.values():
            scoringrules.rps_score(y + 1, p)
            brier_score_loss(y, p)
            log_loss(y, p)
        plain = min(plain, time.perf_counter() - start)
    print(f"compare, 7 x 72,676 x 3, 3 rules, 21 pairs, 13 clusters: {best:.2f} s (promise: under 2)")
    print(
        f"plain scores of the same forecasts, nothing compared: {plain:.2f} s, a ratio of {best / plain:.2f}"
    )


if __name__ == "__main__":
    main()
