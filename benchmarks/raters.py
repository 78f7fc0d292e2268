"""How long the card of outcomes of several raters takes, beside that of single outcomes.

    python benchmarks/raters.py [rows]

The ordered card of 5,000,000 rows of 5 classes, best of seven; a row has shares of all classes, or the
numbers of five raters.
"""

from __future__ import annotations

import sys
import time

import numpy as np

import verax as vx

ROUNDS = 7


def main(n: int) -> None:
    """Print the times, and how many times those of single outcomes they are."""
    rng = np.random.default_rng(0)
    p, y = rng.dirichlet(np.ones(5), n), rng.integers(0, 5, n)
    shares, counts = rng.dirichlet(np.ones(5), n), rng.multinomial(5, [0.1, 0.2, 0.3, 0.3, 0.1], n)
    calls = {
        "single outcomes": lambda: vx.evaluate(y, p, ordered=True),
        "shares": lambda: vx.evaluate(shares, p, ordered=True),
        "five raters": lambda: vx.evaluate(counts, p, ordered=True, raters="counts"),
    }
    found = {name: [(np.inf, np.inf)] for name in calls}
    # By turns, so that what else the machine does is the same for all.
    for turn in range(ROUNDS + 1):
        for name, call in calls.items():
            wall, own = time.perf_counter(), time.process_time()
            call()
            spent = time.perf_counter() - wall, time.process_time() - own
            found[name] += [spent] if turn else []
    print(f"{n:,} rows, 5 ordered classes")
    best = {name: np.min(times, axis=0) for name, times in found.items()}
    for name, (wall, own) in best.items():
        ratios = best[name] / best["single outcomes"]
        print(f"{name:18} {wall:.3f} s, processor {own:.3f} s: {ratios[0]:.2f} and {ratios[1]:.2f} times")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5_000_000)
