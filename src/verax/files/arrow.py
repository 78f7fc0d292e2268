"""Columns of Arrow to NumPy arrays; missing and unusable values are named by row.

Arrow's compute functions are imported where they are used: few files need them, and importing them takes
longer than scoring a small file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from verax.errors import InputError, Kind, Remedy, passing, show
from verax.inputs.arrays import Columns
from verax.inputs.cumulative import class_probabilities, from_cumulative
from verax.inputs.groups import Groups
from verax.inputs.reading import Reading
from verax.inputs.reading_checks import PROBABILITIES
from verax.inputs.validity import Unity

Array = np.ndarray[Any, Any]
Bools = np.ndarray[Any, np.dtype[np.bool_]]

# Columns up to this number of rows are coded without Arrow's compute functions.
_FEW = 2**13
# Whole numbers that a double holds exactly.
_EXACT = 2.0**53


@dataclass(frozen=True)
class ValueOrigin:
    """Where values come from, for errors about them.

    Attributes
    ----------
    path : str
        The file.
    column : str
        The column.
    argument : str
        What it was read as: "target", "probs", "weights", "groups", "by" or "id".
    start : int
        The number of the first row.
    per_row : int
        How many values a row has; more than 1 for lists.
    decimal : str
        The decimal mark of texts that hold numbers.
    """

    path: str
    column: str
    argument: str
    start: int = 0
    per_row: int = 1
    decimal: str = "."

    def refusal(
        self,
        requirement: str,
        found: str,
        *,
        at: int | None = None,
        value: object = None,
        kind: Kind = "type",
        count: int = 1,
        remedies: Sequence[Remedy] = (),
    ) -> InputError:
        """The error about this column; `at` is the place of the first of `count` offending values in it."""
        row = None if at is None else self.start + at // self.per_row
        more = f" ({count:,} rows so far)" if count > 1 else ""
        return InputError(
            f"Column {show(self.column)} {requirement}",
            argument=self.argument,
            kind=kind,
            found=found if row is None else f"row {row} {found}{more}",
            rows=() if row is None else (row,),
            values=() if at is None else (value,),
            count=0 if row is None else count,
            remedies=remedies,
            source=self.path,
        )


def is_text(kind: Any) -> bool:
    """Whether a column of this type holds texts, categories that have an order, or nothing."""
    if pa.types.is_dictionary(kind):
        return bool(kind.ordered or is_text(kind.value_type))
    views = getattr(pa.types, "is_string_view", None)
    return bool(
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_null(kind)
        or (views is not None and views(kind))
    )


def plain(column: Any) -> Any:
    """A column whose categories are numbers as these numbers; any other as it is."""
    kind = column.type
    return column.cast(kind.value_type) if pa.types.is_dictionary(kind) and not is_text(kind) else column


def view(values: Any) -> Array:
    """Numbers or truth values without missing ones as a NumPy array; numbers in one piece are not copied.

    Not by `to_numpy`, which imports pandas where that is installed: that takes longer than small files do.
    """
    if isinstance(values, pa.ChunkedArray):
        parts = [view(chunk) for chunk in values.chunks]
        return parts[0] if len(parts) == 1 else np.concatenate(parts or [view(values.combine_chunks())])
    if pa.types.is_boolean(values.type):
        return np.from_dlpack(values.cast(pa.uint8())).view(np.bool_)
    return np.from_dlpack(values)


def refuse_missing(column: Any, place: ValueOrigin) -> None:
    """Refuse a column with missing values, naming the first row."""
    if column.null_count:
        at = int(np.argmax(view(column.is_null())))
        raise place.refusal(
            "must have a value in every row",
            "has none",
            at=at,
            kind="missing",
            count=int(column.null_count),
            remedies=[*_for_blanks(place), passing("to leave such rows out", invalid="skip")],
        )


def _for_blanks(place: ValueOrigin) -> list[Remedy]:
    """What to do about a blank cell, which may be a class that was not listed, as in the surest rows."""
    if place.argument != "probs":
        return [Remedy("Fill it in.")]
    return [passing("to read lists, where a blank cell is a class that is not listed", shape="wide")]


def missing(column: Any) -> Bools:
    """Which values of a chunked column are missing: null, also within a dictionary, or not a number."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return view(column.is_null(nan_is_null=True))


def unusable(column: Any, place: ValueOrigin) -> Bools:
    """Which cells of a chunked column hold no number, or nothing."""
    bad = missing(column)
    if not pa.types.is_string(column.type):
        return bad
    cells = [cell or "" for cell in column.to_pylist()]
    return bad | np.array([not _is_number(cell.replace(place.decimal, ".")) for cell in cells], np.bool_)


def _is_number(cell: str) -> bool:
    """Whether Arrow reads a cell as a number; Python would also read 1_0 and digits of other scripts.

    >>> [_is_number(cell) for cell in (" 1e-3", "1_0", "٣", "x", "")]
    [True, False, False, False, False]
    """
    try:
        float(cell)
    except ValueError:
        return False
    return cell.isascii() and "_" not in cell


