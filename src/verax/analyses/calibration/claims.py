"""Whether events happen as often as claimed on average, with tests."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from verax.analyses.calibration.recipes import WEIGHT, EventRecipe, ListSums
from verax.analyses.calibration.sources import ANY, WHOLE, list_event_names
from verax.analyses.calibration.sums import CLAIM, HIT, VARIANCE, EventBins, Events
from verax.common.faces import Record
from verax.engines.clusters import variances_over
from verax.inference.estimates import Estimate, holm
from verax.inputs.arrays import Floats
from verax.inputs.forecasts import Forecasts
from verax.inputs.memory import ONLY, InMemory

# Up to this variance the distribution of the number of hits is computed exactly; beyond, it is normal.
_COUNTED = 100.0
# Up to this number of rows, the distribution of the number of hits may be computed from every one of them.
_EACH = 2**20
# For probabilities up to this a series of a few terms gives the logarithm: (2 x 0.05)^14 / 14 < 1e-15.
_RARE, _TERMS = 0.05, 14


class Claimed(Record):
    """The mean claim of an event, against how often it happened."""

    claimed: float
    happened: float

    _facts = ("gap",)

    @property
    def gap(self) -> float:
        """Claimed minus happened: positive means too high, or overconfident."""
        return self.claimed - self.happened


@dataclass(frozen=True)
class Overconfidence(Record):
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

    _facts = ("gap",)

    @property
    def gap(self) -> float:
        """Claimed minus right: positive means overconfident."""
        return self.claimed - self.right


@dataclass(frozen=True)
class ClassBias(Claimed):
    """The mean probability of an event, and how often it happened.

    Attributes
    ----------
    position : int
        The position of the class, or of the class at the threshold.
    claimed : float
        Mean probability of the event.
    happened : float
        Share of rows in which it happened.
    p_value, p_adjusted : float
        Two-sided p-value of the difference, and after Holm's correction over all events; NaN where all rows
        belong to one group.
    """

    position: int
    claimed: float
    happened: float
    p_value: float
    p_adjusted: float


@dataclass(frozen=True)
class ListClaim(Claimed):
    """The mean claim of an event, and how often it happened.

    Attributes
    ----------
    name : str
        "place 1", "place 2", ..., "any place" or "whole list".
    n_lists : int
        How many lists it is about: those that are long enough.
    share : float
        Their share of the weight of all lists.
    claimed : float
        The mean probability it was given.
    happened : float
        The share in which it happened.
    p_value, p_adjusted : float or None
        Two-sided p-value of the difference, and after Holm's correction over the places and the whole list;
        None where all lists belong to one group. Any place has those of the whole list: it is the same sum.
    """

    name: str
    n_lists: int
    share: float
    claimed: float
    happened: float
    p_value: float | None
    p_adjusted: float | None

    _stored_as = "Claim"


# ---- from sums -----------------------------------------------------------------------------------


def overconfidence_of(forecasts: Forecasts) -> Overconfidence:
    """Probability and hits of the most likely class of rows in memory.

    >>> import numpy as np
    >>> from verax.inputs.forecasts import Forecasts
    >>> y, p = np.array([0] * 4 + [1] * 6), np.array([[0.8, 0.2]] * 10)
    >>> overconfidence = overconfidence_of(Forecasts(y, p))
    >>> round(overconfidence.claimed, 3), overconfidence.right, round(overconfidence.p_value, 4)
    (0.8, 0.4, 0.0127)
    """
    summaries = InMemory({ONLY: forecasts}).summarise({"events": EventRecipe(ONLY, thresholds=False)})
    return read_overconfidence(summaries["events"])


def read_overconfidence(events: Events, *, copies: bool = False) -> Overconfidence:
    """The mean probability of the most likely class, and how often it happened, from sums."""
    i = events.n_events
    claimed, right = events.totals.high[i, [CLAIM, HIT]] / events.weight.high[0]
    return Overconfidence(float(claimed), float(right), p_value_of(events, i, copies=copies))


def p_value_of(events: Events, i: int, *, copies: bool = False) -> float | None:
    """The p-value of the difference between what an event claims and how often it happened.

    None where all rows belong to one group. The variance is at least that of rows whose probabilities are
    right: the observed one is zero where all rows are right. Where probabilities are right on average alone,
    as too extreme ones may be, what happened varies more than they claim, and the p-value allows for it. With
    `copies` weights are numbers of rows.
    """
    weight = float(events.weight.high[0])
    n_rows = weight if copies else float(events.n_rows)
    claim, hit = events.totals.high[i, [CLAIM, HIT]].tolist()
    variance = _variance_if_right(events, i, copies=copies)
    if events.groups is not None:
        return p_of_gaps(events.labels, events.groups[:, [0, 1 + i]] / weight, variance / weight**2)
    if variance <= 0:
        return 1.0
    # The weight of each row, if all rows have the same: the squares of weights then sum to the least.
    of_row = weight / n_rows
    even = copies or math.isclose(float(events.weight.high[1]), of_row * weight, rel_tol=1e-12)
    bins = events.of(i)
    squares = bins.weight if copies else bins.squares
    if even and variance / of_row**2 <= _COUNTED and n_rows <= _EACH:
        claims = np.repeat(np.clip(bins.forecast, 0, 1), np.rint(bins.weight / of_row).astype(np.int64))
        p = _exact(claims, round(hit / of_row), variance / of_row**2)
    else:
        p = math.erfc(abs(claim - hit) / math.sqrt(2 * variance))
    more = _variance_on_average(bins, squares, claim, hit) / variance
    if more <= 1 or not 0 < p / 2 < 0.5:
        return p
    from statistics import NormalDist

    return math.erfc(-NormalDist().inv_cdf(p / 2) / math.sqrt(2 * more))


def _variance_if_right(events: Events, i: int, *, copies: bool) -> float:
    """The variance of the weight of hits of independent rows whose probabilities are right."""
    if not copies:
        return float(events.totals.high[i, VARIANCE])
    counted = events.of(i)
    return float((counted.weight * counted.forecast * (1 - counted.forecast)).clip(0).sum())


def _variance_on_average(bins: EventBins, squares: Floats, claim: float, hit: float) -> float:
    """The same as `average_variance`, from the distinct forecasts."""
    share, q = bins.happened / bins.weight, np.clip(bins.forecast, 0, 1)
    with_event = float((squares * share * (1 - q) ** 2).sum())
    without = float((squares * (1 - share) * q**2).sum())
    return float(average_variance(float(bins.weight.sum()), hit, claim, with_event, without))


def average_variance(weight: Any, hit: Any, claim: Any, with_event: Any, without: Any) -> Any:
    """The variance of claims minus hits if they are equal on average, from how far off rows were: the sums of
    squared weights times squared errors of the rows with the event, and of those without it.

    Rows with the event count as if it had happened as often as claimed, and so do those without it: otherwise
    a rare event that happened too often would vary more because of it. Zero where it always or never did.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        variance = (
            claim / np.float64(hit) * with_event + (weight - claim) / np.float64(weight - hit) * without
        )
    return np.where((hit > 0) & (hit < weight), variance, 0.0)


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


