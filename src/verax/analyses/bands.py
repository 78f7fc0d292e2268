"""Curves over thresholds as mixtures of shares of rows, with limits that do not collapse at small counts.

At a threshold a row is in one of few states: which models act on it, and whether the event happened. Net
benefits, elementary scores and their differences are sums of a factor times the share of each state. Their
limits come from the Jeffreys limits of these shares, combined by MOVER (method of variance estimates
recovery, Zou and Donner 2008, doi:10.1002/sim.3095): a state that no row is in has an upper limit above zero.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from verax.analyses.units import CountedUnits
from verax.common.caching import cached_property
from verax.inference.bootstrap import widest
from verax.inference.intervals import t_quantile
from verax.inference.products import sum_of_products
from verax.inputs.arrays import Bools, Floats, Ints

# A band is for thresholds at which at least this number of rows, in effect, have a factor.
_ENOUGH = 10 - 1e-6
# The number of cells times thresholds held at a time; of groups.
_HELD, _GROUPS = 2**22, 4096
# Halvings of the range of a ratio's limit, and doublings until a range holds it.
_HALVINGS, _DOUBLINGS = 50, 60
# Smaller shares are rounding.
_NONE = 1e-12


@dataclass(frozen=True)
class ThresholdCells:
    """Rows counted by cell: between which of T thresholds each model's forecast is, and the outcome.

    Attributes
    ----------
    places : (C, M) int array
        The number of thresholds at which each model acts.
    happened : array of shape (C,)
        Whether the event happened, as numbers.
    share, squares, leverages : arrays of shape (C,)
        The sums over the rows of each cell of their shares of the weight, of the squares of these, and of
        the squares over one minus the share.
    groups : (G, C) sparse array or None
        The share of the weight of each group in each cell.
    units : CountedUnits
        The independent units.
    """

    places: Ints
    happened: Floats
    share: Floats
    squares: Floats
    leverages: Floats
    groups: Any
    units: CountedUnits

    @property
    def n_models(self) -> int:
        """The number of models."""
        return int(self.places.shape[1])

    def states(self, cells: slice, n_thresholds: int, first: int = 0) -> Any:
        """The state of some cells at each threshold from the first on, (C, T): bits for each model, then for
        the outcome.
        """
        numbers = np.repeat(self.happened[cells, None].astype(np.int8), n_thresholds - first, axis=1)
        for place in self.places[cells].T:
            numbers = 2 * numbers + (np.arange(first, n_thresholds) < place[:, None])
        return numbers

    def blocks(self, n_thresholds: int) -> Iterator[slice]:
        """Parts of the cells that can be held at all thresholds."""
        step = max(1, _HELD // n_thresholds)
        return (slice(first, first + step) for first in range(0, len(self.share), step))


class States:
    """The shares of the rows in each of S states at each of T thresholds.

    Attributes
    ----------
    share, squares : arrays of shape (S, T)
        The shares, and the sums of the squared shares of the rows.
    covariance : array of shape (S, S, T)
        Their sandwich covariance at each threshold.
    acts : (M, S, 1) bool array
        Whether each model acts in a state.
    happened : (S, 1) bool array
        Whether the event happened in a state.
    """

    def __init__(self, cells: ThresholdCells, n_thresholds: int) -> None:
        self.cells: ThresholdCells = cells
        self.n_thresholds: int = n_thresholds
        models = cells.n_models
        numbers = np.arange(2 ** (models + 1))[:, None]
        self.acts: Bools = np.stack([numbers >> (models - 1 - i) & 1 == 1 for i in range(models)])
        self.happened: Bools = numbers >> models == 1
        sums = np.zeros((3, len(numbers), n_thresholds))
        columns = np.stack([cells.share, cells.squares, cells.leverages])
        for block in cells.blocks(n_thresholds):
            states = cells.states(block, n_thresholds)
            for number in range(len(numbers)):
                sums[:, number] += columns[:, block] @ (states == number)
        self.share: Floats = sums[0]
        self.squares: Floats = sums[1]
        self._leverages = sums[2]

    @cached_property
    def covariance(self) -> Floats:
        if self.cells.groups is not None:
            return self._over_groups()
        share, leverages = self.share, self._leverages
        across = share[:, None] * leverages
        products = share[:, None] * share * leverages.sum(axis=0) - across - np.swapaxes(across, 0, 1)
        at = np.arange(len(share))
        products[at, at] += leverages
        return np.asarray(products)

    def _over_groups(self) -> Floats:
        groups, t = self.cells.groups, self.n_thresholds
        n = len(self.share)
        products = np.zeros((n, n, t))
        states = self.cells.states(slice(None), t)
        of_state = [(states == number).astype(float) for number in range(n)]
        for members, weight in _by_groups(groups):
            sums = np.stack([members @ column for column in of_state])
            sums -= self.share[:, None] * weight[:, None]
            products += np.einsum("jgt,kgt,g->jkt", sums, sums, 1 / (1 - weight), optimize=True)
        return products

    @property
    def rate(self) -> float:
        """The share of rows in which the event happened."""
        return float(self.cells.share @ self.cells.happened)

    def effective(self, among: Bools) -> Floats:
        """The effective number of rows in some of the states at each threshold, (T,)."""
        share, squares = ((column * among).sum(axis=0) for column in (self.share, self.squares))
        return np.asarray(np.divide(share**2, squares, out=np.zeros_like(share), where=squares > 0))

    def by_group(self, hit: Bools, among: Bools) -> Iterator[tuple[slice, Floats, Floats]]:
        """Some thresholds, and there the weights (G, t) of each group in two kinds of states."""
        groups = self.cells.groups
        step = max(1, _HELD // max(groups.shape[0], 1))
        for first in range(0, self.n_thresholds, step):
            at = slice(first, min(first + step, self.n_thresholds))
            states = self.cells.states(slice(None), at.stop, first)
            columns = (np.broadcast_to(kind, (len(self.share), 1)) for kind in (hit, among))
            sums = [groups @ column[states, 0].astype(float) for column in columns]
            yield at, np.asarray(sums[0]), np.asarray(sums[1])

    def rows(self, among: Bools) -> Floats:
        """The number of independent rows that tell as much about each share as these rows do, (S, T).

        Their design effect is that of the share, shrunk to that of all shares `among` which it is as far as
        the state has few rows. With groups it is no less than the pooled one: fewer groups tell about it.
        """
        square = float(self.cells.squares.sum())
        of_rows = np.maximum(self.share * (1 - self.share), 0.0) * square
        variances = np.einsum("sst->st", self.covariance)
        total = float((of_rows * among).sum())
        pooled = max(1.0, float((variances * among).sum()) / total) if total > 0 else 1.0
        effect = np.divide(
            variances, of_rows, out=np.full_like(variances, pooled), where=of_rows > _NONE * square
        )
        known = np.minimum(self.share, 1 - self.share) / square
        effect = (known * effect + _ENOUGH * pooled) / (known + _ENOUGH)
        if self.cells.units.grouped:
            effect = np.maximum(effect, pooled)
        return np.asarray(1 / (square * effect))

    @cached_property
    def correlation(self) -> Floats:
        """The correlations of the shares at each threshold, (S, S, T)."""
        error = np.sqrt(np.maximum(np.einsum("sst->st", self.covariance), 0.0))
        scale = error[:, None] * error
        ratios = np.divide(self.covariance, scale, out=np.zeros_like(scale), where=scale > 0)
        at = np.arange(len(error))
        ratios[at, at] = 1.0
        return np.asarray(np.clip(ratios, -1.0, 1.0))

    def mixture(self, factors: Floats, *, per_event: bool = False) -> Mixture:
        """The sum of factors, (S, T), times shares; with `per_event` over the frequency of the event."""
        full = np.broadcast_to(factors, self.share.shape)
        mean = (full * self.share).sum(axis=0)
        if not per_event:
            return Mixture(self, full, mean, None)
        rate = self.rate or math.nan
        return Mixture(self, full, mean / rate, rate)


@dataclass(frozen=True)
class Mixture:
    """Sums of factors times shares of states, at T thresholds.

    Attributes
    ----------
    states : States
        The shares.
    factors : array of shape (S, T)
        The factors.
    mean : array of shape (T,)
        The sums, or their ratios to the frequency of the event.
    rate : float or None
        The frequency of the event if they are ratios.
    """

    states: States
    factors: Floats
    mean: Floats
    rate: float | None

    @property
    def covariance(self) -> Floats:
        """The sandwich covariance of the sums, or of their ratios to first order, (T, T)."""
        cells, factors = self.states.cells, self.factors
        if self.rate is not None:
            factors = (factors - self.mean * self.states.happened) / self.rate
        mean = (factors * self.states.share).sum(axis=0)
        t = self.states.n_thresholds
        at = np.arange(t)
        products = np.zeros((t, t))
        if cells.groups is None:
            for block in cells.blocks(t):
                deviations = factors[cells.states(block, t), at] - mean
                products += sum_of_products((deviations * cells.leverages[block, None]).T, deviations.T)
            return products
        values = factors[cells.states(slice(None), t), at]
        for members, weight in _by_groups(cells.groups):
            sums = members @ values - weight[:, None] * mean
            products += sum_of_products((sums / (1 - weight)[:, None]).T, sums.T)
        return products

    def interval(self, confidence: float) -> Floats:
        """Confidence intervals, each for its threshold, (2, T)."""
        return self.limits(t_quantile(self.states.cells.units.freedom, confidence))

    def band(self, confidence: float, seed: int) -> Floats:
        """A band from the first to the last threshold at which enough rows count, (2, T); NaN elsewhere."""
        enough = self.states.effective(self.factors != 0) >= _ENOUGH
        enough = np.logical_or.accumulate(enough) & np.logical_or.accumulate(enough[::-1])[::-1]
        units = self.states.cells.units
        quantile = math.nan
        if enough.any() and units.n > 1:
            covariance = self.covariance[np.ix_(enough, enough)]
            quantile = widest(covariance, units.freedom, confidence, seed)
        return np.where(enough, self.limits(quantile), np.nan)

    def limits(self, quantile: float) -> Floats:
        """Limits at a given number of standard errors, as far as shares are normal, (2, T)."""
        if self.states.cells.units.n < 2 or math.isnan(quantile):
            return np.full((2, len(self.mean)), np.nan)
        steps = self._steps(quantile)
        if self.rate is None:
            return np.stack([self.mean + sign * self._away(self.factors, steps, sign) for sign in (-1, 1)])
        return np.stack([self._ratio(steps, sign, self.rate) for sign in (-1, 1)])

    def _steps(self, quantile: float) -> Floats:
        """The distances of the Jeffreys limits of each share below and above it, (2, S, T)."""
        from scipy.special import betaincinv, ndtri, stdtr

        units = self.states.cells.units
        tail = stdtr(units.freedom, -quantile)
        used = (self.factors != 0) | (self.states.happened & (self.rate is not None))
        share, rows = self.states.share[used], self.states.rows(used)[used]
        if units.grouped:
            # How groups vary is estimated, from few of them: Student's quantile in place of the normal one.
            rows = rows * (ndtri(tail) / quantile) ** 2
        counts, others = np.clip(share, 0.0, 1.0) * rows, np.clip(1 - share, 0.0, 1.0) * rows
        low = np.where(share > _NONE, betaincinv(counts + 0.5, others + 0.5, tail), 0.0)
        rest = np.where(share < 1 - _NONE, betaincinv(others + 0.5, counts + 0.5, tail), 0.0)
        steps = np.zeros((2, *used.shape))
        steps[:, used] = np.maximum(share - low, 0.0), np.maximum(1 - rest - share, 0.0)
        return steps

    def _away(self, factors: Floats, steps: Floats, sign: int) -> Floats:
        """The distance of the limit of a sum from it, (T,): below for a sign of -1, above for 1."""
        moved = factors * np.where(sign * factors > 0, steps[1], steps[0])
        squares = np.einsum("jt,jkt,kt->t", moved, self.states.correlation, moved)
        return np.asarray(np.sqrt(np.maximum(squares, 0.0)))

    def _ratio(self, steps: Floats, sign: int, rate: float) -> Floats:
        """A limit of ratios, (T,): the value at which the limit of numerator - value * frequency is zero."""

        def beyond(value: Floats) -> Bools:
            factors = self.factors - value * self.states.happened
            rest = sign * (value - self.mean) * rate
            return np.asarray(rest > self._away(factors, steps, sign))

        step = np.full(len(self.mean), 1e-3)
        for _ in range(_DOUBLINGS):
            inside = ~beyond(self.mean + sign * step)
            if not inside.any():
                break
            step = np.where(inside, 2 * step, step)
        else:
            step = np.where(inside, np.inf, step)
        low, high = np.zeros(len(step)), step
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            with np.errstate(invalid="ignore"):
                far = beyond(self.mean + sign * middle)
            low, high = np.where(far, low, middle), np.where(far, middle, high)
        return np.asarray(self.mean + sign * high)


def _by_groups(groups: Any) -> Iterator[tuple[Any, Floats]]:
    """The shares of some groups in each cell, and in all of them."""
    weight = np.asarray(groups.sum(axis=1)).ravel()
    for first in range(0, len(weight), _GROUPS):
        yield groups[first : first + _GROUPS], weight[first : first + _GROUPS]
