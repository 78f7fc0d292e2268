"""Compiled derivatives of one row for CatBoost: its gradient and expected Hessian."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from verax.kernels.texts import Kernel

# Any class may be the outcome, so its gradients are those of one row per class. CatBoost reads tuples of
# floats four times as fast as arrays.
_TEXT = """
def row(z, target, factor, c):
    rows, g, h = np.empty(({k}, {k})), np.empty(({k}, {k})), np.empty(({k}, {k}))
    left = np.empty({k}, np.bool_)
    places = {places}
    top = z[0]
    for j in range({k}):
        top = max(top, z[j])
        for i in range({k}):
            rows[i, places[j]] = z[j]
    total = 0.0
    for j in range({k}):
        total += math.exp(z[j] - top)
    slopes(rows, np.arange({k}), np.empty(0), c, {floor!r}, {scale!r}, {scale!r}, {least!r}, g, h, left)
    for column in range({k}):
        i = places[column]
        share = -math.exp(z[column] - top) / total * factor
        for j in range({k}):
            rows[i, j] = g[i, j] * share
        rows[i, i] = h[0, i] * factor
    t = places[int(target)]
    return not left.any(), ({gradient}), ({matrix})
"""


def row_kernel(
    slopes: Kernel, n_classes: int, places: Sequence[int], floor: float, scale: float, least: float
) -> Kernel:
    """A kernel (z, target, factor, constants) that returns tuples of floats: the gradient and the matrix.

    Parameters
    ----------
    slopes : Kernel
        The kernel of `engines.slopes.fuse_slopes`, which takes the constants.
    n_classes : int
        The number of classes.
    places : sequence of int
        The place of each column of `z` among the ordered classes.
    floor, scale, least : float
        As that kernel takes them.

    Returns
    -------
    Kernel
        It also returns, first, whether the numbers may be used.
    """
    import numba

    from verax.kernels import arithmetic

    cells = [f"rows[{i}, {j}]" for i in places for j in places]
    lines = [f"({', '.join(cells[i : i + n_classes])},)" for i in range(0, len(cells), n_classes)]
    parts: dict[str, Any] = {"floor": floor, "scale": scale, "least": least, "places": tuple(places)}
    text = _TEXT.format(
        k=n_classes,
        gradient=", ".join(f"g[t, {j}] * factor" for j in places) + ",",
        matrix=", ".join(lines) + ",",
        **parts,
    )
    scope: dict[str, Any] = {"slopes": slopes, "np": np, "math": math, "__name__": __name__}
    with arithmetic.one_at_a_time:
        exec(compile(text, __file__, "exec"), scope)
    # It calls another kernel by its address, so its code cannot be kept on disk.
    return numba.njit(**arithmetic.OPTIONS | {"cache": False})(scope["row"])  # type: ignore[no-any-return]
