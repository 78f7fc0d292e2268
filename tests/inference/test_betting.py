"""Bets whose capital may be looked at after every bet."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from verax.inference.sequences import BETS, adjusted, log_capital, log_factors


def test_the_bound_from_sums_is_below_the_capital_and_near_it_for_small_stakes():
    rng = np.random.default_rng(1)
    for high in (0.5, 3.0, 20.0):
        z = rng.uniform(-1, high, 500) * (rng.random(500) < 0.3)
        exact = np.log1p(BETS * z[:, None]).sum(axis=0)
        bound = log_factors(z.sum(), (z * z).sum(), 500)
        assert (bound <= exact + 1e-9).all()
        assert abs(bound[-1] - exact[-1]) < 1e-3


def test_a_single_observation_needs_no_bound():
    assert np.allclose(log_factors(-1.0, 1.0, 1), np.log1p(-BETS), rtol=1e-14)
    assert np.allclose(log_factors(5.0, 25.0, 1), np.log1p(5 * BETS), rtol=1e-14)


def test_capital_is_one_before_any_bet():
    assert abs(log_capital(np.zeros(len(BETS)))) < 1e-14


@pytest.mark.parametrize("seed", range(40))
def test_adjusted_evidence_is_the_worst_mean_over_all_sets_with_the_claim(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 6))
    e, w, rest = rng.gamma(0.5, 10, n), rng.random(n) + 0.1, float(rng.choice([0.0, 0.3]))
    every, weight = np.append(e, 1.0), np.append(w, rest)
    for k, found in enumerate(adjusted(e, w, rest)):
        sets = (s for r in range(1, n + 2) for s in itertools.combinations(range(n + 1), r) if k in s)
        means = [sum(weight[i] * every[i] for i in s) / sum(weight[i] for i in s) for s in sets]
        assert found == pytest.approx(min(means), rel=1e-12)
