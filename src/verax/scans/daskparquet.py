"""Parquet files behind a Dask frame: its partitions read batch by batch, without pandas frames."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from verax.files.formats.columnar import Parquet
from verax.files.formats.several import check_columns


@dataclass(frozen=True)
class ParquetPart:
    """A partition: local files, and which row groups of each; None for all of them."""

    pieces: tuple[tuple[str, tuple[int, ...] | None], ...]

    def batches(self, columns: Sequence[str], rows: int) -> Iterator[Any]:
        """All rows of these columns, up to `rows` at a time."""
        for path, row_groups in self.pieces:
            file = Parquet(Path(path))
            check_columns(file, columns, Path(path))
            yield from file.batches(columns, rows, row_groups)


def parquet_parts(frame: Any) -> list[ParquetPart] | None:
    """The partitions of a frame that is read from local Parquet files as they are; None for any other frame.

    Dask knows the pieces of files, but does not promise to tell. Where it tells anything else than what is
    known here, the frame is read by Dask.
    """
    read = frame.simplify().expr
    if type(read).__name__ != "ReadParquetFSSpec":
        return None
    try:
        return _parts_of(read, frame.npartitions)
    except (AttributeError, KeyError, TypeError, ValueError, IndexError):
        return None


def _parts_of(read: Any, n_partitions: int) -> list[ParquetPart] | None:
    known = read._dataset_info
    options = {name for name, value in read.kwargs.items() if value}
    plain = (
        read.engine.__name__ == "ArrowDatasetEngine"
        and type(known["fs"]).__name__ == "LocalFileSystem"
        and not (read.filters or known["partitions"] or options - {"dtype_backend"})
    )
    chosen = read.operand("_partitions")
    stored = read._plan["parts"]
    parts = stored if chosen is None else [stored[i] for i in chosen]
    return [_part(part) for part in parts] if plain and len(parts) == n_partitions else None


def _part(part: Any) -> ParquetPart:
    """A partition from what Dask has: a piece, or a list of them."""
    pieces = []
    for each in part if isinstance(part, list) else [part]:
        ((_, (path, row_groups, keys)),) = each.items()
        if keys or not isinstance(path, str):
            raise ValueError("a file in a partitioned folder (name=value)")
        pieces.append((path, None if row_groups is None else tuple(map(int, row_groups))))
    return ParquetPart(tuple(pieces))
