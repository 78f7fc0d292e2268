"""Logs of training as columns of numbers, one row an epoch."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from verax.arrays import to_array, to_host
from verax.errors import InputError, join, show

Floats = np.ndarray[Any, np.dtype[np.float64]]
Record = Mapping[str, object]

# The columns that number rows instead of measuring something.
EPOCH, STEP = "epoch", "step"


@dataclass(frozen=True)
class Log:
    """Columns of equal length; NaN where an epoch has no value."""

    epochs: Floats
    columns: dict[str, Floats]
    notes: tuple[str, ...]


def merge(records: Iterable[Record], source: str) -> Log:
    """Records brought together by their epoch; without epochs, each record is one.

    Loggers write training and validation metrics of one epoch into separate records with holes. Where
    a metric has several values in an epoch, the last one stands, and a note says so.
    """
    listed = [_checked(record, source, i) for i, record in enumerate(records)]
    if not listed:
        raise InputError(f"{source} has no epochs; there is nothing to select from.", argument="history")
    numbered = any(EPOCH in record for record in listed)
    names = [
        n for n in dict.fromkeys(n for r in listed for n in r) if n != EPOCH and (n != STEP or not numbered)
    ]
    cells: dict[str, dict[float, float]] = {name: {} for name in names}
    texts: dict[str, tuple[int, object]] = {}
    repeated: dict[str, None] = {}
    epochs: dict[float, None] = {}
    for i, record in enumerate(listed):
        epoch = _epoch(record, source, i) if numbered else float(i)
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
                f"{source}: {name!r} must hold numbers; record {i} holds {show(cell)}. "
                "Correct it, or leave the column out.",
                argument="history",
                rows=(i,),
            )
    order = sorted(epochs)
    columns = {
        name: np.array([cells[name].get(epoch, math.nan) for epoch in order])
        for name in names
        if name not in texts
    }
    if not columns:
        raise InputError(f"{source} has no column of numbers besides the epoch.", argument="history")
    return Log(np.array(order), columns, _notes(texts, [name for name in repeated if name in columns]))


def _checked(record: object, source: str, i: int) -> Record:
    if not isinstance(record, Mapping) or not all(isinstance(name, str) for name in record):
        raise InputError(
            f"{source} must hold a mapping of names to numbers an epoch; record {i} is {show(record)}.",
            argument="history",
            rows=(i,),
        )
    return record


def _epoch(record: Record, source: str, i: int) -> float:
    epoch = _number(record.get(EPOCH))
    if epoch is None or not math.isfinite(epoch):
        raise InputError(
            f"{source} must number every record once one has an epoch; record {i} has {record.get(EPOCH)!r}.",
            argument="history",
            rows=(i,),
        )
    return epoch


def _number(value: object) -> float | None:
    """The number in a cell, NaN if it is empty; None if there is something else."""
    if value is None or value == "":
        return math.nan
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, RuntimeError):
        return None


def _notes(texts: Iterable[str], repeated: Sequence[str]) -> tuple[str, ...]:
    notes = []
    if texts := list(texts):
        notes.append(f"Not numbers, and left out: {join(texts)}.")
    if repeated:
        notes.append(f"Several values in one epoch, of which the last one stands: {join(repeated)}.")
    return tuple(notes)


# ---- forms ---------------------------------------------------------------------------------------


def records_of(columns: object, source: str) -> list[Record]:
    """The records in a mapping of names to columns, or in a data frame."""
    given: Any = columns
    if not isinstance(columns, Mapping):
        import narwhals as nw

        try:
            given = nw.from_native(given, eager_only=True).to_dict(as_series=False)
        except TypeError:
            raise InputError(
                f"{source} must be a mapping of names to lists or a data frame, not a "
                f"{type(columns).__name__}.",
                argument="history",
            ) from None
    lists = {str(name): to_host(to_array(values, str(name))[0]).tolist() for name, values in given.items()}
    lengths = {name: len(values) for name, values in lists.items()}
    if len(set(lengths.values())) > 1:
        found = join(f"{name!r} has {n}" for name, n in lengths.items())
        raise InputError(
            f"{source} must have columns of one length; {found}. Pass records with epochs where metrics are "
            "not logged equally often.",
            argument="history",
        )
    return [dict(zip(lists, row, strict=True)) for row in zip(*lists.values(), strict=True)]


def read_csv(path: Path) -> list[Record]:
    """The rows of a CSV file with a header."""
    with path.open(newline="", encoding="utf-8-sig") as file:
        header = file.readline()
        if "," not in header and any(mark in header for mark in ";\t|"):
            raise InputError(
                f"{path.name} must be separated by commas; its first line reads {show(header.strip())}.",
                argument="history",
            )
        file.seek(0)
        rows = list(csv.DictReader(file))
    for line, row in enumerate(rows, start=2):
        if None in row or None in row.values():
            raise InputError(
                f"{path.name} must have a cell for every name in its header; row {line} has more or fewer.",
                argument="history",
                rows=(line - 2,),
            )
    return list(rows)


def read_json_lines(path: Path) -> list[Record]:
    """The records of a file with a JSON object a line."""
    records = []
    for i, line in enumerate(path.read_text(encoding="utf-8-sig").splitlines()):
        if not line.strip():
            continue
        try:
            records.append(json.loads(line))
        except json.JSONDecodeError as error:
            raise InputError(
                f"{path.name} must hold a JSON object a line; line {i + 1} does not ({error}).",
                argument="history",
                rows=(i,),
            ) from None
    return records


def read_json(path: Path) -> list[Record]:
    """The records of a JSON file: a list of objects, or an object of lists."""
    try:
        data = json.loads(path.read_text(encoding="utf-8-sig"))
    except json.JSONDecodeError as error:
        raise InputError(f"{path.name} is not JSON: {error}.", argument="history") from None
    return data if isinstance(data, list) else records_of(data, path.name)
