"""Thresholds that promise a sensitivity or a specificity.

With n events, the share that a threshold at the k-th smallest of their forecasts acts on has the distribution
Beta(n - k + 1, k), whatever that of the forecasts. Its lower quantile is the limit of Clopper and Pearson for
the observed share. So the highest threshold with a lower limit of at least the promised value keeps the
promise with the confidence of the limit: a threshold that is too high can be chosen only if the limit is
wrong at the first one that is. With weights the limit uses the effective number of events at each threshold.

Over groups it uses one number of independent events for all thresholds (Korn and Graubard 1998, Survey
Methodology 24, 193-201), so there is still one test, that of the true quantile. Its design effect is that of
the events below the promised level, where there are misses to learn from, and of twice that number. It
is drawn towards the effect of a correlation of 0.2, as much as one miss weighs. The other outcomes did
not choose the threshold, so their share is that of a given one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from verax.analyses.binary import BinaryEvent
from verax.analyses.rates import Rates, RateShare
from verax.analyses.units import SamplingUnits, sums_at
from verax.common.texts import percent
from verax.inference.effects import cr2, mean_freedom
from verax.inputs.arrays import Bools, Floats, Ints
from verax.wings.decide.rates.chosen import Aim, Candidates, Chosen, states_of

# Differences that are smaller are rounding.
_NOTHING = 1e-12
# Thresholds whose limits are computed at a time.
_AT_ONCE = 64
# A promise over groups needs this many with events, and none of them with more than this share of the events.
_FEWEST, _MOST = 4, 0.9
# The correlation that is assumed of misses in a group, and how many misses that weighs as much as.
_ALIKE, _PRIOR = 0.2, 1.0
# From fewer misses than this at the promised level, the design effect is hardly known.
_FEW_MISSES = 5


@dataclass(frozen=True)
class _Promised(RateShare):
    """A share that the threshold was chosen for: mean and quantiles of its Beta distribution.

    Where several rows have the same forecast there, the Beta distribution is that of a smaller share: the
    share of the rows, and the upper limit of Clopper and Pearson, then take the place of mean and quantile.

    Attributes
    ----------
    seen : array of shape (T,)
        The share of the rows.
    tied : bool
        Whether several of the rows that are counted have the last forecast that counts.
    """

    seen: Floats
    tied: bool

    @classmethod
    def of(cls, share: RateShare, *, tied: bool) -> _Promised:
        """From the share of the rows."""
        value = share.value if tied else share.value * share.n / (share.n + 1)
        return cls(value, share.n, share.freedom, share.slopes, share.value, tied)

    def limits(self, tail: Any) -> Floats:
        """Limits with this chance beyond each, (2, T)."""
        from scipy.special import betaincinv

        low, high = self.at(tail, tail), self.at(tail, 1 - np.asarray(tail))
        if self.tied:
            n, missed = self.rows(tail), np.maximum(1 - self.seen, 0.0)
            above = betaincinv(n * self.seen + 1, np.where(missed > 0, n * missed, 1.0), 1 - np.asarray(tail))
            high = np.where(missed > 0, above, 1.0)
        return np.stack([low, high])

    def at(self, tail: Any, probability: Any) -> Floats:
        """A quantile, (T,), as far in the tails as this share of samples."""
        from scipy.special import betaincinv

        n = self.rows(tail)
        return np.asarray(betaincinv(n * self.seen, n * (1 - self.seen) + 1, probability))


@dataclass(frozen=True)
class GroupedEvents:
    """How many independent events there are in groups, at any threshold; or why nothing can be promised.

    Attributes
    ----------
    n : float
        The number of events over the design effect; NaN where there is none.
    freedom : float
        Degrees of freedom of the design effect.
    why_not : str
        Why nothing can be promised; empty where it can.
    few : bool
        Whether the design effect was estimated from few misses.
    """

    n: float
    freedom: float
    why_not: str = ""
    few: bool = False

    @classmethod
    def of(cls, scores: Floats, share: Floats, codes: Ints, least: float) -> GroupedEvents:
        """From the scores of the events, their shares of the weight, and their groups."""
        # In units in which they sum to the effective number of events.
        weight = share * (share.sum() / float(share @ share)) if len(share) else share
        of_groups = sums_at(codes, weight, int(codes.max(initial=-1)) + 1)
        n, groups = float(weight.sum()), int(np.count_nonzero(of_groups))
        if groups < _FEWEST:
            return cls(math.nan, math.nan, f"that takes at least {_FEWEST} groups, and there are {groups}")
        largest = float(of_groups.max()) / n
        if largest > _MOST:
            return cls(math.nan, math.nan, f"{percent(largest, 0)} of them are in one group")
        level = min(1 - least, 1.0)
        effects = [_effect(scores, weight, codes, of_groups, part) for part in (level, 2 * level)]
        # Where all events have the same score there is nothing to estimate.
        known = [effect for effect in effects if not math.isnan(effect)]
        size = float(of_groups @ of_groups) / n
        usual = 1 + (size - 1) * _ALIKE
        effect = float(np.mean(known)) if known else usual
        misses = max(1.0, round(level * n)) / max(effect, 1.0)
        effect = max(1.0, (misses * effect + _PRIOR * usual) / (misses + _PRIOR))
        return cls(n / effect, float(mean_freedom(of_groups[:, None])[0]), "", level * n < _FEW_MISSES)


def _effect(scores: Floats, weight: Floats, codes: Ints, of_groups: Floats, level: float) -> float:
    """The design effect over groups of the share of events with the lowest scores, about this share of them.

    Events with equal scores are taken together. NaN where these are all events.
    """
    values, place = np.unique(scores, return_inverse=True)
    below = np.cumsum(np.bincount(place, weight))
    if len(values) < 2:
        return math.nan
    last = int(np.argmin(np.abs(below[:-1] - level * below[-1])))
    missed: Bools = place <= last
    sums = sums_at(codes[missed], weight[missed], len(of_groups))
    share, n = float(below[last] / below[-1]), float(below[-1])
    return float(cr2(sums[:, None], of_groups[:, None])[0]) * n / (share * (1 - share))


@dataclass(frozen=True)
class Promise(Chosen):
    """A threshold with a promised sensitivity or specificity.

    Attributes
    ----------
    rate : str
        Which of the two.
    exact : bool
        Whether rows are independent and count alike.
    groups : GroupedEvents or None
        The independent events in groups; None where rows are independent.
    tied : bool
        Whether several of the rows that chose it have the last forecast that counts.
    """

    rate: str
    exact: bool
    groups: GroupedEvents | None
    tied: bool

    def __call__(self, name: str, share: RateShare) -> RateShare:
        """A share, from that of the rows."""
        if not self.exists:
            return replace(share, value=np.full_like(share.value, np.nan))
        if name != self.rate:
            return share
        return _Promised.of(_over(self.groups, share), tied=self.tied)

    def method(self, name: str, usual: str) -> str:
        """The method of the interval of a rate, in words."""
        if name != self.rate:
            return usual
        return "order statistics" if self.exact else "order statistics of effective rows"


def _over(groups: GroupedEvents | None, share: RateShare) -> RateShare:
    """A share with the number of independent events that all thresholds have over groups."""
    if groups is None:
        return share
    return replace(
        share, n=np.full_like(share.value, groups.n), freedom=np.full_like(share.value, groups.freedom)
    )


def promised(aim: Aim, event: BinaryEvent, units: SamplingUnits, confidence: float) -> Promise:
    """The threshold that promises a sensitivity with most specificity, or the other way round."""
    assert aim.promise is not None
    least, given = aim.promise, event.ranked
    counted = event.happened if aim.rate == "sensitivity" else ~event.happened
    scores = given[counted] if aim.rate == "sensitivity" else -given[counted]
    if aim.rate == "sensitivity":
        tried = np.unique(scores)
    else:
        # Above each forecast without the event, half way to the next one, the safest first.
        values = np.unique(given)
        above = Candidates(given, event.happened).thresholds[1:]
        tried = above[np.searchsorted(values, np.unique(-scores))][::-1]
    tail = 1 - confidence
    exact = not units.grouped and bool((units.share == units.share[0]).all())
    groups = None
    if units.groups is not None:
        groups = GroupedEvents.of(scores, units.share[counted], units.groups.codes[counted], least)
        if groups.why_not:
            note = f"no threshold can promise {_promise(aim.rate, least, confidence)}: {groups.why_not}"
            return Promise(math.nan, note, None, aim.rate, exact, groups, tied=False)

    def limits(at: Ints) -> tuple[Floats, Floats]:
        grid, back = np.unique(tried[at], return_inverse=True)
        acts = np.searchsorted(grid, given, side="right")
        share = Rates(states_of([acts], event.happened, units, len(grid))).share(aim.rate)
        promise = _Promised.of(_over(groups, share), tied=False)
        return promise.at(tail, tail)[back], promise.rows(tail)[back]

    # The limit holds at `safe`, and at no tried threshold beyond it.
    safe, beyond, n = -1, len(tried), 0.0
    while beyond - safe > 1:
        at = np.unique(np.linspace(safe + 1, beyond - 1, min(_AT_ONCE, beyond - safe - 1)).astype(np.int64))
        limit, rows = limits(at)
        n = n or float(rows[0])
        kept = int((limit >= least - _NOTHING).nonzero()[0].max(initial=-1))
        beyond = int(at[kept + 1]) if kept + 1 < len(at) else beyond
        safe = int(at[kept]) if kept >= 0 else safe
    threshold = float(tried[safe]) if safe >= 0 else math.nan
    acted = scores[scores >= (threshold if aim.rate == "sensitivity" else -threshold)]
    tied = bool(len(acted)) and int((acted == acted.min()).sum()) > 1
    note = _note(aim.rate, least, confidence, n, kept=safe >= 0, exact=exact, groups=groups)
    return Promise(threshold, note, None, aim.rate, exact, groups, tied)


def _promise(rate: str, least: float, confidence: float) -> str:
    return f"a {rate} of at least {least:g} with {100 * confidence:g}% confidence"


def _note(
    rate: str,
    least: float,
    confidence: float,
    n: float,
    *,
    kept: bool,
    exact: bool,
    groups: GroupedEvents | None,
) -> str:
    """The promise, or why there can be none, in words."""
    rows = "events" if rate == "sensitivity" else "non-events"
    seen = f"{n:,.0f} {rows}" if exact else f"in effect {n:,.1f} independent {rows}"
    what = _promise(rate, least, confidence)
    if kept:
        how = "exact" if exact else "approximate"
        if groups is not None:
            how += f", few {rows}" if groups.few else ""
            seen += "; it holds for groups of the kinds seen"
        return f"the threshold promises {what} ({how}, from {seen})"
    if least >= 1:
        return f"no threshold can promise {what}, however many rows there are"
    enough = max(1, math.ceil(math.log(1 - confidence) / math.log(least) - _NOTHING))
    return f"no threshold can promise {what}: that takes {enough:,} {rows}, and there are {seen}"
