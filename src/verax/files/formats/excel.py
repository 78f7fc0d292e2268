"""Excel workbooks: the first sheet, whose first row names the columns."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Sequence
from datetime import date, time
from pathlib import Path
from typing import Any

import pyarrow as pa

from verax.common.packages import needed
from verax.common.paths import check_regular
from verax.errors import InputError, Remedy, show
from verax.files.formats.archives import Archive
from verax.files.formats.texts import sliced


class Excel:
    """A workbook, held in memory.

    Attributes
    ----------
    notes : tuple[str, ...]
        Which of several sheets is read.
    """

    def __init__(self, path: Path) -> None:
        check_regular(path)
        calamine = needed("python_calamine", "Reading Excel files", "excel", "python-calamine")
        with path.open("rb") as file:
            zipped = zipfile.is_zipfile(file)
        if zipped:
            # Its directory is held to the limits of archives.
            Archive(path)
        try:
            with path.open("rb") as file, calamine.load_workbook(file) as book:
                names = book.sheet_names
                rows = book.get_sheet_by_index(0).to_python(skip_empty_area=True) if names else []
        except calamine.CalamineError as error:
            raise _refusal(path, "The file must be an Excel workbook", str(error)) from None
        if len(rows) < 2:
            sheet = f"the first sheet, {show(names[0])}," if names else "it"
            raise _refusal(
                path, "The first sheet must have a row of names, and rows below it", f"{sheet} has none"
            )
        header, *cells = rows
        found = {str(name): [row[j] for row in cells] for j, name in enumerate(header)}
        if len(found) < len(header):
            twice = next(name for name in header if header.count(name) > 1)
            raise _refusal(
                path,
                f"There are two columns called {show(str(twice))}",
                remedies=[Remedy("Rename one of them.")],
            )
        self._table = pa.table({name: _column(values) for name, values in found.items()})
        self.schema: Any = self._table.schema
        self.n_rows: int = self._table.num_rows
        others = f"The workbook has {len(names)} sheets; the first, {show(names[0])}, was read."
        self.notes: tuple[str, ...] = (others,) if len(names) > 1 else ()

    def batches(self, columns: Sequence[str], rows: int) -> Iterator[Any]:
        """All rows of these columns, up to `rows` at a time."""
        for batch in self._table.select(list(columns)).to_batches():
            yield from sliced(batch, rows)


def _refusal(path: Path, requirement: str, found: str = "", remedies: Sequence[Remedy] = ()) -> InputError:
    return InputError(
        requirement, argument="path", kind="file", found=found, source=str(path), remedies=remedies
    )


def _column(cells: list[Any]) -> Any:
    """A column of one type: truth values, whole numbers, numbers, or texts; an empty cell is missing."""
    values = [None if cell == "" else cell for cell in cells]
    kinds = {type(value) for value in values if value is not None}
    if kinds == {bool}:
        return pa.array(values, pa.bool_())
    if kinds and kinds <= {int, float}:
        whole = all(float(value).is_integer() for value in values if value is not None)
        return pa.array([None if v is None else int(v) for v in values] if whole else values)
    return pa.array([None if value is None else _text(value) for value in values], pa.string())


def _text(cell: Any) -> str:
    """A cell beside texts, as Excel shows it: a whole number has no decimals."""
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return cell.isoformat() if isinstance(cell, (date, time)) else str(cell)
