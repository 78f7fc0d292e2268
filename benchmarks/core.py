"""How fast and how large: verax against its peers, in one run on the same arrays.

Every figure is a ratio or a size. `make bench` prints the table; `--quick` uses a tenth of the rows.
"""

from __future__ import annotations

import argparse
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import scoringrules
from sklearn.metrics import brier_score_loss, cohen_kappa_score, log_loss

import verax as vx
from machine import describe
from verax.engines.tally import RuleSums

RULES = ["brier", "log_score", "spherical", "rps", "sa_rps", "pbs", "pll"]
ROUNDS = 3


def seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def peers(y: np.ndarray, p: np.ndarray) -> float:
    """The sum of the four calls that people make today."""
    labels = np.arange(p.shape[1])
    return sum(
        (
            seconds(lambda: log_loss(y, p, labels=labels)),
            seconds(lambda: brier_score_loss(y, p, labels=labels)),
            seconds(lambda: cohen_kappa_score(y, p.argmax(axis=1), labels=labels, weights="quadratic")),
            seconds(lambda: scoringrules.rps_score(y + 1, p)),
        )
    )


def plain_read(p: np.ndarray) -> float:
    """Two threads that do nothing but read the memory."""
    halves = np.array_split(p.reshape(-1), 2)
    with ThreadPoolExecutor(2) as pool:
        return seconds(lambda: list(pool.map(np.sum, halves)))


def speed(name: str, n: int, k: int, dtype: type) -> None:
    """Several calls on one set of arrays, each against the peers' four calls in the same run."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(k), n).astype(dtype)
    y = rng.integers(0, k, n)
    names = [f"class {j}" for j in range(k)]
    logits, labels = np.log(np.maximum(p, 1e-30)), np.array(names)[y]
    calls = {
        "seven rules": lambda: vx.evaluate(y, p, rules=RULES, ordered=True),
        "default ordered card": lambda: vx.evaluate(y, p, ordered=True),
        "from logits": lambda: vx.evaluate(y, logits, ordered=True, logits=True),
        "with text labels": lambda: vx.evaluate(labels, p, ordered=True, classes=names),
        "column-major": partial(vx.evaluate, y, np.asfortranarray(p), ordered=True),
        "one rule, brier(y, p)": lambda: vx.brier(y, p),
    }
    warm_up = {call: seconds(run) for call, run in calls.items()}
    ours, theirs, read, total = {call: [] for call in calls}, [], [], []
    for _ in range(ROUNDS):
        for call, run in calls.items():
            ours[call] += [seconds(run) for _ in range(3)]
        read += [plain_read(p) for _ in range(3)]
        total += [seconds(p.sum) for _ in range(3)]
        theirs.append(peers(y, p))
    them = min(theirs)
    print(f"{name}: peers {them * 1e3:.0f} ms, p.sum() {min(total) * 1e3:.1f} ms")
    for call, times in ours.items():
        us = min(times)
        print(
            f"  {call:<24}{us * 1e3:>9.1f} ms{them / us:>9.1f}x faster{us / min(total):>8.1f}x p.sum()"
            f"{us / min(read):>8.1f}x a plain read   (first call {warm_up[call]:.2f} s)"
        )


def memory(n: int) -> None:
    p, y = np.full((n, 5), 0.2, np.float32), np.zeros(n, np.int8)
    vx.evaluate(y[:2_000_000], p[:2_000_000], ordered=True)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    vx.evaluate(y, p, ordered=True)
    extra = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(f"memory above the inputs, {n:,} x 5 float32: {extra:.1f} MB (promise: under 64)")


def fresh(code: str, *, cold: bool = False) -> float:
    """The best of five fresh processes that each print a number of seconds; `cold` without compiled code."""
    runs = []
    for _ in range(5):
        with tempfile.TemporaryDirectory() as empty:
            environment = os.environ | ({"NUMBA_CACHE_DIR": empty} if cold else {})
            command = [sys.executable, "-c", code]
            run = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
        runs.append(run)
    return min(float(run.stdout) for run in runs)


def start_up() -> None:
    clock = "import time, numpy; start = time.perf_counter(); "
    importing = fresh(clock + "import verax; print(time.perf_counter() - start)")
    print(f"import verax after numpy: {importing:.3f} s (promise: under 0.25)")
    prepare = (
        "import time, numpy as np, verax as vx; p = np.random.default_rng(0).dirichlet(np.ones(5), 1000); "
        "y = np.zeros(1000, int); start = time.perf_counter(); "
    )
    first = fresh(prepare + "vx.evaluate(y, p, ordered=True); print(time.perf_counter() - start)")
    print(f"first evaluate of 1,000 x 5 in a process: {first:.3f} s (promise: under 0.1)")
    prepare = prepare.replace("1000", "200_000")
    warm, cold = (
        fresh(prepare + "vx.evaluate(y, p, ordered=True); print(time.perf_counter() - start)", cold=cold)
        for cold in (False, True)
    )
    print(
        f"first evaluate of 200,000 x 5: {warm:.3f} s, without compiled code on disk {cold:.3f} s (under 0.3)"
    )


def accuracy(n: int) -> None:
    rng = np.random.default_rng(0)
    block = 1_000_000
    tally, exact = RuleSums([vx.brier, vx.log_score], 2, counts=False), ([], [])
    for _ in range(n // block):
        p1 = rng.random(block, dtype=np.float32)
        p = np.stack([1 - p1, p1], axis=1)
        tally.update(vx.Forecasts(np.ones(block, np.int8), p))
        wide = p.astype(np.float64)
        exact[0].append(math.fsum(((1 - wide[:, 1]) ** 2 + wide[:, 0] ** 2).tolist()))
        with np.errstate(divide="ignore"):
            log = -np.log(wide[:, 1])
        exact[1].append(math.fsum(log[np.isfinite(log)].tolist()))
    finite = tally.moments.weight.high
    error = max(abs(tally.moments.finite_mean[i] * finite[i] / math.fsum(exact[i]) - 1) for i in (0, 1))
    print(f"mean of {n:,} float32 rows against math.fsum: relative error {error:.1e} (promise: 1e-12)")


def main() -> None:
    print(describe())
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    scale = 10 if parser.parse_args().quick else 1
    print(
        "Seven rules are brier, log, spherical, rps, sa_rps, pbs and pll, with accuracy and confusion counts,"
    )
    print("validated. The peers are scikit-learn's log_loss, brier_score_loss and cohen_kappa_score and")
    print("scoringrules' rps_score, one after the other on the same probabilities.")
    memory(20_000_000 // scale)
    speed("5,000,000 x 5 float64", 5_000_000 // scale, 5, np.float64)
    speed("5,000,000 x 5 float32", 5_000_000 // scale, 5, np.float32)
    speed("20,000 x 1,000 float64", 20_000 // scale, 1000, np.float64)
    start_up()
    accuracy(100_000_000 // scale)


if __name__ == "__main__":
    main()
