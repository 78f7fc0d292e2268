"""How uncertain the components of a score are, and how far the isotonic fit follows noise.

The isotonic fit minimises the score, so estimating it has no first-order effect on the components: their
variance is that of mean differences of losses. The second-order effect is a bias, because the fit
follows the noise of the outcomes. It is measured by refits to outcomes drawn from a smooth
recalibration of the forecast, which need not be monotone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from verax.analyses.binary import BinaryEvent
from verax.analyses.calibration.events import Split, recalibrate
from verax.analyses.calibration.refits import Draw, IndependentDraws, Refits, at_once, block_losses
from verax.analyses.calibration.sources import PartEvents
from verax.analyses.units import IndependentUnits, SamplingUnits, dot, sums_at
from verax.inference.intervals import Interval
from verax.inputs.arrays import Floats
from verax.inputs.groups import Groups
from verax.kernels.threads import in_order

# Bandwidths of the smooth recalibration, as shares of the rows, and the most cells that it is fitted to.
_BANDWIDTHS = (0.03, 0.06, 0.12, 0.25, 0.5, 1.0)
_CELLS = 128
# How many refits measure the bias: as many as there are replicates, within these bounds.
_FEWEST, _MOST = 20, 60
# Smaller gains, of the squared error or under the smooth recalibration, are rounding.
_ROUNDING = 1e-14
# From this many rows on, memory matters.
_MANY = 2**18
# Random streams: outcomes drawn from the forecast, and from its smooth recalibration.
FORECAST, SMOOTH = 1, 2

Draws = Iterator[Draw] | IndependentDraws


# ---- intervals ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Uncertainty:
    """How uncertain the score and its components are. All arrays are (4,), in their order.

    Attributes
    ----------
    bias : array
        What the estimates exceed the values for many more rows by, on average.
    variance : array
        The variances of the mean differences of losses that the components are.
    plug_in : array
        Miscalibration and discrimination under the smooth recalibration, zero for the others. Small
        values of the two have variances that are proportional to them.
    noise : array
        The variances of what is gained by following noise.
    n_units : int
        The number of rows, or of groups.
    freedom : float
        Degrees of freedom of the variances.
    grouped : bool
        Whether the units are groups.
    caution : str
        Why the intervals cannot be trusted; empty where they can.
    """

    bias: Floats
    variance: Floats
    plug_in: Floats
    noise: Floats
    n_units: int
    freedom: float
    grouped: bool
    caution: str

    def interval(self, i: int, observed: float, confidence: float) -> Interval:
        """The interval of number `i` for many more rows: the values that the estimate does not refute.

        The variance grows linearly with the value, so the ends solve a quadratic equation.
        """
        from scipy.special import stdtrit

        method = "t" if i == 0 else "t, corrected for overfitting of the isotonic fit"
        if self.n_units < 2:
            only = f"there is only one {'group' if self.grouped else 'row'}"
            return Interval.undefined(only, method=method, confidence=confidence)
        if not np.isfinite([observed, self.variance[i]]).all():
            return Interval.undefined("the score is infinite", method=method, confidence=confidence)
        estimate = observed - self.bias[i]
        slope = self.variance[i] / self.plug_in[i] if self.plug_in[i] > _ROUNDING else 0.0
        t = float(-stdtrit(self.freedom, (1 - confidence) / 2))
        shift = t * t * slope / 4
        half = np.sqrt(shift**2 + t * t * self._variance_at(i, estimate, slope))
        low, high = max(estimate + shift - half, 0.0), max(estimate + shift + half, 0.0)
        return Interval(low, high, method=method, confidence=confidence, caution=self.caution)

    def _variance_at(self, i: int, estimate: float, slope: float) -> float:
        if not self.plug_in[i] > _ROUNDING:
            return float(self.variance[i] + self.noise[i])
        proportional = slope * max(estimate, 0.0)
        if self.grouped:
            # Even the smooth recalibration follows noise that rows of a group share, and the variance has it.
            return float(max(self.variance[i], self.noise[i] + proportional / 2))
        return float(self.noise[i] + proportional)


@dataclass(frozen=True)
class Measured:
    """What the uncertainty of an event's components, or of all events', is made of.

    Attributes
    ----------
    influence : (n, 4) array
        What each unit adds to the deviations of the score and its components.
    plug_in : array of shape (2,)
        Miscalibration and discrimination under the smooth recalibration.
    optimism : array of shape (R, 2)
        What the isotonic fit and the frequency gain by following noise, in each refit.
    calibrated : array of shape (B,)
        Miscalibrations of outcomes drawn from the forecast.
    certain : bool
        Whether some forecasts of log scores are certain, so that failing would cost an infinite loss.
    """

    influence: Floats
    plug_in: Floats
    optimism: Floats
    calibrated: Floats
    certain: bool

    def __iadd__(self, other: Measured) -> Measured:
        # In place: the influence of many rows is large.
        np.add(self.influence, other.influence, out=self.influence)
        return Measured(
            self.influence,
            self.plug_in + other.plug_in,
            self.optimism + other.optimism,
            self.calibrated + other.calibrated,
            self.certain or other.certain,
        )

    def scaled(self, factor: float) -> Measured:
        """The same of a score that is multiplied by a factor."""
        return Measured(
            factor * self.influence,
            factor * self.plug_in,
            factor * self.optimism,
            factor * self.calibrated,
            self.certain,
        )

    def uncertainty(self, units: SamplingUnits) -> Uncertainty:
        """How uncertain the components are."""
        variance = units.variances(self.influence)
        return uncertainty_of(self.optimism, self.plug_in, variance, units, certain=self.certain)


def uncertainty_of(
    optimism: Floats, plug_in: Floats, variance: Floats, units: IndependentUnits, *, certain: bool
) -> Uncertainty:
    """How uncertain components are, from what `Measured` has of them and the variances of mean losses."""
    fit, rate = optimism.T
    gains = [np.zeros_like(fit), fit, fit - rate, -rate]
    cautions = [units.caution]
    if certain:
        cautions.append("some forecasts are certain, and one that fails makes the score infinite")
    return Uncertainty(
        bias=np.mean(gains, axis=1),
        variance=variance,
        plug_in=np.array([0.0, *plug_in, 0.0]),
        noise=np.var(gains, axis=1, ddof=1),
        n_units=units.n,
        freedom=units.freedom,
        grouped=units.grouped,
        caution="; ".join(filter(None, cautions)),
    )


# ---- draws -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sampling:
    """The units of a sample and the random draws, which are the same for all events of a forecast.

    Attributes
    ----------
    units : SamplingUnits
        What is independent among the rows, or lists.
    replicates : int
        The number of draws of outcomes from the forecast.
    seed : int
        The random seed.
    threads : int
        How many threads share the refits of one event.
    """

    units: SamplingUnits
    replicates: int
    seed: int
    threads: int

    @classmethod
    def of(cls, rows: PartEvents, replicates: int, seed: int, threads: int = 1) -> Sampling:
        """Of rows that have weight."""
        units = SamplingUnits.of(rows.n_rows, rows.weights, rows.groups)[0]
        return cls(units, replicates, seed, threads)

    @property
    def wild(self) -> bool:
        """Whether the deviations of units are drawn with one sign each, not the outcomes of rows."""
        return self.units.groups is not None

    def measure(self, event: BinaryEvent, how: Split) -> Measured:
        """What the uncertainty of an event's components is made of."""
        return _Elements.of(self, event, how).measured()

    def calibrated(self, event: BinaryEvent, how: Split) -> Floats:
        """Miscalibrations of outcomes drawn from an event's forecast, alone."""
        return _Elements.of(self, event, how).calibrated()