def unusable_lists(column: Any, width: int) -> Bools:
    """Which lists of a chunked column are missing, have a missing value or another length than `width`."""
    lists = column.to_pylist()
    return np.array([v is None or len(v) != width or None in v for v in lists], np.bool_)


def numbers(column: Any, place: ValueOrigin) -> Array:
    """A chunk of a column as floating-point numbers, without a copy where it holds such."""
    refuse_missing(column, place)
    kind = column.type
    if not pa.types.is_floating(kind):
        column = _as_numbers(column, place)
        # A dictionary may hold missing values.
        refuse_missing(column, place)
    return view(column)


def _as_numbers(column: Any, place: ValueOrigin) -> Any:
    import pyarrow.compute as pc

    if pa.types.is_string(column.type) and place.decimal != ".":
        column = pc.replace_substring(column, place.decimal, ".")
    try:
        return column.cast(pa.float64(), safe=False)
    except (pa.ArrowException, ValueError):
        pass
    if pa.types.is_string(column.type):
        column = pc.utf8_trim_whitespace(column)
        try:
            return column.cast(pa.float64(), safe=False)
        except pa.ArrowException:
            raise _no_number(column, place) from None
    raise place.refusal("must hold numbers", f"its type is {column.type}")


def _no_number(column: Any, place: ValueOrigin) -> InputError:
    """The error that names the first text that is not numeric."""
    low, high = 0, len(column)
    while high - low > 1:
        middle = (low + high) // 2
        try:
            column.slice(low, middle - low).cast(pa.float64())
            low = middle
        except pa.ArrowException:
            high = middle
    text = column[low].as_py()
    count = sum(not _is_number(cell or "") for cell in column.to_pylist())
    comma = place.decimal == "." and text.replace(",", "", 1).lstrip("-").isdecimal() and "," in text
    remedy = passing(decimal=",") if comma else Remedy("Correct it, or leave the row out.")
    if text.strip().endswith("%") and _is_number(text.strip().removesuffix("%")):
        remedy = passing("once the percent signs are gone", percent=True)
    problem = f"holds {show(text)}"
    return place.refusal("must hold numbers", problem, at=low, value=text, count=count, remedies=[remedy])


def side_by_side(columns: Sequence[Any], places: Sequence[ValueOrigin]) -> Array:
    """Chunked columns as one (n, K) array of the widest type among them, which is at least float16.

    The columns stay contiguous inside it, which is faster to make and no slower to score.
    """
    floats = [_float_type(column.type) for column in columns]
    p = np.empty((len(columns), len(columns[0])), np.result_type(*floats))
    for j, (column, place) in enumerate(zip(columns, places, strict=True)):
        row = 0
        for chunk in column.chunks:
            p[j, row : row + len(chunk)] = numbers(chunk, _moved(place, row))
            row += len(chunk)
    return p.T


def _float_type(kind: Any) -> Any:
    # Arrow's own conversion would import pandas.
    return np.dtype(f"f{kind.bit_width // 8}").type if pa.types.is_floating(kind) else np.float64


def _moved(place: ValueOrigin, rows: int, per_row: int = 1) -> ValueOrigin:
    return ValueOrigin(place.path, place.column, place.argument, place.start + rows, per_row, place.decimal)


def from_lists(column: Any, place: ValueOrigin, width: int) -> Array:
    """A chunked column of lists of `width` numbers as (n, width)."""
    import pyarrow.compute as pc

    parts, row = [], 0
    for chunk in column.chunks:
        here = _moved(place, row)
        refuse_missing(chunk, here)
        lengths = view(pc.list_value_length(chunk))
        wrong = lengths != width
        if wrong.any():
            at = int(np.argmax(wrong))
            problem = f"holds {lengths[at]} numbers where the first row holds {width}"
            raise here.refusal(
                "must hold lists of one length",
                problem,
                at=at,
                value=int(lengths[at]),
                kind="length",
                count=int(wrong.sum()),
            )
        values = numbers(chunk.flatten(), _moved(place, row, max(1, width)))
        parts.append(values.reshape(len(chunk), width))
        row += len(chunk)
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def integers(column: Any, place: ValueOrigin) -> Array:
    """A chunked column of numbers or truth values as whole numbers."""
    column = plain(column)
    refuse_missing(column, place)
    if pa.types.is_boolean(column.type):
        return view(column).astype(np.int64)
    values = view(column if pa.types.is_integer(column.type) else column.cast(pa.float64()))
    odd = not_whole(values)
    if odd.any():
        at = int(np.argmax(odd))
        value = values[at].item()
        raise place.refusal(
            "must hold classes, as names or whole numbers",
            f"holds {show(value)}",
            at=at,
            value=value,
            kind="label",
            count=int(odd.sum()),
        )
    return values.astype(np.int64)


