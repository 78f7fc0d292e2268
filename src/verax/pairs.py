"""Losses of several models on the same rows: sums of each and of every difference, which merge.

Two means do not tell how uncertain their difference is, so differences are tallied row by row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np

from verax.clusters import sums_by_label
from verax.errors import VeraxError
from verax.tally import Moments

Floats = np.ndarray[Any, np.dtype[np.float64]]


def all_pairs(n_models: int) -> list[tuple[int, int]]:
    """The pairs of models, in the order of the columns of differences."""
    return list(combinations(range(n_models), 2))


def with_differences(losses: Floats) -> Floats:
    """(n, M) losses with a column for each pair's difference; NaN where both are infinite."""
    pairs = all_pairs(losses.shape[1])
    with np.errstate(invalid="ignore"):
        gaps = [losses[:, a] - losses[:, b] for a, b in pairs]
    return np.column_stack([losses, *gaps])


@dataclass
class PairedTally:
    """Moments of M losses and their M(M-1)/2 differences, and their sums by cluster if there are any.

    A row whose loss is infinite for some model makes the columns it enters undefined, not the others.
    """

    n_models: int
    moments: Moments = field(init=False)
    weight: float = 0.0
    labels: np.ndarray[Any, Any] | None = None
    cluster_weight: Floats | None = None
    cluster_totals: Floats | None = None

    def __post_init__(self) -> None:
        self.moments = Moments.zeros(self.n_columns)

    @property
    def n_columns(self) -> int:
        """The number of columns: models, then pairs."""
        return self.n_models + len(all_pairs(self.n_models))

    def update(
        self, losses: Floats, weights: Floats | None = None, groups: Sequence[Any] | None = None
    ) -> PairedTally:
        """Take in rows: (n, M) losses, their weights and the labels of their clusters."""
        columns = with_differences(losses)
        w = np.ones(len(columns)) if weights is None else weights
        finite = np.isfinite(columns)
        shift = np.where(finite[0], np.where(finite[0], columns[0], 0.0), 0.0)
        d = np.where(finite, columns - np.where(finite, shift, 0.0), 0.0)
        sums = np.stack([w @ d, w @ (d * d), w @ ~finite], axis=1)
        self.moments = self.moments + Moments.from_sums(float(w.sum()), sums, shift)
        self.weight += float(w.sum())
        if groups is not None:
            totals = np.column_stack([w, w[:, None] * np.where(finite, columns, np.nan)])
            labels, summed = sums_by_label(np.asarray(groups), totals)
            self._add_clusters(labels, summed[:, 0], summed[:, 1:])
        return self

    def _add_clusters(self, labels: Any, weight: Floats, totals: Floats) -> None:
        if self.labels is not None and self.cluster_weight is not None and self.cluster_totals is not None:
            stacked = np.vstack(
                [
                    np.column_stack([self.cluster_weight, self.cluster_totals]),
                    np.column_stack([weight, totals]),
                ]
            )
            labels, summed = sums_by_label(np.concatenate([self.labels, labels]), stacked)
            weight, totals = summed[:, 0], summed[:, 1:]
        self.labels, self.cluster_weight, self.cluster_totals = labels, weight, totals

    def merge(self, other: PairedTally) -> PairedTally:
        """The tally of both sets of rows; neither is changed."""
        if self.n_models != other.n_models or (self.labels is None) != (other.labels is None):
            raise VeraxError("Tallies of different models, or with and without groups, cannot be merged.")
        merged = PairedTally(self.n_models)
        merged.moments = self.moments + other.moments
        merged.weight = self.weight + other.weight
        for part in (self, other):
            if part.labels is not None and part.cluster_weight is not None:
                assert part.cluster_totals is not None
                merged._add_clusters(part.labels, part.cluster_weight, part.cluster_totals)
        return merged

    @property
    def means(self) -> Floats:
        """The mean of every column; NaN where some row is infinite."""
        return np.where(self.moments.infinite.high > 0, np.nan, self.moments.finite_mean)

    def standard_errors(self) -> tuple[Floats, float]:
        """The standard error of every mean and its degrees of freedom.

        Of independent rows, or of independent clusters (the sandwich of a ratio of sums).
        """
        if self.cluster_weight is None or self.cluster_totals is None:
            n = self.weight
            with np.errstate(invalid="ignore", divide="ignore"):
                errors = np.sqrt(self.moments.m2 / n / (n - 1))
            return np.where(self.moments.infinite.high > 0, np.nan, errors), n - 1
        w, totals = self.cluster_weight, self.cluster_totals
        n_clusters = len(w)
        residual = totals - w[:, None] * self.means
        with np.errstate(invalid="ignore", divide="ignore"):
            variance = (residual**2).sum(axis=0) / w.sum() ** 2 * n_clusters / (n_clusters - 1)
        return np.sqrt(variance), n_clusters - 1.0
