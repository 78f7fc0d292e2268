"""The estimates of one site, from its rows counted by forecast and outcome."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from verax.analyses.calibration.claims import average_variance
from verax.analyses.calibration.slope import Overlap, Regression, chances_at, fit_intercept
from verax.analyses.discrimination.counts import Ranked
from verax.analyses.subgroups.ratios import EventCounts
from verax.common.caching import cached_property
from verax.inference.intervals import Interval, t_quantile
from verax.inputs.arrays import Floats
from verax.wings.sites.result import SiteValue
from verax.wings.sites.spread import AS_IT_IS, Scale

# A slope and an AUC need this number of events, and of rows without.
FEWEST_EVENTS = 10
# The columns whose influence is summed over groups.
EVENTS, LEVEL, SLOPE, AUC = range(4)


@dataclass(frozen=True)
class SiteFit:
    """An estimate with the influence of a row of each cell on it."""

    value: float
    influence: Floats
    variance: float


class SiteCells:
    """The rows of one site by forecast and outcome.

    Parameters
    ----------
    ranked : Ranked
        The cells.
    n_rows : int
        The number of rows.
    """

    def __init__(self, ranked: Ranked, n_rows: int) -> None:
        self.ranked: Ranked = ranked
        self.n_rows: int = n_rows
        middle = (ranked.least + ranked.most) / 2
        self.p: Floats = middle[ranked.place]
        self.happened: Any = ranked.y == 1

    @cached_property
    def effective(self) -> float:
        """The effective number of rows."""
        return float(1 / self.ranked.squares.sum())

    @cached_property
    def observed(self) -> float:
        """The share of rows with the event."""
        return float(self.ranked.share[self.happened].sum())

    @cached_property
    def expected(self) -> float:
        """The mean probability of the event."""
        return float(self.ranked.share @ self.p)

    @cached_property
    def rarer(self) -> float:
        """The effective number of rows with the rarer outcome."""
        return self.effective * min(self.observed, 1 - self.observed)

    def counts(self, units: Any, *, flipped: bool) -> EventCounts:
        """The events as numbers of effective rows; `units` are the sums over groups, if there are any."""
        n, squares, off = self.effective, self.ranked.squares * self.effective**2, self.happened - self.p
        right = float(squares @ (self.p * (1 - self.p)))
        with_event, without = (
            float((squares * off**2)[rows].sum()) for rows in (self.happened, ~self.happened)
        )
        observed, expected = n * self.observed, n * self.expected
        variance = float(average_variance(n, observed, expected, with_event, without))
        freedom = math.inf
        if units is not None:
            variance, freedom = n**2 * float(units.covariance[0, EVENTS, EVENTS]), units.units.freedom
        if flipped:
            observed, expected = n - observed, n - expected
        return EventCounts(observed, expected, right, max(right, variance), freedom, 1.0)

    def design(self, units: Any) -> float:
        """How much more the events vary than those of independent rows."""
        if units is None:
            return 1.0
        off = self.happened - self.p
        of_rows = float(self.ranked.squares @ (off - self.ranked.share @ off) ** 2)
        return max(1.0, float(units.covariance[0, EVENTS, EVENTS]) / of_rows) if of_rows > 0 else 1.0

    # ---- calibration line and AUC ------------------------------------------------------------------

    @cached_property
    def _finite(self) -> Any:
        return (self.p > 0) & (self.p < 1)

    @cached_property
    def _line(self) -> tuple[Floats, Any, Floats, Floats]:
        """Log odds, outcomes, shares and squares of rows whose forecasts are between 0 and 1."""
        at = self._finite
        p, ranked = self.p[at], self.ranked
        return np.log(p / (1 - p)), self.happened[at], ranked.share[at], ranked.squares[at]

    @cached_property
    def problem(self) -> str:
        """Why there is no slope and no AUC; empty where there are."""
        fewest = round(self.rarer, 6)
        if fewest < FEWEST_EVENTS:
            return f"fewer than {FEWEST_EVENTS} rows have the rarer outcome"
        return ""

    def _spread(self, columns: Floats) -> Floats:
        """Influences of cells of forecasts between 0 and 1, as those of all cells."""
        full = np.zeros((len(self.p), *columns.shape[1:]))
        full[self._finite] = columns
        return full

    @cached_property
    def level(self) -> SiteFit | str:
        """The intercept of a calibration line of slope 1."""
        x, h, w, squares = self._line
        hits = float(w[h].sum())
        if not 0 < hits < float(w.sum()):
            return "the event always or never happened"
        level = fit_intercept(x, h, w)
        chance, rest = chances_at(level + x)
        influence = (h - chance) / float(w @ (chance * rest))
        return SiteFit(
            level, self._spread(influence), float(squares @ (chance * rest)) / float(w @ (chance * rest)) ** 2
        )

    @cached_property
    def slope(self) -> SiteFit | str:
        """The slope of the calibration line, with the variance of its fit."""
        x, h, w, squares = self._line
        overlap = Overlap.of(x, h)
        problem = self.problem or overlap.problem or overlap.slope_problem
        if problem:
            return problem
        fit = Regression.of(x, h, w)
        columns = fit.columns(x)
        chance, rest = chances_at(fit.coefficients @ columns)
        inverse = np.linalg.inv((columns * (w * chance * rest)) @ columns.T)
        back = (fit.back @ inverse)[1]
        variance = float(back @ ((columns * (squares * chance * rest)) @ columns.T) @ back)
        value = float((fit.back @ fit.coefficients)[1])
        return SiteFit(value, self._spread((back @ columns) * (h - chance)), variance)

    @cached_property
    def auc(self) -> SiteFit | str:
        """The area below the ROC curve, with DeLong's variance."""
        if self.problem:
            return self.problem
        estimated, _ = self.ranked.concordance([0, 1])
        if not 0 < estimated.value < 1:
            return "the forecasts separate the outcomes"
        single = self.ranked.squares / self.ranked.share
        rest = 1 - single / self.ranked.sizes[self.ranked.y]
        variance = float((self.ranked.squares / rest) @ estimated.influence**2)
        return SiteFit(estimated.value, estimated.influence, variance)

    def influence(self) -> Floats:
        """(C, 4) the influence of a row of each cell; zeros where there is no estimate."""
        none = np.zeros(len(self.p))
        fits = [
            fit.influence if isinstance(fit, SiteFit) else none for fit in (self.level, self.slope, self.auc)
        ]
        return np.stack([self.happened - self.p, *fits], axis=1)


def site_value(
    fit: SiteFit | str, column: int, units: Any, rarer: float, confidence: float, scale: Scale = AS_IT_IS
) -> tuple[SiteValue, float]:
    """An estimate with its interval, and its variance on the scale of pooling."""
    if isinstance(fit, str):
        return SiteValue(math.nan, Interval.undefined(fit, method="t", confidence=confidence)), math.nan
    variance, freedom, method = fit.variance, max(rarer - 1, 1.0), "t"
    if units is not None:
        variance = float(units.covariance[0, column, column])
        freedom = max(1.0, min(units.units.freedom, freedom))
        method = f"t, over {units.units.n:,} groups"
    variance *= scale.rate(fit.value) ** 2
    if not variance > 0:
        none = Interval.undefined("it does not vary", method=method, confidence=confidence)
        return SiteValue(fit.value, none), math.nan
    middle, reach = scale.to(fit.value), t_quantile(freedom, confidence) * math.sqrt(variance)
    ends = scale.back(middle - reach), scale.back(middle + reach)
    return SiteValue(fit.value, Interval(*ends, method=method, confidence=confidence)), variance
