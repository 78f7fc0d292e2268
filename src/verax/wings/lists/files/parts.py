"""Lists read part by part: what is found out once, from the first records, and then holds for all."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from verax.common.ids import id_of
from verax.errors import InputError, Remedy
from verax.files.formats.records import RecordStream
from verax.files.listfile import ListFile
from verax.files.predictions import together
from verax.files.reference_answers import ReferenceAnswers
from verax.inputs.lists.outcomes import alike, from_positions, names_at_positions
from verax.inputs.lists.toplists import TopLists
from verax.inputs.lists.vocabulary import ClassVocabulary
from verax.inputs.reading import Reading, named_columns
from verax.inputs.records.classifiers import ARRAYS, NAMES, PROBABILITIES
from verax.inputs.records.record import Shape
from verax.inputs.skipping import Skipped
from verax.wings.lists.files.reading import KnownSource, RecordReader
from verax.wings.lists.files.recognising import ALL_SHAPES
from verax.wings.lists.files.words import taken


@dataclass(frozen=True)
class ListParts:
    """How records become lists, here or on another machine: it holds no records.

    Attributes
    ----------
    source, word : str
        What the records are called in messages, and what one of them is: "line", "row", "item".
    shape : str
        The name of their shape.
    settings : Reading
        What the caller said, and what the source itself says.
    outcome : str or None
        The field of outcomes; None where they stand elsewhere, or the shape has its own.
    positions : bool
        Outcomes are the positions of named classes.
    gold : ReferenceAnswers or None
        Outcomes that stand in another file.
    """

    source: str
    word: str
    shape: str
    settings: Reading
    outcome: str | None
    positions: bool
    gold: ReferenceAnswers | None = None

    @classmethod
    def of(cls, stream: RecordStream, shape: Shape, settings: Reading) -> ListParts:
        """Find out what is needed from the first records."""
        if settings.names is None and settings.n_classes is None:
            raise InputError(
                "must be stated for a file of lists, unless every list names every class",
                argument="classes",
                kind="missing",
                source=stream.source,
                remedies=[Remedy("Give their number, or the names of all.")],
            )
        if settings.samples == "repeats":
            raise InputError(
                "cannot be 'repeats' for files that are read in parts",
                argument="samples",
                source=stream.source,
                remedies=[Remedy("Read one file at a time, or pool the samples.")],
            )
        reader = RecordReader(stream, shape, settings)
        parts = cls(stream.source, stream.word, shape.name, settings, reader.outcome, False, reader.gold)
        return replace(parts, positions=parts._has_positions(reader.check_first()))

    def _has_positions(self, known: list[Hashable]) -> bool:
        """Whether the first outcomes are positions of named classes."""
        names, shape = self.settings.names, ALL_SHAPES[self.shape]
        if names is None or shape.positions:
            return False
        return bool(known) and from_positions(known, ClassVocabulary(names, complete=True))[0]

    def read(self, records: Iterable[tuple[int, Any]], start: int, source: str | None = None) -> ListFile:
        """The lists of some records with their numbers; `start` records come before them."""
        stream = RecordStream(self.source if source is None else source, self.word, records)
        known = KnownSource(start, self.outcome, self.positions, self.gold)
        return RecordReader(stream, ALL_SHAPES[self.shape], self.settings, known).read()

    @property
    def taken(self) -> tuple[str, ...]:
        """How each part was read, one line each."""
        names = ClassVocabulary(self.settings.names or (), complete=True) if self.positions else None
        lines = taken(ALL_SHAPES[self.shape], self.settings, self.outcome, self.gold, names)
        columns = self.settings.columns
        return (f"{lines[0]} in {' and '.join(columns)}", *lines[1:]) if columns else lines

    @property
    def n_classes(self) -> int:
        """The number of classes."""
        names = self.settings.names
        return self.settings.n_classes or len(names or ())


def lists_of_columns(reader: ListParts, table: Any, start: int) -> ListFile | None:
    """The lists of all rows; None where their records must be looked at one by one.

    That is where a value is missing or invalid, where entries are changed, or where columns are of other
    types.
    """
    settings = reader.settings
    plain = not settings.normalize and settings.merge_variants is None
    if reader.shape != ARRAYS.name or not plain or reader.outcome not in table.column_names:
        return None
    columns = settings.columns or _by_name(table.column_names)
    if len(columns) != 2 or (columns[1] not in _PLAIN_NUMBERS and not settings.columns):
        return None
    try:
        return _Columns(reader, table, start).read(*columns)
    except (_UnusualError, InputError):
        return None


# Names of columns that hold probabilities, not their logarithms.
_PLAIN_NUMBERS = frozenset(PROBABILITIES)


class _UnusualError(Exception):
    """A column is not as simple as most are."""


def _by_name(names: list[str]) -> tuple[str, ...]:
    """The columns of classes and of probabilities, as records have them."""
    columns = (next((name for name in known if name in names), None) for known in (NAMES, PROBABILITIES))
    return tuple(name for name in columns if name is not None)


class _Columns:
    """The columns of one table."""

    def __init__(self, reader: ListParts, table: Any, start: int) -> None:
        self._reader, self._table, self._start = reader, table, start
        self._settings = reader.settings

    def read(self, classes: str, probabilities: str) -> ListFile:
        """All lists, or an error where some are unusual."""
        reader, settings, n = self._reader, self._settings, self._table.num_rows
        if probabilities.lower() not in _PLAIN_NUMBERS and "log" in probabilities.lower():
            raise _UnusualError
        codes, starts, names = self._labels(classes)
        values, other = self._flat(probabilities)
        if not pa.types.is_floating(values.type) or not np.array_equal(starts, other):
            raise _UnusualError
        numbers = values.to_numpy(zero_copy_only=False).astype(np.float64)
        complete = settings.names is not None
        vocabulary = ClassVocabulary(settings.names if complete else names, complete=complete)  # type: ignore[arg-type]
        shape = ALL_SHAPES[reader.shape]
        lists = TopLists(
            codes, numbers, starts, reader.n_classes, vocabulary=vocabulary, tolerance=shape.tolerance
        )
        places = np.arange(self._start, self._start + n)
        return ListFile(
            reader.source,
            reader.shape,
            lists,
            self._outcomes(vocabulary),
            None if settings.id is None else self._ids(named_columns(settings.id)),
            None if settings.weights is None else self._weights(settings.weights),
            together([np.array(self._plain(name)) for name in named_columns(settings.groups)]),
            places,
            places,
            skipped=Skipped(n) if settings.invalid == "skip" else None,
            outcome=reader.outcome or "",
            id_field=settings.id,
            by={name: np.array(self._plain(name)) for name in settings.by},
        )

    def _column(self, name: str) -> Any:
        if name not in self._table.column_names:
            raise _UnusualError
        column = self._table.column(name).combine_chunks()
        # Tables without rows have no chunk.
        column = column.chunk(0) if isinstance(column, pa.ChunkedArray) and column.num_chunks else column
        if column.null_count or isinstance(column, pa.ChunkedArray):
            raise _UnusualError
        return column

    def _plain(self, name: str) -> list[Any]:
        return list(self._column(name).to_pylist())

    def _ids(self, names: tuple[str, ...]) -> list[str]:
        return [id_of(values) for values in zip(*map(self._plain, names), strict=True)]

    def _weights(self, name: str) -> Any:
        column = self._column(name)
        if not (pa.types.is_floating(column.type) or pa.types.is_integer(column.type)):
            raise _UnusualError
        weights = column.to_numpy(zero_copy_only=False).astype(np.float64)
        if not ((weights >= 0) & (weights < np.inf)).all():
            raise _UnusualError
        return weights

    def _flat(self, name: str) -> tuple[Any, Any]:
        """All entries of a column of lists, and where each list begins."""
        column = self._column(name)
        if not (pa.types.is_list(column.type) or pa.types.is_large_list(column.type)):
            raise _UnusualError
        flat = column.flatten()
        if flat.null_count:
            raise _UnusualError
        offsets = column.offsets.to_numpy().astype(np.int64)
        return flat, offsets - offsets[0]

    def _labels(self, name: str) -> tuple[Any, Any, tuple[Hashable, ...]]:
        """The codes of listed classes, where lists begin, and what the codes stand for."""
        flat, starts = self._flat(name)
        kind = flat.type.value_type if pa.types.is_dictionary(flat.type) else flat.type
        texts = pa.types.is_string(kind) or pa.types.is_large_string(kind)
        if not texts and not pa.types.is_integer(kind):
            raise _UnusualError
        coded = flat if pa.types.is_dictionary(flat.type) else flat.dictionary_encode()
        names: tuple[Any, ...] = tuple(coded.dictionary.to_pylist())
        codes = coded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        known = self._settings.names
        if known is None:
            return codes, starts, names
        place = {label: i for i, label in enumerate(known)}
        if not all(label in place for label in names):
            raise _UnusualError
        return np.array([place[label] for label in names], np.int64)[codes], starts, names

    def _outcomes(self, vocabulary: ClassVocabulary) -> list[Hashable]:
        outcome = self._reader.outcome
        assert outcome is not None
        given = self._plain(outcome)
        if not all(type(value) in (str, int) for value in given):
            raise _UnusualError
        y = alike(given, vocabulary)
        y = names_at_positions(y, vocabulary) if self._reader.positions else y
        if vocabulary.complete and not set(y) <= set(vocabulary.names):
            raise _UnusualError
        return y