def p_of_gaps(labels: np.ndarray[Any, Any], sums: Floats, least: float) -> float | None:
    """The p-value of the mean gap of groups, by Student's t with the degrees of freedom of unequal groups.

    `sums` has the share of each group and its part of the mean gap. The variance is at least `least`, that of
    independent rows that are right as often as claimed: groups may agree by chance, and all may be right.
    """
    variance, freedom = variances_over(labels, sums)
    if not np.max(freedom) > 0:
        return None
    gap, error = sums[:, 1].sum(keepdims=True), np.sqrt(np.maximum(variance, least))
    return float(Estimate(gap, error, freedom).p_values()[0])


def read_class_biases(
    events: Events, n_classes: int, *, thresholds: bool, copies: bool = False
) -> list[ClassBias]:
    """The bias of every class or threshold; of two classes without an order, of the second.

    >>> from verax.inputs.memory import open_rows
    >>> rows = open_rows([0] * 10 + [1] * 30, np.full((40, 2), 0.5))
    >>> sums = rows.summarise({"events": EventRecipe(ONLY, False)})["events"]
    >>> (bias,) = read_class_biases(sums, 2, thresholds=False)
    >>> bias.claimed, bias.happened, round(bias.p_value, 4)
    (0.5, 0.75, 0.0022)
    """
    weight = events.weight.high[0]
    only = [1] if n_classes == 2 and not thresholds else range(events.n_events)
    means = {i: (events.totals.high[i, [CLAIM, HIT]] / weight).tolist() for i in only}
    values = [(i, *of_event, p_value_of(events, i, copies=copies)) for i, of_event in means.items()]
    known = [math.nan if row[3] is None else row[3] for row in values]
    adjusted = holm(np.array(known)).tolist()
    return [
        ClassBias(i, claimed, hit, p, q)
        for (i, claimed, hit, _), p, q in zip(values, known, adjusted, strict=True)
    ]


def read_claims(sums: ListSums, places: int, *, copies: bool = False) -> tuple[ListClaim, ...]:
    """The mean claim of each event of lists and what happened, with Holm's correction."""
    names = list_event_names(sums.longest, places)
    # Any place is the whole list in other units, so it is no test of its own.
    p_values = {name: p_value_of(sums.events[name], 0, copies=copies) for name in names if name != ANY}
    known = np.array([math.nan if p is None else p for p in p_values.values()])
    adjusted = dict(zip(p_values, holm(known).tolist(), strict=True))
    claims, lists = [], float(sums.totals.high[WEIGHT])
    for name in names:
        event, test = sums.events[name], WHOLE if name == ANY else name
        weight, p = float(event.weight.high[0]), p_values[test]
        claimed, happened = (event.totals.high[0, [CLAIM, HIT]] / weight).tolist()
        about = (sums.n_lists, 1.0) if name == ANY else (event.n_rows, weight / lists)
        claims.append(ListClaim(name, *about, claimed, happened, p, None if p is None else adjusted[test]))
    return tuple(claims)
