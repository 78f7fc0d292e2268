"""Rows by one kernel: statistics, losses, sums and counts in one loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from verax.engines.fusion import Layout, fuse_losses, fuse_rows
from verax.engines.gathering import GatheredSums, GroupCells, Independent
from verax.engines.stats import Formula
from verax.inputs.arrays import Floats, Ints
from verax.inputs.forecasts import Forecasts, Unread
from verax.inputs.shares import Shares
from verax.kernels.fewclasses import FEW

# Takes the outcomes, decisions and weights of rows; decisions of rows that are left out are -1.
Count = Callable[[Ints, Ints, Floats | None], None]
# Most cells of all groups, which each thread counts.
_LARGEST_TABLE = 2**24

# Rows at either end of a chunk that give a rough mean of its losses.
_PROBE = 32
_NO_WEIGHTS = np.zeros(0)
_NO_SHARES = np.zeros((0, 0))
_NO_SHARES.flags.writeable = False


def layout_of(rows: Any, *, counts: bool) -> Layout | None:
    """The memory layout of rows; None if these kernels do not support it."""
    if not isinstance(rows, Forecasts) or (rows.binary and rows.form == "rescaled"):
        return None
    if rows.n_classes > FEW and (rows.form != "probabilities" or rows.by_columns or rows.shared):
        return None
    layout = Layout(rows.n_classes, rows.by_columns, rows.form, rows.binary, rows.weights is not None, counts)
    return replace(layout, shared=rows.outcomes.form) if isinstance(rows.outcomes, Shares) else layout


class RowSums:
    """The kernel for some rows and rules, with its constants.

    Attributes
    ----------
    counts : bool
        Whether the kernel counts outcomes against decisions.
    decides : bool
        Whether it writes the decisions instead, because there are many classes.
    independent : Independent or None
        The losses that it writes, where there are groups.
    """

    def __init__(
        self,
        kernel: Any,
        constants: Floats,
        forecasts: Forecasts,
        unit: float,
        counts: bool,
        independent: Independent | None = None,
    ) -> None:
        self.independent = independent
        self._kernel, self._constants, self._forecasts = kernel, constants, forecasts
        self._clear = forecasts.unity.clear(forecasts.n_classes)
        self._scale = 1 / unit
        many = forecasts.n_classes > FEW
        self.counts: bool = counts and not many
        self.decides: bool = counts and many
        self._n_cells = 0 if many else forecasts.n_classes**2

    @classmethod
    def of(cls, rules: tuple[Formula, ...], rows: Any, *, unit: float, counts: bool) -> RowSums | None:
        """The kernel for these rows; None where rules have no trace, and for some rows that have groups."""
        layout = layout_of(rows, counts=counts)
        if layout is None:
            return None
        independent = None
        if rows.groups is not None:
            table = len(rows.groups.labels) * rows.n_classes**2
            if layout.many or layout.weighted or layout.shared or not counts or table > _LARGEST_TABLE:
                return None
            layout, independent = replace(layout, grouped=True), Independent.of(rules, rows.n_classes)
        kernel = fuse_rows(rules, layout)
        return None if kernel is None else cls(*kernel, rows, unit, counts, independent)

    def __call__(
        self,
        start: int,
        stop: int,
        shift: Floats,
        sums: Floats,
        cells: Floats,
        squares: Floats,
        left: Ints,
        count: Count,
        gathered: GatheredSums | None,
    ) -> Ints:
        """Add rows `start` to `stop` to the sums; the numbers of those left out. Sets `shift` first.

        Where there are many classes, `count` is called with the outcomes, decisions and weights of the rows;
        where there are groups, rows are added to those in `gathered`.
        """
        rows = self._forecasts.unread(start, stop)
        w = _NO_WEIGHTS if rows.weights is None else rows.weights
        w = w if self._scale == 1 else w * self._scale
        shift[:] = self._probe(rows, w, sums)
        g = _NO_SHARES if rows.shares is None else rows.shares
        decided = np.empty(len(rows.y), np.int64)
        into = sums, cells, squares, decided, left
        groups = self._group_arrays(start, stop, gathered)
        n_left = self._kernel(
            rows.p, rows.y, g, w, self._clear, self._constants, shift, False, *into, *groups
        )
        if gathered is not None:
            gathered.cells.written(groups[-1])
        if self.decides:
            count(rows.y, decided, None if rows.weights is None else w)
        if self._scale != 1 and rows.weights is not None:
            # Light rows among heavy ones have a weight, even if it is zero in the unit of the sums.
            taken = np.ones(len(rows.y), np.bool_)
            taken[left[:n_left]] = False
            sums[-1, 1] = np.count_nonzero(rows.weights[taken] > 0)
        return left[:n_left] + start

    def _group_arrays(self, start: int, stop: int, gathered: GatheredSums | None) -> tuple[Any, ...]:
        """The arrays by which the kernel adds rows to their groups; none without groups."""
        groups = self._forecasts.groups
        if groups is None or gathered is None:
            return ()
        return groups.codes[start:stop], *gathered.arrays, gathered.cells.room(start, stop)

    def _probe(self, rows: Unread, w: Floats, sums: Floats) -> Floats:
        """A rough mean of the losses of a chunk: the smaller of two means of a few rows, or zero."""
        n = len(rows.y)
        sums_of_ends = np.zeros((2, *sums.shape))
        for part, end_sums in zip(
            (slice(0, _PROBE), slice(max(0, n - _PROBE), n)), sums_of_ends, strict=True
        ):
            p = tuple(c[part] for c in rows.p) if isinstance(rows.p, tuple) else rows.p[part]
            g = _NO_SHARES if rows.shares is None else rows.shares[part]
            self._add_roughly(p, rows.y[part], g, w[part], end_sums)
        with np.errstate(invalid="ignore", divide="ignore"):
            first, last = sums_of_ends[:, :-1, 0] / sums_of_ends[:, -1:, 0]
        smaller = np.where(np.abs(first) < np.abs(last), first, last)
        return np.where(np.isfinite(smaller), smaller, 0.0)

    def _add_roughly(self, p: Any, y: Ints, g: Floats, w: Floats, sums: Floats) -> None:
        """Add few rows to sums alone, without regard for rounding."""
        unused, left = np.zeros((2, self._n_cells)), np.zeros((2, len(y)), np.int64)
        groups: tuple[Any, ...] = ()
        if self.independent is not None:
            cells = GroupCells(1, self._n_cells, len(y))
            unused_sums = GatheredSums(1, self.independent, cells, len(y))
            groups = np.zeros_like(left[0]), *unused_sums.arrays, cells.room(0, len(y))
        none = np.zeros(len(sums) - 1)
        into = sums, unused, unused, *left
        self._kernel(p, y, g, w, self._clear, self._constants, none, True, *into, *groups)


@dataclass(frozen=True)
class PlainSums:
    """Sums over rows of equal weight, where all losses are finite.

    Attributes
    ----------
    cells : Floats
        (K, K) numbers of rows, outcome by decision.
    losses : Floats
        (K, R, 2) sums of the losses of each rule and of their squares over the rows of each class.
    """

    cells: Floats
    losses: Floats

    @classmethod
    def zeros(cls, n_classes: int, n_rules: int) -> PlainSums:
        """Sums of no rows."""
        return cls(np.zeros((n_classes, n_classes)), np.zeros((n_classes, n_rules, 2)))

    def __add__(self, other: PlainSums) -> PlainSums:
        return PlainSums(self.cells + other.cells, self.losses + other.losses)

    def of_rules(self, places: Sequence[int]) -> PlainSums:
        """The sums of some of the rules."""
        return PlainSums(self.cells, self.losses[:, list(places)])


class RowLosses:
    """The kernel that writes the losses of rows, with their largest probabilities and decisions.

    It can also add up the losses of further rules, which are not written then.
    """

    def __init__(self, kernel: Any, constants: Floats, forecasts: Forecasts, kept: Ints) -> None:
        self._kernel, self._constants, self._forecasts, self._kept = kernel, constants, forecasts, kept
        self._clear = forecasts.unity.clear(forecasts.n_classes)

    @classmethod
    def of(cls, rules: tuple[Formula, ...], rows: Any, kept: Sequence[Formula]) -> RowLosses | None:
        """The kernel for these rows; None where there are many classes, or rules without a trace."""
        layout = layout_of(rows, counts=False)
        layout = None if layout is None or layout.shared or layout.many else layout
        kernel = None if layout is None else fuse_losses(rules, replace(layout, weighted=False))
        places = np.array([rules.index(rule) for rule in kept], np.int64)
        return None if kernel is None else cls(*kernel, rows, places)

    def __call__(
        self,
        start: int,
        stop: int,
        y: Ints,
        losses: Floats,
        top: Floats,
        decision: Ints,
        sums: PlainSums | None = None,
    ) -> tuple[Ints, Floats | None]:
        """Fill arrays with rows `start` to `stop`; the numbers of those left out, and the weights of all."""
        rows, part = self._forecasts.unread(start, stop), slice(start, stop)
        y[part] = rows.y
        left = np.empty(stop - start, np.int64)
        sums = PlainSums.zeros(0, 0) if sums is None else sums
        into = losses[:, part], top[part], decision[part], sums.cells, sums.losses
        n_left = self._kernel(rows.p, rows.y, self._clear, self._constants, self._kept, *into, left)
        return left[:n_left] + start, rows.weights
