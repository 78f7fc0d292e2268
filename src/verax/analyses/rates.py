"""Sensitivity, specificity, predictive values and what follows from them, at every threshold of a grid.

Each is a function of the shares of four kinds of rows: true and false alarms, misses, and rows rightly left
alone. Shares among some of the rows have mid-P limits, with the effective number of rows. F1 is a monotone
function of such a share; sums and ratios of shares, and differences of models, combine the limits of their
terms (MOVER, Zou and Donner 2008, doi:10.1002/sim.3095; ratios: Donner and Zou 2012,
doi:10.1177/0962280210383082). So no interval collapses where a share is 0 or 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from verax.analyses.bands import States
from verax.common.caching import cached_property
from verax.inference.bootstrap import widest
from verax.inference.estimated import over_groups, shares_over_groups
from verax.inference.intervals import FewGroups, Interval
from verax.inference.products import sum_of_products
from verax.inference.shares import CountedShares, effective_rows, falling_root
from verax.inputs.arrays import Bools, Floats
from verax.scores.metrics import METRICS, DecisionMetric

# Shares that are nearer to 0 or 1 are rounding.
_NOTHING = 1e-12


# In the order in which they are shown.
_NAMES = "sensitivity specificity ppv npv accuracy balanced_accuracy f1 youden lr_positive lr_negative"
RATES: dict[str, DecisionMetric] = {name: METRICS[name] for name in _NAMES.split()}
# Rates without a bound have no paired differences.
COMPARED = tuple(name for name, kind in RATES.items() if math.isfinite(kind.bounds(2)[1]))
# The states that a share counts, and the others it is among: does the model act, did the event happen?
_Mask = Callable[[Bools, Bools], Bools]
SHARES: dict[str, tuple[_Mask, _Mask]] = {
    "sensitivity": (lambda a, y: a & y, lambda a, y: ~a & y),
    "specificity": (lambda a, y: ~a & ~y, lambda a, y: a & ~y),
    "ppv": (lambda a, y: a & y, lambda a, y: a & ~y),
    "npv": (lambda a, y: ~a & ~y, lambda a, y: ~a & y),
    "accuracy": (lambda a, y: a == y, lambda a, y: a != y),
    # F1 is a function of the share of true alarms among rows that are acted on, or should be.
    "jaccard": (lambda a, y: a & y, lambda a, y: a != y),
}


def tail_of(states: States, quantile: float) -> float:
    """The chance beyond this number of standard errors: of the normal, with groups of Student's t."""
    from scipy.special import ndtr, stdtr

    units = states.cells.units
    return float(stdtr(units.freedom, -quantile) if units.grouped else ndtr(-quantile))


def rate_interval(
    name: str, value: float, ends: Floats, *, confidence: float, method: str, caution: str
) -> Interval:
    """The interval of a rate with its limits, (2,); undefined where the rate or a limit is."""
    if math.isnan(value) or np.isnan(ends).any():
        why = caution or f"{name} is undefined"
        return Interval.undefined(why, method=method, confidence=confidence)
    return Interval(*ends.tolist(), method=method, confidence=confidence, caution=caution)


@dataclass(frozen=True)
class RateShare(CountedShares):
    """A share among some rows at T thresholds, with the number of independent rows that tell as much.

    Attributes
    ----------
    slopes : array of shape (S, T)
        Its derivatives by the shares of the states.
    """

    slopes: Floats


# A share, given by its name, corrected for the choice of a threshold on the same rows.
Choice = Callable[[str, RateShare], RateShare]


