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


def test_compiled_fits_to_cells_are_those_of_arrays(change):
    pytest.importorskip("numba")
    rng = np.random.default_rng(0)
    happened = np.round(rng.normal(np.linspace(1, 3, 60), 2, (7, 60)), 1)
    cells = np.stack([rng.integers(1, 5, (7, 60)) * 2.0 - happened, happened]).reshape(2, -1)
    # A cell without weight belongs to its neighbours.
    cells[:, 70] = 0.0
    first = isotonic.first_of_each((7, 60))
    plain = isotonic.isotonic_fits(cells, first)
    change(compiled_from=0)
    found = isotonic.isotonic_fits(cells, first)
    for ours, theirs in zip(found, plain, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)


@needs_numba
@pytest.mark.parametrize("weighted", [False, True])
def test_a_compiled_fit_to_pools_is_the_same(weighted, change):
    """Pools without weight take no part, and so do blocks of equal frequencies that follow each other."""
    change(compiled_from=0)
    rng = np.random.default_rng(5)
    for n in (1, 2, 7, 400):
        cells = rng.integers(0, 4, (n, 2)).astype(float) * (rng.random((n, 1)) if weighted else 1.0)
        ours, theirs = isotonic.recalibrate_many(cells), isotonic.recalibrate(cells)
        assert np.array_equal(ours.kept, theirs.kept)
        assert ours.values == pytest.approx(theirs.values, abs=1e-12)
        assert ours.blocks.sum(axis=0) == pytest.approx(cells.sum(axis=0))
    assert isotonic.recalibrate_many(np.zeros((3, 2))).values.size == 0
