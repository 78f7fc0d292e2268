"""Log-probabilities without a response around them: arrays of tokens, and flat {token: log-probability}."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from verax.inputs.records.record import Choices, Listed, Shape, first, mapping, not_understood
from verax.inputs.records.responses import of_logprobs, texts_of
from verax.inputs.records.tokens import WANTED, of_objects, of_pairs, of_token


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
    found = record["logprobs"]
    nested = isinstance(found, Mapping) and not found.keys() & {"content", "tokens", "top_logprobs"}
    return of_pairs(found.items()) if nested else of_logprobs(found, choices.position)


def flat_items(record: Any, choices: Choices) -> dict[Any, Any]:
    """The fields of a flat record that are classes: those with their names, or all that are nothing else."""
    if choices.names is not None and set(choices.names) <= mapping(record).keys():
        return {name: record[name] for name in choices.names}
    return {name: value for name, value in mapping(record).items() if name not in choices.fields}


def _is_flat(record: Any) -> bool:
    """Some number is below zero and none above: log-probabilities. Other fields are no numbers."""
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
