"""Forecasts with their outcomes: checked for form at once, for numbers in the pass that scores them."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from verax.common.checks import check_choice, check_flag
from verax.errors import InputError, Offenders, Remedy, join, passing, show
from verax.inputs.arrays import (
    ONE_OUTPUT,
    Array,
    Columns,
    Floats,
    Ints,
    Namespace,
    by_column,
    is_relation,
    kind_of,
    move_like,
    namespace_of,
    same_rows,
    to_array,
    to_host,
    widen,
)
from verax.inputs.cumulative import monotone
from verax.inputs.groups import Groups, kinds_of
from verax.inputs.outcomes import SEVERAL_LABELS, Outcomes, check_classes, class_names, hold_shares
from verax.inputs.shares import Raters, Shares, one_class_needed
from verax.inputs.validity import MANY, Unity
from verax.kernels.statistics import Form

_RESCALE = passing("to rescale", normalize=True)
# This many steps in one direction are no chance.
_TELLING = 6
# The number of rows that are checked for it.
_LOOKED_AT = 4096
_ALL_CLASSES = passing("to rescale, if no class is missing", normalize=True)
# Rounding does not explain sums that are further below 1.
_ROUNDED = 1e-3
_PERCENTAGES = Remedy("These are percentages: divide them by 100.")
_SKIP = passing("to leave such rows out", invalid="skip")
_LOGITS = passing("if these are logits or log-probabilities", logits=True)


@dataclass(frozen=True, kw_only=True)
class _DenseBatch:
    """(n, K) probabilities in standard form, float weights or None.

    Probabilities from `logits` bring these along: their logarithms do not underflow. The rows are consecutive
    from `start`, unless `rows` has their numbers.
    """

    p: Array
    weights: Array | None
    groups: Array | None
    start: int
    n_classes: int
    unity: Unity
    xp: Namespace
    logits: Array | None = None
    rows: Ints | None = None

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return int(self.p.shape[0])


@dataclass(frozen=True, kw_only=True)
class Batch(_DenseBatch):
    """Rows in standard form whose outcomes are positions."""

    y: Array


@dataclass(frozen=True, kw_only=True)
class ShareBatch(_DenseBatch):
    """Rows in standard form whose outcomes are (n, K) shares of the classes."""

    shares: Array

    @property
    def y(self) -> Array:
        """Refuse: there is no single class."""
        raise one_class_needed()


@dataclass(frozen=True)
class Unread:
    """Consecutive rows as given, for a kernel that brings them to standard form itself.

    `p` is one contiguous (n, K) array, or a tuple of contiguous columns, of float64 or float32. Outcomes that
    are shares of the classes, or numbers of raters, are a contiguous (n, K) array; only the length of `y`
    matters then.
    """

    p: Any
    y: Ints
    weights: Floats | None
    shares: Array | None = None


class Forecasts:
    """Probabilities, outcomes and weights of N rows over K classes.

    Nothing is copied and no row is read here. `batch` brings rows to standard form, a slice at a
    time, so memory does not grow with N. A pass counts invalid rows on the way and calls `check`, which
    names them.

    Parameters
    ----------
    y : array_like of shape (N,) or (N, K)
        Outcomes: class positions 0..K-1, labels found in `classes`, one-hot rows, or the shares of the
        classes among several raters.
    p : array_like of shape (N, K) or (N,)
        Forecasts: probabilities of the K classes; for two classes, one column with those of class 1 is
        enough.
    classes : sequence of K labels, optional
        Names of the columns of `p`, in order; for ordered classes lowest first.
    weights : array_like of shape (N,), optional
        Importance weights of the rows, not negative, not all zero. Only their ratios matter.
    groups : array_like of shape (N,), or two of them, optional
        Labels of clusters (patients, sites) whose rows belong together and are resampled together.
    normalize : bool, default False
        Whether to divide each row of `p` by its sum first.
    logits : bool, default False
        Whether `p` holds logits; the softmax is applied first (to a single column the logistic function).
    ordered : bool, default False
        Whether an ordinal rule will be used, so that labels need an explicit order.
    first_row : int, optional
        The number of the first row, if these are a part of all rows: errors then number rows from it, and all
        weights may be zero.
    part : bool, default False
        Whether these are a part of all rows, which may have no row and no weight.
    raters : {"shares", "counts", "columns"}, optional
        What a 2-D `y` holds if not one-hot rows: shares of the classes, numbers of raters for each class, or
        the labels of one rater per column.
    invalid : {"raise"}, default "raise"
        What happens to invalid rows. Functions that skip them do so before making this object.

    Examples
    --------
    >>> import verax as vx
    >>> rows = vx.Forecasts(["cat", "dog"], [[0.8, 0.2], [0.4, 0.6]], classes=["cat", "dog"])
    >>> rows.check()
    >>> rows.n_rows, rows.n_classes, rows.batch(0, 2).y.tolist()
    (2, 2, [0, 1])
    """

    def __init__(
        self,
        y: object,
        p: object,
        *,
        classes: Sequence[Hashable] | None = None,
        weights: object | None = None,
        groups: object | None = None,
        normalize: bool = False,
        logits: bool = False,
        ordered: bool = False,
        first_row: int | None = None,
        part: bool = False,
        raters: Raters | None = None,
        invalid: Literal["raise", "skip"] = "raise",
    ) -> None:
        check_choice("invalid", invalid, ("raise",))
        if hasattr(p, "with_outcomes") and not isinstance(p, type):
            raise InputError(
                "must be full distributions here",
                argument="p",
                kind="type",
                found="top lists do not give the probability of every class",
            )
        raw, columns = to_array(p, "p")
        _check_form_of_p(raw)
        others = [(y, "y"), (weights, "weights")]
        if groups is not None:
            others += [(kind, "groups") for kind in kinds_of(groups)]
        for other, name in others:
            if not isinstance(other, Shares):
                same_rows(other, p, (name, "p"))
        normalize, logits = check_flag("normalize", normalize), check_flag("logits", logits)
        if normalize and logits:
            raise InputError("is for probabilities and cannot be combined with logits", argument="normalize")
        self._part = check_flag("part", part) or first_row is not None
        self._binary_column = raw.ndim == 1
        self.n_classes: int = 2 if self._binary_column else int(raw.shape[1])
        names = check_classes(_stated_order(y, columns) if classes is None else classes, self.n_classes)
        self._p = raw if names is None or columns is None else _align_columns(raw, columns, names)
        self._n_rows = int(raw.shape[0])
        self._normalize = normalize
        self._logits = logits
        self.outcomes: Outcomes | Shares = _outcomes_of(
            y,
            raters,
            raw,
            n_classes=self.n_classes,
            classes=names,
            columns=columns,
            ordered=check_flag("ordered", ordered),
            like=raw,
        )
        self.classes: tuple[Hashable, ...] | tuple[int, ...] | None = self.outcomes.classes
        self._check_lengths()
        self.weights: Array | None = None if weights is None else self._check_form_of_weights(weights)
        self.groups: Groups | None = None if groups is None else Groups.of(groups, self.n_rows)
        self._first_row = first_row
        self.xp: Namespace = namespace_of(raw)
        self.unity: Unity = Unity.of(raw)

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return self._n_rows

    @property
    def given(self) -> Array:
        """The forecasts as given, with columns in the order of the classes."""
        return self._p

    @property
    def logits(self) -> bool:
        """Whether the forecasts were given as logits."""
        return self._logits

    @property
    def as_given(self) -> bool:
        """Whether the forecasts as given are (N, K) probabilities or logits that need no rescaling."""
        return not (self._binary_column or self._normalize)

    @property
    def width(self) -> int:
        """The number of numbers per row."""
        return self.n_classes

    @property
    def shared(self) -> bool:
        """Whether outcomes are shares of the classes, not single classes."""
        return isinstance(self.outcomes, Shares)

    def _check_lengths(self) -> None:
        n, n_outcomes = self.n_rows, self.outcomes.n_rows
        if n == n_outcomes:
            if n == 0 and not self._part:
                raise InputError("must have at least one row", argument="p", kind="length")
            return
        remedies = []
        if _is_transposed(self._p) and self._p.shape[1] == n_outcomes:
            remedies = [Remedy("It seems to be transposed: pass p.T.", python_only=True)]
        elif self._p.ndim == 1 and n_outcomes == 1:
            remedies = [Remedy("For a single forecast pass [p].", python_only=True)]
        raise InputError(
            "must have one row per outcome",
            argument="p",
            kind="length",
            found=f"there are {n} rows and {n_outcomes} outcomes",
            remedies=remedies,
        )

    def _check_form_of_weights(self, weights: object) -> Array:
        raw, _ = to_array(weights, "weights")
        if kind_of(raw) not in ("real", "integer", "bool") or tuple(raw.shape) != (self.n_rows,):
            raise InputError(
                f"must be {self.n_rows} numbers, one per row",
                argument="weights",
                kind="length" if kind_of(raw) in ("real", "integer", "bool") else "type",
                found=f"the shape is {tuple(raw.shape)} and the type {raw.dtype}",
            )
        return raw

    def batch(self, start: int, stop: int) -> Batch | ShareBatch:
        """Rows `start` to `stop` in standard form; invalid values are passed on.

        Parameters
        ----------
        start : int
            The first row.
        stop : int
            The row after the last.

        Returns
        -------
        Batch
            The rows.
        """
        return self._in_standard_form(slice(start, stop), start, None)

    def batch_of(self, rows: Ints) -> Batch | ShareBatch:
        """The rows with these numbers, in standard form.

        Parameters
        ----------
        rows : array of int
            The numbers of the rows.

        Returns
        -------
        Batch
            The rows.
        """
        return self._in_standard_form(rows, int(rows[0]), rows)

    def shares(self, at: slice | Ints) -> Array:
        """The shares of the classes among the outcomes of some rows.

        Parameters
        ----------
        at : slice or array of int
            The rows.

        Returns
        -------
        array of shape (n, K)
            The shares.
        """
        if not isinstance(self.outcomes, Shares):
            raise TypeError("these outcomes are single classes")
        return self.outcomes.of(at)

    def _in_standard_form(self, at: slice | Ints, start: int, rows: Ints | None) -> Batch | ShareBatch:
        logits = self._logits_of(at) if self._logits else None
        common: dict[str, Any] = {
            "p": self.probabilities_of(at) if logits is None else softmax(logits, self.xp),
            "weights": None if self.weights is None else widen(move_like(self.weights[at], self._p)),
            "groups": None if self.groups is None else self.groups.codes[at],
            "start": start,
            "n_classes": self.n_classes,
            "unity": self.unity,
            "xp": self.xp,
            "logits": logits,
            "rows": rows,
        }
        if isinstance(self.outcomes, Shares):
            return ShareBatch(shares=self.outcomes.of(at), **common)
        return Batch(y=self.outcomes.positions_of(at), **common)

    @property
    def dtype(self) -> Any:
        """The type of the numbers as given."""
        return self._p.dtype

    @property
    def form(self) -> Form:
        """The form of the given numbers."""
        return "logits" if self._logits else "rescaled" if self._normalize else "probabilities"

    @property
    def binary(self) -> bool:
        """Whether each row has one number, that of class 1."""
        return bool(self._binary_column)

    @property
    def by_columns(self) -> bool:
        """Whether the numbers of each class, rather than of each row, lie side by side."""
        p = self._p
        apart = isinstance(p, Columns) or bool(p.ndim == 1)
        return apart or bool(p.strides[0] == p.itemsize and p.shape[0] > 1)

    def unread(self, start: int, stop: int) -> Unread:
        """Rows `start` to `stop` of NumPy arrays, not yet in standard form.

        Parameters
        ----------
        start : int
            The first row.
        stop : int
            The row after the last.

        Returns
        -------
        Unread
            The rows as given.
        """
        weights = None if self.weights is None else to_host(self.weights[start:stop])
        w = None if weights is None else np.ascontiguousarray(weights, np.float64)
        if isinstance(self.outcomes, Shares):
            shares = self.outcomes.unread(start, stop)
            # Shares have no single outcomes, and nobody reads these.
            return Unread(self.numbers(start, stop), np.empty(len(shares), np.int64), w, shares)
        return Unread(self.numbers(start, stop), self.outcomes.positions(start, stop), w)

    def numbers(self, start: int, stop: int) -> Any:
        """The forecasts of rows `start` to `stop` of NumPy arrays, as `Unread` has them.

        Parameters
        ----------
        start : int
            The first row.
        stop : int
            The row after the last.

        Returns
        -------
        array of shape (n, K), or tuple of arrays of shape (n,)
            The numbers as given.
        """
        p = self._p
        if p.ndim == 1:
            return (_readable(p[start:stop], p.dtype),)
        if isinstance(p, Columns):
            return tuple(_readable(column[start:stop], p.dtype) for column in p.columns)
        if self.by_columns:
            return tuple(_readable(p[start:stop, j], p.dtype) for j in range(self.n_classes))
        return _readable(p[start:stop], p.dtype)

    def batches(self, rows: int) -> Iterator[Batch | ShareBatch]:
        """All rows, some at a time.

        Parameters
        ----------
        rows : int
            The number of rows per batch; the last may have fewer.

        Yields
        ------
        Batch
            The next rows in standard form.
        """
        for start in range(0, self.n_rows, rows):
            yield self.batch(start, min(start + rows, self.n_rows))

    def probabilities_of(self, at: slice | Ints) -> Array:
        """The probabilities of some rows in standard form, without their outcomes.

        Parameters
        ----------
        at : slice or array of int
            The rows.

        Returns
        -------
        array of shape (n, K)
            The probabilities.
        """
        if self._logits:
            return softmax(self._logits_of(at), self.xp)
        p = self._p[at, ...]
        if self.as_given and self.xp is np and p.dtype in (np.float64, np.float32) and p.dtype.isnative:
            return p
        p = widen(p)
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            p = self.unity.both_classes(p, self.xp) if self._binary_column else p
            return _rescaled(p, self.xp) if self._normalize else p

    def _logits_of(self, at: slice | Ints) -> Array:
        z = widen(self._p[at, ...])
        return self.xp.stack([self.xp.zeros_like(z), z], axis=1) if self._binary_column else z

    def check(self) -> None:
        """Read every row and refuse invalid ones, naming the first."""
        for offenders in self.offenders():
            raise self._with_advice(offenders)
        if self.weights is not None and not self._part and not (to_host(self.weights) > 0).any():
            raise InputError("must not all be zero", argument="weights")

    def _with_advice(self, offenders: Offenders) -> InputError:
        """The error about some rows, with the advice to leave them out if they are few."""
        error = offenders.error(*(self.outcomes.remedies() if offenders.argument == "y" else ()))
        few = 0 < offenders.count <= self.n_rows * MANY and _SKIP not in error.remedies
        return error.replace(remedies=(*error.remedies, _SKIP)) if few else error

    def offenders(self) -> list[Offenders]:
        """Read every row: the broken requirements with the rows that break them; empty if all are valid."""
        finite = Offenders("p", "must be finite", "finite")
        sign = Offenders("p", "must not be negative", "sign", remedies=(_LOGITS,))
        total = Offenders(
            "p",
            f"rows must sum to 1 within {self.unity.tolerance:g}",
            "sum",
            verbs=("sums to", "sum to"),
            remedies=(_RESCALE,),
        )
        if self._logits:
            finite.requirement = "must hold logits that are finite or -inf, and at least one finite per row"
        elif self._binary_column:
            sign.requirement = "must hold probabilities of class 1 between 0 and 1"
            sign.remedies = (Remedy("Divide percentages by 100."), _LOGITS)
        elif self._normalize:
            total.requirement, total.remedies = "rows must have a positive, finite sum", ()
        outcome = self.outcomes.complaints()
        weight = Offenders("weights", "must be finite and not negative", "sign")
        offset = self._first_row or 0
        for batch in self.batches(4096):
            stop = batch.start + batch.n_rows
            given = to_host(widen(self._p[batch.start : stop, ...]))
            self._check_rows(given, to_host(batch.p), offset + batch.start, finite, sign, total)
            self.outcomes.judge(outcome, batch.start, stop, offset)
            if batch.weights is not None:
                w = to_host(batch.weights)
                weight.add(~(np.isfinite(w) & (w >= 0)), w, offset + batch.start)
        if _is_transposed(self._p):
            total.remedies = (Remedy("Its columns do: if it is transposed, pass p.T.", python_only=True),)
        elif total.remedies and (kind := _thresholds_in(self._p)) is not None:
            total.remedies = (kind,)
        elif total.remedies and _are_labels(getattr(self.outcomes, "raw", None)):
            total.remedies = (SEVERAL_LABELS, *total.remedies)
        elif total.remedies and all(abs(value - 100) < 2 for value in total.values):
            total.remedies = (_PERCENTAGES, _RESCALE)
        elif total.remedies and any(abs(value - 1) > 0.5 for value in total.values):
            total.remedies = (_RESCALE, _LOGITS)
        elif total.remedies and all(value < 1 - _ROUNDED for value in total.values):
            total.remedies = (_ALL_CLASSES,)
        broken = [candidate for candidate in (finite, sign, total, weight, *outcome) if candidate.count]
        for offenders in broken:
            offenders.so_far = self._first_row is not None
        return broken

    def _check_rows(
        self,
        given: Array,
        p: Array,
        start: int,
        finite: Offenders,
        sign: Offenders,
        total: Offenders,
    ) -> None:
        rows = given.reshape(given.shape[0], -1)
        bad = ~np.isfinite(rows)
        if self._logits:
            bad &= ~np.isneginf(rows)
        broken = bad.any(axis=1)
        finite.add(broken, rows[np.arange(len(rows)), bad.argmax(axis=1)], start)
        if self._logits:
            empty = np.isneginf(rows).all(axis=1) & ~broken
            finite.add(empty, rows, start)
            return
        low = rows.min(axis=1) < 0
        if self._binary_column:
            low = ~self.unity.holds(p)
        sign.add(low & ~broken, given if self._binary_column else rows.min(axis=1), start)
        if not self._binary_column:
            with np.errstate(over="ignore"):
                sums = rows.sum(axis=1)
            total.add(~self.unity.holds(p) & ~broken & ~low, sums, start)


def _thresholds_in(p: Array) -> Remedy | None:
    """The remedy for probabilities at thresholds: rows that all rise, or all fall, between 0 and 1.

    With two columns every row does one or the other, so a few rows prove nothing.
    """
    if p.ndim != 2 or p.shape[0] * (p.shape[1] - 1) < _TELLING:
        return None
    kind = monotone(to_host(widen(p[: min(_LOOKED_AT, p.shape[0]), ...])))
    if kind is None:
        return None
    call = "vx.from_cumulative(p)" if kind == "cumulative" else f'vx.from_cumulative(p, outputs="{kind}")'
    what = "P(Y <= k)" if kind == "cumulative" else "P(Y > k)"
    return Remedy(
        f"Every row is monotone: if it holds {what} at each threshold, pass {call}.", python_only=True
    )


def _readable(part: np.ndarray[Any, Any], dtype: Any) -> np.ndarray[Any, Any]:
    """A contiguous array for kernels, of one of two types, whether or not the caller's is writeable."""
    single = dtype == np.float32
    part = np.require(part, np.float32 if single else np.float64, ["C", "A"]).view()
    part.flags.writeable = False
    return part


