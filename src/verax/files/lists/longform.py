"""Long tables: a line per row and class, with the id of the row, the class and its probability."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from verax.errors import InputError, show
from verax.files.formats.tables import SourceTable
from verax.files.lists.streams import RecordStream
from verax.files.naming import MAYBE_TARGETS, PROBS, TARGETS, spoken
from verax.files.predictions import id_of
from verax.inputs.reading import Reading, each_name
from verax.inputs.records.classifiers import ARRAYS
from verax.inputs.records.record import FEW_DIGITS
from verax.inputs.records.stated import number_of

LONG = replace(
    ARRAYS,
    name="long",
    what="a line per row and class",
    needs="columns of ids, classes and probabilities",
    fits=lambda _: False,
)
_PROBABILITIES = (*PROBS, "score", "confidence", "conf", "prediction_probability")
_CLASSES = (
    *("class", "class_name", "class_id", "predicted_class", "predicted_label", "prediction", "predicted"),
    *("candidate", "choice", "option", "token", "label", "category", "species"),
)
# Rows that are looked at, and rows and ids that are read at a time.
_HEAD, _ROWS, _IDS = 1000, 2**16, 2**12


@dataclass(frozen=True)
class LongColumns:
    """Which column is what."""

    ids: tuple[str, ...]
    classes: str
    probabilities: str
    outcome: str | None


def find_columns(names: Sequence[str], settings: Reading) -> LongColumns | None:
    """The columns of a long table by their names; None where there is no such table, or doubt."""
    asked = each_name(settings.id)
    rest = [n for n in names if n not in (settings.weights, *each_name(settings.groups), *settings.by)]
    known = bool(asked) and all(name in names for name in asked)
    ids = asked if known else tuple(n for n in rest if _is_id(spoken(n)))
    probabilities = [name for name in rest if spoken(name) in _PROBABILITIES]
    if not (known or len(ids) == 1) or len(probabilities) != 1:
        return None
    rest = [name for name in rest if name not in (*ids, probabilities[0])]
    outcome = settings.target if settings.outcomes is None else None
    ranked = sorted((n for n in rest if spoken(n) in _CLASSES and n != outcome), key=_rank)
    if not ranked:
        return None
    if settings.late:
        outcome = None
    elif outcome is None and settings.outcomes is None:
        others = [n for n in rest if n != ranked[0] and spoken(n) in (*TARGETS, *MAYBE_TARGETS)]
        outcome = others[0] if len(others) == 1 else None
    return LongColumns(ids, ranked[0], probabilities[0], outcome)


def _is_id(name: str) -> bool:
    return name in ("id", "row", "row_number", "index", "imageid") or name.endswith("_id")


def _rank(name: str) -> int:
    return _CLASSES.index(spoken(name))


def is_long(path: Path, settings: Reading) -> bool:
    """Whether a file is a long table: ids come again, each with other classes, and sum to at most 1."""
    try:
        table = SourceTable.of_file(path, settings)
        columns = find_columns(table.schema.names, settings)
        if columns is None:
            return False
        wanted = [*columns.ids, columns.classes, columns.probabilities]
        batch = next(iter(table.batches(wanted, _HEAD)))
    except (InputError, StopIteration):
        return False
    *keys, classes, values = (batch.column(i).to_pylist() for i in range(len(wanted)))
    ids = list(zip(*keys, strict=True))
    sums: dict[Any, float] = {}
    for key, value in zip(ids, values, strict=True):
        sums[key] = sums.get(key, 0.0) + (number_of(value) or 0.0)
    different = len(set(zip(ids, classes, strict=True))) == len(ids)
    return len(sums) < len(ids) and different and max(sums.values()) <= 1 + FEW_DIGITS


def long_table(path: Path, settings: Reading) -> tuple[RecordStream, Reading]:
    """A record per id, in the order in which the ids first occur, and the settings that read them."""
    table = SourceTable.of_file(path, settings)
    columns = find_columns(table.schema.names, settings)
    if columns is None:
        raise InputError(
            "must have one column of ids, one of classes and one of probabilities",
            argument="path",
            kind="missing",
            found=f"the columns are {', '.join(map(show, table.schema.names))}",
            source=str(path),
        )
    stated = settings.late or settings.outcomes is not None
    changed = replace(settings, id=columns.ids, target=settings.target if stated else columns.outcome)
    return RecordStream(str(path), "row", _records(table, columns, changed)), changed


def _records(table: SourceTable, columns: LongColumns, settings: Reading) -> Iterator[tuple[int, Any]]:
    wanted = [*columns.ids, columns.classes, columns.probabilities, *each_name(columns.outcome)]
    names = list(dict.fromkeys([*wanted, *settings.beside]))
    found: dict[str, list[Any]] = {name: [] for name in names}
    for batch in table.batches(names, _ROWS):
        for name in names:
            found[name].append(batch.column(name))
    arrays = {name: pa.chunked_array(parts) for name, parts in found.items()}
    ids = _one_column([arrays[name].cast(pa.string()) for name in columns.ids]).dictionary_encode()
    if ids.null_count:
        row = int(np.argmax(np.asarray(ids.indices.is_null())))
        raise InputError(
            "must be present in every line",
            argument="id",
            kind="missing",
            found=f"row {row} has none",
            rows=[row],
            source=table.name,
        )
    codes = np.asarray(ids.indices)
    order = np.argsort(codes, kind="stable")
    starts = np.append(np.flatnonzero(np.diff(codes[order], prepend=-1)), len(order))
    sorted_by_id = {name: column.combine_chunks().take(pa.array(order)) for name, column in arrays.items()}
    values = _numbers(sorted_by_id.pop(columns.probabilities))
    keys = ids.dictionary.to_pylist()
    for first in range(0, len(keys), _IDS):
        last = min(first + _IDS, len(keys))
        begin, end = starts[first], starts[last]
        texts = {name: part[begin:end].to_pylist() for name, part in sorted_by_id.items()}
        numbers = values[begin:end].tolist()
        for place in range(first, last):
            mine = slice(int(starts[place] - begin), int(starts[place + 1] - begin))
            record = {name: _one(part[mine]) for name, part in texts.items() if name != columns.classes}
            record |= {columns.ids[0]: keys[place]} if len(columns.ids) == 1 else {}
            record |= {"classes": texts[columns.classes][mine]}
            yield int(order[starts[place]]), {**record, "probabilities": numbers[mine]}


def _one_column(columns: Sequence[Any]) -> Any:
    """The ids of all lines in one piece; missing where one of their columns is."""
    if len(columns) == 1:
        return columns[0].combine_chunks()
    rows = zip(*(column.to_pylist() for column in columns), strict=True)
    return pa.array([None if None in row else id_of(row) for row in rows], pa.string())


def _one(values: list[Any]) -> Any:
    """The value that all lines of a row have; the different ones where they are several."""
    if all(value == values[0] for value in values):
        return values[0]
    return sorted(set(map(str, values)))


def _numbers(column: Any) -> Any:
    try:
        return np.asarray(column.cast(pa.float64()).to_numpy(zero_copy_only=False), np.float64)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return np.array(column.to_pylist(), object)
