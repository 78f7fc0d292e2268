"""A few rows that tell how the events of a forecast depend on each other.

The rows are those with the smallest hashes of their probabilities. So they are the same wherever the rows
are and however they are divided, and those of parts merge. Outcomes play no part in which rows are kept.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from verax.common.hashing import mixed
from verax.common.packing import UnreadableError
from verax.engines.keyed import Keyed, Run
from verax.engines.sums import Sum
from verax.inputs.arrays import Floats, Ints

# How many different rows are kept: fewer where they have very many classes.
KEPT, _FEWEST, _NUMBERS = 256, 16, 2**17
# What the probabilities of a row are multiplied by before they are added up and hashed.
_GOLDEN = (5**0.5 - 1) / 2


def _most(n_classes: int) -> int:
    """How many different rows are kept."""
    return int(min(KEPT, max(_FEWEST, _NUMBERS // n_classes)))


def sample_of(p: Floats, weights: Floats | None) -> Keyed:
    """The rows to keep, with the weight of all rows that are like each."""
    n, k = p.shape
    most = _most(k)
    # Probabilities are rounded, so that hashes do not depend on how many rows were computed at a time.
    total = np.zeros(n)
    for i in range(k):
        total += p[:, i].astype(np.float32) * (1 + (i + 1) * _GOLDEN % 1)
    keys: Any = mixed(total.view(np.uint64)) >> np.uint64(1)
    at = _smallest(keys, most)
    different, place, count = np.unique(keys[at], return_inverse=True, return_counts=True)
    mass = count if weights is None else np.bincount(place, weights[at], len(different))
    rows = np.empty((len(different), k))
    rows[place] = p[at]
    if len(at) > len(different):
        # Rows that differ by less than the rounding are the smallest of them, in whatever order they come.
        np.minimum.at(rows, place, p[at])
    sums = Sum.of(mass[:, None].astype(float))
    return trimmed(Keyed((Run(different.astype(np.int64), sums, rows, rows),)))


def _smallest(keys: Any, most: int) -> Ints:
    """Where the smallest different keys are; and others."""
    if len(keys) > 4 * most:
        least = np.partition(keys, 2 * most)[2 * most]
        at = np.flatnonzero(keys <= least)
        if len(np.unique(keys[at])) >= most:
            return at
    return np.arange(len(keys))


def trimmed(sample: Keyed) -> Keyed:
    """No more rows than are kept."""
    run = sample.total
    return Keyed((run.at(slice(0, _most(run.least.shape[1]))),))


def is_all(sample: Keyed, n_rows: float) -> bool:
    """Whether these are all rows, and each counts alike."""
    mass = sample.total.sums.high[:, 0]
    times = mass * (n_rows / float(mass.sum()))
    return n_rows <= KEPT and bool((np.abs(times - np.round(times)) < 1e-9).all())


def check_sample(sample: Keyed, n_events: int) -> None:
    """Refuse a stored sample that cannot be one."""
    run = sample.total
    # There is an event for each class, or for each threshold between them.
    shaped = run.least.shape[1] in (n_events, n_events + 1) and run.sums.high.shape[1] == 1
    if not shaped or not (run.sums.high > 0).all() or not ((run.least >= 0) & (run.least <= 1.1)).all():
        raise UnreadableError("has other rows than probabilities of the classes", "sample")
