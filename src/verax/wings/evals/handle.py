"""Columns of grades as the parts that recipes take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from verax.analyses.comparison.grades import grade_scale, read_grades
from verax.analyses.comparison.ungraded import became_of
from verax.common.ids import id_of
from verax.errors import InputError
from verax.files.column_roles import require_column
from verax.files.formats.tables import SourceTable
from verax.inputs.arrays import Array
from verax.inputs.breakdown import labels_of
from verax.inputs.handles import Part, RowFacts
from verax.inputs.reading import Reading, named_columns
from verax.inputs.rows import ScoredRows
from verax.scans.options import ScanOptions
from verax.scans.parts import default_name
from verax.scores.grades import Grade
from verax.wings.evals.reading.files import grades_in

# The number of rows in a part.
_ROWS = 2**18


@dataclass(frozen=True)
class GradeReader:
    """Makes parts of record batches whose rows are questions, here or on another machine; it holds no rows.

    Attributes
    ----------
    grades : Mapping[str, str]
        The column of grades of each model.
    graded : Grade
        The range of grades.
    request : Reading
        The columns of weights, groups, ids and subgroups.
    source : str
        The name of the table in errors.
    """

    grades: Mapping[str, str]
    graded: Grade
    request: Reading
    source: str

    @classmethod
    def of(cls, table: SourceTable, options: ScanOptions) -> GradeReader:
        """Check that all columns are there."""
        request, given = options.reading, options.reading.grades
        assert given is not None
        grades = {default_name(table.name): given} if isinstance(given, str) else dict(given)
        for name in ("target", "probs", "classes", "raters", "positive"):
            if getattr(request, name):
                raise InputError("cannot be given beside grades", argument=name)
        named = {"grades": list(grades.values()), "weights": named_columns(request.weights), "by": request.by}
        named |= {"groups": named_columns(request.groups), "id": named_columns(request.id)}
        for argument, columns in named.items():
            for column in columns:
                require_column(column, table.schema.names, argument, table.name)
        return cls(grades, grade_scale(request.grade_range), request, table.name)

    @property
    def facts(self) -> RowFacts:
        """What is known of the rows."""
        reading = self.request
        grades = [f"{name}: grades in {column}" for name, column in self.grades.items()]
        others = {
            "weights": reading.weights,
            "groups": reading.groups,
            "ids": reading.id,
            "subgroups": reading.by,
        }
        beside = [f"{role}: {', '.join(named_columns(names))}" for role, names in others.items() if names]
        return RowFacts(
            models=tuple(self.grades),
            classes=None,
            n_classes=2,
            taken=(*grades, *beside),
            by=reading.by,
            graded=self.graded,
            weighted=reading.weights is not None,
        )

    @property
    def columns(self) -> list[str]:
        """Every column that is needed, once."""
        reading = self.request
        beside = [
            *named_columns(reading.weights),
            *named_columns(reading.groups),
            *named_columns(reading.id),
            *reading.by,
        ]
        return list(dict.fromkeys([*self.grades.values(), *beside]))

    @property
    def rows_at_a_time(self) -> int:
        """The number of rows that a part should have."""
        return _ROWS

    def part(self, batches: list[Any], start: int) -> Part:
        """The rows of record batches of one schema, the first of which has the number `start`."""
        table = pa.Table.from_batches(batches)
        reading = self.request
        kinds = [np.array(table[name].to_pylist()) for name in named_columns(reading.groups)]
        options: dict[str, Any] = {
            "weights": None
            if reading.weights is None
            else grades_in(table[reading.weights], reading.weights, self.source),
            "groups": None if not kinds else kinds if len(kinds) > 1 else kinds[0],
        }
        models = {}
        for name, column in self.grades.items():
            try:
                values = read_grades(grades_in(table[column], column, self.source), self.graded, repr(name))
            except InputError as error:
                raise error.replace(rows=tuple(start + row for row in error.rows)) from None
            became = became_of(values, None, np.zeros(len(values), np.bool_), self.graded)
            losses = {self.graded: self.graded.loss(values)}
            models[name] = ScoredRows(losses, became=became, part=True, **options)
        by = {}
        for name in reading.by:
            labels = labels_of(np.array(table[name].to_pylist(), object), table.num_rows)
            by[name] = labels.labels[labels.codes]
        return Part.divisible(models, self._ids(table), by, None, start=start, whole=False)

    def _ids(self, table: Any) -> Array | None:
        names = named_columns(self.request.id)
        if not names:
            return None
        columns = [table[name].to_pylist() for name in names]
        return np.array([str(id_of(list(key))) for key in zip(*columns, strict=True)])
