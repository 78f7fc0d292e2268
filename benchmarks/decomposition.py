"""Decompositions of 1,000,000 x 5 forecasts, as a ratio to the sorts that they cannot do without.

The sorts are NumPy's `argsort` of every class or threshold, of the same arrays in the same run.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable

import numpy as np

import verax as vx
from machine import describe

N, K = 1_000_000, 5


def best(run: Callable[[], object], times: int = 3) -> float:
    spent = []
    for _ in range(times):
        start = time.perf_counter()
        run()
        spent.append(time.perf_counter() - start)
    return min(spent)


def main() -> None:
    print(describe())
    rng = np.random.default_rng(0)
    z = rng.normal(size=(N, K))
    p = np.exp(z)
    p /= p.sum(axis=1, keepdims=True)
    y = (rng.random((N, 1)) > np.cumsum(p, axis=1)).sum(axis=1).clip(0, K - 1)
    columns = np.ascontiguousarray(p.T)
    thresholds = np.ascontiguousarray(np.cumsum(p, axis=1).T[:-1])
    vx.decompose(y, p, rule="brier")  # what is compiled or imported once
    for rule, events in (("brier", columns), ("rps", thresholds), ("log_score", columns)):
        sorts = best(lambda events=events: [np.argsort(event) for event in events])
        ours = best(lambda rule=rule: vx.decompose(y, p, rule=rule))
        print(f"{rule}: {ours:.2f} s; {len(events)} sorts {sorts:.2f} s; {ours / sorts:.2f}x (promise: 5x)")
    small = slice(0, 20_000)
    start = time.perf_counter()
    vx.decompose(y[small], p[small], rule="rps", bootstrap=200)
    print(f"20,000 x 5, rps, 200 replicates and 200 calibrated draws: {time.perf_counter() - start:.2f} s")
    start = time.perf_counter()
    vx.reliability(y, p, ordered=True)
    print(f"reliability curves of {N:,} x {K} with bands: {time.perf_counter() - start:.2f} s")
    print(f"memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB for the whole process")


if __name__ == "__main__":
    main()
