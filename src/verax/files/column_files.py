"""Files of named columns: CSV, JSON Lines, Parquet and Arrow."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import replace

import pyarrow as pa

from verax.errors import InputError, passing
from verax.files import arrow, column_roles
from verax.files.arrow import ValueOrigin
from verax.files.column_reader import ColumnReader, plain_numbers
from verax.files.formats.tables import TEXTS, SourceTable
from verax.files.labels import INTEGER, TEXT, Target, find_labels
from verax.files.predictions import Predictions, Roles
from verax.files.rater_columns import by_class
from verax.files.source import Source
from verax.inputs.reading import Reading
from verax.inputs.reading_checks import PROBABILITIES

_NUMBERS = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)


class ColumnFile(Source):
    """A file of columns, or other columns that Arrow can read.

    Attributes
    ----------
    reader : ColumnReader
        Makes predictions of its batches.
    """

    def __init__(self, table: SourceTable, request: Reading) -> None:
        self.path: str = table.name
        self._request = request
        self._table = table
        self.n_rows: int | None = self._table.n_rows
        self.n_bytes: int = self._table.n_bytes
        kinds = self._table.kinds
        if request.raters:
            columns = column_roles.asked_columns(request.raters, list(kinds), "raters", self.path)
            request = self._request = replace(request, raters=columns)
        # A number for each class names none.
        labelled = not request.late and not (request.raters and request.raters_are != "labels")
        self._target = (
            self._look_at_all(column_roles.find_target(list(kinds), request, self.path))
            if labelled
            else Target("", INTEGER)
        )
        look = column_roles.ColumnFacts(kinds, self._table.numbers, self._table.lists, self._target.seen)
        self.roles: Roles = column_roles.find_roles(look, request, where=self.path)
        self._lists = kinds[self.roles.probs[0]] == column_roles.LIST and not request.sets
        thresholds = request.outputs != PROBABILITIES
        n_columns = None if self._lists else len(self.roles.probs) + thresholds
        if thresholds:
            # Columns are thresholds, so they do not name the classes: numbers are positions.
            self.roles = replace(self.roles, names=None, outputs=request.outputs)
            if n_columns is not None and request.names is None and self._target.kind == INTEGER:
                request = replace(request, classes=tuple(range(n_columns)))
        if request.sets and n_columns == 1:
            n_columns = self._number_of_classes()
        if not labelled and n_columns != 1 and (self.roles.names or request.names):
            # Outcomes are called like the classes.
            self._target = Target("", TEXT)
        self._labels = find_labels(self._target, self.roles.names, n_columns, request, self.path)
        self.classes: tuple[Hashable, ...] | None = self._labels.classes
        if self._labels.columns is not None:
            probs = tuple(self.roles.probs[i] for i in self._labels.columns)
            self.roles = replace(self.roles, probs=probs, names=None)
        self.roles = replace(self.roles, outcomes_are=self._labels.outcomes_are, renamed=self._labels.renamed)
        self.width: int = self._length_of_lists() if self._lists else max(2, n_columns or 0)
        if self.roles.counted:
            names = self.roles.renamed or None
            columns = by_class(self.roles.raters, self.classes, names, self.width, self.path)
            self.roles = replace(self.roles, raters=columns, target=columns[0])
        self.reader: ColumnReader = ColumnReader(
            self.path,
            request,
            self.roles,
            self._table.schema,
            self._table.format in TEXTS,
            self._target,
            self._labels,
            self._lists,
            n_columns == 1,
            self.width,
        )
        self._table.as_numbers(self.reader.numbers)

    def _look_at_all(self, name: str) -> Target:
        """What the target holds; of several raters, what those hold who gave labels in the first rows."""
        heads = {rater: self._table.head(rater) for rater in self._request.raters}
        given = [rater for rater, head in heads.items() if head.null_count < len(head)]
        looked = [self._look(rater) for rater in given] or [self._look(name)]
        seen = dict.fromkeys(text for target in looked for text in target.seen)
        first = next((target for target in looked if target.kind == TEXT), looked[0])
        return replace(first, name=name, seen=tuple(seen))

    def _look(self, name: str) -> Target:
        """What the target holds, from its type and its first rows."""
        kind = self._table.schema.field(name).type
        if pa.types.is_dictionary(kind) and not arrow.is_text(kind):
            kind = kind.value_type
        boolean = bool(pa.types.is_boolean(kind))
        if boolean or any(fits(kind) for fits in _NUMBERS):
            return Target(name, INTEGER, boolean=boolean)
        place = self._place(name, "target")
        if not arrow.is_text(kind):
            raise place.refusal("must hold classes, as names or whole numbers", f"its type is {kind}")
        head = self._table.head(name)
        if head.null_count == len(head):
            arrow.refuse_missing(head, place)
        if pa.types.is_dictionary(kind):
            seen = [str(v) for v in head.chunk(0).dictionary.to_pylist() if v is not None]
            return Target(name, TEXT, tuple(seen), bool(kind.ordered))
        seen = [str(v) for v in arrow.distinct(head) if v is not None]
        if self._table.format in TEXTS:
            return Target.of_cells(name, plain_numbers(seen, self._request.decimal))
        return Target(name, TEXT, tuple(seen))

    def _number_of_classes(self) -> int:
        """How many classes there are where one column names those of each set, which may lack some."""
        number = self._request.n_classes
        number = number if self._request.names is None else len(self._request.names)
        if number is not None:
            return number
        raise InputError(
            "must be given with a column of sets, which may lack some classes",
            argument="classes",
            kind="missing",
            source=self.path,
            remedies=[
                passing("(their names in order, or their number where sets hold positions)", classes=...)
            ],
        )

    def _length_of_lists(self) -> int:
        """How many numbers the first list has."""
        place = self._place(self.roles.probs[0], "probs")
        first = self._table.head(place.column, 1)
        arrow.refuse_missing(first, place)
        width = len(first[0]) + (self._request.outputs != PROBABILITIES)
        if self.classes is not None and width != len(self.classes):
            raise place.refusal(
                f"must hold lists of {len(self.classes)} numbers, one per class",
                f"holds {width}",
                at=0,
                value=width,
                kind="length",
                remedies=[passing("that names all of them", classes=...)],
            )
        if width < 2:
            raise place.refusal(
                "must hold lists of two numbers or more", f"holds {width}", at=0, value=width, kind="length"
            )
        return width

    def _place(self, column: str, argument: str, start: int = 0) -> ValueOrigin:
        decimal = self._request.decimal if self._table.format in TEXTS else "."
        return ValueOrigin(self.path, column, argument, start, decimal=decimal)

    def _batches(self, rows: int, coded: bool) -> Iterator[Predictions]:
        for start, batches in self._table.runs(self.roles.columns, rows):
            yield self.reader.predictions(batches, start, coded)
