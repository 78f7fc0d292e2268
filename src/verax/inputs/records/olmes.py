"""Predictions of OLMES: log-likelihoods of choices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from verax.inputs.records.harness import softmax
from verax.inputs.records.record import MANY_DIGITS, Choices, Listed, Shape, mapping, not_understood, sequence
from verax.inputs.records.texts import float_of

_WANTED = "model_output: an object with sum_logits per choice"
# The field that a metric divides log-likelihoods by, or subtracts from them.
_CHOOSE_BY = {
    "": None,
    "acc_raw": None,
    "acc_per_token": "num_tokens",
    "acc_per_char": "num_chars",
    "acc_per_byte": "num_bytes",
    "acc_uncond": "sum_logits_uncond",
}


def is_olmes(record: Any) -> bool:
    """Whether a record is a prediction of OLMES."""
    fields = mapping(record)
    return "doc_id" in fields and isinstance(fields.get("metrics"), dict) and "model_output" in fields


def _has_choices(record: Any) -> bool:
    outputs = sequence(mapping(record).get("model_output"))
    return (
        is_olmes(record) and len(outputs) > 1 and all("sum_logits" in mapping(output) for output in outputs)
    )


def values_by(metric: str, outputs: Sequence[Any]) -> list[float] | None:
    """The numbers by which a metric chooses, one per choice; None if the log lacks them.

    Without a metric these are the log-likelihoods.
    """
    if metric not in _CHOOSE_BY:
        return None
    values = _numbers(outputs, "sum_logits")
    name = _CHOOSE_BY[metric]
    if values is None or name is None:
        return values
    others = _numbers(outputs, name)
    if others is None:
        return None
    pairs = zip(values, others, strict=True)
    if metric == "acc_uncond":
        return [value - other for value, other in pairs]
    return [value / other for value, other in pairs] if min(others) > 0 else None


def _numbers(outputs: Sequence[Any], name: str) -> list[float] | None:
    values: list[Any] = [mapping(output).get(name) for output in outputs]
    numbers = [float_of(value) for value in values if isinstance(value, (int, float))]
    return numbers if len(numbers) == len(values) and max(numbers) < math.inf else None


def _read(record: Any, choices: Choices) -> Listed:
    outputs = sequence(mapping(record).get("model_output"))
    values = values_by("", outputs)
    if len(outputs) < 2 or values is None:
        raise not_understood(mapping(record).get("model_output"), _WANTED)
    if choices.per_length:
        values = values_by("acc_per_char", outputs)
        if values is None:
            raise not_understood(outputs, "the lengths of the choices (num_chars)")
    shares = softmax(values)
    if shares is None:
        raise not_understood(values, _WANTED)
    fields = mapping(record)
    target = fields.get("label", mapping(fields.get("metrics")).get("correct_choice"))
    return Listed(list(range(len(values))), shares, outcome=target)


def _outcome_of(listed: Listed, target: Any) -> Any:
    """The number of the right choice."""
    n = len(listed.labels)
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
