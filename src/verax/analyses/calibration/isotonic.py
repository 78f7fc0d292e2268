"""Isotonic fits: pools of forecasts drawn together until their frequencies do not decrease."""

from __future__ import annotations

import sys

import numpy as np

from verax.inputs.arrays import Floats, Ints

# Importing `scipy.optimize` takes as long as fitting about a million pools in Python.
_SMALL = 20_000


def isotonic_edges(values: Floats, weights: Floats) -> Ints:
    """Where the blocks of the non-decreasing fit begin, and the number of values last.

    >>> isotonic_edges(np.array([0.1, 0.5, 0.3, 0.9]), np.ones(4)).tolist()
    [0, 1, 3, 4]
    """
    if len(values) > _SMALL or "scipy.optimize" in sys.modules:
        from scipy.optimize import isotonic_regression

        return np.asarray(isotonic_regression(values, weights=weights).blocks)
    return _pool(values.tolist(), weights.tolist())


def _pool(values: list[float], weights: list[float]) -> Ints:
    """The same blocks as SciPy's, by the same steps (Busing 2022, doi:10.18637/jss.v102.c01)."""
    n = len(values)
    means, masses, starts = [values[0]], [weights[0]], [0]
    i = 1
    while i < n:
        mean, mass, start = values[i], weights[i], i
        if means[-1] >= mean:
            total = masses[-1] * means[-1] + mass * mean
            mass += masses.pop()
            means.pop()
            start = starts.pop()
            mean = total / mass
            while i < n - 1 and mean >= values[i + 1]:
                i += 1
                total += weights[i] * values[i]
                mass += weights[i]
                mean = total / mass
            while means and means[-1] >= mean:
                total += masses[-1] * means[-1]
                mass += masses.pop()
                means.pop()
                start = starts.pop()
                mean = total / mass
        means.append(mean)
        masses.append(mass)
        starts.append(start)
        i += 1
    return np.array([*starts, n])
