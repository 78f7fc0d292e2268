"""What each engine costs: time and CPU time of the default card of ordered classes, the same rows everywhere.

    python benchmarks/engines.py spark-ml [--rows 1000000] [--parts 16] [--repeats 2]
    python benchmarks/engines.py partitions --partitions 100 300 1000

Sections: local, pushdown, lists, weighting, dask, spark, spark-ml, growth, spark-growth, partitions. Each
runs alone; all run by default. The rows are Parquet files of 5 classes in the page cache. The single-process
pass is `scan` of the files. CPU seconds include child processes: the JVM of Spark and its Python workers.
Figures are the best of several runs after a first one; those of `partitions` are of one run after a small
one.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as papq

import verax as vx
from machine import describe

K = 5
COLUMNS = ["label", *(f"p_{j}" for j in range(K))]
TOP = 5
REPEATS = [2]
PARTITIONS = [100, 300]


def generate(folder: Path, n: int, parts: int) -> str:
    """Parquet files of `n` rows in all; the pattern that names them."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    for i, rows in enumerate(np.array_split(np.arange(n), parts)):
        e = rng.standard_exponential((len(rows), K))
        p = e / e.sum(axis=1, keepdims=True)
        y = (rng.random((len(rows), 1)) > np.cumsum(p, axis=1)[:, :-1]).sum(axis=1)
        columns = [pa.array(y), *(pa.array(np.ascontiguousarray(p[:, j])) for j in range(K))]
        papq.write_table(pa.table(columns, names=COLUMNS), folder / f"{i:05d}.parquet")
    return f"{folder}/*.parquet"


def cpu() -> float:
    """The CPU seconds of this process and all its descendants so far."""
    here = psutil.Process()
    total = 0.0
    for process in [here, *here.children(recursive=True)]:
        try:
            times = process.cpu_times()
        except psutil.Error:
            continue
        total += times.user + times.system + times.children_user + times.children_system
    return total


class Sheet:
    """Prints a line per measurement, with its ratio to the single-process pass."""

    def __init__(self, n: int) -> None:
        self.n, self.first = n, 0.0
        print(f"{'':44}{'seconds':>9}{'ratio':>8}{'CPU s':>8}{'ns/row':>8}")

    def line(self, name: str, run: Callable[[], Any], *, n: int | None = None) -> float:
        """Time a run; the first line is what the others are compared with."""
        run()
        best = used = float("inf")
        for _ in range(REPEATS[0]):
            before, start = cpu(), time.perf_counter()
            run()
            best, used = min(best, time.perf_counter() - start), min(used, cpu() - before)
        self.first = self.first or best
        n = n or self.n
        print(f"{name:44}{best:9.2f}{best / self.first:8.2f}{used:8.1f}{best / n * 1e9:8.0f}", flush=True)
        return best


def card(source: Any) -> Any:
    return vx.evaluate(vx.scan(source, target="label", probs="p_*", classes=range(K)), ordered=True)


def single(sheet: Sheet, pattern: str) -> float:
    return sheet.line("one process, Parquet files", lambda: card(pattern))


def local(pattern: str, n: int) -> None:
    """Sources on this machine."""
    import duckdb
    import polars as pl
    import pyarrow.dataset as pads

    sheet = Sheet(n)
    single(sheet, pattern)
    sheet.line("Arrow data set", lambda: card(pads.dataset(str(Path(pattern).parent))))
    sheet.line("polars, lazy", lambda: card(pl.scan_parquet(pattern)))
    sheet.line("DuckDB", lambda: card(duckdb.sql(f"select * from '{pattern}'")))
    frame = pl.read_parquet(pattern)
    sheet.line("polars, in memory", lambda: card(frame))
    pandas = frame.to_pandas()
    sheet.line("pandas, in memory", lambda: card(pandas))


