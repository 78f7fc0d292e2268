"""Test runs of DeepEval: a test case per answer, with the score of every metric."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from verax.errors import join
from verax.files.formats.texts import json_document
from verax.inputs.records.record import mapping, sequence
from verax.wings.evals.reading.graded import (
    Graded,
    LogFormat,
    LogRecords,
    is_blank,
    json_text,
    labels_in,
    name_or_none,
    number_or_none,
)
from verax.wings.evals.reading.look import no_log

# Names that DeepEval makes up, from the order of the cases.
_MADE_UP = re.compile(r"(conversational_)?test_case_\d+")
_CAMEL = re.compile(r"(?<=[a-z])([A-Z])")


def is_case(record: Any) -> bool:
    """Whether a record is a test case of DeepEval."""
    fields = mapping(record)
    return "question" in fields and "metrics_data" in fields


def read_case(record: Any) -> Graded:
    """Read the scores of a test case. Success is no grade: it is also false where the grader failed."""
    grades = {
        str(data.get("name")): None if data.get("error") else number_or_none(data.get("score"))
        for data in map(mapping, sequence(record["metrics_data"]))
    }
    output = record.get("actual_output")
    return Graded(
        record["question"],
        grades,
        None,
        json_text(output),
        json_text(record.get("expected_output", record.get("expected_outcome"))),
        status="empty" if is_blank(output) else None,
        about=labels_in(record.get("additional_metadata")),
    )


def _snake(fields: Mapping[Any, Any]) -> dict[str, Any]:
    """A test case with the names of its fields as in Python; files have actualOutput for actual_output."""
    return {_CAMEL.sub(r"_\1", str(name)).lower(): value for name, value in fields.items()}


def _cases(document: Mapping[Any, Any]) -> Iterator[dict[str, Any]]:
    for name in ("testCases", "conversationalTestCases", "test_results"):
        for case in sequence(document.get(name)):
            fields = _snake(mapping(case))
            turns = [mapping(turn) for turn in sequence(fields.get("turns"))]
            if turns:
                said = [turn.get("content") for turn in turns]
                fields = {"input": fields.get("scenario") or said[0], "actual_output": said[-1], **fields}
            fields["metrics_data"] = [_snake(mapping(data)) for data in sequence(fields.get("metrics_data"))]
            yield fields


def _questions(cases: list[dict[str, Any]]) -> list[str]:
    """What the cases ask: their names, unless these are made up, or one name has several inputs."""
    asked = [json_text(case.get("input")) or "" for case in cases]
    names = [name_or_none(case.get("name")) for case in cases]
    inputs: dict[str, set[str]] = {}
    for name, text in zip(names, asked, strict=True):
        inputs.setdefault(name or "", set()).add(text)
    return [
        text if name is None or _MADE_UP.fullmatch(name) or len(inputs[name]) > 1 else name
        for name, text in zip(names, asked, strict=True)
    ]


def _open(path: Path) -> LogRecords:
    document = mapping(json_document(path))
    document = mapping(document.get("testRunData")) or document
    cases = list(_cases(document))
    if not cases:
        raise no_log(path, "it holds no test cases")
    judges = {
        str(data["evaluation_model"]): None
        for case in cases
        for data in case["metrics_data"]
        if data.get("evaluation_model") not in (None, "", "none")
    }
    return LogRecords(
        str(path),
        "test case",
        DEEPEVAL,
        enumerate({**case, "question": asked} for case, asked in zip(cases, _questions(cases), strict=True)),
        model=name_or_none(mapping(document.get("hyperparameters")).get("model")),
        task=name_or_none(document.get("datasetAlias")) or name_or_none(document.get("identifier")),
        notes=(f"Graded by {join(judges)}.",) if judges else (),
    )


DEEPEVAL = LogFormat(
    "deepeval",
    "a test run of DeepEval",
    lambda look: (
        look.is_document_of("testCases", "metricsData")
        or look.is_document_of("conversationalTestCases", "metricsData")
        or look.is_document_of("test_results", "metrics_data")
    ),
    _open,
    is_case,
    read_case,
)