@dataclass(frozen=True)
class _Elements:
    """The elements of one event: rows, or the entries of lists, of which those of a list belong together.

    Attributes
    ----------
    share : array of shape (N,)
        Their weights, which sum to one.
    times : float
        How many elements a row has on average.
    """

    sampling: Sampling
    event: BinaryEvent
    how: Split
    share: Floats
    times: float

    @classmethod
    def of(cls, sampling: Sampling, event: BinaryEvent, how: Split) -> _Elements:
        """The elements of an event."""
        share, times = sampling.units.share, 1.0
        if event.owner is not None:
            share = share[event.owner]
            times = float(share.sum())
            share = share / times
        return cls(sampling, event, how, share, times)

    def measured(self) -> Measured:
        """What the uncertainty of the components is made of."""
        event, how, share = self.event, self.how, self.share
        chance, limit = self._smoothed()
        optimism, calibrated = self._optimism(chance, limit), self.calibrated()
        # Rows may be many, so that no array lives longer than it must.
        expected = dot(share, how.expected(limit, 1 - limit, chance))
        given = dot(share, how.expected(event.given, event.rest, chance))
        mean = dot(share, chance)
        del chance
        losses = how.losses(event.given, event.rest, event.happened)
        fitted = how.losses(limit, 1 - limit, event.happened)
        del limit
        # Where certain forecasts may fail, the mean over the smooth recalibration is infinite.
        certain = math.isinf(given)
        plug_in = [
            dot(share, losses - fitted) if certain else given - expected,
            how.entropy(np.array([[1 - mean, mean]])) - expected,
        ]
        rate = np.array(dot(share, event.happened.astype(float)))
        constant = how.losses(rate, 1 - rate, event.happened)

        def deviating() -> Iterator[Floats]:
            # One after the other, because each may be large.
            yield losses
            yield losses - fitted
            yield constant - fitted
            yield constant

        units = self.sampling.units
        n = len(units.share)
        columns = deviating()
        if event.owner is not None:
            columns = (event.by_row(column, n) / self.times for column in columns)
        # Of many rows in single precision: the squares that are summed are then right to six digits.
        many = units.groups is None and n >= _MANY
        influence = units.influence(columns, 4, np.float32 if many else np.float64)
        return Measured(influence, np.array(plug_in), optimism, calibrated, certain)

    def _smoothed(self) -> tuple[Floats, Floats]:
        """The smooth recalibration of each element, monotone or not, and the isotonic fit to it."""
        event, share, groups = self.event, self.share, self.sampling.units.groups
        n, s = event.sums(share), event.sums(share * event.happened)
        if groups is not None:
            groups = Groups(event.of_rows(groups.codes), groups.labels)
        elif event.owner is not None:
            groups = Groups(event.owner, np.arange(len(self.sampling.units.share)))
        squares = event.sums(share**2)
        if groups is not None:
            squares = SamplingUnits(share, groups).squares(event.pools, len(n))
        smooth = smooth_frequencies(n, s, squares)
        # What does not decrease is its own isotonic fit.
        rises = bool((smooth[1:] >= smooth[:-1]).all())
        limit = smooth if rises else recalibrate(np.stack([n - n * smooth, n * smooth], axis=1)).values
        if self.how.binary == "log":
            # Never certain, so that no loss is infinite.
            limit = np.clip(limit, 0.25 / len(share), 1 - 0.25 / len(share))
        chance = event.spread(smooth)
        return chance, chance if limit is smooth else event.spread(limit)

    def _optimism(self, chance: Floats, limit: Floats) -> Floats:
        """What the isotonic fit and the frequency gain by following noise, in each refit: (R, 2)."""
        share = self.share
        rate = dot(share, chance)

        def gains(how: Split, draws: Draws) -> Floats:
            base, more = _odds(share, *sides(how, limit, 1 - limit))
            refit, each = Refits(self.event, share, more).each(draws)
            del more

            def gain(draw: Draw) -> Floats:
                found = refit(draw)
                s = np.stack([1 - found.weight, found.weight], axis=1)
                frequency = np.full(len(s), rate)
                constant = how.expected(frequency, 1 - frequency, s[:, 1]) - block_losses(how, s)
                return np.stack([base + found.extra - found.least(how), constant], axis=1)

            return np.concatenate(list(self._each(gain, each)))

        n_refits = refits_for(self.sampling.replicates)

        def independent() -> Draws:
            return self._independent(chance, SMOOTH, n_refits)

        if not self.sampling.wild:
            return gains(self.how, independent())
        squared = replace(self.how, binary="squared", unit=1.0)
        found = gains(squared, self._wild(chance, SMOOTH, n_refits))
        if self.how.binary == "squared":
            return found
        # Wild outcomes are no zeros and ones, so log scores take theirs from the squared error.
        plain = gains(squared, independent()).mean(axis=0)
        own = gains(self.how, independent()).mean(axis=0)
        ratio: Floats = np.divide(own, plain, out=np.ones(2), where=plain > _ROUNDING)
        return found * ratio

    def calibrated(self) -> Floats:
        """Miscalibrations of outcomes drawn from the forecast; none for log scores of groups."""
        event, how, share = self.event, self.how, self.share
        draws: Draws
        if not self.sampling.wild:
            draws = self._independent(event.given, FORECAST, self.sampling.replicates)
        elif how.binary == "squared":
            draws = self._wild(event.given, FORECAST, self.sampling.replicates)
        else:
            return np.zeros(0)
        # An infinite loss belongs to an outcome that is never drawn.
        base, more = _odds(share, *(finite(loss) for loss in sides(how, event.given, event.rest)))
        refit, each = Refits(event, share, more).each(draws)
        del more

        def gain(draw: Draw) -> Floats:
            found = refit(draw)
            return np.asarray(base + found.extra - found.least(how))

        return np.concatenate([np.zeros(0), *self._each(gain, each)])

    def _each(self, gain: Callable[[Draw], Floats], draws: Iterable[Draw]) -> Iterator[Floats]:
        """What is gained in some draws at a time, by several threads where there are many rows."""
        threads = self.sampling.threads
        return map(gain, draws) if threads == 1 else in_order(gain, draws, threads)

    def _independent(self, chance: Floats, stream: int, n: int) -> Draws:
        """Outcomes of independent rows."""
        return IndependentDraws.of(self.event, chance, n, [self.sampling.seed, stream])

    def _wild(self, chance: Floats, stream: int, n: int) -> Iterator[Draw]:
        """Outcomes whose deviations keep or change their sign group by group: the wild bootstrap."""
        groups = self.sampling.units.groups
        assert groups is not None
        codes, n_groups = self.event.of_rows(groups.as_seen), len(groups.labels)
        deviation = self.event.happened - chance
        rng = np.random.default_rng([self.sampling.seed, stream])

        def drawn(signs: Floats) -> Floats:
            return np.asarray(chance + signs[:, codes] * deviation)

        step = at_once(len(codes))
        sizes = [min(step, n - i) for i in range(0, n, step)]
        return (
            partial(drawn, np.array([rng.choice([-1.0, 1.0], n_groups) for _ in range(b)])) for b in sizes
        )


