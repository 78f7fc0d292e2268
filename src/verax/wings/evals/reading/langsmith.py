"""Results of LangSmith's experiments as tables: a run per row, with the feedback of every evaluator."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from verax.inputs.records.record import mapping
from verax.wings.evals.reading.graded import (
    LONGEST,
    Graded,
    LogFormat,
    LogRecords,
    grade_of,
    is_blank,
    json_text,
)
from verax.wings.evals.reading.look import Look, rows_in

_INPUTS, _OUTPUTS, _RIGHT, _FEEDBACK = "inputs.", "outputs.", "reference.", "feedback."


def is_run(record: Any) -> bool:
    """Whether a record is a row of an experiment."""
    fields = mapping(record)
    return "example_id" in fields and any(str(name).startswith((_FEEDBACK, _OUTPUTS)) for name in fields)


def read_run(record: Any) -> Graded:
    """Read the feedback on a run. An evaluator may have graded a run that failed; its grade stands."""
    fields = mapping(record)
    grades = {name: grade_of(value) for name, value in _within(fields, _FEEDBACK).items()}
    said = [value for value in _within(fields, _OUTPUTS).values() if value is not None]
    right = [value for value in _within(fields, _RIGHT).values() if value is not None]
    answer = said[0] if said else None
    return Graded(
        str(fields["example_id"]),
        grades,
        None,
        json_text(answer),
        json_text(right[0] if right else None),
        status="error" if fields.get("error") else "empty" if is_blank(answer) else None,
        about={
            f"{_INPUTS}{name}": value
            for name, value in _within(fields, _INPUTS).items()
            if isinstance(value, (str, int, float)) and len(str(value)) <= LONGEST
        },
    )


def _within(fields: Mapping[Any, Any], prefix: str) -> dict[str, Any]:
    return {name[len(prefix) :]: value for name, value in fields.items() if name.startswith(prefix)}


def _open(path: Path) -> LogRecords:
    notes: list[str] = []
    word, records = rows_in(path, notes)
    return LogRecords(str(path), word, LANGSMITH, records, notes=notes)


def _found(look: Look) -> bool:
    return is_run(look.record)


LANGSMITH = LogFormat("langsmith", "a LangSmith experiment", _found, _open, is_run, read_run)
