"""Top lists with their calibration: how fast against a pass and a sort, and against dense rows; how large.

Every figure is a ratio, a time with its promise, or a size. `--quick` uses a tenth of the rows.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable

import numpy as np

import verax as vx
from machine import describe

M, K = 128_256, 20
RULES = [vx.padded(rule) for rule in (vx.brier, vx.log_score, vx.spherical, vx.pbs)]
ROUNDS = 5


def seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def lists_of(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Random lists in no order, as arrays, and outcomes that two thirds of them list."""
    rng = np.random.default_rng(0)
    block = M // K
    classes = rng.integers(0, block, (n, K)) + np.arange(K) * block
    confidences = rng.dirichlet(np.full(K + 1, 0.3), n)[:, :K].copy()
    y = np.where(rng.random(n) < 2 / 3, classes[np.arange(n), rng.integers(0, K, n)], rng.integers(0, M, n))
    return classes, confidences, y


def plain_pass(classes: np.ndarray, confidences: np.ndarray) -> None:
    classes.sum()
    confidences.sum()


def score(y: np.ndarray, lists: vx.TopLists) -> object:
    return vx.evaluate(y, lists, rules=RULES)


def calibration(y: np.ndarray, lists: vx.TopLists) -> object:
    """Curves and tests of every place, of any place and of the whole list."""
    return vx.reliability(y, lists, places=K, resamples=0)


def everything(y: np.ndarray, classes: np.ndarray, confidences: np.ndarray, m: int = M) -> object:
    lists = vx.TopLists.from_arrays(classes, confidences, n_classes=m)
    return vx.evaluate(y, lists), calibration(y, lists)


def build_and_score(y: np.ndarray, classes: np.ndarray, confidences: np.ndarray) -> object:
    return score(y, vx.TopLists.from_arrays(classes, confidences, n_classes=M))


def dense(y: np.ndarray, lists: vx.TopLists) -> object:
    return vx.evaluate(y, lists.padded(), rules=[rule.rule for rule in RULES])


def speed(n: int) -> None:
    classes, confidences, y = lists_of(n)
    few = n // 20
    small = seconds(lambda: everything(y[:few], classes[:few], confidences[:few]))
    first = seconds(lambda: everything(y, classes, confidences))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    lists = vx.TopLists.from_arrays(classes, confidences, n_classes=M)
    whole, ours, scoring, calibrating, reading, sorting = [], [], [], [], [], []
    for _ in range(ROUNDS):
        whole.append(seconds(lambda: everything(y, classes, confidences)))
        ours.append(seconds(lambda: build_and_score(y, classes, confidences)))
        calibrating.append(seconds(lambda: calibration(y, lists)))
        scoring.append(seconds(lambda: score(y, lists)))
        reading.append(seconds(lambda: plain_pass(classes, confidences)))
        sorting.append(seconds(lambda: np.sort(confidences, axis=1)))
    extra = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 2**20
    base = min(reading) + min(sorting)
    size = (classes.nbytes + confidences.nbytes) / 2**30
    print(f"{n:,} lists of {K} over {M:,} classes; brier, log, spherical, pbs and all measures together")
    print(f"  one plain pass {min(reading):.3f} s, one sort of each list {min(sorting):.3f} s")
    card = min(whole)
    print(
        f"  the whole card with calibration, from arrays: {card:.3f} s: {card / base:.2f}x both (promise: 3x)"
    )
    print(f"  from arrays to four scores {min(ours):.3f} s: {min(ours) / base:.2f}x both")
    print(
        f"  calibration of lists already made {min(calibrating):.3f} s: {min(calibrating) / base:.2f}x both"
    )
    print(f"  scores of lists already made {min(scoring):.3f} s: {min(scoring) / base:.2f}x both")
    print(f"  first call of {few:,} lists, by array calls: {small:.2f} s")
    print(f"  first call of all, with compiling or loading: {first:.2f} s")
    print(f"  memory above the inputs ({size:.2f} GB): {extra:.2f} GB")
    huge = min(seconds(lambda: everything(y, classes, confidences, 2**60)) for _ in range(2))
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 2**20 - extra
    print(f"  the same out of 2^60 classes: {huge:.3f} s, {max(grown, 0.0):.2f} GB more")
    n_dense = 512
    some = lists[:n_dense]
    dense(y[:n_dense], some)
    slow = min(seconds(lambda: dense(y[:n_dense], some)) for _ in range(3)) * n / n_dense
    print(f"  padded to dense rows: {slow:.0f} s ({n_dense} rows, scaled)")
    print(f"    from arrays to scores is {slow / min(ours):.0f}x as fast (promise: 100x)")


def label_sets() -> None:
    q = np.random.default_rng(0).beta(0.3, 3, (2203, 71))
    spent = min(seconds(lambda: vx.TopLists.from_label_probabilities(q, 50)) for _ in range(3))
    print(f"50 most likely label sets, 2,203 rows x 71 labels: {spent:.2f} s (promise: under 2)")


def main() -> None:
    print(describe())
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    speed(100_000 if parser.parse_args().quick else 1_000_000)
    label_sets()


if __name__ == "__main__":
    main()
