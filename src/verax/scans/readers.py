"""What makes parts of a table: the reader of distributions, or that of a form which a wing reads."""

from __future__ import annotations

from typing import Any, Protocol

from verax.common.wings import all_of
from verax.errors import InputError
from verax.files.formats.tables import SourceTable
from verax.inputs.handles import Part, RowFacts
from verax.scans.options import ScanOptions
from verax.scans.parts import PartReader


class TableReader(Protocol):
    """Makes parts of record batches, here or on another machine; it holds no rows."""

    @property
    def facts(self) -> RowFacts:
        """What is known of the rows."""

    @property
    def columns(self) -> list[str]:
        """Every column that is needed, once."""

    @property
    def rows_at_a_time(self) -> int:
        """The number of rows that a part should have."""

    def part(self, batches: list[Any], start: int) -> Part:
        """The rows of record batches of one schema, the first of which has the number `start`."""


def reader_of(table: SourceTable, options: ScanOptions) -> TableReader:
    """The reader of a table: that of a form which its options or its columns name, or of distributions."""
    if options.reading.outcomes is not None:
        # Of files they are a column of the table by now.
        raise InputError("must be in the same table as the predictions: join them first", argument="outcomes")
    readers = (form.reader(table, options) for form in all_of("forms"))
    return next((reader for reader in readers if reader is not None), None) or PartReader.of(table, options)
