"""From what the target column holds to outcomes that the library reads: which classes, in what order."""

from __future__ import annotations

import difflib
import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from verax.complaints import join, show
from verax.errors import InputError
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

    def integers(self, names: Sequence[str] | None) -> tuple[int, ...] | None:
        """What it holds for columns of these names, if that is whole numbers."""
        if self.boolean and names is not None and sorted(n.lower() for n in names) == ["false", "true"]:
            return tuple(int(name.lower() == "true") for name in names)
        return None if names is None else _integers(names)


@dataclass(frozen=True)
class Labels:
    """The classes, and how outcomes are found among them.

    Attributes
    ----------
    classes : what they are called, in the order of the columns; None where they are numbered only.
    keys : what the target holds for each of them; None where it holds positions.
    columns : the order in which the columns of the file are taken; None as they stand.
    """

    classes: tuple[Hashable, ...] | None
    keys: tuple[Hashable, ...] | None
    columns: tuple[int, ...] | None = None

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
        if self.keys is None or self.keys == self.classes:
            return values
        keys = np.array(self.keys, dtype=np.int64)
        order = np.argsort(keys)
        nearest = np.minimum(np.searchsorted(keys, values, sorter=order), len(keys) - 1)
        y = order[nearest]
        unknown = keys[y] != values
        if unknown.any():
            row = int(np.argmax(unknown))
            raise self._unknown(int(values[row]), row + start, where)
        return y

    def _named(self, y: Array) -> Array:
        """Positions, or the labels themselves where the classes are whole numbers."""
        if self.classes is not None and all(isinstance(c, int) for c in self.classes):
            return np.array(self.classes, dtype=np.int64)[y]
        return y

    def _unknown(self, label: Hashable, row: int, where: str) -> InputError:
        assert self.keys is not None
        names = [str(key) for key in self.keys]
        near = difflib.get_close_matches(str(label), names, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        shown = ", ".join(names[:6]) + (", ..." if len(names) > 6 else "")
        return InputError(
            f"{where} must hold classes ({shown}); row {row} holds {show(label)}.{hint}",
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
    if n_columns == 1:
        labels = _binary(target, names, request)
    elif request.classes is not None:
        labels = _given(target, names, request)
    else:
        labels = _named(target, names)
    if request.ordered:
        labels = _in_order(target, labels, request)
    return labels


def _given(target: Target, names: tuple[str, ...] | None, request: Request) -> Labels:
    """Classes that the caller names: they pick the columns of that name, or name columns that have none."""
    wanted = [str(c) for c in request.classes or ()]
    twice = [c for c in wanted if wanted.count(c) > 1]
    if twice:
        raise InputError(f"`classes` names {twice[0]!r} twice.", argument="classes")
    shared = set(wanted) & set(names or ())
    if names is not None and len(names) != len(wanted):
        raise InputError(
            f"`classes` must name all {len(names)} columns of probabilities ({_some(names)}); "
            f"it names {len(wanted)}.",
            argument="classes",
        )
    if names is not None and shared == set(names):
        columns = tuple(names.index(name) for name in wanted)
        numbers = _integers(wanted)
        if target.kind == TEXT:
            return Labels(numbers or tuple(wanted), tuple(wanted), columns)
        return Labels(numbers or tuple(wanted), target.integers(wanted), columns)
    numbered = names is None or _integers(names) is not None
    one_by_one = len(request.probs) > 1 and not any(set(name) & set("*?[") for name in request.probs)
    if names is not None and (shared or not (numbered or one_by_one)):
        unknown = next(name for name in wanted if name not in names)
        near = difflib.get_close_matches(unknown, [n for n in names if n not in wanted], n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise InputError(
            f"`classes` names {unknown!r}, and the columns of probabilities are {_some(names)}.{hint}",
            argument="classes",
        )
    # The columns are only numbered, or were listed one by one: the classes name them as they stand.
    numbers = _integers(wanted)
    if target.kind == TEXT:
        return Labels(numbers or tuple(wanted), tuple(wanted))
    if numbers:
        return Labels(numbers, numbers)
    return Labels(tuple(wanted), target.integers(names))


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
    numbers = _integers(names)
    if target.kind == INTEGER:
        return Labels(numbers or names, target.integers(names))
    if target.seen and not set(target.seen) & set(names):
        raise InputError(
            f"{target.name!r} holds {_some(target.seen)}, and the columns of probabilities are called "
            f"{_some(names)}. Pass classes=[...] in the order of the columns.",
            argument="classes",
        )
    return Labels(numbers or names, names)


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
    numbers = _integers(pair)
    if target.kind == INTEGER and numbers is None:
        return Labels(pair, None)
    return Labels(numbers or pair, numbers if target.kind == INTEGER else pair)


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
    if not all(re.fullmatch(r"-?\d{1,18}", str(name)) for name in names):
        return None
    numbers = tuple(int(name) for name in names)
    return numbers if len(set(numbers)) == len(numbers) else None


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _some(names: Sequence[str], limit: int = 6) -> str:
    return ", ".join(names[:limit]) + (", ..." if len(names) > limit else "") if names else "nothing"
