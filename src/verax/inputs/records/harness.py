"""Sample logs of lm-evaluation-harness: log-likelihoods of the choices of a question."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Any

from verax.errors import show
from verax.inputs.records.record import (
    MANY_DIGITS,
    SKIP,
    Choices,
    Listed,
    RecordError,
    Shape,
    mapping,
    not_understood,
    sequence,
)

_WANTED = "log-likelihoods of two choices or more: resps or filtered_resps with one pair per choice"


def _pairs(record: Any) -> Any:
    """A (log-likelihood, is greedy) pair per choice; None where the task is not of that kind."""
    fields = mapping(record)
    found = sequence(fields.get("filtered_resps"))
    if not _are_pairs(found):
        found = [each[0] if len(sequence(each)) == 1 else None for each in sequence(fields.get("resps"))]
    return found if _are_pairs(found) else None


def _are_pairs(found: Any) -> bool:
    return bool(found) and all(len(sequence(pair)) == 2 for pair in found)


def _log_likelihood(pair: Any) -> float:
    """Newer logs hold numbers as texts."""
    try:
        value = float(pair[0])
    except (TypeError, ValueError):
        value = math.nan
    if math.isnan(value) or value == math.inf:
        raise not_understood(pair, _WANTED)
    return value


def choices_of(record: Any) -> tuple[str, ...] | None:
    """The texts of the choices, from the arguments of the requests; None where they are not there."""
    arguments: Any = mapping(record).get("arguments")
    if isinstance(arguments, dict):
        found = [mapping(each).get("arg_1") for each in arguments.values()]
    else:
        found = [each[1] if len(sequence(each)) > 1 else None for each in sequence(arguments)]
    texts = tuple(text for text in found if isinstance(text, str))
    return texts if texts and len(texts) == len(found) else None


def position_of(target: Any, texts: tuple[str, ...] | None, n: int) -> Hashable | None:
    """Which choice a target means: its number, or its text."""
    if isinstance(target, int) and not isinstance(target, bool):
        return target if 0 <= target < n else None
    stripped = [text.strip() for text in texts or ()]
    said = str(target).strip()
    places = [i for i, text in enumerate(stripped) if text == said]
    number = int(said) if said.isdecimal() and int(said) < n else None
    if number is not None and places not in ([], [number]):
        # The number of one choice is the text of another.
        return None
    return number if number is not None else places[0] if len(places) == 1 else None


def _read(record: Any, choices: Choices) -> Listed:
    pairs = _pairs(record)
    if pairs is None or len(pairs) < 2:
        raise not_understood(mapping(record).get("filtered_resps", record), _WANTED)
    values = [_log_likelihood(pair) for pair in pairs]
    texts = choices_of(record)
    if texts is not None and len(texts) != len(values):
        texts = None
    if choices.per_length:
        if texts is None:
            raise not_understood(mapping(record).get("arguments"), "the texts of the choices (arguments)")
        values = [value / max(1, len(text.lstrip())) for value, text in zip(values, texts, strict=True)]
    top = max(values)
    if top == -math.inf:
        raise not_understood(pairs, _WANTED)
    shares = [math.exp(value - top) for value in values]
    total = math.fsum(shares)
    positions = list(range(len(values)))
    return Listed(positions, [share / total for share in shares], outcome=record.get("target"), names=texts)


def _outcome_of(record: Any, target: Any) -> Hashable:
    """The number of the choice that is right."""
    n = len(_pairs(record) or ())
    found = position_of(target, choices_of(record), n)
    if found is None:
        raise RecordError(
            f"must be the number (0 to {n - 1}) or the text of one choice, and not of two",
            f"has {show(target)}",
            reason="outcomes that are no class",
            kind="label",
            argument="y",
            values=[target],
            remedies=[SKIP],
        )
    return found


HARNESS = Shape(
    "lm-eval",
    "sample logs of lm-evaluation-harness (softmax of the choices' log-likelihoods)",
    "filtered_resps or resps with a [log-likelihood, is greedy] pair per choice, target, arguments",
    lambda record: _pairs(record) is not None,
    _read,
    tokens=False,
    tolerance=MANY_DIGITS,
    unwrapped=False,
    positions=True,
    outcome_of=_outcome_of,
)
