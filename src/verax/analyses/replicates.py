"""Bootstrap replicates of groups whose rows are not all in one place."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from verax.common.hashing import mixed, name_hash
from verax.inputs.arrays import Floats
from verax.inputs.groups import Groups

# Where the distribution function of a Poisson number with mean 1 rises.
_STEPS = np.cumsum(np.exp(-1.0) / np.cumprod([1, *range(1, 25)]))


def poisson_copies(groups: Groups, n: int, seed: int) -> Iterator[Floats]:
    """How often each row is in each replicate: a Poisson number with mean 1, the same for all rows of a
    group.

    It comes from the name of the group, the number of the replicate and the seed alone. So the replicates do
    not depend on how rows are divided, nor on who reads them.

    >>> groups = Groups.of(np.array(["a", "b", "a"]), 3)
    >>> [copies.tolist() for copies in poisson_copies(groups, 3, seed=0)]
    [[1.0, 0.0, 1.0], [1.0, 2.0, 1.0], [2.0, 0.0, 2.0]]
    """
    names = np.array([name_hash(label) for label in groups.labels.tolist()], np.uint64)
    for replicate in range(n):
        (stream,) = mixed(np.array([seed * 1_000_003 + replicate], np.uint64))
        uniform = (mixed(names ^ stream) >> np.uint64(11)) * 2.0**-53
        yield np.searchsorted(_STEPS, uniform, side="right").astype(float)[groups.codes]


def drawn_groups(weights: Floats, whole: float) -> float:
    """How many groups of equal weight tell as much, from the weights of Poisson replicates and of all rows.

    A replicate varies by the sum of the squared weights of the groups.

    >>> drawn_groups(np.array([6.0, 10.0, 8.0, 8.0, 4.0, 12.0]), 8.0)
    9.6
    """
    spread = float(np.mean((weights - whole) ** 2))
    return whole**2 / spread if spread > 0 else np.inf
