"""What is on this machine, read batch by batch and summarised by threads, in bounded memory."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from verax.common.paths import files_named
from verax.errors import InputError, RuleError
from verax.files.array_files import ArrayFiles
from verax.files.formats.tables import ARRAYS, Table, common_format, files_of
from verax.files.joining import with_classes_of
from verax.files.predictions import Predictions, Request
from verax.files.source import rows_at_a_time
from verax.inputs.handles import Collector, Handle, Recipe, Summaries
from verax.inputs.lists.rows import NO_ORDER
from verax.kernels.ledger import expecting
from verax.kernels.threads import by_turns, n_cores
from verax.scans.asking import Asked
from verax.scans.parts import default_name, part_of, taken_by, usable
from verax.scans.readers import reader_of

# How many collectors share the rows by turns, at most: threads beyond these would wait for rows to be read.
_COLLECTORS = 8
Work = Callable[[Collector], int]


class LocalHandle(Handle):
    """Rows that come to this process in parts."""

    _progress: Callable[[int], None] | None = None

    @abstractmethod
    def _work(self) -> Iterable[Work]:
        """All rows in order; each piece of work shows some to a collector, and says how many are valid."""

    def _summarise(self, recipes: Mapping[str, Recipe[Any]]) -> Summaries:
        collectors = [Collector(recipes) for _ in range(min(n_cores(), _COLLECTORS))]
        with expecting((self.n_rows or 0) * (1 if self.lists else self.n_classes)):
            for n_rows in by_turns(lambda show, own: show(own), self._work(), collectors):
                if self._progress is not None:
                    self._progress(n_rows)
        # One after the other, so that the tables of those that are done take no memory.
        found = Summaries({}, 0, None)
        while collectors:
            found = found.merge(collectors.pop(0).summaries())
        return found


class TableHandle(LocalHandle):
    """Columns that Arrow reads in batches."""

    by: tuple[str, ...]
    lists: bool
    name: str
    n_rows: int | None
    models: tuple[str, ...]
    taken: tuple[str, ...]
    classes: tuple[Hashable, ...] | None
    n_classes: int

    def __init__(self, asked: Asked, open_table: Callable[[Request], Table]) -> None:
        self._asked, self._open_table, self._progress = asked, open_table, asked.progress
        self._table = open_table(asked.request)
        self._reader = reader_of(self._table, asked)
        self.name, self.n_rows = self._table.name, self._table.n_rows
        self.models, self.taken = self._reader.models, self._reader.taken
        self.by, self.lists = self._reader.by, self._reader.lists
        self.classes, self.n_classes = self._reader.classes, self._reader.n_classes
        self.has_rows: bool = not getattr(self._table.reader, "once", False)

    def in_order(self) -> Handle:
        if self.lists:
            raise RuleError(NO_ORDER)
        return TableHandle(self._asked.in_order(), self._open_table)

    def _work(self) -> Iterator[Work]:
        for start, batches in self._table.runs(self._reader.columns, self._reader.rows_at_a_time):
            yield partial(self._collect, batches, start)

    def _collect(self, batches: list[Any], start: int, collector: Collector) -> int:
        try:
            return self._reader.collect(batches, start, collector)
        except InputError as error:
            if not error.rows or error.source != self.name:
                raise
            raise error.replace(source=self._table.place_of(error.rows[0])) from None


class ArrayHandle(LocalHandle):
    """Files of arrays: .npz files, or two .npy files."""

    name: str
    models: tuple[str, ...]
    classes: tuple[Hashable, ...] | None
    n_classes: int
    taken: tuple[str, ...]

    def __init__(self, asked: Asked, paths: Sequence[Path], name: str) -> None:
        self._asked, self._paths, self._progress = asked, paths, asked.progress
        self._sources: dict[str, ArrayFiles] = {}
        for model, request in asked.models(default_name(name)).items():
            self._sources[model] = with_classes_of(
                {model: source.classes for model, source in self._sources.items()},
                model,
                request.classes,
                partial(_array_files, paths, request, name),
            )
        first = next(iter(self._sources.values()))
        self.name, self.models = name, tuple(self._sources)
        self.n_rows: int | None = first.n_rows
        self.classes, self.n_classes = first.classes, first.width
        self.by: tuple[str, ...] = first.roles.by
        self.taken = taken_by({model: source.taken for model, source in self._sources.items()})

    def in_order(self) -> Handle:
        return ArrayHandle(self._asked.in_order(), self._paths, self.name)

    def _work(self) -> Iterator[Work]:
        rows = rows_at_a_time(self.n_classes * len(self.models))
        streams = [source.given(rows, coded=True) for source in self._sources.values()]
        for batches in zip(*streams, strict=True):
            yield partial(self._collect, batches)

    def _collect(self, batches: Sequence[Predictions], collector: Collector) -> int:
        found = dict(zip(self.models, batches, strict=True))
        return collector.add(part_of(usable(found, self._asked.request), self._asked.request))


def _array_files(
    paths: Sequence[Path], request: Request, name: str, *, classes: tuple[Hashable, ...] | None
) -> ArrayFiles:
    return ArrayFiles(paths, replace(request, classes=classes), name)


def opened(source: object, asked: Asked) -> Handle | None:
    """The handle on a file, a folder, or the files of a pattern or a list; None for anything else."""
    found = files_named(source)
    return None if found is None else of_files(*found, asked)


def of_files(paths: Sequence[Path], name: str, asked: Asked) -> Handle:
    """The handle on files of columns or arrays."""
    if common_format(paths) in ARRAYS:
        return ArrayHandle(asked, [file for path in paths for file in files_of(path)], name)
    return TableHandle(asked, lambda request: Table.of_paths(paths, request, name))
