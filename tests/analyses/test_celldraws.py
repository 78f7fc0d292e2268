"""Kernels of draws in cells, as plain Python, against scikit-learn, SciPy and what rows say one by one."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.isotonic import isotonic_regression

from verax.kernels import celldraws


@pytest.mark.parametrize("unit", [0.0, 0.5])
@pytest.mark.parametrize("kind", ["rising", "falling", "noise", "ties", "one"])
def test_fits_to_shares_are_isotonic_regressions(kind, unit):
    rng = np.random.default_rng(3)
    n = 1 if kind == "one" else 40
    size, more = rng.integers(1, 9, n).astype(float), rng.normal(size=n)
    shares = rng.random((n, 3))
    if kind in ("rising", "falling"):
        shares = np.sort(shares, axis=0)[:: 1 if kind == "rising" else -1]
    elif kind == "ties":
        shares = rng.integers(0, 3, (n, 3)) / 2
    out = np.empty((3, 3))
    celldraws.fit_shares.__wrapped__(shares, size, more, unit, np.empty((n, 2)), out)
    for k, share in enumerate(shares.T):
        fit = isotonic_regression(share, sample_weight=size)
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.nan_to_num(share * np.log(fit)) + np.nan_to_num((1 - share) * np.log1p(-fit))
        least = -unit * (size * logs).sum() if unit else (size * fit * (1 - fit)).sum()
        expected = [(size * share).sum(), (size * share * more).sum(), least]
        assert out[:, k] == pytest.approx(expected, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize(("n", "p"), [(1, 0.3), (13, 0.2), (13, 0.7), (600, 0.004), (40, 1e-9), (9, 0.0)])
def test_counts_of_few_rows_are_binomial_quantiles(n, p):
    keys = np.random.SeedSequence(1).generate_state(300, np.uint64)
    q, drawn = min(p, 1 - p), np.empty((2, 300))
    same, room = np.ones(2), (np.empty(160), np.empty(16, np.int64))
    with np.errstate(over="ignore"):
        celldraws.draw_shares.__wrapped__(
            keys, n * same, q * same, (1 - q) ** n * same, 0 * same, [p > 0.5] * 2, same, *room, drawn
        )
        uniform = np.empty((2, 300))
        # Quantiles of a uniform variable are drawn by cells with a spread.
        grid = (np.arange(2**12) + 0.5) / 2**12
        celldraws.draw_shares.__wrapped__(
            keys, same, 0 * same, 0 * same, same, [False] * 2, grid, *room, uniform
        )
    counts = np.round(n * (1 - drawn if p > 0.5 else drawn))
    # Numbers are known to the width of the grid.
    assert (binom.ppf(np.maximum(uniform - 2**-13, 1e-18), n, q) <= counts).all()
    assert (counts <= binom.ppf(uniform + 2**-13, n, q)).all()