def _outcomes_of(y: object, raters: Raters | None, p: Array, **options: Any) -> Outcomes | Shares:
    """The outcomes in any form; without `raters`, their values tell whether they are shares."""
    if isinstance(y, Shares):
        return y
    if raters is not None:
        check_choice("raters", raters, get_args(Raters))
        return Shares(y, raters, **options)
    return Shares(y, "shares", **options) if hold_shares(y, p) else Outcomes(y, **options)


def _check_form_of_p(p: Array) -> None:
    kind = kind_of(p)
    if kind not in ("real", "integer"):
        raise InputError("must hold real numbers", argument="p", kind="type", found=f"the type is {p.dtype}")
    if p.ndim == 1 or (p.ndim == 2 and p.shape[1] >= 2):
        return
    shape = tuple(int(n) for n in p.shape)
    if p.ndim != 2:
        raise InputError(
            "must have shape (N, K)",
            argument="p",
            kind="type",
            found=f"the shape is {shape}",
            remedies=[ONE_OUTPUT] if p.ndim == 3 else (),
        )
    raise InputError(
        "must have at least two classes",
        argument="p",
        kind="type",
        found=f"the shape is {shape}",
        remedies=[
            Remedy("For a binary problem pass one number per row: p[:, 0].", python_only=True),
        ],
    )


