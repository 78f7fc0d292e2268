"""Results of promptfoo: an answer per test, provider and prompt, with the score of its assertions."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from verax.files.formats.texts import json_document
from verax.inputs.records.record import mapping, sequence
from verax.wings.evals.reading.graded import (
    UNSCORED,
    Graded,
    LogFormat,
    LogRecords,
    is_blank,
    json_text,
    labels_in,
    name_or_none,
    number_or_none,
)
from verax.wings.evals.reading.look import Look, log_lines, no_log

# The metric of a result as a whole: the weighted mean of its assertions.
_MAIN = "score"
# Why a result failed: an error, in place of an assertion.
_ERROR = 2
# Variables that promptfoo adds, which differ between repeats.
_ADDED = ("sessionId",)
_STATUSES = {"length": "limit", "max_tokens": "limit", "content_filter": "refused"}


def is_result(record: Any) -> bool:
    """Whether a record is a result of promptfoo."""
    return {"testIdx", "promptIdx", "provider"} <= mapping(record).keys()


def read_result(record: Any) -> Graded:
    """Read the score of a result and those of its assertions."""
    fields = mapping(record)
    case, response = mapping(fields.get("testCase")), mapping(fields.get("response"))
    asked = {
        name: value
        for name, value in mapping(fields.get("vars") or case.get("vars")).items()
        if name not in _ADDED and not name.startswith("_")
    }
    about = mapping(case.get("metadata"))
    provider = mapping(fields.get("provider"))
    grades, broken = _grades(fields)
    return Graded(
        _question(case, about, asked),
        grades,
        _MAIN,
        json_text(response.get("output")),
        json_text(asked.get("expected", _equal_to(case))),
        status=_status(fields, response) or (UNSCORED if broken else None),
        about={**labels_in(about), **labels_in({k: v for k, v in asked.items() if k != "expected"}, "vars.")},
        model=name_or_none(provider.get("label")) or name_or_none(provider.get("id")),
        prompt=name_or_none(mapping(fields.get("prompt")).get("label")),
    )


def _question(case: Mapping[Any, Any], about: Mapping[Any, Any], asked: Mapping[Any, Any]) -> str:
    """What a test asks: repeats of it have numbers of their own, but the same variables and description."""
    if isinstance(about.get("id"), (str, int)):
        return str(about["id"])
    told, variables = name_or_none(case.get("description")), json_text(asked) or ""
    return f"{told}: {variables}" if told else variables


def _grades(fields: Mapping[Any, Any]) -> tuple[dict[str, float | None], bool]:
    """The grades of a result, and whether a grader failed: its 0 is no grade."""
    grading = mapping(fields.get("gradingResult"))
    parts = [mapping(part) for part in sequence(grading.get("componentResults"))]
    broken = {_name(part) for part in parts if mapping(part.get("metadata")).get("graderError")}
    failed = fields.get("failureReason") == _ERROR or (not grading and bool(fields.get("error")))
    # Without assertions promptfoo calls every answer right.
    ungraded = failed or bool(broken) or (bool(grading) and grading.get("reason") == "No assertions")
    grades = {_MAIN: None if ungraded else number_or_none(fields.get("score"))}
    named = mapping(fields.get("namedScores")) or mapping(grading.get("namedScores"))
    if not named and len(parts) > 1:
        named = {_name(part): part.get("score") for part in parts}
    for name, value in named.items():
        if name != _MAIN:
            grades[str(name)] = None if failed or name in broken else number_or_none(value)
    return grades, bool(broken) and not failed


def _name(part: Mapping[Any, Any]) -> str:
    assertion = mapping(part.get("assertion"))
    return str(assertion.get("metric") or assertion.get("type") or "assertion")


def _equal_to(case: Mapping[Any, Any]) -> Any:
    """The value that an assertion of equality expects."""
    asserted = [mapping(one) for one in sequence(case.get("assert"))]
    return next((one.get("value") for one in asserted if one.get("type") == "equals"), None)


def _status(fields: Mapping[Any, Any], response: Mapping[Any, Any]) -> str | None:
    if fields.get("failureReason") == _ERROR or response.get("error") or not fields.get("gradingResult"):
        return "error" if fields.get("error") or response.get("error") else None
    if response.get("isRefusal") is True:
        return "refused"
    cut = _STATUSES.get(str(response.get("finishReason")))
    return cut or ("empty" if is_blank(response.get("output")) else None)


def _open(path: Path) -> LogRecords:
    notes: list[str] = []
    if Look(path).is_lines:
        return LogRecords(str(path), "line", PROMPTFOO, log_lines(path, notes), notes=notes)
    document = mapping(json_document(path))
    results = document.get("results")
    # Older versions have the results of a run one level higher.
    records = sequence(mapping(results).get("results")) or sequence(results)
    if not records:
        raise no_log(path, "it holds no results")
    return LogRecords(str(path), "result", PROMPTFOO, enumerate(records))


PROMPTFOO = LogFormat(
    "promptfoo",
    "results of promptfoo",
    lambda look: is_result(look.record) or look.is_document_of("evalId", "results", "prompts"),
    _open,
    is_result,
    read_result,
)
