"""Tables of lists: a line per row and class, pairs of columns, or a column per class."""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from verax.common.ids import id_of
from verax.errors import InputError, passing, show
from verax.files.formats.records import RecordStream, open_stream
from verax.files.formats.tables import SourceTable
from verax.files.naming import MAYBE_TARGETS, PROBS, TARGETS, spoken
from verax.files.source import Source
from verax.inputs.reading import Reading, named_columns
from verax.inputs.records.classifiers import ARRAYS, LOGARITHMS, MAPPED, PROBABILITIES, of_numbers
from verax.inputs.records.record import FEW_DIGITS, Choices, Listed, mapping, not_understood, sequence
from verax.inputs.records.texts import number_of

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
_LONG_HEAD, _ROWS, _IDS = 1000, 2**16, 2**12


@dataclass(frozen=True)
class LongColumns:
    """Which column is what."""

    ids: tuple[str, ...]
    classes: str
    probabilities: str
    outcome: str | None


def find_columns(names: Sequence[str], settings: Reading) -> LongColumns | None:
    """The columns of a long table by their names; None where there is no such table, or doubt."""
    stated = named_columns(settings.id)
    rest = [n for n in names if n not in (settings.weights, *named_columns(settings.groups), *settings.by)]
    known = bool(stated) and all(name in names for name in stated)
    ids = stated if known else tuple(n for n in rest if _is_id(spoken(n)))
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
        table = SourceTable.of_first(path, settings)
        columns = find_columns(table.schema.names, settings)
        if columns is None:
            return False
        wanted = [*columns.ids, columns.classes, columns.probabilities]
        batch = next(iter(table.batches(wanted, _LONG_HEAD)))
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
    return RecordStream(str(path), "row", _grouped_records(table, columns, changed)), changed


def _grouped_records(
    table: SourceTable, columns: LongColumns, settings: Reading
) -> Iterator[tuple[int, Any]]:
    wanted = [*columns.ids, columns.classes, columns.probabilities, *named_columns(columns.outcome)]
    names = list(dict.fromkeys([*wanted, *settings.beside]))
    chunks: dict[str, list[Any]] = {name: [] for name in names}
    for batch in table.batches(names, _ROWS):
        for name in names:
            chunks[name].append(batch.column(name))
    arrays = {name: pa.chunked_array(parts) for name, parts in chunks.items()}
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


_WORDS = frozenset((*PROBS, *PROBABILITIES, *LOGARITHMS, "score", "conf", "lp"))
_NUMBERED = re.compile(r"(\D*)(\d+)(\D*)")
# Rows that tell what columns hold.
_HEAD = 20


def _read_pairs(record: Any, _: Choices) -> Listed:
    classes, values = (sequence(mapping(record).get(name)) for name in ("classes", "probabilities"))
    if not isinstance(record, Mapping) or len(classes) != len(values):
        raise not_understood(record, "pairs of columns with a class and its probability")
    pairs = zip(classes, values, strict=True)
    filled = [(label, value) for label, value in pairs if not is_blank(label) and not is_blank(value)]
    listed = of_numbers(filled)
    listed.blank = len(classes) - len(filled)
    return listed


PAIRS = replace(
    ARRAYS,
    name="pairs",
    what="pairs of columns with a class and its probability, where blank cells are not listed",
    needs="columns such as t1, t1_prob, t2, t2_prob, and one of outcomes",
    fits=lambda _: False,
    read=_read_pairs,
    tolerance=FEW_DIGITS,
)


@dataclass(frozen=True)
class ColumnPairs:
    """The columns of classes, and those of their probabilities, in order."""

    classes: tuple[str, ...]
    values: tuple[str, ...]


