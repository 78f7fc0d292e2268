"""Estimates that differ between sites: their mean, how far they lie apart, and where the next one will lie.

Each estimate y has a known variance v beside that between sites, tau squared. The next site is a mixture of
normal distributions over the confidence distribution of tau squared, which comes from Cochran's Q: at the
true tau squared it has a chi-square distribution. So the interval is not short where the estimate of tau
squared happens to be zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from verax.inference.intervals import Interval, t_quantile
from verax.inputs.arrays import Floats

# The normal distributions of a mixture; fewer where a mixture is made for each site.
NODES, _FEW_NODES = 400, 200
# Nodes of a normal distribution over which chances are averaged.
_HERMITE = 15
# A rate that a site may have at most, so that its counts have a variance.
_MOST_RATE = 0.95
# Newton's steps double where they are far from the root, and then square their error.
_MOST_STEPS, _EXACT, _HALVINGS = 200, 1e-14, 80
# How often variances are renewed from what sites tell of each other.
_ROUNDS = 3


@dataclass(frozen=True)
class Scale:
    """How a measure is pooled.

    Attributes
    ----------
    to, back : callable
        To the scale of pooling, and back.
    rate : callable
        How fast the scale of pooling changes at a value of the measure.
    """

    to: Callable[[float], float]
    back: Callable[[float], float]
    rate: Callable[[float], float]


def _log_odds(p: float) -> float:
    return math.log(p / (1 - p)) if 0 < p < 1 else math.copysign(math.inf, p - 0.5)


def _log(x: float) -> float:
    return math.log(x) if x > 0 else -math.inf


AS_IT_IS = Scale(float, float, lambda _: 1.0)
SCALES = {
    "oe": Scale(_log, math.exp, lambda x: 1 / x),
    "slope": AS_IT_IS,
    "auc": Scale(_log_odds, lambda x: 1 / (1 + math.exp(-x)), lambda p: 1 / (p * (1 - p))),
    "loss": AS_IT_IS,
}


def _weighted(y: Floats, v: Floats, squared: Floats) -> tuple[Floats, Floats, Floats]:
    """Weights, mean and Cochran's Q at values of tau squared, (B,)."""
    w = 1 / (v + squared[:, None])
    mean = (w * y).sum(axis=1) / w.sum(axis=1)
    return w, mean, (w * (y - mean[:, None]) ** 2).sum(axis=1)


def squared_spread_at(y: Floats, v: Floats, wanted: Any) -> Floats:
    """The tau squared at which Cochran's Q is `wanted`, (B,); zero where it is below that already.

    Q falls and is convex, so Newton's method from zero never passes the root.
    """
    goals = np.atleast_1d(np.asarray(wanted, float))
    squared = np.zeros(len(goals))
    for _ in range(_MOST_STEPS):
        w, mean, q = _weighted(y, v, squared)
        falls = (w**2 * (y - mean[:, None]) ** 2).sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            step = np.where(q > goals, (q - goals) / falls, 0.0)
        squared += step
        if (step <= _EXACT * squared).all():
            break
    return squared


def likeliest_squared_spread(y: Floats, v: Floats) -> float:
    """Tau squared by restricted maximum likelihood."""
    from scipy.optimize import minimize_scalar

    def loss(squared: float) -> float:
        w, _, q = (part[0] for part in _weighted(y, v, np.array([squared])))
        return 0.5 * float(np.log(v + squared).sum() + np.log(w.sum()) + q)

    grid = np.concatenate([[0.0], np.geomspace(1e-5, 25 * max(float(y.var()), 1e-4), 80)])
    losses = [loss(squared) for squared in grid.tolist()]
    best = int(np.argmin(losses))
    ends = float(grid[max(best - 1, 0)]), float(grid[min(best + 1, len(grid) - 1)])
    found = minimize_scalar(loss, bounds=ends, method="bounded", options={"xatol": 1e-12})
    return 0.0 if losses[0] <= found.fun else float(found.x)


@dataclass(frozen=True)
class NextSite:
    """Equal parts of normal distributions.

    Attributes
    ----------
    means, sds : array of shape (B,)
        Their means and standard deviations.
    """

    means: Floats
    sds: Floats

    @classmethod
    def of_next(cls, y: Floats, v: Floats, nodes: int = NODES) -> NextSite:
        """What the next site will have."""
        from scipy.special import chdtri

        shares = (np.arange(nodes) + 0.5) / nodes
        squared = squared_spread_at(y, v, chdtri(len(y) - 1, 1 - shares))
        w, mean, _ = _weighted(y, v, squared)
        return cls(mean, np.sqrt(squared + 1 / w.sum(axis=1)))

    def share_below(self, value: float) -> float:
        """The probability of a smaller value."""
        from scipy.special import ndtr

        return float(ndtr((value - self.means) / self.sds).mean())

    def quantile(self, share: float) -> float:
        """The value below which this share lies."""
        low, high = float((self.means - 9 * self.sds).min()), float((self.means + 9 * self.sds).max())
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if self.share_below(middle) < share else (low, middle)
        return (low + high) / 2

    def interval(self, confidence: float) -> tuple[float, float]:
        """The ends between which `confidence` of it lies."""
        return self.quantile((1 - confidence) / 2), self.quantile((1 + confidence) / 2)

    def noisier(self, variance: float) -> NextSite:
        """What will be observed, with an error of this variance."""
        return NextSite(self.means, np.sqrt(self.sds**2 + variance))

    def nodes(self) -> tuple[Floats, Floats]:
        """(B, H) values and the (H,) weights with which they stand for its parts."""
        at, weights = np.polynomial.hermite_e.hermegauss(_HERMITE)
        return self.means[:, None] + self.sds[:, None] * at, weights / weights.sum()


