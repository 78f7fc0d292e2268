"""Columns of top lists as the parts that recipes take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import pyarrow as pa

from verax._settings import settings
from verax.errors import InputError
from verax.files.formats.records import LOOK, RecordStream, records_of
from verax.files.formats.tables import SourceTable
from verax.files.listfile import ListFile
from verax.inputs.handles import Part, RowFacts
from verax.inputs.reading import Reading, named_columns
from verax.inputs.records.classifiers import ARRAYS, fields_of_arrays
from verax.inputs.skipping import NO_ROWS, Skipped
from verax.scans.options import ScanOptions
from verax.scans.parts import default_name, part_of_lists, taken_by
from verax.wings.lists.files.parts import ListParts, lists_of_columns
from verax.wings.lists.files.recognising import shape_of_records
from verax.wings.lists.files.tables import find_columns


@dataclass(frozen=True)
class ListReader:
    """Makes parts of record batches whose rows have lists, here or on another machine; it holds no rows.

    Attributes
    ----------
    readers : Mapping[str, ListParts]
        How the lists of each model are read.
    columns : list[str]
        Every column that is needed, once.
    """

    readers: Mapping[str, ListParts]
    columns: list[str]

    @classmethod
    def of(cls, table: SourceTable, options: ScanOptions) -> ListReader:
        """Find the role of each column from the first rows."""
        schema = table.schema
        head = [record for batch in table.head_of_all(LOOK) for record in records_of(batch)][:LOOK]
        readers: dict[str, ListParts] = {}
        for name, given in options.list_models(default_name(table.name)).items():
            stream = RecordStream(table.name, "row", enumerate(head))
            if not head:
                raise InputError(NO_ROWS, argument="source", kind="file", source=table.name)
            if not given.columns and given.shape is None and find_columns(schema.names, given):
                _refuse_long(table, head, given)
            readers[name] = ListParts.of(stream, shape_of_records(stream, given), given)
        columns = [column for reader in readers.values() for column in _columns(reader, schema, head)]
        return cls(readers, list(dict.fromkeys(columns)))

    @property
    def first(self) -> ListParts:
        """The reader of the first model, whose weights, groups and ids are used."""
        return next(iter(self.readers.values()))

    @property
    def facts(self) -> RowFacts:
        """What is known of the rows."""
        settings = self.first.settings
        return RowFacts(
            models=tuple(self.readers),
            classes=settings.names,
            n_classes=self.first.n_classes,
            taken=taken_by({name: reader.taken for name, reader in self.readers.items()}),
            by=settings.by,
            lists=True,
            weighted=settings.weights is not None,
        )

    @property
    def rows_at_a_time(self) -> int:
        """The number of rows that a part should have."""
        return settings.list_part_rows

    def part(self, batches: list[Any], start: int) -> Part:
        """The rows of record batches of one schema, the first of which has the number `start`."""
        table = pa.Table.from_batches(batches).combine_chunks()
        models = {name: self._lists(reader, table, start) for name, reader in self.readers.items()}
        return part_of_lists(_in_all(models), start)

    def _lists(self, reader: ListParts, table: Any, start: int) -> ListFile:
        # If anything is unusual, errors about single records name it and its row.
        lists = lists_of_columns(reader, table, start)
        if lists is not None:
            return lists
        records = (
            record
            for offset in range(0, table.num_rows, settings.list_part_records)
            for batch in table.slice(offset, settings.list_part_records).to_batches()
            for record in records_of(batch)
        )
        return reader.read(enumerate(records, start=start), start)


def _columns(reader: ListParts, schema: Any, head: Sequence[Any]) -> list[str]:
    """The columns that a model needs; all if its shape may read any."""
    settings = reader.settings
    lists: Sequence[str] = settings.columns
    if not lists and reader.shape == ARRAYS.name:
        lists = next((names for record in head if (names := fields_of_arrays(record))), ())
    if not lists:
        return list(schema.names)
    paths = [*lists, *named_columns(reader.outcome), *settings.beside]
    # Dots lead into nested fields, unless the name of the column has them.
    return [path if path in schema.names else path.partition(".")[0] for path in paths]


def _refuse_long(table: SourceTable, head: Sequence[Any], settings: Reading) -> None:
    columns = find_columns(table.schema.names, settings)
    assert columns is not None
    if isinstance(head[0].get(columns.classes), (list, tuple)):
        return
    raise InputError(
        "must have a row per list; a table with a line per row and class must be grouped by its ids first",
        argument="source",
        kind="file",
        found=f"its columns are {', '.join(table.schema.names)}",
        source=table.name,
    )


def _in_all(models: dict[str, ListFile]) -> dict[str, ListFile]:
    """The rows that are valid for every model, which tell what was left out and why."""
    left_out = [read.skipped for read in models.values() if read.skipped is not None]
    if len(models) == 1 or not left_out:
        return models
    common = reduce(np.intersect1d, (read.places for read in models.values()))
    gone = tuple(sorted({row for skipped in left_out for row in skipped.rows}))
    n_given = left_out[0].n_given
    skipped = Skipped(n_given, n_given - len(common), gone, reduce(add, left_out).reasons)
    return {
        name: replace(read.take(np.searchsorted(read.places, common)), skipped=skipped)
        for name, read in models.items()
    }
