"""Files of named columns: CSV, JSON Lines, Parquet and Arrow."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from verax.errors import passing
from verax.files import arrow, column_roles
from verax.files.arrow import Place
from verax.files.formats.tables import TEXTS, Table
from verax.files.labels import INTEGER, TEXT, Target, find_labels
from verax.files.predictions import Array, Predictions, Request, each_name, together
from verax.files.single import both_classes, is_probability
from verax.files.source import Source
from verax.inputs.groups import Groups
from verax.inputs.skipping import REASONS, Survey


class ColumnFile(Source):
    """A file of columns."""

    def __init__(self, path: Path, request: Request) -> None:
        self.path = str(path)
        self._request = request
        self._table = Table(path, request)
        self.n_rows = self._table.n_rows
        kinds = self._table.kinds()
        self._target = self._look(column_roles.find_target(list(kinds), request, self.path))
        look = column_roles.Look(kinds, self._table.numbers, self._table.lists, self._target.seen)
        self.roles = column_roles.find_roles(look, request, where=self.path)
        self._lists = kinds[self.roles.probs[0]] == column_roles.LIST
        n_columns = None if self._lists else len(self.roles.probs)
        self._labels = find_labels(self._target, self.roles.names, n_columns, request, self.path)
        self.classes = self._labels.classes
        self._single = n_columns == 1
        if self._labels.columns is not None:
            probs = tuple(self.roles.probs[i] for i in self._labels.columns)
            self.roles = replace(self.roles, probs=probs, names=None)
        self.roles = replace(self.roles, outcomes_are=self._labels.outcomes_are, renamed=self._labels.renamed)
        self._table.as_numbers({*self.roles.probs, self.roles.weights} - {self.roles.target, None})  # type: ignore[arg-type]
        self.width = self._length_of_lists() if self._lists else max(2, len(self.roles.probs))

    def _look(self, name: str) -> Target:
        """What the target holds, from its type and its first rows."""
        kind = self._table.schema.field(name).type
        if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind):
            return Target(name, INTEGER, boolean=bool(pa.types.is_boolean(kind)))
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
            return Target.of_cells(name, self._plain_numbers(seen))
        return Target(name, TEXT, tuple(seen))

    def _length_of_lists(self) -> int:
        """How many numbers the first list has."""
        place = self._place(self.roles.probs[0], "probs")
        first = self._table.head(place.column, 1)
        arrow.refuse_missing(first, place)
        width = len(first[0])
        if self.classes is not None and width != len(self.classes):
            raise place.refusal(
                f"must hold lists of {len(self.classes)} numbers, as many as there are classes",
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

    def _place(self, column: str, argument: str, start: int = 0) -> Place:
        decimal = self._request.decimal if self._table.format in TEXTS else "."
        return Place(self.path, column, argument, start, decimal=decimal)

    def _plain_numbers(self, cells: list[str]) -> list[str]:
        """Cells with the decimal mark of Python."""
        mark = self._request.decimal
        return cells if mark == "." else [cell.replace(mark, ".") for cell in cells]

    def _batches(self, rows: int, coded: bool) -> Iterator[Predictions]:
        waiting: list[Any] = []
        start = n = 0
        for batch in self._table.batches(self.roles.columns, rows):
            # Parts of a folder and blocks of a JSON file may have types of their own.
            if waiting and (n >= rows or batch.schema != waiting[0].schema):
                yield self._predictions(waiting, start, coded)
                start, n, waiting = start + n, 0, []
            waiting.append(batch)
            n += batch.num_rows
        if n:
            yield self._predictions(waiting, start, coded)

    def _predictions(self, batches: list[Any], start: int, coded: bool) -> Predictions:
        table = pa.Table.from_batches(batches)
        if self._request.invalid == "skip":
            survey = self._unusable(table)
            kept = survey.kept
            found = self._of_table(table.take(kept), start, coded)
            gone = self._ids_of(table.take(np.flatnonzero(survey.bad)))
            return replace(found, rows=start + kept, skipped=survey.skipped(start), ids_left_out=gone)
        return self._of_table(table, start, coded)

    def _ids_of(self, table: Any) -> tuple[str, ...]:
        """The ids of some rows, without missing ones."""
        if self.roles.id is None or not table.num_rows:
            return ()
        column = table[self.roles.id].drop_null()
        return tuple(str(text) for text in arrow.labels(column, self._place(self.roles.id, "id")))

    def _unusable(self, table: Any) -> Survey:
        """The rows that cannot be read: a value is missing, or is no number, no list or no class."""
        survey, roles = Survey(table.num_rows), self.roles
        for argument, names in (
            ("groups", each_name(roles.groups)),
            ("by", roles.by),
            ("id", each_name(roles.id)),
        ):
            for name in names:
                survey.add(arrow.missing(table[name]), REASONS[argument, "missing"])
        if roles.weights is not None:
            weights = arrow.unusable(table[roles.weights], self._place(roles.weights, "weights"))
            survey.add(weights, REASONS["weights", "sign"])
        for name in roles.probs:
            column, place = table[name], self._place(name, "probs")
            bad = arrow.unusable_lists(column, self.width) if self._lists else arrow.unusable(column, place)
            survey.add(bad, REASONS["p", "finite"])
            if self._single and not self._request.logits:
                usable = np.flatnonzero(~bad)
                p = arrow.side_by_side([column.take(usable)], [place])[:, 0]
                survey.add(usable[~is_probability(p)], REASONS["p", "sign"])
        self._add_outcomes(table[roles.target], survey)
        return survey

    def _add_outcomes(self, column: Any, survey: Survey) -> None:
        """Note the rows without an outcome, or with one that is no class."""
        bad = arrow.missing(column)
        survey.add(bad, REASONS["y", "missing"])
        there = np.flatnonzero(~bad)
        column, place = column.take(there), self._place(self.roles.target, "target")
        if arrow.is_text(column.type):
            codes, texts = arrow.coded(column, place)
            y = self._labels.positions(codes, self._as_typed(texts))
        else:
            y = self._labels.positions_where_whole(arrow.view(column.cast(pa.float64(), safe=False)))
        survey.add(there[y < 0], REASONS["y", "label"])

    def _as_typed(self, texts: list[str]) -> list[str]:
        """Outcomes of a CSV file with the decimal mark of Python, where they are numbers."""
        return self._plain_numbers(texts) if self._target.cells and self._target.kind == INTEGER else texts

    def _of_table(self, table: Any, start: int, coded: bool) -> Predictions:
        roles = self.roles

        def labels(argument: str, name: str | None) -> Array | None:
            if name is None:
                return None
            return arrow.labels(table[name], self._checked(table, name, argument, start))

        def groups(name: str) -> Groups:
            return arrow.groups(table[name], self._checked(table, name, "groups", start))

        kinds: list[Any] = [groups(n) if coded else labels("groups", n) for n in each_name(roles.groups)]
        return Predictions(
            self.path,
            self._outcomes(table, start),
            self._probabilities(table, start),
            self.classes,
            roles,
            self._weights(table, start),
            together(kinds),
            {name: labels("by", name) for name in roles.by},  # type: ignore[misc]
            labels("id", roles.id),
        )

    def _checked(self, table: Any, name: str, argument: str, start: int) -> Place:
        """The place of labels, which must be texts everywhere or numbers everywhere."""
        place = self._place(name, argument, start)
        first, here = self._table.schema.field(name).type, table.schema.field(name).type
        if first != here and arrow.is_text(first) != arrow.is_text(here):
            raise place.refusal("must hold values of one type", f"holds {here} after {first}", at=0)
        return place

    def _weights(self, table: Any, start: int) -> Array | None:
        name = self.roles.weights
        if name is None:
            return None
        return arrow.side_by_side([table[name]], [self._place(name, "weights", start)])[:, 0]

    def _outcomes(self, table: Any, start: int) -> Array:
        column, place = table[self.roles.target], self._place(self.roles.target, "target", start)
        if not arrow.is_text(column.type):
            return self._labels.encode_integers(arrow.integers(column, place), place)
        codes, texts = arrow.coded(column, place)
        return self._labels.encode_texts(codes, self._as_typed(texts), place)

    def _probabilities(self, table: Any, start: int) -> Array:
        places = [self._place(name, "probs", start) for name in self.roles.probs]
        if self._lists:
            return arrow.from_lists(table[self.roles.probs[0]], places[0], self.width)
        p = arrow.side_by_side([table[name] for name in self.roles.probs], places)
        return both_classes(p[:, 0], places[0], self._request.logits) if self._single else p
