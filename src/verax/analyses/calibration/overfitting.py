"""How uncertain the components of a score are, and how far the isotonic fit follows noise.

The isotonic fit minimises the score, so estimating it has no first-order effect on the components: their
variance is that of mean differences of losses. The second-order effect is a bias, because the fit
follows the noise of the outcomes. It is measured by refits to outcomes drawn from a smooth
recalibration of the forecast, which need not be monotone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from verax.analyses.calibration.events import Event, Split, recalibrate
from verax.analyses.units import SamplingUnits, dot, sums_at
from verax.inference.intervals import Interval
from verax.inputs.arrays import Floats
from verax.inputs.groups import Groups

# Bandwidths of the smooth recalibration, as shares of the rows, and the most cells that it is fitted to.
_BANDWIDTHS = (0.03, 0.06, 0.12, 0.25, 0.5, 1.0)
_CELLS = 128
# How many refits measure the bias: as many as there are replicates, within these bounds.
_FEWEST, _MOST = 20, 60
# Smaller gains of the squared error are rounding.
_ROUNDING = 1e-14
# Random streams: outcomes drawn from the forecast, and from its smooth recalibration.
_FORECAST, _SMOOTH = 1, 2


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
        slope = self.variance[i] / self.plug_in[i] if self.plug_in[i] > 0 else 0.0
        t = float(-stdtrit(self.freedom, (1 - confidence) / 2))
        shift = t * t * slope / 4
        half = np.sqrt(shift**2 + t * t * self._variance_at(i, estimate, slope))
        low, high = max(estimate + shift - half, 0.0), max(estimate + shift + half, 0.0)
        return Interval(low, high, method=method, confidence=confidence, caution=self.caution)

    def _variance_at(self, i: int, estimate: float, slope: float) -> float:
        if not self.plug_in[i] > 0:
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
    plug_in : (2,) array
        Miscalibration and discrimination under the smooth recalibration.
    optimism : (R, 2) array
        What the isotonic fit and the frequency gain by following noise, in each refit.
    calibrated : (B,) array
        Miscalibrations of outcomes drawn from the forecast.
    certain : bool
        Whether some forecasts of log scores are certain, so that failing would cost an infinite loss.
    """

    influence: Floats
    plug_in: Floats
    optimism: Floats
    calibrated: Floats
    certain: bool

    def __add__(self, other: Measured) -> Measured:
        return Measured(
            self.influence + other.influence,
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
        fit, rate = self.optimism.T
        gains = [np.zeros_like(fit), fit, fit - rate, -rate]
        cautions = [units.caution]
        if self.certain:
            cautions.append("some forecasts are certain, and one that fails makes the score infinite")
        return Uncertainty(
            bias=np.mean(gains, axis=1),
            variance=units.variances(self.influence),
            plug_in=np.array([0.0, *self.plug_in, 0.0]),
            noise=np.var(gains, axis=1, ddof=1),
            n_units=units.n,
            freedom=units.freedom,
            grouped=units.groups is not None,
            caution="; ".join(filter(None, cautions)),
        )


# ---- draws -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sampling:
    """The units of a sample and the random draws, which are the same for all events of a forecast.

    Attributes
    ----------
    units : Units
        What is independent, among the rows that have weight.
    weighty : (N,) bool array or None
        Which rows these are; None if all are.
    replicates : int
        The number of draws of outcomes from the forecast.
    seed : int
        The random seed.
    """

    units: SamplingUnits
    weighty: Any
    replicates: int
    seed: int

    @classmethod
    def of(
        cls, n_rows: int, weights: Floats | None, groups: Groups | None, replicates: int, seed: int
    ) -> Sampling:
        """Of rows with these weights and groups."""
        units, weighty = SamplingUnits.of(n_rows, weights, groups)
        return cls(units, weighty, replicates, seed)

    def measure(self, event: Event) -> Measured:
        """What the uncertainty of an event's components is made of."""
        if self.weighty is not None:
            event = event.among(self.weighty)
        how, share = event.how, self.units.share
        n, s = event.sums(share), event.sums(share * event.happened)
        smooth = smooth_frequencies(n, s, self.units.squares(event.pools, len(n)))
        limit = recalibrate(_cells(n, n * smooth)).values
        if how.binary == "log":
            # Never certain, so that no loss is infinite.
            limit = np.clip(limit, 0.25 / len(share), 1 - 0.25 / len(share))
        fitted = how.losses(limit[event.pools], 1 - limit[event.pools], event.happened)
        rate = np.full(len(share), s.sum())
        constant = how.losses(rate, 1 - rate, event.happened)
        gained = event.losses - fitted
        given = how.expected(event.given, event.rest, smooth[event.pools])
        # Where certain forecasts may fail, the mean over the smooth recalibration is infinite.
        certain = bool(np.isinf(given).any())
        expected = dot(n, how.expected(limit, 1 - limit, smooth))
        mean = dot(n, smooth)
        plug_in = [
            dot(share, gained if certain else given) - (0.0 if certain else expected),
            how.entropy(np.array([[1 - mean, mean]])) - expected,
        ]
        return Measured(
            self.units.influence([event.losses, gained, constant - fitted, constant]),
            np.array(plug_in),
            self._optimism(event, smooth, limit),
            self._calibrated(event),
            certain,
        )

    def _optimism(self, event: Event, smooth: Floats, limit: Floats) -> Floats:
        """What the isotonic fit and the frequency gain by following noise, in each refit: (R, 2)."""
        n = event.sums(self.units.share)
        rate = np.array([dot(n, smooth)])

        def gains(how: Split, draws: Iterator[Floats]) -> Floats:
            never, ever = _sides(how, limit, 1 - limit)
            base, more = dot(n, never), ever - never
            found = []
            for happened in draws:
                s = event.sums(self.units.share * happened)
                cells, whole = _cells(n, s), _cells(n.sum(keepdims=True), s.sum(keepdims=True))
                fit = base + dot(s, more) - _least(how, cells)
                constant = how.expected(rate, 1 - rate, whole[:, 1]).sum() - _least(how, whole)
                found.append([fit, constant])
            return np.array(found)

        n_refits = min(max(self.replicates, _FEWEST), _MOST)
        chance = smooth[event.pools]

        def independent() -> Iterator[Floats]:
            return self._independent(event, chance, _SMOOTH, n_refits)

        if self.units.groups is None:
            return gains(event.how, independent())
        squared = replace(event.how, binary="squared", unit=1.0)
        found = gains(squared, self._wild(event, chance, _SMOOTH, n_refits))
        if event.how.binary == "squared":
            return found
        # Wild outcomes are no zeros and ones, so log scores take theirs from the squared error.
        plain = gains(squared, independent()).mean(axis=0)
        own = gains(event.how, independent()).mean(axis=0)
        ratio: Floats = np.divide(own, plain, out=np.ones(2), where=plain > _ROUNDING)
        return found * ratio

    def _calibrated(self, event: Event) -> Floats:
        """Miscalibrations of outcomes drawn from the forecast; none for log scores of groups."""
        n, how, share = event.sums(self.units.share), event.how, self.units.share
        if self.units.groups is None:
            draws = self._independent(event, event.given, _FORECAST, self.replicates)
        elif how.binary == "squared":
            draws = self._wild(event, event.given, _FORECAST, self.replicates)
        else:
            return np.zeros(0)
        # An infinite loss belongs to an outcome that is never drawn.
        never, ever = (np.where(np.isinf(loss), 0.0, loss) for loss in _sides(how, event.given, event.rest))
        base, more = dot(share, never), share * (ever - never)
        found = []
        for happened in draws:
            cells = _cells(n, event.sums(share * happened))
            found.append(base + dot(more, happened) - _least(how, cells))
        return np.array(found)

    def _independent(self, event: Event, chance: Floats, stream: int, n: int) -> Iterator[Floats]:
        """Outcomes of independent rows, by one uniform number per row for all events together."""
        rng = np.random.default_rng([self.seed, stream])
        end = event.start + chance
        for _ in range(n):
            uniform = rng.random(len(chance))
            # Parts of the unit interval that would end beyond it go on at its beginning.
            yield (((uniform >= event.start) & (uniform < end)) | (uniform < end - 1)).astype(float)

    def _wild(self, event: Event, chance: Floats, stream: int, n: int) -> Iterator[Floats]:
        """Outcomes whose deviations keep or change their sign group by group: the wild bootstrap."""
        assert self.units.groups is not None
        codes, n_groups = self.units.groups.codes, len(self.units.groups.labels)
        deviation = event.happened - chance
        rng = np.random.default_rng([self.seed, stream])
        for _ in range(n):
            yield chance + rng.choice([-1.0, 1.0], n_groups)[codes] * deviation


def _cells(n: Floats, s: Floats) -> Floats:
    """The weights of pools without and with the event, of n in all and s with it."""
    return np.stack([n - s, s], axis=1)


def _least(how: Split, cells: Floats) -> float:
    """The total loss of the isotonic fit to pools. Wild outcomes may call for less than 0 or more than 1."""
    blocks = recalibrate(cells).blocks
    n = blocks.sum(axis=1)
    fit = np.clip(blocks[:, 1] / n, 0.0, 1.0)
    return dot(n, how.expected(fit, 1 - fit, blocks[:, 1] / n))


def _sides(how: Split, given: Floats, rest: Floats) -> tuple[Floats, Floats]:
    """The losses if the event does not happen, and if it does."""
    return how.losses(given, rest, False), how.losses(given, rest, True)


# ---- the smooth recalibration ------------------------------------------------------------------


def smooth_frequencies(n: Floats, s: Floats, squares: Floats) -> Floats:
    """A smooth estimate of the frequency of an event in each pool, monotone or not.

    Local linear regression on the rank of the forecast. The bandwidth has the smallest expected error by
    Mallows' criterion, whose noise is binomial; few pools may also keep their frequencies.

    Parameters
    ----------
    n, s, squares : (P,) arrays
        The weight of each pool, that of its rows with the event, and the sum of the rows' squared weights.
    """
    rank = (np.cumsum(n) - n / 2) / n.sum()
    cell = np.arange(len(n))
    if len(n) > _CELLS:
        _, cell = np.unique(np.minimum((rank * _CELLS).astype(np.int64), _CELLS - 1), return_inverse=True)
    n_cells = int(cell[-1]) + 1
    mass, event, spread, place = (sums_at(cell, column, n_cells) for column in (n, s, squares, n * rank))
    frequency, spread, place = event / mass, spread / mass, place / mass
    best, least, kept = frequency, np.inf, np.inf
    for bandwidth in _BANDWIDTHS:
        smoother = _local_linear(place, mass, bandwidth)
        fit = np.clip(smoother @ frequency, 0.0, 1.0)
        noise = spread * _binomial(fit, spread)
        error = dot(mass, (frequency - fit) ** 2) + 2 * dot(np.diag(smoother), noise)
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


def _local_linear(place: Floats, mass: Floats, bandwidth: float) -> Floats:
    """The matrix that turns the frequencies of cells into local linear fits with a Gaussian kernel."""
    apart = place[None, :] - place[:, None]
    kernel = np.exp(-0.5 * (apart / bandwidth) ** 2) * mass
    zeroth, first, second = (np.sum(kernel * apart**k, axis=1, keepdims=True) for k in range(3))
    determinant = zeroth * second - first**2
    # Where there is no other cell within reach, the fit is constant.
    linear = determinant > 1e-9 * zeroth * second
    slanted = kernel * (second - first * apart) / np.where(linear, determinant, 1.0)
    return np.asarray(np.where(linear, slanted, kernel / zeroth))
