"""Means of rows in order of time: standard errors, degrees of freedom and blocks under autocorrelation."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from verax.inputs.arrays import Floats

# Cosines of a frequency up to this part of 1 - r see a flat spectrum (r: the autocorrelation at lag 1).
# By simulation: 5% tests then reject at most 8% at r = 0.9 from 200 rows on.
_FLAT = 0.75
# The fewest cosines and blocks: with fewer, tests have hardly any power.
_FEWEST_COSINES, _FEWEST_BLOCKS = 4, 8


@dataclass(frozen=True)
class LongRun:
    """Standard errors of the means of columns, (C,), that allow for autocorrelation.

    The equal-weighted cosine estimator: the variance of a mean is that of the slowest cosines in the
    series, and as many cosines as are averaged are the degrees of freedom of Student's t distribution.

    Attributes
    ----------
    error : array
        Standard errors.
    freedom : array
        Degrees of freedom.
    cautions : tuple of str
        Why the series is too short for its memory; empty where it is not.

    References
    ----------
    Lazarus, Lewis, Stock and Watson (2018), doi:10.1080/07350015.2018.1506926
    """

    error: Floats
    freedom: Floats
    cautions: tuple[str, ...]

    @classmethod
    def of(cls, columns: Floats, lags: int | None) -> LongRun:
        """Of (n, C) columns, where rows more than `lags` apart are independent; None to estimate that."""
        from scipy.fft import dct

        n = len(columns)
        memory = autocorrelation(columns)
        freedom = degrees_of_freedom(n, memory, lags)
        with np.errstate(invalid="ignore"):
            power = dct(columns - columns.mean(axis=0), type=2, norm="ortho", axis=0)[1:] ** 2
            used = np.arange(1, n)[:, None] <= freedom
            variance = np.where(used, power, 0.0).sum(axis=0) / np.maximum(freedom, 1)
        undefined = np.isnan(columns.sum(axis=0)) | (n < 2)
        error = np.where(undefined, np.nan, np.sqrt(variance / n))
        seen = memory > 2 / math.sqrt(n)
        short = seen & (freedom > _flat_cosines(n, memory))
        cautions = tuple(
            f"the series is too short for its autocorrelation of {r:.2f}" if told else ""
            for r, told in zip(memory.tolist(), short.tolist(), strict=True)
        )
        return cls(error, freedom, cautions)


def autocorrelation(columns: Floats) -> Floats:
    """The autocorrelation of each column at lag 1, corrected for its bias; 0 where it is undefined."""
    n = len(columns)
    with np.errstate(invalid="ignore", divide="ignore"):
        x = columns - columns.mean(axis=0)
        r = (x[1:] * x[:-1]).sum(axis=0) / (x * x).sum(axis=0)
    r = np.where(np.isfinite(r), r, 0.0)
    return np.asarray(np.clip(r + (1 + 3 * r) / n, -0.99, 0.99))


def degrees_of_freedom(n_rows: int, memory: Floats, lags: int | None) -> Floats:
    """How many cosines are averaged for each column.

    With `lags` a row depends on itself and on so many on either side: n / (2 lags + 1). Otherwise
    0.4 n^(2/3), or fewer where the autocorrelation is so large that faster cosines would be damped.
    """
    if lags is not None:
        freedom = np.full(len(memory), n_rows // (2 * lags + 1))
    else:
        usual = round(0.4 * n_rows ** (2 / 3))
        freedom = np.maximum(np.minimum(usual, np.floor(_flat_cosines(n_rows, memory))), _FEWEST_COSINES)
    return np.asarray(np.clip(freedom, 1, max(n_rows - 1, 0)), dtype=float)


def _flat_cosines(n_rows: int, memory: Floats) -> Floats:
    """How many cosines see a flat spectrum."""
    return np.asarray(_FLAT * n_rows * (1 - memory) / math.pi)


def n_blocks(columns: Floats, lags: int | None) -> int:
    """How many blocks of neighbours are resampled: as many as the fewest degrees of freedom, at least 8."""
    n = len(columns)
    fewest = int(degrees_of_freedom(n, autocorrelation(columns), lags).min())
    return min(n, max(fewest, _FEWEST_BLOCKS))


def between_blocks(columns: Floats, length: int, lags: int | None) -> Floats:
    """How much larger the standard error of each mean is than if blocks of neighbours were independent.

    For autoregressive series of order one with the autocorrelation of the columns. 1 where `lags` says how
    far rows depend on each other.

    >>> x = np.sin(np.arange(200) / 6)[:, None] + np.sin(np.arange(200) ** 2)[:, None]
    >>> autocorrelation(x).round(2), between_blocks(x, 10, None).round(2), between_blocks(x, 10, 3)
    (array([0.44]), array([1.06]), array([1.]))
    """
    n = len(columns)
    if lags is not None:
        return np.ones(columns.shape[1])
    memory = np.maximum(autocorrelation(columns), 0.0)
    ratio = _variance_of_sum(n, memory) / (n / length * _variance_of_sum(length, memory))
    return np.asarray(np.sqrt(np.maximum(ratio, 1.0)))


def _variance_of_sum(n: int, memory: Floats) -> Floats:
    """The variance of the sum of n neighbours of an autoregressive series of order one with variance 1."""
    rest = 1 - memory
    return np.asarray(n * (1 + memory) / rest - 2 * memory * (1 - memory**n) / rest**2)
