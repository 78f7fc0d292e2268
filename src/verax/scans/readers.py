"""What makes parts of a table, by what its rows hold."""

from __future__ import annotations

from verax.errors import InputError
from verax.files.formats.tables import SourceTable
from verax.scans.grades import GradeReader
from verax.scans.lists import ListReader
from verax.scans.options import ScanOptions
from verax.scans.parts import PartReader


def reader_of(table: SourceTable, options: ScanOptions) -> PartReader | ListReader | GradeReader:
    """The reader of the rows of a table: full distributions, or top lists or grades where that was said."""
    if options.reading.outcomes is not None:
        # Of files they are a column of the table by now.
        raise InputError("must be in the same table as the predictions: join them first", argument="outcomes")
    if options.reading.grades is not None:
        return GradeReader.of(table, options)
    return PartReader.of(table, options) if not options.reading.are_lists else ListReader.of(table, options)
