"""Files of scores: a row for each data set, or for each score of a model on one."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

import pyarrow as pa

from verax.common.paths import matching
from verax.errors import InputError, join, show
from verax.files.formats.tables import SourceTable
from verax.files.rater_tables import whole_table
from verax.inputs.reading import Reading


def read_score_table(path: Path, request: Reading, names: Collection[str]) -> Any:
    """The rows of a file as an Arrow table; columns of texts that are numbers are numbers, unless they are
    those of `names`.
    """
    source = SourceTable.of_paths(matching(path), request, str(path))
    table = whole_table(source)
    for name in names:
        if name not in table.column_names:
            raise InputError(
                f"There is no column {show(name)}",
                argument="path",
                kind="missing",
                source=source.name,
                found=f"there are {join(map(show, table.column_names))}",
            )
    for i, name in enumerate(table.column_names):
        if name not in names and pa.types.is_string(table.schema.field(i).type):
            numbers = _numbers(table.column(i).to_pylist(), request.decimal)
            if numbers is not None:
                table = table.set_column(i, name, pa.array(numbers, pa.float64()))
    return table


def _numbers(cells: list[str | None], decimal: str) -> list[float | None] | None:
    """Cells as numbers, None where they are empty; None where one is not a number.

    >>> _numbers(["0,5", ""], ","), _numbers(["a"], ".")
    ([0.5, None], None)
    """
    numbers: list[float | None] = []
    for cell in cells:
        text = (cell or "").strip().replace(decimal, ".")
        try:
            numbers.append(float(text) if text else None)
        except ValueError:
            return None
    return numbers
