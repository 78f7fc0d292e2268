"""Log-probabilities of tokens, in the shapes that language models and their interfaces return them."""

from __future__ import annotations

import json
import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from os import PathLike
from typing import Any

from verax.errors import InputError, show

# What interfaces write for a token that is too unlikely to have a log-probability.
TOO_UNLIKELY = -9999.0


def read_rows(rows: object) -> Iterable[Any]:
    """Rows from a JSON Lines file if `rows` names one, else `rows` themselves."""
    if isinstance(rows, (str, PathLike)):
        return read_lines(rows)
    if not isinstance(rows, Iterable) or isinstance(rows, (Mapping, bytes)):
        raise InputError(
            f"`rows` must hold one row of log-probabilities after the other, not {show(rows)}.",
            argument="rows",
        )
    return rows


def read_lines(path: str | PathLike[str]) -> Iterator[Any]:
    """The value of every line of a JSON Lines file; empty lines are skipped."""
    try:
        with open(path, encoding="utf-8") as file:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    try:
                        yield json.loads(line)
                    except json.JSONDecodeError as error:
                        raise InputError(
                            f"{path}: line {number} is not JSON ({error.msg} at column {error.colno}).",
                            argument="rows",
                        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {error}.", argument="rows") from None


def read_records(
    path: str | PathLike[str], outcome: str, position: int = 0
) -> tuple[list[dict[Hashable, float]], list[Hashable]]:
    """The lists and outcomes of a JSON Lines file, one record a line.

    Parameters
    ----------
    outcome : the field that holds what happened; dots lead into nested fields ("item.answer").
    position : which of several generated tokens to read, where a record has a whole response.
    """
    lists, outcomes = [], []
    for number, record in enumerate(read_lines(path)):
        listed = confidences_of(record, number, position)
        happened = _field(record, outcome, number)
        # JSON has text keys only, so numbers of tokens may come as text on one side.
        if isinstance(happened, int) and not any(isinstance(name, int) for name in listed):
            happened = str(happened)
        lists.append(listed)
        outcomes.append(happened)
    return lists, outcomes


def _field(record: Any, path: str, number: int) -> Hashable:
    value = record
    for part in path.split("."):
        if isinstance(value, list) and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
        elif isinstance(value, Mapping) and part in value:
            value = value[part]
        else:
            raise InputError(
                f"Every record must say what happened; row {number} has no field {path!r}. "
                "Name the field that does with --outcome.",
                argument="outcome",
                rows=(number,),
            )
    if not isinstance(value, (str, int)):
        raise InputError(
            f"What happened must be one token; row {number} holds {show(value)}.",
            argument="outcome",
            rows=(number,),
        )
    return value


def confidences_of(row: Any, number: int, position: int = 0) -> dict[Hashable, float]:
    """One row as {token: probability}.

    Tokens at TOO_UNLIKELY are not listed: their probability is not known, and zero would be a claim.
    """
    listed: dict[Hashable, float] = {}
    for token, value in _pairs(_unwrap(row, number, position), number):
        if isinstance(value, bool) or not isinstance(value, (int, float)) or math.isnan(value):
            raise _not_understood(value, number)
        if token in listed:
            raise InputError(
                f"`rows` must not list a token twice; row {number} lists {show(token)} again. "
                "Different tokens can look the same as text: pass token ids.",
                argument="rows",
                rows=(number,),
            )
        if value > TOO_UNLIKELY:
            # Far above zero is no log-probability; the check of the lists says so.
            listed[token] = math.exp(min(value, 700.0))
    return listed


def _unwrap(row: Any, number: int, position: int) -> Any:
    """From a response down to its list of log-probabilities."""
    if not isinstance(row, Mapping):
        return row
    if "response" in row:
        return _unwrap(_inside(row["response"], "body", number), number, position)
    if "choices" in row:
        choices = row["choices"]
        if not isinstance(choices, list) or not choices:
            raise _not_understood(row, number)
        return _unwrap(_inside(choices[0], "logprobs", number), number, position)
    if "logprobs" in row and not isinstance(row["logprobs"], (int, float)):
        return _unwrap(row["logprobs"], number, position)
    if "content" in row and isinstance(row["content"], list):
        return _unwrap(_at(row["content"], position, number), number, position)
    if "top_logprobs" in row:
        top = row["top_logprobs"]
        # One mapping a generated token is the older form; chat completions have one array of objects.
        older = isinstance(top, list) and bool(top) and not any("logprob" in _mapping(each) for each in top)
        return _at(top, position, number) if older else top
    return row


def _mapping(value: Any) -> Mapping[Any, Any]:
    return value if isinstance(value, Mapping) else {}


def _inside(value: Any, name: str, number: int) -> Any:
    found = _mapping(value).get(name)
    if found is None:
        raise InputError(
            f"`rows` must hold log-probabilities; the response in row {number} has no {name!r}. "
            "Ask the interface for logprobs and top_logprobs.",
            argument="rows",
            rows=(number,),
        )
    return found


def _at(tokens: Sequence[Any], position: int, number: int) -> Any:
    if not 0 <= position < len(tokens):
        raise InputError(
            f"`position` is {position}, but row {number} has {len(tokens)} tokens.",
            argument="position",
            rows=(number,),
        )
    return tokens[position]


def _pairs(row: Any, number: int) -> Iterator[tuple[Hashable, Any]]:
    if isinstance(row, Mapping):
        for token, value in row.items():
            yield token, value["logprob"] if "logprob" in _mapping(value) else value
    elif isinstance(row, Sequence) and not isinstance(row, (str, bytes)):
        for entry in row:
            token = _mapping(entry).get("token", _mapping(entry).get("id"))
            if token is None or "logprob" not in entry or not isinstance(token, Hashable):
                raise _not_understood(entry, number)
            yield token, entry["logprob"]
    else:
        raise _not_understood(row, number)


def _not_understood(value: object, number: int) -> InputError:
    return InputError(
        "`rows` must hold log-probabilities: {token: log-probability}, an array of objects with `token` and "
        f"`logprob`, or a response that contains one; row {number} holds {show(value)}.",
        argument="rows",
        rows=(number,),
    )
