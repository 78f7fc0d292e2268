"""What an objective of verax adds to a round of XGBoost.

    python benchmarks/boosting.py [rows] [classes]

One round of multi:softprob, all of it, beside the gradient and expected Hessian of each rule alone.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np
import xgboost as xgb

from machine import describe
from verax.adapters.boosting import xgboost_objective


def best(function: Callable[[], object], n: int = 5) -> float:
    times = []
    for _ in range(n):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    print(describe())
    n, k = (int(a) for a in (*sys.argv[1:], *("1000000", "10")[len(sys.argv) - 1 :]))
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 10)).astype(np.float32)
    y = np.digitize(x[:, 0] + rng.normal(size=n), np.linspace(-2, 2, k - 1))
    data = xgb.QuantileDMatrix(x, label=y)
    booster = xgb.Booster({"objective": "multi:softprob", "num_class": k}, [data])
    rounds = iter(range(10))
    whole = best(lambda: booster.update(data, next(rounds)))
    print(f"{n:,} rows, 10 features, {k} classes: a round of multi:softprob {whole:.2f} s")
    margins = booster.predict(data, output_margin=True)
    for rule in ("log_score", "brier", "rps", "spherical", "ranked_log"):
        objective = xgboost_objective(rule)
        own = best(lambda objective=objective: objective(y, margins))
        print(f"{rule:<12}{own:6.2f} s, {own / whole:.0%} of it")


if __name__ == "__main__":
    main()