def not_whole(values: Array) -> Bools:
    """Which numbers are no whole numbers, or too large for one."""
    if values.dtype.kind == "f":
        return np.asarray(~((np.abs(values) <= _EXACT) & (values == np.floor(values))))
    if values.dtype == np.uint64:
        return np.asarray(values > np.iinfo(np.int64).max)
    return np.zeros(len(values), np.bool_)


def coded(column: Any, place: ValueOrigin) -> tuple[Array, list[str]]:
    """A chunked column of any kind of label as codes into the texts it holds."""
    codes, values = _codes(_as_text(column, place), place)
    return codes, [str(value) for value in values]


def labels(column: Any, place: ValueOrigin) -> Array:
    """A chunked column of labels: whole numbers stay numbers, the rest becomes texts."""
    column = plain(column)
    if pa.types.is_integer(column.type):
        refuse_missing(column, place)
        return view(column)
    codes, texts = coded(column, place)
    return np.array(texts or [""])[codes]


def groups(column: Any, place: ValueOrigin) -> Groups:
    """A chunked column of labels, coded, with the labels in order."""
    column = plain(column)
    whole = pa.types.is_integer(column.type)
    codes, values = _codes(column if whole else _as_text(column, place), place)
    names = np.array(values) if whole else np.array([str(value) for value in values])
    order = np.argsort(names)
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return Groups(rank[codes], names[order])


def distinct(column: Any) -> list[Any]:
    """The different values of a chunked column, in the order of their first appearance."""
    if len(column) <= _FEW:
        return list(dict.fromkeys(column.to_pylist()))
    return column.unique().to_pylist()  # type: ignore[no-any-return]


def _codes(column: Any, place: ValueOrigin) -> tuple[Array, list[Any]]:
    refuse_missing(column, place)
    if len(column) <= _FEW and pa.types.is_string(column.type):
        known: dict[str, int] = {}
        places = [known.setdefault(value, len(known)) for value in column.to_pylist()]
        return np.array(places, np.int64), list(known)
    column = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    whole = column.unify_dictionaries().combine_chunks()
    whole = whole.chunk(0) if isinstance(whole, pa.ChunkedArray) else whole
    codes = view(whole.indices).astype(np.int64, copy=False)
    return codes, whole.dictionary.to_pylist()


def _as_text(column: Any, place: ValueOrigin) -> Any:
    kind = column.type
    if pa.types.is_dictionary(kind):
        # A missing value may hide in the dictionary.
        hidden = any(chunk.dictionary.null_count for chunk in column.chunks)
        return column.cast(kind.value_type).cast(pa.string()) if hidden else column
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return column
    if pa.types.is_floating(kind):
        import pyarrow.compute as pc

        column = pc.if_else(pc.is_nan(column), pa.scalar(None, kind), column)
    try:
        return column.cast(pa.string())
    except (pa.ArrowException, ValueError):
        raise place.refusal("must hold names or numbers", f"its type is {kind}") from None


def both_classes(p: Array, place: ValueOrigin, logits: bool) -> Array:
    """The probability of the second of two classes as a row of two (or its logit)."""
    unity, p = Unity.at(64), p.astype(np.float64, copy=False)
    if logits:
        return np.stack([np.zeros_like(p), p], axis=1)
    rows = unity.both_classes(p, np)
    bad = ~is_probability(p)
    if bad.any():
        at = int(np.argmax(bad))
        value = float(p[at])
        raise place.refusal(
            "must hold probabilities between 0 and 1",
            f"holds {show(value)}",
            at=at,
            value=value,
            kind="value",
            count=int(bad.sum()),
            remedies=[
                passing("if these are percentages", percent=True),
                passing("if these are logits", logits=True),
            ],
        )
    return np.asarray(rows)


def shares(p: Any, request: Reading) -> Any:
    """Probabilities, from percentages where these were stated."""
    if not request.percent:
        return p
    return Columns([column / 100 for column in p.columns]) if isinstance(p, Columns) else p / 100


def by_class_from(p: Any, request: Reading, start: int, path: str) -> Any:
    """Probabilities of classes, from those at thresholds where these were stated.

    Where invalid rows are skipped, those that cross are left negative, to be found with the others.
    """
    if request.outputs == PROBABILITIES:
        return p
    c = np.column_stack(p.columns) if isinstance(p, Columns) else np.asarray(p)
    c = np.asarray(c if c.ndim == 2 else c[:, None], np.float64)
    outputs: Any = request.outputs
    if request.invalid == "skip":
        return class_probabilities(c, outputs)
    try:
        return from_cumulative(c, outputs=outputs)
    except InputError as error:
        rows = tuple(start + row for row in error.rows)
        raise error.replace(argument="probs", source=path, rows=rows) from None


def is_probability(p: Array) -> Bools:
    """Which numbers may be the probability of the second of two classes."""
    unity = Unity.at(64)
    return unity.holds(np.asarray(unity.both_classes(p.astype(np.float64, copy=False), np)))
