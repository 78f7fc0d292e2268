"""Columns of other libraries on this machine, read in batches through Arrow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from verax.common.caching import cached_property
from verax.errors import InputError, Remedy
from verax.files.formats.columnar import ArrowDataset, IcebergTable, delta_rows
from verax.files.formats.several import BatchReader, Places, check_columns
from verax.files.formats.tables import LOOK, ROWS_AT_ONCE, SourceTable
from verax.files.formats.texts import sliced
from verax.inputs.handles import Handle
from verax.inputs.skipping import NO_ROWS
from verax.scans.batches import of_table
from verax.scans.options import ScanOptions, unknown_source


class ArrowTable:
    """A table of Arrow."""

    schema: Any
    n_rows: Any

    def __init__(self, table: Any) -> None:
        self._table = table
        self.schema, self.n_rows = table.schema, table.num_rows

    def batches(self, columns: Sequence[str], rows: int) -> Iterator[Any]:
        """All rows of these columns, up to `rows` at a time."""
        yield from self._table.select(list(columns)).to_batches(max_chunksize=rows)


class BatchStream:
    """Record batches that can be read once; the first rows are kept until then."""

    schema: Any

    n_rows = None
    once = True

    def __init__(self, reader: Any) -> None:
        self.schema, self._reader = reader.schema, reader
        self._kept: list[Any] | None = []
        while sum(batch.num_rows for batch in self._kept) < LOOK:
            batch = next(reader, None)
            if batch is None:
                break
            self._kept.append(batch)
        self.first: Any = pa.Table.from_batches(self._kept, self.schema)

    def batches(self, columns: Sequence[str], rows: int) -> Iterator[Any]:
        """All rows of these columns, up to `rows` at a time."""
        if self._kept is None:
            raise _read_already()
        kept, self._kept = self._kept, None
        for batches in (kept, self._reader):
            for batch in batches:
                yield from sliced(batch.select(list(columns)), rows)


def _read_already() -> InputError:
    return InputError(
        "can be read once only, and has been read",
        argument="source",
        kind="file",
        remedies=[Remedy("Pass a table, a list of tables or a data set, which can be read again.")],
    )


class ArrowStream:
    """An object with `__arrow_c_stream__`: a table gives its rows in every pass, a stream once."""

    n_rows = None

    def __init__(self, source: Any) -> None:
        self._source = source
        self._n: int | None = None
        self._next: Any = BatchStream(pa.RecordBatchReader.from_stream(source))
        self.schema: Any = self._next.schema
        self.first: Any = self._next.first

    def batches(self, columns: Sequence[str], rows: int) -> Iterator[Any]:
        """All rows of these columns, up to `rows` at a time."""
        stream, self._next = self._next, None
        try:
            stream = stream or BatchStream(pa.RecordBatchReader.from_stream(self._source))
        except Exception:
            raise _read_already() from None
        n = 0
        for batch in stream.batches(columns, rows):
            n += batch.num_rows
            yield batch
        if n != (n if self._n is None else self._n):
            raise _read_already()
        self._n = n


class Generated:
    """The batches of an iterator of tables, frames or batches."""

    def __init__(self, pieces: Iterator[Any]) -> None:
        self._batches = _batches_of(pieces)
        first = next(self._batches, None)
        if first is None:
            raise InputError(NO_ROWS, argument="source", kind="file")
        self.schema: Any = first.schema
        self._batches = chain([first], self._batches)

    def __iter__(self) -> Iterator[Any]:
        return self._batches

    def __next__(self) -> Any:
        return next(self._batches)


def _batches_of(pieces: Iterator[Any]) -> Iterator[Any]:
    for piece in pieces:
        kind = _known(piece)
        if kind is None:
            raise unknown_source(piece)
        reader = kind[1](piece)
        yield from reader.batches(reader.schema.names, ROWS_AT_ONCE)


class SeveralTables:
    """Tables or frames, one after the other."""

    def __init__(self, pieces: Sequence[Any]) -> None:
        self._readers = [kind[1](piece) for piece in pieces if (kind := _known(piece)) is not None]
        self.schema: Any = self._readers[0].schema
        counts = [reader.n_rows for reader in self._readers]
        self.n_rows: int | None = None if None in counts else sum(n for n in counts if n is not None)
        self.once: bool = any(getattr(reader, "once", False) for reader in self._readers)
        self._places = Places()

    def batches(self, columns: Sequence[str], rows: int) -> Iterator[Any]:
        """All rows of these columns, up to `rows` at a time."""
        start = 0
        for i, reader in enumerate(self._readers):
            self._places.note(start, name := f"item {i} of the list")
            check_columns(reader, columns, name)
            for batch in reader.batches(columns, rows):
                start += batch.num_rows
                yield batch

    def place_of(self, row: int) -> str:
        """The item that a row is in."""
        return self._places.of(row)


class PandasFrame:
    """A pandas frame, converted slice by slice."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame.set_axis([str(name) for name in frame.columns], axis=1)
        self.n_rows: int = len(frame)

    @cached_property
    def first(self) -> Any:
        """The first rows."""
        return self._arrow(self._frame.iloc[:LOOK].items())

    @property
    def schema(self) -> Any:
        """The names and types of the columns, by the first rows."""
        return self.first.schema

    @staticmethod
    def _arrow(columns: Iterable[tuple[str, Any]]) -> Any:
        names, arrays = [], []
        for name, column in columns:
            names.append(name)
            # Numbers without a copy: NaN is not a missing value yet.
            plain = isinstance(column.dtype, np.dtype) and column.dtype.kind in "fiu"
            arrays.append(pa.array(column.to_numpy()) if plain else pa.array(column, from_pandas=True))
        return pa.table(arrays, names=names)

    def batches(self, columns: Sequence[str], rows: int) -> Iterator[Any]:
        """All rows of these columns, up to `rows` at a time."""
        # One by one, because choosing several columns of a frame copies them.
        chosen = [(name, self._frame[name]) for name in columns]
        for start in range(0, self.n_rows, rows):
            piece = slice(start, start + rows)
            yield from self._arrow((name, column.iloc[piece]) for name, column in chosen).to_batches()