def _are_labels(y: Any) -> bool:
    """Whether outcomes have a column of 0 and 1 for each of several labels."""
    return getattr(y, "ndim", 1) == 2 and bool(np.isin(to_host(y[:1000, ...]), (0, 1)).all())


def _is_transposed(p: Array) -> bool:
    """Whether the columns of `p` sum to one and its rows do not."""
    if p.ndim != 2 or p.shape[0] * p.shape[1] > 2**20:
        return False
    host = to_host(widen(p[:, ...]))
    return bool(np.allclose(host.sum(axis=0), 1)) and not np.allclose(host.sum(axis=1), 1)


def _stated_order(y: object, columns: tuple[Any, ...] | None) -> list[Hashable] | None:
    """The order of an ordered categorical or an Enum, if the columns are named like its categories.

    It does not apply to unnamed columns: scikit-learn, for one, sorts them by label.
    """
    categories = _ordered_categories(y)
    if columns is None or categories is None:
        return None
    return categories if {str(c) for c in columns} == {str(c) for c in categories} else None


def _align_columns(p: Array, columns: tuple[Any, ...], names: tuple[Hashable, ...]) -> Array:
    """The columns of a frame in the order of `classes`, when the frame names the same classes."""
    columns = tuple(str(column) for column in columns)
    wanted = [str(name) for name in names]
    shared = set(columns) & set(wanted)
    if not shared or list(columns) == wanted:
        return p
    if shared != set(wanted):
        missing = sorted(set(wanted) - shared)
        raise InputError(
            "must have a column for every class or column names of its own",
            argument="p",
            kind="label",
            found=f"there is none for {join(missing[:6])}",
            values=missing,
        )
    return p[:, [columns.index(name) for name in wanted]]


