"""Gradients by compiled loops, with expected Hessians or losses, for many rows of few classes."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from verax._settings import settings
from verax.engines.slopes import fuse_losses_with_slopes, fuse_slopes
from verax.inputs.arrays import Array, Floats
from verax.kernels.fewclasses import FEW
from verax.kernels.ledger import compiles, kernels, spend
from verax.kernels.threads import n_cores
from verax.scores.base import Rule

# How many logits a thread is given at a time.
_PART = 2**18


@dataclass(frozen=True)
class Scaling:
    """Factors and limits applied to derivatives.

    Attributes
    ----------
    factor : float
        The factor of gradients.
    curvature : float
        The factor of expected Hessians.
    least : float
        The least that a Hessian becomes.
    weights : array of shape (N,), optional
        The weights of the rows: factors of both, at last.
    """

    factor: float = 1.0
    curvature: float = 1.0
    least: float = 0.0
    weights: Floats | None = None

    def of(self, rows: slice | Array) -> Scaling:
        """The scaling for some of the rows."""
        weights = None if self.weights is None else self.weights[rows]
        return Scaling(self.factor, self.curvature, self.least, weights)

    def apply(self, g: Floats, h: Floats) -> tuple[Floats, Floats]:
        """Scale derivatives whose last axis is that of the rows."""
        g, h = g * self.factor, np.maximum(h * self.curvature, self.least)
        return (g, h) if self.weights is None else (g * self.weights, h * self.weights)


AS_THEY_ARE = Scaling()


def run_compiled(
    rule: Rule, z: Array, y: Array, floor: float, scaling: Scaling
) -> tuple[Floats, Floats, Array] | None:
    """Gradients and Hessians of all rows, and for each row whether it is left to array calls.

    None where there is no compiled loop for the rule or the rows, or where it does not pay.
    """
    k, binary, weighted = 2 if z.ndim == 1 else z.shape[1], z.ndim == 1, scaling.weights is not None
    if k > FEW or not compiles(z.size, (rule, k, binary, weighted, "slopes")):
        return None
    fused = fuse_slopes(rule, k, binary=binary, weighted=weighted)
    if fused is None:
        return None
    kernel, constants = fused
    if z.dtype not in (np.float32, np.float64) or not z.dtype.isnative:
        z = z.astype(np.float64)
    y = np.ascontiguousarray(y, np.int64)
    g, h = (np.empty_like(z, dtype=np.float64, subok=False) for _ in range(2))
    left = np.empty(len(z), np.bool_)
    weights = np.empty(0) if scaling.weights is None else np.ascontiguousarray(scaling.weights)
    numbers = constants, floor, scaling.factor, scaling.curvature, scaling.least

    def work(start: int) -> None:
        part = slice(start, start + step)
        kernel(z[part], y[part], weights[part], *numbers, g[part], h[part], left[part])

    step = _PART // k
    with ThreadPoolExecutor(n_cores()) as pool:
        list(pool.map(work, range(0, len(z), step)))
    return g, h, left


def run_with_losses(
    rule: Rule, z: Array, y: Array, *, repeated: bool = False
) -> tuple[Floats, Floats, Array] | None:
    """Losses and gradients of all rows of logits, of shape (K, N), and which rows are left to array calls.

    None as in `run_compiled`. Optimisers ask for these hundreds of times, and begin where they ended before:
    so size alone decides, not how often the loop was asked for. With `repeated`, for training loops, the
    number of calls decides as well.
    """
    k, n = z.shape
    often = repeated and spend((rule, k), 1) > settings.loss_compiled_after
    if z.size < settings.search_compiled_from and not often:
        return None
    fused = None if k > FEW or kernels() is None else fuse_losses_with_slopes(rule, k)
    if fused is None:
        return None
    kernel, constants = fused
    losses, g, left = np.empty(n), np.empty_like(z, dtype=np.float64), np.empty(n, np.bool_)
    kernel(z, y, constants, losses, g, left)
    return losses, g, left