def pushdown(pattern: str, n: int) -> None:
    """Sums as expressions of polars and DuckDB against the card through batches.

    The expressions give the means and variances of three scores and the confusion table. The card has more
    scores, checks every row and keeps sums to twice the working precision.
    """
    import duckdb
    import polars as pl

    names = [f"p_{j}" for j in range(K)]

    def in_polars() -> Any:
        p = [pl.col(name) for name in names]
        y = pl.col("label")
        hit = pl.coalesce(*(pl.when(y == j).then(p[j]) for j in range(K)))
        brier = sum((column * column for column in p), pl.lit(0.0)) - 2 * hit + 1
        log = -hit.log()
        below = [sum(p[: j + 1], pl.lit(0.0)) for j in range(K - 1)]
        rps = sum(((below[j] - (y <= j)) ** 2 for j in range(K - 1)), pl.lit(0.0)) / (K - 1)
        largest = pl.max_horizontal(names)
        top = pl.coalesce(*(pl.when(p[j] == largest).then(pl.lit(j)) for j in range(K)))
        losses = [brier.alias("brier"), log.alias("log"), rps.alias("rps")]
        scored = pl.scan_parquet(pattern).select(*losses, y, top.alias("top"))
        sums = [pl.col(name).sum() for name in ("brier", "log", "rps")]
        sums += [(pl.col(name) ** 2).sum().alias(f"{name}2") for name in ("brier", "log", "rps")]
        return scored.group_by("label", "top").agg(pl.len(), *sums).collect(engine="streaming")

    def means_in_polars() -> Any:
        p = [pl.col(name) for name in names]
        hit = pl.coalesce(*(pl.when(pl.col("label") == j).then(p[j]) for j in range(K)))
        brier = sum((column * column for column in p), pl.lit(0.0)) - 2 * hit + 1
        return pl.scan_parquet(pattern).select(brier.mean()).collect(engine="streaming")

    def in_duckdb() -> Any:
        hit = "case label " + " ".join(f"when {j} then p_{j}" for j in range(K)) + " end"
        brier = " + ".join(f"p_{j} * p_{j}" for j in range(K)) + f" - 2 * ({hit}) + 1"
        below = ["(" + " + ".join(names[: j + 1]) + ")" for j in range(K - 1)]
        rps = " + ".join(f"pow({below[j]} - (label <= {j})::int, 2)" for j in range(K - 1))
        greatest = f"greatest({', '.join(names)})"
        top = f"case {greatest} " + " ".join(f"when p_{j} then {j}" for j in range(K)) + " end"
        losses = f"{brier} as b, -ln({hit}) as l, ({rps}) / {K - 1} as r"
        inner = f"select label, {top} as top, {losses} from '{pattern}'"
        sums = ", ".join(f"sum({c}), sum({c} * {c})" for c in "blr")
        return duckdb.sql(
            f"select label, top, count(*), {sums} from ({inner}) group by label, top"
        ).fetchall()

    sheet = Sheet(n)
    single(sheet, pattern)
    sheet.line("polars, lazy, whole card by batches", lambda: card(pl.scan_parquet(pattern)))
    sheet.line("polars, three scores as expressions", in_polars)
    sheet.line("polars, mean Brier score only", means_in_polars)
    sheet.line("DuckDB, whole card by batches", lambda: card(duckdb.sql(f"select * from '{pattern}'")))
    sheet.line("DuckDB, three scores as expressions", in_duckdb)


def dask(pattern: str, n: int) -> None:
    """Dask with threads."""
    import dask.dataframe as dd

    frame = dd.read_parquet(pattern, columns=COLUMNS)
    p = [frame[f"p_{j}"] for j in range(K)]

    def expressions() -> Any:
        hit = sum(p[j] * (frame["label"] == j) for j in range(K))
        brier = sum(column * column for column in p) - 2 * hit + 1
        return brier.mean().compute()

    sheet = Sheet(n)
    single(sheet, pattern)
    sheet.line("Dask, threads, whole card", lambda: card(frame))
    sheet.line("Dask, threads, no-op on the same columns", lambda: frame.map_partitions(len).compute())
    sheet.line("Dask expressions, mean Brier score only", expressions)


def session() -> Any:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    cores = len(os.sched_getaffinity(0))
    builder = SparkSession.builder.master(f"local[{cores}]").config("spark.ui.enabled", False)
    builder = builder.config("spark.driver.memory", "2g").config("spark.log.level", "ERROR")
    builder = builder.config("spark.ui.showConsoleProgress", False)
    return builder.config("spark.driver.host", "127.0.0.1").getOrCreate()


def no_op(frame: Any) -> None:
    """`mapInArrow` of the same columns that only counts rows."""

    def count(batches: Any) -> Any:
        n = sum(batch.num_rows for batch in batches)
        yield pa.record_batch([pa.array([n], pa.int64())], ["n"])

    frame.select(*COLUMNS).mapInArrow(count, "n long").toArrow()


