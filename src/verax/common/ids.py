"""Ids of rows by their values: 7, 7.0, "7" and np.int64(7) are one id, "07" and "7" are two.

id_text(7.0) -> "7"                                  the canonical form of one id
by_value(column) -> whole numbers, or texts          that of a column
numbered([column, other]) -> [codes, codes], n       the same code for the same id
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from verax.common.hashing import label_hash, mixed, text_hashes
from verax.common.sorting import distinct_values
from verax.errors import InputError, Remedy, show

Array = np.ndarray[Any, Any]
# A whole number as NumPy, pandas and R write one that was stored as a float.
_FLOAT = re.compile(r"(0|-?[1-9]\d*)\.0")
# Longer texts of digits are not converted to integers; of more texts, equal ones are found by Arrow.
_DIGITS, _FEW = 18, 2**14
_WHOLE = re.compile(rf"0|[1-9][0-9]{{0,{_DIGITS - 1}}}")


def id_text(value: object) -> str:
    """The canonical form of an id, the same for all ways to write its value.

    >>> [id_text(value) for value in (7, 7.0, "7", np.int64(7), "7.0", "07", 0.5, True)]
    ['7', '7', '7', '7', '7', '07', '0.5', 'True']
    """
    if isinstance(value, str):
        whole = _FLOAT.fullmatch(value)
        return whole.group(1) if whole else value
    if isinstance(value, (float, np.floating)) and value == value and value.is_integer():
        return str(int(value))
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def id_of(values: Sequence[object]) -> str:
    """The id of a row from the values of its columns of ids; different values have different ids.

    >>> id_of(["p7"]), id_of(["p7", 2.0]), id_of(["a, b", "c"])
    ('p7', 'p7, 2', '"a, b", c')
    """
    if len(values) == 1:
        return id_text(values[0])
    texts = map(id_text, values)
    return ", ".join(json.dumps(text) if "," in text or '"' in text else text for text in texts)


def by_value(column: Any, argument: str = "ids", source: str = "") -> Array:
    """The ids of a column in canonical form: integers if all are whole numbers, otherwise texts.

    A column that has an id in two spellings is refused: two rows would become one.

    >>> by_value(np.array(["7", "8"])).tolist(), by_value(np.array([7.0, 8.5])).tolist()
    ([7, 8], ['7', '8.5'])
    """
    ids = np.asarray(column)
    if ids.dtype.kind == "i" or (ids.dtype.kind == "u" and (ids.itemsize < 8 or _small(ids))):
        return ids.astype(np.int64, copy=False)
    if ids.dtype.kind == "f" and len(ids) and bool((np.abs(ids) < 2.0**53).all()) and _whole(ids):
        return ids.astype(np.int64)
    if ids.dtype.kind == "O":
        ids = _of_objects(ids, argument, source)
    elif ids.dtype.kind != "U":
        ids = np.array([id_text(value) for value in ids.tolist()], str)
    whole = _integers(ids)
    if whole is None and _like_floats(ids):
        texts = np.array([id_text(text) for text in ids.tolist()], str)
        _refuse_joined(ids.tolist(), texts.tolist(), argument, source)
        whole, ids = _integers(texts), texts
    return ids if whole is None else whole


def _small(ids: Array) -> bool:
    return not len(ids) or int(ids.max()) < 2**63


def _whole(ids: Array) -> bool:
    return bool((ids == np.floor(ids)).all())


def _of_objects(ids: Array, argument: str, source: str) -> Array:
    """Ids of any Python types as texts."""
    values = ids.tolist()
    kinds = set(map(type, values))
    if kinds <= {str}:
        return ids.astype(str) if len(ids) <= _FEW else ids
    texts = [id_text(value) for value in values]
    if any(issubclass(kind, str) for kind in kinds):
        _refuse_joined(values, texts, argument, source)
    return np.array(texts, str)


def _refuse_joined(values: Sequence[Any], texts: Sequence[str], argument: str, source: str) -> None:
    """Refuse a column that writes an id as a number and as a text, or as 7 and 7.0 in texts."""
    first: dict[str, int] = {}
    for row, text in enumerate(texts):
        one, other = values[first.setdefault(text, row)], values[row]
        if one != other:
            rows = first[text], row
            raise InputError(
                "must write an id in one way",
                argument=argument,
                kind="label",
                source=source,
                found=f"row {rows[0]:,} has {show(one)} and row {rows[1]:,} has {show(other)}, "
                "which are one id by their value",
                rows=rows,
                values=[one, other],
                remedies=[
                    Remedy("If they are one case, write both alike. If they are two, prefix one: 'a-7'.")
                ],
            )


def _like_floats(texts: Array) -> bool:
    """Whether a text ends like a whole number that was stored as a float."""
    if texts.dtype.kind == "U":
        return bool(np.strings.endswith(texts, ".0").any())
    import pyarrow.compute as pc

    return bool(pc.any(pc.ends_with(_arrow(texts), ".0")).as_py())


def _integers(texts: Array) -> Array | None:
    """Texts that are all whole numbers, without signs and leading zeros, as integers; None for others."""
    if not len(texts) or not texts[0].isdecimal():
        return None
    if texts.dtype.kind != "U":
        import pyarrow as pa
        import pyarrow.compute as pc

        column = _arrow(texts)
        whole = pc.all(pc.match_substring_regex(column, rf"^({_WHOLE.pattern})$")).as_py()
        return column.cast(pa.int64()).to_numpy() if whole else None
    points = np.ascontiguousarray(texts).view(np.uint32).reshape(len(texts), -1)
    first, total = points[:, 0], np.zeros(len(texts), np.int64)
    if bool((first < ord("0")).any()):
        return None
    for place, column in enumerate(points.T):
        there = column > 0
        if not there.any():
            return total
        digit = column - np.uint32(ord("0"))
        # What is no digit wraps around to a large number. A zero may only stand alone.
        odd = bool((there & (digit > 9)).any()) or (place and bool((there & (first == ord("0"))).any()))
        if odd or place == _DIGITS:
            return None
        total = np.where(there, total * 10 + digit.astype(np.int64), total)
    return total


def _arrow(texts: Array) -> Any:
    """Texts as a column of Arrow."""
    import pyarrow as pa

    return pa.array(texts if texts.dtype.kind == "O" else texts.astype(object), pa.large_string())


def numbered(
    columns: Sequence[Any], argument: str = "ids", sources: Sequence[str] = ()
) -> tuple[list[Any], int]:
    """The ids of each column as codes from 0, the same for the same id, and the number of different ids.

    Codes are in the order of first appearance. `sources` name the columns in errors.

    >>> codes, n = numbered([[7, 8], ["8", "9", "7.0"]])
    >>> [column.tolist() for column in codes], n
    ([[0, 1], [1, 2, 0]], 3)
    """
    named = [*sources, *[""] * (len(columns) - len(sources))]
    ids = [by_value(column, argument, source) for column, source in zip(columns, named, strict=True)]
    filled = [column for column in ids if len(column)]
    whole = all(column.dtype.kind == "i" for column in filled)
    if not filled:
        codes: Any = np.zeros(0, np.int64)
    elif whole:
        codes = _as_seen(distinct_values(np.concatenate(filled))[1])
    else:
        codes = _text_codes([column.astype(str) if column.dtype.kind == "i" else column for column in filled])
    ends = np.cumsum([len(column) for column in ids])
    return np.split(codes, ends[:-1]), int(codes.max(initial=-1)) + 1


def _text_codes(columns: Sequence[Array]) -> Any:
    """Codes of the texts of all columns, in the order of first appearance."""
    if sum(map(len, columns)) <= _FEW:
        known: dict[str, int] = {}
        texts = (text for column in columns for text in column.tolist())
        return np.array([known.setdefault(text, len(known)) for text in texts], np.int64)
    import pyarrow as pa

    whole = pa.chunked_array([_arrow(column) for column in columns])
    return whole.combine_chunks().dictionary_encode().indices.to_numpy().astype(np.int64)


def _as_seen(codes: Any) -> Any:
    """Codes renumbered in the order of first appearance."""
    n = int(codes.max()) + 1
    first = np.empty(n, np.int64)
    first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    opens = np.zeros(len(codes), np.bool_)
    opens[first] = True
    rank = np.empty(n, np.int64)
    rank[codes[opens]] = np.arange(n)
    return rank[codes]


def id_hashes(column: Any) -> Any:
    """A 64-bit hash of each id, the same for all ways to write it, and in all parts of a column.

    >>> bool((id_hashes([7, 8]) == id_hashes(["7", "8.0"])).all())
    True
    """
    ids = by_value(column)
    if ids.dtype.kind == "i":
        return mixed(ids.astype(np.uint64))
    hashes = text_hashes(ids)
    # Other parts of the column may hold whole numbers only.
    rows = np.flatnonzero([_WHOLE.fullmatch(text) is not None for text in ids.tolist()])
    if len(rows):
        hashes[rows] = mixed(_integers(ids[rows].astype(str)).astype(np.uint64))  # type: ignore[union-attr]
    return hashes


def name_hash(label: object) -> int:
    """64 bits of the name of a group, or of the names of its two kinds, by their values.

    >>> name_hash(1) == name_hash("1") == name_hash(1.0), name_hash((1, "a")) == name_hash(("1", "a"))
    (True, True)
    """
    return label_hash(tuple(map(id_text, label)) if isinstance(label, tuple) else id_text(label))


def repeated(codes: Any) -> tuple[int, int] | None:
    """The rows of the first id that comes again, from codes; None if all are different.

    >>> repeated(np.array([0, 1, 2, 1, 0]))
    (1, 3)
    """
    if not len(codes) or int(np.bincount(codes).max()) < 2:
        return None
    first = np.full(int(codes.max()) + 1, -1, np.int64)
    first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    again = int(np.argmax(first[codes] != np.arange(len(codes))))
    return int(first[codes[again]]), again
