"""A monitor over daily files against the card of the same files, and small updates.

    python benchmarks/monitoring.py [--rows 10000000] [--days 20]

Prints processor seconds and their ratio, measured in one run by turns, and how much memory a monitor adds.
"""

from __future__ import annotations

import argparse
import resource
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
    """All files at once, as the card reads them."""
    days = vx.scan(f"{folder}/day-*.parquet", target="label", by="day")
    vx.Monitor(0.8, rule="brier").update(days, time="day")


def one_by_one(folder: Path) -> None:
    """A file at a time, in one process."""
    watched = vx.Monitor(0.8, rule="brier")
    for path in sorted(folder.glob("day-*.parquet")):
        watched.update(vx.scan(path, target="label", by="day"), time="day")


def spent(works, folder: Path) -> list[float]:
    """Processor seconds of each work, the best of five turns."""
    found = [[] for _ in works]
    for _ in range(5):
        for work, own in zip(works, found, strict=True):
            start = time.process_time()
            work(folder)
            own.append(time.process_time() - start)
    return [min(own) for own in found]


def peak() -> float:
    """The most memory that this process held, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--days", type=int, default=20)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_days(folder, asked.rows, asked.days)
        card(folder)
        before = peak()
        monitor(folder), one_by_one(folder)
        after = peak()
        a, b, c = spent((card, monitor, one_by_one), folder)
    print(f"{asked.rows:,} x {K} in {asked.days} files: card {a:.2f} s")
    print(f"monitor, all files at once: {b:.2f} s, {b / a:.2f}x")
    print(f"monitor, file by file: {c:.2f} s, {c / a:.2f}x")
    print(f"memory: {before:.0f} MB after the card, {after:.0f} MB after the monitor")
    rng = np.random.default_rng(1)
    p = rng.dirichlet(np.ones(K), 1000)
    y = (p.cumsum(axis=1) > rng.random((1000, 1))).argmax(axis=1)
    watched = vx.Monitor(0.8, rule="brier")
    each = []
    for step in range(200):
        start = time.process_time()
        watched.update(y, p, time=step)
        each.append(1000 * (time.process_time() - start))
    print(f"update of 1,000 rows: {np.median(each):.1f} ms (median of 200)")


if __name__ == "__main__":
    main()
