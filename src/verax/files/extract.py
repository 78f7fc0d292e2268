"""Columns of Arrow to NumPy arrays, with missing and odd values named by row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from verax.clusters import Groups
from verax.errors import InputError, show

Array = np.ndarray[Any, Any]


def refuse_missing(column: Any, where: str, argument: str, start: int) -> None:
    """Refuse a column with missing values, naming the first row."""
    if column.null_count:
        row = start + int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
        raise InputError(
            f"{where} must have a value in every row; row {row} has none. Fill it in, or leave the row out.",
            argument=argument,
            rows=(row,),
        )


def numbers(column: Any, where: str, argument: str, start: int) -> Array:
    """A chunk of a column as float32 or float64, without a copy where it is one of these."""
    refuse_missing(column, where, argument, start)
    kind = column.type
    if not (pa.types.is_float32(kind) or pa.types.is_float64(kind)):
        column = _cast(
            column, pa.float32() if pa.types.is_float16(kind) else pa.float64(), where, argument, start
        )
    return column.to_numpy(zero_copy_only=True)  # type: ignore[no-any-return]


def _cast(column: Any, kind: Any, where: str, argument: str, start: int) -> Any:
    try:
        return column.cast(kind, safe=False)
    except (pa.ArrowException, ValueError):
        pass
    for row, value in enumerate(column.to_pylist()):
        try:
            float(value)
        except (TypeError, ValueError):
            raise InputError(
                f"{where} must hold numbers; row {start + row} holds {show(value)}.",
                argument=argument,
                rows=(start + row,),
            ) from None
    raise InputError(f"{where} must hold numbers; its type is {column.type}.", argument=argument)


def side_by_side(columns: Sequence[Any], names: Callable[[int], str], start: int) -> Array:
    """Chunked columns as one (n, K) array, float32 if all of them are.

    The columns stay whole inside it, which is quicker to make and no slower to score.
    """
    n = len(columns[0])
    single = all(pa.types.is_float32(c.type) or pa.types.is_float16(c.type) for c in columns)
    p = np.empty((len(columns), n), np.float32 if single else np.float64)
    for j, column in enumerate(columns):
        row = 0
        for chunk in column.chunks:
            p[j, row : row + len(chunk)] = numbers(chunk, names(j), "probs", start + row)
            row += len(chunk)
    return p.T


def from_lists(column: Any, where: str, start: int) -> Array:
    """A chunked column of lists of numbers, all of one length, as (n, K)."""
    parts = []
    for chunk in column.chunks:
        refuse_missing(chunk, where, "probs", start)
        lengths = pc.list_value_length(chunk).to_numpy(zero_copy_only=False)
        if len(lengths) and (lengths != lengths[0]).any():
            row = int(np.argmax(lengths != lengths[0]))
            raise InputError(
                f"{where} must hold lists of one length; row {start} holds {lengths[0]} numbers and row "
                f"{start + row} {lengths[row]}.",
                argument="probs",
                rows=(start + row,),
            )
        values = numbers(chunk.flatten(), where, "probs", start)
        parts.append(values.reshape(len(chunk), -1))
        start += len(chunk)
    widths = {part.shape[1] for part in parts if len(part)}
    if len(widths) > 1:
        raise InputError(
            f"{where} must hold lists of one length; it holds {sorted(widths)}.", argument="probs"
        )
    return parts[0] if len(parts) == 1 else np.concatenate([part for part in parts if len(part)])


def integers(column: Any, where: str, start: int) -> Array:
    """A chunked column of outcomes as whole numbers."""
    refuse_missing(column, where, "target", start)
    if pa.types.is_integer(column.type):
        return column.cast(pa.int64()).to_numpy()  # type: ignore[no-any-return]
    if pa.types.is_boolean(column.type):
        return column.to_numpy().astype(np.int64)  # type: ignore[no-any-return]
    values = column.cast(pa.float64()).to_numpy()
    odd = values != np.floor(values)
    if odd.any():
        row = int(np.argmax(odd))
        raise InputError(
            f"{where} must hold classes, as names or whole numbers; "
            f"row {start + row} holds {show(values[row])}.",
            argument="target",
            rows=(start + row,),
        )
    return values.astype(np.int64)  # type: ignore[no-any-return]


def coded(column: Any, where: str, argument: str, start: int) -> tuple[Array, list[str]]:
    """A chunked column of texts as codes into the texts it holds."""
    refuse_missing(column, where, argument, start)
    codes, texts = _codes(_as_text(column))
    return codes, [str(text) for text in texts]


def labels(column: Any, where: str, argument: str, start: int) -> Array:
    """A chunked column of labels of any kind: whole numbers stay, the rest becomes texts."""
    if pa.types.is_integer(column.type):
        refuse_missing(column, where, argument, start)
        return column.to_numpy()  # type: ignore[no-any-return]
    codes, texts = coded(column, where, argument, start)
    return np.array(texts or [""])[codes]


def groups(column: Any, where: str, start: int) -> Groups:
    """A chunked column of labels, coded, with the labels in order."""
    refuse_missing(column, where, "groups", start)
    whole = pa.types.is_integer(column.type)
    codes, texts = _codes(column if whole else _as_text(column))
    names = np.array(texts) if whole else np.array([str(text) for text in texts])
    order = np.argsort(names)
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return Groups(rank[codes], names[order])


def _codes(column: Any) -> tuple[Array, list[Any]]:
    column = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    whole = column.unify_dictionaries().combine_chunks()
    whole = whole.chunk(0) if isinstance(whole, pa.ChunkedArray) else whole
    codes = whole.indices.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
    return codes, whole.dictionary.to_pylist()


def _as_text(column: Any) -> Any:
    kind = column.type
    text = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_dictionary(kind)
    return column if text else column.cast(pa.string())
