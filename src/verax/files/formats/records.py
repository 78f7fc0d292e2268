"""Files as records one after the other, each with the number of its line, row or item."""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from verax._settings import settings
from verax.common.paths import check_regular, refusing_wrong_names
from verax.common.wings import all_of
from verax.errors import InputError, passing
from verax.files.formats.tables import FORMATS, SourceTable
from verax.files.formats.texts import decompressed, ending, json_document, lines_of, refuse
from verax.inputs.reading import Reading

# How many records are looked at to find their shape, and rows that are converted at a time.
LOOK, _ROWS = 100, 4096
_TABLES = ("Parquet", "Arrow")


class RecordStream:
    """Records with their numbers, of which the first can be looked at before all are read.

    Attributes
    ----------
    source : str
        The name of the file, for messages.
    word : str
        What is counted: lines from 1, rows and items from 0.
    """

    source: str
    word: str

    def __init__(self, source: str, word: str, records: Iterable[tuple[int, Any]]) -> None:
        self.source, self.word = source, word
        self._records = iter(records)

    def __iter__(self) -> Iterator[tuple[int, Any]]:
        return self._records

    def head(self, n: int = LOOK) -> list[tuple[int, Any]]:
        """The first records, which will be read again."""
        records = list(itertools.islice(self._records, n))
        self._records = itertools.chain(records, self._records)
        return records


def endings_of_forms() -> tuple[str, ...]:
    """The endings of files that only forms of wings read."""
    return tuple(name for form in all_of("forms") for name in form.endings())


def open_stream(path: Path, request: Reading | None = None) -> RecordStream:
    """The records of a JSON Lines, JSON, CSV, Parquet or Arrow file, or of one that a wing unpacks."""
    kind = FORMATS.get(ending(path))
    if path.is_dir() or kind in _TABLES:
        return RecordStream(str(path), "row", _rows_of_table(path, request or Reading()))
    check_regular(path)
    for form in all_of("forms"):
        stream: RecordStream | None = form.records(path)
        if stream is not None:
            return stream
    if ending(path) == ".json":
        return RecordStream(str(path), "item", enumerate(_items(path)))
    if kind in ("CSV", "TSV"):
        return RecordStream(str(path), "line", _rows_of_text(path, request or Reading(), tabs=kind == "TSV"))
    return RecordStream(str(path), "line", lines_of(path))


def text_lines(path: Path, *, empty: bool = False) -> Iterator[tuple[int, str]]:
    """The lines of a text with their numbers from 1; with `empty`, empty ones as well."""
    number = 0
    try:
        with refusing_wrong_names(path), decompressed(path) as stream:
            text = io.TextIOWrapper(stream, encoding="utf-8")
            while line := text.readline(settings.longest_line):
                number += 1
                if len(line) == settings.longest_line:
                    raise refuse(path, "The lines of a text must end", f"line {number} is too long")
                if empty or line.strip():
                    yield number, line
    except UnicodeDecodeError:
        raise InputError(
            "The text must be UTF-8",
            argument="path",
            kind="file",
            found=f"line {number + 1} or one after it is not",
            source=str(path),
        ) from None


def _items(path: Path) -> Iterator[Any]:
    """The items of a JSON document: those of an array, the rows of a matrix with classes, or one record."""
    document = json_document(path)
    return iter(document) if isinstance(document, list) else _rows_of_document(document)


def _rows_of_document(document: Any) -> Iterator[Any]:
    """The rows of {"classes_": [...], "predict_proba": [[...], ...], ...}; any other document is a record."""
    fields = document if isinstance(document, dict) else {}
    matrix = next((v for v in fields.values() if isinstance(v, list) and v and isinstance(v[0], list)), None)
    if matrix is None:
        yield document
        return
    # Lists with one item per row of the matrix belong to the rows; the names of the classes to all.
    per_row = {k for k, v in fields.items() if isinstance(v, list) and len(v) == len(matrix)}
    per_row -= {k for k in ("classes", "classes_") if not isinstance((fields.get(k) or [0])[0], list)}
    for i in range(len(matrix)):
        yield {name: value[i] if name in per_row else value for name, value in fields.items()}


def _rows_of_table(path: Path, request: Reading) -> Iterator[tuple[int, Any]]:
    table = SourceTable.of_file(path, request)
    start = 0
    for batch in table.batches(table.schema.names, _ROWS):
        yield from enumerate(records_of(batch), start=start)
        start += batch.num_rows


def records_of(batch: Any) -> Iterator[dict[str, Any]]:
    """The rows of a record batch or a table, one after the other."""
    columns = [_values(batch.column(i)) for i in range(batch.num_columns)]
    names = batch.schema.names
    return (dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True))


def _plain(column: Any) -> list[Any]:
    """The values of a column, maps as dicts; a map that has a key twice is refused."""
    try:
        return list(column.to_pylist(maps_as_pydicts="strict"))
    except TypeError:
        # Older versions of pyarrow have pairs only.
        values = column.to_pylist()
    if not pa.types.is_map(column.type):
        return list(values)
    if any(pairs is not None and len({key for key, _ in pairs}) < len(pairs) for pairs in values):
        raise KeyError("a key occurs twice")
    return [None if pairs is None else dict(pairs) for pairs in values]


def _values(column: Any) -> list[Any]:
    """The values of a column; lists of numbers or texts as slices of one list, which is much faster."""
    kind = column.type
    nested = pa.types.is_list(kind) or pa.types.is_large_list(kind)
    flat = column.flatten() if nested and not column.null_count else None
    if flat is None or flat.null_count:
        return _plain(column)
    if pa.types.is_floating(flat.type) or pa.types.is_integer(flat.type):
        values = flat.to_numpy(zero_copy_only=False).tolist()
    elif pa.types.is_string(flat.type) or pa.types.is_large_string(flat.type):
        coded = flat.dictionary_encode()
        texts = coded.dictionary.to_pylist()
        values = [texts[code] for code in coded.indices.to_numpy().tolist()]
    else:
        values = _plain(flat)
    ends = np.cumsum(column.value_lengths().to_numpy(), dtype=np.int64).tolist()
    return [values[start:end] for start, end in zip([0, *ends], ends, strict=False)]


def _rows_of_text(path: Path, request: Reading, *, tabs: bool) -> Iterator[tuple[int, Any]]:
    delimiter = request.delimiter or ("\t" if tabs else ",")
    reader = csv.reader((line for _, line in text_lines(path, empty=True)), delimiter=delimiter)
    try:
        header = next(reader, [])
        header[:1] = [name.removeprefix("\ufeff") for name in header[:1]]
        for cells in reader:
            if cells and len(cells) != len(header):
                raise InputError(
                    "Every line must have the same number of cells as the header",
                    argument="path",
                    kind="file",
                    found=f"line {reader.line_num} has {len(cells)} and the header {len(header)}",
                    source=str(path),
                    remedies=[passing("if the columns are separated otherwise", delimiter=...)],
                )
            if cells:
                named = zip(header, cells, strict=True)
                yield reader.line_num, {name: cell if cell else None for name, cell in named}
    except csv.Error as error:
        problem = f"line {reader.line_num} is not: {error}"
        raise InputError(
            "Every line must be CSV", argument="path", kind="file", found=problem, source=str(path)
        ) from None
