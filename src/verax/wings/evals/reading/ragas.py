"""Results of Ragas as tables: a row per answer, with the score of every metric."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from verax.inputs.records.record import mapping
from verax.wings.evals.reading.graded import (
    Graded,
    LogFormat,
    LogRecords,
    grade_of,
    is_blank,
    json_text,
)
from verax.wings.evals.reading.look import rows_in

# Fields of a sample; all other columns are metrics.
_SAMPLE = frozenset(
    (
        *("user_input", "retrieved_contexts", "reference_contexts", "retrieved_context_ids"),
        *("reference_context_ids", "response", "multi_responses", "reference", "rubrics"),
        *("persona_name", "query_style", "query_length", "reference_tool_calls", "reference_topics"),
    )
)


def is_row(record: Any) -> bool:
    """Whether a record is a sample of Ragas with its scores."""
    fields = mapping(record)
    return "user_input" in fields and bool(fields.keys() & (_SAMPLE - {"user_input"}))


def read_row(record: Any) -> Graded:
    """Read the scores of a sample; NaN, or an empty cell, is a grader that failed."""
    fields = mapping(record)
    grades = {str(name): grade_of(value) for name, value in fields.items() if name not in _SAMPLE}
    said = fields.get("response")
    return Graded(
        json_text(fields["user_input"]) or "",
        grades,
        None,
        json_text(said),
        json_text(fields.get("reference")),
        status="empty" if (said is None and "response" in fields) or is_blank(said) else None,
    )


def _open(path: Path) -> LogRecords:
    notes: list[str] = []
    word, records = rows_in(path, notes)
    return LogRecords(str(path), word, RAGAS, records, notes=notes)


RAGAS = LogFormat("ragas", "results of Ragas", lambda look: is_row(look.record), _open, is_row, read_row)
