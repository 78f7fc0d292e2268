"""Prediction sets: how long it takes to judge a million of them, and to make them by conformal prediction.

`--quick` uses a tenth of the rows.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

import verax as vx
from machine import describe

N, K = 1_000_000, 100
# Seconds in which a million sets of 100 classes are to be judged.
PROMISED = 1.0


def seconds(call: Callable[[], object]) -> float:
    """Processor time, the least of three runs."""
    found = []
    for _ in range(3):
        start = time.process_time()
        call()
        found.append(time.process_time() - start)
    return min(found)


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    n = N // 10 if parser.parse_args().quick else N
    rng = np.random.default_rng(0)
    mask, y = rng.random((n, K)) < 0.05, rng.integers(0, K, n)
    print(describe())
    plain = seconds(lambda: vx.evaluate_sets(y, mask, level=0.9))
    print(f"judge {n:,} sets of {K} classes: {plain:.2f} s (promised for a million: {PROMISED:g} s)")
    ordered = seconds(lambda: vx.evaluate_sets(y, mask, level=0.9, ordered=True))
    print(f"the same of ordered classes: {ordered:.2f} s")
    p = rng.dirichlet(np.ones(10), n)
    happened = rng.integers(0, 10, n)
    made = vx.conformal(happened, p)
    print(f"calibrate on {n:,} rows of 10 classes: {seconds(lambda: vx.conformal(happened, p)):.2f} s")
    print(f"make {n:,} sets of 10 classes: {seconds(lambda: made.apply(p)):.2f} s")


if __name__ == "__main__":
    main()
