"""Outcomes that are distributions: shares of the classes, counts of raters, or the label of each rater.

The loss of a row is linear in its outcome: the mean loss over the raters. Functions that need one class per
row read a case as its classes, weighted by their shares (`inputs.rows`).
"""

from __future__ import annotations

from collections.abc import Hashable
from copy import copy
from typing import Any, Literal

import numpy as np

from verax.errors import InputError, Offenders, Remedy, passing
from verax.inputs.arrays import (
    Array,
    Floats,
    Ints,
    kind_of,
    move_like,
    to_array,
    to_host,
    widen,
)
from verax.inputs.groups import missing
from verax.inputs.outcomes import UNKNOWN, Outcomes, align_one_hot
from verax.inputs.validity import Unity

# What a two-dimensional `y` holds: shares of the classes, numbers of raters, or a column per rater.
Raters = Literal["shares", "counts", "columns"]
# A rater who did not label a case.
ABSENT = -2
# The types of numbers that kernels read as they are.
_READ = (np.float64, np.int64)


class Shares:
    """Outcomes of several raters, read as shares of the classes, a slice at a time.

    Parameters
    ----------
    y : array_like of shape (N, K) or (N, R)
        Shares or counts of the classes, or the labels of R raters.
    kind : {"shares", "counts", "columns"}
        Which of them.
    n_classes : int
        The number of classes.
    classes, columns, ordered, like
        As for `Outcomes`.
    """

    raw: np.ndarray[Any, Any]
    kind: Raters
    n_classes: int
    classes: tuple[Hashable, ...] | tuple[int, ...] | None

    def __init__(
        self,
        y: object,
        kind: Raters,
        *,
        n_classes: int,
        classes: tuple[Hashable, ...] | None,
        columns: tuple[Any, ...] | None,
        ordered: bool,
        like: Array,
    ) -> None:
        self.kind, self.n_classes, self._like = kind, n_classes, like
        raw, column_names = to_array(y, "y")
        self._check_shape(raw)
        self.raters: tuple[str, ...] | None = None
        self._labels: Outcomes | None = None
        if kind == "columns":
            raw = _with_gaps(raw)
            options: dict[str, Any] = {"classes": classes, "columns": columns, "ordered": ordered}
            self._labels = Outcomes(raw.reshape(-1), n_classes=n_classes, like=like, **options)
            self.classes = self._labels.classes
            self.raters = tuple(map(str, range(int(raw.shape[1])) if column_names is None else column_names))
        else:
            raw, self.classes = align_one_hot(raw, column_names, classes or columns), classes
        self.raw = raw
        self._unity = Unity.of(raw)

    @classmethod
    def of_codes(
        cls,
        codes: Ints,
        raters: tuple[str, ...],
        n_classes: int,
        classes: tuple[Hashable, ...] | None,
        like: Array,
    ) -> Shares:
        """From (N, R) class positions by raters with these names; negative for missing labels."""
        made = cls.__new__(cls)
        made.kind, made.n_classes, made._like = "columns", n_classes, like
        made.raw, made.raters, made.classes = np.asarray(codes), raters, classes
        made._labels, made._unity = None, Unity.at(64)
        return made

    @classmethod
    def of_numbers(
        cls, numbers: Array, kind: Raters, classes: tuple[Hashable, ...] | None, like: Array
    ) -> Shares:
        """From (N, K) shares or counts in the order of the classes."""
        k = int(numbers.shape[1])
        return cls(numbers, kind, n_classes=k, classes=classes, columns=None, ordered=False, like=like)

    def _check_shape(self, raw: Array) -> None:
        shape, wanted = tuple(int(n) for n in raw.shape), kind_of(raw)
        labels = self.kind == "columns"
        numbers = wanted in ("real", "integer", "bool")
        if raw.ndim == 2 and (labels or (shape[1] == self.n_classes and numbers)):
            return
        what = "a column for each rater" if labels else f"a number for each of the {self.n_classes} classes"
        raise InputError(
            f"must have {what}, with raters={self.kind!r}",
            argument="y",
            kind="type",
            found=f"the shape is {shape} and the type {raw.dtype}",
        )

    @property
    def n_rows(self) -> int:
        """The number of cases."""
        return int(self.raw.shape[0])

    @property
    def counts_from_one(self) -> bool:
        """Whether labels seem to be positions counted from 1."""
        return self._labels is not None and self._labels.counts_from_one

    def remedies(self) -> tuple[Remedy, ...]:
        """Remedies for invalid outcomes."""
        return () if self._labels is None else self._labels.remedies()

    # ---- what they are ---------------------------------------------------------------------

    def of(self, rows: slice | Ints) -> Array:
        """(n, K) shares of some rows, on the device of the forecasts; NaN without valid counts or labels."""
        if self.kind == "shares":
            return widen(move_like(self.raw[rows, ...], self._like))
        counts = self.counts_of(rows)
        assert counts is not None
        with np.errstate(invalid="ignore", divide="ignore"):
            return move_like(counts / counts.sum(axis=1, keepdims=True), self._like)

    def counts_of(self, rows: slice | Ints) -> Floats | None:
        """(n, K) numbers of raters, NaN in invalid rows; None if only shares are known."""
        if self.kind == "shares":
            return None
        if self.kind == "counts":
            counts = np.asarray(to_host(self.raw[rows, ...]), float)
            with np.errstate(invalid="ignore"):
                valid = (counts >= 0) & (counts < np.inf) & (np.floor(counts) == counts)
            return np.where(valid.all(axis=1, keepdims=True), counts, np.nan)
        codes = self.codes_of(rows)
        assert codes is not None
        n, k = len(codes), self.n_classes
        present = codes >= 0
        at = np.nonzero(present)[0] * k + codes[present]
        counts = np.bincount(at, minlength=n * k).reshape(n, k).astype(float)
        counts[(codes == UNKNOWN).any(axis=1)] = np.nan
        return counts

    @property
    def form(self) -> Literal["shares", "counts"]:
        """The content of `unread`: shares, or numbers of raters."""
        return "counts" if self.kind == "counts" else "shares"

    def unread(self, start: int, stop: int) -> np.ndarray[Any, Any]:
        """(n, K) shares or numbers of raters of consecutive rows in NumPy, in one piece of memory."""
        rows = slice(start, stop)
        given = self.of(rows) if self.kind == "columns" else self.raw[rows, ...]
        values = np.require(given, given.dtype if given.dtype in _READ else np.float64, ["C", "A"]).view()
        # One type for the compiler, whether or not the caller's array is writeable.
        values.flags.writeable = False
        return values

    def codes_of(self, rows: slice | Ints) -> Ints | None:
        """(n, R) class positions by each rater; ABSENT for missing labels, UNKNOWN for invalid ones.

        None if raters are not told apart.
        """
        if self.kind != "columns":
            return None
        given = self.raw[rows, ...]
        if self._labels is None:
            return np.where(given < 0, ABSENT, given)
        first = np.arange(self.n_rows)[rows] * given.shape[1]
        places = first[:, None] + np.arange(given.shape[1])
        codes = to_host(self._labels.positions_of(places.reshape(-1))).reshape(given.shape).astype(np.int64)
        codes[(codes < 0) | (codes >= self.n_classes)] = UNKNOWN
        return np.where(missing(given.reshape(-1)).reshape(given.shape), ABSENT, codes)

    def taken(self, rows: Ints) -> Shares:
        """The outcomes of some rows, as new outcomes."""
        some = copy(self)
        some.raw = np.asarray(to_host(self.raw[rows, ...]))
        if self._labels is not None:
            width = int(self.raw.shape[1])
            some._labels = self._labels.at((rows[:, None] * width + np.arange(width)).reshape(-1))
        return some

    def positions_of(self, rows: slice | Ints) -> Array:
        """Refuse: these outcomes are shares, not single classes."""
        raise one_class_needed()

    def positions(self, start: int, stop: int) -> Array:
        """Refuse: these outcomes are shares, not single classes."""
        raise one_class_needed()

    # ---- what is wrong with them -----------------------------------------------------------

    def complaints(self) -> list[Offenders]:
        """The requirements that may be broken, still without rows: valid values, a rater, a sum of 1."""
        if self.kind == "shares":
            values = Offenders("y", "must hold shares that are not negative", "sign")
            what = f"rows must sum to 1 within {self._unity.tolerance:g}"
            counts = Remedy("if these are numbers of raters", {"raters": "counts"}, python_only=True)
            return [values, Offenders("y", what, "sum", verbs=("sums to", "sum to"), remedies=(counts,))]
        nobody = Offenders("y", "must have at least one rater in every row", "missing")
        nobody.remedies = (passing("to leave such rows out", invalid="skip"),)
        if self.kind == "counts":
            return [Offenders("y", "must hold whole numbers of raters that are not negative", "sign"), nobody]
        labels = Offenders("y", "must hold classes", "label")
        return [labels if self._labels is None else self._labels.offenders(), nobody]

    def judge(self, complaints: list[Offenders], start: int, stop: int, offset: int) -> None:
        """Add the invalid ones of rows `start` to `stop`; `offset` is the number of the first row."""
        rows, place = slice(start, stop), offset + start
        values, rest = complaints
        if self.kind == "columns":
            codes, given = self.codes_of(rows), to_host(self.raw[rows, ...])
            assert codes is not None
            unknown = codes == UNKNOWN
            values.add(unknown.any(axis=1), given[np.arange(len(given)), unknown.argmax(axis=1)], place)
            rest.add((codes == ABSENT).all(axis=1), ["no label"] * len(given), place)
            return
        given = np.asarray(to_host(self.raw[rows, ...]), float)
        with np.errstate(invalid="ignore"):
            bad = ~((given >= 0) & (given < np.inf))
            if self.kind == "counts":
                bad |= np.floor(given) != given
        broken = np.asarray(bad.any(axis=1))
        values.add(broken, given[np.arange(len(given)), bad.argmax(axis=1)], place)
        sums = given.sum(axis=1)
        wrong = np.asarray(sums == 0) if self.kind == "counts" else ~self._unity.holds(given)
        rest.add(np.asarray(wrong & ~broken), sums, place)


def one_class_needed() -> InputError:
    """The error about outcomes of several raters in a function for one class per row."""
    return InputError(
        "must be one class per row here",
        argument="y",
        kind="type",
        found="the outcomes are shares of several classes",
        remedies=[Remedy("Use the class of each rater, with `groups` for the cases.", python_only=True)],
    )


def _with_gaps(raw: Array) -> np.ndarray[Any, Any]:
    """Labels that can express gaps: whole numbers among missing values become floats."""
    labels = np.ascontiguousarray(to_host(raw))
    if labels.dtype.kind != "O":
        return labels
    flat = labels.reshape(-1)
    absent = missing(flat)
    if all(isinstance(label, (int, np.integer)) for label in flat[~absent]) and not absent.all():
        numbers = np.full(flat.shape, np.nan)
        numbers[~absent] = flat[~absent].astype(float)
        return numbers.reshape(labels.shape)
    flat = flat.copy()
    flat[absent] = None
    return flat.reshape(labels.shape)
