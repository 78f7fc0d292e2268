"""Outcomes: class positions, labels or one-hot rows, all read as positions, a slice at a time."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence, Set
from copy import copy
from typing import Any, Literal

import numpy as np

from verax.common.checks import is_whole
from verax.errors import InputError, Offenders, Remedy, passing, show
from verax.inputs.arrays import (
    Array,
    Ints,
    is_traced,
    kind_of,
    move_like,
    namespace_of,
    to_array,
    to_host,
    to_index,
)
from verax.inputs.groups import missing

# Marks an outcome not among the classes. Passes over the rows count these.
UNKNOWN = -1
SEVERAL_LABELS = Remedy(
    "For several labels at once, score label sets: vx.TopLists.from_label_probabilities(p, k).",
    python_only=True,
)
# Up to _MOST_HASHED classes, texts are looked up in a table by _DIGITS binary digits of a hash.
_MOST_HASHED, _DIGITS = 64, 12
# The number of rows that are looked up at a time, so that they fit in a cache.
_PIECE = 2**14
# Texts longer than this many words are compared as texts.
_MOST_WORDS = 32
# How many rows are asked at a time whether they hold shares.
_BLOCK = 2**16
# The number of rows that tell whether all forecasts are certain, as outcomes are.
_FIRST = 1000
# At the command line --raters names columns.
_SAID = Remedy("if these are the shares of raters", {"raters": "shares"}, python_only=True)


class LookUp:
    """Labels to positions: texts of fixed width by their bytes, numbers by binary search, others by hashing.

    >>> LookUp(("low", "high"))(np.array(["high", "low", "none"])).tolist()
    [1, 0, -1]
    """

    def __init__(self, classes: tuple[Hashable, ...]) -> None:
        self.classes = classes
        self._positions = {label: i for i, label in enumerate(classes)}
        # Tuples are names, not rows, so they stay objects and are looked up by hashing.
        plain = not any(isinstance(c, Iterable) and not isinstance(c, (str, bytes)) for c in classes)
        names = np.asarray(classes) if plain else np.empty(len(classes), np.object_)
        self._order = np.argsort(names) if names.dtype.kind in "iufUS" else None
        self._sorted = names if self._order is None else names[self._order]
        self._first: Any = classes[0] if names.dtype.kind in "iu" and _counts_up(names) else None
        self._by_width: dict[Any, _Words | None] = {}

    def __call__(self, y: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        if self._first == 0 and y.dtype.kind == "i":
            return y
        if self._first is not None and y.dtype.kind == "i":
            known = (y >= self._first) & (y < self._first + len(self.classes))
            return np.where(known, y - self._first, UNKNOWN)
        comparable = {"U": "U", "S": "S"}.get(self._sorted.dtype.kind, "iufb")
        if self._order is None or y.dtype.kind not in comparable:
            return self._by_hash(y)
        words = self._words(y.dtype) if y.dtype.kind in "US" else None
        if words is not None:
            return words(y)
        nearest = np.minimum(np.searchsorted(self._sorted, y), len(self.classes) - 1)
        return np.where(self._sorted[nearest] == y, self._order[nearest], UNKNOWN)

    def _words(self, dtype: np.dtype[Any]) -> _Words | None:
        if dtype not in self._by_width:
            self._by_width[dtype] = _Words.of(self.classes, dtype)
        return self._by_width[dtype]

    def _by_hash(self, y: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        values = y.tolist()
        try:
            try:
                return np.fromiter(map(self._positions.__getitem__, values), np.int64, y.size)
            except KeyError:
                return np.fromiter((self._positions.get(v, UNKNOWN) for v in values), np.int64, y.size)
        except TypeError:
            raise InputError(
                "must hold labels", argument="y", kind="type", found="some values are lists or the like"
            ) from None


class _Words:
    """Looks up texts of one width as whole numbers: a hash finds the only class that a text can be."""

    def __init__(self, names: np.ndarray[Any, Any], positions: Ints, factors: np.ndarray[Any, Any]) -> None:
        # Words that all classes share do not tell classes apart: they are compared once each.
        varies = (names != names[0]).any(axis=0)
        varies[0] |= not varies.any()
        self._shared = [(j, names[0, j]) for j in np.flatnonzero(~varies).tolist()]
        self._varying = [(j, factors[j], names[:, j].copy()) for j in np.flatnonzero(varies).tolist()]
        self._word, self._n_words, self._positions = names.dtype, names.shape[1], positions
        self._table = np.zeros(2**_DIGITS, np.int64)
        self._table[self._hash(names)] = np.arange(len(names))

    @classmethod
    def of(cls, classes: tuple[Hashable, ...], dtype: np.dtype[Any]) -> _Words | None:
        """The table for texts of a type; None for many classes or wide texts, or without a suitable hash."""
        size = next(n for n in (8, 4, 2, 1) if dtype.itemsize % n == 0)
        n_words = dtype.itemsize // size
        if len(classes) > _MOST_HASHED or not 0 < n_words <= _MOST_WORDS or not dtype.isnative:
            return None
        texts = np.array(classes)
        # A class that is longer than any text of this width cannot occur.
        positions = np.flatnonzero(texts.astype(dtype) == texts)
        names = texts[positions].astype(dtype).view(f"u{size}").reshape(len(positions), n_words)
        rng = np.random.default_rng(0)
        for _ in range(50 if len(positions) else 0):
            words = cls(names, positions, rng.integers(0, 2**63, n_words, np.uint64) * 2 + 1)
            if len(set(words._hash(names).tolist())) == len(names):
                return words
        return None

    def _hash(self, words: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        (first, factor, _), *others = self._varying
        total = words[:, first] * factor
        for j, factor, _ in others:
            total += words[:, j] * factor
        return np.asarray(total >> np.uint64(64 - _DIGITS))

    def __call__(self, y: np.ndarray[Any, Any]) -> Ints:
        words = np.ascontiguousarray(y).view(self._word).reshape(len(y), self._n_words)
        positions = np.empty(len(y), np.int64)
        for start in range(0, len(y), _PIECE):
            piece = words[start : start + _PIECE]
            candidates = self._table[self._hash(piece)]
            (first, _, names), *others = self._varying
            known = piece[:, first] == names[candidates]
            for j, _, names in others:
                known &= piece[:, j] == names[candidates]
            for j, word in self._shared:
                known &= piece[:, j] == word
            positions[start : start + _PIECE] = np.where(known, self._positions[candidates], UNKNOWN)
        return positions


def _counts_up(numbers: np.ndarray[Any, Any]) -> bool:
    return bool((np.diff(numbers) == 1).all())


def class_names(classes: Sequence[Hashable]) -> tuple[Hashable, ...]:
    """`classes` as a tuple of names."""
    if isinstance(classes, (str, bytes, Set)) or not isinstance(classes, Iterable):
        raise InputError(
            f"must be a list of names in the order of the columns, not a {type(classes).__name__}",
            argument="classes",
            kind="type",
        )
    # Not as an array, which would turn 1, 'tie' and 2 into texts.
    listed = classes if isinstance(classes, (list, tuple)) else to_host(to_array(classes, "classes")[0])
    if getattr(listed, "ndim", 1) != 1:
        raise InputError(
            "must be a list of names", argument="classes", kind="type", found=f"it is {show(classes)}"
        )
    return tuple(c.item() if isinstance(c, np.generic) else c for c in listed)


def check_classes(classes: Sequence[Hashable] | None, n_classes: int) -> tuple[Hashable, ...] | None:
    """`classes` as a tuple of `n_classes` different names, or None."""
    if classes is None:
        return None
    names = class_names(classes)
    if len(names) != n_classes:
        raise InputError(
            f"must name the {n_classes} columns of probabilities in order",
            argument="classes",
            kind="length",
            found=f"there are {len(names)} names",
        )
    try:
        different = len(set(names)) == len(names)
    except TypeError:
        raise InputError(
            "must be names that can be looked up",
            argument="classes",
            kind="type",
            found=f"it is {show(classes)}",
        ) from None
    if not different:
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(
            "must be different from each other",
            argument="classes",
            kind="label",
            found=f"{show(twice)} is there twice",
            values=[twice],
        )
    return names


def hold_shares(y: object, p: Array) -> bool:
    """Whether outcomes are (N, K) numbers, some of them strictly between 0 and 1."""
    if p.ndim != 2 or getattr(y, "ndim", 2) == 1 or is_traced(p):
        return False
    raw = to_array(y, "y")[0]
    if raw.ndim != 2 or kind_of(raw) != "real" or tuple(raw.shape) != tuple(p.shape) or is_traced(raw):
        return False
    n = int(raw.shape[0])
    blocks = (to_host(raw[start : min(start + _BLOCK, n), ...]) for start in range(0, n, _BLOCK))
    if not any(bool(((block > 0) & (block < 1)).any()) for block in blocks):
        return False
    first = to_host(p[:_FIRST, ...])
    if bool(((first == 0) | (first == 1)).all()):
        raise InputError(
            "must be the outcomes and come before the probabilities",
            argument="y",
            kind="type",
            found="the two seem to be swapped",
            remedies=[_SAID],
        )
    return True


class Outcomes:
    """The outcomes `y` in any form.

    With `classes`, values are looked up there; integers are positions if no class is a number.
    """

    raw: np.ndarray[Any, Any]

    def __init__(
        self,
        y: object,
        *,
        n_classes: int,
        classes: tuple[Hashable, ...] | None,
        columns: tuple[Any, ...] | None,
        ordered: bool,
        like: Array,
    ) -> None:
        self.raw, own_columns = to_array(y, "y")
        self.n_classes = n_classes
        self._like = like
        self._binary_column = like.ndim == 1
        if classes is None and kind_of(self.raw) == "object" and self.raw.ndim == 1:
            self.raw = _plain_integers(self.raw)
        kind = kind_of(self.raw)
        if kind == "complex" or kind == "other":
            raise InputError(
                "must be class positions, labels or one-hot rows",
                argument="y",
                kind="type",
                found=f"the type is {self.raw.dtype}",
            )
        if self.raw.ndim == 0:
            raise InputError(
                "must have one outcome per row",
                argument="y",
                kind="type",
                found="it is a single value",
                remedies=[Remedy("For a single forecast pass [y] and [p].", python_only=True)],
            )
        if self.raw.ndim == 2:
            self._check_one_hot_shape(kind)
            self.raw: Array = align_one_hot(self.raw, own_columns, classes or columns)
        elif self.raw.ndim > 2:
            raise InputError(
                "must be 1-D, or 2-D and one-hot",
                argument="y",
                kind="type",
                found=f"the shape is {self._shape}",
            )
        textual = kind == "text" or kind == "object"
        if classes is None and self.raw.ndim == 1:
            classes = self._names_for_text(columns, ordered) if textual else _numbered(columns, ordered, kind)
        elif classes is not None and not textual and self.raw.ndim == 1:
            _refuse_lookalikes(classes, kind, "classes")
        lookup = classes is not None and (textual or any(_is_number(c) for c in classes))
        self.classes = classes
        self._table = LookUp(classes) if lookup and classes is not None and self.raw.ndim == 1 else None
        self._exact = kind == "integer" or kind == "bool"

    @property
    def _shape(self) -> tuple[int, ...]:
        return tuple(int(n) for n in self.raw.shape)

    @property
    def n_rows(self) -> int:
        return self._shape[0]

    def _check_one_hot_shape(self, kind: str) -> None:
        if self._shape[1] == 1:
            raise InputError(
                "must be 1-D, or 2-D and one-hot",
                argument="y",
                kind="type",
                found="it has a single column",
                remedies=[Remedy("Pass y[:, 0].", python_only=True)],
            )
        if self._binary_column and kind == "real":
            raise InputError(
                "must be the outcomes and come before the probabilities",
                argument="y",
                kind="type",
                found="the two seem to be swapped",
            )
        if self._shape[1] != self.n_classes or kind in ("text", "object"):
            raise InputError(
                f"is 2-D, so its rows must be one-hot over the {self.n_classes} classes",
                argument="y",
                kind="type",
                found=f"the shape is {self._shape} and the type {self.raw.dtype}",
            )

    def _names_for_text(self, columns: tuple[Any, ...] | None, ordered: bool) -> tuple[Any, ...]:
        first = show(self.raw[0]) if self.n_rows else "nothing"
        if ordered:
            raise InputError(
                "holds labels, and an ordinal score needs their order, which is never guessed",
                argument="y",
                kind="order",
                found=f"row 0 holds {first}",
                remedies=[passing("lowest first, in the order of the columns of probabilities", classes=...)],
            )
        if columns is None:
            raise InputError(
                "holds labels, but the columns of probabilities have no names",
                argument="y",
                kind="order",
                found=f"row 0 holds {first}",
                remedies=[
                    passing("in the order of the columns of probabilities", classes=...),
                    Remedy(
                        "For one column, positive=... names its class in functions that take it.",
                        python_only=True,
                    ),
                    Remedy("For a scikit-learn model this is model.classes_.", python_only=True),
                ],
            )
        return columns

    @property
    def are_positions(self) -> bool:
        """Whether the given outcomes are integers that count the classes from 0."""
        return self._exact and self._table is None and self.raw.ndim == 1

    def positions(self, start: int, stop: int) -> Array:
        """Class positions of consecutive rows, on the device of the forecasts; UNKNOWN if not a class."""
        return self.positions_of(slice(start, stop))

    def positions_of(self, rows: slice | Ints) -> Array:
        """The same for any rows."""
        y = self._given(rows)
        if self._table is not None:
            y = self._table(to_host(y))
        y = move_like(y, self._like)
        xp = namespace_of(y)
        if y.ndim == 2:
            # Strict namespaces compare booleans with booleans only.
            y = to_index(y) if kind_of(y) == "bool" else y
            ones = y == 1
            clean = xp.all(ones | (y == 0), axis=1) & (xp.sum(to_index(ones), axis=1) == 1)
            return xp.where(clean, xp.argmax(to_index(ones), axis=1), UNKNOWN)
        if self._table is None and not self._exact:
            y = xp.where((y >= 0) & (y < self.n_classes) & (xp.floor(y) == y), y, UNKNOWN)
        # A copy of its own: it will be used as an index, and the caller's memory may change.
        return np.array(y, np.int64) if xp is np else to_index(y)

    def at(self, rows: Ints) -> Outcomes:
        """The outcomes of some rows, as given."""
        some = copy(self)
        some.raw = self._given(rows)
        return some

    def _given(self, rows: slice | Ints) -> Array:
        """Some rows as given. Strict namespaces refuse indices of another one."""
        xp = namespace_of(self.raw)
        if isinstance(rows, slice) or xp is np:
            return self.raw[rows, ...]
        return xp.take(self.raw, move_like(rows, self.raw), axis=0)

    def taken(self, rows: Ints) -> Array:
        """The class positions of some rows, as new outcomes."""
        return self.positions_of(rows)

    def offenders(self) -> Offenders:
        """An empty collection of offending rows, with the requirement for this form of `y`."""
        if self.raw.ndim == 2:
            required = "rows must be one-hot: a single 1 and otherwise 0"
            return Offenders("y", required, "label", remedies=(SEVERAL_LABELS,))
        if self._table is not None:
            names = ", ".join(show(c) for c in self._table.classes[:6])
            more = ", ..." if self.n_classes > 6 else ""
            return Offenders("y", f"must hold labels found in the classes ({names}{more})", "label")
        if self._binary_column:
            return Offenders(
                "y",
                "must be 0 or 1, because one-dimensional probabilities are those of class 1 of two",
                "label",
                remedies=(Remedy("For K classes pass probabilities of shape (N, K).", python_only=True),),
            )
        return Offenders("y", f"must hold class positions from 0 to {self.n_classes - 1}", "label")

    def complaints(self) -> list[Offenders]:
        """The requirements that outcomes may break, still without rows."""
        return [self.offenders()]

    def judge(self, complaints: list[Offenders], start: int, stop: int, offset: int) -> None:
        """Add the invalid ones of rows `start` to `stop`; `offset` is the number of the first row."""
        y = to_host(self.positions(start, stop))
        raw = to_host(self.raw[start:stop, ...])
        complaints[0].add((y < 0) | (y >= self.n_classes), raw, offset + start)

    @property
    def counts_from_one(self) -> bool:
        """Whether outcomes seem to be positions counted from 1."""
        if self._table is not None or self.raw.ndim == 2 or self._binary_column:
            return False
        y = to_host(self.raw)
        return bool(y.size and y.min() == 1 and y.max() == self.n_classes)

    def remedies(self) -> tuple[Remedy, ...]:
        """Remedies, among them the one for labels that count from 1, the commonest slip."""
        if self._table is not None or self.raw.ndim == 2 or self._binary_column:
            return ()
        if self.counts_from_one:
            classes = list(range(1, self.n_classes + 1))
            shift = Remedy("The labels seem to count from 1: subtract 1.", python_only=True)
            return shift, passing("if they do", classes=classes if len(classes) <= 20 else ...)
        return (passing("if these are labels", classes=...),)


def _plain_integers(y: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Python integers in an object array as integers; a missing value among them is refused."""
    values = y.tolist()
    if not any(isinstance(v, int) for v in values):
        return y
    absent = Offenders("y", "must have an outcome in every row", "missing")
    absent.add(missing(y), values, 0)
    if absent.count:
        raise absent.error()
    whole = all(isinstance(v, int) and abs(v) < 2**62 for v in values)
    return np.array(values, dtype=np.int64) if whole else y


