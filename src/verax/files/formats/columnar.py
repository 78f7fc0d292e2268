"""Parquet and Arrow files, read batch by batch through ordinary reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.ipc as paipc

from verax.common.packages import needed
from verax.common.paths import arrow_file, check_regular
from verax.common.remote import RemotePath
from verax.errors import InputError, Remedy
from verax.files.formats.several import Places
from verax.files.formats.texts import sliced

if TYPE_CHECKING:
    import pyarrow.parquet as papq

# What is read ahead of each column.
BUFFER = 2**16
# The same where each read is a request.
FAR_BUFFER = 2**22
# The largest footer that is kept for when the rows are read: many columns and row groups have large ones.
_KEPT_FOOTER = 2**14


class Parquet:
    """A Parquet file."""

    def __init__(self, path: Path) -> None:
        check_regular(path)
        self.path = path
        self._footer: papq.FileMetaData | None = None
        with self._open() as parquet:
            footer = parquet.metadata
            self.n_rows: Any = footer.num_rows
            self.schema: Any = parquet.schema_arrow
        if footer.serialized_size <= _KEPT_FOOTER:
            self._footer = footer

    @contextmanager
    def _open(self) -> Iterator[papq.ParquetFile]:
        import pyarrow.parquet as papq

        # Through small buffers: the scanner of data sets would hold whole row groups.
        buffer = FAR_BUFFER if isinstance(self.path, RemotePath) else BUFFER
        options: dict[str, Any] = {"pre_buffer": False, "buffer_size": buffer}
        # Of pages that have checksums; a damaged one may decompress to other numbers.
        options["page_checksum_verification"] = True
        with (
            arrow_file(self.path) as file,
            papq.ParquetFile(file, metadata=self._footer, **options) as parquet,
        ):
            yield parquet

    def batches(
        self, columns: Sequence[str], rows: int, row_groups: Sequence[int] | None = None
    ) -> Iterator[Any]:
        """All rows of these columns, or those of some row groups, up to `rows` at a time."""
        with self._open() as parquet:
            yield from parquet.iter_batches(rows, row_groups, list(columns))


class Arrow:
    """Arrow's file format, or its streaming format, which has no footer and is read from the start."""

    n_rows = None

    def __init__(self, path: Path) -> None:
        check_regular(path)
        self.path = path
        with path.open("rb") as file:
            self._open = paipc.open_file if file.read(6) == b"ARROW1" else paipc.open_stream
        with arrow_file(path) as source, self._open(source) as reader:
            self.schema: Any = reader.schema

    def batches(self, columns: Sequence[str], rows: int) -> Iterator[Any]:
        """All rows of these columns, up to `rows` at a time."""
        places = [self.schema.get_field_index(name) for name in columns]
        options = paipc.IpcReadOptions(included_fields=places)
        with arrow_file(self.path) as source, self._open(source, options=options) as reader:
            for batch in _batches_of(reader):
                # Offsets and codes that point outside would be read from anywhere in memory.
                batch.validate(full=True)
                yield from sliced(batch, rows)


def _batches_of(reader: Any) -> Iterator[Any]:
    if isinstance(reader, paipc.RecordBatchFileReader):
        return (reader.get_batch(i) for i in range(reader.num_record_batches))
    return iter(reader)


DELTA, ICEBERG = "Delta Lake", "Iceberg"
# What a data set reads ahead: more would hold whole files.
_AHEAD = {"batch_readahead": 4, "fragment_readahead": 1}


def lake_of(path: Path) -> str | None:
    """What kind of table a folder is, or the file that states its current version; None for anything else.

    Which version of an Iceberg table is the current one is known to its catalog; without one, to a file.
    """
    if path.name.endswith(".metadata.json") and path.parent.name == "metadata":
        return ICEBERG
    if not path.is_dir():
        return None
    if (path / "_delta_log").is_dir():
        return DELTA
    return ICEBERG if (path / "metadata" / "version-hint.text").is_file() else None


class ArrowDataset:
    """A data set of Arrow, whose rows are known by the file they are in."""

    schema: Any

    n_rows = None

    def __init__(self, dataset: Any) -> None:
        self._dataset, self.schema = dataset, dataset.schema
        self._places = Places()

    def batches(self, columns: Sequence[str], rows: int) -> Iterator[Any]:
        """All rows of these columns, up to `rows` at a time."""
        start, before = 0, None
        scanner = self._dataset.scanner(columns=list(columns), batch_size=rows, **_AHEAD)
        for tagged in scanner.scan_batches():
            path = getattr(tagged.fragment, "path", "") or "a table in memory"
            if path != before:
                self._places.note(start, path)
            before = path
            start += tagged.record_batch.num_rows
            yield tagged.record_batch

    def place_of(self, row: int) -> str:
        """The file that a row is in."""
        return self._places.of(row)


def delta_at(path: Path) -> ArrowDataset:
    """The current version of a Delta table in a folder."""
    deltalake = needed("deltalake", "A Delta table", "delta")
    with _explained(DELTA, path):
        table = deltalake.DeltaTable(str(path))
    return delta_rows(table)


def delta_rows(table: Any) -> ArrowDataset:
    """The rows of a Delta table, without those that were deleted."""
    with _explained(DELTA):
        # Refused where rows are marked as deleted beside the files.
        return ArrowDataset(table.to_pyarrow_dataset())


class IcebergTable:
    """The rows of an Iceberg table as it is now, without those that were deleted."""

    n_rows = None

    def __init__(self, table: Any) -> None:
        self._table = table
        current = table.current_snapshot()
        self._snapshot = None if current is None else current.snapshot_id
        with _explained(ICEBERG):
            self.schema: Any = table.schema().as_arrow()

    @classmethod
    def at(cls, path: Path) -> IcebergTable:
        """The table whose folder, or file of metadata, this is."""
        tables = needed("pyiceberg.table", "An Iceberg table", "iceberg")
        with _explained(ICEBERG, path):
            table = tables.StaticTable.from_metadata(str(path))
        return cls(table)

    def batches(self, columns: Sequence[str], rows: int) -> Iterator[Any]:
        """All rows of these columns, up to `rows` at a time."""
        with _explained(ICEBERG):
            chosen = self._table.scan(selected_fields=tuple(columns), snapshot_id=self._snapshot)
            for batch in chosen.to_arrow_batch_reader():
                yield from sliced(batch.select(list(columns)), rows)


@contextmanager
def _explained(kind: str, path: Path | None = None) -> Iterator[None]:
    """What the library of a table refuses, in one line; it never reads rows that were deleted."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        problem = (str(error).splitlines() or [type(error).__name__])[0][:160].rstrip(". ")
        raise InputError(
            f"The table of {kind} cannot be read by its library",
            argument="path",
            kind="file",
            found=problem,
            source="" if path is None else str(path),
            remedies=[Remedy("Write its rows to Parquet files.")],
        ) from None
