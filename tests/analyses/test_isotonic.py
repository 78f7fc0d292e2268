"""Isotonic fits without SciPy are those of SciPy."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import isotonic_regression

from cases import needs_numba
from verax.analyses.calibration import isotonic

VALUES = st.floats(0, 1, width=32) | st.sampled_from([0.0, 0.25, 0.5, 1.0])


@given(st.lists(st.tuples(VALUES, st.sampled_from([1.0, 2.0, 0.1, 3e-7, 1e6])), min_size=1, max_size=60))
def test_the_fit_is_that_of_scipy(cells):
    values, weights = (np.array(column, float) for column in zip(*cells, strict=True))
    # Blocks whose frequencies are equal may be one or two, as the rounding has it.
    fitted = isotonic.isotonic_fit(np.stack([weights - weights * values, weights * values], axis=1)).values
    assert (np.diff(fitted) >= -1e-15).all()
    np.testing.assert_allclose(fitted, isotonic_regression(values, weights=weights).x, rtol=1e-12, atol=1e-9)


def test_a_fit_that_joins_one_pool_after_the_other_is_that_of_scipy():
    """The last pool is heavy and low: no round of array calls joins more than one pool to it."""
    values, weights = np.linspace(0, 1, 2000), np.ones(2000)
    values[-1], weights[-1] = 0.0, 500.0
    fitted = isotonic.isotonic_fit(np.stack([weights - weights * values, weights * values], axis=1)).values
    np.testing.assert_allclose(fitted, isotonic_regression(values, weights=weights).x, rtol=1e-12)


def test_small_fits_do_not_wait_for_scipy():
    code = """
import sys
import verax as vx
from verax.analyses.calibration.summary import summarize
summarize([1, 0, 2, 1], [[0.1, 0.8, 0.1], [0.6, 0.3, 0.1], [0.2, 0.3, 0.5], [0.5, 0.3, 0.2]])
assert not any(name.partition(".")[0] in ("scipy", "sklearn", "matplotlib") for name in sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_compiled_fits_to_cells_are_those_of_arrays(change):
    pytest.importorskip("numba")
    rng = np.random.default_rng(0)
    happened = np.round(rng.normal(np.linspace(1, 3, 60), 2, (7, 60)), 1)
    cells = np.stack([rng.integers(1, 5, (7, 60)) * 2.0 - happened, happened]).reshape(2, -1)
    # A cell without weight belongs to its neighbours.
    cells[:, 70] = 0.0
    first = np.arange(7 * 60) % 60 == 0
    plain = isotonic.isotonic_fits(cells, first)
    change(compiled_from=0)
    found = isotonic.isotonic_fits(cells, first)
    for ours, theirs in zip(found, plain, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)


@needs_numba
@pytest.mark.parametrize("weighted", [False, True])
def test_a_compiled_fit_to_pools_is_the_same(weighted, change):
    """Pools without weight take no part, and so do blocks of equal frequencies that follow each other."""
    rng = np.random.default_rng(5)
    for n in (1, 2, 7, 400):
        cells = rng.integers(0, 4, (n, 2)).astype(float) * (rng.random((n, 1)) if weighted else 1.0)
        change(compiled_from=2**19)
        theirs = isotonic.isotonic_fit(cells)
        change(compiled_from=0)
        ours = isotonic.isotonic_fit(cells)
        assert np.array_equal(ours.kept, theirs.kept)
        assert ours.values == pytest.approx(theirs.values, abs=1e-12)
        assert ours.blocks.sum(axis=0) == pytest.approx(cells.sum(axis=0))
    assert isotonic.isotonic_fit(np.zeros((3, 2))).values.size == 0