class Rates:
    """All rates of one model at T thresholds, from the states of the rows.

    Parameters
    ----------
    states : States
        The shares of the rows in each state.
    model : int
        Which of the models of the states.
    choice : callable, optional
        Corrects shares for the choice of the threshold on the same rows.
    few : float, "unseen" or None
        What is assumed of groups.
    """

    def __init__(
        self, states: States, model: int = 0, choice: Choice | None = None, few: FewGroups = None
    ) -> None:
        self.states: States = states
        self._choice, self._few = choice, few
        self._acts, self._happened = states.acts[model], states.happened
        self._found: dict[str, RateShare] = {}
        self._alike: dict[str, Floats] = {}

    def value(self, name: str) -> Floats:
        """The values, (T,); NaN where a rate is undefined."""
        if name in SHARES:
            return self.share(name).value
        sens, spec = self.value("sensitivity"), self.value("specificity")
        with np.errstate(invalid="ignore", divide="ignore"):
            if name == "f1":
                return _f1(self.share("jaccard").value)
            if name == "youden":
                return sens + spec - 1
            if name == "balanced_accuracy":
                return (sens + spec) / 2
            over, under = (sens, 1 - spec) if name == "lr_positive" else (1 - sens, spec)
            return np.asarray(_zero(over) / _zero(under))

    def slopes(self, name: str) -> Floats:
        """Derivatives by the shares of the states, (S, T)."""
        if name in SHARES:
            return self.share(name).slopes
        if name == "f1":
            jaccard = self.share("jaccard")
            return jaccard.slopes * 2 / (1 + jaccard.value) ** 2
        both = self.slopes("sensitivity") + self.slopes("specificity")
        return both / 2 if name == "balanced_accuracy" else both

    def limits(self, name: str, tail: float | Floats) -> Floats:
        """Confidence limits, (2, T), with this chance beyond each."""
        if self.states.cells.units.n < 2:
            return np.full((2, self.states.n_thresholds), np.nan)
        if name in SHARES:
            return self.share(name).limits(tail)
        if name == "f1":
            return _f1(self.share("jaccard").limits(tail))
        sens, spec = self.share("sensitivity"), self.share("specificity")
        ends = sens.limits(tail), spec.limits(tail)
        if name in ("youden", "balanced_accuracy"):
            youden = _sum_limits((sens.value, spec.value), ends, self._correlation) - 1
            return youden if name == "youden" else (youden + 1) / 2
        if name == "lr_positive":
            return _ratio_limits(
                (sens.value, 1 - spec.value), (ends[0], 1 - ends[1][::-1]), -self._correlation
            )
        return _ratio_limits((1 - sens.value, spec.value), (1 - ends[0][::-1], ends[1]), -self._correlation)

    def method(self, name: str, t: int, *, gap: bool = False) -> str:
        """How the interval of a rate at a threshold is computed; with `gap` that of its difference."""
        parts = {"f1": ["jaccard"]}.get(name, [name] if name in SHARES else ["sensitivity", "specificity"])
        how = "MOVER of mid-P limits" if gap or len(parts) > 1 else "mid-P"
        units = self.states.cells.units
        if not units.grouped:
            return how
        for part in parts:
            self.share(part)
        alike = float(np.max([self._alike[part][t] for part in parts]))
        return how + over_groups(f"{units.n:,} groups", alike)

    @cached_property
    def _correlation(self) -> Floats:
        """That of sensitivity and specificity, (T,); none over independent rows."""
        if not self.states.cells.units.grouped:
            return np.zeros(self.states.n_thresholds)
        return correlation(self.states, self.slopes("sensitivity"), self.slopes("specificity"))

    def share(self, name: str) -> RateShare:
        """A share of rows with the number of independent rows that tell about it."""
        if name not in self._found:
            masks = (mask(self._acts, self._happened) for mask in SHARES[name])
            rate_share, self._alike[name] = self._counted(*masks)
            self._found[name] = rate_share if self._choice is None else self._choice(name, rate_share)
        return self._found[name]

    def _counted(self, hit: Bools, miss: Bools) -> tuple[RateShare, Floats]:
        """A share, and what correlation of the errors of a group it assumes."""
        states = self.states
        among = hit | miss
        total = (states.share * among).sum(axis=0)
        total = np.where(total > _NOTHING, total, np.nan)
        value = (states.share * hit).sum(axis=0) / total
        value = np.where(value > 1 - _NOTHING, 1.0, np.where(value < _NOTHING, 0.0, value))
        slopes = (hit - value * among) / total
        right, wrong = ((states.squares * mask).sum(axis=0) for mask in (hit, miss))
        kish = total**2 / (right + wrong)
        n = effective_rows(value, kish, (right * (1 - value) ** 2 + wrong * value**2) / total**2)
        freedom, alike = np.full_like(n, math.inf), np.full_like(n, math.nan)
        if states.cells.units.grouped and states.cells.units.n > 1:
            n = n.copy()
            for at, hits, rows in states.by_group(hit, among):
                scale = n[at] / total[at]
                some = np.isfinite(scale)
                unit = np.where(some, scale, 0.0)
                shares, alike[at] = shares_over_groups(value[at], n[at], hits * unit, rows * unit, self._few)
                n[at], freedom[at] = shares.n, shares.freedom
        return RateShare(value, n, freedom, slopes), alike


def covariance(states: States, first: Floats, second: Floats) -> Floats:
    """The covariances of two functions of the shares with these slopes, (T,)."""
    return np.asarray(np.einsum("st,sut,ut->t", first, states.covariance, second))


def correlation(states: States, first: Floats, second: Floats) -> Floats:
    """Their correlations, (T,); 0 where one of them does not vary."""
    if states.cells.units.n < 2:
        return np.zeros(states.n_thresholds)
    scale = covariance(states, first, first) * covariance(states, second, second)
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = covariance(states, first, second) / np.sqrt(scale)
    return np.clip(np.where(scale > 0, ratio, 0.0), -1.0, 1.0)


