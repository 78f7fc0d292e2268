"""Sliding windows over series, never across a boundary."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from verax.common.caching import cached_property
from verax.common.checks import check_count
from verax.errors import InputError, Remedy, passing, show
from verax.inputs.arrays import Ints, to_array, to_host
from verax.inputs.groups import Groups


@dataclass(frozen=True, repr=False)
class Windows:
    """Windows of consecutive rows, each within one series.

    ``windows[i]`` selects windows by number, slice, mask or list, and copies only those.

    Attributes
    ----------
    starts : array of shape (n,)
        The first row of each window in the table; ``y[windows.starts]`` are its labels.
    series : array of shape (n,) or None
        The label of the series that each window is from; None if there were no labels.
    length : int
        Number of rows per window.
    step : int
        Number of rows from one window to the next.
    unused : int
        Number of requested rows in no window: ends, and stretches that are too short.

    Examples
    --------
    >>> import numpy as np
    >>> from verax.selection import sliding_windows
    >>> windows = sliding_windows(np.arange(6.0), 2)
    >>> len(windows), windows[1].tolist()
    (3, [2.0, 3.0])
    """

    _all: np.ndarray[Any, Any]
    starts: Ints
    series: np.ndarray[Any, Any] | None
    length: int
    step: int
    unused: int

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def shape(self) -> tuple[int, ...]:
        """(n, length, C), or (n, length) for a single channel given as a 1-D array."""
        return (len(self), *self._all.shape[1:])

    def __getitem__(self, which: Any) -> np.ndarray[Any, Any]:
        chosen: np.ndarray[Any, Any] = self._all[self.starts[which]]
        return chosen

    @cached_property
    def values(self) -> np.ndarray[Any, Any]:
        """All windows: a view that cannot be written to if they are evenly spaced, else a copy."""
        gaps = np.diff(self.starts)
        if not (gaps == self.step).all():
            return self._all[self.starts]
        return self._all[self.starts[0] :: self.step][: len(self)]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return np.array(self.values, dtype=dtype, copy=copy)

    @property
    def rows(self) -> Ints:
        """(n, length) the row of the table that each place in each window comes from."""
        return self.starts[:, None] + np.arange(self.length)

    def __repr__(self) -> str:
        several = "" if self.series is None else f", {len(np.unique(self.series)):,} series"
        return (
            f"Windows: {len(self):,} of {self.length} rows, a step of {self.step}{several}, "
            f"{self.unused:,} rows unused"
        )


def sliding_windows(
    x: object,
    length: int,
    *,
    overlap: float | None = None,
    step: int | None = None,
    series: object | None = None,
    rows: object | None = None,
) -> Windows:
    """Cut `x` into windows of `length` consecutive rows that never cross a boundary.

    Parameters
    ----------
    x : array_like of shape (T, C) or (T,)
        The channels of series, one row per moment, or one channel.
    length : int
        Number of rows per window.
    overlap : float, optional
        Share of a window shared with the next one, from 0 up to but not including 1; the
        step is length * (1 - overlap), rounded down, but at least 1. The default is none.
    step : int, optional
        The rows from one window to the next, instead of `overlap`.
    series : array_like of shape (T,), optional
        Labels of the series; a new one begins wherever the label changes.
    rows : array_like of int, optional
        Use only these rows, ascending. No window spans a missing row, so windows of disjoint sets of rows
        share none: cut blocks first (`HBlockSplit`), then windows in each part.

    Returns
    -------
    Windows
        The windows.

    Examples
    --------
    >>> import numpy as np
    >>> from verax.selection import sliding_windows
    >>> windows = sliding_windows(np.arange(12.0).reshape(6, 2), 2, series=list("aaabbb"))
    >>> windows.shape, windows.starts.tolist(), windows.series.tolist(), windows.unused
    ((2, 2, 2), [0, 3], ['a', 'b'], 2)
    >>> windows[0].tolist()
    [[0.0, 1.0], [2.0, 3.0]]
    """
    table = to_host(to_array(x, "x")[0])
    if table.ndim not in (1, 2):
        raise InputError(
            "must have shape (T, C) or (T,)", argument="x", kind="type", found=f"its shape is {table.shape}"
        )
    check_count("length", length)
    # What exceeds the table is as good as one row more, which integers of every size can be compared with.
    wanted, length = length, min(int(length), len(table) + 1)
    step = _step(length, overlap, step)
    labels = None if series is None else _labels(series, len(table))
    chosen = np.arange(len(table)) if rows is None else _chosen(rows, len(table))
    starts, unused = _starts(chosen, labels, length, min(step, length + len(table)))
    if not len(starts):
        raise InputError(
            "must fit into the series",
            argument="length",
            kind="length",
            found=f"no stretch of {len(chosen):,} rows is {show(wanted)} rows long",
            values=[wanted],
            remedies=[
                Remedy("Use shorter windows, or sort the table so that rows of a series are adjacent.")
            ],
        )
    views = np.lib.stride_tricks.sliding_window_view(table, length, axis=0)
    views = np.moveaxis(views, -1, 1)
    return Windows(views, starts, None if labels is None else labels[starts], length, step, unused)


def _starts(chosen: Ints, labels: np.ndarray[Any, Any] | None, length: int, step: int) -> tuple[Ints, int]:
    """The first rows of windows, and the number of rows in none."""
    new = np.diff(chosen) != 1
    if labels is not None:
        new |= labels[chosen[1:]] != labels[chosen[:-1]]
    firsts = np.concatenate([[0], np.flatnonzero(new) + 1])[: len(chosen)]
    lengths = np.diff(np.append(firsts, len(chosen)))
    counts = np.maximum(0, (lengths - length) // step + 1)
    number = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    starts = np.repeat(chosen[firsts], counts) + step * number
    # Rows between windows that do not touch are in none either.
    used = counts * min(length, step) + np.where(counts > 0, max(0, length - step), 0)
    return starts, int(len(chosen) - used.sum())


def _step(length: int, overlap: float | None, step: int | None) -> int:
    if overlap is not None and step is not None:
        raise InputError("must not be given together with an overlap", argument="step", values=[step])
    if step is not None:
        check_count("step", step)
        return int(step)
    share = 0.0 if overlap is None else overlap
    if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 <= share < 1:
        raise InputError(
            f"must be a share from 0 to below 1, not {show(overlap)}",
            argument="overlap",
            values=[overlap],
            remedies=[passing("for a number of rows", step=...)],
        )
    # 10 * (1 - 0.9) is a little less than 1.
    return max(1, math.floor(round(length * (1 - share), 9)))


def _labels(series: object, n: int) -> np.ndarray[Any, Any]:
    labels = to_host(to_array(series, "series")[0])
    if labels.shape != (n,):
        raise InputError(
            f"must have one label for each of the {n} rows",
            argument="series",
            kind="length",
            found=f"its shape is {labels.shape}",
        )
    Groups.of_labels(labels, "series", "must have a label in every row")
    return labels


def _chosen(rows: object, n: int) -> Ints:
    chosen = to_host(to_array(rows, "rows")[0])
    if chosen.dtype.kind not in "iu" or chosen.ndim != 1:
        raise InputError(
            "must be numbers of rows",
            argument="rows",
            kind="type",
            found=f"its shape is {chosen.shape} and its type {chosen.dtype}",
            remedies=[Remedy("For a mask pass np.flatnonzero(mask).", python_only=True)],
        )
    if len(chosen) and (chosen[0] < 0 or chosen[-1] >= n or (chosen[1:] <= chosen[:-1]).any()):
        raise InputError(
            f"must ascend and lie between 0 and {n - 1}",
            argument="rows",
            kind="order",
            found=f"it goes from {chosen[0]} to {chosen[-1]}",
            remedies=[Remedy("Pass np.unique(rows).", python_only=True)],
        )
    return chosen.astype(np.int64)
