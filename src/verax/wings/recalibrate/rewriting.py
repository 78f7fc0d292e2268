"""A file of predictions rewritten with other probabilities; every other column stays as it is."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from verax.common.paths import matching
from verax.display.writing import written
from verax.errors import InputError, join, passing, show
from verax.files import arrow
from verax.files.arrow import ValueOrigin, both_classes
from verax.files.column_files import ColumnFile
from verax.files.formats.tables import ARRAYS, ROWS_AT_ONCE, TEXTS, SourceTable, common_format
from verax.files.listfile import ListFile
from verax.files.predictions import Array
from verax.inputs.lists.toplists import TopLists
from verax.inputs.reading import Reading

# Which endings are written, as what.
_WRITTEN = {
    ".csv": "CSV",
    ".tsv": "TSV",
    ".parquet": "Parquet",
    ".pq": "Parquet",
    ".arrow": "Arrow",
    ".feather": "Arrow",
}


def check_can_be_written(path: Path) -> None:
    """Refuse a name whose ending is none that is written."""
    if path.suffix.lower() not in _WRITTEN:
        raise InputError(
            f"must end in one of {', '.join(_WRITTEN)}",
            argument="out",
            kind="file",
            found=f"it ends in {path.suffix!r}" if path.suffix else "it has no ending",
            values=[str(path)],
        )


def columns_in(
    path: Path,
    columns: Sequence[str],
    classes: Sequence[Hashable] | None,
    renamed: Mapping[str, str],
    request: Reading,
) -> tuple[str, ...]:
    """The columns of a file in the order of `columns`: of the same name, as renamed, or of the same classes.

    Parameters
    ----------
    path : Path
    columns : sequence of str
        What the columns are called elsewhere.
    classes : sequence, optional
        The classes that they are about.
    renamed : mapping of str to str
        What some of them are called here.
    request : Reading
        How the file is read.
    """
    unknown = [name for name in renamed if name not in columns]
    if unknown:
        raise InputError(
            f"must name columns that the recalibration was fitted to: {join(map(show, columns))}",
            argument="map",
            kind="missing",
            found=f"{show(unknown[0])} is none",
            values=unknown,
        )
    paths, wanted = matching(path), tuple(renamed.get(name, name) for name in columns)
    if common_format(paths) in ARRAYS:
        return wanted
    table = SourceTable.of_paths(paths, request, str(path))
    if renamed or classes is None or set(wanted) <= set(table.schema.names):
        return wanted
    try:
        file = ColumnFile(table, replace(request, target=""))
    except InputError:
        # The error about the columns that are not there says more.
        return wanted
    by_class = dict(zip(map(str, file.classes or ()), file.roles.probs, strict=False))
    fits = len(by_class) == len(file.roles.probs) and set(by_class) == {str(name) for name in classes}
    return tuple(by_class[str(name)] for name in classes) if fits else wanted


def rewrite(
    path: Path,
    out: Path,
    columns: Sequence[str],
    change: Callable[[Array], Array],
    *,
    logits: bool = False,
    delimiter: str | None = None,
    decimal: str = ".",
) -> int:
    """Write `path` to `out` with other values in some columns; whole or not at all.

    Parameters
    ----------
    path : Path
        A file of columns, a folder, or a pattern that several files fit. Outcomes need not be among them.
    out : Path
        The new file: CSV, TSV, Parquet or Arrow by its ending.
    columns : sequence of str
        The columns of probabilities in the order of the classes; one column of lists; or the one of two
        classes that has a column.
    change : callable
        The new (N, K) probabilities of the (N, K) numbers read.
    logits : bool
        The columns hold logits. What is written are probabilities.
    delimiter, decimal : str
        Of a CSV file that is read.

    Returns
    -------
    The number of rows.
    """
    check_can_be_written(out)
    paths = matching(path)
    if common_format(paths) in ARRAYS:
        raise InputError(
            f"{path} must be a file of columns",
            argument="apply",
            kind="file",
            found="arrays have no other columns to keep; recalibrate them in Python",
        )
    request = Reading(logits=logits, delimiter=delimiter, decimal=decimal)
    table = SourceTable.of_paths(paths, request, str(path))
    _check_columns(table, columns, path)
    table.as_numbers(columns)
    rows = pa.concat_tables(
        [pa.Table.from_batches([batch]) for batch in table.batches(table.schema.names, ROWS_AT_ONCE)]
        or [table.schema.empty_table()],
        promote_options="default",
    )
    if not rows.num_rows:
        raise InputError(f"{path} has no rows", argument="apply", kind="file")
    mark = decimal if table.format in TEXTS else "."
    places = [ValueOrigin(str(path), name, "probs", decimal=mark) for name in columns]
    rows = _replaced(rows, columns, places, change, logits)
    if table.format in TEXTS and _WRITTEN[out.suffix.lower()] not in TEXTS:
        rows = _with_types(rows)
    with written(out) as new:
        _write(rows, new, _WRITTEN[out.suffix.lower()])
    return int(rows.num_rows)


def _check_columns(table: SourceTable, columns: Sequence[str], path: Path) -> None:
    lacking = [name for name in columns if name not in table.schema.names]
    if lacking:
        raise InputError(
            f"{path} must have the columns of probabilities {join(map(show, columns))}",
            argument="apply",
            kind="missing",
            found=f"there is no {show(lacking[0])}"
            + (f" and {len(lacking) - 1} more" if lacking[1:] else ""),
            values=lacking,
            remedies=[passing("for each column that has another name", map=f"{lacking[0]}=NAME")],
        )


def _replaced(
    rows: Any,
    columns: Sequence[str],
    places: Sequence[ValueOrigin],
    change: Callable[[Array], Array],
    logits: bool,
) -> Any:
    first = rows[columns[0]]
    if len(columns) == 1 and pa.types.is_list(first.type):
        p = change(arrow.from_lists(first, places[0], len(first[0])))
        return rows.set_column(rows.schema.get_field_index(columns[0]), columns[0], pa.array(p.tolist()))
    given = arrow.side_by_side([rows[name] for name in columns], places)
    if len(columns) == 1:
        new = [change(both_classes(given[:, 0], places[0], logits))[:, 1]]
    else:
        new = list(change(given).T)
    for name, values in zip(columns, new, strict=True):
        # Rows that were invalid and are to be skipped have no probabilities.
        column = pa.array(np.ascontiguousarray(values), mask=np.isnan(values))
        rows = rows.set_column(rows.schema.get_field_index(name), name, column)
    return rows


def _with_types(rows: Any) -> Any:
    """Texts of a CSV file as numbers, where all are such and whole ones are written plainly."""
    for i, field in enumerate(rows.schema):
        if pa.types.is_string(field.type):
            rows = rows.set_column(i, field.name, _as_numbers(rows[field.name]))
    return rows


def _as_numbers(column: Any) -> Any:
    if column.null_count == len(column):
        return column
    try:
        whole = column.cast(pa.int64())
        # Ids such as 007 stay texts.
        return whole if whole.cast(pa.string()).equals(column) else column
    except pa.ArrowException:
        pass
    try:
        return column.cast(pa.float64())
    except pa.ArrowException:
        return column


def _write(rows: Any, path: Path, kind: str) -> None:
    if kind == "Parquet":
        import pyarrow.parquet as papq

        papq.write_table(rows, path)
    elif kind == "Arrow":
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, rows.schema) as writer:
            writer.write_table(rows)
    else:
        import pyarrow.csv as pacsv

        mark = "\t" if kind == "TSV" else ","
        try:
            pacsv.write_csv(rows, path, pacsv.WriteOptions(delimiter=mark))
        except (pa.ArrowException, TypeError) as error:
            raise InputError(
                "must be .parquet or .arrow for these columns, which CSV cannot hold",
                argument="out",
                kind="file",
                found=str(error).splitlines()[0][:160],
            ) from None


# The endings of the files that are written.
WRITTEN = (".jsonl", ".ndjson")


def check_can_hold_lists(path: Path) -> None:
    """Refuse a name that does not end like JSON Lines."""
    if path.suffix.lower() not in WRITTEN:
        raise InputError(
            "must end in .jsonl, because lists are written as JSON Lines",
            argument="out",
            kind="file",
            found=f"it ends in {path.suffix!r}" if path.suffix else "it has no ending",
            values=[str(path)],
        )


def write_lists(read: ListFile, lists: TopLists, out: Path) -> int:
    """Write other lists of the records that were read; the number of records.

    A record has its id and its subgroups, if they were asked for, the outcome, the classes (`labels`) and
    their probabilities (`scores`), most likely first.
    """
    check_can_hold_lists(out)
    ids = [None] * len(read) if read.ids is None else read.ids
    beside = {name: labels.tolist() for name, labels in read.by.items()}
    with written(out) as new, new.open("w", encoding="utf-8", newline="\n") as file:
        for i, (row, name, outcome) in enumerate(zip(lists, ids, read.y, strict=True)):
            record: dict[str, Any] = {} if name is None else {"id": name}
            record |= {field: labels[i] for field, labels in beside.items()}
            record |= {"outcome": outcome, "labels": list(row), "scores": list(row.values())}
            file.write(json.dumps(record, ensure_ascii=False) + "\n")
    return len(read)
