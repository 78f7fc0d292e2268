"""One rule at a time, beside a plain compiled loop that does the same: ratios of processor time in one run.

    python benchmarks/rules.py [--classes 2 5 20] [--numbers 10000000] [--rules brier rps] [--rounds 9]

The plain loop checks that probabilities are not negative and sum to one, and adds up the loss: a dozen lines
that anybody would write with numba. `p.sum()` is what reading the numbers costs. The calls take turns.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numba
import numpy as np

import verax as vx
from machine import describe

CLASSES = (2, 5, 10, 20, 50, 100, 1000)


@numba.njit
def plain_brier(y: Any, p: Any) -> float:
    loss = 0.0
    for i in range(len(y)):
        total, squares = 0.0, 0.0
        for j in range(p.shape[1]):
            v = p[i, j]
            if v < 0:
                raise ValueError("negative")
            total += v
            squares += v * v
        if not abs(total - 1) < 1e-6:
            raise ValueError("sum")
        loss += squares + 1 - 2 * p[i, y[i]]
    return loss / len(y)


@numba.njit
def plain_rps(y: Any, p: Any) -> float:
    loss = 0.0
    for i in range(len(y)):
        total = 0.0
        for j in range(p.shape[1]):
            v = p[i, j]
            if v < 0:
                raise ValueError("negative")
            total += v
            error = total - (1.0 if j >= y[i] else 0.0)
            loss += error * error
        if not abs(total - 1) < 1e-6:
            raise ValueError("sum")
    return loss / len(y) / (p.shape[1] - 1)


@numba.njit
def plain_log(y: Any, p: Any) -> float:
    loss = 0.0
    for i in range(len(y)):
        total = 0.0
        for j in range(p.shape[1]):
            v = p[i, j]
            if v < 0:
                raise ValueError("negative")
            total += v
        if not abs(total - 1) < 1e-6:
            raise ValueError("sum")
        loss -= np.log(p[i, y[i]])
    return loss / len(y)


CALLS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "brier": (vx.brier, plain_brier),
    "rps": (vx.rps, plain_rps),
    "log_score": (vx.log_score, plain_log),
    "evaluate": (vx.evaluate, plain_brier),
    "ordered": (lambda y, p: vx.evaluate(y, p, ordered=True), plain_rps),
}


def by_turns(calls: list[Callable[[], object]], rounds: int) -> list[float]:
    """The least processor time of each call, in milliseconds; the first two rounds do not count."""
    found: list[list[float]] = [[] for _ in calls]
    for turn in range(rounds + 2):
        for call, own in zip(calls, found, strict=True):
            start = time.process_time()
            call()
            if turn > 1:
                own.append(1e3 * (time.process_time() - start))
    return [min(own) for own in found]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--classes", type=int, nargs="+", default=CLASSES)
    parser.add_argument("--numbers", type=int, default=10_000_000)
    parser.add_argument("--rules", nargs="+", default=list(CALLS))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--dtype", default="float64")
    asked = parser.parse_args()
    print(describe())
    print(f"{'':24}{'ms':>8}{'plain':>8}{'p.sum()':>9}{'of plain':>10}{'of sum':>8}")
    rng = np.random.default_rng(0)
    for k in asked.classes:
        p = rng.standard_exponential((asked.numbers // k, k)).astype(asked.dtype)
        p /= p.sum(axis=1, keepdims=True)
        y = rng.integers(0, k, len(p))
        for name in asked.rules:
            call, plain = CALLS[name]
            own, base, read = by_turns([partial(call, y, p), partial(plain, y, p), p.sum], asked.rounds)
            size = f"{name} {len(p):,} x {k}"
            print(f"{size:24}{own:8.1f}{base:8.1f}{read:9.1f}{own / base:10.2f}{own / read:8.2f}", flush=True)


if __name__ == "__main__":
    main()
