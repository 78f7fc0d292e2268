"""What makes parts of a table, by what its rows hold."""

from __future__ import annotations

from verax.files.formats.tables import Table
from verax.scans.asking import Asked
from verax.scans.lists import ListReader
from verax.scans.parts import PartReader


def reader_of(table: Table, asked: Asked) -> PartReader | ListReader:
    """The reader of the rows of a table: full distributions, or top lists where that was said."""
    return PartReader.of(table, asked) if asked.settings is None else ListReader.of(table, asked)
