"""What the tests of recalibration share: outcomes, and forecasts that are off in a known way."""

from __future__ import annotations

import numpy as np

METHODS = ["temperature", "prior", "bcts", "svector", "vector", "smatrix", "dirichlet", "isotonic"]
# Those that "best" tries for more than two classes.
MENU = ["temperature", "prior", "bcts", "svector", "smatrix", "isotonic"]


def softmax(z):
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def drawn(n, k, *, seed=0, spread=1.5, distort=lambda z: z):
    """Outcomes drawn from q, and a forecast that is q with distorted logits."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, k)) * spread
    q = softmax(z)
    y = (rng.random((n, 1)) > np.cumsum(q, axis=1)[:, :-1]).sum(axis=1)
    return y, softmax(distort(z)), q
