"""Log-probabilities of tokens, in the shapes that language models and their interfaces return them."""

from __future__ import annotations

import json
import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from os import PathLike
from typing import Any

from verax.errors import InputError, Remedy, show

# Interfaces write this for a token that is too unlikely to have a log-probability.
TOO_UNLIKELY = -9999.0


def read_rows(rows: object) -> Iterable[Any]:
    """Rows from a JSON Lines file if `rows` names one, else `rows` themselves."""
    if isinstance(rows, (str, PathLike)):
        return read_lines(rows)
    scalar = getattr(rows, "ndim", 1) == 0
    if not isinstance(rows, Iterable) or scalar or isinstance(rows, (Mapping, bytes, type)):
        raise InputError(
            f"must hold one row of log-probabilities after the other, not {show(rows)}",
            argument="rows",
            kind="type",
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
                        raise _bad_line(path, number, f"{error.msg} at column {error.colno}") from None
                    except (ValueError, RecursionError):
                        raise _bad_line(path, number, "a number too long or too many levels") from None
    except OSError as error:
        raise _unreadable(path, error.strerror or "it cannot be opened") from None
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        # Text that is not UTF-8, or a null character in the name.
        raise _unreadable(path, str(error)) from None


def _bad_line(path: str | PathLike[str], number: int, why: str) -> InputError:
    return InputError(
        "Every line must be JSON",
        argument="rows",
        kind="file",
        found=f"line {number} is not ({why})",
        rows=[number - 1],
        source=str(path),
    )


def _unreadable(path: str | PathLike[str], why: str) -> InputError:
    found = f"{show(str(path))} is not: {why}"
    return InputError("must name a file that can be read", argument="rows", kind="file", found=found)


def read_records(
    path: str | PathLike[str], outcome: str, position: int = 0
) -> tuple[list[dict[Hashable, float]], list[Hashable]]:
    """The lists and outcomes of a JSON Lines file with one record per line.

    Parameters
    ----------
    path : str or path
        The file.
    outcome : str
        The field that holds what happened; dots lead into nested fields ("item.answer").
    position : int
        Which of several generated tokens to read, where a record has a whole response.
    """
    lists, outcomes = [], []
    for number, record in enumerate(read_lines(path)):
        listed = confidences_of(record, number, position)
        happened = _field(record, outcome, number)
        # JSON keys are always text, so token ids may be text in the lists and numbers in the outcomes.
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
                "must name a field of every record, which holds what happened",
                argument="outcome",
                kind="missing",
                found=f"row {number} has no field {show(path)}",
                rows=[number],
            )
    if not isinstance(value, (str, int)):
        raise InputError(
            "must name a field that holds one token",
            argument="outcome",
            kind="label",
            found=f"row {number} holds {show(value)}",
            rows=[number],
            values=[value],
        )
    return value


def confidences_of(row: Any, number: int, position: int = 0) -> dict[Hashable, float]:
    """One row as {token: probability}.

    Tokens at TOO_UNLIKELY are not listed: their probability is not known, and need not be zero.
    """
    listed: dict[Hashable, float] = {}
    for token, value in _pairs(_unwrap(row, number, position), number):
        if isinstance(value, bool) or not isinstance(value, (int, float)) or math.isnan(value):
            raise _not_understood(value, number)
        if token in listed:
            raise InputError(
                "must not list a token twice",
                argument="rows",
                kind="list",
                found=f"row {number} lists {show(token)} again",
                rows=[number],
                values=[token],
                remedies=[Remedy("Different tokens can look the same as text: pass token ids.")],
            )
        if value > TOO_UNLIKELY:
            # Numbers far above zero are no log-probabilities; the check of the lists refuses them.
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
        # The older form has one mapping per generated token; chat completions have one array of objects.
        older = isinstance(top, list) and bool(top) and not any("logprob" in _mapping(each) for each in top)
        return _at(top, position, number) if older else top
    return row


def _mapping(value: Any) -> Mapping[Any, Any]:
    return value if isinstance(value, Mapping) else {}


def _inside(value: Any, name: str, number: int) -> Any:
    found = _mapping(value).get(name)
    if found is None:
        raise InputError(
            "must hold log-probabilities",
            argument="rows",
            kind="missing",
            found=f"the response in row {number} has no {name!r}",
            rows=[number],
            remedies=[Remedy("Ask the interface for logprobs and top_logprobs.")],
        )
    return found


def _at(tokens: Sequence[Any], position: int, number: int) -> Any:
    if not 0 <= position < len(tokens):
        raise InputError(
            "must be the number of a token in every row, counted from 0",
            argument="position",
            found=f"it is {position}, and row {number} has {len(tokens)} tokens",
            rows=[number],
            values=[position],
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
        "must hold log-probabilities: {token: log-probability}, an array of objects with 'token' and "
        "'logprob', or a response that contains one",
        argument="rows",
        kind="type",
        found=f"row {number} holds {show(value)}",
        rows=[number],
        values=[value],
    )
