"""From what the target column holds to outcomes that the library reads: which classes, in what order."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from verax.common.caching import cached_property
from verax.errors import InputError, Kind, Remedy, join, passing, show
from verax.files.arrow import ValueOrigin, not_whole
from verax.inputs.reading import Reading

Array = np.ndarray[Any, Any]

INTEGER, TEXT = "integer", "text"
_TRUTH = {"true": 1, "false": 0}
# Labels that are whole numbers so near to each other are looked up in a table.
_SPAN = 2**16


@dataclass(frozen=True)
class Target:
    """What is known of the target before it is read.

    Attributes
    ----------
    name : str
        The column.
    kind : str
        INTEGER or TEXT.
    seen : tuple[str, ...]
        Some of the texts it holds, in the order of their first appearance or of its dictionary.
    ordered : bool
        Its dictionary says that its categories have an order, that of `seen`.
    boolean : bool
        It holds true and false, which are 1 and 0.
    cells : bool
        It is a column of a CSV file, where `01` is not 1.
    """

    name: str
    kind: str
    seen: tuple[str, ...] = ()
    ordered: bool = False
    boolean: bool = False
    cells: bool = False

    @classmethod
    def of_cells(cls, name: str, seen: Sequence[str]) -> Target:
        """The target of a CSV file, whose cells do not say whether they are numbers.

        >>> Target.of_cells("y", ["0", "2.0"]).kind, Target.of_cells("y", ["01", "1"]).kind
        ('integer', 'text')
        """
        if seen and all(text.lower() in _TRUTH for text in seen):
            return cls(name, INTEGER, tuple(seen), boolean=True, cells=True)
        whole = bool(seen) and all(_whole(text) is not None for text in seen)
        return cls(name, INTEGER if whole else TEXT, tuple(seen), cells=True)

    def integers(self, names: Sequence[str] | None) -> tuple[int | None, ...] | None:
        """What it holds for classes of these names, if any of them is a number; None for positions.

        A class such as the X of 1, X and 2 has no number, so no whole number is ever read as it.
        """
        if names is None:
            return None
        truth = tuple(_TRUTH.get(name.lower()) for name in names)
        if self.boolean and any(value is not None for value in truth):
            return tuple(None if truth.count(value) > 1 else value for value in truth)
        if not any(_number(name) is not None for name in names):
            return None
        numbers = None if self.cells else _numbers(names)
        return numbers or tuple(_integer(name) for name in names)


@dataclass(frozen=True)
class ClassLabels:
    """The classes, and how outcomes are found among them.

    Attributes
    ----------
    target : Target
    classes : tuple[Hashable, ...] | None
        What they are called, in the order of the columns; None where they are numbered only.
    names : tuple[str, ...] | None
        What texts in the target call each of them; None where the target holds positions.
    keys : tuple[int | None, ...] | None
        What whole numbers in the target call each of them, None for a class that they cannot name; None
        where the target holds texts or positions.
    columns : tuple[int, ...] | None
        The order in which the columns of the file are taken; None as they stand.
    renamed : tuple[str, ...]
        What columns were called that the caller calls otherwise; empty where nothing was renamed.
    """

    target: Target
    classes: tuple[Hashable, ...] | None
    names: tuple[str, ...] | None
    keys: tuple[int | None, ...] | None = None
    columns: tuple[int, ...] | None = None
    renamed: tuple[str, ...] = ()

    @property
    def outcomes_are(self) -> str:
        """What the target holds: "names" or "positions"."""
        return "positions" if self.names is None else "names"

    @cached_property
    def _by_text(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.names or ())}

    @cached_property
    def _by_number(self) -> dict[int, int]:
        if self.names is None:
            return {i: i for i in range(len(self.classes or ()))}
        return {key: i for i, key in enumerate(self.keys or ()) if key is not None}

    def encode_texts(self, codes: Array, texts: Sequence[str], place: ValueOrigin) -> Array:
        """Outcomes from codes into `texts`, which may have more than the classes."""
        y = self.positions(codes, texts)
        if len(y) and y.min() < 0:
            at = int(np.argmin(y))
            raise self.unknown(texts[codes[at]], at, place, int((y < 0).sum()))
        return self._named(y)

    def positions(self, codes: Array, texts: Sequence[str]) -> Array:
        """The positions of classes from codes into `texts`; -1 where a text names none."""
        table = np.array([self._find(text) for text in texts], dtype=np.int64)
        return table[codes] if len(table) else np.zeros(0, np.int64)

    def _find(self, text: str) -> int:
        """The position of the class that a text names; -1 if it names none."""
        if text in self._by_text:
            return self._by_text[text]
        if self.target.kind == TEXT:
            return -1
        number = _TRUTH.get(text.lower()) if self.target.boolean else _whole(text)
        return -1 if number is None else self._by_number.get(number, -1)

    def encode_integers(self, values: Array, place: ValueOrigin) -> Array:
        """Outcomes from whole numbers: positions as they are, labels by looking them up."""
        if self.classes is None:
            return values
        y = self.positions_of(values)
        if len(y) and y.min() < 0:
            first = int(np.argmin(y))
            raise self.unknown(int(values[first]), first, place, int((y < 0).sum()))
        return self._named(y)

    def positions_of(self, values: Array) -> Array:
        """The positions of classes that whole numbers name; -1 where one names none."""
        if self.classes is None:
            return values
        known = self._by_number
        keys = np.array(sorted(known), dtype=np.int64)
        places = np.array([known[key] for key in sorted(known)], dtype=np.int64)
        if not len(keys):
            return np.full(len(values), -1)
        low, high = int(keys[0]), int(keys[-1])
        if high - low < _SPAN and len(values) > len(keys):
            inside = low <= int(values.min()) and int(values.max()) <= high
            if inside and values.dtype.kind == "i" and known == {i: i for i in range(len(keys))}:
                return values
            table = np.full(high - low + 1, -1)
            table[keys - low] = places
            if inside:
                return np.asarray(table[values - low])
            outside = (values < low) | (values > high)
            return np.where(outside, -1, table[np.where(outside, low, values) - low])
        at = np.minimum(np.searchsorted(keys, values), len(keys) - 1)
        return np.where(keys[at] == values, places[at], -1)

    def _named(self, y: Array) -> Array:
        """Positions, or the labels themselves where any class is a number, which could be a position."""
        if self.names is None or not any(_number(str(c)) is not None for c in self.classes or ()):
            return y
        classes = self.classes or ()
        if classes == tuple(range(len(classes))):
            return y
        whole = all(isinstance(c, int) for c in classes)
        return np.array(classes if whole else [str(c) for c in classes])[y]

    def positions_where_whole(self, values: Array) -> Array:
        """The same for numbers of any kind; -1 also where one is not whole."""
        odd = not_whole(values) if values.dtype.kind in "fu" else np.zeros(len(values), np.bool_)
        whole = np.where(odd, -1, values).astype(np.int64)
        positions = self.positions_of(whole)
        return np.where(odd, -1, positions)

    def unknown(self, label: int | str, at: int, place: ValueOrigin, count: int) -> InputError:
        """The error about `count` labels that are none of the classes, of which this is the first."""
        if self.names is None:
            return self._no_position(label, at, place, count)
        names, remedies = list(self.names), []
        if self.keys is not None and None in self.keys:
            names = [str(c) for c in self.classes or ()]
            remedies = [
                passing("that list the columns and their labels in the same order", probs=..., classes=...)
            ]
        elif isinstance(label, str) and label.strip() in names:
            remedies = [Remedy("Remove the blanks around it.")]
        elif str(label) == "-1" and names == ["0", "1"]:
            remedies = [passing("for labels of -1 and 1", classes=[-1, 1])]
        else:
            near = difflib.get_close_matches(str(label), names, n=1)
            remedies = [Remedy(f"Did you mean {show(name)}?") for name in near]
        return place.refusal(
            f"must hold classes ({_some(names)})",
            f"holds {show(label)}",
            at=at,
            value=label,
            kind="label",
            count=count,
            remedies=remedies,
        )

    def _no_position(self, label: int | str, at: int, place: ValueOrigin, count: int) -> InputError:
        """The error about a label that is no position of a class."""
        if self.classes is None:
            return place.refusal(
                "must hold positions of classes", f"holds {show(label)}", at=at, kind="label", count=count
            )
        names = [str(c) for c in self.classes or ()]
        n = len(names)
        number = _whole(label) if isinstance(label, str) else label
        remedy = passing("(the labels in the order of the columns)", classes=...)
        if number == n:
            counted = [*range(1, n + 1)] if n <= 12 else [1, 2, ..., n]
            remedy = passing("if the labels count from 1", classes=counted)
        return place.refusal(
            f"holds whole numbers, which must be the positions 0 to {n - 1} of the classes ({_some(names)})",
            f"holds {show(label)}",
            at=at,
            value=label,
            kind="label",
            count=count,
            remedies=[remedy],
        )


def find_labels(
    target: Target, names: tuple[str, ...] | None, n_columns: int | None, request: Reading, where: str
) -> ClassLabels:
    """The classes of a file, from the names of its columns, its target, and what the caller says.

    Parameters
    ----------
    target : Target
    names : tuple[str, ...] | None
        Those of the columns of probabilities; None where they have none.
    n_columns : int | None
        How many columns there are; 1 for the probability of one of two classes; None where only reading
        will tell.
    request : Reading
    where : str
        The file, for messages.
    """
    if target.kind == INTEGER:
        names = None if names is None else _plain(names)
        if request.names is not None:
            request = replace(request, classes=_plain([str(c) for c in request.names]))
    try:
        if n_columns == 1:
            labels = _binary(target, names, request)
        elif request.names is not None or request.positive is not None:
            request = _with_positive(names, n_columns, request)
            labels = _given(target, names, n_columns, request)
        else:
            labels = _by_columns(target, names)
        return _in_order(target, labels, request) if request.ordered else labels
    except InputError as error:
        raise error.replace(source=where) from None


def _refusal(
    requirement: str, argument: str, found: str, *remedies: Remedy, kind: Kind = "value"
) -> InputError:
    return InputError(requirement, argument=argument, kind=kind, found=found, remedies=remedies)


def _with_positive(names: tuple[str, ...] | None, n_columns: int | None, request: Reading) -> Reading:
    """The request with the event, where one of two columns is that, as the second class."""
    positive = request.positive
    if positive is None:
        return request
    classes = names if request.names is None else tuple(str(c) for c in request.names)
    if n_columns not in (2, None) or (classes is not None and len(classes) != 2):
        raise _refusal("is for two classes", "positive", f"there are {n_columns} columns of probabilities")
    if classes is None or positive not in classes:
        known = "the columns have no names" if classes is None else f"the classes are {_some(classes)}"
        raise _refusal(
            "must be one of the classes",
            "positive",
            f"it is {show(positive)}, and {known}",
            passing("(both classes)", classes=[..., positive]),
            kind="label",
        )
    other = next(c for c in classes if c != positive)
    if request.names is not None and classes[1] != positive and not {*classes} == {*(names or ())}:
        raise _refusal(
            "must be the second class where columns are named by their order",
            "positive",
            f"the classes are {_some(classes)}",
            kind="order",
        )
    return replace(request, classes=(other, positive))


_STATE_ORDER = passing("(lowest first)", classes=...)


def _given(
    target: Target, names: tuple[str, ...] | None, n_columns: int | None, request: Reading
) -> ClassLabels:
    """Classes that the caller names: they pick the columns of that name, or name columns that have none."""
    wanted = [str(c) for c in request.names or ()]
    twice = next((c for i, c in enumerate(wanted) if c in wanted[:i]), None)
    if twice is not None:
        raise _refusal("must be different from each other", "classes", f"{show(twice)} is named twice")
    shared = set(wanted) & set(names or ())
    if n_columns is not None and n_columns != len(wanted):
        called = "" if names is None else f" ({_some(names)})"
        raise _refusal(
            f"must name all {n_columns} columns of probabilities{called}",
            "classes",
            f"{len(wanted)} classes are named",
            kind="length",
        )
    if names is not None and shared == set(names):
        return _labels(target, wanted, wanted, tuple(names.index(name) for name in wanted))
    listed = len(request.columns) > 1 and not any(set(name) & set("*?[") for name in request.columns)
    spoken = _spoken(wanted, names, listed)
    if names is None or (_integers(names) is not None and not shared):
        return _labels(target, wanted, spoken)
    folded, alike = [name.casefold() for name in names], [name.casefold() for name in wanted]
    if not shared and sorted(folded) == sorted(alike) and len(set(folded)) == len(folded):
        columns = tuple(folded.index(name) for name in alike)
        return replace(_labels(target, wanted, wanted, columns), renamed=tuple(names[i] for i in columns))
    if set(folded) & set(alike) and not listed:
        unknown = next(name for name in wanted if name not in names)
        near = difflib.get_close_matches(unknown, [n for n in names if n not in wanted], n=1)
        raise _refusal(
            f"must be names of the columns of probabilities ({_some(names)})",
            "classes",
            f"{show(unknown)} is none",
            *(Remedy(f"Did you mean {show(name)}?") for name in near),
            passing("in the same order to rename columns", probs=...),
            kind="label",
        )
    # Other names for the columns, in the order in which these stand or were listed.
    return replace(_labels(target, wanted, spoken), renamed=() if listed else names)


def _spoken(wanted: Sequence[str], names: Sequence[str] | None, listed: bool) -> Sequence[str] | None:
    """The names that whole numbers refer to: the classes given if any is a number, else the columns' own.

    Columns that were listed one by one beside their classes are referred to by their numbers only if all
    of them are numbers.
    """
    if any(_number(name) is not None for name in wanted):
        return wanted
    return None if names is None or (listed and _integers(names) is None) else names


def _labels(
    target: Target,
    wanted: Sequence[str],
    spoken: Sequence[str] | None,
    columns: tuple[int, ...] | None = None,
) -> ClassLabels:
    """Classes called `wanted`, to which whole numbers refer by the names `spoken`."""
    classes: tuple[Hashable, ...] = _integers(wanted) or tuple(wanted)
    if target.kind == TEXT:
        return ClassLabels(target, classes, tuple(wanted), None, columns)
    keys = target.integers(spoken)
    names = None if keys is None or spoken is None else tuple(spoken)
    return ClassLabels(target, classes, names, keys, columns)


def _by_columns(target: Target, names: tuple[str, ...] | None) -> ClassLabels:
    """Classes that are called like their columns."""
    if names is None:
        if target.kind == TEXT:
            raise _refusal(
                f"The outcomes in {show(target.name)} are texts and the probabilities have no names",
                "classes",
                f"the outcomes are {_some(target.seen)}",
                passing("in the order of the probabilities", classes=...),
                kind="order",
            )
        return ClassLabels(target, None, None)
    if target.kind == TEXT and target.seen and not set(target.seen) & set(names):
        blanks = any(label.strip() in names for label in target.seen)
        labels = [repr(label) if label != label.strip() else label for label in target.seen]
        raise _refusal(
            f"The outcomes in {show(target.name)} must match the column names ({_some(names)})",
            "classes",
            f"they are {_some(labels)}",
            Remedy("Remove the blanks around the labels.")
            if blanks
            else passing("(the labels in the order of the columns)", classes=...),
            kind="label",
        )
    return _labels(target, names, names)


def _binary(target: Target, names: tuple[str, ...] | None, request: Reading) -> ClassLabels:
    """One column: the probability of the second of two classes."""
    if request.names is not None:
        classes = tuple(str(c) for c in request.names)
        if len(set(classes)) != 2 or len(classes) != 2:
            raise _refusal(
                "must name two different classes, because there is one column of probabilities",
                "classes",
                f"it names {_some(classes)}",
                kind="length",
            )
        positive = request.positive or classes[1]
        if positive not in classes:
            raise _refusal(
                f"must be one of the classes {join(classes)}",
                "positive",
                f"it is {show(positive)}",
                kind="label",
            )
        pair = (next(c for c in classes if c != positive), positive)
    else:
        pair = _pair(target, names, request)
    return _labels(target, pair, pair)


def _pair(target: Target, names: tuple[str, ...] | None, request: Reading) -> tuple[str, str]:
    positive = request.positive
    if positive is None and names is not None and (target.kind == INTEGER or names[0] in target.seen):
        positive = names[0]
    if target.kind == INTEGER:
        if positive is None or _integer(positive) is None or positive == "1":
            return "0", "1"
        if positive == "0":
            return "1", "0"
        raise _refusal(
            f"There is one column of probabilities, of {show(positive)}: what is the other class called?",
            "classes",
            "",
            passing("(both classes)", classes=[..., positive]),
            kind="missing",
        )
    others = [label for label in target.seen if label != positive]
    if positive is None:
        raise _refusal(
            f"There is one column of probabilities, and {show(target.name)} holds {_some(target.seen)}: "
            "which of them is it about?",
            "positive",
            "",
            passing(positive=...),
            kind="missing",
        )
    if len(others) != 1 or positive not in target.seen:
        raise _refusal(
            f"There is one column of probabilities, of {show(positive)}, so {show(target.name)} must hold "
            "two classes",
            "classes",
            f"it holds {_some(target.seen)}",
            passing("(both classes)", classes=[..., positive]),
            kind="label",
        )
    return others[0], positive


def _in_order(target: Target, labels: ClassLabels, request: Reading) -> ClassLabels:
    """Labels whose order is known: given, that of numbers, or that of an ordered dictionary."""
    classes = labels.classes
    if request.names is not None or classes is None or len(classes) == 2:
        return labels
    texts = [str(c) for c in classes]
    numbers = [_number(text) for text in texts]
    if None not in numbers:
        if all(a < b for a, b in pairwise(numbers)):  # type: ignore[operator]
            return labels
        raise _refusal(
            "The classes must be in order", "classes", f"they are {_some(texts)}", _STATE_ORDER, kind="order"
        )
    if target.ordered and set(target.seen) == set(texts):
        columns = tuple(texts.index(name) for name in target.seen)
        return ClassLabels(target, target.seen, target.seen, None, columns)
    raise _refusal(
        "An ordinal score needs the order of the classes, which is never guessed",
        "classes",
        f"they are {_some(texts)}",
        _STATE_ORDER,
        kind="order",
    )


def _integers(names: Sequence[str]) -> tuple[int, ...] | None:
    """Names that are all whole numbers, as numbers; `01` is none, because it would not be called so again.

    >>> _integers(["2", "-1"]), _integers(["01", "02"])
    ((2, -1), None)
    """
    numbers = tuple(_integer(name) for name in names)
    whole = tuple(number for number in numbers if number is not None)
    return whole if len(set(whole)) == len(numbers) else None


def _integer(name: str) -> int | None:
    return int(name) if re.fullmatch(r"0|-?[1-9]\d{0,17}", name) else None


def _numbers(names: Sequence[str]) -> tuple[int, ...] | None:
    """Names that are all different whole numbers, also with leading zeros, as numbers."""
    if not all(re.fullmatch(r"-?\d{1,18}", name) for name in names):
        return None
    numbers = tuple(int(name) for name in names)
    return numbers if len(set(numbers)) == len(numbers) else None


def _whole(text: str) -> int | None:
    """The whole number that a cell holds, also written as 1.0 or 1e0; None for `01`, which is a text.

    >>> [_whole(text) for text in ("1", " 1", "1.0", "1.000e+00", "-0", "01", "1.5", "x")]
    [1, 1, 1, 1, 0, None, None, None]
    """
    text = text.strip()
    if not re.fullmatch(r"-?(0|[1-9]\d{0,17})(\.\d{0,30})?(e[+-]?\d{1,2})?", text, re.IGNORECASE):
        return None
    if text.lstrip("-").isdecimal():
        return int(text)
    number = float(text)
    return int(number) if number.is_integer() and abs(number) <= 2**53 else None


def _plain(names: Sequence[str]) -> tuple[str, ...]:
    """Names with whole numbers as such: a frame of floats calls its columns 0.0, 1.0, ...

    >>> _plain(["2.0", "0.0", "1.0"]), _plain(["1.0", "X"]), _plain(["1", "1.0"])
    (('2', '0', '1'), ('1', 'X'), ('1', '1.0'))
    """
    plain = tuple(re.sub(r"^(-?\d+)\.0+$", r"\1", name) for name in names)
    return plain if len(set(plain)) == len(plain) else tuple(names)


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _some(names: Sequence[str], limit: int = 6) -> str:
    return ", ".join(names[:limit]) + (", ..." if len(names) > limit else "") if names else "nothing"
