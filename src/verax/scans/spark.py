"""Spark frames: partitions are scored by `mapInArrow`, and their summaries merge after a shuffle."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa

from verax.errors import InputError, MissingPackageError
from verax.files.formats.tables import LOOK
from verax.inputs.handles import Handle
from verax.scans.frames import classes_of
from verax.scans.options import ScanOptions
from verax.scans.partitions import (
    PartitionedHandle,
    PartitionTask,
    RefusedError,
    check_answers,
    last_of,
    question,
    refusal_in,
)

Batches = Iterator[Any]
# The number of modules of this process when they were last left out of garbage collections.
_LEFT_OUT = {"modules": 0}


class SparkHandle(PartitionedHandle):
    """A Spark frame, through its DataFrame interface alone. Summaries travel as binary columns.

    Every partition gives one row, its summaries. A few tasks merge them, and the driver merges the rest.
    Spark runs a failed task again, and counts only finished ones.
    """

    def _run(self, work: PartitionTask) -> Iterable[bytes]:
        # Spark interprets dots in names; numbers are safe.
        columns = enumerate(work.reader.columns)
        chosen = self._frame.select(*(_column(name).alias(f"c{i}") for i, name in columns))
        scored = chosen.mapInArrow(_scoring(work), "partition int, summary binary")
        # Spark decides the number of merging tasks: it joins small partitions of a shuffle.
        merged = scored.repartition("partition").mapInArrow(_merging(work), "summary binary")
        try:
            summaries = merged.toArrow()
        except Exception as error:
            refused = refusal_in(str(error))
            if refused is None:
                raise
            raise refused from None
        return summaries["summary"].to_pylist()  # type: ignore[no-any-return]


def _scoring(work: PartitionTask) -> Callable[[Batches], Batches]:
    columns = work.reader.columns

    def score(batches: Batches) -> Batches:
        from pyspark import TaskContext

        context = TaskContext.get()
        partition = 0 if context is None else int(context.partitionId())
        try:
            summary = work.score((batch.rename_columns(columns) for batch in batches), partition)
        except InputError as error:
            raise RefusedError(error) from None
        _leave_modules_out()
        yield pa.record_batch(
            [pa.array([partition], pa.int32()), pa.array([summary], pa.binary())], ["partition", "summary"]
        )

    return score


def _merging(work: PartitionTask) -> Callable[[Batches], Batches]:
    def merge(batches: Batches) -> Batches:
        stored = (value.as_py() for batch in batches for value in batch.column("summary"))
        summary = work.merge(stored).to_bytes()
        _leave_modules_out()
        yield pa.record_batch([pa.array([summary], pa.binary())], ["summary"])

    return merge


def _leave_modules_out() -> None:
    """Leave the objects of modules out of garbage collections in this process.

    Spark's Python workers collect garbage after every task, and look at all objects of pandas and others. For
    small partitions that takes most of the time.
    """
    if len(sys.modules) != _LEFT_OUT["modules"]:
        gc.freeze()
        _LEFT_OUT["modules"] = len(sys.modules)


def opened(source: object, options: ScanOptions) -> Handle | None:
    """The handle on a Spark frame, classic or of Spark Connect; None for anything else."""
    if ("pyspark", "DataFrame") not in classes_of(source) or not hasattr(source, "mapInArrow"):
        return None
    frame = _without_vectors(source)
    _check_workers(frame.sparkSession)
    return SparkHandle("the Spark frame", frame, options, _first_rows(frame))


def _check_workers(session: Any) -> None:
    """Refuse a session whose workers lack verax, which would fail with a long traceback; once per session."""
    if getattr(session, "_verax_checked", False):
        return
    from pyspark.sql import functions

    remedy = (
        f"Set PYSPARK_PYTHON to {sys.executable} before the session starts, "
        "or install verax where the workers run."
    )
    about = functions.udf(question(), "string", useArrow=False)
    try:
        # One task: the workers of a session run the same program.
        answers = [row[0] for row in session.range(0, 1, 1, 1).select(about("id")).collect()]
    except Exception as error:
        reason = last_of(str(error), ("Error: ", "MISMATCH", "Cannot run program"))
        raise MissingPackageError(f"Spark's Python workers cannot run: {reason}. {remedy}") from None
    check_answers(answers, "Spark's Python workers", remedy)
    session._verax_checked = True


def _first_rows(frame: Any) -> Any:
    """The first rows; Spark reads as few partitions as possible."""
    schema = frame.limit(0).toArrow().schema
    rows = frame.take(LOOK)
    return pa.table([_array([row[i] for row in rows], kind) for i, kind in enumerate(schema.types)], schema)


def _array(values: list[Any], kind: Any) -> Any:
    try:
        return pa.array(values, kind)
    except (pa.ArrowException, TypeError, ValueError):
        # Objects of other kinds are not predictions.
        return pa.nulls(len(values), kind)


def _without_vectors(frame: Any) -> Any:
    """The frame with the vectors of Spark ML as lists, which Arrow knows."""
    vectors = {field.name for field in frame.schema.fields if type(field.dataType).__name__ == "VectorUDT"}
    if not vectors:
        return frame
    from pyspark.ml.functions import vector_to_array

    return frame.select(
        *(
            vector_to_array(_column(name)).alias(name) if name in vectors else _column(name)
            for name in frame.columns
        )
    )


def _column(name: str) -> Any:
    from pyspark.sql import functions

    return functions.col("`" + name.replace("`", "``") + "`")
