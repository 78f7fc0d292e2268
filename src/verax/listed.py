"""Top lists with their outcomes, as rows that the pass can read.

A list is scored as its padded distribution: listed classes have their confidence, all others share
the rest evenly. Its statistics are computed from the listed entries alone, so the cost does not
depend on the number of classes. An invalid list is scored as its largest valid sublist.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import numpy as np

from verax.arrays import Array, Floats, Ints, Namespace, kind_of, to_array, to_host
from verax.clusters import Groups
from verax.errors import InputError, Offenders, RuleError
from verax.ragged import Ragged, Survey, frozen
from verax.rowstats import Reduction, RowStats, compute, reduction, validate

_RANKS = frozenset({"above", "tied"})
_NOT_HERE = {
    "hit_lowest": (
        "A top list does not say which of its unlisted classes has the lowest index, so ties cannot be "
        "broken by index: the score of an empty list would depend on the numbering of the classes. "
        "Use ties='fractional'."
    ),
    "decision": "A top list does not always say which class is most likely; use `hit`, which shares ties.",
}
NO_ORDER = (
    "A top list has no cumulative probabilities: it does not say where among the ordered classes its "
    "unlisted probability lies, and padding it evenly would reward lists that are not true "
    "(m=3, truth (0, 1/2, 1/2): the true top-1 list expects an RPS of 5/32, a list that overstates its "
    "class 11/72). Ordinal rules need the full distribution; for lists use a symmetric rule such as brier."
)


@dataclass(frozen=True)
class ListBatch:
    """Consecutive lists with the codes of their outcomes."""

    lists: Ragged
    survey: Survey
    y: Ints
    weights: Floats | None
    groups: Ints | None
    start: int
    n_classes: int
    xp: Namespace = np


class Listed:
    """Checked lists with their survey, the codes of the outcomes and the weights.

    An outcome that no list names has a code that no listed class has.
    """

    def __init__(
        self,
        lists: Ragged,
        survey: Survey,
        n_classes: int,
        y: Ints,
        weights: object | None = None,
        groups: object | None = None,
    ) -> None:
        self.n_classes = n_classes
        self.xp: Namespace = np
        self._lists, self._survey, self._y = lists, survey, frozen(np.ascontiguousarray(y))
        if y.size != lists.n_rows:
            raise InputError(
                "must have one outcome per list",
                argument="y",
                kind="length",
                found=f"there are {y.size} outcomes and {lists.n_rows} lists",
            )
        if y.size == 0:
            raise InputError("must have at least one list", argument="p", kind="length")
        self.weights: Array | None = None if weights is None else check_weights(weights, y.size)
        self.groups = None if groups is None else Groups.of(groups, y.size)

    @property
    def n_rows(self) -> int:
        return self._lists.n_rows

    @property
    def width(self) -> int:
        """The mean number of entries per list, at least 1."""
        return max(1, round(self._lists.confidences.size / self.n_rows))

    def batch(self, start: int, stop: int) -> ListBatch:
        """Rows `start` to `stop`."""
        weights = None if self.weights is None else self.weights[start:stop]
        return ListBatch(
            self._lists.rows(start, stop),
            self._survey.rows(start, stop),
            self._y[start:stop],
            weights,
            None if self.groups is None else self.groups.codes[start:stop],
            start,
            self.n_classes,
        )

    def batches(self, rows: int) -> Iterator[ListBatch]:
        """All rows, `rows` at a time."""
        for start in range(0, self.n_rows, rows):
            yield self.batch(start, min(start + rows, self.n_rows))

    def check(self) -> None:
        """Nothing is left to check."""


def check_weights(weights: object, n: int) -> Floats:
    """Weights as a private copy: finite, not negative, not all zero."""
    raw, _ = to_array(weights, "weights")
    if kind_of(raw) not in ("real", "integer", "bool") or tuple(raw.shape) != (n,):
        raise InputError(
            f"must be {n} numbers, one per row",
            argument="weights",
            kind="length",
            found=f"its shape is {tuple(raw.shape)} and its type {raw.dtype}",
        )
    w = np.array(to_host(raw), np.float64)
    bad = Offenders("weights", "must be finite and not negative", "sign")
    bad.add(~(np.isfinite(w) & (w >= 0)), w, 0)
    if bad.count:
        raise bad.error()
    if not w.any():
        raise InputError("must not all be zero", argument="weights")
    return w


def _refuse(needs: Collection[str]) -> None:
    for name in sorted(needs):
        if name.startswith("cdf_"):
            raise RuleError(NO_ORDER)
        if name in _NOT_HERE:
            raise RuleError(_NOT_HERE[name])


# ---- the three things that depend on the kind of rows --------------------------------------------


@validate.register
def _(batch: ListBatch) -> tuple[bool, bool]:
    return True, batch.weights is None or bool(batch.weights.any())


@compute.register
def _(batch: ListBatch, needs: Collection[str]) -> RowStats:
    _refuse(needs)
    lists, survey, m = batch.lists, batch.survey, float(batch.n_classes)
    t, row = lists.confidences, lists.row_of
    kept = np.arange(t.size) < (lists.offsets[:-1] + survey.kept)[row]
    is_outcome = lists.classes == batch.y[row]
    hit_entries = np.flatnonzero(is_outcome & kept)
    unlisted = m - survey.kept
    with np.errstate(divide="ignore", invalid="ignore"):
        proxy = np.where(unlisted > 0, survey.unaccounted_kept / unlisted, 0.0)
    others = unlisted - 1
    p_true = proxy.copy()
    p_true[row[hit_entries]] = t[hit_entries]
    others[row[hit_entries]] += 1
    rest_sq = lists.sums(np.where(kept & ~is_outcome, t * t, 0.0)) + (others * proxy) * proxy
    stats = RowStats(np, batch.n_classes, p_true=p_true, rest_sq=rest_sq)
    if "hit" in needs:
        stats.add(hit=_hits(lists, survey, hit_entries, m))
    found = np.flatnonzero(is_outcome)
    listed = np.zeros(batch.y.size)
    listed[row[found]] = 1.0
    stats.add(
        invalid=(survey.kept < lists.lengths).astype(np.float64),
        length=lists.lengths.astype(np.float64),
        unaccounted=survey.unaccounted,
        listed=listed,
    )
    if _RANKS & set(needs):
        own = np.full(batch.y.size, np.inf)
        own[row[found]] = t[found]
        stats.add(
            above=lists.sums((t > own[row]).astype(np.float64)),
            tied=lists.sums((t == own[row]).astype(np.float64)),
        )
    return stats


def _hits(lists: Ragged, survey: Survey, hit_entries: Ints, m: float) -> Floats:
    """1/t for outcomes among the t most likely classes; 1/m for all where the distribution is uniform."""
    row, t, kept = lists.row_of, lists.confidences, survey.kept
    top = np.zeros(lists.n_rows)
    top[kept > 0] = t[lists.offsets[:-1][kept > 0]]
    n_modes = np.maximum(lists.sums((t == top[row]).astype(np.float64)), 1)
    hit = np.zeros(lists.n_rows)
    best = hit_entries[t[hit_entries] == top[row[hit_entries]]]
    hit[row[best]] = 1 / n_modes[row[best]]
    return np.where(m * top <= 1 + survey.tolerance, 1 / m, hit)


class _ListReduction(Reduction):
    def __init__(self, rows: Listed, block: int, needs: frozenset[str]) -> None:
        from verax._listkernels import row_stats

        _refuse(needs)
        super().__init__(rows.n_classes, block, needs)
        self._kernel = row_stats(ranks=bool(_RANKS & needs))

    def __call__(self, batch: ListBatch) -> tuple[RowStats, int]:
        lists, survey = batch.lists, batch.survey
        self._kernel(
            lists.classes,
            lists.confidences,
            lists.offsets,
            survey.unaccounted,
            survey.kept,
            survey.unaccounted_kept,
            batch.y,
            float(batch.n_classes),
            survey.tolerance,
            self._buffer,
        )
        return self._views(batch.y.size), 0


@reduction.register
def _(rows: Listed, block: int, needs: frozenset[str]) -> Reduction:
    return _ListReduction(rows, block, needs)
