"""Tables with a list per row in pairs of columns: t1, t1_prob, t2, t2_prob, and so on."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from verax.errors import InputError, show
from verax.files.formats.tables import SourceTable
from verax.files.lists.streams import RecordStream, open_stream
from verax.files.naming import PROBS, spoken
from verax.inputs.reading import Reading
from verax.inputs.records.classifiers import ARRAYS, LOGARITHMS, PROBABILITIES, of_numbers
from verax.inputs.records.record import FEW_DIGITS, Choices, Listed, mapping, not_understood, sequence
from verax.inputs.records.stated import number_of

_WORDS = frozenset((*PROBS, *PROBABILITIES, *LOGARITHMS, "score", "conf", "lp"))
_NUMBERED = re.compile(r"(\D*)(\d+)(\D*)")
# Rows that tell what columns hold.
_HEAD = 20


def _read(record: Any, _: Choices) -> Listed:
    classes, values = (sequence(mapping(record).get(name)) for name in ("classes", "probabilities"))
    if not isinstance(record, Mapping) or len(classes) != len(values):
        raise not_understood(record, "pairs of columns with a class and its probability")
    pairs = zip(classes, values, strict=True)
    filled = [(label, value) for label, value in pairs if not is_blank(label) and not is_blank(value)]
    listed = of_numbers(filled)
    listed.blank = len(classes) - len(filled)
    return listed


PAIRS = replace(
    ARRAYS,
    name="pairs",
    what="pairs of columns with a class and its probability, where blank cells are not listed",
    needs="columns such as t1, t1_prob, t2, t2_prob, and one of outcomes",
    fits=lambda _: False,
    read=_read,
    tolerance=FEW_DIGITS,
)


@dataclass(frozen=True)
class ColumnPairs:
    """The columns of classes, and those of their probabilities, in order."""

    classes: tuple[str, ...]
    values: tuple[str, ...]


def find_pairs(names: Sequence[str]) -> list[ColumnPairs]:
    """Every way in which columns with the same numbers may be pairs.

    >>> find_pairs(["id", "t1", "t1_prob", "t2", "t2_prob"])
    [ColumnPairs(classes=('t1', 't2'), values=('t1_prob', 't2_prob'))]
    """
    stems: dict[tuple[str, str], dict[int, str]] = {}
    for name in names:
        found = _NUMBERED.fullmatch(spoken(name))
        if found is not None and len(found[2]) < 5:
            stems.setdefault((found[1], found[3]), {})[int(found[2])] = name
    several = {stem: columns for stem, columns in stems.items() if len(columns) > 1}
    values = [stem for stem in several if _WORDS & set("_".join(stem).split("_"))]
    classes = [stem for stem in several if stem not in values]
    return [
        ColumnPairs(tuple(several[own][i] for i in order), tuple(several[other][i] for i in order))
        for own, other in product(classes, values)
        if several[own].keys() == several[other].keys() and (order := sorted(several[own]))
    ]


def is_paired(path: Path, settings: Reading) -> bool:
    """Whether a table has one set of such pairs, with texts for classes and probabilities beside them."""
    try:
        # Names are read at once, and rows of most tables need not be.
        found = find_pairs(SourceTable.of_file(path, settings).schema.names)
        if len(found) != 1:
            return False
        records = [mapping(record) for _, record in open_stream(path, settings).head(_HEAD)]
    except InputError:
        return False
    labels, cells = (
        [record.get(name) for record in records for name in names if not is_blank(record.get(name))]
        for names in (found[0].classes, found[0].values)
    )
    texts = bool(labels) and any(isinstance(label, str) and number_of(label) is None for label in labels)
    return texts and bool(cells) and all(number_of(cell) is not None for cell in cells)


def paired_table(path: Path, settings: Reading) -> tuple[RecordStream, Reading]:
    """A record per row, and the settings that read them."""
    stream = open_stream(path, settings)
    head = [mapping(record) for _, record in stream.head(_HEAD)]
    found = find_pairs([str(name) for name in head[0]]) if head else []
    if len(found) != 1:
        columns = ", ".join(show(str(name)) for name in (head[0] if head else ()))
        raise InputError(
            "must have one set of columns such as t1, t1_prob, t2, t2_prob",
            argument="path",
            kind="missing",
            found=f"the columns are {columns}",
            source=stream.source,
        )
    numbers = [number_of(record.get(name)) for record in head for name in found[0].values]
    known = [number for number in numbers if number is not None]
    logarithms = bool(known) and max(known) <= 0 and min(known) < 0
    return RecordStream(stream.source, stream.word, _records(stream, found[0], logarithms)), settings


def _records(stream: RecordStream, pairs: ColumnPairs, logarithms: bool) -> Iterator[tuple[int, Any]]:
    used = {*pairs.classes, *pairs.values}
    for number, record in stream:
        fields = mapping(record)
        values = [fields.get(name) for name in pairs.values]
        if logarithms:
            values = [exponential(cell) for cell in values]
        rest = {name: value for name, value in fields.items() if name not in used}
        yield (
            number,
            {**rest, "classes": [fields.get(name) for name in pairs.classes], "probabilities": values},
        )


def exponential(cell: Any) -> Any:
    """The probability of a log-probability; a cell without a number stays as it is."""
    number = number_of(cell)
    return cell if number is None else math.exp(min(number, 700.0))


def is_blank(cell: Any) -> bool:
    """Whether a cell of a table has no value."""
    return cell is None or cell == "" or cell != cell
