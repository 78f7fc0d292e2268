"""A look at the beginning of a file, which tells what kind of log it is, and the records in it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from verax.common.caching import cached_property
from verax.common.paths import check_regular
from verax.errors import InputError, Remedy
from verax.files.formats.records import open_stream
from verax.files.formats.tables import FORMATS, SourceTable
from verax.files.formats.texts import COMPRESSED, decompressed, ending, json_document, lines_of
from verax.inputs.reading import Reading
from verax.inputs.records.record import mapping, sequence

# How much of a document tells what it is.
_HEAD = 2**16
_KEY = re.compile(rb'"([A-Za-z_:][\w :./-]{0,60})"\s*:')
_LINES = (".jsonl", ".ndjson")
_TABLES = ("CSV", "TSV", "Parquet")


class Look:
    """What the beginning of a file shows.

    Attributes
    ----------
    path : Path
        The file.
    ending : str
        The ending of its name, without that of a compression.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.ending: str = ending(path)

    @property
    def is_lines(self) -> bool:
        """Whether it is JSON Lines."""
        return self.ending in _LINES

    @cached_property
    def head(self) -> bytes:
        """The first bytes of a JSON document; none of any other file."""
        if self.ending != ".json":
            return b""
        check_regular(self.path)
        with decompressed(self.path) as stream:
            return bytes(stream.read(_HEAD))

    @cached_property
    def keys(self) -> frozenset[str]:
        """The keys in the beginning of a JSON document, on all levels."""
        return frozenset(name.decode() for name in _KEY.findall(self.head))

    @cached_property
    def record(self) -> Mapping[str, Any]:
        """The first record of JSON Lines or of an array; of a table, its columns without values."""
        if self.is_lines:
            check_regular(self.path)
            return mapping(next((record for _, record in lines_of(self.path, once=False)), None))
        if FORMATS.get(self.ending) in _TABLES:
            return dict.fromkeys(SourceTable.of_file(self.path, Reading()).schema.names)
        text = self.head.lstrip()
        if text[:1] != b"[":
            return {}
        try:
            found, _ = json.JSONDecoder().raw_decode(text[1:].decode(errors="ignore").lstrip())
        except ValueError:
            # The first item is longer than a look.
            return dict.fromkeys(self.keys)
        return mapping(found)

    def has(self, *names: str) -> bool:
        """Whether the first record has all of these fields."""
        return self.record.keys() >= set(names)

    def is_document_of(self, *names: str) -> bool:
        """Whether a JSON document has all of these keys in its beginning."""
        return self.keys >= set(names)


def stem(path: Path) -> Path:
    """The name of a file without the ending of its compression."""
    return path.with_suffix("") if path.suffix.lower() in COMPRESSED else path


def log_lines(path: Path, notes: list[str]) -> Iterator[tuple[int, Any]]:
    """The values of the lines of a log; a last line that was cut is left out, and noted."""
    check_regular(path)
    done = 0
    try:
        # Tools write every key once, and looking takes as long as reading.
        for done, value in lines_of(path, once=False):
            yield done, value
    except InputError:
        if not done or not _is_cut(path, done):
            raise
        notes.append(
            f"The last line is incomplete: the run goes on, or the file was cut. Lines read: {done:,}."
        )


def _is_cut(path: Path, done: int) -> bool:
    """Whether the line after these is the last and has no end."""
    with decompressed(path) as stream:
        last, number = b"", 0
        while block := stream.read(2**20):
            number += block.count(b"\n")
            last = block
    return number == done and not last.endswith(b"\n")


def rows_in(path: Path, notes: list[str], within: str = "") -> tuple[str, Iterator[tuple[int, Any]]]:
    """What the records of a file are called, and those of its lines, its table, or its array.

    The array may lie `within` a field of the document.
    """
    if ending(path) in _LINES:
        return "line", log_lines(path, notes)
    if within and ending(path) == ".json":
        document = json_document(path)
        return "item", iter(enumerate(sequence(mapping(document).get(within, document))))
    stream = open_stream(path)
    return stream.word, iter(stream)


def beside(path: Path | None) -> Mapping[Any, Any]:
    """A document beside a log, which may be absent or unreadable."""
    try:
        return mapping(json_document(path)) if path is not None and path.is_file() else {}
    except InputError:
        return {}


def no_log(path: Path, found: str, *remedies: Remedy) -> InputError:
    """The error about a file that is named like a log and is none."""
    return InputError(
        "The file must be an evaluation log",
        argument="path",
        kind="file",
        found=found,
        source=str(path),
        remedies=remedies,
    )
