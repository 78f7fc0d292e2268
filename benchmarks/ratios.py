"""What analyses cost beside the scorecard of the same rows: ratios of processor time, each within one run.

    python benchmarks/ratios.py [row ...] [--rows 4000000]

Every row is a process of its own. Without names all rows are measured; `--rows` is the size of the file.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from copy import copy
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as papq

import verax as vx
from machine import describe

ROUNDS = 3


def spent(call: Callable[[], object], rounds: int = ROUNDS) -> float:
    """The least processor time of some calls after a first one, in seconds."""
    call()
    found = []
    for _ in range(rounds):
        start = time.process_time()
        call()
        found.append(time.process_time() - start)
    return min(found)


def peak() -> float:
    """The most memory that this process held, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def against(name: str, own: float, base: float, wanted: float, more: str = "") -> None:
    print(f"{name:<52}{own:>8.2f} s{own / base:>8.2f}x  (promise: {wanted}x){more}", flush=True)


def rows(n: int, k: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    p = rng.standard_exponential((n, k))
    p /= p.sum(axis=1, keepdims=True)
    return rng.integers(0, k, n), p


def write(path: Path, n: int) -> None:
    """Two models of five classes, and a column of twenty values, written in chunks."""
    rng, writer = np.random.default_rng(0), None
    for start in range(0, n, 2**20):
        m = min(2**20, n - start)
        columns: dict[str, object] = {"label": rng.integers(0, 5, m), "site": rng.integers(0, 20, m)}
        for model in "ab":
            p = rng.standard_exponential((m, 5))
            p /= p.sum(axis=1, keepdims=True)
            columns |= {f"{model}_{j}": p[:, j] for j in range(5)}
        table = pa.table(columns)
        writer = papq.ParquetWriter(path, table.schema) if writer is None else writer
        writer.write_table(table)
    assert writer is not None
    writer.close()


def opened(models: str = "a", **options: object) -> object:
    probs = {model: [f"{model}_{j}" for j in range(5)] for model in models}
    return vx.scan(FILE, target="label", probs=probs if len(models) > 1 else probs[models], **options)


FILE = os.environ.get("VERAX_BENCHMARK_FILE", "")


def file_compare(_: int) -> None:
    card = spent(lambda: vx.evaluate(opened()), 2)
    against("file: compare two models", spent(lambda: vx.compare(opened("ab")), 2), card, 2.5)


def file_worst(_: int) -> None:
    card = spent(lambda: vx.evaluate(opened()), 2)
    against("file: worst", spent(lambda: vx.worst(opened()), 2), card, 1.3)


def file_subgroups(_: int) -> None:
    card = spent(lambda: vx.evaluate(opened()), 2)
    before = peak()
    own = spent(lambda: vx.subgroups(opened(by="site"), by="site"), 1)
    against("file: subgroups, 20 values of by", own, card, 4, f"; {before:.0f} MB, then {peak():.0f} MB")


def many_subgroups(_: int) -> None:
    y, p = rows(100_000, 5)
    for n, wanted in ((30, 0.5), (100, 2.0)):
        by = np.arange(len(y)) % n
        own = spent(lambda by=by: vx.subgroups(y, p, by=by))
        print(f"100,000 x 5, {n} subgroups: {own:.2f} s (promise: {wanted} s)", flush=True)


def options(_: int) -> None:
    y, p = rows(5_000_000, 5)
    rng = np.random.default_rng(1)
    groups, weights, by = rng.integers(0, 100_000, len(y)), rng.random(len(y)), rng.integers(0, 20, len(y))
    card = spent(lambda: vx.evaluate(y, p))
    against("5,000,000 x 5: 100,000 groups", spent(lambda: vx.evaluate(y, p, groups=groups)), card, 2)
    against("5,000,000 x 5: weights", spent(lambda: vx.evaluate(y, p, weights=weights)), card, 2)
    own = spent(lambda: vx.subgroups(y, p, by=by), 1)
    against("5,000,000 x 5: subgroups, 20 values of by", own, card, 2)


def many_classes(_: int) -> None:
    for n, k in ((20_000, 1000), (200_000, 100), (2_000_000, 10), (2_000_000, 11)):
        y, p = rows(n, k)
        read = spent(p.sum)
        for ordered in (False, True):
            own = spent(lambda y=y, p=p, ordered=ordered: vx.evaluate(y, p, ordered=ordered))
            print(
                f"{n:,} x {k}{' ordered' if ordered else ''}: {own:.3f} s, {own / n / k * 1e9:.2f} ns per "
                f"number, {own / read:.2f}x p.sum()",
                flush=True,
            )


def many_models(_: int) -> None:
    models = {f"m{i:02}": rows(1_000_000, 5, seed=i)[1] for i in range(20)}
    y = rows(1_000_000, 5)[0]
    cards = spent(lambda: [vx.evaluate(y, p) for p in models.values()])
    against("1,000,000 x 5: compare 20 models", spent(lambda: vx.compare(y, models)), cards, 1.3)


def four_rules(_: int) -> None:
    from toplists import RULES, M, lists_of, plain_pass

    classes, confidences, y = lists_of(1_000_000)
    base = spent(lambda: plain_pass(classes, confidences)) + spent(lambda: np.sort(confidences, axis=1))
    lists = vx.TopLists.from_arrays(classes, confidences, n_classes=M)

    def four_of(own: vx.TopLists) -> object:
        return [rule(y, own) for rule in RULES]

    # A copy has none of the statistics that lists keep for the next rule.
    against("1,000,000 lists: four rules one by one", spent(lambda: four_of(copy(lists))), base, 1.5)
    against("1,000,000 lists: four more rules", spent(lambda: four_of(lists)), base, 1.5)


def recalibration(_: int) -> None:
    """All methods of small data, and the default methods of small and large data; the large call once."""
    every = [
        "temperature",
        "prior",
        "bcts",
        "ordered",
        "svector",
        "vector",
        "smatrix",
        "dirichlet",
        "isotonic",
    ]
    for n, k, methods, wanted in (
        (872, 5, every, 5),
        (2_000, 2, "best", 1),
        (50_000, 100, "best", 60),
    ):
        rng = np.random.default_rng(0)
        z = 2 * rng.normal(size=(n, k))
        p = np.exp(z)
        p /= p.sum(axis=1, keepdims=True)
        y = (p.cumsum(axis=1) > rng.random(n)[:, None]).argmax(axis=1)
        logits = 1.6 * z + 0.2 * rng.normal(size=k)
        if n < 10_000:
            vx.recalibrate(y, logits, logits=True, ordered=k == 5, method=methods)
        start = time.process_time()
        vx.recalibrate(y, logits, logits=True, ordered=k == 5, method=methods)
        own = time.process_time() - start
        named = "default methods" if methods == "best" else "all methods"
        print(f"recalibrate {n:,} x {k}, {named}: {own:.2f} s (promise: {wanted} s)", flush=True)


def cold(_: int) -> None:
    """The first large call with an empty cache of compiled code."""
    dense = "p = np.random.default_rng(0).dirichlet(np.ones(5), 5_000_000); y = np.zeros(len(p), int)"
    lists = (
        "import sys; sys.path.insert(0, 'benchmarks'); from toplists import lists_of; "
        "c, p, y = lists_of(1_000_000); p = vx.TopLists.from_arrays(c, p, n_classes=128_256)"
    )
    for name, prepare in (("dense", dense), ("lists", lists)):
        code = (
            f"import time, numpy as np, verax as vx; {prepare}; start = time.perf_counter(); "
            "own = time.process_time(); vx.evaluate(y, p); "
            "print(time.perf_counter() - start, time.process_time() - own)"
        )
        with tempfile.TemporaryDirectory() as empty:
            environment = os.environ | {"NUMBA_CACHE_DIR": empty}
            command = [sys.executable, "-c", code]
            run = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
        wall, own = map(float, run.stdout.split())
        print(f"first large call, {name}: {wall:.2f} s, processor {own:.2f} s (promise: 3 s)", flush=True)


def file_memory(_: int) -> None:
    before = peak()
    own = spent(lambda: vx.evaluate(opened(), ordered=True), 1)
    print(f"file: ordered card {own:.2f} s, {before:.0f} MB, then {peak():.0f} MB (promise: 400 MB)")


ROWS = {
    row.__name__: row
    for row in (
        file_compare,
        file_worst,
        file_subgroups,
        file_memory,
        many_subgroups,
        options,
        many_classes,
        many_models,
        four_rules,
        recalibration,
        cold,
    )
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--rows", type=int, default=4_000_000)
    asked = parser.parse_args()
    if FILE and len(asked.names) == 1:
        ROWS[asked.names[0]](asked.rows)
        return
    print(describe())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rows.parquet")
        names = asked.names or list(ROWS)
        if any(name.startswith("file") for name in names):
            # In a process of its own: a child's peak memory is never below what its parent held.
            code = f"import ratios; from pathlib import Path; ratios.write(Path({str(path)!r}), {asked.rows})"
            subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parent)
            print(f"file: {asked.rows:,} rows")
        for name in names:
            environment = os.environ | {"VERAX_BENCHMARK_FILE": str(path)}
            subprocess.run([sys.executable, __file__, name], check=True, env=environment)


if __name__ == "__main__":
    main()
