"""Sums of the losses of several models on the same rows, and of every difference, which merge.

Two means do not tell how uncertain their difference is, so differences are summed row by row.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from verax.common.specs import Whole
from verax.common.summaries import Summary, merges
from verax.engines.clusters import ByLabel, GroupLabels, shapes_over, sums_by_label, variances_over
from verax.engines.pieces import ColumnBlock, Fill, all_pairs, columns_of, lines_of, moments_of_pieces
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

# The number of columns, with one for the weights.
_COLUMNS = "1+n_models+pairs*(n_models*(n_models-1)//2)"


def with_differences(losses: Floats) -> Floats:
    """(n, M) losses with one more column for the difference of each pair; NaN where both are infinite."""
    return np.column_stack(columns_of(losses))


def tallies_of_pieces(
    blocks: Sequence[ColumnBlock], n_rows: int, weights: Floats | None, fill: Callable[[], Fill]
) -> list[list[PairedTally]] | None:
    """A tally of each column of each block, by compiled loops; None where these do not pay.

    `fill` makes what writes pieces of rows. Weights are not negative; there is none where all are zero.
    """
    lines = sum(block.n_columns * (block.n_lines - 1) for block in blocks)
    if not compiles(n_rows * lines, "differences") or (weights is not None and not weights.any()):
        return None
    w, n_positive, exponent = _scaled(weights, n_rows)
    moments_of_blocks = moments_of_pieces(blocks, n_rows, w, fill)
    return [
        [
            PairedTally(
                block.n_models, n_rows, n_positive, exponent, int(block.pairs), moments[0], moments[-1]
            )
            for moments in columns
        ]
        for block, columns in zip(blocks, moments_of_blocks, strict=True)
    ]


def _scaled(weights: Floats | None, n_rows: int) -> tuple[Floats | None, int, int]:
    """Weights in units of a power of two, the number of positive ones, and that power."""
    if weights is None:
        return None, n_rows, 0
    with np.errstate(over="ignore"):
        exponent = exponent_of(float(weights.sum()))
    return weights / math.ldexp(1.0, exponent), int(np.count_nonzero(weights)), exponent


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
        weight, squares = (float(moments.weight.high[0]) for moments in (self.moments, self.squares))
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
        given = None if weights is None else np.asarray(weights, dtype=float)
        n, pairs = len(losses), bool(self.pairs)

        def fill(start: int, stop: int, flat: Floats) -> None:
            flat.reshape(-1, stop - start)[:] = losses[start:stop].T

        tallies = None
        if groups is None:
            tallies = tallies_of_pieces([ColumnBlock(1, self.n_models, pairs)], n, given, lambda: fill)
        part = self._by_calls(losses, given, groups) if tallies is None else tallies[0][0]
        self.__dict__.update(vars(self.merge(part) if self.n_rows else part))
        return self

    def _by_calls(self, losses: Floats, weights: Floats | None, groups: Any) -> PairedTally:
        """The tally of some rows by array calls."""
        w, n_positive, exponent = _scaled(weights, len(losses))
        part = PairedTally(self.n_models, len(losses), n_positive, exponent, self.pairs)
        lines = lines_of(losses, pairs=bool(self.pairs))
        with np.errstate(over="ignore", invalid="ignore"):
            moments = [Moments.of(lines, of_power, np) for of_power in ([w] if w is None else [w, w * w])]
            part.moments, part.squares = moments[0], moments[-1]
            if groups is not None:
                if not isinstance(groups, Groups):
                    groups = Groups(*distinct(np.asarray(groups))[::-1])
                w = np.ones(len(losses)) if w is None else w
                # What is infinite in a row without weight does not count.
                lost = np.where(w > 0, np.nan, 0.0)
                terms = [w * np.where(np.isinf(column), lost, column) for column in lines[1:]]
                present = np.flatnonzero(np.bincount(groups.codes, minlength=len(groups.labels)))
                sums = [np.bincount(groups.codes, term, len(groups.labels)) for term in (w, *terms)]
                part.labels = groups.labels[present]
                part.cluster_sums = np.column_stack(sums).astype(float, copy=False)[present]
        return part

    def merge(self, other: PairedTally) -> PairedTally:
        """The tally of both sets of rows, in whatever order; neither is changed."""
        grouped = [part.labels is not None for part in (self, other) if part.n_rows]
        if self.n_models != other.n_models or len(set(grouped)) > 1:
            raise VeraxError("Tallies of different models, or with and without groups, cannot be merged.")
        if self.pairs != other.pairs:
            # Earlier versions kept differences that nobody asks for.
            return self._without_pairs().merge(other._without_pairs())
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

    @property
    def ungrouped(self) -> PairedTally:
        """The tally of the same rows, treated as independent."""
        return replace(self, labels=None, cluster_sums=None)

    def _without_pairs(self) -> PairedTally:
        """The tally without differences."""
        lines, sums = slice(0, 1 + self.n_models), self.cluster_sums
        moments, squares = self.moments.at(lines), self.squares.at(lines)
        model_sums = None if sums is None else sums[:, lines]
        known = self.n_rows, self.n_positive, self.exponent
        return PairedTally(self.n_models, *known, 0, moments, squares, self.labels, model_sums)

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

    def effective_rows(self, *, copies: bool = False) -> float:
        """The effective number of rows; with `copies` the sum of the weights."""
        if copies:
            return self.weight
        return effective(float(self.moments.weight.high[0]), float(self.squares.weight.high[0]))

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

    def contrast(self, a: int, b: int, factor: float) -> tuple[float, float, float, float]:
        """The standard error over groups of mean a minus `factor` times mean b, with its shape.

        That is its degrees of freedom, skewness, and degrees of freedom where that is known.
        """
        assert self.labels is not None
        assert self.cluster_sums is not None
        columns = self.cluster_sums[:, 1:]
        sums = np.column_stack([self.cluster_sums[:, 0], columns[:, a] - factor * columns[:, b]])
        variance, freedom = variances_over(self.labels, sums)
        skewed_freedom, skewness = shapes_over(self.labels, sums)
        return math.sqrt(variance[0]), float(np.max(freedom)), float(skewness[0]), float(skewed_freedom[0])

    def row_variances(self, *, copies: bool = False) -> Floats:
        """The variance of every mean over independent rows (`copies`: of repeated rows)."""
        squares, n = self.squares, float(self.n_positive)
        if copies:
            squares, n = self.moments.scaled(math.ldexp(1.0, -self.exponent)), self.weight
        return sandwich(self.moments, squares, n)[1:]

    def _errors_of_rows(self, copies: bool) -> tuple[Floats, float]:
        with np.errstate(invalid="ignore"):
            errors = np.sqrt(self.row_variances(copies=copies))
        return errors, self.effective_rows(copies=copies) - 1