def spark(pattern: str, n: int) -> None:
    """Spark in local mode."""
    with_session = session()
    frame = with_session.read.parquet(str(Path(pattern).parent))
    sheet = Sheet(n)
    single(sheet, pattern)
    base = sheet.line("Spark, no-op mapInArrow", lambda: no_op(frame))
    whole = sheet.line("Spark, whole card", lambda: card(frame))
    print(f"{'whole card / no-op mapInArrow':44}{whole / base:9.2f}")
    with_session.stop()


def spark_ml(pattern: str, n: int) -> None:
    """Spark ML's evaluator, one number a call, beside the whole card."""
    from pyspark.ml.evaluation import MulticlassClassificationEvaluator
    from pyspark.ml.functions import array_to_vector
    from pyspark.sql import functions

    with_session = session()
    frame = with_session.read.parquet(str(Path(pattern).parent))
    sheet = Sheet(n)
    sheet.line("Spark, whole card", lambda: card(frame))
    p = functions.array(*(f"p_{j}" for j in range(K)))
    ready = frame.select(
        functions.col("label").cast("double").alias("label"),
        array_to_vector(p).alias("probability"),
        (functions.array_position(p, functions.array_max(p)) - 1).cast("double").alias("prediction"),
    )
    for metric in ("logLoss", "accuracy", "f1"):
        judge = MulticlassClassificationEvaluator(metricName=metric)
        sheet.line(f"Spark ML, {metric} only", lambda judge=judge: judge.evaluate(ready))
    with_session.stop()


def growth(pattern: str, n: int) -> None:
    """Cost against rows, and against files of the same rows."""
    import dask.dataframe as dd

    _growth("one process", lambda path: path, pattern, n)
    _growth("Dask", lambda path: dd.read_parquet(path, columns=COLUMNS), pattern, n)


def spark_growth(pattern: str, n: int) -> None:
    """Cost of Spark against rows, and against files of the same rows."""
    with_session = session()
    _growth("Spark", lambda path: with_session.read.parquet(str(Path(path).parent)), pattern, n)
    with_session.stop()


