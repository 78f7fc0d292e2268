"""Whether the most likely class is right as often as its probability says, with a test of the difference."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from verax.analyses.units import SamplingUnits
from verax.display.tables import FrameKind, record_frame
from verax.engines.scan import scan_rows
from verax.engines.stats import RowStats
from verax.inputs.arrays import Floats, to_host
from verax.inputs.forecasts import Forecasts
from verax.inputs.groups import Groups
from verax.inputs.rows import RowBatch

# Up to this variance the distribution of the number of hits is computed exactly; beyond, it is normal.
_COUNTED = 100.0
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

    def to_frame(self, kind: FrameKind = "pandas") -> Any:
        """One row with the numbers.

        Parameters
        ----------
        kind : {"pandas", "polars", "pyarrow"}, default "pandas"
            The package of the data frame.

        Returns
        -------
        DataFrame or Table
            The table, as that package has it.
        """
        return record_frame([self.to_dict()], kind)


def overconfidence_of(forecasts: Forecasts, groups: Any = None) -> Overconfidence:
    """Probability and hits of the most likely class; `groups` are labels of rows that belong together.

    >>> import numpy as np
    >>> from verax.inputs.forecasts import Forecasts
    >>> found = overconfidence_of(Forecasts(np.array([0] * 4 + [1] * 6), np.array([[0.8, 0.2]] * 10)))
    >>> round(found.claimed, 3), found.right, round(found.p_value, 4)
    (0.8, 0.4, 0.0127)
    """
    rows = _Claims(forecasts.n_rows)
    scan_rows(forecasts, {"top", "decision"}, lambda: rows)
    kept = rows.weight > 0
    # A row may sum to more than one, within its tolerance.
    claim, hit = np.minimum(rows.claim[kept], 1.0), rows.hit[kept]
    share = rows.weight[kept] / rows.weight.max()
    share /= share.sum()
    claimed, right = float((share * claim).sum()), float((share * hit).sum())
    if groups is None:
        return Overconfidence(claimed, right, p_of_rows(claim, hit, share))
    units = SamplingUnits(share, Groups.of(np.asarray(groups)[kept], len(share)))
    return Overconfidence(claimed, right, p_of_groups(claim, hit, units))


class _Claims:
    """Probabilities and hits of the most likely class, and weights. Threads fill different rows."""

    def __init__(self, n_rows: int) -> None:
        self.claim, self.hit, self.weight = np.empty(n_rows), np.empty(n_rows), np.ones(n_rows)

    def visit(self, stats: RowStats, batch: RowBatch, chunk: int) -> None:
        """Take in a block of rows."""
        rows = slice(batch.start, batch.start + int(batch.y.shape[0]))
        self.claim[rows] = to_host(stats.top)
        self.hit[rows] = to_host(stats.decision == batch.y)
        if batch.weights is not None:
            self.weight[rows] = to_host(batch.weights)


def p_of_rows(claim: Floats, hit: Floats, share: Floats) -> float:
    """The p-value if rows are independent and the probabilities are right.

    The variance is that of such rows, not the observed one, which is zero where all rows are right.
    """
    variance = claim * (1 - claim)
    if variance.sum() <= _COUNTED and share.min() == share.max():
        return _exact(claim, round(float(hit.sum())), float(variance.sum()))
    error = math.sqrt(float((share**2 * variance).sum()))
    return math.erfc(abs(float((share * (hit - claim)).sum())) / error / math.sqrt(2)) if error > 0 else 1.0


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


def p_of_groups(claim: Floats, hit: Floats, units: SamplingUnits) -> float | None:
    """Student's test of the mean gap, with the sandwich variance of independent groups.

    The variance is not below that of independent rows that are right as often as claimed. Groups may agree
    by chance, and all may be right.
    """
    least = float((units.share**2 * claim * (1 - claim)).sum())
    return p_of_gaps(units.sums(units.share), units.sums(units.share * (claim - hit)), least)


def p_of_gaps(share: Floats, gaps: Floats, least: float) -> float | None:
    """The same from the share of each group and its part of the mean gap; `least` is the smallest
    variance.
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
