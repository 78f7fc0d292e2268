"""Orders that keep equal numbers as they came."""

import numpy as np
import pytest

from verax.common.sorting import distinct_values, n_distinct, stable_order


@pytest.mark.parametrize("n", [0, 1, 2, 17, 5000])
@pytest.mark.parametrize("values", [1, 3, 300, None])
def test_the_order_is_that_of_a_stable_sort(n, values):
    rng = np.random.default_rng(n)
    key = rng.normal(size=n) if values is None else rng.integers(0, values, n) / 7
    key[rng.random(n) < 0.05] = np.inf
    for number in (key, -key, np.ldexp(key, 3).astype(np.float32)):
        assert stable_order(number).tolist() == np.argsort(number, kind="stable").tolist()


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.uint64, np.float64, "U3", np.bool_])
def test_distinct_values_are_those_of_numpy(dtype, compiled, change):
    if compiled:
        pytest.importorskip("numba")
    change(compiled_from=0, kernels=compiled)
    # Once all up to the greatest have occurred, greater ones may follow, and one that is outside.
    long = [*range(100)] * 25 + [102, 3], [*range(100)] * 25 + [-1], [*range(100)] * 25 + [101, 100]
    several = (
        *long,
        [3, 1, 3, -2],
        [],
        [0],
        [100, 7, 100],
        [5, 4_000_000, 5],
        [2, 1, 0, 2],
        [1, 2, 2],
        [3, 0, 3, 1],
    )
    for values in several:
        given = (
            np.abs(values).astype(dtype) if np.dtype(dtype).kind in "ub" else np.array(values).astype(dtype)
        )
        labels, codes = distinct_values(given)
        expected = np.unique(given, return_inverse=True)
        assert labels.dtype == given.dtype
        np.testing.assert_array_equal(labels, expected[0])
        np.testing.assert_array_equal(codes, expected[1])


@pytest.mark.parametrize("compiled", [False, True])
def test_places_are_a_copy_and_labels_may_lie_anywhere(compiled, change):
    if compiled:
        pytest.importorskip("numba")
    change(compiled_from=0, kernels=compiled)
    given = np.array([[0, 9], [1, 9], [0, 9], [2, 9]])[:, 0]
    labels, codes = distinct_values(given)
    given[:] = 9
    assert (labels.tolist(), codes.tolist()) == ([0, 1, 2], [0, 1, 0, 2])


def test_integers_near_the_ends_of_their_range():
    for values in (np.array([2**64 - 1, 2**64 - 2, 2**64 - 1], np.uint64), np.array([-(2**63), 2**63 - 1])):
        labels, codes = distinct_values(values)
        np.testing.assert_array_equal(labels[codes], values)
        assert len(labels) == 2


@pytest.mark.parametrize("dtype", [np.int64, np.uint64, np.float32, np.float64])
def test_the_number_of_distinct_values_is_that_of_a_set(dtype):
    for values in ([], [0], [0, 0], [3, 1, 3, 2], list(range(1000)) * 2):
        given = np.array(values).astype(dtype)
        before = given.copy()
        assert n_distinct(given) == len(set(values))
        np.testing.assert_array_equal(given, before)
    assert n_distinct(np.array([0.0, -0.0, np.inf])) == 2
