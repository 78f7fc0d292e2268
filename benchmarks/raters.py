"""How long the card of outcomes of several raters takes, beside that of single outcomes.

    python benchmarks/raters.py [rows]

The ordered card of 5,000,000 rows of 5 classes, best of five; a row has shares of all classes, or the
numbers of five raters.
"""

from __future__ import annotations

import sys
import time

import numpy as np

import verax as vx


def best(y: object, p: object, **options: object) -> tuple[float, float]:
    """The least wall time and processor time of five cards, in seconds."""
    found = []
    for _ in range(5):
        wall, own = time.perf_counter(), time.process_time()
        vx.evaluate(y, p, ordered=True, **options)
        found.append((time.perf_counter() - wall, time.process_time() - own))
    return min(wall for wall, _ in found), min(own for _, own in found)


def main(n: int) -> None:
    """Print the times, and how many times those of single outcomes they are."""
    rng = np.random.default_rng(0)
    p, y = rng.dirichlet(np.ones(5), n), rng.integers(0, 5, n)
    shares, counts = rng.dirichlet(np.ones(5), n), rng.multinomial(5, [0.1, 0.2, 0.3, 0.3, 0.1], n)
    hard = best(y, p)
    print(f"{n:,} rows, 5 ordered classes")
    print(f"single outcomes    {hard[0]:.3f} s, processor {hard[1]:.3f} s")
    for name, own, options in (("shares", shares, {}), ("five raters", counts, {"raters": "counts"})):
        wall, used = best(own, p, **options)
        times = f"{wall / hard[0]:.2f} and {used / hard[1]:.2f} times"
        print(f"{name:18} {wall:.3f} s, processor {used:.3f} s: {times}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5_000_000)
