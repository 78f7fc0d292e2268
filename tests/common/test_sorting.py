"""Orders that keep equal numbers as they came."""

import numpy as np
import pytest

from verax.common.sorting import stable_order


@pytest.mark.parametrize("n", [0, 1, 2, 17, 5000])
@pytest.mark.parametrize("values", [1, 3, 300, None])
def test_the_order_is_that_of_a_stable_sort(n, values):
    rng = np.random.default_rng(n)
    key = rng.normal(size=n) if values is None else rng.integers(0, values, n) / 7
    key[rng.random(n) < 0.05] = np.inf
    for number in (key, -key, np.ldexp(key, 3).astype(np.float32)):
        assert stable_order(number).tolist() == np.argsort(number, kind="stable").tolist()
