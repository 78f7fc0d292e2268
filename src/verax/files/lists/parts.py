"""Lists read part by part: what is found out once, from the first records, and then holds for all."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from verax.errors import InputError, Remedy
from verax.files.lists.listfile import ListFile
from verax.files.lists.reading import KnownSource, RecordReader
from verax.files.lists.recognising import ALL_SHAPES
from verax.files.lists.reference_answers import ReferenceAnswers
from verax.files.lists.spelling import from_positions
from verax.files.lists.streams import RecordStream
from verax.files.lists.words import taken
from verax.inputs.lists.vocabulary import ClassVocabulary
from verax.inputs.reading import Reading
from verax.inputs.records.record import Shape


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
        found = cls(stream.source, stream.word, shape.name, settings, reader.outcome, False, reader.gold)
        return replace(found, positions=found._has_positions(reader.check_first()))

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
