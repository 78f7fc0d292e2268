"""`open_lists`: any file of lists, by its content."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Unpack

from verax.common.paths import files_named
from verax.errors import InputError, show
from verax.files.formats.records import RecordStream
from verax.files.formats.several import Places
from verax.files.listfile import ListFile
from verax.inputs.reading import Keywords, Reading, takes_reading
from verax.wings.lists.files.reading import RecordReader
from verax.wings.lists.files.recognising import has_lists, open_shaped


def records_of_piece(
    path: Path, paths: Sequence[Path], settings: Reading, shape: str
) -> Iterator[tuple[int, Any]]:
    """The records of one of several files, with their numbers in it; an empty file has none.

    Files whose records have another shape than the first file are refused.
    """
    try:
        stream, found_shape, _ = open_shaped(path, settings)
    except InputError as error:
        # Files may be empty where others are not.
        if error.kind == "file" and len(paths) > 1 and path.stat().st_size == 0:
            return
        raise
    if found_shape.name != shape:
        raise InputError(
            "All files must have records of one shape",
            argument="source",
            kind="file",
            found=f"{paths[0]} has {shape}, {path} has {found_shape.name}",
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


# The options of reading that files of lists have, beside the field of outcomes.
_OPTIONS = (
    *("outcomes", "id", "classes", "weights", "groups", "by", "shape", "position", "after", "last_match"),
    *("samples", "per_length", "normalize", "invalid", "missing", "others", "merge_variants", "delimiter"),
)


@partial(takes_reading, names=_OPTIONS)
def open_lists(
    path: str | Path | Sequence[str | Path], *, outcome: str | None = None, **keywords: Unpack[Keywords]
) -> ListFile:
    r"""Read a file with a list per record; its shape is recognised by its content.

    Parameters
    ----------
    path : str, Path or sequence
        JSON Lines (also .gz, .bz2, .zst), a JSON document, Parquet or Arrow with columns of lists, CSV with a
        line per row and class, a run in TREC's format, predictions of fastText. Or a pattern such as
        `"answers/*.jsonl"` that several files fit, or a list of files.
    outcome : str, optional
        The field that holds what happened, in the records or in the file `outcomes`; dots lead into nested
        fields. By default the only one with a usual name (outcome, target, label, answer, ...).
    **keywords

    Examples
    --------
    >>> import json, pathlib, tempfile
    >>> from verax.files.lists import open_lists
    >>> path = pathlib.Path(tempfile.mkdtemp(), "answers.jsonl")
    >>> top = [{"token": " yes", "logprob": -0.1}, {"token": "Yes", "logprob": -3}]
    >>> record = {"outcome": "yes", "choices": [{"logprobs": {"content": [{"top_logprobs": top}]}}]}
    >>> _ = path.write_text(json.dumps(record))
    >>> read = open_lists(path, classes=128256, merge_variants="case")
    >>> [{token: round(p, 4) for token, p in row.items()} for row in read.lists], read.y
    ([{'yes': 0.9546}], ['yes'])
    """
    return read_lists(*_named(path), replace(Reading.of(None, keywords), lists=True, target=outcome))


def open_forecasts(path: str | Path, reading: Reading) -> ListFile:
    """Read lists whose outcomes come later; `y` is empty."""
    return read_lists(*_named(path), replace(reading, target="", outcomes=None))


def read_lists(paths: Sequence[Path], name: str, settings: Reading) -> ListFile:
    """The lists of all files, which are called `name` together; of no file, those of standard input."""
    if len(paths) > 1:
        return read_several(paths, name, settings)
    return RecordReader(*open_shaped(paths[0], settings)).read()


def _named(path: object) -> tuple[list[Path], str]:
    named = files_named(path)
    if named is None:
        raise InputError("must be the name of a file", argument="path", kind="type", found=show(path))
    return named


def holds_lists(
    path: str | Path | Sequence[str | Path], reading: Reading | None = None, **keywords: Unpack[Keywords]
) -> bool:
    """Whether a file, or the first of several, holds a list per record, by a look at its content.

    The keywords are the fields of `Reading`. Flat log-probabilities may be logits, if these are asked for.
    """
    return has_lists(_named(path)[0][0], Reading.of(reading, keywords))
