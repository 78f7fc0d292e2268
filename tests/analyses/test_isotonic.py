"""Isotonic fits without SciPy are those of SciPy."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import isotonic_regression

from verax.analyses.calibration.isotonic import _pool, isotonic_edges

VALUES = st.floats(0, 1, width=32) | st.sampled_from([0.0, 0.25, 0.5, 1.0])


@given(st.lists(st.tuples(VALUES, st.sampled_from([1.0, 2.0, 0.1, 3e-7, 1e6])), min_size=1, max_size=60))
def test_the_fit_is_that_of_scipy(cells):
    values, weights = (np.array(column, float) for column in zip(*cells, strict=True))
    expected = isotonic_regression(values, weights=weights)
    # Blocks whose frequencies are equal may be one or two, as the rounding has it.
    edges = _pool(values.tolist(), weights.tolist())
    fitted = np.add.reduceat(weights * values, edges[:-1]) / np.add.reduceat(weights, edges[:-1])
    assert (np.diff(fitted) >= -1e-15).all()
    np.testing.assert_allclose(np.repeat(fitted, np.diff(edges)), expected.x, rtol=1e-12, atol=1e-15)
    np.testing.assert_array_equal(isotonic_edges(values, weights), expected.blocks)


def test_small_fits_do_not_wait_for_scipy():
    code = """
import sys
import verax as vx
from verax.analyses.calibration.summary import summarize
summarize([1, 0, 2, 1], [[0.1, 0.8, 0.1], [0.6, 0.3, 0.1], [0.2, 0.3, 0.5], [0.5, 0.3, 0.2]])
assert not any(name.partition(".")[0] in ("scipy", "sklearn", "matplotlib") for name in sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True)
