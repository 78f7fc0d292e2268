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
# Numbers of groups in a file, with the memory that they may take above a card without groups, in MB.
MANY_GROUPS = {100_000: 260, 632_000: 740}


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
    """Two models of five classes, and columns of twenty and of many values, written in chunks."""
    rng, writer = np.random.default_rng(0), None
    for start in range(0, n, 2**20):
        m = min(2**20, n - start)
        columns: dict[str, object] = {"label": rng.integers(0, 5, m), "site": rng.integers(0, 20, m)}
        columns |= {f"of_{n}": rng.integers(0, n, m) for n in MANY_GROUPS}
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


def file_means(_: int) -> None:
    """A card, whose rows are checked, against the means of four scores alone as one expression of polars."""
    import polars as pl

    columns = [pl.col(f"a_{j}") for j in range(5)]
    true = pl.coalesce(pl.when(pl.col("label") == j).then(column) for j, column in enumerate(columns))
    squares = pl.sum_horizontal(column**2 for column in columns)
    losses = [
        squares - 2 * true + 1,
        -true.log(),
        1 - true / squares.sqrt(),
        true < pl.max_horizontal(columns),
    ]
    means = [loss.mean().alias(str(i)) for i, loss in enumerate(losses)]
    peer = spent(lambda: pl.scan_parquet(FILE).select(means).collect(), 2)
    against("file: card, polars means of four", spent(lambda: vx.evaluate(opened()), 2), peer, 1.2)


def file_subgroups(_: int) -> None:
    card = spent(lambda: vx.evaluate(opened()), 2)
    before = peak()
    own = spent(lambda: vx.subgroups(opened(by="site"), by="site"), 1)
    against("file: subgroups, 20 values of by", own, card, 11, f"; {before:.0f} MB, then {peak():.0f} MB")


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
    against("5,000,000 x 5: 100,000 groups", spent(lambda: vx.evaluate(y, p, groups=groups)), card, 3.2)
    against("5,000,000 x 5: weights", spent(lambda: vx.evaluate(y, p, weights=weights)), card, 2)
    own = spent(lambda: vx.subgroups(y, p, by=by), 2)
    # A subgroup sorts, fits and looks again at the events of all its rows, which a card does not. Sorting
    # alone takes four times as long as the card.
    against("5,000,000 x 5: subgroups, 20 values of by", own, card, 30)


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


def file_groups(_: int) -> None:
    """Memory for many groups; call with 4,000,000 rows."""
    vx.evaluate(opened())
    card = peak()
    for n, wanted in MANY_GROUPS.items():
        own = spent(lambda n=n: vx.evaluate(opened(groups=f"of_{n}")), 1)
        print(f"file: {n:,} groups {own:.2f} s, {peak() - card:.0f} MB above the card (promise: {wanted} MB)")


