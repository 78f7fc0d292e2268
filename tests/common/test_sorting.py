"""Orders that keep equal numbers as they came."""

import numpy as np
import pytest

from verax.common.sorting import distinct_values, stable_order


@pytest.mark.parametrize("n", [0, 1, 2, 17, 5000])
@pytest.mark.parametrize("values", [1, 3, 300, None])
def test_the_order_is_that_of_a_stable_sort(n, values):
    rng = np.random.default_rng(n)
    key = rng.normal(size=n) if values is None else rng.integers(0, values, n) / 7
    key[rng.random(n) < 0.05] = np.inf
    for number in (key, -key, np.ldexp(key, 3).astype(np.float32)):
        assert stable_order(number).tolist() == np.argsort(number, kind="stable").tolist()


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.uint64, np.float64, "U3", np.bool_])
def test_distinct_values_are_those_of_numpy(dtype):
    for values in ([3, 1, 3, -2], [], [0], [100, 7, 100], [5, 4_000_000, 5]):
        given = (
            np.abs(values).astype(dtype) if np.dtype(dtype).kind in "ub" else np.array(values).astype(dtype)
        )
        labels, codes = distinct_values(given)
        expected = np.unique(given, return_inverse=True)
        assert labels.dtype == given.dtype
        np.testing.assert_array_equal(labels, expected[0])
        np.testing.assert_array_equal(codes, expected[1])


def test_integers_near_the_ends_of_their_range():
    for values in (np.array([2**64 - 1, 2**64 - 2, 2**64 - 1], np.uint64), np.array([-(2**63), 2**63 - 1])):
        labels, codes = distinct_values(values)
        np.testing.assert_array_equal(labels[codes], values)
        assert len(labels) == 2
