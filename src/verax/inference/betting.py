"""Bets against a claim, whose capital may be looked at after every bet.

A claim says that observations z, none below -1, have means of at most zero given all that came before. A
bet of a share c < 1 of the capital on z multiplies the capital by 1 + c z. If the claim is true, the capital
ever exceeds 1 / alpha with probability alpha at most (Ville). Bets are split among several stakes, because
the best one depends on how false the claim is.

Observations that arrive together enter as two sums, A of z and B of z*z, so that parts merge and their order
does not matter. For x >= -c, log(1 + x) >= x - x*x (-c - log(1 - c)) / (c*c), so the capital is at least
exp(c A - (-c - log(1 - c)) B). This bound raises no false alarm, and small stakes lose next to nothing by
it. A single observation needs no bound.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from verax.inputs.arrays import Floats

# The shares of the capital that are bet, and how the capital is split among them.
STAKES: Floats = np.array([0.75 * 2.0 ** (-i / 2) for i in range(24)])
_SPLIT: Floats = np.array([1 / (i + 2) for i in range(24)])
LOG_SPLIT: Floats = np.log(_SPLIT / _SPLIT.sum())
# Where bounds of a mean are looked for, as shares of the way to the largest value.
_OFFSETS: Floats = np.geomspace(1e-8, 1.0, 4000)[:-1]
# What the square of an observation costs at each stake.
_PRICES: Floats = -STAKES - np.log1p(-STAKES)


def log_factors(first: Any, second: Any, n: Any) -> Floats:
    """By what observations multiply the capital at each stake, in logarithms.

    Parameters
    ----------
    first : array of shape (...)
        The sums of the observations, each at least -1.
    second : array of shape (...)
        The sums of their squares.
    n : array of shape (...)
        The number of observations.

    Returns
    -------
    array of shape (..., 24)
        Logarithms of the factors, or bounds below them.

    Examples
    --------
    >>> bool((log_factors(3.0, 4.0, 10) <= 10 * np.log1p(STAKES * 0.3)).all())
    True
    """
    first, second, n = (np.asarray(each, float)[..., None] for each in (first, second, n))
    exact = np.log1p(
        STAKES * np.maximum(first, -1.0), where=n == 1, out=np.zeros((*first.shape[:-1], len(STAKES)))
    )
    return np.asarray(np.where(n == 1, exact, STAKES * first - _PRICES * second))


def log_capital(logs: Floats) -> Floats:
    """The logarithm of the capital of all stakes together, from those of each (on the last axis)."""
    return np.asarray(np.logaddexp.reduce(logs + LOG_SPLIT, axis=-1))


def upper_mean(
    n: float,
    mean: float,
    squares: tuple[float, float, float],
    most: float,
    error: float,
    largest: float = 1.0,
) -> float:
    """An upper confidence bound of the mean of bounded values, for any number and distribution of them.

    The bound is the smallest mean that a betting strategy on smaller values rejects.

    Parameters
    ----------
    n : float
        The number of values; the sum of their weights, where they have weights.
    mean : float
        Their mean.
    squares : tuple of float
        The sum of squared weighted deviations from `mean` + t, as coefficients of 1, t and t*t.
    most : float
        The largest possible value.
    error : float
        The probability with which the bound may lie below the true mean.
    largest : float, default 1
        The largest weight.

    Returns
    -------
    float
        The bound; `most` where the values do not tell.

    Examples
    --------
    >>> round(upper_mean(60, 0.0, (0.0, 0.0, 60.0), 1.0, 0.025), 3)
    0.115
    """
    if not mean < most:
        return float(most)
    above = (most - mean) * _OFFSETS
    scale = largest * (most - mean - above)
    logs = log_factors(n * above / scale, np.polyval(squares[::-1], above) / scale**2, 0)
    rich = np.flatnonzero(log_capital(logs) >= -np.log(error))
    return float(mean + above[rich[0]]) if len(rich) else float(most)


def adjusted(evidence: Floats, weights: Floats, rest: float = 0.0) -> Floats:
    """E-values adjusted for testing several claims: any that reaches 1 / alpha keeps the family-wise error.

    A set of claims is tested by the weighted mean of its e-values. A claim is rejected if every set that
    contains it is (closed testing; Vovk and Wang 2021, doi:10.1214/20-AOS2020).

    Parameters
    ----------
    evidence : array of shape (n,)
        The e-value of each claim.
    weights : array of shape (n,)
        Their weights.
    rest : float, default 0
        The weight of claims that may still come; their e-values are 1.

    Returns
    -------
    array of shape (n,)
        The adjusted e-values.

    Examples
    --------
    >>> adjusted(np.array([90.0, 6.0, 0.0]), np.ones(3)).tolist()
    [32.0, 3.0, 0.0]
    """
    e, w = np.append(evidence, 1.0), np.append(weights, rest)
    order = np.argsort(e, kind="stable")
    own_weight = np.concatenate([[0.0], np.cumsum(w[order])])
    own_sum = np.concatenate([[0.0], np.cumsum((w * e)[order])])
    place = np.empty(len(e), int)
    place[order] = np.arange(len(e))
    # The worst company of a claim are the claims with the smallest e-values: any number of them, and itself.
    inside = np.arange(len(e) + 1)[None, :] > place[:, None]
    with np.errstate(invalid="ignore", divide="ignore"):
        means = (own_sum + np.where(inside, 0.0, (w * e)[:, None])) / (
            own_weight + np.where(inside, 0.0, w[:, None])
        )
    return np.asarray(np.nanmin(means, axis=1)[:-1])