class PolarsFrame:
    """A polars frame."""

    n_rows: Any

    def __init__(self, frame: Any) -> None:
        self._frame, self.n_rows = frame, frame.height
        self.schema: Any = frame.head(0).to_arrow().schema

    def batches(self, columns: Sequence[str], rows: int) -> Iterator[Any]:
        """All rows of these columns, up to `rows` at a time."""
        for part in self._frame.select(_literally(columns)).iter_slices(rows):
            yield from part.to_arrow().to_batches()


class PolarsQuery:
    """A polars LazyFrame, run by its streaming engine."""

    n_rows = None

    def __init__(self, query: Any) -> None:
        self._query = query
        self.first: Any = query.head(LOOK).collect().to_arrow()
        self.schema: Any = self.first.schema

    def batches(self, columns: Sequence[str], rows: int) -> Iterator[Any]:
        """All rows of these columns, up to `rows` at a time."""
        chosen = self._query.select(_literally(columns))
        for part in chosen.collect_batches(chunk_size=rows, engine="streaming"):
            for batch in part.to_arrow().to_batches():
                yield from sliced(batch, rows)


def _literally(columns: Sequence[str]) -> Any:
    """Columns of polars by their literal names: polars reads names such as * as patterns."""
    return import_module("polars.selectors").by_name(*columns)


class DuckQuery:
    """A DuckDB relation."""

    n_rows = None

    def __init__(self, relation: Any) -> None:
        self._relation = relation
        kinds = zip(relation.columns, relation.types, strict=True)
        self._ordered = {name for name, kind in kinds if kind.id == "enum"}
        self.first: Any = self._stated(_duck_reader(relation.limit(LOOK), LOOK).read_all())
        self.schema: Any = self.first.schema

    def batches(self, columns: Sequence[str], rows: int) -> Iterator[Any]:
        """All rows of these columns, up to `rows` at a time."""
        quoted = ['"' + name.replace('"', '""') + '"' for name in columns]
        for batch in _duck_reader(self._relation.project(", ".join(quoted)), rows):
            yield from sliced(self._stated(batch), rows)

    def _stated(self, rows: Any) -> Any:
        """The same rows; the types of ENUM columns state that their values have an order."""
        schema = rows.schema
        for i, name in enumerate(schema.names):
            if name in self._ordered:
                kind = schema.types[i]
                ordered = pa.dictionary(kind.index_type, kind.value_type, ordered=True)
                schema = schema.set(i, schema.field(i).with_type(ordered))
        return rows.cast(schema) if self._ordered else rows


def _duck_reader(relation: Any, rows: int) -> Any:
    read = getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader
    return read(rows)


# The sources that are read, by package and class: their names and readers.
_KINDS: dict[tuple[str, str], tuple[str, Callable[[Any], BatchReader]]] = {
    ("pyarrow", "Table"): ("Arrow table", ArrowTable),
    ("pyarrow", "RecordBatch"): ("Arrow record batch", lambda batch: ArrowTable(pa.table(batch))),
    ("pyarrow", "RecordBatchReader"): ("Arrow record batch reader", BatchStream),
    ("pyarrow", "Dataset"): ("Arrow data set", ArrowDataset),
    ("pandas", "DataFrame"): ("pandas frame", PandasFrame),
    ("polars", "DataFrame"): ("polars frame", PolarsFrame),
    ("polars", "LazyFrame"): ("polars query", PolarsQuery),
    ("duckdb", "DuckDBPyRelation"): ("DuckDB relation", DuckQuery),
    ("deltalake", "DeltaTable"): ("Delta table", delta_rows),
    ("pyiceberg", "Table"): ("Iceberg table", IcebergTable),
}


def opened(source: object, options: ScanOptions) -> Handle | None:
    """The handle on a frame, a table or a query that Arrow reads, or several; None for anything else."""
    kind = _known(source)
    if kind is None and isinstance(source, (list, tuple)) and source and all(map(_known, source)):
        kind = "list of tables", SeveralTables
    elif kind is None and isinstance(source, Iterator):
        kind = "iterator of batches", lambda source: BatchStream(Generated(source))
    if kind is None:
        return None
    name, read = kind
    return of_table(SourceTable(f"the {name}", name, options.reading, lambda: read(source)), options)


def _known(source: object) -> tuple[str, Callable[[Any], BatchReader]] | None:
    """The name of a source and its reader; None for unknown ones."""
    classes = classes_of(source)
    # Spark frames can be streams as well, but are scored where they are.
    if hasattr(source, "__arrow_c_stream__") and ("pyspark", "DataFrame") not in classes:
        return next((_KINDS[key] for key in classes if key in _KINDS), ("Arrow stream", ArrowStream))
    return next((_KINDS[key] for key in classes if key in _KINDS), None)


def classes_of(source: object) -> list[tuple[str, str]]:
    """The package and the name of the class of an object and of its bases, without importing them."""
    return [(kind.__module__.partition(".")[0], kind.__name__) for kind in type(source).__mro__]
