"""Grades in sample logs of lm-evaluation-harness and of OLMES, for tasks of every kind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from verax.inputs.records.harness import (
    ChoiceSample,
    log_likelihoods,
    position_of,
    sample_of,
    softmax,
    values_for,
)
from verax.inputs.records.olmes import is_olmes, values_by
from verax.inputs.records.record import RecordError, first, mapping, not_understood, sequence
from verax.wings.evals.reading.graded import (
    UNSCORED,
    Graded,
    LogShape,
    epoch_of,
    flat_fields,
    number_or_none,
    text_or_none,
)

# Fields of a sample that are not metrics.
_FIELDS = frozenset(
    (
        *("doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics", "doc_hash"),
        *("prompt_hash", "target_hash", "schema_version", "task_name", "sample_repeat", "repeat", "epoch"),
    )
)
# The mark of the harness for a filter without an answer.
_INVALID = "[invalid]"
# Longer texts are not labels of groups.
_LONGEST = 500


def is_harness(record: Any) -> bool:
    """Whether a record is a sample of lm-evaluation-harness."""
    fields = mapping(record)
    return "doc_id" in fields and ("filtered_resps" in fields or "resps" in fields)


def _metrics(record: Mapping[Any, Any]) -> tuple[dict[str, float], tuple[str, ...]]:
    """The metrics of a sample with their numbers, and the metrics of all samples together.

    Metrics of a filtered sample carry the name of the filter.
    """
    named, kind = record.get("metrics"), record.get("filter")
    if isinstance(named, (list, tuple)):
        values = {name: record[name] for name in named if isinstance(name, str) and name in record}
    elif isinstance(named, Mapping):
        values = {str(name): value for name, value in named.items()}
    else:
        values = {str(name): value for name, value in record.items() if name not in _FIELDS}
    end = f",{kind}" if isinstance(kind, str) and kind not in ("", "none") else ""
    called = {name if not end or name.endswith(end) else name + end: value for name, value in values.items()}
    numbers = {
        name: number for name, value in called.items() if (number := number_or_none(value)) is not None
    }
    return numbers, tuple(name for name, value in called.items() if isinstance(value, (list, tuple)))


def _generated(record: Mapping[Any, Any]) -> Any:
    """The generated answer after filtering; None if there is none."""
    responses = first(record.get("filtered_resps"))
    return first(responses) if isinstance(responses, (list, tuple)) else responses


def _chosen(values: Sequence[float] | None, texts: Sequence[str] | None) -> tuple[str | None, float | None]:
    """The choice with the largest number, and its share of the softmax."""
    shares = softmax(values) if values is not None and len(values) > 1 else None
    if shares is None:
        return None, None
    place = shares.index(max(shares))
    return str(place) if texts is None else texts[place].strip(), shares[place]


def _choices(sample: ChoiceSample, metrics: Iterable[str]) -> dict[str, Any]:
    """The choice by each metric, with the likeliest one under ""; empty if the log lacks them."""
    try:
        values = log_likelihoods(sample.pairs)
        numbers = {name: values_for(name.partition(",")[0], sample, values) for name in ("", *metrics)}
    except RecordError:
        return {}
    return {name: (*_chosen(scores, sample.texts), None) for name, scores in numbers.items()}


def _gold(target: Any, sample: ChoiceSample | None) -> str | None:
    """The right answer: the text of a choice if the target is its number."""
    if sample is None or sample.texts is None or not isinstance(target, (str, int)):
        return text_or_none(target)
    place = position_of(target, sample.texts, len(sample.pairs))
    return text_or_none(target) if place is None else sample.texts[place].strip()


def _status(record: Mapping[Any, Any], answer: Any) -> str | None:
    if answer == _INVALID:
        return "unparsable"
    raw = first(first(record.get("resps"))) if record.get("resps") is not None else answer
    return "empty" if isinstance(raw, str) and not raw.strip() else None


def read_harness(record: Any) -> Graded:
    """Read the grades and the answer of a sample."""
    fields = mapping(record)
    grades, of_all = _metrics(fields)
    sample = sample_of(record)
    by_metric = {} if sample is None else _choices(sample, grades)
    answer, confidence, status = by_metric.pop("", (None, None, None))
    if answer is None:
        text = _generated(fields)
        answer, status = text_or_none(text), _status(fields, text)
        # Whether an answer was found is a matter of the filter, and so of the metric.
        by_metric = dict.fromkeys(grades, (answer, None, status))
    repeat = fields.get("sample_repeat")
    task = fields.get("task_name")
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
        _gold(fields.get("target"), sample),
        confidence,
        status if status or grades or of_all else UNSCORED,
        None if repeat is None else epoch_of(repeat, first=0),
        task if isinstance(task, str) else None,
        str(fields.get("doc_hash") or ""),
        about,
        by_metric,
        of_all,
    )


def read_olmes(record: Any) -> Graded:
    """Read the grades of a prediction, and its choices or generated text."""
    fields = mapping(record)
    outputs = sequence(fields.get("model_output"))
    if not outputs:
        raise not_understood(fields.get("model_output"), "model_output: an object per choice or answer")
    metrics = mapping(fields.get("metrics"))
    grades = {str(name): number_or_none(value) for name, value in metrics.items()}
    # Numbers of choices are not grades.
    numbers = {
        name: value
        for name, value in grades.items()
        if value is not None and not name.startswith("predicted_index") and name != "correct_choice"
    }
    answer, confidence = None, None
    by_metric: dict[str, Any] = {}
    if len(outputs) > 1 and values_by("", outputs) is not None:
        chosen = {name: _chosen(values_by(name, outputs), None) for name in ("", *numbers)}
        answer, confidence = chosen.pop("")
        by_metric = {name: (*choice, None) for name, choice in chosen.items()}
    else:
        output = mapping(outputs[0])
        answer = text_or_none(metrics.get("model_answer", output.get("continuation")))
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
        by_metric=by_metric,
        about={"native_id": str(native)} if isinstance(native, (str, int)) else {},
    )


def _olmes_status(numbers: Mapping[str, float | None], outputs: Any) -> str | None:
    text = mapping(outputs[0]).get("continuation")
    if isinstance(text, str) and not text.strip():
        return "empty"
    return None if numbers else UNSCORED


HARNESS_GRADES = LogShape("lm-eval", "an lm-evaluation-harness sample log", is_harness, read_harness)
OLMES_GRADES = LogShape("olmes", "OLMES predictions", is_olmes, read_olmes)
