"""What is said of top lists besides scores: plain averages over the lists, no rules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from verax.arrays import Array
from verax.errors import InputError, VeraxError
from verax.listed import Listed
from verax.rowstats import RowStats, pair
from verax.tally import Tally


@dataclass(frozen=True)
class Measure:
    """The average of one statistic of the lists."""

    statistic: Literal["listed", "length", "unaccounted", "invalid", "hit"]

    @property
    def needs(self) -> frozenset[str]:
        return frozenset({self.statistic})

    def formula(self, stats: RowStats) -> Array:
        return 1 * getattr(stats, self.statistic)


@dataclass(frozen=True)
class TopKError:
    """Whether the outcome is not among the k most confident classes; ties at the end share the places."""

    k: int

    needs = frozenset({"listed", "above", "tied"})

    def formula(self, stats: RowStats) -> Array:
        xp = stats.xp
        places = xp.minimum(xp.maximum(self.k - stats.above, 0.0), stats.tied)
        # An unlisted outcome has no equals; the one place it is given here is not its own.
        return 1 - stats.listed * places / xp.maximum(stats.tied, 1.0)


def top_k_error(y: object, lists: object, k: int, *, weights: object | None = None) -> float:
    """The share of outcomes that are not among the `k` most confident classes of their list.

    Lower is better; from 0 to 1. It is consistent for lists of k classes, but sees only which classes
    are listed, never their probabilities. Where equally confident classes compete for the last
    places, each has its share of them. Lists shorter than `k` are taken as they are.

    Examples
    --------
    >>> import verax as vx
    >>> lists = vx.TopLists.from_dicts([{0: 0.5, 1: 0.3}, {1: 0.4, 2: 0.4}], n_classes=4)
    >>> vx.top_k_error([1, 2], lists, 1), vx.top_k_error([1, 2], lists, 2)
    (0.75, 0.0)
    """
    if k < 0:
        raise InputError(f"`k` must not be negative; it is {k}.", argument="k")
    rows = pair(y, lists, weights=weights)
    if not isinstance(rows, Listed):
        raise VeraxError("top_k_error takes TopLists; TopLists.from_probabilities(p, k) makes them.")
    tally = Tally([TopKError(k)], rows.n_classes, counts=False).update(rows)
    return float(tally.moments.mean[0])
