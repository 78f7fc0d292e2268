"""Losses of several models on the same rows: sums of each and of every difference, which merge.

Two means do not tell how uncertain their difference is, so differences are summed row by row.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from verax.common.specs import Whole
from verax.common.summaries import Summary, merges
from verax.engines.clusters import ByLabel, GroupLabels, shapes_over, sums_by_label, variances_over
from verax.engines.sums import (
    Moments,
    MomentSums,
    check_squares,
    common_exponent,
    effective,
    exponent_of,
    sandwich,
)
from verax.errors import VeraxError
from verax.inputs.arrays import Floats
from verax.inputs.groups import GroupCount, Groups, count_groups, distinct
from verax.kernels.ledger import compiles

# How many rows tell roughly what means are, and which share of the mean square the squared distance from the
# mean may then be: a tenth of a standard deviation costs no digit.
_SAMPLE, _SPREAD = 1024, 0.01
# The number of columns, with one for the weights.
_COLUMNS = "1+n_models+pairs*(n_models*(n_models-1)//2)"


def all_pairs(n_models: int) -> list[tuple[int, int]]:
    """The pairs of models, in the order of the columns of differences."""
    return list(combinations(range(n_models), 2))


def with_differences(losses: Floats) -> Floats:
    """(n, M) losses with one more column for the difference of each pair; NaN where both are infinite."""
    return np.column_stack(_columns(losses))


def _columns(losses: Floats, *, pairs: bool = True) -> list[Floats]:
    """The same, column by column: each is one piece of memory, which is read several times faster."""
    models = [np.ascontiguousarray(column) for column in losses.T]
    with np.errstate(invalid="ignore"):
        return models + [models[a] - models[b] for a, b in (all_pairs(len(models)) if pairs else ())]


def _or_infinite(column: Floats) -> Floats:
    """A column with infinity in place of what is not finite."""
    # A sum takes less time than a look at every number.
    return column if np.isfinite(column.sum()) else np.where(np.isfinite(column), column, np.inf)


def _compiled_moments(losses: Floats, weights: Floats | None, *, pairs: bool) -> list[Moments] | None:
    """The moments of losses and their differences, and those with squared weights if there are any, by a
    compiled loop over all columns and pairs; None where there are few rows, or a loss is not finite.
    """
    n, m = losses.shape
    n_lines = m + (m * (m - 1) // 2 if pairs else 0)
    if not compiles(n * n_lines, "differences"):
        return None
    columns = losses.T
    # Each column in one piece; how far they are apart does not matter.
    inside = columns.strides[1] == columns.itemsize and columns.strides[0] >= n * columns.itemsize
    if columns.dtype != np.float64 or not inside:
        columns = np.ascontiguousarray(columns, np.float64)
    given = [None] if weights is None else [weights, weights * weights]
    found = [_deviations(columns, w, n_lines) for w in given]
    return None if any(own is None for own in found) else found  # type: ignore[return-value]


def _deviations(columns: Floats, weights: Floats | None, n_lines: int) -> Moments | None:
    """The moments of (C, n) columns, after a column of zeros, and of the differences of all pairs if there
    are lines for them; None where some number is not finite.
    """
    from verax.kernels.counting import add_deviations

    m, n = columns.shape
    # One array from the first number to the last: the compiler then knows that columns are in one piece.
    apart = columns.strides[0] // columns.itemsize
    values = as_strided(columns, ((m - 1) * apart + n,), (columns.itemsize,), writeable=False)
    weight = float(n if weights is None else weights.sum())
    near = columns[:, :: max(1, n // _SAMPLE)].mean(axis=1)
    for last in (False, True):
        sums = np.zeros((1 + n_lines, 2))
        add_deviations(values, apart, n, np.zeros(0) if weights is None else weights, near, sums[1:])
        if not np.isfinite(sums).all() or not weight > 0:
            return None
        gap = sums[1:, 0] / weight
        if last or (gap * gap <= _SPREAD * sums[1:, 1] / weight).all():
            break
        # The sample was not like the rows: once more, from the means.
        near = near + gap[:m]
    shift = np.zeros(1 + n_lines)
    shift[1 : 1 + m] = near
    if n_lines > m:
        shift[1 + m :] = [near[a] - near[b] for a, b in all_pairs(m)]
    return Moments.from_sums(weight, *sums.T, shift=shift)


class PairedTally(Summary, kind="paired tally", frozen=False):
    """Moments of M losses and their M(M-1)/2 differences, and their sums by group if there are any.

    A row whose loss is infinite for some model makes the columns it enters undefined, not the others.
    Weights are kept in units of 2**exponent, which is 1 unless they are extreme. `squares` are the moments
    with the weights squared, `n_positive` is the number of rows with a positive weight. With
    `pairs` 0 there are no differences.
    """

    n_models: int = merges(Whole("equal", least=1))
    n_rows: int = merges(Whole(), default=0)
    n_positive: int = merges(Whole(most="n_rows"), default=0)
    exponent: int = merges(Whole("first", least=-1100, most=1100), default=0)
    pairs: int = merges(Whole("equal", most=1), default=1)
    # None stands for those of no rows, and for squares that are the same as the moments.
    moments: Moments = merges(MomentSums(_COLUMNS), default=None)
    squares: Moments = merges(MomentSums(_COLUMNS, optional=True), default=None)
    labels: np.ndarray[Any, Any] | None = merges(GroupLabels(), default=None)
    cluster_sums: Floats | None = merges(ByLabel(_COLUMNS), default=None)

    def __post_init__(self) -> None:
        # The first column is all zeros: its moments know the weight of all rows.
        self.moments = self.moments or Moments.zeros(1 + self.n_columns)
        self.squares = self.squares or self.moments

    def _check(self) -> None:
        weight, squares = (float(own.weight.high[0]) for own in (self.moments, self.squares))
        check_squares(weight, squares, self.n_positive)

    @property
    def n_columns(self) -> int:
        """The number of columns: models, then pairs."""
        return self.n_models + (len(all_pairs(self.n_models)) if self.pairs else 0)

    @property
    def weight(self) -> float:
        """The sum of the weights."""
        with np.errstate(over="ignore"):
            return float(np.ldexp(self.moments.weight.high[0], self.exponent))

    def update(
        self,
        losses: Floats,
        weights: Floats | None = None,
        groups: Groups | Sequence[Any] | np.ndarray[Any, Any] | None = None,
    ) -> PairedTally:
        """Take in rows: (n, M) losses, their weights, and their groups or the labels of these."""
        part = PairedTally(self.n_models, len(losses), len(losses), pairs=self.pairs)
        w = None if weights is None else np.asarray(weights, dtype=float)
        pairs = bool(self.pairs)
        with np.errstate(over="ignore", invalid="ignore"):
            if w is not None:
                part.n_positive = int(np.count_nonzero(w))
                part.exponent = exponent_of(float(w.sum()))
                w = w / math.ldexp(1.0, part.exponent)
            moments = _compiled_moments(losses, w, pairs=pairs) if groups is None else None
            columns: list[Floats] = []
            if moments is None:
                columns = [_or_infinite(column) for column in _columns(losses, pairs=pairs)]
                columns.insert(0, np.zeros(len(losses)))
                moments = [Moments.of(columns, own, np) for own in ([w] if w is None else [w, w * w])]
            part.moments, part.squares = moments[0], moments[-1]
            if groups is not None:
                if not isinstance(groups, Groups):
                    groups = Groups(*distinct(np.asarray(groups))[::-1])
                w = np.ones(len(losses)) if w is None else w
                # What is infinite in a row without weight does not count.
                lost = np.where(w > 0, np.nan, 0.0)
                terms = [w * np.where(np.isinf(column), lost, column) for column in columns[1:]]
                present = np.flatnonzero(np.bincount(groups.codes, minlength=len(groups.labels)))
                sums = [np.bincount(groups.codes, term, len(groups.labels)) for term in (w, *terms)]
                part.labels = groups.labels[present]
                part.cluster_sums = np.column_stack(sums).astype(float, copy=False)[present]
        self.__dict__.update(vars(self.merge(part) if self.n_rows else part))
        return self

    def merge(self, other: PairedTally) -> PairedTally:
        """The tally of both sets of rows, in whatever order; neither is changed."""
        grouped = [part.labels is not None for part in (self, other) if part.n_rows]
        alike = (self.n_models, self.pairs) == (other.n_models, other.pairs)
        if not alike or len(set(grouped)) > 1:
            raise VeraxError("Tallies of different models, or with and without groups, cannot be merged.")
        merged = PairedTally(self.n_models, self.n_rows + other.n_rows, pairs=self.pairs)
        weights = [float(t.moments.weight.high[0]) for t in (self, other)]
        merged.exponent, (a, b) = common_exponent(weights, [self.exponent, other.exponent])
        merged.n_positive = self.n_positive + other.n_positive
        merged.moments = self.moments.scaled(a) + other.moments.scaled(b)
        # The square of a factor may overflow where its product with small sums does not.
        merged.squares = self.squares.scaled(a).scaled(a) + other.squares.scaled(b).scaled(b)
        parts = [
            (t.labels, t.cluster_sums * f) for t, f in ((self, a), (other, b)) if t.cluster_sums is not None
        ]
        if parts:
            labels = np.concatenate([labels for labels, _ in parts])
            merged.labels, merged.cluster_sums = sums_by_label(labels, np.concatenate([s for _, s in parts]))
        return merged

    def to_values(self) -> dict[str, Any]:
        """The fields, to be stored."""
        same = self.squares is self.moments
        return {**super().to_values(), **({"squares": None} if same else {})}

    @classmethod
    def _named(cls, values: Mapping[str, Any]) -> Mapping[str, Any]:
        # 0.2.0 had no tallies without differences.
        return {"pairs": 1, **values}

    @property
    def means(self) -> Floats:
        """The mean of every column; NaN where some row is infinite."""
        return np.where(self.moments.n_infinite > 0, np.nan, self.moments.finite_mean)[1:]

    def standard_errors(self, *, copies: bool = False) -> tuple[Floats, float | Floats]:
        """The standard error of every mean and its degrees of freedom.

        Of independent rows (the sandwich estimator), or of independent groups (the jackknife). With `copies`
        the weights are numbers of rows.
        """
        if self.cluster_sums is None or self.labels is None:
            return self._errors_of_rows(copies)
        variance, freedom = variances_over(self.labels, self.cluster_sums)
        return np.sqrt(variance), freedom

    def shapes(self) -> tuple[Floats, Floats] | None:
        """Degrees of freedom and skewness of every mean over groups; None without groups."""
        if self.cluster_sums is None or self.labels is None:
            return None
        return shapes_over(self.labels, self.cluster_sums)

    @property
    def n_groups(self) -> GroupCount | None:
        """The number of groups that have weight, of both kinds where there are two; None without groups."""
        if self.labels is None or self.cluster_sums is None:
            return None
        return count_groups(self.labels[self.cluster_sums[:, 0] > 0])

    def contrast(self, a: int, b: int, factor: float) -> tuple[float, float, float]:
        """The standard error over groups of mean a minus `factor` times mean b, its freedom and skewness."""
        assert self.labels is not None
        assert self.cluster_sums is not None
        columns = self.cluster_sums[:, 1:]
        sums = np.column_stack([self.cluster_sums[:, 0], columns[:, a] - factor * columns[:, b]])
        variance, _ = variances_over(self.labels, sums)
        freedom, skewness = shapes_over(self.labels, sums)
        return math.sqrt(variance[0]), float(freedom[0]), float(skewness[0])

    def _errors_of_rows(self, copies: bool) -> tuple[Floats, float]:
        squares, n = self.squares, float(self.n_positive)
        if copies:
            squares, n = self.moments.scaled(math.ldexp(1.0, -self.exponent)), self.weight
        rows = effective(float(self.moments.weight.high[0]), float(squares.weight.high[0]))
        with np.errstate(invalid="ignore"):
            return np.sqrt(sandwich(self.moments, squares, n)[1:]), rows - 1
