"""Logs of OpenAI's evals, whose events are joined into records of answers, and items of its interface."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from verax.inputs.records.record import first, mapping, sequence
from verax.wings.evals.reading.graded import (
    UNSCORED,
    Graded,
    LogFormat,
    LogRecords,
    grade_of,
    is_blank,
    json_text,
    labels_in,
    name_or_none,
    number_or_none,
    text_or_none,
)
from verax.wings.evals.reading.look import Look, log_lines, rows_in

# The names of scores in events.
_SCORES = ("correct", "score", "accuracy")


def is_event(record: Any) -> bool:
    """Whether a record is an event, or the head, of a log of OpenAI's evals."""
    fields = mapping(record)
    head = mapping(fields.get("spec"))
    return (
        bool({"completion_fns", "eval_name", "base_eval"} & head.keys())
        or {
            "sample_id",
            "type",
            "data",
        }
        <= fields.keys()
    )


def read_event(record: Any) -> Graded:
    """Read the grades from the events of one sample."""
    fields = mapping(record)
    data = mapping(fields.get("data"))
    grades = {
        str(name): number for name, value in data.items() if (number := number_or_none(value)) is not None
    }
    picked = data.get("picked", data.get("choice"))
    sampled = data.get("sampled", fields.get("sampled"))
    text = first(sampled) if isinstance(sampled, list) else sampled
    status = None if grades else "error" if fields.get("failed") or not data else UNSCORED
    if isinstance(text, str) and not text.strip():
        status = "empty"
    return Graded(
        str(fields["sample_id"]),
        grades,
        next((name for name in _SCORES if name in grades), None) or next(iter(grades), None),
        answer=text_or_none(picked if picked is not None else text),
        gold=text_or_none(data.get("expected")),
        status=status,
    )


def _open_events(path: Path) -> LogRecords:
    notes: list[str] = []
    head: Mapping[Any, Any] = {}
    graded: list[tuple[int, Any]] = []
    sampled: dict[str, Any] = {}
    failed: dict[str, int] = {}
    for number, event in log_lines(path, notes):
        fields = mapping(event)
        if "spec" in fields:
            head = mapping(fields["spec"])
        if not is_event(event) or "sample_id" not in fields:
            continue
        key, data = str(fields["sample_id"]), mapping(fields["data"])
        if fields["type"] == "sampling":
            sampled[key] = data.get("sampled")
            failed.setdefault(key, number)
        elif fields["type"] in ("match", "metrics"):
            graded.append((number, {**fields, "sample_id": key, "data": data, "sampled": sampled.get(key)}))
        else:
            failed.setdefault(key, number)
    known = {record["sample_id"] for _, record in graded}
    missing: list[tuple[int, Any]] = [
        (number, {"sample_id": key, "type": "none", "data": {}, "sampled": sampled.get(key), "failed": True})
        for key, number in failed.items()
        if key not in known
    ]
    model = first(head.get("completion_fns"))
    return LogRecords(
        str(path),
        "line",
        OPENAI_EVALS,
        sorted([*graded, *missing], key=lambda pair: pair[0]),
        model=name_or_none(model),
        task=name_or_none(head.get("eval_name")) or name_or_none(head.get("base_eval")),
        notes=notes,
    )


def is_item(record: Any) -> bool:
    """Whether a record is an item of the output of the interface for evals."""
    return {"datasource_item_id", "results"} <= mapping(record).keys()


def read_item(record: Any) -> Graded:
    """Read the grades of an item: a score of every grader, or whether it passed."""
    fields = mapping(record)
    sample = mapping(fields.get("sample"))
    grades = {
        str(result.get("name")): grade_of(result.get("score", result.get("passed")))
        for result in map(mapping, sequence(fields.get("results")))
    }
    text = mapping(first(sample.get("output"))).get("content")
    asked = mapping(fields.get("datasource_item"))
    return Graded(
        str(fields["datasource_item_id"]),
        grades,
        answer=json_text(text),
        gold=text_or_none(asked.get("reference", asked.get("expected"))),
        status=_item_status(sample, text),
        task=name_or_none(fields.get("eval_id")),
        about=labels_in(asked),
        model=name_or_none(sample.get("model")),
    )


def _item_status(sample: Mapping[Any, Any], text: Any) -> str | None:
    why = sample.get("finish_reason")
    if sample.get("error"):
        return "error"
    return {"length": "limit", "content_filter": "refused"}.get(str(why)) or (
        "empty" if is_blank(text) else None
    )


def _open_items(path: Path) -> LogRecords:
    notes: list[str] = []
    word, records = rows_in(path, notes, within="data")
    return LogRecords(str(path), word, OPENAI_ITEMS, records, notes=notes)


def _has_items(look: Look) -> bool:
    return is_item(look.record) or look.is_document_of("data", "datasource_item_id", "results")


OPENAI_EVALS = LogFormat(
    "openai-evals",
    "a log of OpenAI's evals",
    lambda look: look.is_lines and is_event(look.record),
    _open_events,
    is_event,
    read_event,
    filters=True,
)
OPENAI_ITEMS = LogFormat(
    "openai-items", "output items of OpenAI's evals", _has_items, _open_items, is_item, read_item
)
