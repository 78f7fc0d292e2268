"""Record batches as the parts that recipes take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial, reduce
from operator import add
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from verax.errors import InputError
from verax.files.column_files import ColumnFile, ColumnReader
from verax.files.formats.tables import SourceTable
from verax.files.joining import with_classes_of
from verax.files.listfile import ListFile
from verax.files.predictions import Predictions
from verax.files.set_columns import set_rows_of
from verax.files.source import forecasts_of, rows_at_a_time, with_id
from verax.inputs.arrays import Ints
from verax.inputs.handles import Part, RowFacts
from verax.inputs.reading import Reading, named_columns
from verax.inputs.rows import Rows
from verax.inputs.skipping import Skipped
from verax.scans.options import ScanOptions
from verax.scans.rescaling import Rescaling


@dataclass(frozen=True)
class PartReader:
    """Makes parts of record batches, here or on another machine; it holds no rows.

    Attributes
    ----------
    readers : Mapping[str, ColumnReader]
        How the predictions of each model are read.
    request : Reading
        The reading of all models together.
    """

    readers: Mapping[str, ColumnReader]
    request: Reading

    @classmethod
    def of(cls, table: SourceTable, options: ScanOptions) -> PartReader:
        """Find the role of each column; the first model determines the classes and their order."""
        readers: dict[str, ColumnReader] = {}
        for name, request in options.reading.models(default_name(table.name)).items():
            reader = with_classes_of(
                {name: reader.labels.classes for name, reader in readers.items()},
                name,
                request.names,
                partial(ColumnFile, table, request),
            ).reader
            readers[name] = replace(reader, roles=replace(reader.roles, followup=options.followup))
        table.as_numbers(set().union(*(reader.numbers for reader in readers.values())))
        return cls(readers, options.reading)

    @property
    def first(self) -> ColumnReader:
        """The reader of the first model, whose weights, groups and ids are used."""
        return next(iter(self.readers.values()))

    @property
    def facts(self) -> RowFacts:
        """What is known of the rows."""
        roles, classes = self.first.roles, self.first.labels.classes
        return RowFacts(
            models=tuple(self.readers),
            classes=classes,
            n_classes=self.first.width,
            taken=taken_by({name: reader.roles.in_words(classes) for name, reader in self.readers.items()}),
            by=roles.by,
            sets=bool(self.request.sets),
            outcome=roles.outcome,
            weighted=roles.weights is not None or roles.time is not None or bool(roles.raters),
            rated=bool(roles.raters),
            followed=roles.followup is not None,
        )

    @property
    def columns(self) -> list[str]:
        """Every column that is needed, once."""
        return list(dict.fromkeys(name for reader in self.readers.values() for name in reader.roles.columns))

    @property
    def rows_at_a_time(self) -> int:
        """The number of rows that a part should have."""
        return rows_at_a_time(self.first.width * len(self.readers))

    def part(self, batches: list[Any], start: int) -> Part:
        """The rows of record batches of one schema, the first of which has the number `start`."""
        return part_of(self.predictions(batches, start, coded=True), self.request)

    def predictions(
        self, batches: list[Any], start: int, *, coded: bool, rescaling: Rescaling | None = None
    ) -> dict[str, Predictions]:
        """The same rows as predictions of each model; errors about rows give the id of the first."""
        try:
            models = {
                name: replace(reader.predictions(batches, start, coded), start=start)
                for name, reader in self.readers.items()
            }
        except InputError as error:
            names = named_columns(self.first.roles.id)
            table = pa.Table.from_batches(batches)
            at = error.rows[0] - start if error.rows else -1
            if not names or error.argument == "id" or not 0 <= at < table.num_rows:
                raise
            values = [table[name][at].as_py() for name in names]
            raise with_id(error, self.first.roles, values) from None
        return usable(models, self.request, rescaling)


# The default name of the only model of a source.
UNNAMED = "model"


def default_name(source: str) -> str:
    """The name of the only model of a source: that of its file or folder, if it has one.

    >>> default_name("runs/model_a.parquet"), default_name("preds/*.csv"), default_name("the polars frame")
    ('model_a', 'preds', 'model')
    """
    path = Path(source.partition(" and ")[0])
    called = next((part for part in reversed(path.parts) if not set(part) & set("*?[")), "")
    return UNNAMED if " " in called or not called else Path(called).stem


def taken_by(models: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """How each column was read: the lines of the only model, or of several with their names."""
    if len(models) == 1:
        return next(iter(models.values()))
    return tuple(dict.fromkeys(f"{name}: {line}" for name, lines in models.items() for line in lines))


def usable(
    models: dict[str, Predictions], request: Reading, rescaling: Rescaling | None = None
) -> dict[str, Predictions]:
    """The rows, judged at the horizon if there is one; with `invalid="skip"` those valid for every model."""
    if rescaling is not None:
        models = rescaling.divided(models)
    if request.invalid == "skip":
        scale = {"normalize": request.normalize, "logits": request.logits}
        models = _in_all({name: rows.valid(**scale) for name, rows in models.items()})
    if rescaling is not None:
        rescaling.note(models)
    return {name: rows.judged() for name, rows in models.items()}


def part_of(models: Mapping[str, Predictions], request: Reading) -> Part:
    """Predictions of several models for the same rows, with the weights, ids and so on of the first."""
    first = next(iter(models.values()))
    options = {"normalize": request.normalize, "logits": request.logits, "ordered": request.ordered}
    rows: dict[str, Rows] = {}
    for name, predictions in models.items() if len(first) else ():
        rows[name] = (
            set_rows_of(predictions, ordered=request.ordered)
            if request.sets
            else forecasts_of(predictions, **options)
        )

    def subset(places: Ints) -> Part:
        return part_of({name: predictions.take(places) for name, predictions in models.items()}, request)

    return Part(rows, first.start, first.ids, first.by, first.rows, first.skipped, subset, times=first.times)


def part_of_lists(models: Mapping[str, ListFile], start: int) -> Part:
    """The lists of several models for the same rows, with the weights, ids and so on of the first."""
    first = next(iter(models.values()))
    rows = {}
    for name, read in models.items() if len(first) else ():
        rows[name] = read.lists.with_outcomes(
            read.y, weights=read.weights, groups=read.groups, part=True, first_row=start
        )

    def subset(places: Ints) -> Part:
        return part_of_lists({name: read.take(places) for name, read in models.items()}, start)

    ids = None if first.ids is None else np.array(first.ids)
    numbers = first.places if first.skipped is not None else None
    return Part(rows, start, ids, first.by, numbers, first.skipped, subset)


def _in_all(models: dict[str, Predictions]) -> dict[str, Predictions]:
    """The rows that are valid for every model, which tell what was left out and why."""
    if len(models) == 1:
        return models
    numbers = {name: np.asarray(predictions.rows) for name, predictions in models.items()}
    common = reduce(np.intersect1d, numbers.values())
    left_out = [predictions.skipped for predictions in models.values() if predictions.skipped is not None]
    n_given = left_out[0].n_given
    gone = tuple(sorted({row for skipped in left_out for row in skipped.rows}))
    skipped = Skipped(n_given, n_given - len(common), gone, reduce(add, left_out).reasons)
    return {
        name: replace(predictions.take(np.searchsorted(numbers[name], common)), skipped=skipped)
        for name, predictions in models.items()
    }
