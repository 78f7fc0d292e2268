"""Means of rows in order of time: seasons, standard errors, degrees of freedom and blocks.

Rows may depend on their neighbours, and on those of the same hour a day or a week before. Neither sees the
other: a season has no slow drift, and drift has no season. So a season is looked for first, and whole seasons
are then the rows of a series that may drift.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from verax.inputs.arrays import Floats, Ints

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


# Seasons are looked for up to this number of rows, and up to this part of the series.
_LONGEST, _PART = 2000, 4
_SHORTEST = 4
# The level of the search in one column; the autocorrelation of a season exceeds that half a season away.
_SEASONAL = 0.01
# Strong lags have at least this part of the largest autocorrelation; a broad peak is at most so wide.
_STRONG, _BROAD = 0.7, 1.35
# Usual seasons: of days, hours, weeks, minutes and half hours, by what repeats.
_USUAL = (7, 12, 24, 48, 52, 60, 96, 144, 168, 288, 336, 365, 1440)
# Seasons within seasons are looked for among at least this number of means.
_AGAIN = 40
# With fewer whole seasons an interval carries a caution; with fewer than the second number it claims nothing.
_FEW_SEASONS, _FEWEST_SEASONS = 30, 10
# A stated season is at most this part of the series.
LARGEST_SEASON = 3


def season_of(columns: Floats) -> Ints:
    """(C,) the number of rows after which each of (n, C) columns repeats; 1 without a season.

    An autoregression of order one is taken out first. A lag is strong if the autocorrelation of what is left
    exceeds noise, and that of lags half a season away by more than noise: slow drift has no such peak.

    >>> hour = np.arange(1200)
    >>> noise = np.random.default_rng(0).normal(size=(1200, 2))
    >>> season_of(noise + np.column_stack([np.sin(hour * np.pi / 12), np.zeros(1200)])).tolist()
    [24, 1]
    """
    n, found = len(columns), np.ones(columns.shape[1], int)
    lags = np.arange(_SHORTEST, min(n // _PART, _LONGEST, 2 * (n - 3) // 3 - 1) + 1)
    centred = columns - columns.mean(axis=0)
    power = (centred * centred).sum(axis=0)
    known = np.flatnonzero(np.isfinite(power) & (power > 0))
    if not len(lags) or not len(known):
        return found
    centred = centred[:, known]
    first = (centred[1:] * centred[:-1]).sum(axis=0) / power[known]
    r = _autocorrelations(centred[1:] - first * centred[:-1])
    limit = (_normal_tail(_SEASONAL / len(lags)) / np.sqrt(n - 1.5 * lags))[:, None]
    peak = r[lags] - np.maximum(r[lags // 2], r[3 * lags // 2])
    strong = np.where((peak > math.sqrt(1.5) * limit) & (r[lags] > limit), r[lags], -1.0)
    for c in np.flatnonzero((strong > 0).any(axis=0)).tolist():
        found[known[c]] = _season(r[:, c], strong[:, c], lags, limit[:, 0])
    return found


def _season(r: Floats, strong: Floats, lags: Ints, limit: Floats) -> int:
    """The season of a column from its autocorrelations, those of strong lags, and the limit of noise."""
    least = _STRONG * strong.max()
    first = int(lags[(strong >= least).argmax()])
    broad = (strong >= least) & (lags >= first) & (lags <= _BROAD * first)
    season = round(float((lags[broad] * strong[broad]).sum() / strong[broad].sum()))
    for usual in _USUAL:
        if abs(usual - season) <= max(1, season // 12) and usual <= lags[-1]:
            season = usual if strong[usual - _SHORTEST] >= least else season
    # A longer season beside it: the week beside the day.
    for longer in range(2 * season, int(lags[-1]) + 1, season):
        beside = max(r[longer - season], r[longer + season])
        noise = limit[longer - _SHORTEST]
        if r[longer] > noise and r[longer] - beside > math.sqrt(1.5) * noise:
            return longer
    return season


def _normal_tail(probability: float) -> float:
    """The number that a normal variable exceeds with this probability."""
    from scipy.special import ndtri

    return float(-ndtri(probability))


def _autocorrelations(columns: Floats) -> Floats:
    """(n, C) autocorrelations at all lags."""
    n = len(columns)
    spectrum = np.fft.rfft(columns, 1 << math.ceil(math.log2(2 * n + 2)), axis=0)
    products = np.fft.irfft(np.abs(spectrum) ** 2, axis=0)[: n + 1]
    return np.asarray(products / products[0])


def seasons_of(columns: Floats, season: int | None = None) -> Ints:
    """(C,) the seasons of columns, with those within seasons; `season` if it is stated."""
    n = len(columns)
    if season is not None:
        return np.full(columns.shape[1], season)
    seasons = season_of(columns)
    for length in np.unique(seasons[seasons > 1]).tolist():
        if n // length >= _AGAIN:
            at = np.flatnonzero(seasons == length)
            seasons[at] *= seasons_of(season_means(columns[:, at], length))
    return seasons


def season_means(columns: Floats, season: int) -> Floats:
    """(G, C) means of the last G whole seasons."""
    n_seasons = len(columns) // season
    last = columns[len(columns) - n_seasons * season :]
    return np.asarray(last.reshape(n_seasons, season, -1).mean(axis=1))


def by_season(columns: Floats, lags: int | None, season: int | None) -> Floats:
    """Rows that can be resampled in blocks: means of whole seasons, the longest of all columns, if any.

    Seasons that are too few for a claim do not count. The mean is that of all rows.
    """
    if lags is not None:
        return columns
    seasons = seasons_of(columns, season)
    longest = int(seasons[len(columns) // seasons >= _FEWEST_SEASONS].max(initial=1))
    if longest == 1:
        return columns
    means = season_means(columns, longest)
    return np.asarray(means + (columns.mean(axis=0) - means.mean(axis=0)))


@dataclass(frozen=True)
class LongRun:
    """Standard errors of the means of columns, (C,), that allow for seasons and autocorrelation.

    The equal-weighted cosine estimator (EWC): the variance of a mean comes from the low-frequency cosines of
    the series, and the number of cosines averaged is the degrees of freedom of Student's t distribution. How
    slow drift is, and how much noise hides it, is weighed by likelihood: fewer cosines are averaged where
    drift is slow, and what they still miss is added. Where columns have a season, this is the series of the
    means of whole seasons.

    Attributes
    ----------
    error : array
        Standard errors; NaN where there are too few seasons.
    freedom : array
        Degrees of freedom.
    cautions : tuple of str
        Why the series is too short; empty where it is not.
    seasons : array
        The number of rows of a season; 1 without one.

    References
    ----------
    Lazarus, Lewis, Stock and Watson (2018), doi:10.1080/07350015.2018.1506926; Müller (2014),
    doi:10.1080/07350015.2014.931238
    """

    error: Floats
    freedom: Floats
    cautions: tuple[str, ...]
    seasons: Ints

    @classmethod
    def of(cls, columns: Floats, lags: int | None, season: int | None = None) -> LongRun:
        """The errors of (n, C) columns; rows more than `lags` apart are independent (None: estimated).

        A season is looked for unless `season` or `lags` are stated.
        """
        n, n_columns = columns.shape
        seasons = np.ones(n_columns, int) if lags is not None else seasons_of(columns, season)
        if (seasons == 1).all():
            return cls._of_rows(columns, lags)
        error, freedom, cautions = np.zeros(n_columns), np.zeros(n_columns), np.full(n_columns, "", object)
        for length in np.unique(seasons).tolist():
            at, n_seasons = np.flatnonzero(seasons == length), n // length
            of_length = cls._of_rows(season_means(columns[:, at], length), None)
            error[at], freedom[at] = of_length.error, of_length.freedom
            cautions[at] = of_length.cautions if length == 1 else few_seasons(length, n_seasons)
            if length > 1 and n_seasons < _FEWEST_SEASONS:
                error[at] = np.nan
        return cls(error, freedom, tuple(cautions.tolist()), seasons)

    @classmethod
    def _of_rows(cls, columns: Floats, lags: int | None) -> LongRun:
        """The errors of columns without a season."""
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
        cautions = tuple(drifts if share_flat < _DAMPED else short for share_flat in flat.tolist())
        return cls(error, freedom, cautions, np.ones(columns.shape[1], int))


def few_seasons(length: int, n_seasons: int) -> str:
    """A caution about the number of whole seasons; empty if there are enough.

    >>> few_seasons(24, 12), few_seasons(7, 52)
    ('rows repeat about every 24: only 12 whole seasons', '')
    >>> few_seasons(168, 5)
    'rows repeat about every 168: only 5 whole seasons, too few for a claim'
    """
    if n_seasons >= _FEW_SEASONS:
        return ""
    too_few = ", too few for a claim" if n_seasons < _FEWEST_SEASONS else ""
    return f"rows repeat about every {length}: only {n_seasons} whole seasons{too_few}"


def about_season(length: int, n_rows: int) -> str:
    """What a season means for the mean of a column; empty without one, and where it is a caution.

    >>> about_season(24, 1000)
    'rows repeat about every 24; 41 whole seasons are the units'
    """
    n_seasons = n_rows // length
    if length == 1 or _FEWEST_SEASONS <= n_seasons < _FEW_SEASONS:
        return ""
    caution = few_seasons(length, n_seasons)
    return caution or f"rows repeat about every {length}; {n_seasons:,} whole seasons are the units"


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
