"""Means of functions of a threshold, over a grid of thresholds, with their covariance.

What a row adds at every threshold depends on two things only: between which thresholds its forecast lies, and
whether the event happened. So rows are counted in cells, and everything else is done with the cells.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

import numpy as np

from verax.analyses.units import SamplingUnits
from verax.errors import InputError, show
from verax.inputs.arrays import Bools, Floats, Ints, to_array, to_host

# By default, thresholds from 1 to 99 percent. Thresholds are compared to so many decimals.
DEFAULT_GRID = np.arange(1, 100) / 100
_DECIMALS = 12
_MOST = 1000
# How many groups are summed at a time.
_GROUPS = 4096


def check_grid(thresholds: object) -> Floats:
    """Increasing thresholds above 0 and below 1; by default 1 to 99 percent."""
    if thresholds is None:
        return DEFAULT_GRID
    given = to_host(to_array(thresholds, "thresholds")[0])
    grid = given.astype(float) if given.dtype.kind in "fiu" and given.ndim == 1 else np.zeros(0)
    fits = len(grid) and (grid > 0).all() and (grid < 1).all() and (np.diff(grid) > 0).all()
    if not fits or len(grid) > _MOST:
        raise InputError(
            f"must be increasing probabilities above 0 and below 1, at most {_MOST:,}",
            argument="thresholds",
            found=f"it is {show(given)}",
            values=given.ravel()[:8].tolist(),
        )
    return np.round(grid, _DECIMALS)


@dataclass(frozen=True)
class GridMeans:
    """Means over the rows at each of T thresholds.

    Attributes
    ----------
    mean : array of shape (T,)
        The means.
    covariance : array of shape (T, T)
        Their sandwich covariance; NaN where there is a single unit.
    units : SamplingUnits
        What is independent.
    """

    mean: Floats
    covariance: Floats
    units: SamplingUnits

    @classmethod
    def of(cls, codes: Ints, values: Floats, units: SamplingUnits) -> GridMeans:
        """Means of `values`, (C, T): what a row of each cell adds at each threshold."""
        n_cells = len(values)
        mean = np.bincount(codes, units.share, n_cells) @ values
        deviations = values - mean
        if units.n < 2:
            return cls(mean, np.full((len(mean), len(mean)), np.nan), units)
        if units.groups is None:
            squares = np.bincount(codes, units.leverages, n_cells)
            return cls(mean, (deviations * squares[:, None]).T @ deviations, units)
        return cls(mean, _over_groups(codes, deviations, units), units)

    def doubted(self, squares: Floats) -> GridMeans:
        """The same of a difference, with two more rows that contradict each other.

        Rows whose forecasts lie on the same side of a threshold say nothing about a difference there. Where
        no row does, its variance would be zero. `squares` are the mean squares of what a row can say, (T,).
        """
        share = self.units.square
        return GridMeans(self.mean, self.covariance + np.diag(2 * share**2 * squares), self.units)

    @property
    def error(self) -> Floats:
        """The standard errors."""
        return np.sqrt(np.maximum(np.diag(self.covariance), 0.0))

    def widest(self, confidence: float, seed: int) -> float:
        """How many standard errors a band has that holds for all thresholds at once."""
        known = bool(np.isfinite(self.covariance).all())
        return self.units.widest(self.covariance, confidence, seed) if known else math.nan

    def band(self, quantile: float) -> Floats:
        """So many standard errors on either side, (2, T)."""
        return np.stack([self.mean - quantile * self.error, self.mean + quantile * self.error])


def _over_groups(codes: Ints, deviations: Floats, units: SamplingUnits) -> Floats:
    from scipy.sparse import csr_array

    assert units.groups is not None
    n_groups = len(units.groups.labels)
    cells = csr_array((units.share, (units.groups.codes, codes)), shape=(n_groups, len(deviations)))
    rest = 1 - units.sums(units.share)
    total = np.zeros((deviations.shape[1],) * 2)
    for first in range(0, n_groups, _GROUPS):
        sums = cells[first : first + _GROUPS] @ deviations
        total += (sums / rest[first : first + _GROUPS, None]).T @ sums
    return total


@dataclass(frozen=True)
class Cells:
    """Which cell each row is in.

    Attributes
    ----------
    codes : (N,) int array
        The cells, numbered without gaps.
    places : (C, M) int array
        For each cell, the place of each model's forecast among the thresholds.
    happened : array of shape (C,)
        Whether the event happened, as numbers.
    """

    codes: Ints
    places: Ints
    happened: Floats

    @classmethod
    def of(cls, places: Sequence[Ints], happened: Bools, n_places: int) -> Cells:
        """From the place of each model's forecast in each row."""
        key = codes_of(places, happened, n_places)
        found, codes = np.unique(key, return_inverse=True)
        return cls.of_codes(found, codes.ravel(), len(places), n_places)

    @classmethod
    def of_codes(cls, found: Ints, codes: Ints, n_models: int, n_places: int) -> Cells:
        """From the codes of the cells, and the place of each row's among them."""
        columns = []
        for _ in range(n_models):
            found, place = np.divmod(found, n_places)
            columns.append(place)
        return cls(codes, np.stack(columns[::-1], axis=1), found.astype(float))


def codes_of(places: Sequence[Ints], happened: Bools, n_places: int) -> Ints:
    """A number for the place of each model's forecast in each row, and whether the event happened."""
    key = happened.astype(np.int64)
    for place in places:
        key = key * n_places + place
    return key


Side = Literal["left", "right"]


def places_of(given: Floats, grid: Floats, decimals: int, side: Side) -> Ints:
    """How many thresholds each forecast reaches ("right") or exceeds ("left")."""
    return np.asarray(np.searchsorted(grid, np.round(given, decimals), side=side))


def runs(flags: Bools, grid: Floats) -> list[tuple[float, float]]:
    """The first and last threshold of each run of flags that are true.

    >>> runs(np.array([True, True, False, True]), np.array([0.1, 0.2, 0.3, 0.4]))
    [(0.1, 0.2), (0.4, 0.4)]
    """
    found = []
    for true, places in groupby(range(len(grid)), key=lambda i: bool(flags[i])):
        if true:
            at = list(places)
            found.append((float(grid[at[0]]), float(grid[at[-1]])))
    return found


def in_words(ranges: Sequence[tuple[float, float]]) -> str:
    """Ranges of thresholds as a text.

    >>> in_words([(0.1, 0.2), (0.4, 0.4)])
    '0.1 to 0.2 and 0.4'
    >>> in_words([(0.1, 0.2), (0.4, 0.4), (0.6, 0.8)])
    '0.1 to 0.8, with gaps'
    """
    if len(ranges) > 2:
        return f"{ranges[0][0]:g} to {ranges[-1][1]:g}, with gaps"
    return " and ".join(f"{a:g}" if a == b else f"{a:g} to {b:g}" for a, b in ranges)
