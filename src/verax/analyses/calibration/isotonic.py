"""Isotonic fits: pools of forecasts drawn together until their frequencies do not decrease."""

from __future__ import annotations

import sys

import numpy as np

from verax.inputs.arrays import Floats, Ints
from verax.kernels.ledger import spend

# Importing `scipy.optimize` takes longer than fitting so many pools in Python, at once or in several fits.
_SMALL, _SMALL_IN_ALL = 20_000, 100_000


def isotonic_edges(values: Floats, weights: Floats) -> Ints:
    """Where the blocks of the non-decreasing fit begin, and the number of values last.

    >>> isotonic_edges(np.array([0.1, 0.5, 0.3, 0.9]), np.ones(4)).tolist()
    [0, 1, 3, 4]
    """
    many = len(values) > _SMALL or spend("isotonic fits", len(values)) > _SMALL_IN_ALL
    if many or "scipy.optimize" in sys.modules:
        from scipy.optimize import isotonic_regression

        return np.asarray(isotonic_regression(values, weights=weights).blocks)
    return _pool(values.tolist(), weights.tolist())


def _pool(values: list[float], weights: list[float]) -> Ints:
    """The same by pooling adjacent violators: a value joins the block before it unless it is larger."""
    means: list[float] = []
    masses: list[float] = []
    starts: list[int] = []
    for i, (mean, mass) in enumerate(zip(values, weights, strict=True)):
        start = i
        while means and means[-1] >= mean:
            before, start = masses.pop(), starts.pop()
            mean = (before * means.pop() + mass * mean) / (before + mass)
            mass += before
        means.append(mean)
        masses.append(mass)
        starts.append(start)
    return np.array([*starts, len(values)])
