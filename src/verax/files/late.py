"""Forecasts in one file and their outcomes, which come later, in another."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from verax.common.paths import matching
from verax.errors import InputError, join, passing, show
from verax.files import arrow
from verax.files.arrow import ValueOrigin
from verax.files.column_files import ColumnFile
from verax.files.column_roles import find_target
from verax.files.formats.tables import ARRAYS, ROWS_AT_ONCE, TEXTS, SourceTable, common_format
from verax.files.lists.spelling import alike
from verax.files.predictions import Array, Predictions, together_ids
from verax.inputs.lists.vocabulary import ClassVocabulary
from verax.inputs.reading import Reading, each_name
from verax.inputs.records.variants import merger


def read_forecasts(path: Path, request: Reading) -> Predictions:
    """All rows of a file of forecasts without outcomes, in place of which `y` is zero."""
    return ColumnFile(
        _table(path, request), replace(request, target="", raters=(), rater_column=None, label_column=None)
    ).read()


@dataclass(frozen=True)
class LateOutcomes:
    """Outcomes with the names of their rows and the times at which they came."""

    ids: Array
    y: Array
    times: Array

    def among(self, classes: Sequence[Hashable] | None) -> Array:
        """The outcomes as positions, or as the classes if these have names."""
        if classes is None:
            return np.array([int(y) if str(y).isdecimal() else y for y in self.y.tolist()])
        known = {str(name): name for name in classes}
        texts = [str(y) for y in self.y.tolist()]
        unknown = [i for i, text in enumerate(texts) if text not in known]
        if unknown:
            raise InputError(
                f"must be among the classes, {join(map(show, classes))}",
                argument="outcomes",
                kind="label",
                found=f"{show(texts[unknown[0]])} is not, the outcome of {show(self.ids[unknown[0]])} "
                f"({len(unknown):,} in all)",
                rows=unknown[:5],
                values=[texts[i] for i in unknown[:5]],
                count=len(unknown),
            )
        alike = len({type(name) for name in classes}) == 1
        return np.array([known[text] for text in texts], None if alike else object)

    def called_like(self, names: Sequence[Hashable], merge_variants: str | None) -> Array:
        """The outcomes as lists call their classes, some of which have these names."""
        called, y = merger(merge_variants), self.y.tolist()
        y = y if called is None else [called(value) for value in y]
        return np.array(alike(y, ClassVocabulary(names, complete=False)))


def read_outcomes(path: Path, request: Reading, time: str) -> LateOutcomes:
    """All rows of a file of outcomes: their names, what happened, and when that was known."""
    table = _table(path, request)
    names = list(table.schema.names)
    ids = each_name(request.id)
    target = find_target(names, request, table.name)
    for option, column in [("time", time), *(("id", name) for name in ids)]:
        if column not in names:
            raise InputError(
                f"must be a column of {table.name}",
                argument=option,
                kind="missing",
                found=f"there is no {show(column)}; it has {join(map(show, names))}",
                remedies=[passing("with another name", **{option: ...})],
            )
    rows = pa.concat_tables(
        [pa.Table.from_batches([batch]) for batch in table.batches([*ids, target, time], ROWS_AT_ONCE)]
        or [table.schema.empty_table()],
        promote_options="default",
    )
    decimal = request.decimal if table.format in TEXTS else "."

    def labels(column: str, option: str) -> Any:
        return arrow.labels(rows[column], ValueOrigin(table.name, column, option, decimal=decimal))

    found: Any = together_ids([labels(name, "id") for name in ids])
    return LateOutcomes(found, labels(target, "target"), labels(time, "time"))


def _table(path: Path, request: Reading) -> SourceTable:
    paths = matching(path)
    if common_format(paths) in ARRAYS:
        raise InputError(
            f"{path} must be a file of columns, which names its rows", argument="path", kind="file"
        )
    return SourceTable.of_paths(paths, request, str(path))
