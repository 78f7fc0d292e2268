"""Rows that belong together: which, and what each cluster of them adds up to.

The sums merge like any tally, and whole clusters can be resampled from them without the rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from verax.arrays import to_array, to_host
from verax.errors import InputError

Floats = np.ndarray[Any, np.dtype[np.float64]]

# How many multiplicities a bootstrap of clusters holds at a time.
_DRAWS = 2**22


@dataclass(frozen=True)
class Groups:
    """A code 0..G-1 for every row, and the G labels."""

    codes: np.ndarray[Any, np.dtype[np.int64]]
    labels: np.ndarray[Any, Any]

    @classmethod
    def of(cls, groups: object, n_rows: int) -> Groups:
        """Read a label a row, of any kind; or take over labels that are coded already."""
        if isinstance(groups, Groups) and len(groups.codes) == n_rows:
            return groups
        raw = to_host(to_array(groups, "groups")[0])
        if raw.shape != (n_rows,):
            raise InputError(
                f"`groups` must be {n_rows} labels, one a row; its shape is {raw.shape}.", argument="groups"
            )
        missing = np.array([v is None or v != v for v in raw.tolist()]) if raw.dtype.kind in "fO" else None
        if missing is not None and missing.any():
            row = int(np.flatnonzero(missing)[0])
            raise InputError(
                f"`groups` must name a group for every row; row {row} holds {raw[row]}.",
                argument="groups",
                rows=(row,),
            )
        labels, codes = np.unique(raw.astype(str) if raw.dtype.kind == "O" else raw, return_inverse=True)
        return cls(codes.astype(np.int64), labels)


@dataclass(frozen=True)
class Clusters:
    """What each of G clusters contributes.

    Attributes
    ----------
    labels : (G,) names of the clusters.
    weight : (G,) sums of weights.
    totals : (G, R) sums of weight times loss, for R rules; infinite where a loss is.
    cells : (G, K*K) confusion counts, sparse.
    """

    labels: np.ndarray[Any, Any]
    weight: Floats
    totals: Floats
    cells: Any

    @classmethod
    def of(
        cls,
        labels: np.ndarray[Any, Any],
        codes: Any,
        weights: Any,
        losses: list[Any],
        cells: Any,
        n_cells: int,
    ) -> Clusters:
        """From the cluster, weight, losses and confusion cell of each row."""
        from scipy.sparse import csr_array

        n = len(labels)
        totals = [np.bincount(codes, weights * np.where(weights > 0, loss, 0.0), n) for loss in losses]
        return cls(
            labels,
            np.bincount(codes, weights, n).astype(float),
            np.stack(totals, axis=1),
            csr_array((weights, (codes, cells)), shape=(n, n_cells)),
        )

    def __add__(self, other: Clusters) -> Clusters:
        from scipy.sparse import csr_array, vstack

        if np.array_equal(self.labels, other.labels):
            weight, totals = self.weight + other.weight, self.totals + other.totals
            return Clusters(self.labels, weight, totals, self.cells + other.cells)
        both = np.concatenate([self.labels, other.labels])
        labels, weight = sums_by_label(both, np.concatenate([self.weight, other.weight]))
        _, totals = sums_by_label(both, np.concatenate([self.totals, other.totals]))
        code = np.searchsorted(labels, both)
        gather = csr_array((np.ones(len(both)), (code, np.arange(len(both)))), shape=(len(labels), len(both)))
        return Clusters(labels, weight, totals, gather @ vstack([self.cells, other.cells], format="csr"))

    def replicates(self, n_replicates: int, seed: int) -> Iterator[tuple[Floats, Floats]]:
        """Bootstrap means (b, R) and confusion counts (b, K*K), drawing whole clusters, in batches."""
        rng = np.random.default_rng(seed)
        n = len(self.labels)
        batch = max(1, _DRAWS // n)
        for start in range(0, n_replicates, batch):
            size = min(batch, n_replicates - start)
            draws = rng.multinomial(n, np.full(n, 1 / n), size=size).astype(float)
            with np.errstate(invalid="ignore", divide="ignore"):
                means = _product(draws, self.totals) / (draws @ self.weight)[:, None]
            yield means, draws @ self.cells


def sums_by_label(labels: np.ndarray[Any, Any], values: Floats) -> tuple[np.ndarray[Any, Any], Floats]:
    """The different labels in order, and the sum of the rows of `values` that have each."""
    different, code = np.unique(labels, return_inverse=True)
    sums = np.zeros((len(different), *values.shape[1:]))
    np.add.at(sums, code, values)
    return different, sums


def _product(draws: Floats, totals: Floats) -> Floats:
    """A matrix product with 0 * inf = 0: a cluster that was not drawn counts for nothing."""
    infinite = np.isinf(totals)
    if not infinite.any():
        return draws @ totals
    return np.where(draws @ infinite > 0, np.inf, draws @ np.where(infinite, 0.0, totals))
