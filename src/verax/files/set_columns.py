"""Columns of prediction sets: one column that names the classes of each set, or a mask with one per class."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from verax.errors import InputError, Remedy, passing, show
from verax.files import arrow
from verax.files.arrow import ValueOrigin
from verax.files.predictions import Predictions
from verax.inputs.arrays import Bools, Ints
from verax.inputs.sets.rows import SetRows
from verax.inputs.sets.sets import Sets

# What separates the classes of a set in a text.
SEPARATOR = "|"
# What cells of a mask may hold, as texts.
_MEMBERS = {"1": 1, "1.0": 1, "true": 1, "0": 0, "0.0": 0, "false": 0}
_INVALID = 2


def set_rows_of(batch: Predictions, *, ordered: bool) -> SetRows:
    """The sets of a part of a file, ready to be judged."""
    options: dict[str, Any] = {"weights": batch.weights, "groups": batch.groups, "part": True}
    try:
        return sets_of(batch).with_outcomes(batch.outcomes, ordered=ordered, **options)
    except InputError as error:
        raise error.replace(source=batch.path) from None


def sets_of(batch: Predictions) -> Sets:
    """The sets of rows of a file."""
    return Sets.from_mask(batch.p, classes=batch.classes)


class SetColumns:
    """Makes a mask of the columns of sets, a row per set and a column per class.

    Parameters
    ----------
    classes : tuple or None
        The names of the classes; None where sets hold positions.
    width : int
        The number of classes.
    texts : bool
        Whether all columns are texts, in which a blank cell is an empty set.
    """

    def __init__(self, classes: tuple[Hashable, ...] | None, width: int, *, texts: bool) -> None:
        self._classes, self._width, self._texts = classes, width, texts

    def mask(self, columns: Sequence[Any], places: Sequence[ValueOrigin]) -> Bools:
        """The sets of some rows; refuses the first that is none."""
        if len(columns) > 1:
            members = np.stack([self._members(column) for column in columns], axis=1)
            for j, (column, place) in enumerate(zip(columns, places, strict=True)):
                arrow.refuse_missing(column, place)
                wrong = members[:, j] == _INVALID
                if wrong.any():
                    at = int(np.argmax(wrong))
                    value = column[at].as_py()
                    raise place.refusal(
                        "must hold 0 and 1 only, to be a mask",
                        f"holds {show(value)}",
                        at=at,
                        value=value,
                        count=int(wrong.sum()),
                        remedies=[Remedy("For probabilities pass probs=... and a level.", python_only=True)],
                    )
            return members.astype(np.bool_)
        column, place = self._filled(columns[0]), places[0]
        arrow.refuse_missing(column, place)
        row, member, values = self._named(column, place)
        unknown = np.flatnonzero(member < 0)
        if len(unknown):
            label = values[int(unknown[0])].as_py()
            raise place.refusal(
                f"must name classes that are known ({self._known()})",
                f"names {show(label)}",
                at=int(row[unknown[0]]),
                value=label,
                kind="label",
                count=len(np.unique(row[unknown])),
                remedies=[passing("with all classes in order, if some are missing", classes=...)],
            )
        again = self._repeated(row, member)
        if again.any():
            at = int(np.argmax(again))
            raise place.refusal(
                "must name every class once",
                f"holds {show(column[at].as_py())}",
                at=at,
                kind="label",
                count=int(again.sum()),
            )
        mask = np.zeros((len(column), self._width), np.bool_)
        mask[row, member] = True
        return mask

    def unusable(self, columns: Sequence[Any], place: ValueOrigin) -> Bools:
        """The rows whose sets are missing, or name unknown classes or one twice."""
        if len(columns) > 1:
            return np.asarray(np.any([self._members(column) == _INVALID for column in columns], axis=0))
        column = self._filled(columns[0])
        bad = np.array(arrow.missing(column))
        there = np.flatnonzero(~bad)
        row, member, _ = self._named(column.take(there), place)
        bad[there[np.unique(row[member < 0])]] = True
        bad[there[self._repeated(row, member, len(there))]] = True
        return bad

    def _filled(self, column: Any) -> Any:
        """The column, with an empty text for a blank cell of a file of texts."""
        if pa.types.is_null(column.type):
            column = column.cast(pa.string())
        return column.fill_null("") if self._texts and arrow.is_text(column.type) else column

    def _members(self, column: Any) -> Ints:
        """1 for members of a set, 0 for others; _INVALID where a cell says neither."""
        codes, values = _coded(arrow.plain(column))
        kinds = [_MEMBERS.get(str(value).strip().lower(), _INVALID) for value in values]
        return np.array([*kinds, _INVALID])[codes]

    def _named(self, column: Any, place: ValueOrigin) -> tuple[Ints, Ints, Any]:
        """The row and the class of each member, -1 for unknown classes; and the members themselves."""
        column = arrow.plain(column)
        column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        whole = pa.types.is_integer(column.type)
        if arrow.is_text(column.type) or whole:
            texts = column.cast(pa.string()) if whole else pc.utf8_trim_whitespace(column)
            column = pc.split_pattern(texts, SEPARATOR)
            empty = view_of(pc.equal(texts, ""))
        elif any(fits(column.type) for fits in _LISTS):
            empty = np.zeros(len(column), np.bool_)
        else:
            raise place.refusal(
                "must hold sets: lists of classes, or texts such as a|b", f"its type is {column.type}"
            )
        lengths = np.where(empty, 0, arrow.view(pc.list_value_length(column)))
        values = column.filter(pa.array(~empty)).flatten()
        if arrow.is_text(values.type):
            values = pc.utf8_trim_whitespace(values)
        codes, names = _coded(values)
        table = np.array([*(self._place(name) for name in names), -1])
        return np.repeat(np.arange(len(lengths)), lengths), table[codes], values

    def _place(self, name: object) -> int:
        """The position of a class by its name, or by itself where it is one."""
        text = str(name)
        if self._classes is not None:
            names = [str(class_name) for class_name in self._classes]
            if text in names:
                return names.index(text)
            if any(class_name.removeprefix("-").isdecimal() for class_name in names):
                return -1
        return int(text) if text.isdecimal() and int(text) < self._width else -1

    def _repeated(self, row: Ints, member: Ints, n: int | None = None) -> Bools:
        """The rows that name a class twice."""
        known = member >= 0
        keys, counts = np.unique(row[known] * self._width + member[known], return_counts=True)
        repeated = np.zeros(int(row.max(initial=-1)) + 1 if n is None else n, np.bool_)
        repeated[keys[counts > 1] // self._width] = True
        return repeated

    def _known(self) -> str:
        if self._classes is None:
            return f"positions from 0 to {self._width - 1}"
        return ", ".join(map(show, self._classes[:6])) + (", ..." if len(self._classes) > 6 else "")


_LISTS = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)


def view_of(mask: Any) -> Bools:
    """A mask of Arrow in which missing values are false."""
    return np.array(arrow.view(mask.fill_null(False)), np.bool_)


def _coded(column: Any) -> tuple[Ints, list[Any]]:
    """The codes of values and the different values; -1 where one is missing."""
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    coded = column.dictionary_encode()
    return np.asarray(arrow.view(coded.indices.fill_null(-1)), np.int64), coded.dictionary.to_pylist()
