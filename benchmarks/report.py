"""The report of one model: time and memory, and its time as a ratio to one pass of the card.

    python benchmarks/report.py [rows] [classes]
    python benchmarks/report.py --file [rows] [classes]     of a Parquet file, which is not held in memory
    python benchmarks/report.py --units [rows] [classes]    the same with weights, and with groups of ten rows

In a process of its own for each part, so that peak memory is that of the report with its rows. Of a file, by
the command line; 100,000,000 rows of 5 classes take 4 GB of disk and a few minutes to write.
"""

from __future__ import annotations

import json
import os
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


def write(path: Path, n: int, k: int, *, units: bool = False) -> None:
    """A Parquet file of overconfident forecasts, written in chunks; with columns of weights and groups."""
    # Here, because the report of rows in memory does not need it, and it would count as memory of the report.
    import pyarrow as pa
    import pyarrow.parquet as papq

    rng, writer = np.random.default_rng(0), None
    for start in range(0, n, 2**20):
        e = rng.standard_gamma(0.5, (min(2**20, n - start), k)) + 1e-12
        truth = e / e.sum(axis=1, keepdims=True)
        y = (rng.random((len(e), 1)) > np.cumsum(truth, axis=1)[:, :-1]).sum(axis=1)
        p = truth**1.3
        p /= p.sum(axis=1, keepdims=True)
        columns = {"label": y, **{f"p_{j}": np.ascontiguousarray(p[:, j]) for j in range(k)}}
        if units:
            columns |= {"weight": rng.random(len(y)) + 0.5, "group": np.arange(start, start + len(y)) // 10}
        table = pa.table(columns)
        writer = writer or papq.ParquetWriter(path, table.schema, use_dictionary=["label"])
        writer.write_table(table)
    assert writer is not None
    writer.close()


def run(*words: str) -> tuple[float, float, float]:
    """Seconds, CPU seconds and peak memory in MB of a command of verax."""
    start = time.perf_counter()
    with subprocess.Popen([sys.executable, "-m", "verax", *words], stdout=subprocess.DEVNULL) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"verax {' '.join(words)} failed")
    return time.perf_counter() - start, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def of_file(n: int, k: int) -> None:
    """The report on a file against the card of the same file."""
    with tempfile.TemporaryDirectory() as folder:
        path, page = Path(folder, "predictions.parquet"), str(Path(folder, "report.html"))
        write(path, n, k)
        for order in ([], ["--ordered"]):
            # The first run of each compiles its kernels and finds the file on disk.
            cards = [run("evaluate", str(path), *order) for _ in range(3)][1:]
            reports = [run("evaluate", str(path), *order, "--html", page) for _ in range(2)][1:]
            card, report = min(cards), min(reports)
            for name, (seconds, cpu, peak) in (("card", card), ("report", report)):
                what = f"{n:,} x {k} in a file{', ordered' if order else '':<10}{name:<8}"
                ratios = f"{seconds / card[0]:6.1f} cards{cpu / card[1]:6.1f} in CPU"
                print(f"{what}{seconds:7.1f} s{cpu:7.1f} s CPU{peak:7.0f} MB{ratios}", flush=True)


def of_units(n: int, k: int) -> None:
    """The ordered report on a file with weights and with groups against the plain one."""
    with tempfile.TemporaryDirectory() as folder:
        path, page = Path(folder, "predictions.parquet"), str(Path(folder, "report.html"))
        write(path, n, k, units=True)
        plain = 0.0
        for name, units in (
            ("plain", ()),
            ("weights", ("--weights", "weight")),
            ("groups", ("--groups", "group")),
        ):
            command = "evaluate", str(path), "--ordered", *units, "--html", page
            seconds, cpu, peak = min([run(*command) for _ in range(2)][1:])
            plain = plain or cpu
            times = f"{seconds:7.1f} s{cpu:7.1f} s CPU{peak:7.0f} MB{cpu / plain:6.1f} of the plain report"
            print(f"{n:,} x {k} in a file, ordered: report, {name:<8}{times}", flush=True)


def main() -> None:
    if sys.argv[1:2] in (["--file"], ["--units"]):
        given = sys.argv[2:]
        print(describe())
        measure, rows = (of_file, "100000000") if sys.argv[1] == "--file" else (of_units, "4000000")
        measure(*(int(float(a)) for a in (*given, *(rows, "5")[len(given) :])))
        return
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
