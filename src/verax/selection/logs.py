"""Logs of training as columns of numbers, one row per epoch."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from verax.common import strictjson
from verax.errors import InputError, Remedy, join, show
from verax.inputs.arrays import Floats, to_array, to_host
from verax.selection.trainers import Record, curve, log_history, unify

# What rows are numbered by, and the columns that have these numbers, in small letters, best first.
EPOCH, STEP = "epoch", "step"
_COUNTERS = {
    EPOCH: ("epoch",),
    STEP: (
        "step",
        "global_step",
        "global step",
        "_step",
        "trainer/global_step",
        "train/global_step",
        "iteration",
        "iter",
        "iterations",
        "round",
        "boosting_round",
        # The index of a frame.
        "",
        "unnamed: 0",
    ),
}


@dataclass(frozen=True)
class TrainingLog:
    """Columns of equal length, one row per epoch or step; NaN where there is no value."""

    epochs: Floats
    columns: dict[str, Floats]
    counter: str
    notes: tuple[str, ...]


def merge(
    records: Iterable[Record], argument: str, *, run: str | None = None, called: str = "value"
) -> TrainingLog:
    """Records brought together by their epoch, or step; without either, each record is one.

    Loggers write training and validation metrics of one epoch into separate records with holes. Where
    a metric has several values in an epoch, the last one counts, with a note. Steps count where
    epochs are fractions, which are rounded: Hugging Face names its checkpoints by step.

    Parameters
    ----------
    records : Iterable[Record]
        Values by name, or as TensorBoard and Weights & Biases write them.
    argument : str
        What errors are about.
    run : str, optional
        Which run, where there are several.
    called : str
        The name of a metric that is logged as "value" alone.
    """
    numbers = (
        hasattr(records, "__array_namespace__")
        and getattr(getattr(records, "dtype", None), "kind", "") != "O"
    )
    if numbers or isinstance(records, (str, bytes, Mapping)) or not isinstance(records, Iterable):
        raise InputError(
            f"must be a list of records, one mapping of names to numbers per epoch, not {show(records)}",
            argument=argument,
            kind="type",
            values=[records],
        )
    listed = [_checked(record, argument, i) for i, record in enumerate(records)]
    if not listed:
        raise InputError("There are no epochs to select from", argument=argument, kind="length")
    listed, remarks = unify(listed, run=run, argument=argument, called=called)
    every = list(dict.fromkeys(name for record in listed for name in record))
    number, counter = _counter(listed, every)
    names = [name for name in every if not _counts(name)]
    cells: dict[str, dict[float, float]] = {name: {} for name in names}
    texts: dict[str, tuple[int, object]] = {}
    repeated: dict[str, None] = {}
    epochs: dict[float, None] = {}
    for i, record in enumerate(listed):
        epoch = float(i) if number is None else _epoch(record, number, argument, i)
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
    notes = _notes(texts, [name for name in repeated if name in columns], counter)
    return TrainingLog(np.array(order), columns, counter, (*remarks, *notes))


def _counts(name: str, kinds: Iterable[str] = _COUNTERS) -> bool:
    """Whether a column numbers rows instead of measuring something."""
    return any(name.strip().lower() in _COUNTERS[kind] for kind in kinds)


def _counter(records: Sequence[Record], names: Sequence[str]) -> tuple[str | None, str]:
    """The column that numbers the records, None without any, and what it counts."""

    def numbers(name: str) -> list[float | None]:
        return [_number(record.get(name)) for record in records]

    def complete(kind: str) -> list[str]:
        found = [name for name in names if _counts(name, (kind,))]
        return [name for name in found if all(x is not None and math.isfinite(x) for x in numbers(name))]

    epochs, steps = complete(EPOCH), complete(STEP)
    whole = [name for name in epochs if all(x is not None and x.is_integer() for x in numbers(name))]
    if whole or (epochs and not steps):
        return (whole or epochs)[0], EPOCH
    if steps:
        return steps[0], STEP
    # None is complete: the error about the first says which record lacks it.
    return next((name for kind in (EPOCH, STEP) for name in names if _counts(name, (kind,))), None), EPOCH


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


def _epoch(record: Record, number: str, argument: str, i: int) -> float:
    epoch = _number(record.get(number))
    if epoch is None or not math.isfinite(epoch):
        raise InputError(
            f"Every record must have the number of its {number} if one has",
            argument=argument,
            kind="missing",
            found=f"record {i} has {show(record.get(number))}",
            rows=(i,),
            values=[record.get(number)],
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


def _notes(texts: Iterable[str], repeated: Sequence[str], counter: str) -> tuple[str, ...]:
    notes = []
    if texts := list(texts):
        notes.append(f"Not numbers, and left out: {join(texts)}.")
    if repeated:
        notes.append(f"Several values in one {counter}, of which the last one counts: {join(repeated)}.")
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
                "Every row must have the header's number of cells", f"row {line} has more or fewer", line - 2
            )
    return list(rows)


def read_json_lines(path: Path) -> list[Record]:
    """The records of a file with a JSON object per line."""
    records = []
    for i, line in enumerate(_read_text(path).split("\n")):
        if not line.strip():
            continue
        try:
            records.append(strictjson.parse(line))
        except strictjson.JsonError as error:
            raise _unreadable(
                "Every line must be a JSON object", f"line {i + 1} is not ({error}): {show(line, 80)}", i
            ) from None
    return records


def read_json(path: Path) -> list[Record]:
    """The records of a JSON file: a list of objects, an object of lists, or what a trainer wrote."""
    try:
        data = strictjson.parse(_read_text(path))
    except strictjson.JsonError as error:
        raise _unreadable("The file must be JSON", str(error)) from None
    if isinstance(data, Mapping) and "log_history" in data:
        return log_history(data)
    if isinstance(data, list) and data and all(isinstance(row, list) and len(row) == 3 for row in data):
        return curve(data)
    return data if isinstance(data, list) else records_of(_by_set(data), "history")


def _by_set(data: Any) -> Any:
    """Results by data set and metric, {"validation_0": {"auc": [...]}}, by the names of both."""
    if not isinstance(data, Mapping) or not all(isinstance(own, Mapping) for own in data.values()):
        return data
    return {f"{part}-{metric}": values for part, own in data.items() for metric, values in own.items()}
