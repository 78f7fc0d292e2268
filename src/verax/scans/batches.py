"""Columns and arrays on this machine, read batch by batch."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from verax.common.paths import files_named
from verax.errors import InputError, RuleError
from verax.files.array_files import ArrayFiles
from verax.files.formats.several import Files
from verax.files.formats.tables import ARRAYS, SourceTable, common_format, files_once
from verax.files.formats.texts import COMPRESSED
from verax.files.joining import with_classes_of
from verax.files.predictions import Predictions, Roles, concatenate
from verax.files.rater_tables import cases_of
from verax.files.source import rows_at_a_time
from verax.files.two_models import SameRows, TwoModels, head_rows
from verax.inputs.handles import Collector, Handle, RowFacts
from verax.inputs.lists.rows import NO_ORDER
from verax.inputs.reading import Reading, named_columns
from verax.inputs.reading_checks import PROBABILITIES
from verax.inputs.skipping import NO_ROWS
from verax.scans.distinct import refuse_repeated_ids
from verax.scans.forms import TableReader, reader_of
from verax.scans.loaded import LoadedRows, rows_fit
from verax.scans.local import KeptParts, LocalHandle, Work
from verax.scans.options import ScanOptions
from verax.scans.parts import PartReader, default_name, part_of, taken_by, usable
from verax.scans.rescaling import Rescaling

# With at least this number of long parts, all parts are long, including the first.
_LONG = 3


class TableHandle(LocalHandle):
    """Columns that Arrow reads in batches."""

    def __init__(self, options: ScanOptions, table: SourceTable, reader: TableReader) -> None:
        self._options, self._table, self._progress = options, table, options.progress
        self._reader = reader
        self._rescaling = rescaling_of(options)
        self._describe(table.name, table.n_rows, self._reader.facts)
        self.has_rows: bool = not getattr(table.reader, "once", False)
        width = self.n_classes * len(self.models)
        self.fits: bool = isinstance(self._reader, PartReader) and rows_fit(self.n_rows, width, table.n_bytes)
        self._kept = KeptParts(bool(options.hold) and self.fits)
        self.ids: tuple[str, ...] = options.ids
        self.two_way: bool = len(named_columns(options.reading.groups)) > 1
        self.distinct: bool = options.distinct
        self._same: SameRows | None = None
        files = table.reader
        if options.may_be_two_models and isinstance(files, Files) and isinstance(self._reader, PartReader):
            roles = self._reader.first.roles
            outcomes = roles.raters or (roles.target,)
            files.watch = self._same = SameRows(files.schema.names, outcomes, len(files.files))

    def place_of(self, row: int) -> str:
        return self._table.place_of(row)

    @property
    def most_rows(self) -> float:
        """An upper bound: a row of text has a digit and a separator for each probability."""
        packed = any(file.suffix in COMPRESSED for file in self._table.files)
        if self.n_rows is not None or packed or not self._table.files:
            return super().most_rows
        return self._table.n_bytes / (2 * self.n_classes * len(self.models))

    @property
    def roles(self) -> Roles:
        """The role of each column, for the first model; other forms have a column of outcomes only."""
        return self._reader.first.roles if isinstance(self._reader, PartReader) else Roles(self.outcome, ())

    @property
    def roles_of_models(self) -> dict[str, Roles]:
        """The roles of columns for each model; empty for rows of other forms."""
        readers = self._reader.readers if isinstance(self._reader, PartReader) else {}
        return {name: reader.roles for name, reader in readers.items()}

    @property
    def all_columns(self) -> list[str]:
        """All columns of the source."""
        return list(self._table.schema.names)

    @property
    def columns(self) -> list[str]:
        """All columns that are read."""
        return self._reader.columns

    @property
    def notes(self) -> tuple[str, ...]:
        doubts = () if self._same is None else self._same.notes
        every = (*self._table.notes, *doubts, *taken_by(self._rescaling.sentences(self.models)))
        return (*every, *_of_followup(self._options, self.models))

    def in_order(self) -> Handle:
        if self.lists:
            raise RuleError(NO_ORDER)
        if self._options.reading.ordered:
            return self
        options = self._options.with_reading(ordered=True)
        return TableHandle(options, self._table, reader_of(self._table, options))

    def in_memory(self) -> Handle:
        return self.loaded().in_memory() if self.fits else self

    def loaded(self) -> LoadedRows:
        """All rows of full distributions, in memory."""
        parts = []
        for start, batches in self._runs():
            parts.append(self._rows(batches, start, coded=False))
            self._advance(sum(batch.num_rows for batch in batches))
        self._check()
        return _loaded(self, parts, self._options.reading)

    def _runs(self, times: int = 1) -> Iterator[tuple[int, list[Any]]]:
        rows = self._reader.rows_at_a_time
        # With many rows even the first parts are long: exact counts in short ones would be in vain.
        first = {"first": 0} if (self.n_rows or 0) >= _LONG * times * rows else {}
        return self._table.runs(self._reader.columns, rows, times, **first)

    def _work(self, times: int) -> Iterator[Work]:
        if self._kept.complete:
            yield from self._kept.work()
            return
        for start, batches in self._runs(times):
            yield partial(self._collect, batches, start)

    def _collect(self, batches: list[Any], start: int, collector: Collector) -> int:
        with self._located():
            if not isinstance(self._reader, PartReader):
                return collector.add(self._reader.part(batches, start))
            part = part_of(self._rows(batches, start, coded=True), self._options.reading)
            # The rows are in separate arrays by now, and more are read meanwhile.
            batches.clear()
            return collector.add(self._kept.add(part))

    def _check(self) -> None:
        with self._located():
            self._rescaling.check()
        self._kept.end()

    def _rows(self, batches: list[Any], start: int, *, coded: bool) -> dict[str, Predictions]:
        assert isinstance(self._reader, PartReader)
        with self._located():
            return self._reader.predictions(batches, start, coded=coded, rescaling=self._rescaling)

    @contextmanager
    def _located(self) -> Iterator[None]:
        """Let errors about rows name their file."""
        try:
            yield
        except InputError as error:
            if not error.rows or error.source != self.name:
                raise
            raise error.replace(source=self._table.place_of(error.rows[0])) from None


class ArrayHandle(LocalHandle):
    """Files of arrays: .npz files, or two .npy files."""

    def __init__(self, options: ScanOptions, paths: Sequence[Path], name: str) -> None:
        self._options, self._paths, self._progress = options, paths, options.progress
        self._sources: dict[str, ArrayFiles] = {}
        for model, request in options.reading.models(default_name(name)).items():
            self._sources[model] = with_classes_of(
                {model: source.classes for model, source in self._sources.items()},
                model,
                request.names,
                partial(_array_files, paths, request, name),
            )
            self._sources[model].followup = options.followup
        first = next(iter(self._sources.values()))
        self._rescaling = rescaling_of(options)
        self.roles: Roles = first.roles
        self.roles_of_models: dict[str, Roles] = {
            model: source.roles for model, source in self._sources.items()
        }
        facts = RowFacts(
            models=tuple(self._sources),
            classes=first.classes,
            n_classes=first.width,
            taken=taken_by({model: source.taken for model, source in self._sources.items()}),
            by=first.roles.by,
            outcome=first.roles.outcome,
            weighted=first.roles.weights is not None or first.roles.time is not None,
            followed=first.roles.followup is not None,
        )
        self._describe(name, first.n_rows, facts)
        self.fits: bool = rows_fit(self.n_rows, self.n_classes * len(self.models), 0)
        self._kept = KeptParts(bool(options.hold) and self.fits)
        self.ids: tuple[str, ...] = options.ids
        self.two_way: bool = len(named_columns(options.reading.groups)) > 1
        self.distinct: bool = options.distinct
        same = TwoModels(len(paths), first.roles.id_name)
        for head in first.heads(head_rows(len(paths))) if options.may_be_two_models else ():
            same.add(*head)
        self._doubts = same.notes

    def place_of(self, row: int) -> str:
        return next(iter(self._sources.values())).place_of(row)

    @property
    def notes(self) -> tuple[str, ...]:
        every = (*self._doubts, *taken_by(self._rescaling.sentences(self.models)))
        return (*every, *_of_followup(self._options, self.models))

    def in_order(self) -> Handle:
        ordered = self._options.reading.ordered
        return (
            self if ordered else ArrayHandle(self._options.with_reading(ordered=True), self._paths, self.name)
        )

    def in_memory(self) -> Handle:
        return self.loaded().in_memory() if self.fits else self

    def loaded(self) -> LoadedRows:
        """All rows, in memory."""
        parts = []
        for batches in self._batches(coded=False):
            parts.append(self._rows(batches))
            self._advance(batches[0].n_given)
        self._check()
        return _loaded(self, parts, self._options.reading)

    def _batches(self, *, coded: bool) -> Iterator[Sequence[Predictions]]:
        rows = rows_at_a_time(self.n_classes * len(self.models))
        return zip(*(source.given(rows, coded=coded) for source in self._sources.values()), strict=True)

    def _work(self, times: int) -> Iterator[Work]:
        if self._kept.complete:
            yield from self._kept.work()
            return
        for batches in self._batches(coded=True):
            yield partial(self._collect, batches)

    def _collect(self, batches: Sequence[Predictions], collector: Collector) -> int:
        return collector.add(self._kept.add(part_of(self._rows(batches), self._options.reading)))

    def _check(self) -> None:
        self._rescaling.check()
        self._kept.end()

    def _rows(self, batches: Sequence[Predictions]) -> dict[str, Predictions]:
        return usable(dict(zip(self.models, batches, strict=True)), self._options.reading, self._rescaling)


def rescaling_of(options: ScanOptions) -> Rescaling:
    """The division of rows by their sums, on request or if probabilities may have been rounded."""
    request = options.reading
    probabilities = not (request.logits or request.sets) and request.outputs == PROBABILITIES
    return Rescaling(normalize=request.normalize, rounded=options.rounded and probabilities)


def _of_followup(options: ScanOptions, models: Sequence[str]) -> tuple[str, ...]:
    """What became of rows that were censored, for each model."""
    if options.followup is None:
        return ()
    return taken_by(dict.fromkeys(models, (options.followup.sentence,)))


def _loaded(
    handle: TableHandle | ArrayHandle, parts: list[dict[str, Predictions]], request: Reading
) -> LoadedRows:
    """The rows of all parts, named like their handle."""
    if not parts:
        raise InputError(NO_ROWS, argument="source", kind="file", source=handle.name)
    # Errors about rows in memory name the files together.
    rows = {
        name: replace(concatenate([part[name] for part in parts]), path=handle.name) for name in handle.models
    }
    if handle.distinct:
        first = rows[handle.models[0]]
        refuse_repeated_ids(first.ids, first.numbers, handle.ids, handle.place_of)
    return LoadedRows(rows, request, name=handle.name, taken=handle.taken, notes=handle.notes)


def _array_files(
    paths: Sequence[Path], request: Reading, name: str, *, classes: tuple[Hashable, ...] | None
) -> ArrayFiles:
    return ArrayFiles(paths, replace(request, classes=classes), name)


def opened(source: object, options: ScanOptions) -> Handle | None:
    """The handle on a file, a folder, or the files of a pattern or a list; None for anything else."""
    named = files_named(source)
    return None if named is None else of_files(*named, options)


def of_files(paths: Sequence[Path], name: str, options: ScanOptions) -> Handle:
    """The handle on files of columns or arrays; outcomes from another file are a further column."""
    outcomes, arrays = options.reading.outcomes, common_format(paths) in ARRAYS
    if outcomes is None:
        if arrays:
            return ArrayHandle(options, files_once(paths), name)
        return of_table(SourceTable.of_paths(paths, options.reading, name), options)
    from verax.files.outcomes_beside import array_table, with_outcomes

    if arrays:
        table = array_table(files_once(paths), options.reading, name)
    else:
        table = SourceTable.of_paths(paths, options.reading, name)
    table, reading = with_outcomes(table, outcomes, options.reading)
    return of_table(table, replace(options, reading=reading))


def of_table(table: SourceTable, options: ScanOptions) -> Handle:
    """The handle on columns that Arrow reads, or on the cases of a long table of raters."""
    if options.reading.rater_column is None:
        return TableHandle(options, table, reader_of(table, options))
    table, cases = cases_of(table, options.reading)
    options = options.with_reading(raters=cases.raters, rater_column=None, label_column=None)
    handle = TableHandle(options, table, reader_of(table, options))
    cases.check_alike(handle.columns)
    return handle
