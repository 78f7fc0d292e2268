"""Outputs of classifiers: {label, score} objects, arrays of classes and scores, {class: probability}."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from verax.inputs.records.record import (
    MANY_DIGITS,
    SKIP,
    Choices,
    Listed,
    RecordError,
    Shape,
    first,
    mapping,
    not_understood,
    value_at,
)
from verax.inputs.records.responses import WANTED, of_logprobs, of_objects, of_pairs, of_token, texts_of
from verax.inputs.records.texts import is_plain, number_of


def _is_tokens(record: Any) -> bool:
    if isinstance(record, Mapping):
        return "top_logprobs" in record or isinstance(record.get("logprobs"), (list, dict))
    return "logprob" in mapping(first(record))


def _read_tokens(record: Any, choices: Choices) -> Listed:
    if isinstance(record, (list, tuple)):
        return of_objects(record)
    if not isinstance(record, Mapping):
        raise not_understood(record, WANTED)
    if "logprob" in record:
        return of_token(record)
    if "logprobs" not in record or isinstance(record["logprobs"], (int, float)):
        return of_logprobs(record, choices.position)
    logprobs = record["logprobs"]
    nested = isinstance(logprobs, Mapping) and not logprobs.keys() & {"content", "tokens", "top_logprobs"}
    return of_pairs(logprobs.items()) if nested else of_logprobs(logprobs, choices.position)


def flat_items(record: Any, choices: Choices) -> dict[Any, Any]:
    """The fields of a flat record that are classes: those named like them, or all without another role."""
    if choices.names is not None and set(choices.names) <= mapping(record).keys():
        return {name: record[name] for name in choices.names}
    return {name: value for name, value in mapping(record).items() if name not in choices.fields}


def _is_flat(record: Any) -> bool:
    """Whether some number is below zero and none above, as in log-probabilities."""
    values = [mapping(value).get("logprob", value) for value in mapping(record).values()]
    numbers = [v for v in values if isinstance(v, (int, float)) and not isinstance(v, bool)]
    return bool(numbers) and max(numbers) <= 0 and min(numbers) < 0


def _read_flat(record: Any, choices: Choices) -> Listed:
    if not isinstance(record, Mapping):
        raise not_understood(record, WANTED)
    items = flat_items(record, choices)
    filled = {name: value for name, value in items.items() if value is not None}
    numbers = {name: value for name, value in filled.items() if not isinstance(value, str)}
    listed = of_pairs((numbers if choices.beside and numbers else filled).items())
    listed.blank = len(items) - len(filled)
    return listed


TOKENS = Shape(
    "tokens",
    "tokens with log-probabilities",
    "top_logprobs, logprobs, or an array of objects with token and logprob",
    _is_tokens,
    _read_tokens,
    generated=lambda record, _=0: texts_of(mapping(record).get("logprobs")),
)
FLAT = Shape(
    "logprobs", "flat {token: log-probability}", "a number below zero per token", _is_flat, _read_flat
)


# Fields that hold the names of classes, their probabilities, or their log-probabilities.
NAMES = ("classes", "classes_", "labels", "tokens", "names", "categories", "ids", "token_ids", "class_ids")
PROBABILITIES = (
    *("probabilities", "probability", "probs", "prob", "proba", "probas", "predict_proba", "scores"),
    *("confidences", "confidence", "p", "predicted_probabilities", "distribution"),
)
LOGARITHMS = ("logprobs", "log_probs", "logprob", "log_probabilities", "log_likelihoods")


def of_numbers(pairs: Iterable[tuple[Any, Any]]) -> Listed:
    """The list of (class, probability) pairs; numbers may be stated in words, or missing."""
    labels, values, missing, from_text = [], [], 0, 0
    for label, value in pairs:
        if type(label) is not str:
            check_class(label)
        if type(value) is float and value == value:
            number: float | None = value
        else:
            number = number_of(value)
        if number is None:
            missing += 1
            continue
        from_text += isinstance(value, str) and not is_plain(value)
        labels.append(label)
        values.append(number)
    return Listed(labels, values, missing=missing, from_text=from_text)


def check_class(label: Any) -> None:
    """Refuse values that cannot name a class."""
    if isinstance(label, bool) or not isinstance(label, (str, int)):
        raise not_understood(label, "classes that are texts or whole numbers")


def _scored(value: Any) -> Any:
    """A list of {label, score} objects, possibly inside another list; None for anything else."""
    if isinstance(value, (list, tuple)) and len(value) == 1 and isinstance(value[0], (list, tuple)):
        value = value[0]
    if isinstance(value, Mapping) and {"label", "score"} <= value.keys():
        return [value]
    return value if {"label", "score"} <= mapping(first(value)).keys() else None


def _find_scored(record: Any) -> Any:
    scored = _scored(record)
    if scored is not None or not isinstance(record, Mapping):
        return scored
    return next((inner for value in record.values() if (inner := _scored(value)) is not None), None)


def _read_pipeline(record: Any, _: Choices) -> Listed:
    scored = _find_scored(record)
    if scored is None:
        raise not_understood(record, "objects with 'label' and 'score'")
    for entry in scored:
        if not {"label", "score"} <= mapping(entry).keys():
            raise not_understood(entry, "objects with 'label' and 'score'")
    return of_numbers((entry["label"], entry["score"]) for entry in scored)


def _field(record: Any, names: Iterable[str], kinds: Any) -> Any:
    fields = mapping(record)
    return next((fields[name] for name in names if isinstance(fields.get(name), kinds)), None)


def fields_of_arrays(record: Any) -> tuple[str, ...]:
    """The fields of a record that hold classes and their numbers; empty without both."""
    fields = mapping(record)
    names = [
        next((name for name in known if isinstance(fields.get(name), (list, tuple))), None)
        for known in (NAMES, PROBABILITIES + LOGARITHMS)
    ]
    return tuple(name for name in names if name is not None) if None not in names else ()


def _read_arrays(record: Any, _: Choices) -> Listed:
    names = _field(record, NAMES, (list, tuple))
    values = _field(record, PROBABILITIES, (list, tuple))
    logarithms = _field(record, LOGARITHMS, (list, tuple)) if values is None else None
    numbers = logarithms if values is None else values
    if names is None or numbers is None:
        raise not_understood(record, "an array of classes and one of their probabilities")
    if len(names) != len(numbers):
        raise RecordError(
            "must have one number per listed class",
            f"has {len(names)} classes and {len(numbers)} numbers",
            reason="different numbers of classes and probabilities",
            kind="length",
            remedies=[SKIP],
        )
    pairs = zip(names, numbers, strict=True)
    if values is not None:
        return of_numbers(pairs)
    for name in names:
        check_class(name)
    return of_pairs(pairs)


def _is_arrays(record: Any) -> bool:
    has_names = _field(record, NAMES, (list, tuple)) is not None
    return has_names and _field(record, PROBABILITIES + LOGARITHMS, (list, tuple)) is not None


def _is_mapped(record: Any) -> bool:
    return bool(_field(record, PROBABILITIES, Mapping))


def _read_mapped(record: Any, choices: Choices) -> Listed:
    probabilities = _field(record, PROBABILITIES, Mapping)
    if probabilities is None:
        if not isinstance(record, Mapping):
            raise not_understood(record, "{class: probability}")
        probabilities = flat_items(record, choices)
    return of_numbers(probabilities.items())


def record_of_fields(record: Any, columns: tuple[str, ...]) -> Any:
    """A record of a known shape from named fields: classes and probabilities, or the whole list."""
    try:
        values = [value_at(record, column) for column in columns]
    except KeyError:
        raise not_understood(record, f"the fields {' and '.join(columns)}") from None
    if len(columns) == 1:
        alone = isinstance(values[0], Mapping) and not _is_arrays(values[0]) and not _is_mapped(values[0])
        return {PROBABILITIES[0]: values[0]} if alone else values[0]
    logarithms = columns[1].rpartition(".")[2].lower() in LOGARITHMS
    return {NAMES[0]: values[0], (LOGARITHMS if logarithms else PROBABILITIES)[0]: values[1]}


PIPELINE = Shape(
    "pipeline",
    "{label, score} objects (Hugging Face pipelines)",
    "a list of objects with label and score, as the record or in a field of it",
    lambda record: _find_scored(record) is not None,
    _read_pipeline,
    tokens=False,
    tolerance=MANY_DIGITS,
    unwrapped=False,
)
ARRAYS = Shape(
    "arrays",
    "arrays of classes and of probabilities (predict_proba with classes_, zero-shot pipelines)",
    "classes or labels or tokens, and probabilities or scores or logprobs",
    _is_arrays,
    _read_arrays,
    tokens=False,
    tolerance=MANY_DIGITS,
    unwrapped=False,
)
MAPPED = Shape(
    "probabilities",
    "{class: probability}, also stated in words",
    "probabilities: a number or a text such as '70%' per class",
    _is_mapped,
    _read_mapped,
    tokens=False,
    tolerance=MANY_DIGITS,
    unwrapped=False,
)
