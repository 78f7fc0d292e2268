"""Class frequencies that differ where forecasts are used: known ones, or estimated from forecasts alone."""

from __future__ import annotations

import numpy as np

from verax.inputs.arrays import Floats

# The estimate is final when no frequency moves by more than this, or after this number of steps.
_STILL, _STEPS = 1e-10, 10_000


def shifted(p: Floats, old: Floats, new: Floats) -> Floats:
    """Rows for class frequencies `new`, given rows that hold for `old`: Bayes' rule.

    >>> shifted(np.array([[0.5, 0.5]]), np.array([0.5, 0.5]), np.array([0.8, 0.2])).tolist()
    [[0.8, 0.2]]
    """
    factor = np.divide(new, old, out=np.zeros_like(new), where=old > 0)
    moved = p * factor
    total = moved.sum(axis=1, keepdims=True)
    # A row that says only what cannot be has nothing to go by but the new frequencies.
    return np.where(total > 0, moved / np.where(total > 0, total, 1.0), new)


def estimated(p: Floats, old: Floats, weights: Floats | None = None) -> Floats:
    """The class frequencies that make the rows most likely, by the EM algorithm of Saerens et al.

    Parameters
    ----------
    p : array of shape (N, K)
        Rows that hold for the class frequencies `old`, of cases whose outcomes are not known.
    """
    w = np.ones(len(p)) if weights is None else weights / weights.max()
    w = w / w.sum()
    new = old.copy()
    for _ in range(_STEPS):
        before, new = new, w @ shifted(p, old, new)
        if np.abs(new - before).max() <= _STILL:
            break
    return new
