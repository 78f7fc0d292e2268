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

from verax.errors import InputError, join, show
from verax.files.predictions import Request

Array = np.ndarray[Any, Any]

INTEGER, TEXT = "integer", "text"


@dataclass(frozen=True)
class Target:
    """What is known of the target before it is read.

    Attributes
    ----------
    kind : INTEGER or TEXT.
    seen : some of the texts it holds, in the order of their first appearance or of its dictionary.
    ordered : its dictionary says that its categories have an order, that of `seen`.
    boolean : it holds true and false, which are 1 and 0.
    """

    name: str
    kind: str
    seen: tuple[str, ...] = ()
    ordered: bool = False
    boolean: bool = False

    def integers(self, names: Sequence[str] | None) -> tuple[int | None, ...] | None:
        """What it holds for classes of these names, if any of them is a number; None for positions.

        A class such as the X of 1, X and 2 has no number, so no whole number is ever taken for it.
        """
        if names is None:
            return None
        if self.boolean and sorted(n.lower() for n in names) == ["false", "true"]:
            return tuple(int(name.lower() == "true") for name in names)
        if not any(_number(name) is not None for name in names):
            return None
        return _integers(names) or tuple(_integer(name) for name in names)


@dataclass(frozen=True)
class Labels:
    """The classes, and how outcomes are found among them.

    Attributes
    ----------
    classes : what they are called, in the order of the columns; None where they are numbered only.
    keys : what the target holds for each of them; None where it holds positions. A key of None is
        that of a class which whole numbers cannot name.
    columns : the order in which the columns of the file are taken; None as they stand.
    renamed : what columns were called that the caller calls otherwise; empty where nothing was renamed.
    """

    classes: tuple[Hashable, ...] | None
    keys: tuple[Hashable, ...] | None
    columns: tuple[int, ...] | None = None
    renamed: tuple[str, ...] = ()

    @property
    def outcomes_are(self) -> str:
        """What the target holds: "names" or "positions"."""
        return "positions" if self.keys is None else "names"

    def encode_texts(self, codes: Array, texts: Sequence[str], where: str, start: int) -> Array:
        """Outcomes from codes into `texts`, which may have more than the classes."""
        assert self.keys is not None
        position = {str(key): i for i, key in enumerate(self.keys)}
        table = np.array([position.get(text, -1) for text in texts], dtype=np.int64)
        y = table[codes] if len(table) else np.zeros(0, np.int64)
        if len(y) and y.min() < 0:
            row = int(np.argmin(y))
            raise self._unknown(texts[codes[row]], row + start, where)
        return self._named(y)

    def encode_integers(self, values: Array, where: str, start: int) -> Array:
        """Outcomes from whole numbers: positions as they are, labels by looking them up."""
        if self.keys is None:
            self._check_positions(values, where, start)
            return values
        places = np.array([i for i, key in enumerate(self.keys) if key is not None], dtype=np.int64)
        keys = np.array([key for key in self.keys if key is not None], dtype=np.int64)
        order = np.argsort(keys)
        nearest = np.minimum(np.searchsorted(keys, values, sorter=order), max(0, len(keys) - 1))
        y = order[nearest] if len(keys) else np.zeros(len(values), np.int64)
        unknown = keys[y] != values if len(keys) else np.ones(len(values), np.bool_)
        if unknown.any():
            row = int(np.argmax(unknown))
            raise self._unknown(int(values[row]), row + start, where)
        return self._named(places[y])

    def _named(self, y: Array) -> Array:
        """Positions, or the labels themselves where any class is a number, which could be a position."""
        if self.classes is None or not any(_number(str(c)) is not None for c in self.classes):
            return y
        whole = all(isinstance(c, int) for c in self.classes)
        return np.array(self.classes if whole else [str(c) for c in self.classes])[y]

    def _check_positions(self, values: Array, where: str, start: int) -> None:
        if self.classes is None:
            return
        n = len(self.classes)
        wrong = (values < 0) | (values >= n)
        if not wrong.any():
            return
        row, names = int(np.argmax(wrong)), [str(c) for c in self.classes]
        numbers = ", ".join(map(str, range(1, n + 1))) if n <= 12 else f"1, 2, ..., {n}"
        remedy = (
            f"If the labels count from 1, pass classes=[{numbers}]."
            if values[row] == n
            else "Pass classes=[...], the labels in the order of the columns."
        )
        raise InputError(
            f"{where} holds whole numbers, which must be the positions 0 to {n - 1} of the classes "
            f"({_some(names)}); row {row + start} holds {values[row]}. {remedy}",
            argument="target",
            rows=(row + start,),
        )

    def _unknown(self, label: Hashable, row: int, where: str) -> InputError:
        assert self.keys is not None
        keys = [str(key) for key in self.keys if key is not None]
        if None in self.keys:
            hint = (
                " List the columns and what the labels call them, in one order: probs=... and classes=[...]."
            )
            keys = [str(c) for c in self.classes or ()]
        elif isinstance(label, str) and label.strip() in keys:
            hint = " Remove the blanks around it."
        else:
            near = difflib.get_close_matches(str(label), keys, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
        return InputError(
            f"{where} must hold classes ({_some(keys)}); row {row} holds {show(label)}.{hint}",
            argument="target",
            rows=(row,),
        )


def find_labels(
    target: Target, names: tuple[str, ...] | None, n_columns: int | None, request: Request
) -> Labels:
    """The classes of a file, from the names of its columns, its target, and what the caller says.

    Parameters
    ----------
    names : of the columns of probabilities; None where they have none.
    n_columns : how many columns there are; 1 for the probability of one of two classes; None where
        only reading will tell.
    """
    if target.kind == INTEGER:
        names = None if names is None else _plain(names)
        if request.classes is not None:
            request = replace(request, classes=_plain([str(c) for c in request.classes]))
    if n_columns == 1:
        labels = _binary(target, names, request)
    elif request.classes is not None:
        labels = _given(target, names, n_columns, request)
    else:
        labels = _named(target, names)
    if request.ordered:
        labels = _in_order(target, labels, request)
    return labels


def _given(target: Target, names: tuple[str, ...] | None, n_columns: int | None, request: Request) -> Labels:
    """Classes that the caller names: they pick the columns of that name, or name columns that have none."""
    wanted = [str(c) for c in request.classes or ()]
    twice = [c for c in wanted if wanted.count(c) > 1]
    if twice:
        raise InputError(f"`classes` names {twice[0]!r} twice.", argument="classes")
    shared = set(wanted) & set(names or ())
    if n_columns is not None and n_columns != len(wanted):
        called = "" if names is None else f" ({_some(names)})"
        raise InputError(
            f"`classes` must name all {n_columns} columns of probabilities{called}; it names {len(wanted)}.",
            argument="classes",
        )
    if names is not None and shared == set(names):
        return _labels(target, wanted, wanted, tuple(names.index(name) for name in wanted))
    listed = len(request.probs) > 1 and not any(set(name) & set("*?[") for name in request.probs)
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
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise InputError(
            f"`classes` names {unknown!r}, and the columns of probabilities are {_some(names)}.{hint} "
            "To rename columns, list them, too, in the same order: probs=...",
            argument="classes",
        )
    # Other names for the columns, in the order in which these stand or were listed.
    return replace(_labels(target, wanted, spoken), renamed=() if listed else names)


def _spoken(wanted: Sequence[str], names: Sequence[str] | None, listed: bool) -> Sequence[str] | None:
    """The names that whole numbers speak of: the classes given if any is a number, else the columns' own.

    Columns that were listed one by one beside their classes are spoken of by these numbers only if all
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
) -> Labels:
    """Classes called `wanted`, of which whole numbers speak by the names `spoken`."""
    keys = tuple(wanted) if target.kind == TEXT else target.integers(spoken)
    return Labels(_integers(wanted) or tuple(wanted), keys, columns)


def _named(target: Target, names: tuple[str, ...] | None) -> Labels:
    """Classes that are called like their columns."""
    if names is None:
        if target.kind == TEXT:
            raise InputError(
                f"{target.name!r} holds texts ({_some(target.seen)}) and the probabilities have no names. "
                "Pass classes=[...] in the order of the probabilities.",
                argument="classes",
            )
        return Labels(None, None)
    if target.kind == TEXT and target.seen and not set(target.seen) & set(names):
        blanks = any(label.strip() in names for label in target.seen)
        remedy = (
            "Remove the blanks around the labels."
            if blanks
            else "Pass classes=[...], the labels in the order of the columns."
        )
        held = [repr(label) if label != label.strip() else label for label in target.seen]
        raise InputError(
            f"{target.name!r} holds {_some(held)}, and the columns of probabilities are called "
            f"{_some(names)}. {remedy}",
            argument="classes",
        )
    return _labels(target, names, names)


def _binary(target: Target, names: tuple[str, ...] | None, request: Request) -> Labels:
    """One column: the probability of the second of two classes."""
    if request.classes is not None:
        classes = tuple(str(c) for c in request.classes)
        if len(classes) != 2:
            raise InputError(
                "There is one column of probabilities, so `classes` must name two classes; "
                f"it names {len(classes)}.",
                argument="classes",
            )
        positive = request.positive or classes[1]
        if positive not in classes:
            raise InputError(
                f"positive={positive!r} is none of the classes {join(classes)}.", argument="positive"
            )
        pair = (next(c for c in classes if c != positive), positive)
    else:
        pair = _pair(target, names, request)
    return _labels(target, pair, pair)


def _pair(target: Target, names: tuple[str, ...] | None, request: Request) -> tuple[str, str]:
    positive = request.positive
    if positive is None and names is not None and (target.kind == INTEGER or names[0] in target.seen):
        positive = names[0]
    if target.kind == INTEGER:
        if positive is None or not re.fullmatch(r"-?\d+", positive) or positive == "1":
            return "0", "1"
        if positive == "0":
            return "1", "0"
        raise InputError(
            f"There is one column of probabilities, of {positive!r}: what is the other class called? "
            f"Pass classes=[..., {positive}].",
            argument="classes",
        )
    others = [label for label in target.seen if label != positive]
    if positive is None:
        raise InputError(
            f"There is one column of probabilities, and {target.name!r} holds {_some(target.seen)}: "
            "which of them is it about? Pass positive=...",
            argument="positive",
        )
    if len(others) != 1 or positive not in target.seen:
        raise InputError(
            f"There is one column of probabilities, of {positive!r}, so {target.name!r} must hold "
            f"two classes; it holds {_some(target.seen)}. Pass classes=[..., {positive!r}].",
            argument="classes",
        )
    return others[0], positive


def _in_order(target: Target, labels: Labels, request: Request) -> Labels:
    """Labels whose order is known: given, that of numbers, or that of an ordered dictionary."""
    classes = labels.classes
    if request.classes is not None or classes is None or len(classes) == 2:
        return labels
    texts = [str(c) for c in classes]
    numbers = [_number(text) for text in texts]
    if None not in numbers:
        if all(a < b for a, b in pairwise(numbers)):  # type: ignore[operator]
            return labels
        raise InputError(
            f"The classes are called {_some(texts)}, which is no order. Pass classes=[...], lowest first.",
            argument="classes",
        )
    if target.ordered and set(target.seen) == set(texts):
        columns = tuple(texts.index(name) for name in target.seen)
        return Labels(target.seen, target.seen, columns)
    raise InputError(
        f"An ordinal score needs the order of the classes ({_some(texts)}), which is never guessed. "
        "Pass classes=[...], lowest first.",
        argument="classes",
    )


def _integers(names: Sequence[str]) -> tuple[int, ...] | None:
    """Names that are all whole numbers, as numbers."""
    numbers = tuple(_integer(name) for name in names)
    whole = tuple(number for number in numbers if number is not None)
    return whole if len(set(whole)) == len(numbers) else None


def _integer(name: str) -> int | None:
    return int(name) if re.fullmatch(r"-?\d{1,18}", name) else None


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
