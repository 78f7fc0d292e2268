"""How uncertain the components of a score are, and how far the isotonic fit follows noise.

The isotonic fit minimises the score, so estimating it has no first-order effect on the components: their
variance is that of mean differences of losses. The second-order effect is a bias, because the fit
follows the noise of the outcomes. It is measured by refits to outcomes drawn from a smooth
recalibration of the forecast, which need not be monotone (`cells`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from verax.analyses.calibration.eventsums import EventSums
from verax.analyses.units import CountedUnits, IndependentUnits, sums_at
from verax.errors import InputError
from verax.inference.intervals import Interval
from verax.inputs.arrays import Floats

# Bandwidths of the smooth recalibration, as shares of the rows, and the most cells that it is fitted to.
_BANDWIDTHS = (0.03, 0.06, 0.12, 0.25, 0.5, 1.0)
_CELLS = 128
# How many refits measure the bias: as many as there are replicates, within these bounds.
_FEWEST, _MOST = 20, 60
# Random streams: outcomes drawn from the forecast, and from its smooth recalibration.
FORECAST, SMOOTH = 1, 2
# Smaller gains, of the squared error or under the smooth recalibration, are rounding.
ROUNDING = 1e-14


# ---- intervals ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Uncertainty:
    """How uncertain the score and its components are. All arrays are (4,), in their order.

    Attributes
    ----------
    bias : array
        What the estimates exceed the values for many more rows by, on average.
    variance : array
        The variances of the mean differences of losses that the components are; all NaN where the rows were
        not looked at again.
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

    @property
    def known(self) -> bool:
        """Whether the rows were looked at again, so that there are intervals."""
        return self.n_units < 2 or not bool(np.isnan(self.variance).all())

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
        slope = self.variance[i] / self.plug_in[i] if self.plug_in[i] > ROUNDING else 0.0
        t = float(-stdtrit(self.freedom, (1 - confidence) / 2))
        shift = t * t * slope / 4
        half = np.sqrt(shift**2 + t * t * self._variance_at(i, estimate, slope))
        low, high = max(estimate + shift - half, 0.0), max(estimate + shift + half, 0.0)
        return Interval(low, high, method=method, confidence=confidence, caution=self.caution)

    def _variance_at(self, i: int, estimate: float, slope: float) -> float:
        if not self.plug_in[i] > ROUNDING:
            return float(self.variance[i] + self.noise[i])
        proportional = slope * max(estimate, 0.0)
        if self.grouped:
            # Even the smooth recalibration follows noise that rows of a group share, and the variance has it.
            return float(max(self.variance[i], self.noise[i] + proportional / 2))
        return float(self.noise[i] + proportional)


def units_of(sums: EventSums, copies: float | None) -> CountedUnits:
    """What is independent: groups, or rows; `copies` is how many there are where weights count them."""
    if sums.groups is not None:
        weight = sums.groups[:, 0]
        n, total, squares = int(np.count_nonzero(weight)), float(weight.sum()), float((weight**2).sum())
        return CountedUnits.of(n, total, squares, in_groups=True)
    if copies is not None:
        return CountedUnits.of(round(copies), copies, copies, in_groups=False)
    weight, squares, n_rows = sums.weight.high.tolist()
    return CountedUnits.of(int(n_rows), weight, squares, in_groups=False)


def check_units(sums: EventSums, *, copies: bool) -> None:
    """Refuse a single group and fractional copies where outcomes are drawn."""
    if sums.n_groups == 1:
        raise InputError("must name at least two groups for intervals", argument="groups")
    if copies and not sums.whole:
        raise InputError("must be whole numbers where they count copies", argument="weights")


def refits_for(replicates: int) -> int:
    """Number of refits that measure the bias, given the number of replicates."""
    return min(max(replicates, _FEWEST), _MOST)


def uncertainty_of(
    optimism: Floats, plug_in: Floats, variance: Floats, units: IndependentUnits, *, certain: bool
) -> Uncertainty:
    """How uncertain components are, from the gains of refits, (R, 2), what they are under the smooth
    recalibration, and the variances of mean losses; of log scores `certain` if a forecast that fails would
    cost an infinite loss.
    """
    fit, rate = optimism.T
    gains = np.array([np.zeros_like(fit), fit, fit - rate, -rate])
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
    smoothers, own = _local_linear(place.tobytes(), mass.tobytes())
    fits = np.clip(smoothers @ frequency, 0.0, 1.0)
    noise = spread * _binomial(fits, spread)
    error = np.einsum("wi,i->w", (frequency - fits) ** 2, mass) + 2 * np.einsum("wi,wi->w", own, noise)
    best = int(np.argmin(error))
    kept = len(n) <= _CELLS and 2 * float(noise[best].sum()) < error[best]
    smooth = frequency if kept else fits[best]
    return np.asarray(np.interp(rank, place, smooth))


def _binomial(chance: Floats, spread: Floats) -> Floats:
    """The variance of an event, which is not zero where it never or always happened in few rows."""
    edge = min(0.5, 0.5 * float(np.mean(spread)))
    inner = np.clip(chance, edge, 1 - edge)
    return np.asarray(inner * (1 - inner))


@lru_cache(maxsize=4)
def _local_linear(places: bytes, masses: bytes) -> tuple[Floats, Floats]:
    """Local linear smoothers of the frequencies of cells, with a Gaussian kernel of each bandwidth, and
    what share of each fit is the cell's own frequency: (W, n, n) and (W, n).

    Events of rows whose forecasts all differ have the same cells.
    """
    place, mass = np.frombuffer(places), np.frombuffer(masses)
    apart = place[None, :] - place[:, None]
    square, n = apart * apart, len(place)
    smoothers, own = np.empty((len(_BANDWIDTHS), n, n)), np.empty((len(_BANDWIDTHS), n))
    # Few arrays, which a cache holds.
    kernel, sloped = np.empty((n, n)), np.empty((n, n))
    for smoother, share, bandwidth in zip(smoothers, own, _BANDWIDTHS, strict=True):
        np.exp(np.multiply(square, -0.5 / bandwidth**2, out=kernel), out=kernel)
        kernel *= mass
        np.multiply(kernel, apart, out=sloped)
        np.multiply(sloped, apart, out=smoother)
        zeroth, first, second = (each.sum(axis=1)[:, None] for each in (kernel, sloped, smoother))
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
    return smoothers, own