def _numbered(columns: tuple[Any, ...] | None, ordered: bool, kind: str) -> tuple[int, ...] | None:
    """The names of columns, if they are whole numbers other than 0, 1, ...; outcomes then refer to them."""
    if columns is None:
        return None
    if tuple(map(str, columns)) != tuple(map(str, range(len(columns)))):
        _refuse_lookalikes(columns, kind, "columns")
    if not all(isinstance(c, bool) or is_whole(c) for c in columns):
        return None
    names = tuple(int(c) for c in columns)
    if names == tuple(range(len(names))):
        return None
    if ordered and list(names) != sorted(names):
        raise InputError(
            f"The columns of probabilities are called {', '.join(map(str, names))}, which states no order",
            argument="classes",
            kind="order",
            remedies=[passing("lowest first", classes=...)],
        )
    return names


def align_one_hot(y: Array, columns: tuple[Any, ...] | None, names: Sequence[Any] | None) -> Array:
    """The columns of a one-hot frame in the order of the classes that they name."""
    if columns is None or [str(c) for c in columns] == [str(i) for i in range(len(columns))]:
        return y
    if names is None:
        raise InputError(
            f"is a frame with columns {', '.join(map(str, columns[:4]))}, ..., "
            "but the columns of probabilities have no names",
            argument="y",
            kind="order",
            remedies=[passing("in the order of the columns of probabilities", classes=...)],
        )
    wanted = [str(name) for name in names]
    given = [str(name) for name in columns]
    if sorted(wanted) != sorted(given):
        raise InputError(
            f"must have a column for each class ({', '.join(wanted[:6])})",
            argument="y",
            kind="label",
            found=f"its columns are {', '.join(given[:6])}",
        )
    return y[:, [given.index(name) for name in wanted]]


