"""Bands that hold for whole curves, and replicates of few groups."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from verax.inference.bootstrap import percentile_interval, simultaneous_band, widened_over_groups


def test_a_band_of_one_point_is_its_interval():
    draws = np.random.default_rng(0).normal(size=(999, 1))
    band = simultaneous_band(draws, np.median(draws, axis=0), 0.9)
    np.testing.assert_allclose(band, percentile_interval(draws, 0.9), atol=0.05)


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95])
def test_a_band_holds_that_share_of_the_replicates_whole(confidence):
    rng = np.random.default_rng(1)
    draws = np.cumsum(rng.normal(size=(400, 30)), axis=1) ** 2
    low, high = simultaneous_band(draws, draws.mean(axis=0), confidence)
    inside = ((draws >= low - 1e-9) & (draws <= high + 1e-9)).all(axis=1).mean()
    assert confidence - 1e-9 <= inside <= confidence + 0.01
    alone = percentile_interval(draws, confidence)
    assert (low <= alone[0] + 1e-12).all()
    assert (high >= alone[1] - 1e-12).all()


def test_a_band_has_no_width_where_no_replicate_differs():
    draws = np.random.default_rng(2).normal(size=(200, 2)) * [1.0, 0.0] + [0.0, 3.0]
    band = simultaneous_band(draws, np.array([0.0, 3.0]), 0.95)
    assert band[:, 1].tolist() == [3.0, 3.0]
    assert band[0, 0] < band[1, 0]


def test_a_band_leaves_out_undefined_replicates():
    draws = np.random.default_rng(3).normal(size=(200, 3))
    draws[:5, 1], draws[:, 2] = np.nan, np.inf
    low, high = simultaneous_band(draws, np.array([0.0, 0.0, np.inf]), 0.95)
    assert np.isfinite([low[:2], high[:2]]).all()
    assert low[2] == high[2] == np.inf


def test_replicates_of_groups_are_spread_as_students_t():
    """The interval of a mean of eight equal groups is that of Student's t distribution."""
    rng = np.random.default_rng(4)
    means = rng.normal(size=8)
    drawn = means[rng.integers(0, 8, (20_000, 8))].mean(axis=1)
    low, high = percentile_interval(widened_over_groups(drawn, means.mean(), 8.0, 0.95), 0.95)
    expected = stats.t.interval(0.95, 7, means.mean(), means.std(ddof=1) / np.sqrt(8))
    assert (high - low) / np.diff(expected)[0] == pytest.approx(1, abs=0.06)


def test_what_is_infinite_or_undefined_stays_so():
    drawn = np.array([[np.inf, np.nan, 1.0], [2.0, 0.0, np.inf]])
    found = widened_over_groups(drawn, np.array([1.0, 0.0, np.inf]), 5.0, 0.95)
    assert np.array_equal(np.isfinite(found), np.isfinite(drawn))
    assert found[0, 2] == 1.0
