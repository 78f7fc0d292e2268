"""Very many groups: CPU seconds of the pass, of the card with its intervals, and of merging through bytes.

Compared with the same rows without groups and with one sort of the groups.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import verax as vx
from machine import describe


def cpu(work: Callable[[], Any], times: int = 3) -> tuple[float, Any]:
    """The least CPU seconds of all threads, and what was made."""
    found, least = None, float("inf")
    for _ in range(times):
        start = time.process_time()
        found = work()
        least = min(least, time.process_time() - start)
    return least, found


def measure(n_groups: int, n_classes: int, per_group: int = 3) -> None:
    rng = np.random.default_rng(0)
    n = n_groups * per_group
    p = rng.random((n, n_classes))
    p /= p.sum(axis=1, keepdims=True)
    y, groups = rng.integers(0, n_classes, n), rng.integers(0, n_groups, n)
    for _ in range(3):
        vx.evaluate(y, p, ordered=True)
    plain, _ = cpu(lambda: vx.evaluate(y, p, ordered=True))
    sort, _ = cpu(lambda: np.unique(groups, return_inverse=True))
    grouped, tally = cpu(lambda: vx.Tally.of(y, p, groups=groups, ordered=True))
    # A card keeps its intervals, so each time is that of a new one.
    card, _ = cpu(lambda: str(vx.Tally.from_bytes(tally.to_bytes()).card()))
    stored, data = cpu(tally.to_bytes)
    read, _ = cpu(lambda: vx.Tally.from_bytes(data))
    merged, _ = cpu(lambda: tally + tally)
    print(
        f"{n_groups:,} groups, {n:,} x {n_classes}: pass {grouped:.2f} s (without groups {plain:.2f} s, sort "
        f"{sort:.2f} s), intervals {card - stored - read:.2f} s, to bytes {stored:.2f} s "
        f"({len(data) / 1e6:.0f} MB), from bytes {read:.2f} s, merge {merged:.2f} s"
    )


def main() -> None:
    print(describe())
    measure(400_000, 5)
    measure(100_000, 5)
    measure(20_000, 40)


if __name__ == "__main__":
    main()
