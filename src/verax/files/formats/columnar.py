"""Parquet and Arrow files, read batch by batch through ordinary reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.ipc as paipc

from verax.common.paths import arrow_file, check_regular
from verax.common.remote import RemotePath
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
            for batch in _each(reader):
                # Offsets and codes that point outside would be read from anywhere in memory.
                batch.validate(full=True)
                yield from sliced(batch, rows)


def _each(reader: Any) -> Iterator[Any]:
    if isinstance(reader, paipc.RecordBatchFileReader):
        return (reader.get_batch(i) for i in range(reader.num_record_batches))
    return iter(reader)