def find_pairs(names: Sequence[str]) -> list[ColumnPairs]:
    """Every way in which columns with the same numbers may be pairs.

    >>> find_pairs(["id", "t1", "t1_prob", "t2", "t2_prob"])
    [ColumnPairs(classes=('t1', 't2'), values=('t1_prob', 't2_prob'))]
    """
    stems: dict[tuple[str, str], dict[int, str]] = {}
    for name in names:
        match = _NUMBERED.fullmatch(spoken(name))
        if match is not None and len(match[2]) < 5:
            stems.setdefault((match[1], match[3]), {})[int(match[2])] = name
    several = {stem: columns for stem, columns in stems.items() if len(columns) > 1}
    values = [stem for stem in several if _WORDS & set("_".join(stem).split("_"))]
    classes = [stem for stem in several if stem not in values]
    return [
        ColumnPairs(tuple(several[label][i] for i in order), tuple(several[other][i] for i in order))
        for label, other in product(classes, values)
        if several[label].keys() == several[other].keys() and (order := sorted(several[label]))
    ]


def is_paired(path: Path, settings: Reading) -> bool:
    """Whether a table has one set of such pairs, with texts for classes and probabilities beside them."""
    try:
        # Names are read at once, and rows of most tables need not be.
        pairs = find_pairs(SourceTable.of_file(path, settings).schema.names)
        if len(pairs) != 1:
            return False
        records = [mapping(record) for _, record in open_stream(path, settings).head(_HEAD)]
    except InputError:
        return False
    labels, cells = (
        [record.get(name) for record in records for name in names if not is_blank(record.get(name))]
        for names in (pairs[0].classes, pairs[0].values)
    )
    texts = bool(labels) and any(isinstance(label, str) and number_of(label) is None for label in labels)
    return texts and bool(cells) and all(number_of(cell) is not None for cell in cells)


def paired_table(path: Path, settings: Reading) -> tuple[RecordStream, Reading]:
    """A record per row, and the settings that read them."""
    stream = open_stream(path, settings)
    head = [mapping(record) for _, record in stream.head(_HEAD)]
    pairs = find_pairs([str(name) for name in head[0]]) if head else []
    if len(pairs) != 1:
        columns = ", ".join(show(str(name)) for name in (head[0] if head else ()))
        raise InputError(
            "must have one set of columns such as t1, t1_prob, t2, t2_prob",
            argument="path",
            kind="missing",
            found=f"the columns are {columns}",
            source=stream.source,
        )
    numbers = [number_of(record.get(name)) for record in head for name in pairs[0].values]
    known = [number for number in numbers if number is not None]
    logarithms = bool(known) and max(known) <= 0 and min(known) < 0
    return RecordStream(stream.source, stream.word, _paired_records(stream, pairs[0], logarithms)), settings


def _paired_records(stream: RecordStream, pairs: ColumnPairs, logarithms: bool) -> Iterator[tuple[int, Any]]:
    used = {*pairs.classes, *pairs.values}
    for number, record in stream:
        fields = mapping(record)
        values = [fields.get(name) for name in pairs.values]
        if logarithms:
            values = [exponential(cell) for cell in values]
        rest = {name: value for name, value in fields.items() if name not in used}
        yield (
            number,
            {**rest, "classes": [fields.get(name) for name in pairs.classes], "probabilities": values},
        )


def exponential(cell: Any) -> Any:
    """The probability of a log-probability; a cell without a number stays as it is."""
    number = number_of(cell)
    return cell if number is None else math.exp(min(number, 700.0))


def is_blank(cell: Any) -> bool:
    """Whether a cell of a table has no value."""
    return cell is None or cell == "" or cell != cell


# What holds the cells of a row in the records that `wide_table` makes.
_CELLS = "probabilities"


def _read_wide(record: Any, _: Choices) -> Listed:
    cells = mapping(record).get(_CELLS)
    if not isinstance(cells, Mapping):
        raise not_understood(record, "a column per class")
    filled = [(name, value) for name, value in cells.items() if not is_blank(value)]
    listed = of_numbers(filled)
    listed.blank = len(cells) - len(filled)
    return listed


