"""Parquet and Arrow files, read batch by batch through ordinary reads."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.ipc as paipc

from verax.common.paths import check_regular
from verax.errors import InputError, show
from verax.files.formats.texts import sliced

if TYPE_CHECKING:
    import pyarrow.parquet as papq

# What is read ahead of each column.
BUFFER = 2**16
_ENDINGS = (".parquet", ".pq")


class Parquet:
    """One file, or the files in a folder in the order of their names."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.files = _parts(path) if path.is_dir() else [path]
        self.n_rows = 0
        for i, file in enumerate(self.files):
            check_regular(file)
            with self._open(file) as parquet:
                self.n_rows += parquet.metadata.num_rows
                if i == 0:
                    self.schema = parquet.schema_arrow

    @contextmanager
    def _open(self, file: Path) -> Iterator[papq.ParquetFile]:
        import pyarrow.parquet as papq

        # Through small buffers: the scanner of data sets would hold whole row groups.
        with papq.ParquetFile(file, pre_buffer=False, buffer_size=BUFFER, memory_map=False) as parquet:
            yield parquet

    def batches(self, columns: Sequence[str], rows: int) -> Iterator[Any]:
        """All rows of these columns, up to `rows` at a time."""
        for file in self.files:
            with self._open(file) as parquet:
                lacking = [name for name in columns if name not in parquet.schema_arrow.names]
                if lacking:
                    raise InputError(
                        "All files of a folder must have the same columns",
                        argument="path",
                        found=f"this one has no {show(lacking[0])}",
                        kind="missing",
                        source=str(file),
                    )
                yield from parquet.iter_batches(rows, columns=list(columns))


def _parts(folder: Path) -> list[Path]:
    """The Parquet files in a folder and the folders in it, without hidden ones."""
    found = []

    def refuse(error: OSError) -> None:
        raise error

    for where, folders, names in os.walk(folder, onerror=refuse):
        folders[:] = [name for name in folders if not name.startswith((".", "_"))]
        visible = [name for name in names if not name.startswith((".", "_"))]
        found += [Path(where, name) for name in visible if name.lower().endswith(_ENDINGS)]
    if not found:
        raise InputError(f"{folder} is a folder without Parquet files", argument="path", kind="missing")
    return sorted(found)


class Arrow:
    """Arrow's file format, or its streaming format, which has no footer and is read from the start."""

    n_rows = None

    def __init__(self, path: Path) -> None:
        check_regular(path)
        self.path = path
        with path.open("rb") as file:
            self._open = paipc.open_file if file.read(6) == b"ARROW1" else paipc.open_stream
        with pa.OSFile(str(path)) as source, self._open(source) as reader:
            self.schema = reader.schema

    def batches(self, columns: Sequence[str], rows: int) -> Iterator[Any]:
        """All rows of these columns, up to `rows` at a time."""
        places = [self.schema.get_field_index(name) for name in columns]
        options = paipc.IpcReadOptions(included_fields=places)
        with pa.OSFile(str(self.path)) as source, self._open(source, options=options) as reader:
            for batch in _each(reader):
                # Offsets and codes that point outside would be read from anywhere in memory.
                batch.validate(full=True)
                yield from sliced(batch, rows)


def _each(reader: Any) -> Iterator[Any]:
    if isinstance(reader, paipc.RecordBatchFileReader):
        return (reader.get_batch(i) for i in range(reader.num_record_batches))
    return iter(reader)