@dataclass(frozen=True)
class SiteSpread:
    """The mean of sites and how far these lie apart, on the scale of their estimates.

    Attributes
    ----------
    mean : float
        The mean, with weights from restricted maximum likelihood.
    interval : Interval
        Its interval by Hartung and Knapp.
    tau : float
        The standard deviation between sites.
    of_tau : Interval
        Its interval, by Cochran's Q.
    q : float
        Cochran's Q.
    i_squared : float
        The share of the variance of the estimates that is between sites.
    """

    mean: float
    interval: Interval
    tau: float
    of_tau: Interval
    q: float
    i_squared: float

    @classmethod
    def of(cls, y: Floats, v: Floats, confidence: float) -> SiteSpread:
        """Of two sites or more."""
        from scipy.special import chdtri

        k, squared = len(y), likeliest_squared_spread(y, v)
        (w,), (mean,), (within,) = _weighted(y, v, np.array([squared]))
        error = math.sqrt(max(1.0, float(within) / (k - 1)) / float(w.sum()))
        reach = t_quantile(k - 1, confidence) * error
        tails = (1 - confidence) / 2, (1 + confidence) / 2
        low, high = np.sqrt(squared_spread_at(y, v, [chdtri(k - 1, tail) for tail in tails])).tolist()
        plain = 1 / v
        typical = (k - 1) * plain.sum() / (plain.sum() ** 2 - (plain**2).sum())
        return cls(
            float(mean),
            Interval(mean - reach, mean + reach, method="Hartung-Knapp", confidence=confidence),
            math.sqrt(squared),
            Interval(low, high, method="Q profile", confidence=confidence),
            float(_weighted(y, v, np.zeros(1))[2][0]),
            float(squared / (squared + typical)),
        )


# ---- counts of events --------------------------------------------------------------------------


@dataclass(frozen=True)
class SiteCounts:
    """Events of sites, in rows that are independent.

    Attributes
    ----------
    observed, expected, rows : array of shape (k,)
        Events that happened, the sum of their probabilities, and the number of rows.
    """

    observed: Floats
    expected: Floats
    rows: Floats

    def but(self, i: int) -> SiteCounts:
        """All sites but one."""
        kept = np.arange(len(self.rows)) != i
        return SiteCounts(self.observed[kept], self.expected[kept], self.rows[kept])

    def fewer(self, factor: Floats) -> SiteCounts:
        """The same in fewer rows, by a factor for each site."""
        return SiteCounts(self.observed / factor, self.expected / factor, self.rows / factor)

    def log_ratios(self) -> tuple[Floats, Floats]:
        """The logarithms of observed divided by expected, and their variances.

        Variances by what was observed are small where it is large by chance. So they are those of what each
        site is expected to see, given itself and the others.
        """
        y = np.log((self.observed + 0.5) / (self.expected + 0.5))
        common = (self.observed.sum() + 0.5) / (self.expected.sum() + 0.5)
        v = self._variances(self.expected * common)
        for _ in range(_ROUNDS):
            squared = squared_spread_at(y, v, len(y) - 1.0)
            _, mean, _ = _weighted(y, v, squared)
            v = self._variances(self.expected * np.exp((mean * v + y * squared) / (v + squared)))
        return y, v

    def _variances(self, events: Floats) -> Floats:
        return np.asarray((1 - np.minimum(_MOST_RATE, events / self.rows)) / (events + 0.5))

    def surprise(self, i: int) -> float:
        """The two-sided p-value of the events of a site, given all others: mid-P of its counts over the
        mixture of the next site.
        """
        theta, weights = NextSite.of_next(*self.but(i).log_ratios(), nodes=_FEW_NODES).nodes()
        observed, expected, rows = (float(part[i]) for part in (self.observed, self.expected, self.rows))
        rate = np.minimum(_MOST_RATE, expected * np.exp(theta) / rows)
        tails = _share_up_to(observed, rows, rate) + _share_up_to(observed - 1, rows, rate)
        below = float((tails / 2 @ weights).mean())
        return min(1.0, 2 * min(below, 1 - below))


def _share_up_to(events: float, rows: float, rate: Floats) -> Floats:
    """The chance of no more than this number of events; numbers need not be whole."""
    from scipy.special import betainc

    if events < 0:
        return np.zeros_like(rate)
    if events >= rows:
        return np.ones_like(rate)
    return np.asarray(betainc(rows - events, events + 1, 1 - rate))
