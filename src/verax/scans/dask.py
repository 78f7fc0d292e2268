"""Dask frames: partitions are scored where they are, and their summaries merge as a tree."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from verax.files.formats.columnar import Parquet
from verax.files.formats.several import check_columns
from verax.files.formats.tables import LOOK
from verax.inputs.handles import Handle
from verax.kernels.threads import n_cores
from verax.scans.frames import PandasFrame, classes_of
from verax.scans.options import ScanOptions
from verax.scans.partitions import PartitionedHandle, PartitionTask, check_answers, question


@dataclass(frozen=True)
class ParquetPart:
    """A partition: local files with row groups of each, None for all."""

    pieces: tuple[tuple[str, tuple[int, ...] | None], ...]

    def batches(self, columns: Sequence[str], rows: int) -> Iterator[Any]:
        """All rows of these columns, up to `rows` at a time."""
        for path, row_groups in self.pieces:
            file = Parquet(Path(path))
            check_columns(file, columns, Path(path))
            yield from file.batches(columns, rows, row_groups)


def parquet_parts(frame: Any) -> list[ParquetPart] | None:
    """The partitions of a frame that is read from local Parquet files unchanged; None for any other frame.

    Dask does not document the pieces of files that it reads. If they look unfamiliar, Dask reads the frame.
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
    """A partition from a piece of a Dask plan, or from a list of pieces."""
    pieces = []
    for piece in part if isinstance(part, list) else [part]:
        ((_, (path, row_groups, keys)),) = piece.items()
        if keys or not isinstance(path, str):
            raise ValueError("a file in a partitioned folder (name=value)")
        pieces.append((path, None if row_groups is None else tuple(map(int, row_groups))))
    return ParquetPart(tuple(pieces))


# The number of summaries that a task merges.
_FAN_IN = 16
# The number of non-empty partitions that are looked at if each has few rows.
_LOOKED_AT = 16


class DaskHandle(PartitionedHandle):
    """A Dask frame, computed by the scheduler that Dask would use; no row leaves its worker."""

    def _run(self, work: PartitionTask) -> Iterable[bytes]:
        dask = _dask()
        shared = dask.delayed(work, traverse=False)
        score, merge = dask.delayed(_score, pure=False), dask.delayed(_merge, pure=False)
        needed = set(work.reader.columns)
        chosen = self._frame[[name for name in self._frame.columns if str(name) in needed]]
        threads = _threads(chosen.npartitions)
        level = [score(shared, part, i, threads) for i, part in enumerate(_parts(chosen))]
        while len(level) > 1:
            level = [merge(shared, level[i : i + _FAN_IN]) for i in range(0, len(level), _FAN_IN)]
        return dask.compute(*level)  # type: ignore[no-any-return]


def _score(work: PartitionTask, part: Any, partition: int, threads: int) -> bytes:
    reader = part if isinstance(part, ParquetPart) else PandasFrame(part)
    batches = reader.batches(work.reader.columns, work.reader.rows_at_a_time)
    return work.score(batches, partition, threads)


def _merge(work: PartitionTask, stored: list[bytes]) -> bytes:
    return work.merge(stored).to_bytes()


def _parts(frame: Any) -> Sequence[Any]:
    """The partitions of a frame: local Parquet files to be read, or delayed pandas frames."""
    parts: Sequence[Any] | None = parquet_parts(frame)
    if parts is None:
        parts = list(frame.to_delayed())
    if len(parts) != frame.npartitions:
        # Dask joins partitions if it reads few of their columns, but errors name partitions of the frame.
        parts = list(frame.simplify().to_delayed(optimize_graph=False))
    return parts


def _threads(partitions: int) -> int:
    """The number of threads that score a partition: above one if this process has more than partitions."""
    scheduler = import_module("dask.base").get_scheduler()
    here = scheduler in (None, import_module("dask.threaded").get)
    return max(1, n_cores() // max(1, partitions)) if here else 1


def opened(source: object, options: ScanOptions) -> Handle | None:
    """The handle on a Dask frame; None for anything else."""
    if ("dask", "DataFrame") not in classes_of(source):
        return None
    _check_cluster()
    return DaskHandle("the Dask frame", source, options, _first_rows(source))


def _check_cluster() -> None:
    """Refuse a cluster whose scheduler or workers lack verax: clients would hang, or see a traceback."""
    client: Any = getattr(import_module("dask.base").get_scheduler(), "__self__", None)
    if not hasattr(client, "run_on_scheduler") or client.asynchronous:
        return
    remedy = "Install verax-scores there, in the version of this process."
    check_answers([client.run_on_scheduler(question())], "The Dask scheduler", remedy)
    answers = client.run(question(), on_error="ignore")
    check_answers(answers.values(), "Dask workers", remedy)


def _first_rows(frame: Any) -> Any:
    """The first rows, from as few partitions as possible."""
    dask = _dask()
    head = dask.delayed(_head, pure=False)
    names = [str(name) for name in frame.columns]
    filled: list[Any] = []
    start, step = 0, 1
    while start < frame.npartitions and len(filled) < _LOOKED_AT and sum(map(len, filled)) < LOOK:
        parts = _parts(frame.partitions[start : start + step])
        heads = dask.compute(*(head(part, names) for part in parts))
        filled += [part for part in heads if len(part)]
        start, step = start + step, 2 * step
    tables = filled or [PandasFrame(frame._meta).first]
    if len(set(tables[0].column_names)) < tables[0].num_columns:
        # Arrow does not join tables with repeated names, which are refused later.
        return tables[0]
    return pa.concat_tables(tables, promote_options="permissive")


def _head(part: Any, columns: list[str]) -> Any:
    """The first rows of a partition as a table."""
    if not isinstance(part, ParquetPart):
        return PandasFrame(part).first
    batches = list(islice(part.batches(columns, LOOK), 1))
    return pa.Table.from_batches(batches) if batches else []


def _dask() -> Any:
    return import_module("dask")