def _growth(name: str, read: Callable[[str], Any], pattern: str, n: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        many = generate(Path(folder, "many"), n, 100)
        few = generate(Path(folder, "few"), n // 10, 16)
        sheet = Sheet(n)
        sheet.line(name, lambda: card(read(pattern)))
        sheet.line(f"{name}, a tenth of the rows", lambda: card(read(few)), n=n // 10)
        sheet.line(f"{name}, the same rows in 100 files", lambda: card(read(many)))


def partitions(_: str, __: int) -> None:
    """Spark with many partitions of 50 rows: what each of them costs, beside a no-op on the same columns.

    Spark's Python workers collect garbage after each task; verax makes that cheap in those that it has used.
    """
    from pyspark.sql import functions

    with_session = session()

    def tiny(parts: int) -> Any:
        row = with_session.range(0, 50 * parts, 1, parts)
        columns = [functions.lit((j + 1) / 15).alias(f"p_{j}") for j in range(K)]
        return row.select((functions.col("id") % K).alias("label"), *columns)

    def line(name: str, parts: int, run: Callable[[Any], Any]) -> None:
        frame = tiny(parts)
        before, start = cpu(), time.perf_counter()
        run(frame)
        taken, used = time.perf_counter() - start, cpu() - before
        text = f"{parts:,} partitions, {name}"
        print(f"{text:60}{taken:9.1f}{used:8.1f}{1e3 * used / parts:22.1f}", flush=True)

    print(f"{'':60}{'seconds':>9}{'CPU s':>8}{'CPU ms per partition':>22}")
    # Python workers start once, and load verax with the first card.
    no_op(tiny(4))
    line("no-op mapInArrow, workers without verax", min(100, *PARTITIONS), no_op)
    card(tiny(4))
    for parts in PARTITIONS:
        line("whole card", parts, card)
        line("no-op mapInArrow, the same workers", parts, no_op)
    with_session.stop()


def lists(_: str, n: int) -> None:
    """Top lists of 5 out of 1,000 classes: in memory, and in files."""
    rng = np.random.default_rng(0)
    m = 1000
    t = np.sort(rng.dirichlet(np.full(TOP + 1, 0.5), n)[:, :TOP], axis=1)[:, ::-1]
    codes = (rng.integers(0, m, (n, 1)) + np.arange(TOP) * 37) % m
    y = np.where(rng.random(n) < 0.7, codes[:, 0], rng.integers(0, m, n))
    offsets = np.arange(n + 1, dtype=np.int32) * TOP
    columns = [pa.array(part.reshape(-1)) for part in (codes, np.ascontiguousarray(t))]
    labels, scores = (pa.ListArray.from_arrays(pa.array(offsets), column) for column in columns)
    table = pa.table({"label": y, "labels": labels, "scores": scores})
    asked = {"target": "label", "probs": ["labels", "scores"], "lists": True, "classes": m}
    with tempfile.TemporaryDirectory() as folder:
        papq.write_table(table, Path(folder, "lists.parquet"))
        few = max(1, n // 20)
        table.slice(0, few).to_pandas().to_json(Path(folder, "lists.jsonl"), orient="records", lines=True)
        sheet = Sheet(n)
        sheet.line(
            "in memory, made of arrays and scored",
            lambda: vx.evaluate(y, vx.TopLists.from_arrays(codes, t, n_classes=m)),
        )
        for name, source in (("Arrow table", table), ("Parquet file", f"{folder}/lists.parquet")):
            sheet.line(name, lambda source=source: vx.evaluate(vx.scan(source, **asked)))
        records = {"target": "label", "classes": m}
        sheet.line(
            "JSON Lines, a twentieth of the rows",
            lambda: vx.evaluate(vx.scan(f"{folder}/lists.jsonl", **records)),
            n=few,
        )


def weighting(pattern: str, n: int) -> None:
    """What comes from histograms: rows with weights, with 1,000 groups and with both, against plain rows."""
    from verax.report import Report

    rng = np.random.default_rng(1)
    table = papq.read_table(Path(pattern).parent)
    table = table.append_column("w", pa.array(rng.exponential(1.0, n)))
    table = table.append_column("who", pa.array(rng.integers(0, 1000, n)))
    kinds = {"plain": {}, "weights": {"weights": "w"}, "groups": {"groups": "who"}}
    kinds["both"] = kinds["weights"] | kinds["groups"]
    analyses: dict[str, Callable[[Any], Any]] = {
        "retention": lambda rows: vx.retention(rows, rule="brier", metric="accuracy"),
        "decompose": lambda rows: vx.decompose(rows, rule="brier", bootstrap=0),
        "reliability": lambda rows: vx.reliability(rows, resamples=0),
        "report": Report.of,
    }
    with tempfile.TemporaryDirectory() as folder:
        papq.write_table(table, Path(folder, "rows.parquet"))
        for name, analyse in analyses.items():
            sheet = Sheet(n)
            for kind, own in kinds.items():
                asked = {"target": "label", "probs": "p_*", "classes": range(K), **own}

                def run(asked: Any = asked, analyse: Any = analyse) -> Any:
                    return analyse(vx.scan(f"{folder}/rows.parquet", **asked))

                sheet.line(f"{name}, {kind}", run)


SECTIONS = {
    "local": local,
    "pushdown": pushdown,
    "lists": lists,
    "weighting": weighting,
    "dask": dask,
    "spark": spark,
    "spark-ml": spark_ml,
    "growth": growth,
    "spark-growth": spark_growth,
    "partitions": partitions,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sections", nargs="*", choices=[[], *SECTIONS], default=[])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--parts", type=int, default=16)
    parser.add_argument("--repeats", type=int, default=REPEATS[0])
    parser.add_argument("--partitions", type=int, nargs="+", default=PARTITIONS)
    given = parser.parse_args()
    REPEATS[:], PARTITIONS[:] = [given.repeats], given.partitions
    print(describe())
    with tempfile.TemporaryDirectory() as folder:
        pattern = generate(Path(folder, "preds"), given.rows, given.parts)
        for name in given.sections or SECTIONS:
            print(f"\n{SECTIONS[name].__doc__.splitlines()[0]} ({given.rows:,} x {K}, {given.parts} files)")
            SECTIONS[name](pattern, given.rows)


if __name__ == "__main__":
    main()
