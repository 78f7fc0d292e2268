"""The matrix of expected second derivatives of one row, compiled."""

from __future__ import annotations

import math
from typing import Any

from verax.kernels.functions import compiled


@compiled
def fill_matrix(z: Any, by_outcome: Any, lifted: Any, factor: float, matrix: Any) -> None:
    """Fill the (K, K) matrix of a row with logits `z`, times `factor`.

    `by_outcome` has the gradient of the loss for each class that might happen. On the diagonal is what is
    `lifted` already.
    """
    k = z.size
    top = z[0]
    for j in range(k):
        top = max(top, z[j])
    total = 0.0
    for j in range(k):
        total += math.exp(z[j] - top)
    for i in range(k):
        share = -math.exp(z[i] - top) / total * factor
        for j in range(k):
            matrix[i, j] = by_outcome[i, j] * share
        matrix[i, i] = lifted[i] * factor
