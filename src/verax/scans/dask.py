"""Frames of Dask: partitions are scored where they are, and their summaries merge as a tree."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import Any

import pyarrow as pa

from verax.files.formats.tables import LOOK
from verax.inputs.handles import Handle
from verax.scans.asking import Asked
from verax.scans.frames import PandasFrame, classes_of
from verax.scans.partitions import PartitionedHandle, Work

# How many summaries a task merges.
_FAN_IN = 16
# How many partitions that have rows are looked at where each has few.
_LOOKED_AT = 16


class DaskHandle(PartitionedHandle):
    """A Dask frame. It is computed by whatever scheduler Dask would use, and no row leaves its worker."""

    def _run(self, work: Work) -> Iterable[bytes]:
        dask = _dask()
        shared = dask.delayed(work, traverse=False)
        score, merge = dask.delayed(_score, pure=False), dask.delayed(_merge, pure=False)
        needed = set(work.reader.columns)
        chosen = self._frame[[name for name in self._frame.columns if str(name) in needed]]
        level = [score(shared, part, i) for i, part in enumerate(chosen.to_delayed())]
        while len(level) > 1:
            level = [merge(shared, level[i : i + _FAN_IN]) for i in range(0, len(level), _FAN_IN)]
        return dask.compute(*level)  # type: ignore[no-any-return]


def _score(work: Work, frame: Any, partition: int) -> bytes:
    columns = work.reader.columns
    return work.score(PandasFrame(frame).batches(columns, work.reader.rows_at_a_time), partition)


def _merge(work: Work, stored: list[bytes]) -> bytes:
    return work.merge(stored).to_bytes()


def opened(source: object, asked: Asked) -> Handle | None:
    """The handle on a Dask frame; None for anything else."""
    if ("dask", "DataFrame") not in classes_of(source):
        return None
    return DaskHandle("the Dask frame", source, asked, _first_rows(source))


def _first_rows(frame: Any) -> Any:
    """The first rows, from as few partitions as have some."""
    dask = _dask()
    head = dask.delayed(_head, pure=False)
    found: list[Any] = []
    start, step = 0, 1
    while start < frame.npartitions and len(found) < _LOOKED_AT and sum(map(len, found)) < LOOK:
        parts = frame.partitions[start : start + step].to_delayed()
        heads = dask.compute(*(head(part) for part in parts))
        found += [part for part in heads if len(part)]
        start, step = start + step, 2 * step
    tables = [PandasFrame(part).first for part in found or [frame._meta]]
    if len(set(tables[0].column_names)) < tables[0].num_columns:
        # Arrow does not join such tables, and nobody can choose among their columns.
        return tables[0]
    return pa.concat_tables(tables, promote_options="permissive")


def _head(frame: Any) -> Any:
    return frame.head(LOOK)


def _dask() -> Any:
    return import_module("dask")