def refits_for(replicates: int) -> int:
    """Number of refits that measure the bias, given the number of replicates."""
    return min(max(replicates, _FEWEST), _MOST)


def sides(how: Split, given: Floats, rest: Floats) -> tuple[Floats, Floats]:
    """The losses if the event does not happen, and if it does."""
    return how.losses(given, rest, False), how.losses(given, rest, True)


def finite(losses: Floats) -> Floats:
    """The losses, zero instead of infinite."""
    infinite = np.isinf(losses)
    return np.where(infinite, 0.0, losses) if infinite.any() else losses


def _odds(share: Floats, never: Floats, ever: Floats) -> tuple[float, Floats]:
    """The mean loss where the event never happens, and what each row adds to it where it does."""
    return dot(share, never), share * (ever - never)


# ---- the smooth recalibration ------------------------------------------------------------------


def smooth_frequencies(n: Floats, s: Floats, squares: Floats) -> Floats:
    """A smooth estimate of the frequency of an event in each pool, monotone or not.

    Local linear regression on the rank of the forecast. The bandwidth has the smallest expected error by
    Mallows' criterion, whose noise is binomial; few pools may also keep their frequencies.

    Parameters
    ----------
    n, s, squares : array of shape (P,)
        The weight of each pool, that of its rows with the event, and the sum of the rows' squared weights.
    """
    rank = (np.cumsum(n) - n / 2) / n.sum()
    cell = np.arange(len(n))
    if len(n) > _CELLS:
        cell = np.minimum((rank * _CELLS).astype(np.int64), _CELLS - 1)
        cell = (np.cumsum(np.bincount(cell) > 0) - 1)[cell]
    n_cells = int(cell[-1]) + 1
    mass, event, spread, place = (sums_at(cell, column, n_cells) for column in (n, s, squares, n * rank))
    frequency, spread, place = event / mass, spread / mass, place / mass
    apart = place[None, :] - place[:, None]
    squared = apart * apart
    best, least, kept = frequency, np.inf, np.inf
    for bandwidth in _BANDWIDTHS:
        fit, own = _local_linear(apart, squared, mass, frequency, bandwidth)
        fit = np.clip(fit, 0.0, 1.0)
        noise = spread * _binomial(fit, spread)
        error = dot(mass, (frequency - fit) ** 2) + 2 * dot(own, noise)
        if error < least:
            best, least, kept = fit, error, 2 * float(noise.sum())
    if len(n) <= _CELLS and kept < least:
        best = frequency
    return np.asarray(np.interp(rank, place, best))


