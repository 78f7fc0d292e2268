"""A monitor over daily files against the card of the same files, and small updates.

    python benchmarks/monitoring.py [--rows 10000000] [--days 20]

Prints processor seconds and their ratio, measured in one run.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as papq

import verax as vx

K = 5


def write_days(folder: Path, rows: int, days: int) -> None:
    """Calibrated forecasts, a file a day."""
    rng = np.random.default_rng(0)
    for day in range(days):
        p = rng.dirichlet(np.ones(K), rows // days)
        y = (p.cumsum(axis=1) > rng.random((len(p), 1))).argmax(axis=1)
        columns = {"label": y, "day": np.full(len(p), day), **{f"p_{k}": p[:, k] for k in range(K)}}
        papq.write_table(pa.table(columns), folder / f"day-{day:03}.parquet")


def card(folder: Path) -> None:
    vx.evaluate(vx.scan(f"{folder}/day-*.parquet", target="label"))


def monitor(folder: Path) -> None:
    watched = vx.Monitor(0.8, rule="brier")
    for path in sorted(folder.glob("day-*.parquet")):
        watched.update(vx.scan(path, target="label", by="day"), time="day")


def spent(work, *arguments) -> float:
    """Processor seconds, the best of three."""
    found = []
    for _ in range(3):
        start = time.process_time()
        work(*arguments)
        found.append(time.process_time() - start)
    return min(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--days", type=int, default=20)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_days(folder, asked.rows, asked.days)
        card(folder), monitor(folder)
        a, b = spent(card, folder), spent(monitor, folder)
    print(f"{asked.rows:,} x {K} in {asked.days} files: card {a:.2f} s, monitor {b:.2f} s, {b / a:.2f}x")
    rng = np.random.default_rng(1)
    p = rng.dirichlet(np.ones(K), 1000)
    y = (p.cumsum(axis=1) > rng.random((1000, 1))).argmax(axis=1)
    watched = vx.Monitor(0.8, rule="brier")
    start = time.process_time()
    for step in range(200):
        watched.update(y, p, time=step)
    print(f"update of 1,000 rows: {5 * (time.process_time() - start):.1f} ms")


if __name__ == "__main__":
    main()
