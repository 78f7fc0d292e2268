"""Forms of rows besides columns and arrays of distributions, each read by the wing that declares it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

from verax.common.paths import Files
from verax.common.wings import all_of
from verax.errors import InputError
from verax.files.formats.records import RecordStream
from verax.files.formats.tables import SourceTable
from verax.inputs.handles import Handle, Part, RowFacts
from verax.inputs.reading import Reading
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


@dataclass(frozen=True)
class Settled:
    """How files were read, all of which were: what `verax init` shows and writes.

    Attributes
    ----------
    n_rows : int
        The number of rows.
    taken : tuple of str
        How each part was read, one line each.
    reading : Reading
        The reading that was asked for, with what was found stated.
    """

    n_rows: int
    taken: tuple[str, ...]
    reading: Reading


class Form:
    """A form of rows: what the core asks of the wing that reads it.

    `opened` and `reader` make it a source of every function that takes rows, `holds` with `command` lets
    commands of the core hand its files over. What a form leaves out is answered by no.

    Attributes
    ----------
    lists : bool
        Whether the rows are top lists.
    command : str
        The command of the wing that runs in place of those that it takes options of; empty for none.
    says : str
        What the files are, for whoever typed another command.
    """

    lists: ClassVar[bool] = False
    command: ClassVar[str] = ""
    says: ClassVar[str] = ""

    def holds(self, paths: Files, reading: Reading) -> bool:
        """Whether files hold rows of this form, as stated or by a look at their beginning."""
        return False

    def opened(self, source: object, options: ScanOptions) -> Handle | None:
        """The handle on a source that only this form reads; None for any other."""
        return None

    def reader(self, table: SourceTable, options: ScanOptions) -> TableReader | None:
        """What makes parts of a table, here or on another machine, if its rows are of this form."""
        return None

    def endings(self) -> tuple[str, ...]:
        """The endings of files that only this form reads."""
        return ()

    def records(self, path: Path) -> RecordStream | None:
        """The records of a file that this form unpacks; None for any other."""
        return None

    def settled(self, paths: Files, reading: Reading, *, named: bool) -> Settled:
        """How files are read, which may be `named` as those of one model; of forms with a command."""
        raise NotImplementedError

    def questions(self, paths: Files, rows: Collection[int]) -> Mapping[int, str]:
        """What some rows of files are about, by their places; none where that cannot be told."""
        return {}


def form_of_lists(paths: Files, reading: Reading) -> Form | None:
    """The form that reads files as top lists; None for files of no lists."""
    forms: list[Form] = [form for form in all_of("forms") if form.lists]
    return next((form for form in forms if form.holds(paths, reading)), None)


def form_with_command(paths: Files, reading: Reading) -> Form | None:
    """The form of files that a command of a wing reads; None for files that commands of the core read."""
    forms: list[Form] = [form for form in all_of("forms") if form.command]
    return next((form for form in forms if form.holds(paths, reading)), None)
