"""Predictions of OLMES: log-likelihoods of the choices of a question."""

from __future__ import annotations

import math
from typing import Any

from verax.inputs.records.harness import softmax
from verax.inputs.records.record import MANY_DIGITS, Choices, Listed, Shape, mapping, not_understood, sequence

_WANTED = "model_output: an object with sum_logits per choice"


def is_olmes(record: Any) -> bool:
    """Whether a record is a prediction of OLMES."""
    fields = mapping(record)
    return "doc_id" in fields and isinstance(fields.get("metrics"), dict) and "model_output" in fields


def _has_choices(record: Any) -> bool:
    outputs = sequence(mapping(record).get("model_output"))
    return is_olmes(record) and len(outputs) > 1 and all("sum_logits" in mapping(each) for each in outputs)


def _read(record: Any, choices: Choices) -> Listed:
    outputs = [mapping(each) for each in sequence(mapping(record).get("model_output"))]
    values: list[Any] = [each.get("sum_logits") for each in outputs]
    if len(values) < 2 or not all(isinstance(value, (int, float)) and value < math.inf for value in values):
        raise not_understood(mapping(record).get("model_output"), _WANTED)
    if choices.per_length:
        lengths: list[Any] = [each.get("num_chars") for each in outputs]
        if not all(isinstance(length, (int, float)) and length > 0 for length in lengths):
            raise not_understood(lengths, "the lengths of the choices (num_chars)")
        values = [value / length for value, length in zip(values, lengths, strict=True)]
    shares = softmax(values)
    if shares is None:
        raise not_understood(values, _WANTED)
    fields = mapping(record)
    target = fields.get("label", mapping(fields.get("metrics")).get("correct_choice"))
    return Listed(list(range(len(values))), shares, outcome=target)


def _outcome_of(record: Any, target: Any) -> Any:
    """The number of the choice that is right."""
    n = len(sequence(mapping(record).get("model_output")))
    if isinstance(target, int) and not isinstance(target, bool) and 0 <= target < n:
        return target
    raise not_understood(target, f"the number of a choice (0 to {n - 1}) in label")


OLMES = Shape(
    "olmes",
    "OLMES predictions (softmax of the choices' log-likelihoods)",
    "model_output with sum_logits per choice, and label or metrics.correct_choice",
    _has_choices,
    _read,
    tokens=False,
    tolerance=MANY_DIGITS,
    unwrapped=False,
    positions=True,
    outcome_of=_outcome_of,
    question_of=lambda record: str(mapping(record).get("doc_id")),
)
