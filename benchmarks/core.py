"""How fast and how large: verax against its peers, in one run on the same arrays.

Every figure is a ratio or a size. `make bench` prints the table; `--quick` uses a tenth of the rows.
"""

from __future__ import annotations

import argparse
import math
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import scoringrules
from sklearn.metrics import brier_score_loss, cohen_kappa_score, log_loss

import verax as vx
from machine import describe
from verax.engines.tally import Tally

RULES = ["brier", "log", "spherical", "rps", "sa_rps", "pbs", "pll"]
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
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(k), n).astype(dtype)
    y = rng.integers(0, k, n)
    warm_up = seconds(lambda: vx.evaluate(y, p, rules=RULES, ordered=True))
    ours, theirs, read = [], [], []
    for _ in range(ROUNDS):
        ours += [seconds(lambda: vx.evaluate(y, p, rules=RULES, ordered=True)) for _ in range(3)]
        read += [plain_read(p) for _ in range(3)]
        theirs.append(peers(y, p))
    us, them = min(ours), min(theirs)
    print(
        f"{name:<26}{us * 1e3:>9.1f} ms{them * 1e3:>11.1f} ms{them / us:>9.1f}x faster"
        f"{us / min(read):>8.1f}x a plain read   (first call {warm_up:.2f} s)"
    )


def memory(n: int) -> None:
    p, y = np.full((n, 5), 0.2, np.float32), np.zeros(n, np.int8)
    vx.evaluate(y[:200_000], p[:200_000], ordered=True)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    vx.evaluate(y, p, ordered=True)
    extra = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(f"memory above the inputs, {n:,} x 5 float32: {extra:.1f} MB (promise: under 64)")


def fresh(code: str) -> float:
    """The best of five fresh processes that each print a number of seconds."""
    runs = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        for _ in range(5)
    ]
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


def accuracy(n: int) -> None:
    rng = np.random.default_rng(0)
    block = 1_000_000
    tally, exact = Tally([vx.brier, vx.log_score], 2, counts=False), ([], [])
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
    print("brier, log, spherical, rps, sa_rps, pbs, pll, accuracy and confusion counts, validated, against")
    print("scikit-learn log_loss + brier_score_loss + cohen_kappa_score and scoringrules rps_score")
    print(f"{'':<26}{'verax':>12}{'peers':>14}")
    memory(20_000_000 // scale)
    speed("5,000,000 x 5 float64", 5_000_000 // scale, 5, np.float64)
    speed("5,000,000 x 5 float32", 5_000_000 // scale, 5, np.float32)
    speed("20,000 x 1,000 float64", 20_000 // scale, 1000, np.float64)
    start_up()
    accuracy(100_000_000 // scale)


if __name__ == "__main__":
    main()
