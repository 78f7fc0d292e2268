"""Files larger than memory: time against pyarrow merely reading the same columns, and peak memory.

Every measurement is a process of its own. Warm: the file is in the page cache, so that reading is decoding
alone; cold: it was dropped from there before, as any file larger than memory is.

What is scored is the default card of ordered classes.

    python benchmarks/files.py [rows]        10,000,000 by default; 100,000,000 takes 9 GB of disk
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
import pyarrow as pa
import pyarrow.parquet as papq

from machine import describe

K = 5
COLUMNS = ["label", *(f"p_{j}" for j in range(K))]
REPEATS = 3


def generate(n: int, dtype: str, folder: Path) -> None:
    """A Parquet file with the defaults of pyarrow, and the same probabilities as .npy beside the outcomes."""
    parquet, npy = folder / f"{dtype}.parquet", folder / f"{dtype}.npy"
    kind = np.dtype(dtype)
    schema = pa.schema([("label", pa.int8()), *((f"p_{j}", pa.from_numpy_dtype(kind)) for j in range(K))])
    rng = np.random.default_rng(0)
    p_out = np.lib.format.open_memmap(npy, "w+", kind, (n, K))
    y_out = np.lib.format.open_memmap(folder / "y.npy", "w+", np.int8, (n,))
    with papq.ParquetWriter(parquet, schema) as writer:
        for start in range(0, n, 2**20):
            m = min(2**20, n - start)
            e = rng.standard_exponential((m, K))
            p = (e / e.sum(axis=1, keepdims=True)).astype(kind)
            y = (rng.random((m, 1)) > np.cumsum(p, axis=1)[:, :-1]).sum(axis=1).astype(np.int8)
            columns = [pa.array(y), *(pa.array(np.ascontiguousarray(p[:, j])) for j in range(K))]
            writer.write_table(pa.table(columns, schema=schema))
            p_out[start : start + m], y_out[start : start + m] = p, y


def drop(path: Path) -> None:
    """Take a file out of the page cache."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def same_batches(path: Path) -> int:
    from verax.files.formats.columnar import BUFFER

    file = papq.ParquetFile(path, pre_buffer=False, buffer_size=BUFFER)
    return sum(batch.num_rows for batch in file.iter_batches(2**17, columns=COLUMNS))


def data_set(path: Path) -> int:
    # Here, because verax does not need it, and it would count as memory of verax.
    import pyarrow.dataset as pads

    return sum(batch.num_rows for batch in pads.dataset(path).to_batches(columns=COLUMNS))


def nothing_but_numpy(path: Path) -> int:
    p = np.load(path, mmap_mode="r")
    return sum(len(np.array(p[start : start + 2**17])) for start in range(0, len(p), 2**17))


def score(path: Path) -> int:
    import verax as vx

    target = {"target": "y.npy"} if path.suffix == ".npy" else {}
    return vx.evaluate(vx.scan(path, **target), ordered=True).n_rows


WAYS = {f.__name__: f for f in (same_batches, data_set, nothing_but_numpy, score)}


def child(way: str, path: str, cold: str) -> None:
    work = WAYS[way]
    best = None
    for _ in range(REPEATS):
        if cold == "cold":
            drop(Path(path))
        wall, cpu = time.perf_counter(), time.process_time()
        work(Path(path))
        taken = (time.perf_counter() - wall, time.process_time() - cpu)
        best = taken if best is None else min(best, taken)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps([*best, peak]))


def measure(way: str, path: Path, cold: str) -> list[float]:
    return json.loads(run("--child", way, str(path), cold))


def run(*arguments: str) -> str:
    command = [sys.executable, __file__, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def main(n: int) -> None:
    print(describe())
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as name:
        print(f"{n:,} x {K}; best of {REPEATS}\n")
        print(f"{'file':<18}{'cache':<7}{'what':<20}{'wall s':>8}{'cpu s':>8}{'peak MB':>9}{'ratio':>7}")
        for dtype in ("float64", "float32"):
            folder = Path(name, dtype)
            folder.mkdir()
            # In a process of its own: a child's peak memory is never below what its parent held.
            run("--generate", str(n), dtype, str(folder))
            parquet, npy = folder / f"{dtype}.parquet", folder / f"{dtype}.npy"
            # What compiling takes, and how much memory, is not the question here: it is done once, and kept.
            for path in (parquet, npy):
                measure("score", path, "warm")
            for path, ways in (
                (parquet, ("same_batches", "data_set", "score")),
                (npy, ("nothing_but_numpy", "score")),
            ):
                for cold in ("warm", "cold"):
                    base = None
                    for way in ways:
                        wall, cpu, peak = measure(way, path, cold)
                        base = wall if base is None else base
                        label = f"{path.name:<18}{cold:<7}{way.replace('_', ' '):<20}"
                        print(f"{label}{wall:>8.2f}{cpu:>8.2f}{peak:>9.0f}{wall / base:>7.2f}", flush=True)
            for path in folder.iterdir():
                path.unlink()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(*sys.argv[2:])
    elif sys.argv[1:2] == ["--generate"]:
        generate(int(sys.argv[2]), sys.argv[3], Path(sys.argv[4]))
    else:
        main(int(float(sys.argv[1])) if len(sys.argv) > 1 else 10_000_000)
