"""Tables of texts for terminals and notebooks, whose first row is the header; and data frames."""

from __future__ import annotations

import html
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Literal, get_args

from verax.common.checks import check_choice
from verax.common.texts import on_a_line
from verax.errors import MissingPackageError

Cells = list[list[str]]
FrameKind = Literal["pandas", "polars", "pyarrow"]


def text_table(cells: Cells, *, right: Collection[int] = ()) -> list[str]:
    """Lines with aligned columns; those numbered in `right` are flush right.

    Control characters and line breaks in the cells are shown as escapes, so each row stays one line.
    """
    cells = [[on_a_line(text) for text in row] for row in cells]
    widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))]
    return [
        "  ".join(
            text.rjust(width) if i in right else text.ljust(width)
            for i, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    ]


def html_table(cells: Cells, *, caption: str = "", notes: Collection[str] = ()) -> str:
    """A table element; every text is escaped."""
    header, *body = ([html.escape(text) for text in row] for row in cells)
    head = "".join(f"<th>{text}</th>" for text in header)
    rows = "".join("<tr>" + "".join(f"<td>{text}</td>" for text in row) + "</tr>" for row in body)
    title = f"<caption>{html.escape(caption)}</caption>" if caption else ""
    below = f"<p>{'<br>'.join(html.escape(note) for note in notes)}</p>" if notes else ""
    return f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{below}"


def band_columns(band: Any, n: int) -> dict[str, list[Any]]:
    """The columns "low" and "high" of a curve with n points; None in all of them where it has no band."""
    low, high = ([None] * n, [None] * n) if band is None else (end.tolist() for end in band)
    return {"low": low, "high": high}


def stacked(parts: Iterable[Mapping[str, list[Any]]]) -> dict[str, list[Any]]:
    """Columns of the same names, below each other."""
    columns: dict[str, list[Any]] = {}
    for part in parts:
        for name, values in part.items():
            columns.setdefault(name, []).extend(values)
    return columns


def record_frame(records: Sequence[Mapping[str, Any]], kind: FrameKind) -> Any:
    """One row per record, all with the same names, as a data frame of the kind named.

    Values of different types in one column, such as class names that are texts and numbers, become texts.
    """
    columns = {name: [record[name] for record in records] for name in records[0]}
    for name, values in columns.items():
        types = {type(value) for value in values if value is not None}
        if len(types) > 1 and not types <= {int, float}:
            columns[name] = [None if value is None else str(value) for value in values]
    return data_frame(columns, kind)


def data_frame(columns: dict[str, list[Any]], kind: FrameKind) -> Any:
    """Columns as a data frame of the kind named."""
    import narwhals as nw

    check_choice("kind", kind, get_args(FrameKind))
    try:
        return nw.from_dict(columns, backend=kind).to_native()
    except (ImportError, ModuleNotFoundError):
        raise MissingPackageError(
            f"to_frame needs {kind}: install it, or ask for another kind of frame."
        ) from None