def event_rows(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Calibrated forecasts of two classes."""
    p = rows(n, 2, seed)[1]
    return (np.random.default_rng(seed + 1).random(n) < p[:, 1]).astype(int), p


def smooth_error(_: int) -> None:
    y, p = event_rows(300_000)
    plain = spent(lambda: np.sort(p[:, 1]))
    against("smooth_ece, 300,000 rows, against sorting them", spent(lambda: vx.smooth_ece(y, p)), plain, 40)


def ranking(_: int) -> None:
    from sklearn.metrics import roc_auc_score

    y, p = event_rows(1_000_000)
    peer = spent(lambda: roc_auc_score(y, p[:, 1]))
    own = spent(lambda: vx.roc_auc(y, p))
    # Both sort the forecasts. Then verax counts rows by outcome, for intervals and for files alike.
    against("roc_auc with interval, 1,000,000 rows, scikit-learn without", own, peer, 1.3)


def one_rule(_: int) -> None:
    """A rule by itself, against reading the numbers and against a loop that is written for it alone.

    The loop checks sums and signs. It takes one minus a sum for the thresholds from the outcome on, so small
    losses have fewer digits.
    """
    import numba

    @numba.njit(fastmath={"reassoc", "contract"})
    def brier(y: np.ndarray, p: np.ndarray) -> tuple[float, int]:
        total, n_invalid = 0.0, 0
        for i in range(len(y)):
            whole, squares, least = 0.0, 0.0, 0.0
            for v in p[i]:
                whole, squares, least = whole + v, squares + v * v, min(least, v)
            n_invalid += not (abs(whole - 1) <= 1e-9 and least >= 0)
            total += squares - 2 * p[i, y[i]] + 1
        return total / len(y), n_invalid

    @numba.njit
    def rps(y: np.ndarray, p: np.ndarray) -> tuple[float, int]:
        total, n_invalid, last = 0.0, 0, p.shape[1] - 1
        for i in range(len(y)):
            below, least = 0.0, 0.0
            for j in range(last):
                below, least = below + p[i, j], min(least, p[i, j])
                gap = below - (1.0 if y[i] <= j else 0.0)
                total += gap * gap
            n_invalid += not (abs(below + p[i, last] - 1) <= 1e-9 and min(least, p[i, last]) >= 0)
        return total / len(y) / last, n_invalid

    peers = ((vx.brier, brier), (vx.rps, rps))
    for n, k, promises in ((5_000_000, 5, (3, 3)), (400_000, 20, (3, 4.2)), (200_000, 50, (2.2, 3.9))):
        y, p = rows(n, k)
        read = spent(p.sum)
        for (rule, plain), promise in zip(peers, promises, strict=True):
            own, peer = (
                spent(lambda y=y, p=p, rule=rule: rule(y, p)),
                spent(lambda y=y, p=p, f=plain: f(y, p)),
            )
            more = f"; {own / peer:.2f}x a loop for it alone"
            against(f"{rule!r} alone, {n:,} x {k}, against p.sum()", own, read, promise, more)


def written_models(folder: Path, models: int, others: int = 0) -> tuple[Path, dict[str, list[str]]]:
    """A CSV file of 2,000 rows with five columns for each model, and other columns in [0, 1]."""
    import pyarrow.csv as pacsv

    named = {f"m{i:02}": [f"m{i:02}_{j}" for j in range(5)] for i in range(models)}
    columns: dict[str, object] = {"label": rows(2_000, 5)[0]}
    for i, names in enumerate(named.values()):
        columns |= dict(zip(names, rows(2_000, 5, seed=i)[1].T, strict=True))
    columns |= {f"x{i}": np.random.default_rng(i).random(2_000) for i in range(others)}
    path = folder / f"{models}-{others}.csv"
    pacsv.write_csv(pa.table(columns), path)
    return path, named


def many_columns(_: int) -> None:
    """Opening and comparing files with many columns, against parsing them."""
    import pyarrow.csv as pacsv

    with tempfile.TemporaryDirectory() as folder:
        for models, others, wanted in ((1, 400, 3), (10, 0, 12), (50, 0, 8)):
            path, named = written_models(Path(folder), models, others)
            read = spent(lambda path=path: pacsv.read_csv(path))
            probs: object = named if models > 1 else next(iter(named.values()))
            ask = vx.compare if models > 1 else vx.evaluate

            def whole(path: Path = path, probs: object = probs, ask: Callable[..., object] = ask) -> object:
                return ask(vx.scan(path, target="label", probs=probs))

            what = f"compare {models} models" if models > 1 else f"a card beside {others} other columns"
            against(f"{what}, 2,000 rows", spent(whole, 1), read, wanted)


def pages(_: int) -> None:
    """Pages and a small command, each in a fresh process, against importing NumPy."""
    y, q = event_rows(5_634)
    models = np.stack([q**w / (q**w).sum(axis=1, keepdims=True) for w in (0.7, 0.85, 1.0, 1.15, 1.3)])
    cases = {
        "page, 750 rows": (*event_rows(750), 12),
        "page, 11,268 rows": (*event_rows(11_268), 15),
        "page, 5 models, 5,634 rows": (y, models, 42),
    }
    base = of_process("import numpy")
    with tempfile.TemporaryDirectory() as folder:
        for name, (y, p, wanted) in cases.items():
            kept = Path(folder, "rows.npz")
            np.savez(kept, y=y, p=p)
            code = (
                f"import numpy as np, verax as vx; rows = np.load({str(kept)!r}); "
                "y, p = rows['y'], rows['p']; p = p if p.ndim == 2 else dict(zip('abcde', p)); "
                "vx.report.Report.of(y, p).to_html()"
            )
            against(name, of_process(code), base, wanted)
        path = written_models(Path(folder), 1)[0]
        against("verax evaluate, 2,000 rows", of_process(of_command("evaluate", str(path))), base, 6.8)


def of_command(*typed: str) -> str:
    """The code of a command without its output."""
    return f"import sys; from verax.__main__ import main; sys.argv = {['verax', *typed, '--quiet']}; main()"


def many_files(_: int) -> None:
    """A card of small files, against a pyarrow dataset that reads the same columns."""
    import pyarrow.csv as pacsv
    import pyarrow.dataset as pads

    y, p = rows(10_000, 3)
    columns = [f"p_{j}" for j in range(3)]
    table = pa.table({"label": y, **dict(zip(columns, p.T, strict=True))})
    for kind, writes, wanted in (("parquet", papq.write_table, 2.5), ("csv", pacsv.write_csv, 2)):
        with tempfile.TemporaryDirectory() as folder:
            for i in range(0, len(y), 2):
                writes(table.slice(i, 2), Path(folder, f"{i:05}.{kind}"))

            def read(folder: str = folder, kind: str = kind) -> object:
                return pads.dataset(folder, format=kind).to_table(columns=["label", *columns])

            own = spent(lambda folder=folder: vx.evaluate(vx.scan(folder, target="label")), 1)
            against(f"5,000 {kind} files of two rows, against reading them", own, spent(read, 1), wanted)


def sample_log(_: int) -> None:
    """`verax evaluate` of a log of lm-evaluation-harness, against a process that parses its lines."""
    from listfiles import harness_sample

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "samples_task.jsonl")
        path.write_bytes(b"\n".join(map(harness_sample, range(50_000))))
        parse = of_process(f"import json\nfor line in open({str(path)!r}, 'rb'): json.loads(line)")
        code = of_command("evaluate", str(path))
        against("verax evaluate, a log of 50,000 samples", of_process(code), parse, 3.2)


def of_process(code: str) -> float:
    """The least processor time of a fresh process with this code, in seconds.

    Modules are compiled once, as those of installed packages are.
    """
    found = []
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    for _ in range(ROUNDS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [sys.executable, "-c", code]
        subprocess.run(command, check=True, capture_output=True, cwd=Path(__file__).parent, env=environment)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(found)


def many_groups(_: int) -> None:
    y, p = rows(5_000_000, 5)
    card = spent(lambda: vx.evaluate(y, p))
    # The sums of 100,000 groups do not fit the cache, and rows of a group are anywhere.
    for n, wanted in ((20, 2), (100_000, 3.2)):
        by = np.random.default_rng(0).integers(0, n, len(y))
        own = spent(lambda by=by: vx.evaluate(y, p, groups=by))
        against(f"card of 5,000,000 x 5 with {n:,} groups, against without", own, card, wanted)


def subgroups_by_number(_: int) -> None:
    y, p = rows(1_000_000, 5)
    few, many = (spent(lambda n=n: vx.subgroups(y, p, by=np.arange(len(y)) % n), 1) for n in (10, 1000))
    # Each has fits of its own for five events; tests of all are computed together.
    against("1,000,000 x 5: 1,000 subgroups against 10", many, few, 3)


ROWS = {
    row.__name__: row
    for row in (
        file_compare,
        file_worst,
        file_means,
        file_subgroups,
        file_memory,
        file_groups,
        many_subgroups,
        options,
        many_classes,
        many_models,
        four_rules,
        recalibration,
        cold,
        smooth_error,
        ranking,
        one_rule,
        many_columns,
        pages,
        many_files,
        sample_log,
        many_groups,
        subgroups_by_number,
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
