"""Outcomes that are drawn in cells of neighbouring forecasts, and what isotonic fits to them gain.

Cells come from the distinct forecasts of an event, or from its bins, so they are the same wherever the rows
are. Draws come from the place of the cell and the key of the draw alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any, NamedTuple

import numpy as np

from verax.analyses.calibration.events import Split
from verax.analyses.calibration.isotonic import OVERHEAD, WORK, isotonic_fit, isotonic_fits, sizes_of
from verax.analyses.calibration.sums import KEPT, SummedEvent, cells_for
from verax.analyses.units import sums_at
from verax.common.caching import cached_property
from verax.common.hashing import mixed
from verax.engines.keyed import Keyed
from verax.inference.bootstrap import percentile_interval
from verax.inputs.arrays import Floats, Ints
from verax.kernels.ledger import compiles

# Random streams: outcomes drawn from the forecast, and from its smooth recalibration.
FORECAST, SMOOTH = 1, 2
# Smaller gains, of the squared error or under the smooth recalibration, are rounding.
ROUNDING = 1e-14
# Numbers of shares that are drawn together, which a cache holds, and the fewest draws.
_TOGETHER, _FEWEST_DRAWS = 2**16, 32
# Chances are rounded, so that draws do not depend on the order in which rows were added up.
_DECIMALS = 12
# Counts with at least this variance are drawn from the normal distribution, as one of these quantiles.
_NORMAL, _QUANTILES = 25.0, 2**12
# Counts of less variance stay below _COUNTS; _PLACES is the size of the table that says where to look for
# one.
_COUNTS, _PLACES = 160, 128
# Up to this number of rows, counts are found by comparing, one after the other, where nothing is compiled.
_SMALL = 8
# The random stream of outcomes that are drawn for all events, and how they are scored.
_JOINT, _SQUARED = 3, Split("", "", False, "squared", 1.0)


# Tests of calibration have the most draws by default, and fewer, but not below the fewest, where events of
# many classes and subgroups would have more cells than the budget.
MOST_DRAWS, FEWEST_DRAWS, _BUDGET, _EACH = 1000, 100, 2.5e7, 512


def default_draws(n_classes: int) -> int:
    """The number of draws behind calibration tests of all rows.

    A draw takes as long for many rows as for few, because cells are drawn. So the number is the same for any
    number of rows, in the terminal, on the page and in Python.

    >>> default_draws(3), default_draws(100), default_draws(1000)
    (1000, 488, 100)
    """
    return int(min(MOST_DRAWS, max(FEWEST_DRAWS, _BUDGET / (n_classes * _EACH))))


def cell_begins(weight: Floats, most: int) -> Ints:
    """The first value of each cell; neighbours share one where there are more values than cells."""
    if len(weight) <= most:
        return np.arange(len(weight))
    middle = np.cumsum(weight)
    scale = most / middle[-1]
    middle -= weight / 2
    # Rounding must not decide on which side of an edge a value is.
    cell = (middle * scale + 1e-9).astype(np.int64)
    return np.flatnonzero(np.concatenate([[True], cell[1:] > cell[:-1]]))


@dataclass(frozen=True)
class EventCells:
    """The cells of an event: its distinct forecasts, or neighbouring ones where there are many.

    Attributes
    ----------
    how : Split
        The way the event is scored.
    starts : array of shape (C,)
        The smallest forecast of each cell.
    size, claimed, happened, squares : arrays of shape (C,)
        The weight of each cell, that of its rows times their forecasts, that of the rows with the event, and
        the sum of the squared weights; of copies the weight itself.
    inflation : float
        The factor of the variance of what happened, because rows of a group agree.
    """

    how: Split
    starts: Floats
    size: Floats
    claimed: Floats
    happened: Floats
    squares: Floats
    inflation: float = 1.0

    @classmethod
    def of(cls, event: SummedEvent, how: Split, *, copies: bool) -> EventCells:
        """The cells of an event; `copies` if weights are numbers of rows."""
        walk, inflation = event.walk, event.inflation
        if walk is not None:
            return cls(how, walk.starts, walk.size, walk.claimed, walk.happened, walk.size, inflation)
        bins = event.bins
        n_rows = float(bins.weight.sum()) if copies else event.sums.n_rows
        squares = bins.weight if copies else bins.squares
        begins = cell_begins(bins.weight, cells_for(n_rows))
        columns = np.stack([bins.weight, bins.claimed, bins.happened, squares])
        size, claimed, happened, squares = np.add.reduceat(columns, begins, axis=1)
        return cls(how, bins.least[begins], size, claimed, happened, squares, inflation)

    def wider(self, most: int) -> tuple[EventCells, Ints]:
        """The same in fewer cells, and where each of these begins."""
        begins = cell_begins(self.size, most)
        columns = np.stack([self.size, self.claimed, self.happened, self.squares])
        size, claimed, happened, squares = np.add.reduceat(columns, begins, axis=1)
        return replace(
            self, starts=self.starts[begins], size=size, claimed=claimed, happened=happened, squares=squares
        ), begins

    @cached_property
    def weight(self) -> float:
        """The weight of all cells."""
        return float(self.size.sum())

    @cached_property
    def rows(self) -> Ints:
        """The number of rows of one weight that are as informative as those of each cell."""
        return np.maximum(np.round(self.size**2 / self.squares, 6).round(), 1).astype(np.int64)

    @cached_property
    def chance(self) -> Floats:
        """The mean forecast of each cell."""
        return _rounded(self.claimed / self.size)

    @cached_property
    def _losses(self) -> Losses:
        """The losses of the mean forecast."""
        losses = losses_of(self.how, self.chance)
        if self.how.binary == "squared":
            return losses
        # An infinite loss belongs to an outcome that is never drawn.
        return Losses(*(np.where(np.isinf(side), 0.0, side) for side in losses))

    @cached_property
    def _least(self) -> float:
        """The mean loss of an isotonic fit to the outcomes that were observed."""
        shares = (self.happened / self.size)[:, None]
        return float(fitted_shares(self.how, shares, self.size, self.size)[2, 0]) / self.weight

    # ---- calibrated forecasts --------------------------------------------------------------

    def drawn(self, n: int, seed: list[int]) -> Iterator[Floats]:
        """Shares of the cells with the event, in n draws of independent outcomes with the given chances."""
        return drawn_shares(self.rows, self.chance, n, seed)

    def wild(self, deviations: Floats) -> Iterator[Floats]:
        """The same in draws that deviate from the forecasts by these weights, (n, C): they may be below 0 or
        above 1.
        """
        return in_steps((self.claimed + deviations).T / self.size[:, None])

    def miscalibrations(self, draws: Iterable[Floats], exact: float) -> Floats:
        """The miscalibrations of draws.

        They are moved by what `exact`, the miscalibration of the forecasts, exceeds that of the cells by.
        """
        never, ever = self._losses
        loss = float(((self.size - self.happened) * never).sum() + (self.happened * ever).sum())
        observed = loss / self.weight - self._least
        shift = exact - observed if math.isfinite(exact) and math.isfinite(observed) else 0.0
        return gains_of_fits(self.how, draws, self.size, self._losses)[0] / self.weight + shift

    def band(self, draws: Iterable[Floats], confidence: float) -> Floats:
        """The range of the isotonic fits to draws in each cell, (2, C)."""
        curves = []
        for shares in draws:
            blocks, _, pools = _fits_to((shares.T * self.size), self.size)
            fit = np.clip(blocks[:, 1] / blocks.sum(axis=1), 0.0, 1.0)
            curves.append(np.repeat(fit, sizes_of(pools, shares.size)).reshape(shares.T.shape))
        return percentile_interval(np.concatenate(curves), confidence)

    # ---- the smooth recalibration ----------------------------------------------------------

    @cached_property
    def smooth(self) -> Floats:
        """The smooth recalibration of each cell, monotone or not."""
        total = self.weight
        squares = self.inflation * self.squares / total**2
        return smooth_frequencies(self.size / total, self.happened / total, squares)

    @cached_property
    def limit(self) -> Floats:
        """The isotonic fit to the smooth recalibration."""
        smooth, share = self.smooth, self.size / self.weight
        # What does not decrease is its own isotonic fit.
        if not bool((smooth[1:] >= smooth[:-1]).all()):
            event = share * smooth
            smooth = isotonic_fit(np.array([share - event, event]).T).values
        if self.how.binary == "log":
            # Never certain, so that no loss is infinite.
            edge = 0.25 / float(self.rows.sum())
            smooth = np.clip(smooth, edge, 1 - edge)
        return smooth

    @property
    def rate(self) -> float:
        """The share of rows in which the event happened."""
        return float(self.happened.sum()) / self.weight

    @property
    def expected(self) -> tuple[float, float]:
        """The mean losses of the limit and of a constant, where outcomes follow the smooth recalibration."""
        how, share = self.how, self.size / self.weight
        mean = float((share * self.smooth).sum())
        least = float((share * how.expected(self.limit, 1 - self.limit, self.smooth)).sum())
        return least, how.entropy(np.array([[1 - mean, mean]]))

    def optimism(self, n: int, seed: list[int], exact: float) -> Floats:
        """The gains of an isotonic fit on the limit, and of a constant on the mean chance: (n, 2).

        They come from following the noise of independent outcomes that follow the smooth recalibration.

        A fit to all forecasts gains more than one to cells: by what their least losses of the outcomes that
        were observed differ, of which `exact` is that of the forecasts.
        """
        how, size = self.how, self.size / self.weight
        limit = losses_of(how, self.limit)
        gained, event = gains_of_fits(how, self._smooth_draws(n, seed), size, limit)
        constant = _constant_gain(how, event, float((size * self.smooth).sum()))
        return np.array([gained + max(self._least - exact, 0.0), constant]).T

    def _smooth_draws(self, n: int, seed: list[int]) -> Iterator[Floats]:
        return drawn_shares(self.rows, _rounded(self.smooth), n, seed)

    # ---- rows that belong together ---------------------------------------------------------

    def wild_optimism(
        self, wild: Callable[[int], Floats], most: int, seed: list[int], exact: float
    ) -> Floats:
        """The same where rows belong to groups: `wild` gives deviations of the event's weight from the smooth
        recalibration in a number of wider cells, (n, C'), of which there are at most `most`.

        Cells are wider, and wild outcomes are no zeros and ones. So it is the gain of independent rows, times
        what groups make of it in the wider cells, by the squared error.
        """
        squared = replace(self.how, binary="squared", unit=1.0)
        wide, begins = self.wider(most)
        deviations = wild(len(begins))
        size, share = wide.size / self.weight, self.size / self.weight
        limit, chance = (
            np.add.reduceat(share * values, begins) / size for values in (self.limit, self.smooth)
        )
        losses, rate = losses_of(squared, limit), float((size * chance).sum())

        def gains(draws: Iterable[Floats]) -> Floats:
            gained, event = gains_of_fits(squared, draws, size, losses)
            return np.array([gained, _constant_gain(squared, event, rate)]).T

        by_group = gains(in_steps(deviations.T / wide.size[:, None] + chance[:, None]))
        plain = (
            np.add.reduceat(shares * share[:, None], begins, axis=0) / size[:, None]
            for shares in self._smooth_draws(len(deviations), seed)
        )
        independent = gains(plain).mean(axis=0)
        fine = self.optimism(len(deviations), seed, exact).mean(axis=0)
        ratio: Floats = np.divide(fine, independent, out=np.ones(2), where=independent > ROUNDING)
        return by_group * ratio


def _constant_gain(how: Split, event: Floats, rate: float) -> Floats:
    """The gain of the observed frequency on the mean chance in each draw."""
    # An event that always happens does so in all of the weight, but for rounding.
    frequency = np.minimum(np.maximum(event, 0.0), 1.0)
    if how.binary == "log":
        event, rate = frequency, min(max(rate, 0.0), 1.0)
    constant = how.expected(np.array(rate), np.array(1 - rate), event)
    return np.asarray(constant - how.expected(frequency, 1 - frequency, event))


def _rounded(chance: Floats) -> Floats:
    """Chances that outcomes are drawn with."""
    chance = np.minimum(np.maximum(chance, 0.0), 1.0)
    return chance.round(_DECIMALS)


# ---- draws and fits ----------------------------------------------------------------------------


class Losses(NamedTuple):
    """The losses of the forecasts of cells where the event does not happen, and where it does."""

    never: Floats
    ever: Floats


def losses_of(how: Split, chance: Floats) -> Losses:
    """The losses of forecasts."""
    rest = 1 - chance
    return Losses(how.losses(chance, rest, False), how.losses(chance, rest, True))


def gains_of_fits(how: Split, draws: Iterable[Floats], size: Floats, losses: Losses) -> tuple[Floats, Floats]:
    """The gains of isotonic fits to draws on the forecasts with these losses, and the weight with the event.

    Draws are the shares of the cells that have the event, (C, b), some draws at a time.
    """
    never, ever = losses
    fits = [fitted_shares(how, shares, size, ever - never) for shares in draws]
    event, extra, least = np.concatenate(fits, axis=1)
    return float((size * never).sum()) + extra - least, event


@lru_cache(maxsize=64)
def draw_keys(n: int, *seed: int) -> Any:
    """One key for each of n draws; subgroups have the same, so they are kept."""
    keys = np.random.SeedSequence(seed).generate_state(n, np.uint64)
    keys.flags.writeable = False
    return keys


def _step(n_cells: int) -> int:
    """The number of draws at a time."""
    return max(_FEWEST_DRAWS, _TOGETHER // n_cells)


def in_steps(shares: Floats) -> Iterator[Floats]:
    """Shares of cells, (C, n), some draws at a time."""
    step = _step(len(shares))
    return (shares[:, i : i + step] for i in range(0, shares.shape[1], step))


def drawn_shares(rows: Ints, chance: Floats, n: int, seed: list[int]) -> Iterator[Floats]:
    """The share of each cell's independent rows that have the event, (C, b), in n draws: some at a time."""
    keys = draw_keys(n, *seed)
    # Chances above a half are drawn as those of the opposite, so that the chance of no row is not tiny.
    opposite = chance > 0.5
    chance, count = np.minimum(chance, 1 - chance), rows.astype(float)
    rest = 1 - chance
    variance = chance * rest / count
    spread = np.where(variance * count**2 >= _NORMAL, np.sqrt(variance), 0.0)
    none = rest**count
    quick = compiles(WORK * n * len(rows), "draws in cells")
    step = _step(len(rows))
    for i in range(0, n, step):
        some_keys = keys[i : i + step]
        if quick:
            from verax.kernels.celldraws import draw_shares

            drawn = np.empty((len(rows), len(some_keys)))
            room = np.empty(_COUNTS), np.empty(_PLACES, np.int64)
            draw_shares(some_keys, count, chance, none, spread, opposite, _quantiles(), *room, drawn)
        else:
            drawn = _shares(some_keys, count, chance, none, spread).T
            drawn = np.where(opposite[:, None], 1 - drawn, drawn) if opposite.any() else drawn
        yield drawn


@cache
def _quantiles() -> Floats:
    """Equally likely values with the distribution of a standard normal variable."""
    # Importing `scipy.special` takes far longer than these.
    from statistics import NormalDist

    chances = (np.arange(_QUANTILES) + 0.5) / _QUANTILES
    z: Floats = np.array([*map(NormalDist().inv_cdf, chances.tolist())])
    return np.asarray(z / z.std())


def _shares(keys: Any, rows: Floats, chance: Floats, none: Floats, spread: Floats) -> Floats:
    """The same by array calls."""
    uniform = (mixed(np.arange(len(rows), dtype=np.uint64) ^ keys[:, None]) >> np.uint64(11)) * 2.0**-53
    at = (uniform * _QUANTILES).astype(np.int64)
    drawn: Floats = np.clip(chance + spread * _quantiles()[at], 0.0, 1.0)
    few = np.flatnonzero(spread == 0)
    n, odds, probability = rows[few], chance[few] / (1 - chance[few]), none[few]
    most = int(min(n.max(initial=0), _COUNTS - 1))
    below = np.empty((most + 1, len(few)))
    total = below[0] = probability
    for k in range(most):
        probability = probability * ((n - k) / (k + 1)) * odds
        total = total + probability
        below[k + 1] = total
    small = n <= _SMALL
    counts = np.zeros((len(keys), int(small.sum())))
    for k in range(int(n[small].max(initial=0))):
        counts += (uniform[:, few[small]] >= below[k, small]) & (k < n[small])
    drawn[:, few[small]] = counts / n[small]
    for i in np.flatnonzero(~small):
        hits = np.searchsorted(below[: int(min(n[i], most)), i], uniform[:, few[i]], side="right")
        drawn[:, few[i]] = hits / n[i]
    return drawn


def fitted_shares(how: Split, shares: Floats, size: Floats, more: Floats) -> Floats:
    """Isotonic fits to shares of cells of these sizes, (C, b): for each draw the weight with the event, the
    sum over the cells of that weight times `more`, and the loss of the fit, (3, b).

    Shares may be below 0 or above 1: frequencies are kept in [0, 1].
    """
    if compiles(WORK * (shares.size + OVERHEAD), "draws in cells"):
        from verax.kernels.celldraws import fit_shares

        out = np.empty((3, shares.shape[1]))
        unit = how.unit if how.binary == "log" else 0.0
        fit_shares(np.ascontiguousarray(shares), size, more, unit, np.empty((len(size), 2)), out)
        return out
    event = shares.T * size
    blocks, begins, _ = _fits_to(event, size)
    least = np.add.reduceat(_block_losses(how, blocks), begins)
    # No matrix product: its sums depend on the number of threads.
    return np.stack([np.add.reduceat(blocks[:, 1], begins), np.einsum("bi,i->b", event, more), least])


def _fits_to(event: Floats, size: Floats) -> tuple[Floats, Ints, Ints]:
    """The blocks of the isotonic fits to weights of the event in cells of these sizes, (b, C)."""
    first = np.zeros(event.shape, np.bool_)
    first[:, 0] = True
    return isotonic_fits(np.stack([size - event, event]).reshape(2, -1), first.ravel())


def _block_losses(how: Split, blocks: Floats) -> Floats:
    """The loss of forecasting each block's frequency."""
    n = blocks.sum(axis=1)
    fit = np.clip(blocks[:, 1] / n, 0.0, 1.0)
    return np.asarray(n * how.expected(fit, 1 - fit, blocks[:, 1] / n))


# ---- events together -----------------------------------------------------------------------------


def joint_gains(sample: Keyed, how: Split, n_rows: float, n: int, seed: int) -> Floats:
    """The miscalibrations of every event in n draws of calibrated outcomes of the kept rows, (E, n): one
    random number per row draws the outcomes of all events.
    """
    run = sample.total
    mass = np.cumsum(run.sums.high[:, 0])
    m = int(min(KEPT, n_rows))
    # Rows that are like many others are drawn several times. Rounding must not decide which row it is.
    places = np.searchsorted(mass, (np.arange(m) + 0.5 - 1e-6) / m * mass[-1])
    p = run.least[np.minimum(places, len(mass) - 1)]
    uniform, ends = _joint_uniform(m, n, seed), np.cumsum(p, axis=1)
    outcome = np.zeros((m, n), np.uint16)
    for end in ends[:, :-1].T:
        outcome += uniform >= end[:, None]
    # Sums that are equal but for rounding are equal.
    given, happens = (np.round(ends[:, :-1], _DECIMALS), np.less_equal) if how.thresholds else (p, np.equal)
    order = np.argsort(given, axis=0, kind="stable")
    given = np.minimum(np.take_along_axis(given, order, axis=0), 1.0)
    rises = np.ones(given.shape, np.bool_)
    np.not_equal(given[1:], given[:-1], out=rises[1:])
    gains = np.empty((given.shape[1], n))
    for i in range(len(gains)):
        events = happens(outcome[order[:, i]], i, out=np.empty((m, n)))
        forecast, size = given[:, i], np.ones(m)
        if not rises[:, i].all():
            begins = np.flatnonzero(rises[:, i])
            forecast, size = forecast[begins], sizes_of(begins, m).astype(float)
            events = np.add.reduceat(events, begins, axis=0) / size[:, None]
        gains[i] = gains_of_fits(_SQUARED, [events], size, losses_of(_SQUARED, forecast))[0] / m
    return gains


@lru_cache(maxsize=4)
def _joint_uniform(m: int, n: int, seed: int) -> Floats:
    """The random numbers of m rows in n draws, (m, n); subgroups have the same, so they are kept."""
    keys = draw_keys(n, seed, _JOINT)
    uniform = (mixed(np.arange(m, dtype=np.uint64)[:, None] ^ keys) >> np.uint64(11)) * 2.0**-53
    uniform.flags.writeable = False
    return np.asarray(uniform)


# ---- the smooth recalibration ------------------------------------------------------------------

# Bandwidths of the smooth recalibration, as shares of the rows, and the most cells that it is fitted to.
_BANDWIDTHS = (0.03, 0.06, 0.12, 0.25, 0.5, 1.0)
_SMOOTHED = 128


def smooth_frequencies(n: Floats, s: Floats, squares: Floats) -> Floats:
    """A smooth estimate of the frequency of an event in each pool, monotone or not.

    Local linear regression on the rank of the forecast. The bandwidth has the smallest expected error by
    Mallows' criterion, whose noise is binomial; few pools may also keep their frequencies.

    Parameters
    ----------
    n, s, squares : array of shape (P,)
        The weight of each pool, that of its rows with the event, and the sum of the rows' squared weights.
    """
    smoother = _Smoother.of(np.ascontiguousarray(n, float).tobytes())
    cell, mass = smoother.cell, smoother.mass
    frequency, spread = (sums_at(cell, column, len(mass)) / mass for column in (s, squares))
    fits = np.minimum(np.maximum(smoother.fits @ frequency, 0.0), 1.0)
    noise = spread * _binomial(fits, spread)
    error = np.einsum("wi,i->w", (frequency - fits) ** 2, mass)
    error += 2 * np.einsum("wi,wi->w", smoother.leverages, noise)
    best = int(error.argmin())
    kept = len(n) <= _SMOOTHED and 2 * float(noise[best].sum()) < error[best]
    smooth = frequency if kept else fits[best]
    return np.asarray(np.interp(smoother.rank, smoother.place, smooth))


def _binomial(chance: Floats, spread: Floats) -> Floats:
    """The variance of an event, which is not zero where it never or always happened in few rows."""
    edge = min(0.5, 0.5 * float(spread.sum()) / len(spread))
    inner = np.minimum(np.maximum(chance, edge), 1 - edge)
    return np.asarray(inner * (1 - inner))


class _Smoother(NamedTuple):
    """Local linear smoothers of the frequencies of pools.

    Attributes
    ----------
    rank, cell : arrays of shape (P,)
        The middle rank of each pool, and its cell.
    mass, place : arrays of shape (n,)
        The weight of each cell, and its mean rank.
    fits : array of shape (W, n, n)
        What gives the fits of each bandwidth from the frequencies of the cells.
    leverages : array of shape (W, n)
        What share of each fit is the cell's own frequency.
    """

    rank: Floats
    cell: Ints
    mass: Floats
    place: Floats
    fits: Floats
    leverages: Floats

    @classmethod
    @lru_cache(maxsize=4)
    def of(cls, weights: bytes) -> _Smoother:
        """The smoothers of pools of these weights, which events whose forecasts all differ share."""
        n = np.frombuffer(weights)
        rank = (np.cumsum(n) - n / 2) / n.sum()
        cell = np.arange(len(n))
        if len(n) > _SMOOTHED:
            cell = np.minimum((rank * _SMOOTHED).astype(np.int64), _SMOOTHED - 1)
            cell = (np.cumsum(np.bincount(cell) > 0) - 1)[cell]
        mass, place = (sums_at(cell, column, int(cell[-1]) + 1) for column in (n, n * rank))
        place /= mass
        return cls(rank, cell, mass, place, *_local_linear(place, mass))


def _local_linear(place: Floats, mass: Floats) -> tuple[Floats, Floats]:
    """Local linear smoothers of the frequencies of cells, with a Gaussian kernel of each bandwidth, and
    what share of each fit is the cell's own frequency: (W, n, n) and (W, n).
    """
    apart = place[None, :] - place[:, None]
    square, n = apart * apart, len(place)
    smoothers, leverages = np.empty((len(_BANDWIDTHS), n, n)), np.empty((len(_BANDWIDTHS), n))
    # Few arrays, which a cache holds.
    kernel, sloped = np.empty((n, n)), np.empty((n, n))
    for smoother, share, bandwidth in zip(smoothers, leverages, _BANDWIDTHS, strict=True):
        np.exp(np.multiply(square, -0.5 / bandwidth**2, out=kernel), out=kernel)
        kernel *= mass
        np.multiply(kernel, apart, out=sloped)
        np.multiply(sloped, apart, out=smoother)
        zeroth, first, second = (terms.sum(axis=1)[:, None] for terms in (kernel, sloped, smoother))
        determinant = zeroth * second - first**2
        # Where there is no other cell within reach, the fit is constant.
        linear = determinant > 1e-9 * zeroth * second
        np.multiply(second, kernel, out=smoother)
        sloped *= first
        smoother -= sloped
        smoother /= np.where(linear, determinant, 1.0)
        if not linear.all():
            np.copyto(smoother, kernel / zeroth, where=~linear)
        share[:] = np.diagonal(smoother)
    return smoothers, leverages
