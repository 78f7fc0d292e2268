"""The report of one model: time and memory, and its time as a ratio to one pass of the card.

    python benchmarks/report.py [rows] [classes]

In a process of its own for each part, so that peak memory is that of the report with its rows.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import verax as vx
from machine import describe


def forecasts(n: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Overconfident forecasts, made in blocks so that making them does not set the peak of memory."""
    rng = np.random.default_rng(0)
    y, p = np.empty(n, np.int64), np.empty((n, k))
    for start in range(0, n, 2**16):
        part = slice(start, min(n, start + 2**16))
        z = 1.5 * rng.normal(size=(part.stop - start, k))
        truth = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
        y[part] = (rng.random((len(z), 1)) > np.cumsum(truth, axis=1)[:, :-1]).sum(axis=1)
        p[part] = truth**1.3 / (truth**1.3).sum(axis=1, keepdims=True)
    return y, p


def child(part: str, n: int, k: int) -> None:
    y, p = forecasts(n, k)
    if part == "report":
        with tempfile.TemporaryDirectory() as folder:
            start = time.perf_counter()
            vx.report.Report.of(y, p).save(Path(folder, "report.html"))
            taken = time.perf_counter() - start
    else:
        taken = float("inf")
        for _ in range(3):
            start = time.perf_counter()
            vx.evaluate(y, p).to_dict()
            taken = min(taken, time.perf_counter() - start)
    print(json.dumps([taken, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]))


def main() -> None:
    n, k = (int(float(a)) for a in (*sys.argv[1:], *("1000000", "10")[len(sys.argv) - 1 :]))
    print(describe())
    found = {}
    for part in ("card", "report"):
        command = [sys.executable, __file__, "--child", part, str(n), str(k)]
        found[part] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    for part, (taken, peak) in found.items():
        print(f"{n:,} x {k}: {part:<8}{taken:7.2f} s{peak:7.0f} MB{taken / found['card'][0]:7.1f} cards")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
    else:
        main()
