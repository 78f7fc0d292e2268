"""Ids of two files matched, against a merge of pandas on the same column; processor time, runs in turn.

    python benchmarks/ids.py [--rows 1000000]

Both match the same ids in another order: `pandas.merge` finds the pairs of rows, `numbered` numbers ids by
their values, and the places of each are looked up.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
import pandas as pd

from machine import describe
from verax.common.ids import numbered

ROUNDS = 5


def columns(n: int) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Ids of several kinds, in two orders."""
    order = np.random.default_rng(0).permutation(n)
    whole = np.arange(n) * 7 + 10**6
    kinds = {
        "whole numbers": whole,
        "texts of numbers": whole.astype(str).astype(object),
        "texts": np.array([f"patient-{i:08d}" for i in whole], object),
    }
    return {name: (ids, ids[order]) for name, ids in kinds.items()}


def matched(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The places in `b` of the rows of `a`."""
    (left, right), n = numbered([a, b])
    places = np.zeros(n, np.int64)
    places[right] = np.arange(len(right))
    return places[left]


def merged(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The same by pandas."""
    left, right = pd.DataFrame({"id": a}), pd.DataFrame({"id": b, "place": np.arange(len(b))})
    return left.merge(right, on="id", how="left")["place"].to_numpy()


def spent(call: Callable[[], object]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    n = parser.parse_args().rows
    print(describe())
    for name, (a, b) in columns(n).items():
        assert (matched(a, b) == merged(a, b)).all()
        runs = [
            (spent(lambda a=a, b=b: matched(a, b)), spent(lambda a=a, b=b: merged(a, b)))
            for _ in range(ROUNDS)
        ]
        ours, theirs = (min(column) for column in zip(*runs, strict=True))
        print(f"{name:20} {n:,} rows: verax {ours:.2f} s, pandas {theirs:.2f} s, ratio {ours / theirs:.2f}")


if __name__ == "__main__":
    main()
