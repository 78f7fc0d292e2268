"""Logs of training as columns of numbers, one row per epoch."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from verax.errors import InputError, Remedy, join, show
from verax.inputs.arrays import Floats, to_array, to_host

Record = Mapping[str, object]

# The columns that number rows instead of measuring something.
EPOCH, STEP = "epoch", "step"


@dataclass(frozen=True)
class TrainingLog:
    """Columns of equal length; NaN where an epoch has no value."""

    epochs: Floats
    columns: dict[str, Floats]
    notes: tuple[str, ...]


def merge(records: Iterable[Record], argument: str) -> TrainingLog:
    """Records brought together by their epoch; without epochs, each record is one.

    Loggers write training and validation metrics of one epoch into separate records with holes. Where
    a metric has several values in an epoch, the last one counts, and a note says so.

    Parameters
    ----------
    records : Iterable[Record]
        Values by name.
    argument : str
        What errors are about.
    """
    listed = [_checked(record, argument, i) for i, record in enumerate(records)]
    if not listed:
        raise InputError("There are no epochs to select from", argument=argument, kind="length")
    numbered = any(EPOCH in record for record in listed)
    names = [
        n for n in dict.fromkeys(n for r in listed for n in r) if n != EPOCH and (n != STEP or not numbered)
    ]
    cells: dict[str, dict[float, float]] = {name: {} for name in names}
    texts: dict[str, tuple[int, object]] = {}
    repeated: dict[str, None] = {}
    epochs: dict[float, None] = {}
    for i, record in enumerate(listed):
        epoch = _epoch(record, argument, i) if numbered else float(i)
        epochs[epoch] = None
        for name in names:
            value = _number(record.get(name))
            if value is None:
                texts.setdefault(name, (i, record.get(name)))
            elif not math.isnan(value):
                if epoch in cells[name]:
                    repeated[name] = None
                cells[name][epoch] = value
    for name, (i, cell) in texts.items():
        if cells[name]:
            raise InputError(
                f"Column {show(name)} must hold numbers",
                argument=argument,
                kind="type",
                found=f"record {i} holds {show(cell)}",
                rows=(i,),
                values=[cell],
                remedies=[Remedy("Correct it, or leave the column out.")],
            )
    order = sorted(epochs)
    columns = {
        name: np.array([cells[name].get(epoch, math.nan) for epoch in order])
        for name in names
        if name not in texts
    }
    if not columns:
        raise InputError("No column besides the epoch holds numbers", argument=argument, kind="missing")
    return TrainingLog(
        np.array(order), columns, _notes(texts, [name for name in repeated if name in columns])
    )


def _checked(record: object, argument: str, i: int) -> Record:
    if not isinstance(record, Mapping) or not all(isinstance(name, str) for name in record):
        raise InputError(
            "Every record must be a mapping of names to numbers",
            argument=argument,
            kind="type",
            found=f"record {i} is {show(record)}",
            rows=(i,),
            values=[record],
        )
    return record


def _epoch(record: Record, argument: str, i: int) -> float:
    epoch = _number(record.get(EPOCH))
    if epoch is None or not math.isfinite(epoch):
        raise InputError(
            "Every record must have the number of its epoch if one has",
            argument=argument,
            kind="missing",
            found=f"record {i} has {show(record.get(EPOCH))}",
            rows=(i,),
            values=[record.get(EPOCH)],
        )
    return epoch


def _number(value: object) -> float | None:
    """The number in a cell, NaN if it is empty; None if there is something else."""
    if value is None or value == "":
        return math.nan
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, RuntimeError, OverflowError):
        return None


def _notes(texts: Iterable[str], repeated: Sequence[str]) -> tuple[str, ...]:
    notes = []
    if texts := list(texts):
        notes.append(f"Not numbers, and left out: {join(texts)}.")
    if repeated:
        notes.append(f"Several values in one epoch, of which the last one counts: {join(repeated)}.")
    return tuple(notes)


# ---- forms ---------------------------------------------------------------------------------------


def records_of(columns: object, argument: str) -> list[Record]:
    """The records in a mapping of names to columns, or in a data frame."""
    given: Any = columns
    if not isinstance(columns, Mapping):
        import narwhals as nw

        try:
            given = nw.from_native(given, eager_only=True).to_dict(as_series=False)
        except TypeError:
            raise InputError(
                f"must be a mapping of names to lists or a data frame, not {show(columns)}",
                argument=argument,
                kind="type",
            ) from None
    lists = {str(name): _column(str(name), values, argument) for name, values in given.items()}
    lengths = {name: len(values) for name, values in lists.items()}
    if len(set(lengths.values())) > 1:
        raise InputError(
            "must have columns of one length",
            argument=argument,
            kind="length",
            found=join(f"{show(name)} has {n}" for name, n in lengths.items()),
            remedies=[Remedy("Use records with epochs where metrics are not logged equally often.")],
        )
    return [dict(zip(lists, row, strict=True)) for row in zip(*lists.values(), strict=True)]


def _column(name: str, values: object, argument: str) -> list[Any]:
    if isinstance(values, (list, tuple)):
        return list(values)
    array = None if isinstance(values, (str, bytes, Mapping)) else to_host(to_array(values, name)[0])
    if array is None or array.ndim != 1:
        raise InputError(
            "must hold a list of numbers for every name",
            argument=argument,
            kind="type",
            found=f"{show(name)} holds {show(values)}",
            values=[values],
        )
    return array.tolist()  # type: ignore[no-any-return]


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise _unreadable("The text must be UTF-8", f"byte {error.start} is not") from None


def _unreadable(requirement: str, found: str, row: int | None = None) -> InputError:
    rows = () if row is None else (row,)
    return InputError(requirement, argument="history", kind="file", found=found, rows=rows)


def _parse(text: str) -> Any:
    """The value of a JSON text; ValueError says in a few words why there is none."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise ValueError(f"{error.msg} at {where}" if error.lineno > 1 else error.msg) from None
    except (ValueError, RecursionError):
        raise ValueError("a number with too many digits, or nested too deeply") from None


def read_csv(path: Path) -> list[Record]:
    """The rows of a CSV file with a header."""
    text = _read_text(path)
    header = text.partition("\n")[0].strip()
    if "," not in header and any(mark in header for mark in ";\t|"):
        raise _unreadable("Columns must be separated by commas", f"the first line reads {show(header, 80)}")
    try:
        rows = list(csv.DictReader(io.StringIO(text, newline="")))
    except csv.Error as error:
        raise _unreadable("The file must be CSV", str(error)) from None
    for line, row in enumerate(rows, start=2):
        if None in row or None in row.values():
            raise _unreadable(
                "Every row must have as many cells as the header", f"row {line} has more or fewer", line - 2
            )
    return list(rows)


def read_json_lines(path: Path) -> list[Record]:
    """The records of a file with a JSON object per line."""
    records = []
    for i, line in enumerate(_read_text(path).split("\n")):
        if not line.strip():
            continue
        try:
            records.append(_parse(line))
        except ValueError as error:
            raise _unreadable(
                "Every line must be a JSON object", f"line {i + 1} is not ({error}): {show(line, 80)}", i
            ) from None
    return records


def read_json(path: Path) -> list[Record]:
    """The records of a JSON file: a list of objects, or an object of lists."""
    try:
        data = _parse(_read_text(path))
    except InputError:
        raise
    except ValueError as error:
        raise _unreadable("The file must be JSON", str(error)) from None
    return data if isinstance(data, list) else records_of(data, "history")
