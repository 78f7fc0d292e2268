"""What makes parts of a table, by what its rows hold."""

from __future__ import annotations

from verax.files.formats.tables import SourceTable
from verax.scans.grades import GradeReader
from verax.scans.lists import ListReader
from verax.scans.options import ScanOptions
from verax.scans.parts import PartReader


def reader_of(table: SourceTable, asked: ScanOptions) -> PartReader | ListReader | GradeReader:
    """The reader of the rows of a table: full distributions, or top lists or grades where that was said."""
    if asked.grades is not None:
        return GradeReader.of(table, asked)
    return PartReader.of(table, asked) if asked.settings is None else ListReader.of(table, asked)
