"""Frames of Spark: the card of the rows in memory, whatever the partitions, and where tasks fail."""

from __future__ import annotations

import gc
import os
import shutil
import subprocess
import sys
from functools import reduce
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import demofiles
import scannedlists as lists
import verax as vx
from pages import DOCS
from scanned import (
    CLASSES,
    COLUMNS,
    N,
    alike,
    arrays,
    asked,
    broken,
    expected,
    same,
    table,
    without_package,
)
from toy.verax_wings.heavy import summaries
from toy.verax_wings.heavy.analysis import heavy_losses
from verax.analyses.cards.evaluation import CardRecipe

pytestmark = [pytest.mark.frameworks, pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
pyspark = pytest.importorskip("pyspark")
if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
    pytest.skip("Spark needs a Java runtime, and there is none", allow_module_level=True)


@pytest.fixture(scope="module")
def spark():
    """A session with two workers, which tries each task up to three times."""
    from pyspark import cloudpickle
    from pyspark.sql import SparkSession

    # What is defined here is sent along: workers cannot import this module.
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    cloudpickle.register_pickle_by_value(summaries)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2,3]").appName("verax")
    settings = {
        "spark.ui.enabled": False,
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.sql.shuffle.partitions": 4,
        "spark.sql.execution.arrow.maxRecordsPerBatch": 100,
        "spark.log.level": "OFF",
        # Compiling well takes longer than these jobs.
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }
    session = reduce(lambda b, item: b.config(*item), settings.items(), builder).getOrCreate()
    yield session
    session.stop()


@pytest.fixture(scope="module")
def frame(spark):
    """Partitions of one row, of none, and one with most rows; groups are in several of them."""
    spread = spark.createDataFrame(table())
    small = spread.filter("number < 4").repartition(6, "number")
    return small.unionByName(spread.filter("number >= 4").repartition(2, "patient"))


def test_workers_without_verax_are_named_before_the_work(spark, tmp_path, monkeypatch):
    """The usual case of a virtual environment: workers run another Python than the driver."""
    other = tmp_path / "python"
    path = without_package(tmp_path)
    other.write_text(f'#!/bin/sh\nPYTHONPATH={path}:$PYTHONPATH exec {sys.executable} "$@"\n')
    other.chmod(0o755)
    monkeypatch.setattr(spark.sparkContext, "pythonExec", str(other))
    monkeypatch.setattr(spark, "_verax_checked", False, raising=False)
    frame = spark.createDataFrame(table())
    words = r"Spark's Python workers cannot import verax: .* on .*\. Set PYSPARK_PYTHON to "
    with pytest.raises(vx.VeraxError, match=words):
        vx.scan(frame, probs="p_*", **COLUMNS)
    # Spark keeps workers of a program; this one is another, which does not start.
    broken_one = tmp_path / "broken"
    broken_one.write_text("#!/bin/sh\nexit 1\n")
    broken_one.chmod(0o755)
    monkeypatch.setattr(spark.sparkContext, "pythonExec", str(broken_one))
    with pytest.raises(vx.VeraxError, match=r"Spark's Python workers cannot run: .*\. Set PYSPARK_PYTHON"):
        vx.scan(frame, probs="p_*", **COLUMNS)


def test_a_new_analysis_works(spark):
    rng = np.random.default_rng(0)
    p = rng.dirichlet([1, 1, 1], 200)
    y = rng.integers(0, 3, 200)
    rows = spark.createDataFrame(pa.table({"label": y, **{f"p_{k}": p[:, k] for k in range(3)}}))
    asked = {"rule": "brier", "limit": 0.8}
    found = heavy_losses(vx.scan(rows.repartition(3), target="label"), **asked)
    true = heavy_losses(y, p, **asked)
    assert (found.rows, found.loss) == pytest.approx((true.rows, true.loss))


def test_the_program_of_the_guide(spark, tmp_path):
    text = (DOCS / "guide" / "scale.md").read_text(encoding="utf-8").split("## In a Spark job")[1]
    demofiles.write_all(tmp_path)
    # Spark looks where its own process was started.
    program = text.split("```python\n")[1].partition("```")[0].replace('"days"', f'"{tmp_path}/days"')
    found = {"spark": spark}
    exec(program, found)
    assert found["card"].n_rows == demofiles.N


def test_a_frame_gives_the_card_of_its_rows(frame, monkeypatch):
    from pyspark.sql.classic.dataframe import DataFrame

    collected = []
    to_arrow = DataFrame.toArrow

    def noted(self):
        found = to_arrow(self)
        collected.append((found.column_names, found.num_rows))
        return found

    monkeypatch.setattr(DataFrame, "toArrow", noted)
    handle = vx.scan(frame, probs="all_p", **COLUMNS)
    same(vx.evaluate(handle, ordered=True))
    # No row came to the driver this way, only summaries.
    assert collected[0][1] == 0
    assert collected[1] == (["summary"], collected[1][1])
    assert collected[1][1] <= 4


# Spark carries summaries as bytes, whatever they are of: the law holds for all of them part by part.
@pytest.mark.parametrize(
    "name", ["worst", *(pytest.param(name, marks=pytest.mark.long) for name in ("retention", "compare"))]
)
def test_spark_says_what_one_process_says(frame, name):
    # Draws follow the order of the rows, which Spark may change.
    found, wanted = (
        {key: value for key, value in each.items() if key not in ("interval", "band")}
        for each in (asked(frame, name).to_dict(), expected(name))
    )
    alike(found, wanted)


