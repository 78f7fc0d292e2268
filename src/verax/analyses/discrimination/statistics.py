"""AUC, average precision and c-index with their influence functions.

Each is a smooth function of the empirical distribution, so its variance comes from its influence function:
DeLong's components for AUC. Sorting is all that grows faster than the rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from verax.analyses.units import dot
from verax.common.sorting import stable_order
from verax.inputs.arrays import Bools, Floats, Ints


@dataclass(frozen=True)
class Estimated:
    """A value with the deviation that each row brings; `n` rows tell about it. NaN where it is undefined."""

    value: float
    influence: Floats
    n: float

    @classmethod
    def undefined(cls, n_rows: int) -> Estimated:
        """An undefined value, with its number of rows."""
        return cls(math.nan, np.zeros(n_rows), 0.0)


def average_precision_of(given: Floats, happened: Bools, share: Floats) -> tuple[float, Floats]:
    """The average precision of one event, and the influence of each row on it."""
    order = stable_order(-given)
    s, h, w = given[order], happened[order], share[order]
    last = np.append(s[1:] != s[:-1], True)
    # Where the rows that tie with each one end: they are all above its threshold.
    end = np.flatnonzero(last)[np.cumsum(last) - last]
    hits, all_above = np.cumsum(w * h)[end], np.cumsum(w)[end]
    rate = float(w[h].sum())
    value = dot(w * h, hits / all_above) / rate
    # A row at s moves the precision at every lower or equal threshold where the event happened.
    start = np.flatnonzero(np.append(True, s[1:] != s[:-1]))[np.cumsum(last) - last]
    gain = np.cumsum((w * h / all_above)[::-1])[::-1][start]
    loss = np.cumsum((w * h * hits / all_above**2)[::-1])[::-1][start]
    influence = np.empty(len(s))
    influence[order] = (h * hits / all_above + h * gain - loss - h * value) / rate
    return value, influence


def placed(score: Floats, y: Ints, share: Floats) -> Estimated:
    """The c-index of scores for outcomes y, of rows with y >= 0, with the influence function of it."""
    concordant, pairs = _placements(score, y, share)
    total = dot(share, pairs)
    value = dot(share, concordant) / total
    return Estimated(value, 2 * (concordant - value * pairs) / total, math.nan)


def delong_factor(share: Floats, own: Floats) -> Floats:
    """What corrects the influence of independent rows, from their shares of all and of their class."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(own < 1 - 1e-12, np.sqrt((1 - share) / (1 - own)), np.nan)


def _placements(score: Floats, y: Ints, w: Floats) -> tuple[Floats, Floats]:
    """For each row the weight of rows with another outcome, and of those among them that rank right.

    Two outcomes differ first in one binary digit. For each digit, rows that agree in all higher digits are
    compared: one sort of integers each, so that the work is N log N times the digits of K.
    """
    n = len(y)
    _, rank = np.unique(score, return_inverse=True)
    by_rank = np.argsort(rank, kind="stable")
    concordant, pairs = np.zeros(n), np.zeros(n)
    for digit in range(int(y.max()).bit_length()):
        prefix = y >> (digit + 1)
        order = by_rank[np.argsort(prefix[by_rank], kind="stable")]
        order = order[y[order] >= 0]
        group, run = _starts(prefix[order]), _starts(prefix[order] * n + rank[order])
        higher = ((y[order] >> digit) & 1).astype(bool)
        for side in (False, True):
            # Rows of one side are compared with the weights of the other.
            other = np.concatenate([[0.0], np.cumsum(np.where(higher == side, 0.0, w[order]))])
            here = higher == side
            first, last = (ends[here] for ends in group)
            start, stop = (ends[here] for ends in run)
            tied = other[stop] - other[start]
            right = other[start] - other[first] if side else other[last] - other[stop]
            concordant[order[here]] += right + tied / 2
            pairs[order[here]] += other[last] - other[first]
    return concordant, pairs


def _starts(keys: Ints) -> tuple[Ints, Ints]:
    """For each place in sorted keys, where the run of equal keys begins and ends."""
    new = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
    sizes = np.diff(new, append=len(keys))
    return np.repeat(new, sizes), np.repeat(new + sizes, sizes)
