"""Log-probabilities of tokens, as rows in memory or as a JSON Lines file."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from os import PathLike
from typing import Any

from verax.common import strictjson
from verax.errors import InputError, show
from verax.inputs.records.record import Choices, RecordError, repeated
from verax.inputs.records.shapes import read_tokens


def read_rows(rows: object) -> Iterable[Any]:
    """The rows of the JSON Lines file that `rows` names, or `rows` themselves."""
    if isinstance(rows, (str, PathLike)):
        return read_lines(rows)
    # Numbers are no rows here, and some arrays cannot be iterated over.
    array = hasattr(rows, "__array_namespace__") and getattr(getattr(rows, "dtype", None), "kind", "") != "O"
    if not isinstance(rows, Iterable) or array or isinstance(rows, (Mapping, bytes, type)):
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
                    yield parse_line(line, number, str(path))
    except OSError as error:
        raise _unreadable(path, error.strerror or "it cannot be opened") from None
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        # Text that is not UTF-8, or a null character in the name.
        raise _unreadable(path, str(error)) from None


def parse_line(line: str | bytes, number: int, source: str, *, once: bool = True) -> Any:
    """The value of a line of JSON, in which every key must occur `once` unless told otherwise."""
    try:
        return strictjson.parse(line, once=once)
    except strictjson.JsonError as error:
        raise _bad_line(source, number, str(error)) from None


def _bad_line(path: str, number: int, why: str) -> InputError:
    return InputError(
        "Every line must be JSON",
        argument="rows",
        kind="file",
        found=f"line {number} is not ({why})",
        rows=[number - 1],
        source=path,
    )


def _unreadable(path: str | PathLike[str], why: str) -> InputError:
    problem = f"{show(str(path))} is not: {why}"
    return InputError("must name a file that can be read", argument="rows", kind="file", found=problem)


def confidences_of(row: Any, number: int, position: int = 0) -> dict[Hashable, float]:
    """One row as {token: probability}."""
    try:
        listed = read_tokens(row, Choices(position))
        confidences = dict(zip(listed.labels, listed.values, strict=True))
        if len(confidences) < len(listed.labels):
            raise repeated(listed.labels)
    except RecordError as problem:
        raise problem.at(f"row {number}", number) from None
    return confidences
