"""Bootstrap: how often each row is drawn, resampled counts, percentile intervals.

Nothing is ever copied or sorted again: a replicate is a vector of multiplicities.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from verax.arrays import Floats
from verax.clusters import Groups
from verax.intervals import check_confidence, check_replicates

__all__ = [
    "block_multiplicities",
    "check_confidence",
    "check_replicates",
    "multiplicities",
    "percentile_interval",
    "resampled_counts",
]


def percentile_interval(replicates: Floats, confidence: float) -> Floats:
    """The central interval of replicates along the first axis, (2, ...); NaN replicates are left out."""
    tails = [50 * (1 - confidence), 50 * (1 + confidence)]
    undefined = np.isnan(replicates)
    # Between two infinite replicates, interpolation has nothing to say; the answer is infinite.
    with np.errstate(invalid="ignore"):
        if not undefined.any():
            interval = np.percentile(replicates, tails, axis=0)
            return np.where(np.isnan(interval), np.inf, interval)
        missing = undefined.all(axis=0)
        interval = np.nanpercentile(np.where(missing, 0.0, replicates), tails, axis=0)
    return np.where(missing, np.nan, np.where(np.isnan(interval), np.inf, interval))


def resampled_counts(counts: Floats, n_replicates: int, seed: int) -> Floats:
    """Tables of counts as a bootstrap of the rows would give them, (B, K, K).

    The counts of a bootstrap sample are multinomial, so drawing them directly is the same bootstrap
    at a cost that does not depend on the number of rows. Weights count as numbers of rows.
    """
    total = counts.sum()
    rng = np.random.default_rng(seed)
    draws = rng.multinomial(round(total), counts.ravel() / total, size=n_replicates)
    return draws.reshape(n_replicates, *counts.shape).astype(float)


def multiplicities(n_rows: int, groups: Groups | None, n_replicates: int, seed: int) -> Iterator[Any]:
    """How often each row is drawn in each bootstrap replicate; rows of a group are drawn together."""
    rng = np.random.default_rng(seed)
    n_units = n_rows if groups is None else len(groups.labels)
    for _ in range(n_replicates):
        drawn = np.bincount(rng.integers(0, n_units, n_units), minlength=n_units)
        yield drawn if groups is None else drawn[groups.codes]


def block_multiplicities(n_rows: int, block: int, n_replicates: int, seed: int) -> Iterator[Any]:
    """How often each row is drawn when blocks of neighbours are, around the end to the beginning.

    The circular block bootstrap of Politis and Romano (1992), for rows in order of time.
    """
    rng = np.random.default_rng(seed)
    n_blocks = -(-n_rows // block)
    for _ in range(n_replicates):
        starts = rng.integers(0, n_rows, n_blocks)
        rows = (starts[:, None] + np.arange(block)).ravel()[:n_rows] % n_rows
        yield np.bincount(rows, minlength=n_rows)
