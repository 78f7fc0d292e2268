"""Sample logs of lm-evaluation-harness and of OLMES, for tasks of every kind."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
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
    Graded,
    LogFormat,
    LogRecords,
    epoch_of,
    is_blank,
    labels_in,
    name_or_none,
    number_or_none,
    text_or_none,
)
from verax.wings.evals.reading.look import beside, log_lines, stem

# Fields of a sample that are not metrics.
_FIELDS = frozenset(
    (
        *("doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics", "doc_hash"),
        *("prompt_hash", "target_hash", "schema_version", "task_name", "sample_repeat", "repeat", "epoch"),
    )
)
# The mark of the harness for a filter without an answer.
_INVALID = "[invalid]"
_SAMPLES = re.compile(r"samples_(?P<task>.+?)_(?P<date>\d{4}-\d{2}-\d{2}T[\d.:-]+)$")
_PREDICTIONS = re.compile(r"(?P<run>task-\d+-(?P<task>.+))-predictions$")


def is_harness(record: Any) -> bool:
    """Whether a record is a sample of lm-evaluation-harness."""
    fields = mapping(record)
    return "doc_id" in fields and ("filtered_resps" in fields or "resps" in fields)


def _metrics(record: Mapping[Any, Any]) -> tuple[dict[str, float], tuple[str, ...]]:
    """The metrics of a sample with their numbers, and the metrics of all samples together.

    Metrics of a filtered sample carry the name of the filter.
    """
    named, kind = record.get("metrics"), record.get("filter")
    values: Mapping[Any, Any] = named if isinstance(named, Mapping) else record
    names = tuple(named) if isinstance(named, (list, tuple, Mapping)) else tuple(record.keys() - _FIELDS)
    numbers: dict[str, float] = {}
    of_all: tuple[str, ...] = ()
    for name, called in _called(names, kind if isinstance(kind, str) else ""):
        value = values.get(name)
        number = value if type(value) is float and value == value else number_or_none(value)
        if number is not None:
            numbers[called] = number
        elif isinstance(value, (list, tuple)):
            of_all += (called,)
    return numbers, of_all


@lru_cache(maxsize=256)
def _called(names: tuple[Any, ...], kind: str) -> tuple[tuple[Any, str], ...]:
    """What the metrics of a filter are called."""
    end = f",{kind}" if kind not in ("", "none") else ""
    texts = [name for name in names if isinstance(name, str)]
    return tuple((name, name if not end or name.endswith(end) else name + end) for name in texts)


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


def _choice(sample: ChoiceSample, metric: str) -> tuple[str | None, float | None]:
    """The choice by a metric, the likeliest one under "", and its share; nothing where the log lacks it."""
    try:
        values = values_for(metric.partition(",")[0], sample, log_likelihoods(sample.pairs))
    except RecordError:
        return None, None
    return _chosen(values, sample.texts)


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


def read_harness(record: Any, metric: str | None = None) -> Graded:
    """Read the grades and the answer of a sample."""
    fields = mapping(record)
    grades, of_all = _metrics(fields)
    sample = sample_of(record)
    asked = metric if metric in grades else ""
    answer, confidence = (None, None) if sample is None else _choice(sample, asked or "")
    status = None
    if sample is None or (answer is None and not asked):
        text = _generated(fields)
        answer, status = text_or_none(text), _status(fields, text)
    repeat = fields.get("sample_repeat")
    task = fields.get("task_name")
    return Graded(
        str(fields["doc_id"]),
        grades,
        next(iter(grades), None),
        answer,
        _gold(fields.get("target"), sample),
        confidence,
        status,
        None if repeat is None else epoch_of(repeat, first=0),
        task if isinstance(task, str) else None,
        str(fields.get("doc_hash") or ""),
        labels_in(fields.get("doc"), "doc."),
        of_all,
    )


def read_olmes(record: Any, metric: str | None = None) -> Graded:
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
    if len(outputs) > 1 and values_by("", outputs) is not None:
        answer, confidence = _chosen(values_by(metric if metric in numbers else "", outputs), None)
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
        status=_olmes_status(outputs),
        about={"native_id": str(native)} if isinstance(native, (str, int)) else {},
    )


def _olmes_status(outputs: Any) -> str | None:
    return "empty" if is_blank(mapping(outputs[0]).get("continuation")) else None


def _open_harness(path: Path) -> LogRecords:
    named = _SAMPLES.match(stem(path).stem)
    task = named["task"] if named else None
    about = beside(path.with_name(f"results_{named['date']}.json") if named else None)
    config = mapping(about.get("config"))
    model = name_or_none(about.get("model_name")) or name_or_none(config.get("model"))
    folder = path.parent.name
    if model is None and "__" in folder.strip("_"):
        # The harness writes the name of the model into that of the folder, as owner__model.
        model = folder.replace("__", "/")
    notes: list[str] = []
    return LogRecords(str(path), "line", HARNESS, log_lines(path, notes), model, task, notes=notes)


def _open_olmes(path: Path) -> LogRecords:
    named = _PREDICTIONS.match(stem(path).stem)
    about = beside(path.with_name(f"{named['run']}-metrics.json")) if named else {}
    settings = mapping(about.get("task_config"))
    model = mapping(about.get("model_config")).get("model")
    notes: list[str] = []
    return LogRecords(
        str(path),
        "line",
        OLMES,
        log_lines(path, notes),
        model=name_or_none(model),
        task=name_or_none(about.get("task_name")) or (named["task"] if named else None),
        main=name_or_none(settings.get("primary_metric")),
        notes=notes,
    )


HARNESS = LogFormat(
    "lm-eval",
    "an lm-evaluation-harness sample log",
    lambda look: look.is_lines and is_harness(look.record),
    _open_harness,
    is_harness,
    read_harness,
    read_harness,
    filters=True,
)
OLMES = LogFormat(
    "olmes",
    "OLMES predictions",
    lambda look: look.is_lines and is_olmes(look.record),
    _open_olmes,
    is_olmes,
    read_olmes,
    read_olmes,
    filters=True,
)