class Gaps:
    """Paired differences of rates between the two models of states."""

    def __init__(self, states: States, choices: tuple[Choice | None, Choice | None] = (None, None)) -> None:
        self._states = states
        self._first, self._second = (Rates(states, i, choice) for i, choice in enumerate(choices))
        # The correlations of the two models' rates.
        self._together: dict[str, Floats] = {}

    def method(self, name: str, t: int) -> str:
        """How the interval of a difference at a threshold is computed."""
        return self._first.method(name, t, gap=True)

    def value(self, name: str) -> Floats:
        """The differences, (T,)."""
        return self._first.value(name) - self._second.value(name)

    def limits(self, name: str, tail: float | Floats) -> Floats:
        """Their confidence limits, (2, T), with this chance beyond each."""
        if name not in self._together:
            slopes = self._first.slopes(name), self._second.slopes(name)
            self._together[name] = -correlation(self._states, *slopes)
        ends = self._first.limits(name, tail), -self._second.limits(name, tail)[::-1]
        values = self._first.value(name), -self._second.value(name)
        return _sum_limits(values, ends, self._together[name])

    def p_values(self, name: str) -> Floats:
        """Two-sided p-values, (T,): twice the chance beyond a limit that is zero."""
        from scipy.special import ndtr

        gap = self.value(name)
        sign = np.where(gap > 0, 1.0, -1.0)

        def inside(z: Floats) -> Floats:
            """How far the limit nearer to zero is from it, (T,), at these normal quantiles."""
            low, high = self.limits(name, ndtr(-z))
            return np.asarray(np.where(gap > 0, low, high) * sign)

        z = falling_root(inside, np.where(np.isnan(gap), 0.0, np.abs(gap)))
        p = np.where(np.abs(gap) <= _NOTHING, 1.0, np.minimum(2 * ndtr(-z), 1.0))
        return np.where(np.isnan(gap), np.nan, p)


def widest_of(rates: Rates, names: tuple[str, ...], among: Bools, confidence: float, seed: int) -> float:
    """The quantile that makes limits of some rates at some of the thresholds hold all at once (sup-t)."""
    cells, t = rates.states.cells, rates.states.n_thresholds
    at = np.arange(t)
    states = cells.states(slice(None), t)
    slopes = [rates.slopes(name) for name in names]
    columns = np.concatenate([slope[states, at][:, among] for slope in slopes], axis=1)
    mean = np.concatenate([(slope * rates.states.share).sum(axis=0)[among] for slope in slopes])
    if cells.groups is None:
        deviations = columns - mean
        products = sum_of_products((deviations * cells.leverages[:, None]).T, deviations.T)
        freedom = math.inf
    else:
        weight = np.asarray(cells.groups.sum(axis=1)).ravel()
        sums = cells.groups @ columns - weight[:, None] * mean
        products = sum_of_products((sums / (1 - weight)[:, None]).T, sums.T)
        freedom = cells.units.freedom
    # The normal distribution is a t distribution of very many degrees of freedom.
    return widest(products, min(freedom, 1e6), confidence, seed)


def _f1(jaccard: Floats) -> Floats:
    return 2 * jaccard / (1 + jaccard)


def _zero(values: Floats) -> Floats:
    """The values, with zeros in place of rounding."""
    return np.where(np.abs(values) < _NOTHING, 0.0, values)


def _sum_limits(values: tuple[Floats, Floats], ends: tuple[Floats, Floats], together: Floats) -> Floats:
    """Limits of the sum of two estimates from their own limits and their correlation, (2, T)."""
    total, ends_of_a, ends_of_b = values[0] + values[1], *ends
    first, second = np.abs(values[0] - ends_of_a), np.abs(values[1] - ends_of_b)
    reach = np.sqrt(np.maximum(first**2 + second**2 + 2 * together * first * second, 0.0))
    np.subtract(total, reach[0], out=reach[0])
    np.add(total, reach[1], out=reach[1])
    return np.asarray(reach)


def _ratio_limits(values: tuple[Floats, Floats], ends: tuple[Floats, Floats], together: Floats) -> Floats:
    """Limits of the ratio of two shares from their own limits and their correlation, (2, T)."""
    (a, b), (of_a, of_b) = values, ends
    ratios = []
    for i in (0, 1):
        da, db = np.abs(a - of_a[i]), np.abs(b - of_b[1 - i])
        middle, first, second = a * b - together * da * db, a * a - da * da, b * b - db * db
        root = middle + np.sqrt(np.maximum(middle * middle - first * second, 0.0))
        with np.errstate(invalid="ignore", divide="ignore"):
            if i == 0:
                ratios.append(np.where(first > _NOTHING, first / root, 0.0))
            else:
                ratios.append(np.where(second > _NOTHING, root / second, np.inf))
    undefined = np.isnan(a + b) | ((_zero(a) == 0) & (_zero(b) == 0))
    return np.where(undefined, np.nan, np.stack(ratios))
