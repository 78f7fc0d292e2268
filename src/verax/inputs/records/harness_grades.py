"""Grades in sample logs of lm-evaluation-harness and of OLMES, for tasks of every kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from verax.inputs.records.graded import Graded, LogShape, epoch_of, flat_fields, number_or_none, text_or_none
from verax.inputs.records.harness import choice_of, pairs_of, softmax
from verax.inputs.records.olmes import is_olmes
from verax.inputs.records.record import first, mapping, not_understood, sequence

# Fields of a sample that are no metrics.
_FIELDS = frozenset(
    (
        *("doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics", "doc_hash"),
        *("prompt_hash", "target_hash", "schema_version", "task_name", "sample_repeat", "repeat", "epoch"),
    )
)
# What the harness writes where a filter finds no answer.
_INVALID = "[invalid]"
# Texts that are longer are no labels of groups.
_LONGEST = 500


def is_harness(record: Any) -> bool:
    """Whether a record is a sample of lm-evaluation-harness."""
    fields = mapping(record)
    return "doc_id" in fields and ("filtered_resps" in fields or "resps" in fields)


def _metrics(record: Mapping[Any, Any]) -> dict[str, float | None]:
    """The numbers of a sample; of one that some filter made, with the name of the filter."""
    named, kind = record.get("metrics"), record.get("filter")
    if type(named) is list and kind == "none":
        # Nearly all are like this, and need no further look.
        numbers = {name: number_or_none(record.get(name)) for name in named if type(name) is str}
        return {name: number for name, number in numbers.items() if number is not None}
    if isinstance(named, (list, tuple)):
        found = {name: record[name] for name in named if isinstance(name, str) and name in record}
    elif isinstance(named, Mapping):
        found = {str(name): value for name, value in named.items()}
    else:
        found = {str(name): value for name, value in record.items() if name not in _FIELDS}
    end = f",{kind}" if isinstance(kind, str) and kind not in ("", "none") else ""
    return {
        name if not end or name.endswith(end) else name + end: number
        for name, value in found.items()
        if (number := number_or_none(value)) is not None
    }


def _said(record: Mapping[Any, Any]) -> Any:
    """The generated answer behind a filter; None where there is none."""
    found = first(record.get("filtered_resps"))
    return first(found) if isinstance(found, (list, tuple)) else found


def _chosen(record: Any, pairs: Any) -> tuple[str | None, float | None]:
    """The likeliest choice of a question, and its share of the softmax."""
    try:
        values = [float(pair[0]) for pair in pairs]
    except (TypeError, ValueError):
        return None, None
    shares = softmax(values) if len(values) > 1 else None
    if shares is None:
        return None, None
    place = shares.index(max(shares))
    text = choice_of(record, place, len(values))
    return str(place) if text is None else text.strip(), shares[place]


def _status(record: Mapping[Any, Any], said: Any) -> str | None:
    if said == _INVALID:
        return "unparsable"
    raw = first(first(record.get("resps"))) if record.get("resps") is not None else said
    return "empty" if isinstance(raw, str) and not raw.strip() else None


def read_harness(record: Any) -> Graded:
    """What a sample says."""
    fields = mapping(record)
    grades = _metrics(fields)
    pairs = pairs_of(record)
    answer, confidence = (None, None) if pairs is None else _chosen(record, pairs)
    status = None
    if answer is None:
        said = _said(fields)
        answer, status = text_or_none(said), _status(fields, said)
    repeat = fields.get("sample_repeat")
    task = fields.get("task_name")
    target = fields.get("target")
    about = {
        name: value
        for name, value in flat_fields(fields.get("doc"), "doc.")
        if type(value) is not str or len(value) <= _LONGEST
    }
    return Graded(
        str(fields["doc_id"]),
        grades,
        next(iter(grades), None),
        answer,
        target if type(target) is str else text_or_none(target),
        confidence,
        status if status or grades else "error",
        None if repeat is None else epoch_of(repeat, first=0),
        task if isinstance(task, str) else None,
        str(fields.get("doc_hash") or ""),
        about,
    )


def read_olmes(record: Any) -> Graded:
    """What a prediction says: the metrics of the answer, and its choices or generated text."""
    fields = mapping(record)
    outputs = sequence(fields.get("model_output"))
    if not outputs:
        raise not_understood(fields.get("model_output"), "model_output: an object per choice or answer")
    metrics = mapping(fields.get("metrics"))
    grades = {str(name): number_or_none(value) for name, value in metrics.items()}
    # Numbers of choices are no grades.
    numbers = {
        name: value
        for name, value in grades.items()
        if value is not None and not name.startswith("predicted_index") and name != "correct_choice"
    }
    logits = [mapping(each).get("sum_logits") for each in outputs]
    answer, confidence = None, None
    if len(outputs) > 1 and all(isinstance(value, (int, float)) for value in logits):
        answer, confidence = _chosen({}, [(value,) for value in logits])
    else:
        said = mapping(outputs[0])
        answer = text_or_none(metrics.get("model_answer", said.get("continuation")))
    native = fields.get("native_id")
    return Graded(
        str(fields["doc_id"]),
        dict(numbers),
        next((name for name in ("primary_score", "exact_match", "acc_raw") if name in numbers), None)
        or next(iter(numbers), None),
        answer=answer,
        gold=text_or_none(fields.get("label", metrics.get("correct_choice"))),
        confidence=confidence,
        status=_olmes_status(numbers, outputs),
        about={"native_id": str(native)} if isinstance(native, (str, int)) else {},
    )


def _olmes_status(numbers: Mapping[str, float | None], outputs: Any) -> str | None:
    said = mapping(outputs[0]).get("continuation")
    if isinstance(said, str) and not said.strip():
        return "empty"
    return None if numbers else "error"


HARNESS_GRADES = LogShape("lm-eval", "an lm-evaluation-harness sample log", is_harness, read_harness)
OLMES_GRADES = LogShape("olmes", "OLMES predictions", is_olmes, read_olmes)
