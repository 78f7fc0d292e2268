"""Products, inverses and roots of matrices of up to some hundred rows, made in one thread.

Libraries of linear algebra share such a matrix among threads, which wait for each other: an inverse or a root
of a hundred or two takes ten times as long then, and the threads keep cores busy after it.
"""

from __future__ import annotations

import math

import numpy as np

from verax._settings import settings
from verax.inputs.arrays import Floats

# Columns of a slice of a product that one thread makes, at least.
_FEWEST_COLUMNS = 8
# Matrices of more rows are inverted by halves.
_ROWS_AT_ONCE = 48
# Rows of a triangle that are multiplied at a time, with the numbers left of them; and the fewest rows of a
# strip of a sum of products, because larger matrices are worth the threads of a library.
_STRIP = 64


def product(matrix: Floats, z: Floats) -> Floats:
    """The (M, K) matrix times z, (K, n)."""
    m, w = _slices(matrix.shape[0] * matrix.shape[1], z.shape[1])
    if m < 2:
        return np.asarray(matrix @ z)
    result = np.empty((len(matrix), z.shape[1]))
    np.matmul(matrix, _sliced(z, m, w), out=_sliced(result, m, w))
    np.matmul(matrix, z[:, m * w :], out=result[:, m * w :])
    return result


def triangle_times(root: Floats, z: Floats) -> Floats:
    """A lower triangular matrix times z, (K, n), without the zeros above its diagonal."""
    ends = [*range(_STRIP, len(root), _STRIP), len(root)]
    starts = [0, *ends[:-1]]
    strips = [product(root[a:b, :b], z[:b]) for a, b in zip(starts, ends, strict=True)]
    return np.concatenate(strips)


def sum_of_products(g: Floats, z: Floats) -> Floats:
    """The (M, K) matrix g z', summed over the n columns of g, (M, n), and z, (K, n)."""
    height = min(len(g), settings.product_in_one_thread // (_FEWEST_COLUMNS * len(z)))
    if height < min(len(g), _STRIP):
        return np.asarray(g @ z.T)
    total = np.zeros((len(g), len(z)))
    for top in range(0, len(g), height):
        strip, part = g[top : top + height], total[top : top + height]
        w = settings.product_in_one_thread // part.size
        for start in range(0, g.shape[1], w):
            part += strip[:, start : start + w] @ z[:, start : start + w].T
    return total


def _slices(size: int, n: int) -> tuple[int, int]:
    """How many slices of n columns one thread multiplies by a matrix of this size, and how wide they are."""
    w = settings.product_in_one_thread // size
    return (n // w, w) if w >= _FEWEST_COLUMNS else (1, n)


def _sliced(z: Floats, m: int, w: int) -> Floats:
    """The first m w columns as m slices of w, (m, K, w), without a copy."""
    return z[:, : m * w].reshape(len(z), m, w).transpose(1, 0, 2)


def inverse_of(matrices: Floats) -> Floats:
    """The inverse of positive definite matrices, (..., n, n), by halves.

    Symmetry saves a third of the time.
    """
    n = matrices.shape[-1]
    if n <= _ROWS_AT_ONCE:
        return np.asarray(np.linalg.inv(matrices), float)
    half = n // 2
    across, inverse = matrices[..., :half, half:], np.empty(matrices.shape)
    first = inverse_of(matrices[..., :half, :half])
    turned = first @ across
    second = inverse_of(matrices[..., half:, half:] - np.swapaxes(across, -1, -2) @ turned)
    mixed = -turned @ second
    inverse[..., :half, :half] = first - mixed @ np.swapaxes(turned, -1, -2)
    inverse[..., :half, half:] = mixed
    inverse[..., half:, :half] = np.swapaxes(mixed, -1, -2)
    inverse[..., half:, half:] = second
    return inverse


def root_of(matrix: Floats) -> Floats:
    """The lower triangular root of a positive definite matrix (Cholesky), a column after the other."""
    root = np.zeros(matrix.shape)
    for i in range(len(matrix)):
        column = matrix[i:, i] - np.einsum("ij,j->i", root[i:, :i], root[i, :i])
        root[i:, i] = column / math.sqrt(column[0])
    return root