class FailsAtFirst(CardRecipe):
    """A card whose task fails once after some of the work is done."""

    def take(self, part):
        from pyspark import TaskContext

        context = TaskContext.get()
        card = super().take(part)
        if context.attemptNumber() == 0 and context.partitionId() == 6:
            raise OSError("the disk is gone")
        return card


def test_a_task_that_fails_is_run_again_and_counts_once(frame):
    from verax.analyses.cards.evaluation import fitting_rules
    from verax.inference.intervals import Resampling

    handle = vx.scan(frame, probs="p_*", **COLUMNS)
    plan = Resampling.checked(0.95, 1000, 0)
    recipe = FailsAtFirst("model", tuple(fitting_rules(None, True)), True, None, plan)
    same(handle.summarise({"card": recipe})["card"])


def test_rows_are_numbered_as_spark_numbers_them(spark):
    from pyspark.sql import functions

    bad = spark.createDataFrame(broken(1300)).repartition(3, "number")
    numbered = bad.withColumn("id", functions.monotonically_increasing_id())
    expected = numbered.filter("number = 1300").first()["id"]
    card = vx.evaluate(vx.scan(bad, probs="p_*", invalid="skip", **COLUMNS))
    assert (card.n_rows, card.skipped.rows) == (N - 1, (expected,))


def test_many_partitions_of_which_most_are_empty_and_one_is_wrong(spark):
    # The row n is in partition n; 4 are left. One of these is no distribution.
    rows = spark.range(0, 16, 1, 16).filter("id % 4 = 0")
    p = [f"if(id = 8, 0.9, {value})" for value in (0.2, 0.3, 0.5)]
    many = rows.selectExpr("id", "id % 3 as label", *(f"{value} as p_{i}" for i, value in enumerate(p)))
    asked = {"target": "label", "probs": "p_*", "classes": range(3)}
    with pytest.raises(vx.InputError, match=r"Spark frame, partition 8: .*row 0 .*\(id 8\)") as caught:
        vx.evaluate(vx.scan(many, id="id", **asked))
    assert (caught.value.rows, caught.value.kind) == ((0,), "sum")
    assert any("probs" in remedy.options for remedy in caught.value.remedies)
    card = vx.evaluate(vx.scan(many, invalid="skip", **asked))
    assert (card.n_rows, card.skipped.rows) == (3, (8 * 2**33,))
    y = np.delete(np.arange(0, 16, 4), 2) % 3
    assert card["brier"] == pytest.approx(vx.brier(y, np.tile([0.2, 0.3, 0.5], (3, 1))), rel=1e-12)


def test_collections_after_tasks_leave_modules_out(frame):
    def looked_at(batches):
        rows = sum(batch.num_rows for batch in batches)
        counts = [[gc.get_freeze_count()], [len(gc.get_objects())], [rows]]
        yield pa.record_batch(counts, ["left_out", "looked_at", "rows"])

    vx.evaluate(vx.scan(frame, probs="p_*", **COLUMNS))
    found = frame.mapInArrow(looked_at, "left_out long, looked_at long, rows long").toArrow()
    assert min(found["left_out"].to_pylist()) > 10 * min(found["looked_at"].to_pylist())


def test_missing_values_vectors_and_odd_names(spark):
    from pyspark.ml.functions import array_to_vector
    from pyspark.sql import functions

    y, p, *_ = arrays()
    frame = spark.createDataFrame(table())
    odd = frame.select(
        functions.when(frame.number != 3, frame.label).alias("the `label`.x"),
        array_to_vector("all_p").alias("probability"),
    )
    options = {"target": "the `label`.x", "probs": "probability", "classes": CLASSES}
    card = vx.evaluate(vx.scan(odd, invalid="skip", **options))
    keep = np.delete(np.arange(N), 3)
    assert card["brier"] == pytest.approx(vx.brier(y[keep], p[keep]), rel=1e-12)
    with pytest.raises(vx.InputError, match="must have a value in every row"):
        vx.evaluate(vx.scan(odd, **options))


def test_top_lists_say_what_memory_says(spark):
    frame = spark.createDataFrame(lists.table()).repartition(5, "site")
    handle = vx.scan(frame, probs=lists.MODELS, lists=True, classes=lists.M, **lists.COLUMNS)
    alike(vx.compare(handle, rule=["brier", "log_score"], reference="uniform").to_dict(), lists.compared())
    one = vx.scan(frame, probs=lists.MODELS["a"], lists=True, classes=lists.M, **lists.COLUMNS)
    y, models = lists.in_memory()
    alike(vx.evaluate(one).to_dict(), vx.evaluate(y, models["a"], **lists.OWN).to_dict())


@pytest.mark.long
def test_spark_connect_says_what_a_classic_session_says():
    pytest.importorskip("grpc")
    process = Path(__file__).parents[1] / "connect_process.py"
    found = subprocess.run([sys.executable, process], capture_output=True, text=True, timeout=400)
    assert "the card and the error are those of a classic session" in found.stdout, found.stderr[-3000:]