def _binomial(chance: Floats, spread: Floats) -> Floats:
    """The variance of an event, which is not zero where it never or always happened in few rows."""
    edge = min(0.5, 0.5 * float(np.mean(spread)))
    inner = np.clip(chance, edge, 1 - edge)
    return np.asarray(inner * (1 - inner))


def _local_linear(
    apart: Floats, squared: Floats, mass: Floats, frequency: Floats, bandwidth: float
) -> tuple[Floats, Floats]:
    """Local linear fits to the frequencies of cells with a Gaussian kernel, and what share of each fit is the
    cell's own frequency. The matrix that has these shares as its diagonal is not made.
    """
    kernel = squared * (-0.5 / bandwidth**2)
    np.exp(kernel, out=kernel)
    columns = np.stack([mass, mass * frequency], axis=1)
    (zeroth, level), (first, slope) = (kernel @ columns).T, ((kernel * apart) @ columns).T
    second = (kernel * squared) @ mass
    determinant = zeroth * second - first**2
    # Where there is no other cell within reach, the fit is constant.
    linear = determinant > 1e-9 * zeroth * second
    divisor = np.where(linear, determinant, 1.0)
    fit = np.where(linear, (second * level - first * slope) / divisor, level / zeroth)
    return fit, np.where(linear, second * mass / divisor, mass / zeroth)
