"""Products, inverses and roots that one thread makes, against those of NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from verax.inference.products import inverse_of, product, root_of, sum_of_products, triangle_times


@pytest.mark.parametrize("columns", [8, 100, 101, 119, 120, 2000])
def test_products_in_slices_are_those_of_whole_matrices(change, columns):
    """Slices of 20 columns: fewer columns, whole slices, and columns that are left."""
    change(product_in_one_thread=20 * 12**2)
    rng = np.random.default_rng(6)
    matrix, g, z = rng.normal(size=(12, 12)), rng.normal(size=(12, columns)), rng.normal(size=(12, columns))
    np.testing.assert_allclose(product(matrix, z), matrix @ z, atol=1e-13)
    np.testing.assert_allclose(product(matrix[:5], z), matrix[:5] @ z, atol=1e-13)
    np.testing.assert_allclose(sum_of_products(g, z), g @ z.T, atol=1e-12)


@pytest.mark.parametrize(("m", "k"), [(100, 100), (190, 190), (70, 400), (60, 700), (70, 700)])
def test_sums_of_products_in_strips_are_those_of_whole_matrices(m, k):
    rng = np.random.default_rng(8)
    g, z = rng.normal(size=(m, 333)), rng.normal(size=(k, 333))
    np.testing.assert_allclose(sum_of_products(g, z), g @ z.T, atol=1e-11)


def test_matrices_are_inverted_by_halves():
    rows = np.random.default_rng(5).normal(size=(2, 120, 150))
    matrices = rows @ np.swapaxes(rows, 1, 2)
    np.testing.assert_allclose(inverse_of(matrices), np.linalg.inv(matrices), atol=1e-12)


@pytest.mark.parametrize("n", [1, 63, 64, 65, 200])
def test_roots_and_what_they_multiply(n):
    rng = np.random.default_rng(7)
    rows, z = rng.normal(size=(n, n + 20)), rng.normal(size=(n, 300))
    root = root_of(rows @ rows.T)
    np.testing.assert_allclose(root, np.linalg.cholesky(rows @ rows.T), atol=1e-11)
    np.testing.assert_allclose(triangle_times(root, z), root @ z, atol=1e-11)
