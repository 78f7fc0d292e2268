"""Results of Braintrust: an answer per line, with the score of every scorer."""

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
    labels_in,
    name_or_none,
)
from verax.wings.evals.reading.look import Look, rows_in


def is_result(record: Any) -> bool:
    """Whether a record is a result of Braintrust."""
    fields = mapping(record)
    known = {"input", "output", "scores"} <= fields.keys() and not {"epoch", "target"} <= fields.keys()
    return known and isinstance(fields["scores"], (dict, type(None)))


def read_result(record: Any) -> Graded:
    """Read the scores of a result; one that failed has none."""
    fields = mapping(record)
    about, output = mapping(fields.get("metadata")), fields.get("output")
    grades = {str(name): grade_of(value) for name, value in mapping(fields.get("scores")).items()}
    known = about.get("id", mapping(fields.get("origin")).get("id"))
    return Graded(
        str(known) if isinstance(known, (str, int)) else json_text(fields.get("input")) or "",
        grades,
        None,
        json_text(output),
        json_text(fields.get("expected")),
        status="error" if fields.get("error") else "empty" if is_blank(output) else None,
        about=labels_in({name: value for name, value in about.items() if name not in ("id", "model")}),
        model=name_or_none(about.get("model")),
    )


def _found(look: Look) -> bool:
    lines = look.has("input", "output", "scores") and (not look.is_lines or is_result(look.record))
    return lines or look.is_document_of("results", "input", "output", "scores", "exc_info")


def _open(path: Path) -> LogRecords:
    notes: list[str] = []
    word, records = rows_in(path, notes, within="results")
    return LogRecords(str(path), word, BRAINTRUST, records, notes=notes)


BRAINTRUST = LogFormat("braintrust", "results of Braintrust", _found, _open, is_result, read_result)
