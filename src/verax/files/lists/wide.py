"""Tables with a column per class, in which a blank cell is a class that is not listed."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from verax.errors import InputError, passing, show
from verax.files.lists.paired_columns import exponential, is_blank
from verax.files.lists.streams import RecordStream, open_stream
from verax.files.source import Source
from verax.inputs.reading import Reading, each_name
from verax.inputs.records.classifiers import MAPPED, of_numbers
from verax.inputs.records.record import FEW_DIGITS, Choices, Listed, mapping, not_understood
from verax.inputs.records.stated import number_of

# What holds the cells of a row in the records that `wide_table` makes.
_CELLS = "probabilities"


def _read(record: Any, _: Choices) -> Listed:
    cells = mapping(record).get(_CELLS)
    if not isinstance(cells, Mapping):
        raise not_understood(record, "a column per class")
    filled = [(name, value) for name, value in cells.items() if not is_blank(value)]
    listed = of_numbers(filled)
    listed.blank = len(cells) - len(filled)
    return listed


WIDE = replace(
    MAPPED,
    name="wide",
    what="a column per class, where blank cells are classes that are not listed",
    needs="a column of outcomes, and one of probabilities or log-probabilities per class",
    fits=lambda _: False,
    read=_read,
    tolerance=FEW_DIGITS,
)


def wide_table(path: Path, settings: Reading) -> tuple[RecordStream, Reading]:
    """A record per row, and the settings that read them; the columns are found as for full distributions."""
    source = _source(path, settings)
    roles = source.roles
    classes = source.classes if source.classes is not None else roles.probs
    if len(classes) != len(roles.probs):
        raise InputError(
            "must have a column per class",
            argument="path",
            kind="missing",
            found=f"{', '.join(map(show, roles.probs))} holds those of all {len(classes)} classes",
            source=str(path),
        )
    beside = [*each_name(roles.target or None), *settings.beside]
    stream = open_stream(path, settings)
    columns = dict(zip(roles.probs, classes, strict=True))
    logarithms = _are_logarithms(stream, columns)
    if settings.names is None:
        _refuse_others(stream, {*columns, *beside}, logarithms)
    found = replace(settings, target=roles.target)
    if settings.n_classes is None:
        # Rows to be normalized also hold other tokens, whose probability is not that of a blank cell.
        others = "omit" if settings.normalize else settings.others
        found = replace(found, classes=tuple(classes), others=others)
    return RecordStream(stream.source, stream.word, _records(stream, columns, beside, logarithms)), found


def _source(path: Path, settings: Reading) -> Source:
    """The table as if it had full distributions; names of classes settle doubt about its columns."""
    from verax import files

    try:
        return files.open(
            path,
            target=settings.target,
            classes=settings.names,
            weights=settings.weights,
            groups=settings.groups,
            by=settings.by,
            id=settings.id,
            delimiter=settings.delimiter,
        )
    except InputError as error:
        if error.argument != "probs":
            raise
        raise error.replace(remedies=[passing("to choose the columns", classes=...)]) from None


def _are_logarithms(stream: RecordStream, columns: Mapping[str, Hashable]) -> bool:
    """Whether the first rows hold log-probabilities: some number is below zero, and none above."""
    cells = (mapping(record).get(name) for _, record in stream.head() for name in columns)
    numbers = [number for cell in cells if (number := number_of(cell)) is not None]
    return bool(numbers) and max(numbers) <= 0 and min(numbers) < 0


def _refuse_others(stream: RecordStream, used: set[str], logarithms: bool) -> None:
    """Refuse further columns that may be classes, which sums do not tell where cells are blank."""
    head = [mapping(record) for _, record in stream.head()]
    for name in head[0] if head else ():
        cells = [record.get(name) for record in head if not is_blank(record.get(name))]
        numbers = [number for cell in cells if (number := number_of(cell)) is not None]
        if (
            name in used
            or not numbers
            or len(numbers) < len(cells)
            or all(float(n).is_integer() for n in numbers)
        ):
            continue
        low, high = (-math.inf, 0) if logarithms else (0, 1)
        if low <= min(numbers) and max(numbers) <= high:
            raise InputError(
                "must be named where another column may be one of them",
                argument="classes",
                kind="missing",
                found=f"{show(name)} holds numbers from {low} to {high}, and no outcome is called by it",
                values=[name],
                source=stream.source,
                remedies=[passing("to choose the columns", classes=...)],
            )


def _records(
    stream: RecordStream, columns: Mapping[str, Hashable], beside: list[str], logarithms: bool
) -> Iterator[tuple[int, Any]]:
    for number, record in stream:
        fields = mapping(record)
        cells = {label: fields.get(name) for name, label in columns.items()}
        if logarithms:
            cells = {label: exponential(cell) for label, cell in cells.items()}
        yield number, {**{name: fields.get(name) for name in beside}, _CELLS: cells}
