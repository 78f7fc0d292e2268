"""What `verax evals` prints with --json, and `verax merge` of grade cards."""

from __future__ import annotations

from verax.cli.schemas.building import (
    COUNT,
    FINITE,
    TEXT,
    TEXTS,
    TOLD,
    Kinds,
    either,
    listed,
    mapped,
    of_type,
    or_none,
    record,
)
from verax.cli.schemas.fields import BY_LOSSES, CALIBRATION, HELD, KEPT, MERGED
from verax.wings.evals.result import GradeCard
from verax.wings.judges.result import JudgedGrades
from verax.wings.repeats.result import RepeatScores


def evaluate() -> Kinds:
    """The fields of the output of `verax evals evaluate`."""
    return {
        **TOLD,
        "file": TEXT,
        "taken": TEXTS,
        "grades": either(of_type(GradeCard), of_type(JudgedGrades), of_type(RepeatScores)),
        "calibration": CALIBRATION,
        "notes": TEXTS,
        **HELD,
        **KEPT,
    }


def compare() -> Kinds:
    """The fields of the output of `verax evals compare`."""
    return BY_LOSSES


def worst() -> Kinds:
    """The fields of the output of `verax evals worst`."""
    answer = record(
        row=COUNT, id=or_none(TEXT), grade=FINITE, confidence=or_none(FINITE), about=mapped(or_none(TEXT))
    )
    return {"file": TEXT, "taken": TEXTS, "rule": TEXT, "n_rows": COUNT, "answers": listed(answer)}


def merge() -> Kinds:
    """The fields of the output of `verax merge` of grade cards."""
    return {**MERGED, **TOLD, "grades": of_type(GradeCard)}
