"""Files of named columns: CSV, JSON Lines, Parquet and Arrow."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from verax.common.ids import id_of
from verax.errors import InputError, passing
from verax.files import arrow, column_roles
from verax.files.arrow import ValueOrigin, both_classes, by_class_from, is_probability, shares
from verax.files.followed import impossible, refuse_impossible
from verax.files.formats.tables import TEXTS, SourceTable
from verax.files.labels import INTEGER, TEXT, ClassLabels, Target, find_labels
from verax.files.predictions import Array, Predictions, Roles, together, together_ids
from verax.files.rater_tables import by_class
from verax.files.set_columns import SetColumns
from verax.files.source import Source
from verax.inputs.arrays import Bools, Ints
from verax.inputs.groups import Groups
from verax.inputs.outcomes import UNKNOWN
from verax.inputs.reading import Reading, named_columns
from verax.inputs.reading_checks import PROBABILITIES
from verax.inputs.shares import ABSENT
from verax.inputs.skipping import REASONS, InvalidRows


@dataclass(frozen=True)
class ColumnReader:
    """What is known of columns once their roles are found; it holds no rows and can be sent elsewhere.

    Attributes
    ----------
    path : str
        What errors call the source.
    schema : pyarrow.Schema
        The columns as they were when their roles were found.
    texts : bool
        All columns are texts, as in CSV files.
    target : Target
        What the outcomes are.
    labels : ClassLabels
        How outcomes are found among the classes.
    lists : bool
        The probabilities are in one column of lists.
    single : bool
        There is one column, the probability of the second of two classes.
    width : int
        How many probabilities a row has.
    """

    path: str
    request: Reading
    roles: Roles
    schema: Any
    texts: bool
    target: Target
    labels: ClassLabels
    lists: bool
    single: bool
    width: int

    @property
    def _given(self) -> int:
        """How many numbers a list holds: one for each class, or for each threshold between two."""
        return self.width - (self.request.outputs != PROBABILITIES)

    @property
    def numbers(self) -> set[str]:
        """The columns that must hold numbers."""
        given = {
            *(() if self.request.sets else self.roles.probs),
            *named_columns(self.roles.weights),
            *named_columns(self.roles.time),
        }
        return given | {*self.roles.raters} if self.roles.counted else given - {self.roles.target}

    def predictions(self, batches: list[Any], start: int, coded: bool) -> Predictions:
        """The rows of some record batches of one schema; the first of them has the number `start`."""
        table = pa.Table.from_batches(batches)
        if self.request.invalid == "skip":
            survey = self._unusable(table)
            kept = survey.kept
            batch = self._of_table(table.take(kept), start, coded)
            gone = self._ids_of(table.take(np.flatnonzero(survey.bad)))
            return replace(batch, rows=start + kept, skipped=survey.skipped(start), ids_left_out=gone)
        return self._of_table(table, start, coded)

    def _ids_of(self, table: Any) -> tuple[str, ...]:
        """The ids of some rows, without missing ones."""
        names = named_columns(self.roles.id)
        if not names or not table.num_rows:
            return ()
        gone = np.any([arrow.missing(table[name]) for name in names], axis=0)
        table = table.take(np.flatnonzero(~gone))
        columns = [arrow.labels(table[name], self._place(name, "id")) for name in names]
        return tuple(map(id_of, zip(*columns, strict=True)))

    def _unusable(self, table: Any) -> InvalidRows:
        """The rows that cannot be read: a value is missing, or is not a number, list or class."""
        survey, roles = InvalidRows(table.num_rows), self.roles
        for argument, names in (
            ("groups", named_columns(roles.groups)),
            ("by", roles.by),
            ("id", named_columns(roles.id)),
        ):
            for name in names:
                survey.add(arrow.missing(table[name]), REASONS[argument, "missing"])
        if roles.weights is not None:
            weights = arrow.unusable(table[roles.weights], self._place(roles.weights, "weights"))
            survey.add(weights, REASONS["weights", "sign"])
        if roles.time is not None:
            survey.add(self._untimed(table[roles.time]), REASONS["time", "sign"])
        if self.request.sets:
            columns, place = [table[name] for name in roles.probs], self._place(roles.probs[0], "sets")
            survey.add(self._sets.unusable(columns, place), REASONS["sets", "label"])
        for name in () if self.request.sets else roles.probs:
            column, place = table[name], self._place(name, "probs")
            bad = arrow.unusable_lists(column, self._given) if self.lists else arrow.unusable(column, place)
            survey.add(bad, REASONS["p", "finite"])
            if self.single and not self.request.logits:
                usable = np.flatnonzero(~bad)
                p = shares(arrow.side_by_side([column.take(usable)], [place]), self.request)[:, 0]
                odd = ~is_probability(p)
                survey.add_numbers(usable[odd], p[odd])
        if roles.counted:
            for name in roles.raters:
                survey.add(arrow.unusable(table[name], self._place(name, "raters")), REASONS["y", "sign"])
        elif roles.raters:
            by_rater = [self._positions(table[name], name) for name in roles.raters]
            survey.add(np.all([y == ABSENT for y in by_rater], axis=0), REASONS["y", "missing"])
            survey.add(np.any([y == UNKNOWN for y in by_rater], axis=0), REASONS["y", "label"])
        elif roles.target:
            y = self._positions(table[roles.target], roles.target)
            survey.add(y == ABSENT, REASONS["y", "missing"])
            survey.add(y == UNKNOWN, REASONS["y", "label"])
        return survey

    def _positions(self, column: Any, name: str) -> Ints:
        """The class positions of outcomes; ABSENT where one is missing, UNKNOWN where it is not a class."""
        column = arrow.plain(column)
        absent = arrow.missing(column)
        there = np.flatnonzero(~absent)
        column, place = column.take(there), self._place(name, "target")
        if arrow.is_text(column.type):
            codes, texts = arrow.coded(column, place)
            y = self.labels.positions(codes, self._as_typed(texts))
        else:
            y = self.labels.positions_where_whole(arrow.view(column.cast(pa.float64(), safe=False)))
        positions = np.full(len(absent), ABSENT)
        positions[there] = np.where(y < 0, UNKNOWN, y)
        return positions

    def _as_typed(self, texts: list[str]) -> list[str]:
        """Outcomes of a CSV file with the decimal mark of Python, where they are numbers."""
        return (
            plain_numbers(texts, self.request.decimal)
            if self.target.cells and self.target.kind == INTEGER
            else texts
        )

    def _of_table(self, table: Any, start: int, coded: bool) -> Predictions:
        roles = self.roles

        def labels(argument: str, name: str | None) -> Array | None:
            if name is None:
                return None
            return arrow.labels(table[name], self._checked(table, name, argument, start))

        def groups(name: str) -> Groups:
            return arrow.groups(table[name], self._checked(table, name, "groups", start))

        kinds: list[Any] = [groups(n) if coded else labels("groups", n) for n in named_columns(roles.groups)]
        return Predictions(
            self.path,
            self._outcomes(table, start),
            self._probabilities(table, start),
            self.labels.classes,
            roles,
            self._numbers(table, roles.weights, "weights", start),
            together(kinds),
            {name: labels("by", name) for name in roles.by},  # type: ignore[misc]
            together_ids([labels("id", name) for name in named_columns(roles.id)]),
            times=self._times(table, start),
        )

    def _checked(self, table: Any, name: str, argument: str, start: int) -> ValueOrigin:
        """The place of labels, which must be texts everywhere or numbers everywhere."""
        place = self._place(name, argument, start)
        first, here = self.schema.field(name).type, table.schema.field(name).type
        if first != here and arrow.is_text(first) != arrow.is_text(here):
            raise place.refusal("must hold values of one type", f"holds {here} after {first}", at=0)
        return place

    def _numbers(self, table: Any, name: str | None, argument: str, start: int) -> Array | None:
        if name is None:
            return None
        return arrow.side_by_side([table[name]], [self._place(name, argument, start)])[:, 0]

    def _times(self, table: Any, start: int) -> Array | None:
        """The times up to which rows were followed."""
        times = self._numbers(table, self.roles.time, "time", start)
        if times is not None:
            refuse_impossible(times, self._place(self.roles.time or "", "time", start))
        return times

    def _untimed(self, column: Any) -> Bools:
        """Which cells hold no time."""
        place = self._place(self.roles.time or "", "time")
        bad = np.array(arrow.unusable(column, place))
        usable = np.flatnonzero(~bad)
        bad[usable] = impossible(arrow.side_by_side([column.take(usable)], [place])[:, 0])
        return bad

    def _outcomes(self, table: Any, start: int) -> Array:
        if not self.roles.target:
            return np.zeros(table.num_rows, np.int64)
        if self.roles.counted:
            places = [self._place(name, "raters", start) for name in self.roles.raters]
            counts: Array = arrow.side_by_side([table[name] for name in self.roles.raters], places)
            return np.asarray(counts)
        if self.roles.raters:
            return np.column_stack([self._rated(table[name], name, start) for name in self.roles.raters])
        column, place = table[self.roles.target], self._place(self.roles.target, "target", start)
        if not arrow.is_text(column.type):
            return self.labels.encode_integers(arrow.integers(column, place), place)
        codes, texts = arrow.coded(column, place)
        return self.labels.encode_texts(codes, self._as_typed(texts), place)

    def _rated(self, column: Any, name: str, start: int) -> Ints:
        """The class positions of one rater's labels, negative where there is none."""
        positions = self._positions(column, name)
        if self.labels.classes is None:
            positions[positions >= self.width] = UNKNOWN
        unknown = np.flatnonzero(positions == UNKNOWN)
        if len(unknown):
            label = arrow.plain(column)[int(unknown[0])].as_py()
            place = self._place(name, "raters", start)
            error = self.labels.unknown(label, int(unknown[0]), place, len(unknown))
            if self.labels.names is None:
                counts = passing("if these are numbers of raters for each class", raters_are="counts")
                error = error.replace(remedies=[*error.remedies, counts])
            raise error
        return positions

    @property
    def _sets(self) -> SetColumns:
        return SetColumns(self.labels.classes, self.width, texts=self.texts)

    def _probabilities(self, table: Any, start: int) -> Array:
        if self.request.sets:
            names = self.roles.probs
            places = [self._place(name, "sets", start) for name in names]
            return self._sets.mask([table[name] for name in names], places)
        places = [self._place(name, "probs", start) for name in self.roles.probs]
        p: Array
        if self.lists:
            p = shares(arrow.from_lists(table[self.roles.probs[0]], places[0], self._given), self.request)
            p = by_class_from(p, self.request, start, self.path)
            return p
        p = shares(arrow.side_by_side([table[name] for name in self.roles.probs], places), self.request)
        p = by_class_from(p, self.request, start, self.path)
        return both_classes(p[:, 0], places[0], self.request.logits) if self.single else p

    def _place(self, column: str, argument: str, start: int = 0) -> ValueOrigin:
        return ValueOrigin(
            self.path, column, argument, start, decimal=self.request.decimal if self.texts else "."
        )


def plain_numbers(cells: list[str], mark: str) -> list[str]:
    """Cells with the decimal mark of Python."""
    return cells if mark == "." else [cell.replace(mark, ".") for cell in cells]


_NUMBERS = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)


class ColumnFile(Source):
    """A file of columns, or other columns that Arrow can read.

    Attributes
    ----------
    reader : ColumnReader
        Makes predictions of its batches.
    """

    def __init__(
        self, table: SourceTable, request: Reading, *, classes: tuple[Hashable, ...] | None = None
    ) -> None:
        self.path: str = table.name
        request = self._request = request if classes is None else replace(request, classes=classes)
        self._table = table
        self.n_rows: int | None = self._table.n_rows
        self.n_bytes: int = self._table.n_bytes
        kinds = self._table.kinds
        if request.raters:
            columns = column_roles.matching_columns(request.raters, list(kinds), "raters", self.path)
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
