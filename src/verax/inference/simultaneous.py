"""Simultaneous confidence bands (sup-t): the number of standard errors that covers all estimates at once."""

from __future__ import annotations

import math

import numpy as np

from verax.inference.intervals import t_quantile
from verax.inputs.arrays import Floats

# Rounds of importance sampling: the last one's draws give the quantile an error of about 0.01.
_DRAWS = (250, 250, 1000)
# Smaller standard errors, relative to the largest, are rounding. Added to correlations so that they have a
# Cholesky factor.
_NOTHING, _JITTER = 1e-9, 1e-9
# The number of independent estimates that the first round starts from.
_FIRST = 10.0


def widest(covariance: Floats, freedom: float, confidence: float, seed: int) -> float:
    """The quantile of the largest |t| among estimates with this covariance, at a confidence level.

    P(max |t| > c) is the sum over the estimates of P(|t_i| > c), times the mean of 1 / (number of estimates
    beyond c), given that a randomly chosen one is (Owen, Maximov and Chertkov 2019, arXiv:1710.06965).
    That mean hardly depends on c, so a few rounds of few draws are enough. It changes by whole draws only:
    rounding in the covariance does not show.

    >>> round(widest(np.eye(1), 20, 0.95, 0), 3), round(t_quantile(20, 0.95), 3)
    (2.086, 2.086)
    """
    from scipy.special import stdtr, stdtrit

    error = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    if not np.isfinite(covariance).all():
        return math.nan
    known = error > _NOTHING * error.max(initial=0.0)
    n = int(known.sum())
    if n < 2:
        return t_quantile(freedom, confidence)
    correlation = covariance[np.ix_(known, known)] / np.outer(error[known], error[known])
    root = np.linalg.cholesky(correlation + _JITTER * np.eye(n)).T
    rng = np.random.default_rng(seed)
    half = (1 - float(confidence)) / 2
    quantile = -float(stdtrit(freedom, half / min(n, _FIRST)))
    for draws in _DRAWS:
        row, at = np.arange(draws), np.arange(draws) * n // draws
        # The one beyond the quantile, in strata, then the others given that one.
        chosen = -stdtrit(freedom, stdtr(freedom, -quantile) * (rng.permutation(draws) + 0.5) / draws)
        normal = rng.standard_normal((draws, n)) @ root
        rest = normal - correlation[at] * normal[row, at][:, None]
        scale = np.sqrt((freedom + chosen**2) / rng.chisquare(freedom + 1, draws))
        t = np.abs(correlation[at] * chosen[:, None] + scale[:, None] * rest)
        t[row, at] = np.inf
        effective = n * float(np.mean(1 / np.count_nonzero(t >= quantile, axis=1)))
        quantile = -float(stdtrit(freedom, half / max(effective, 1.0)))
    return quantile
