"""Resampling over groups whose effects are skewed."""

from __future__ import annotations

import numpy as np
import pytest

from verax.engines.differences import PairedTally
from verax.inference.estimates import (
    Estimate,
    Units,
    _bent_draws,
    _straightened,
    bootstrap_means,
    bootstrap_p,
    permutation_p,
)
from verax.inference.intervals import Resampling, straightened


def test_the_statistic_of_swapped_groups_is_that_of_groups_with_these_signs():
    rng = np.random.default_rng(0)
    weight, columns = rng.integers(1, 9, 7).astype(float), rng.exponential(size=(7, 2))
    signs = rng.choice([-1.0, 1.0], size=(5, 7))
    found = _straightened(signs, weight, columns)
    for s, row in zip(signs, found, strict=True):
        for c, value in enumerate(row):
            mean = (s * columns[:, c]).sum() / weight.sum()
            rest = (s * columns[:, c] - weight * mean) / weight.sum()
            error = np.sqrt((rest**2).sum())
            skewness = np.clip((rest**3).sum() / error**3, -1, 1)
            assert value == pytest.approx(abs(straightened(mean / error, skewness)), rel=1e-9)


def test_groups_that_all_agree_are_the_most_extreme():
    losses = np.column_stack([np.ones(12), np.zeros(12)])
    units = Units("groups", codes=np.repeat(np.arange(6), 2))
    # Two of 64 patterns of signs are as extreme.
    assert permutation_p(losses, units, 4000, 0)[2] == pytest.approx(2 / 64, abs=0.01)
    assert permutation_p(np.zeros((12, 2)), units, 100, 0)[2] == 1.0


def test_draws_without_skewness_stay():
    draws = np.random.default_rng(0).normal(size=(50, 1))
    stays = _bent_draws(draws, np.zeros(1), np.ones(1), np.zeros(1))
    np.testing.assert_allclose(stays, draws, rtol=1e-12)


def test_the_bootstrap_over_skewed_groups_has_the_limits_of_the_t_test():
    rng = np.random.default_rng(3)
    codes = np.repeat(np.arange(60), 5)
    losses = np.column_stack([rng.exponential(size=60)[codes] - 0.8, np.zeros(300)])
    units = Units("groups", codes=codes)
    estimate = Estimate.of(PairedTally(2).update(losses, None, codes), losses, units)
    draws = bootstrap_means(losses, units, Resampling(replicates=4000, seed=0))[:, 2]
    interval, error = estimate.intervals(0.95)[2], float(estimate.error[2])
    assert np.quantile(draws, [0.025, 0.975]) == pytest.approx(list(interval), abs=0.15 * error)
    # The mean is skewed upwards, and its limits are not symmetric about it.
    assert interval.high - estimate.mean[2] > 1.1 * (estimate.mean[2] - interval.low)
    p = bootstrap_p(draws[:, None], np.array([draws.mean()]))[0]
    assert (p <= 0.05) == (not interval.low <= 0 <= interval.high)
