"""Several files of lists, read one after the other as one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from verax.errors import InputError
from verax.files.formats.several import Places
from verax.files.lists.listfile import ListFile
from verax.files.lists.reading import RecordReader
from verax.files.lists.recognising import open_shaped
from verax.files.lists.streams import RecordStream
from verax.inputs.reading import Reading


def records_of_piece(
    path: Path, paths: Sequence[Path], settings: Reading, shape: str
) -> Iterator[tuple[int, Any]]:
    """The records of one of several files, with their numbers in it; an empty file has none.

    Files whose records have another shape than the first file are refused.
    """
    try:
        stream, own, _ = open_shaped(path, settings)
    except InputError as error:
        # Files may be empty where others are not.
        if error.kind == "file" and len(paths) > 1 and path.stat().st_size == 0:
            return
        raise
    if own.name != shape:
        raise InputError(
            "All files must have records of one shape",
            argument="source",
            kind="file",
            found=f"{paths[0]} has {shape}, {path} has {own.name}",
        )
    yield from stream


def read_several(paths: Sequence[Path], name: str, settings: Reading) -> ListFile:
    """The lists of all files as those of one, which is called `name`; errors name the file of their row."""
    first, shape, known = open_shaped(paths[0], settings)
    places = Places()

    def records() -> Iterator[tuple[int, Any]]:
        n = 0
        for path in paths:
            places.note(n, str(path))
            piece = first if path is paths[0] else records_of_piece(path, paths, settings, shape.name)
            for record in piece:
                yield record
                n += 1

    try:
        return RecordReader(RecordStream(name, first.word, records()), shape, known).read()
    except InputError as error:
        if not error.rows or error.source != name:
            raise
        raise error.replace(source=places.name_of(error.rows[0])) from None