WIDE = replace(
    MAPPED,
    name="wide",
    what="a column per class, where blank cells are classes that are not listed",
    needs="a column of outcomes, and one of probabilities or log-probabilities per class",
    fits=lambda _: False,
    read=_read_wide,
    tolerance=FEW_DIGITS,
)


def wide_table(path: Path, settings: Reading) -> tuple[RecordStream, Reading]:
    """A record per row, and the settings that read them; the columns are found as for full distributions."""
    source = _source(path, settings)
    roles = source.roles
    classes = source.classes if source.classes is not None else roles.probs
    if len(classes) != len(roles.probs):
        raise InputError(
            "must have a column per class",
            argument="path",
            kind="missing",
            found=f"{', '.join(map(show, roles.probs))} holds those of all {len(classes)} classes",
            source=str(path),
        )
    beside = [*named_columns(roles.target or None), *settings.beside]
    stream = open_stream(path, settings)
    columns = dict(zip(roles.probs, classes, strict=True))
    logarithms = _are_logarithms(stream, columns)
    if settings.names is None:
        _refuse_others(stream, {*columns, *beside}, logarithms)
    changed = replace(settings, target=roles.target)
    if settings.n_classes is None:
        # Rows to be normalized also hold other tokens, whose probability is not that of a blank cell.
        others = "omit" if settings.normalize else settings.others
        changed = replace(changed, classes=tuple(classes), others=others)
    return RecordStream(
        stream.source, stream.word, _wide_records(stream, columns, beside, logarithms)
    ), changed


def _source(path: Path, settings: Reading) -> Source:
    """The table as if it had full distributions; names of classes settle doubt about its columns."""
    from verax import files

    try:
        return files.open(
            path,
            target=settings.target,
            classes=settings.names,
            weights=settings.weights,
            groups=settings.groups,
            by=settings.by,
            id=settings.id,
            delimiter=settings.delimiter,
        )
    except InputError as error:
        if error.argument != "probs":
            raise
        raise error.replace(remedies=[passing("to choose the columns", classes=...)]) from None


def _are_logarithms(stream: RecordStream, columns: Mapping[str, Hashable]) -> bool:
    """Whether the first rows hold log-probabilities: some number is below zero, and none above."""
    cells = (mapping(record).get(name) for _, record in stream.head() for name in columns)
    numbers = [number for cell in cells if (number := number_of(cell)) is not None]
    return bool(numbers) and max(numbers) <= 0 and min(numbers) < 0


def _refuse_others(stream: RecordStream, used: set[str], logarithms: bool) -> None:
    """Refuse further columns that may be classes, which sums do not tell where cells are blank."""
    head = [mapping(record) for _, record in stream.head()]
    for name in head[0] if head else ():
        cells = [record.get(name) for record in head if not is_blank(record.get(name))]
        numbers = [number for cell in cells if (number := number_of(cell)) is not None]
        if (
            name in used
            or not numbers
            or len(numbers) < len(cells)
            or all(float(n).is_integer() for n in numbers)
        ):
            continue
        low, high = (-math.inf, 0) if logarithms else (0, 1)
        if low <= min(numbers) and max(numbers) <= high:
            raise InputError(
                "must be named where another column may be one of them",
                argument="classes",
                kind="missing",
                found=f"{show(name)} holds numbers from {low} to {high}, and no outcome is called by it",
                values=[name],
                source=stream.source,
                remedies=[passing("to choose the columns", classes=...)],
            )


def _wide_records(
    stream: RecordStream, columns: Mapping[str, Hashable], beside: list[str], logarithms: bool
) -> Iterator[tuple[int, Any]]:
    for number, record in stream:
        fields = mapping(record)
        cells = {label: fields.get(name) for name, label in columns.items()}
        if logarithms:
            cells = {label: exponential(cell) for label, cell in cells.items()}
        yield number, {**{name: fields.get(name) for name in beside}, _CELLS: cells}
