"""Means of rows in order of time: standard errors, degrees of freedom and blocks under autocorrelation."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from verax.inputs.arrays import Floats

# Cosines are averaged as long as their mean power is at least this part of that of the mean; below the
# second number even the slowest ones are damped. The fewest cosines and blocks: with fewer, tests have
# hardly any power.
_FLAT, _DAMPED = 0.75, 0.65
_FEWEST_COSINES, _FEWEST_BLOCKS = 4, 8
# Slow drift under noise shows in no shorter series: 5% tests of 200 rows reject up to 29%, of 500 up to 19%.
_FEW_ROWS = 1000
# Series are noise, or drift by an autoregression of order one and noise. Long-run variances of the drift
# relative to that of the noise, how many speeds of drift are told apart, and the probability of noise alone.
_DRIFTS = (0.5, 1.25, 3.0, 8.0, 20.0, 50.0, 125.0, 300.0, math.inf)
_SPEEDS, _NOISE = 20, 0.7
# Frequencies up to the first number are told apart, faster ones in the second number of bands.
_SINGLE, _BANDS = 16, 48


@dataclass(frozen=True)
class LongRun:
    """Standard errors of the means of columns, (C,), that allow for autocorrelation.

    The equal-weighted cosine estimator (EWC): the variance of a mean comes from the low-frequency cosines of
    the series, and the number of cosines averaged is the degrees of freedom of Student's t distribution. How
    slow drift is, and how much noise hides it, is weighed by likelihood: fewer cosines are averaged where
    drift is slow, and what they still miss is added.

    Attributes
    ----------
    error : array
        Standard errors.
    freedom : array
        Degrees of freedom.
    cautions : tuple of str
        Why the series is too short; empty where it is not.

    References
    ----------
    Lazarus, Lewis, Stock and Watson (2018), doi:10.1080/07350015.2018.1506926; Müller (2014),
    doi:10.1080/07350015.2014.931238
    """

    error: Floats
    freedom: Floats
    cautions: tuple[str, ...]

    @classmethod
    def of(cls, columns: Floats, lags: int | None) -> LongRun:
        """The errors of (n, C) columns; rows more than `lags` apart are independent (None: estimated)."""
        n = len(columns)
        memory = Memory.of(columns)
        freedom, more, flat = memory.cosines(lags)
        with np.errstate(invalid="ignore"):
            used = np.arange(1, n)[:, None] <= freedom
            variance = np.where(used, memory.power, 0.0).sum(axis=0) / np.maximum(freedom, 1) * more
        undefined = np.isnan(columns.sum(axis=0)) | (n < 2)
        error = np.where(undefined, np.nan, np.sqrt(variance / n))
        short = "" if n >= _FEW_ROWS or lags is not None else f"only {n} rows: slow drift may go unseen"
        drifts = "the series is too short for its slow drift"
        return cls(
            error, freedom, tuple(drifts if share_flat < _DAMPED else short for share_flat in flat.tolist())
        )


@dataclass(frozen=True)
class Memory:
    """The drift of columns of n rows in order of time: the probability of each of M kinds, (M, C).

    Drift is an autoregression of order one under noise, whose coefficient and long-run variance are on a
    grid. Its likelihood is Whittle's, from the power of the series at all frequencies: drift shows at slow
    ones, however much noise there is. The autocorrelation at lag 1 does not tell it from noise.

    Attributes
    ----------
    power : array
        (n - 1, C) squared cosine coefficients.
    weights : array
        (M, C) posterior probabilities of the kinds of drift.
    """

    power: Floats
    weights: Floats

    @classmethod
    def of(cls, columns: Floats) -> Memory:
        """The memory of (n, C) columns; a constant or undefined one counts as noise."""
        from scipy.fft import dct

        n = len(columns)
        with np.errstate(invalid="ignore"):
            power = dct(columns - columns.mean(axis=0), type=2, norm="ortho", axis=0)[1:] ** 2
        prior = _prior(n)
        weights = np.zeros((len(prior), columns.shape[1]))
        weights[0] = 1.0
        total = power.sum(axis=0)
        known = np.isfinite(total) & (total > 0)
        if known.any():
            singles = np.arange(min(_SINGLE, n - 1))
            bands = np.rint(np.geomspace(min(_SINGLE, n - 1), n - 1, _BANDS)).astype(int)
            edges = np.unique(np.concatenate([singles, bands]))
            sums = np.add.reduceat(power[:, known] / total[known], edges[:-1], axis=0)
            shape = _spectra(n, (edges[:-1] + edges[1:] + 1) / 2)
            fit = (n - 1) * np.log((1 / shape.T) @ sums) + (np.diff(edges) @ np.log(shape))[:, None]
            posterior = prior[:, None] * np.exp((fit.min(axis=0) - fit) / 2)
            weights[:, known] = posterior / posterior.sum(axis=0)
        return cls(power, weights)

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return len(self.power) + 1

    def cosines(self, lags: int | None) -> tuple[Floats, Floats, Floats]:
        """The number of averaged cosines of each column, their factor, and the share that they show.

        With `lags` a row depends on itself and on that many rows on either side: n / (2 lags + 1).
        Otherwise 0.4 n^(2/3), or fewer where faster cosines would be damped. Their mean power is multiplied
        by the mean factor that it lacks over the kinds of drift; the part is the mean of its inverse.
        """
        n, n_columns = self.n_rows, self.weights.shape[1]
        most = max(n - 1, 0)
        if lags is not None:
            freedom = np.full(n_columns, float(np.clip(n // (2 * lags + 1), 1, most)))
            return freedom, np.ones(n_columns), np.ones(n_columns)
        usual = int(np.clip(max(round(0.4 * n ** (2 / 3)), _FEWEST_COSINES), 0, most))
        if usual == 0:
            return np.zeros(n_columns), np.ones(n_columns), np.ones(n_columns)
        order = np.arange(1.0, usual + 1)
        mean = np.cumsum(_spectra(n, order), axis=0) / order[:, None]
        flatness = np.minimum(mean / _of_mean(n, n), 1.0)
        flat = flatness @ self.weights
        freedom = np.maximum((flat >= _FLAT).sum(axis=0), min(_FEWEST_COSINES, usual))
        more = np.einsum("cm,mc->c", 1 / flatness[freedom - 1], self.weights)
        return freedom.astype(float), more, flat[freedom - 1, np.arange(n_columns)]

    def blocks(self, lags: int | None) -> int:
        """The number of resampled blocks of neighbours: the fewest degrees of freedom, at least 8."""
        return min(self.n_rows, max(int(self.cosines(lags)[0].min()), _FEWEST_BLOCKS))

    def between_blocks(self, length: int, lags: int | None) -> Floats:
        """Ratio of each mean's standard error to that under independent blocks of neighbours.

        1 where `lags` says how far rows depend on each other.

        >>> x = np.sin(np.arange(200) / 6)[:, None] + np.sin(np.arange(200) ** 2)[:, None]
        >>> memory = Memory.of(x)
        >>> memory.between_blocks(10, None).round(2), memory.between_blocks(10, 3)
        (array([1.66]), array([1.]))
        """
        if lags is not None:
            return np.ones(self.weights.shape[1])
        ratio = _of_mean(self.n_rows, self.n_rows) / _of_mean(self.n_rows, length)
        return np.asarray(np.sqrt(np.maximum(ratio, 1.0) @ self.weights))


def _kinds(n_rows: int) -> tuple[Floats, Floats]:
    """Autoregressive coefficients and long-run variances of the kinds of drift; the first has none."""
    coefficients = 1 - np.geomspace(1, 1 / max(n_rows, 2), _SPEEDS)[1:]
    return (
        np.concatenate([[0.0], np.tile(coefficients, len(_DRIFTS))]),
        np.concatenate([[0.0], np.repeat(_DRIFTS, _SPEEDS - 1)]),
    )


def _prior(n_rows: int) -> Floats:
    n_kinds = len(_kinds(n_rows)[0])
    return np.concatenate([[_NOISE], np.full(n_kinds - 1, (1 - _NOISE) / (n_kinds - 1))])


def _mixed(drift: Floats, variance: Floats) -> Floats:
    """The drift with this long-run variance and noise of variance 1; without noise where it is infinite."""
    alone = np.isinf(variance)
    return np.where(alone, drift, 1 + np.where(alone, 0.0, variance) * drift)


def _spectra(n_rows: int, order: Floats) -> Floats:
    """(J, M) power of cosines of these orders, as each kind of drift has it."""
    r, variance = _kinds(n_rows)
    angle = np.cos(math.pi / n_rows * order)[:, None]
    return _mixed((1 - r) ** 2 / (1 + r**2 - 2 * r * angle), variance)


def _of_mean(n_rows: int, length: int) -> Floats:
    """(M,) `length` times the variance of the mean of that many neighbours."""
    r, variance = _kinds(n_rows)
    return _mixed(1 - 2 * r * (1 - r**length) / (length * (1 - r**2)), variance)
