"""What is on this machine, read batch by batch and summarised by threads, in bounded memory."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Any

from verax.common.paths import check_exists
from verax.engines.plans import expecting
from verax.files.array_files import ArrayFile
from verax.files.formats.tables import Table, format_of
from verax.files.predictions import Request
from verax.files.source import rows_at_a_time
from verax.inputs.handles import Handle, Part, Recipe, Summaries
from verax.kernels.threads import in_order, n_cores
from verax.scans.asking import Asked
from verax.scans.parts import PartReader, part_of


class LocalHandle(Handle):
    """Rows that come to this process in parts."""

    _progress: Callable[[int], None] | None = None

    @abstractmethod
    def _parts(self) -> Iterable[Callable[[], Part]]:
        """All rows in order; threads make the parts."""

    def _summarise(self, recipes: Mapping[str, Recipe[Any]]) -> Summaries:
        def counted() -> Iterator[Summaries]:
            work = in_order(lambda make: Summaries.of(make(), recipes), self._parts(), n_cores())
            for found in work:
                if self._progress is not None:
                    self._progress(found.n_rows)
                yield found

        with expecting((self.n_rows or 0) * self.n_classes):
            return reduce(Summaries.merge, counted(), Summaries({}, 0, None))


class TableHandle(LocalHandle):
    """Columns that Arrow reads in batches."""

    def __init__(self, asked: Asked, open_table: Callable[[Request], Table]) -> None:
        self._asked, self._open_table, self._progress = asked, open_table, asked.progress
        self._table = open_table(asked.request)
        self._reader = PartReader.of(self._table, asked)
        self.name, self.n_rows = self._table.name, self._table.n_rows
        self.models, self.taken = tuple(self._reader.readers), self._reader.taken
        self.classes, self.n_classes = self._reader.classes, self._reader.n_classes

    def in_order(self) -> Handle:
        return TableHandle(self._asked.in_order(), self._open_table)

    def _parts(self) -> Iterator[Callable[[], Part]]:
        reader = self._reader
        rows = rows_at_a_time(reader.n_classes * len(self.models))
        for start, batches in self._table.runs(reader.columns, rows):
            yield lambda batches=batches, start=start: reader.part(batches, start)  # type: ignore[misc]


class ArrayHandle(LocalHandle):
    """An .npz file, or two .npy files."""

    def __init__(self, asked: Asked, path: Path) -> None:
        self._asked, self._path, self._progress = asked, path, asked.progress
        (name,) = asked.models(path.stem)
        self._source = ArrayFile(path, asked.request)
        self.name, self.models, self.n_rows = self._source.path, (name,), self._source.n_rows
        self.classes, self.n_classes = self._source.classes, self._source.width
        self.taken = self._source.taken

    def in_order(self) -> Handle:
        return ArrayHandle(self._asked.in_order(), self._path)

    def _summarise(self, recipes: Mapping[str, Recipe[Any]]) -> Summaries:
        # Batches without a valid row are not shown, but counted.
        return replace(super()._summarise(recipes), skipped=self._source.skipped)

    def _parts(self) -> Iterator[Callable[[], Part]]:
        for batch in self._source.batches(coded=True):
            yield lambda batch=batch: part_of({self.models[0]: batch}, self._asked.request)  # type: ignore[misc]


def opened(source: object, asked: Asked) -> Handle | None:
    """The handle on a file or a folder of files; None for anything else."""
    if not isinstance(source, (str, Path)):
        return None
    path = Path(source)
    check_exists(path)
    if format_of(path) in ("NPZ", "NPY"):
        return ArrayHandle(asked, path)
    return TableHandle(asked, lambda request: Table.of_file(path, request))
