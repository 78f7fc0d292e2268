"""Whether the most likely class is right as often as its probability says, with a test of the difference."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from verax.engines.differences import PairedTally
from verax.inputs.arrays import Floats, to_host, widen
from verax.inputs.forecasts import Forecasts

# Up to this variance the distribution of the number of hits is computed exactly; beyond, it is normal.
_COUNTED = 100.0
# For probabilities up to this a series of a few terms gives the logarithm: (2 x 0.05)^14 / 14 < 1e-15.
_RARE, _TERMS = 0.05, 14


@dataclass(frozen=True)
class Sureness:
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


def sureness_of(forecasts: Forecasts, groups: Any = None) -> Sureness:
    """Probability and hits of the most likely class; `groups` are labels of rows that belong together.

    >>> import numpy as np
    >>> from verax.inputs.forecasts import Forecasts
    >>> found = sureness_of(Forecasts(np.array([0] * 4 + [1] * 6), np.array([[0.8, 0.2]] * 10)))
    >>> round(found.claimed, 3), found.right, round(found.p_value, 4)
    (0.8, 0.4, 0.0127)
    """
    claims, hits, weights = [], [], []
    for batch in forecasts.batches(max(1, 2**18 // forecasts.n_classes)):
        p, y = to_host(widen(batch.p)), to_host(batch.y)
        # A row may sum to more than one, within its tolerance.
        claims.append(np.minimum(p.max(axis=1).astype(float), 1.0))
        hits.append((p.argmax(axis=1) == y).astype(float))
        weights.append(np.ones(len(y)) if batch.weights is None else to_host(batch.weights).astype(float))
    claim, hit, w = np.concatenate(claims), np.concatenate(hits), np.concatenate(weights)
    test = _of_rows(claim, hit, w) if groups is None else _of_groups(claim, hit, w, groups)
    return Sureness(float(w @ claim / w.sum()), float(w @ hit / w.sum()), test)


def _of_rows(claim: Floats, hit: Floats, w: Floats) -> float:
    """The p-value if rows are independent and the probabilities are right; weights are numbers of rows.

    The variance is that of such rows, not the observed one, which is zero where all rows are right.
    """
    variance = float(w @ (claim * (1 - claim)))
    if variance <= _COUNTED and (w == np.round(w)).all():
        return _exact(claim[w > 0], w[w > 0], round(float(w @ hit)), variance)
    return math.erfc(abs(float(w @ (hit - claim))) / math.sqrt(2 * variance)) if variance > 0 else 1.0


def _exact(claim: Floats, w: Floats, hits: int, variance: float) -> float:
    """Twice the smaller tail of the number of hits, by the Fourier transform of its distribution.

    Only counts near the mean are told apart: all others have a negligible probability.
    """
    reach = math.ceil(10 * math.sqrt(variance)) + 20
    first = math.floor(float(w @ claim)) - reach
    size = 2 * reach + 2
    if not first <= hits < first + size:
        return 0.0
    angle = 2 * math.pi * np.arange(size) / size
    chances = np.fft.fft(np.exp(_log_transform(claim, w, angle) - 1j * angle * first)).real / size
    chances = np.clip(chances, 0.0, 1.0)
    at = hits - first
    return float(min(1.0, 2 * min(chances[: at + 1].sum(), chances[at:].sum())))


def _log_transform(claim: Floats, w: Floats, angle: Floats) -> Any:
    """The logarithm of the characteristic function of the number of hits.

    Rows with probabilities near 0 or 1 may be very many: they enter by the sums of their powers alone.
    """
    rare, sure = claim <= _RARE, claim >= 1 - _RARE
    rest = ~(rare | sure)
    turn = np.exp(1j * angle)
    with np.errstate(divide="ignore"):
        total = w[rest] @ np.log(1 + claim[rest, None] * (turn - 1))
    total = total + _log_series(claim[rare], w[rare], turn - 1)
    return total + _log_series(1 - claim[sure], w[sure], turn.conj() - 1) + 1j * angle * w[sure].sum()


def _log_series(q: Floats, w: Floats, z: Any) -> Any:
    """The sum of w log(1 + q z) for small q."""
    terms = range(1, _TERMS + 1)
    return sum((-1) ** (j + 1) / j * float(w @ q**j) * z**j for j in terms)


def _of_groups(claim: Floats, hit: Floats, w: Floats, groups: Any) -> float | None:
    """Student's test of the mean gap between independent groups.

    The standard error is never below that of independent rows that are right as often as claimed.
    """
    from scipy.special import stdtr

    tally = PairedTally(1).update((claim - hit)[:, None], w, groups)
    error, freedom = tally.standard_errors()
    if freedom <= 0:
        return None
    least = math.sqrt(float(w @ (claim * (1 - claim)))) / tally.weight
    gap, spread = abs(float(tally.means[0])), max(float(error[0]), least)
    if spread == 0:
        return 1.0 if gap == 0 else 0.0
    return float(2 * stdtr(freedom, -gap / spread))