def _rescaled(p: Array, xp: Namespace) -> Array:
    """Rows divided by their sum; NaN for rows with a negative value or without a positive, finite sum."""
    total = xp.sum(p, axis=1, keepdims=True)
    fits = (xp.min(p, axis=1, keepdims=True) >= 0) & (total > 0) & xp.isfinite(total)
    return xp.where(fits, p / total, xp.full_like(total, xp.nan))


def softmax(z: Array, xp: Namespace) -> Array:
    """The probabilities of rows of logits."""
    z = by_column(z)
    with np.errstate(invalid="ignore", over="ignore"):
        e = xp.exp(z - xp.max(z, axis=1, keepdims=True))
        return e / xp.sum(e, axis=1, keepdims=True)


def log_softmax(z: Array, xp: Namespace) -> Array:
    """The logarithms of the probabilities of rows of logits, however small these are."""
    z = by_column(z)
    z = z - xp.max(z, axis=1, keepdims=True)
    return z - xp.log(xp.sum(xp.exp(z), axis=1, keepdims=True))


def _ordered_categories(y: object) -> list[Hashable] | None:
    """The categories of a column whose type states their order, such as a DuckDB ENUM."""
    kinds: Any = getattr(y, "types", None) if is_relation(y) else None
    if kinds is not None and len(kinds) == 1 and kinds[0].id == "enum":
        return list(dict(kinds[0].children)["values"])
    dtype: Any = getattr(y, "dtype", None)
    ordered = getattr(dtype, "ordered", None) is True or type(dtype).__name__ == "Enum"
    return list(dtype.categories) if ordered and hasattr(dtype, "categories") else None


