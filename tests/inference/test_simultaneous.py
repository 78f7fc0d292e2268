"""The quantiles of simultaneous bands: against plain draws, and the same whatever rounding does."""

from __future__ import annotations

import numpy as np
import pytest

from verax.inference.bootstrap import widest
from verax.inference.intervals import t_quantile


def drawn(covariance, freedom, confidence, n=40_000):
    """The quantile of the largest |t| by plain draws."""
    rng = np.random.default_rng(0)
    error = np.sqrt(np.diag(covariance))
    values, vectors = np.linalg.eigh(covariance / np.outer(error, error))
    root = vectors * np.sqrt(np.maximum(values, 0))
    normal = np.abs(rng.standard_normal((n, len(root))) @ root.T).max(axis=1)
    return np.quantile(normal / np.sqrt(rng.chisquare(freedom, n) / freedom), confidence)


def walk(n, rank=None):
    """The covariance of sums of the first 1, 2, ... of n steps, many of which may be nothing."""
    steps = np.random.default_rng(n).exponential(size=n)
    if rank is not None:
        steps[rank:] = 0
    rows = np.tril(np.ones((n, n))) * np.sqrt(steps)
    return rows @ rows.T


@pytest.mark.parametrize("freedom", [4.0, 60.0, 1e9])
@pytest.mark.parametrize("confidence", [0.6, 0.95, 0.99])
@pytest.mark.parametrize("covariance", [np.eye(12), walk(40), walk(60, rank=9)])
def test_the_quantile_is_that_of_draws(covariance, freedom, confidence):
    found = np.mean([widest(covariance, freedom, confidence, seed) for seed in range(4)])
    assert found == pytest.approx(drawn(covariance, freedom, confidence), rel=0.035 if freedom < 5 else 0.015)


def test_of_one_estimate_it_is_that_of_an_interval():
    for covariance in (np.eye(1), np.zeros((3, 3)), np.diag([1.0, 0, 0])):
        assert widest(covariance, 7, 0.9, 0) == t_quantile(7, 0.9)
    assert widest(np.ones((5, 5)), 7, 0.9, 0) == pytest.approx(t_quantile(7, 0.9), rel=0.01)
    assert np.isnan(widest(np.full((2, 2), np.nan), 7, 0.9, 0))


def test_rounding_does_not_show():
    covariance = walk(60, rank=9)
    noise = np.random.default_rng(0).normal(size=covariance.shape)
    other = covariance * (1 + 1e-15 * (noise + noise.T))
    assert widest(other, 20, 0.95, 0) == widest(covariance, 20, 0.95, 0)
