"""Tokens with log-probabilities: their names, their numbers, and lists of them."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

from verax.errors import Remedy
from verax.inputs.records.record import SKIP, Listed, RecordError, mapping, not_understood

# Interfaces write this for a token that is too unlikely to have a log-probability.
TOO_UNLIKELY = -9999.0
# Stands in the text of a token that is only part of a character.
REPLACEMENT = "\ufffd"
# The reason for which responses without log-probabilities are left out.
NO_LOGPROBS = "no log-probabilities"
WANTED = (
    "log-probabilities: {token: log-probability}, an array of objects with 'token' and 'logprob', "
    "or a response that contains one"
)


def name_of(token: Any, coded: Any) -> Hashable:
    r"""What a token is called: its text, or its bytes where the text does not tell it from others.

    Tokens that are part of a character have the same text; interfaces give their bytes.

    >>> name_of("\ufffd", [240, 159]), name_of(" yes", [32, 121, 101, 115])
    ('bytes:\\xf0\\x9f', ' yes')
    """
    if isinstance(token, str):
        if REPLACEMENT in token and isinstance(coded, (list, tuple)) and coded:
            try:
                if bytes(coded) != token.encode("utf-8", "surrogatepass"):
                    return "bytes:" + "".join(f"\\x{byte:02x}" for byte in coded)
            except (TypeError, ValueError):
                pass
        return token
    if isinstance(token, bool) or not isinstance(token, int):
        raise not_understood(token, WANTED)
    return token


def probability_of(value: Any) -> float | None:
    """The probability of a log-probability; None where it is said to be too unlikely."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value:
        raise not_understood(value, WANTED)
    if value <= TOO_UNLIKELY:
        return None
    # Numbers far above zero are no log-probabilities; the check of the lists refuses them.
    return math.exp(value) if value < 700 else math.exp(700.0)


def of_pairs(pairs: Iterable[tuple[Hashable, Any]]) -> Listed:
    """The list of (token, log-probability) pairs; a log-probability may be an object with a 'logprob'.

    Tokens at TOO_UNLIKELY are not listed: their probability is not known, and need not be zero.
    """
    labels, values, unlikely = [], [], 0
    exp = math.exp
    for token, number in pairs:
        # Nearly all are like this, and need no further look.
        if type(number) is float and TOO_UNLIKELY < number <= 0:
            labels.append(token)
            values.append(exp(number))
            continue
        p = probability_of(mapping(number).get("logprob", number))
        if p is None:
            unlikely += 1
        else:
            labels.append(token)
            values.append(p)
    return Listed(labels, values, unlikely=unlikely)


def of_objects(
    objects: Sequence[Any], token: str = "token", value: str = "logprob", coded: str = "bytes"
) -> Listed:
    """The list of objects with these fields, as most interfaces write `top_logprobs`."""
    labels, values, unlikely = [], [], 0
    exp = math.exp
    for each in objects:
        try:
            name, number = each.get(token, each.get("id")), each[value]
        except (AttributeError, KeyError, TypeError):
            raise not_understood(each, WANTED) from None
        p = exp(number) if type(number) is float and TOO_UNLIKELY < number <= 0 else probability_of(number)
        if p is None:
            unlikely += 1
            continue
        plain = type(name) is str and REPLACEMENT not in name
        labels.append(name if plain else name_of(name, each.get(coded)))
        values.append(p)
    return Listed(labels, values, unlikely=unlikely)


def of_token(token: Mapping[Any, Any]) -> Listed:
    """The list of a generated token: its `top_logprobs`, or where there are none the token alone."""
    top = token.get("top_logprobs")
    if isinstance(top, Mapping) and top:
        return of_pairs(top.items())
    if isinstance(top, (list, tuple)) and top:
        return of_objects(top)
    if "logprob" not in token:
        raise no_logprobs("top_logprobs")
    listed = of_objects([token])
    listed.alone = True
    return listed


def at(tokens: Any, position: int) -> Any:
    """The generated token at a position; below 0 it is counted from the last."""
    if not isinstance(tokens, (list, tuple)):
        raise not_understood(tokens, WANTED)
    if not -len(tokens) <= position < len(tokens):
        raise RecordError(
            f"must be the number of a token in every record, counted from 0 or -1, not {position}",
            f"has {len(tokens)} tokens",
            reason="too few tokens",
            kind="value",
            argument="position",
            values=[position],
            remedies=[SKIP],
        )
    return tokens[position]


def no_logprobs(name: str) -> RecordError:
    """A response that was asked for without log-probabilities."""
    return RecordError(
        "must hold log-probabilities",
        f"holds a response without {name!r}",
        reason=NO_LOGPROBS,
        kind="missing",
        remedies=[Remedy("Ask the interface for logprobs and top_logprobs."), SKIP],
    )