def new_rows(
    p: object,
    *,
    classes: Sequence[Hashable] | None = None,
    fitted: tuple[int, tuple[Hashable, ...] | None] | None = None,
    **how: Any,
) -> Forecasts:
    """Valid rows of `p`; refused unless their classes are those of the fit, by number and name."""
    raw, _ = to_array(p, "p")
    names = None if classes is None else class_names(classes)
    known = None if fitted is None else fitted[1]
    check_same_classes(names, known)
    names = known if names is None else names
    # Any outcome will do.
    first = names[0] if names else 0
    rows = Forecasts(
        np.repeat(np.array([first]), int(raw.shape[0]) if raw.ndim else 0), p, classes=names, **how
    )
    if fitted is not None and rows.n_classes != fitted[0]:
        raise other_classes(fitted[0], rows.n_classes)
    rows.check()
    return rows


def check_same_classes(names: tuple[Hashable, ...] | None, fitted: tuple[Hashable, ...] | None) -> None:
    """Refuse classes that differ from those of the fit, in names or order."""
    if names is not None and fitted is not None and names != fitted:
        raise InputError(
            "must be those of the rows that this was fitted to, in the same order",
            argument="classes",
            kind="label",
            found=f"these are {show(list(names))}, those {show(list(fitted))}",
            remedies=[Remedy("Leave `classes` out, and pass the columns in that order.", python_only=True)],
        )


def other_classes(fitted: int, given: int) -> InputError:
    """The error about rows with another number of classes."""
    return InputError(
        f"must have {fitted} classes, as the rows that this was fitted to",
        argument="p",
        kind="length",
        found=f"there are {given}",
        values=[given],
    )
