"""Files of top lists: records one after the other, on this machine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from verax._settings import settings
from verax.common.paths import arrow_file, files_named
from verax.errors import InputError, RuleError
from verax.files.formats.several import Places
from verax.files.formats.tables import FORMATS, files_of, files_once
from verax.files.formats.texts import ending
from verax.files.listfile import ListFile, distributions
from verax.files.predictions import Predictions
from verax.files.two_models import TwoModels
from verax.inputs.handles import Collector, Handle, RowFacts
from verax.inputs.lists.rows import NO_ORDER
from verax.inputs.reading import Reading, named_columns
from verax.scans.batches import of_files
from verax.scans.distinct import refuse_repeated_ids
from verax.scans.loaded import LoadedRows, files_fit
from verax.scans.local import LocalHandle, Work
from verax.scans.options import ScanOptions
from verax.scans.parts import default_name, part_of_lists
from verax.wings.lists.files.opening import read_lists, records_of_piece
from verax.wings.lists.files.parts import ListParts
from verax.wings.lists.files.recognising import has_lists, open_shaped
from verax.wings.lists.files.tables import LONG, WIDE, is_long
from verax.wings.lists.files.words import added, counted, ungrouped_questions


class ListFilesHandle(LocalHandle):
    """Files of records, read one after the other; only one file of a long table is in memory at a time."""

    def __init__(self, options: ScanOptions, paths: Sequence[Path], name: str) -> None:
        if options.reading.several:
            raise InputError(
                "must be a table with columns of lists where it has several models",
                argument="source",
                kind="file",
                found=f"{paths[0]} has records",
            )
        self._paths, self._progress = paths, options.progress
        self._reading = next(iter(options.list_models("model").values()))
        self._reader = ListParts.of(*open_shaped(paths[0], self._reading))
        settings = self._reader.settings
        facts = RowFacts(
            models=(default_name(name),),
            classes=settings.names,
            n_classes=self._reader.n_classes,
            taken=self._reader.taken,
            by=settings.by,
            lists=True,
        )
        self._describe(name, None, facts)
        # By the first record of each part read: the number of lists, the counts, and the questions.
        self._read: dict[int, tuple[int, Mapping[str, float], Any]] = {}
        self._places = Places()
        self.ids: tuple[str, ...] = options.ids
        self.two_way: bool = len(named_columns(options.reading.groups)) > 1
        self.distinct: bool = options.distinct

    def place_of(self, row: int) -> str:
        return self._places.of(row)

    @property
    def counts(self) -> dict[str, float]:
        """The number of records and entries read that were merged, divided, and so on."""
        return added(counts for _, counts, _ in self._read.values())

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of results should know of what was read: a sentence each."""
        parts = list(self._read.values())
        n_rows = sum(n for n, _, _ in parts)
        notes = counted(self.counts, n_rows, self._reader.settings) if n_rows else []
        known = [questions for _, _, questions in parts if questions is not None]
        if len(known) == len(parts) and known:
            n_questions = np.unique(np.concatenate(known)).size
            notes += [ungrouped_questions(n_rows, n_questions)] if n_questions < n_rows else []
        return tuple(notes)

    def in_order(self) -> Handle:
        raise RuleError(NO_ORDER)

    def _work(self, times: int) -> Iterator[Work]:
        start = 0
        for path in self._paths:
            self._places.note(start, str(path))
            for records in self._parts(path):
                yield partial(self._collect, records, start, str(path))
                start += len(records)
        if self._reader.gold is not None:
            self._reader.gold.check_length(start)

    def _parts(self, path: Path) -> Iterator[list[tuple[int, Any]]]:
        records = records_of_piece(path, self._paths, self._reading, self._reader.shape)
        while part := list(islice(records, settings.list_part_records)):
            yield part

    def _collect(
        self, records: Iterable[tuple[int, Any]], start: int, path: str, collector: Collector
    ) -> int:
        read = self._reader.read(records, start, path)
        self._read[start] = len(read), read.counts, read.questions
        return collector.add(part_of_lists({self.models[0]: read}, start))


def opened(source: object, options: ScanOptions) -> Handle | None:
    """The handle on files of lists, as stated or by their content; None for anything else."""
    named = files_named(source)
    if named is None:
        return None
    paths, name = named
    if options.reading.are_lists is None:
        if not has_lists(paths[0], options.reading):
            return None
        options = replace(options.with_reading(lists=True), densify=True)
    if len(paths) > 1:
        files_once(paths)
    if not options.reading.several and _are_read(paths, options):
        return _read(paths, name, options)
    if _are_tables(paths[0], options.reading):
        return of_files(paths, name, options)
    files = [file for path in paths for file in (files_of(path) if path.is_dir() else [path])]
    return ListFilesHandle(options, files, name)


def _are_read(paths: Sequence[Path], options: ScanOptions) -> bool:
    """Whether files are read at once: without stated classes, all lists together tell them."""
    settings = options.reading
    known = settings.names is not None or settings.n_classes is not None or settings.shape == WIDE.name
    if options.hold:
        if options.hold == "fitting" and known and _has_many_rows(paths, settings):
            return False
        return options.hold == "all" or len(paths) < 2 or files_fit(paths)
    return not known and files_fit(paths)


def _has_many_rows(paths: Sequence[Path], reading: Reading) -> bool:
    """Whether a file has too many rows to be read one by one.

    Columns of lists are then read in batches, without a record per row.
    """
    if len(paths) != 1 or not paths[0].is_file() or FORMATS.get(ending(paths[0])) != "Parquet":
        return False
    if not _are_tables(paths[0], reading):
        return False
    import pyarrow.parquet as papq

    with arrow_file(paths[0]) as file:
        return bool(papq.read_metadata(file).num_rows > settings.lists_held_up_to)


def _read(paths: Sequence[Path], name: str, options: ScanOptions) -> LoadedRows:
    """The rows of files; lists that all name every class become full distributions."""
    ((model, settings),) = options.list_models(default_name(name)).items()
    read = read_lists(paths, name, settings)
    if options.progress is not None:
        options.progress(len(read))
    pieces = _pieces(paths, read)
    same = TwoModels(len(pieces))
    for file, start, stop in pieces if options.may_be_two_models else ():
        same.add(file, read.y[start:stop])
    if options.distinct:
        places = Places()
        for file, start, _ in pieces or [(read.path, 0, 0)]:
            places.note(int(read.places[start]), file)
        refuse_repeated_ids(read.ids, read.places, options.ids, places.of)
    rows: ListFile | Predictions = read
    taken = read.taken
    if options.densify and read.are_distributions:
        rows = distributions(read)
        taken += (f"scored as distributions: every list names all {read.lists.n_classes} classes",)
    return LoadedRows({model: rows}, Reading(), name=read.path, taken=taken, notes=(*same.notes, *read.notes))


def _pieces(paths: Sequence[Path], read: ListFile) -> list[tuple[str, int, int]]:
    """The rows of each of several files, by the restart of their numbers; empty if that is unclear."""
    starts = [0, *(1 + np.flatnonzero(np.diff(read.numbers) < 0)).tolist()]
    if len(paths) < 2 or len(starts) != len(paths):
        return []
    return list(zip(map(str, paths), starts, [*starts[1:], len(read)], strict=True))


def _are_tables(path: Path, settings: Reading) -> bool:
    """Whether a file has columns of lists, which are read in batches."""
    first = files_of(path)[0] if path.is_dir() else path
    if FORMATS.get(ending(first)) not in ("Parquet", "Arrow"):
        return False
    return settings.shape not in (LONG.name, WIDE.name) and (
        bool(settings.probs) or not is_long(path, settings)
    )
