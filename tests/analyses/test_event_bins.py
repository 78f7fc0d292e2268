"""The distinct forecasts of events of rows in memory, their isotonic fits, and bands over them."""

import numpy as np
import pytest

from verax.analyses.binary import BinaryEvent
from verax.analyses.calibration.isotonic import IsotonicFit, isotonic_fit
from verax.analyses.calibration.sums import bins_of_rows, sorted_rows


def event(given, happened):
    given = np.asarray(given)
    return BinaryEvent("", given, None, given, np.asarray(happened, np.bool_))


def bins_of(given, happened):
    made = event(given, happened)
    return bins_of_rows(made, None, sorted_rows(made))


@pytest.mark.parametrize("values", [1, 3, 40, 10**9])
@pytest.mark.parametrize("least", [0.0, -1e-9])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rows_that_count_alike_are_pooled_by_forecast(values, least, dtype):
    rng = np.random.default_rng(values)
    given = (rng.integers(0, values, 60) / max(values - 1, 1)).astype(dtype)
    given[0] = least
    given = np.repeat(given, 2)[::2]
    happened = rng.random(60) < 0.4
    bins = bins_of(given, happened)
    expected = sorted(set(given.tolist()))
    assert bins.forecast.tolist() == pytest.approx(expected, rel=1e-15)
    assert bins.weight.tolist() == [np.count_nonzero(given == x) for x in expected]
    assert bins.happened.tolist() == [np.count_nonzero(happened[given == x]) for x in expected]
    assert bins.claimed.tolist() == pytest.approx([given[given == x].sum(dtype=float) for x in expected])
    assert bins.squares.tolist() == bins.weight.tolist()


def test_one_row_and_rows_of_one_class_are_pooled():
    alone = bins_of([0.25], [True])
    assert (alone.forecast.tolist(), alone.weight.tolist(), alone.happened.tolist()) == ([0.25], [1], [1])
    never = bins_of([0.5, 0.0, 0.5], [False] * 3)
    assert (never.forecast.tolist(), never.happened.tolist()) == ([0.0, 0.5], [0, 0])
    assert never.cells.tolist() == [[1, 0], [2, 0]]


@pytest.mark.parametrize("values", [2, 30, 10**9])
def test_a_fit_whose_blocks_are_known_is_that_of_its_pools(values):
    rng = np.random.default_rng(0)
    bins = bins_of(rng.integers(0, values, 300) / values, rng.random(300) < 0.3)
    expected = isotonic_fit(bins.cells)
    found = IsotonicFit.of_blocks(expected.blocks, bins.weight)
    assert found.sizes.tolist() == expected.sizes.tolist()
    assert found.values.tolist() == expected.values.tolist()
    assert found.kept.all()
    assert len(found.kept) == len(bins.weight)
