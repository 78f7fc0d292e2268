"""Results of MLflow's evaluations: traces with assessments of judges, code and people, and older tables."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from verax.files.formats.texts import json_document
from verax.inputs.records.record import mapping, sequence
from verax.wings.evals.reading.graded import (
    Graded,
    LogFormat,
    LogRecords,
    grade_of,
    is_blank,
    json_text,
    labels_in,
)
from verax.wings.evals.reading.look import Look, no_log, rows_in

_VALUE, _SCORE = "/value", "/score"
# What follows the name of an assessment that people made.
_HUMAN = ".human"
# Expectations, which are no grades, where a table does not tell who assessed what.
_EXPECTED = ("expected_", "guidelines")


def is_trace(record: Any) -> bool:
    """Whether a record is an evaluated trace."""
    fields = mapping(record)
    return "trace_id" in fields and any(str(name).endswith(_VALUE) for name in fields)


def read_trace(record: Any) -> Graded:
    """Read the assessments of a trace. Those of people are metrics of their own, called correctness.human."""
    fields = mapping(record)
    listed = fields.get("assessments")
    grades = _assessed(listed) if isinstance(listed, list) else _in_columns(fields)
    said, asked = fields.get("response"), fields.get("request")
    return Graded(
        json_text(asked) or "",
        grades,
        None,
        json_text(said),
        json_text(fields.get("expected_response/value")),
        status="error" if fields.get("state") == "ERROR" else "empty" if is_blank(said) else None,
        about=labels_in(asked, "request."),
    )


def _assessed(listed: list[Any]) -> dict[str, Any]:
    """The grades among the assessments, the last of each; a scorer that failed gave none."""
    grades: dict[str, Any] = {}
    for one in map(mapping, listed):
        if "feedback" not in one or one.get("valid") is False:
            continue
        feedback = mapping(one["feedback"])
        people = mapping(one.get("source")).get("source_type") == "HUMAN"
        name = f"{one.get('assessment_name')}{_HUMAN if people else ''}"
        grades[name] = None if feedback.get("error") else grade_of(feedback.get("value"))
    return grades


def _in_columns(fields: Mapping[Any, Any]) -> dict[str, Any]:
    return {
        name.removesuffix(_VALUE): grade_of(value)
        for name, value in fields.items()
        if name.endswith(_VALUE) and not name.startswith(_EXPECTED)
    }


def _open(path: Path) -> LogRecords:
    notes: list[str] = []
    word, records = rows_in(path, notes)
    return LogRecords(str(path), word, MLFLOW, records, notes=notes)


# ---- MLflow 2 -----------------------------------------------------------------------------------


def is_row(record: Any) -> bool:
    """Whether a record is a row of an evaluation table of MLflow 2."""
    fields = mapping(record)
    return "inputs" in fields and "outputs" in fields


def read_row(record: Any) -> Graded:
    """Read the scores of a row; a judge that failed gave none."""
    fields = mapping(record)
    grades = {
        name.removesuffix(_SCORE): grade_of(value) for name, value in fields.items() if name.endswith(_SCORE)
    }
    said = fields["outputs"]
    return Graded(
        json_text(fields["inputs"]) or "",
        grades,
        None,
        json_text(said),
        json_text(fields.get("ground_truth", fields.get("targets"))),
        status="empty" if is_blank(said) else None,
    )


def _open_table(path: Path) -> LogRecords:
    document = mapping(json_document(path))
    names, rows = sequence(document.get("columns")), sequence(document.get("data"))
    if not rows:
        raise no_log(path, "its table has no rows")
    records = (dict(zip(map(str, names), sequence(row), strict=False)) for row in rows)
    return LogRecords(str(path), "row", MLFLOW_TABLE, enumerate(records))


def _is_table(look: Look) -> bool:
    return look.is_document_of("columns", "data") and b'/score"' in look.head and b'"outputs"' in look.head


MLFLOW = LogFormat(
    "mlflow",
    "an MLflow evaluation",
    lambda look: is_trace(look.record),
    _open,
    is_trace,
    read_trace,
)
MLFLOW_TABLE = LogFormat(
    "mlflow-table", "an evaluation table of MLflow 2", _is_table, _open_table, is_row, read_row
)
