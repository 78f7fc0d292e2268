"""Whether the most likely class is right as often as its probability says, with a test of the difference."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from verax.analyses.calibration.event_recipe import EventRecipe
from verax.analyses.calibration.eventsums import CLAIM, HIT, VARIANCE, EventSums
from verax.inputs.arrays import Floats
from verax.inputs.forecasts import Forecasts
from verax.inputs.memory import ONLY, InMemory

# Up to this variance the distribution of the number of hits is computed exactly; beyond, it is normal.
_COUNTED = 100.0
# Up to this number of rows, the distribution of the number of hits may be computed from every one of them.
_EACH = 2**20
# For probabilities up to this a series of a few terms gives the logarithm: (2 x 0.05)^14 / 14 < 1e-15.
_RARE, _TERMS = 0.05, 14


@dataclass(frozen=True)
class Overconfidence:
    """The mean probability of the most likely class, and how often it happened.

    Attributes
    ----------
    claimed : float
        Mean probability of the most likely class.
    right : float
        Share of rows in which it happened.
    p_value : float, optional
        Two-sided p-value of their difference; None where all rows belong to one group.
    """

    claimed: float
    right: float
    p_value: float | None

    @property
    def gap(self) -> float:
        """Claimed minus right: positive means overconfident."""
        return self.claimed - self.right

    def to_dict(self) -> dict[str, Any]:
        """The numbers as plain Python values."""
        return {"claimed": self.claimed, "right": self.right, "gap": self.gap, "p_value": self.p_value}


def overconfidence_of(forecasts: Forecasts) -> Overconfidence:
    """Probability and hits of the most likely class of rows in memory.

    >>> import numpy as np
    >>> from verax.inputs.forecasts import Forecasts
    >>> found = overconfidence_of(Forecasts(np.array([0] * 4 + [1] * 6), np.array([[0.8, 0.2]] * 10)))
    >>> round(found.claimed, 3), found.right, round(found.p_value, 4)
    (0.8, 0.4, 0.0127)
    """
    found = InMemory({ONLY: forecasts}).summarise({"events": EventRecipe(ONLY, thresholds=False)})
    return read_overconfidence(found["events"])


def read_overconfidence(found: EventSums) -> Overconfidence:
    """The mean probability of the most likely class, and how often it happened, from sums."""
    i = found.n_events
    claimed, right = found.totals.high[i, [CLAIM, HIT]] / found.weight.high[0]
    return Overconfidence(float(claimed), float(right), p_value_of(found, i))


def p_value_of(found: EventSums, i: int) -> float | None:
    """The p-value of the difference between what an event claims and how often it happened.

    None where all rows belong to one group. The variance is that of rows whose probabilities are right, not
    the observed one, which is zero where all rows are right.
    """
    weight = float(found.weight.high[0])
    claim, hit, variance = found.totals.high[i, [CLAIM, HIT, VARIANCE]].tolist()
    if found.groups is not None:
        share, gaps = found.groups[:, 0] / weight, found.groups[:, 1 + i] / weight
        return p_of_gaps(share, gaps, variance / weight**2)
    # The weight of each row, if all rows have the same: the squares of weights then sum to the least.
    each = weight / found.n_rows
    even = math.isclose(float(found.weight.high[1]), each * weight, rel_tol=1e-12)
    if even and variance / each**2 <= _COUNTED and found.n_rows <= _EACH:
        bins = found.of(i)
        claims = np.repeat(np.clip(bins.forecast, 0, 1), np.rint(bins.weight / each).astype(np.int64))
        return _exact(claims, round(hit / each), variance / each**2)
    gap = abs(claim - hit)
    return math.erfc(gap / math.sqrt(variance) / math.sqrt(2)) if variance > 0 else 1.0


def _exact(claim: Floats, hits: int, variance: float) -> float:
    """Twice the smaller tail of the number of hits, by the Fourier transform of its distribution.

    Only counts near the mean are told apart: all others have a negligible probability.
    """
    reach = math.ceil(10 * math.sqrt(variance)) + 20
    first = math.floor(float(claim.sum())) - reach
    size = 2 * reach + 2
    if not first <= hits < first + size:
        return 0.0
    angle = 2 * math.pi * np.arange(size) / size
    chances = np.fft.fft(np.exp(_log_transform(claim, angle) - 1j * angle * first)).real / size
    chances = np.clip(chances, 0.0, 1.0)
    at = hits - first
    return float(min(1.0, 2 * min(chances[: at + 1].sum(), chances[at:].sum())))


def _log_transform(claim: Floats, angle: Floats) -> Any:
    """The logarithm of the characteristic function of the number of hits.

    Rows with probabilities near 0 or 1 may be very many: they enter by the sums of their powers alone.
    """
    rare, sure = claim <= _RARE, claim >= 1 - _RARE
    rest = claim[~(rare | sure), None]
    turn = np.exp(1j * angle)
    with np.errstate(divide="ignore"):
        total = np.log(1 + rest * (turn - 1)).sum(axis=0)
    total = total + _log_series(claim[rare], turn - 1)
    return total + _log_series(1 - claim[sure], turn.conj() - 1) + 1j * angle * np.count_nonzero(sure)


def _log_series(q: Floats, z: Any) -> Any:
    """The sum of log(1 + q z) for small q."""
    terms = range(1, _TERMS + 1)
    return sum((-1) ** (j + 1) / j * float((q**j).sum()) * z**j for j in terms)


def p_of_gaps(share: Floats, gaps: Floats, least: float) -> float | None:
    """Student's test of the mean gap, with the sandwich variance of independent groups.

    `share` is the share of each group, `gaps` its part of the mean gap. The variance is not below `least`,
    that of independent rows that are right as often as claimed: groups may agree by chance, and all may be
    right.
    """
    from scipy.special import stdtr

    share, gaps = share[share > 0], gaps[share > 0]
    n = len(share)
    if n < 2:
        return None
    gap = float(gaps.sum())
    influence = gaps - share * gap
    variance = max(float((influence**2 / (1 - share)).sum()), least)
    if variance == 0:
        return 1.0 if gap == 0 else 0.0
    return float(2 * stdtr(n - 1, -abs(gap) / math.sqrt(variance)))