# Texts for booleans, besides numbers.
_BOOLEAN_WORDS = frozenset({"true", "false", "t", "f", "yes", "no", "y", "n", "on", "off"})


def _refuse_lookalikes(classes: tuple[Hashable, ...], kind: str, who: Literal["classes", "columns"]) -> None:
    """Refuse numbers or booleans as outcomes beside classes whose names are texts of the same meaning.

    They may be positions or, among classes called '1', 'X' and '2' or 'True' and 'False', names.
    """
    texts = [c.strip().lower() for c in classes if isinstance(c, str)]
    digits = any(text.removeprefix("-").isdecimal() for text in texts)
    if not digits and not (kind == "bool" and _BOOLEAN_WORDS.intersection(texts)):
        return
    names = ", ".join(repr(c) for c in classes[:4]) + (", ..." if len(classes) > 4 else "")
    what = "booleans" if kind == "bool" else "numbers"
    named = "the classes are called" if who == "classes" else "the columns of probabilities are called"
    raise InputError(
        f"The outcomes are {what} and {named} {names}, which are texts: labels or positions?",
        argument="classes",
        kind="order",
        remedies=[
            Remedy("Pass labels as texts as well; for positions pass whole numbers and no names."),
            passing("as values of the same type as the outcomes", classes=...),
        ],
    )


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float, np.number, np.bool_))
