"""Thresholds that are chosen on the rows: for a rate to reach, the best value of a rate, or the lowest cost.

Sensitivity and specificity are promised (`promised`). Other aims look at all rows, and a threshold that is
best for them is less good for others. Resampled rows choose thresholds of their own; how much better these
are for the resampled rows than for all rows is the optimism, which is subtracted, and how much that varies
tells how sure rates are.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from verax.analyses.bands import States
from verax.analyses.binary import BinaryEvent
from verax.analyses.rates import SHARES, RateShare
from verax.analyses.units import SamplingUnits
from verax.errors import InputError, join, show
from verax.inputs.arrays import Bools, Floats, Ints
from verax.inputs.groups import Groups
from verax.scores.metrics import cost_matrix
from verax.wings.decide.cells import cell_sums

# Rates that may be asked for at least.
_REACHED = ("sensitivity", "specificity", "ppv", "npv")
# Those that fall or rise with the threshold, whatever the rows, so that it can be promised.
PROMISED = ("sensitivity", "specificity")
# Rates that may be maximised.
_BEST = ("youden", "f1", "balanced_accuracy", "accuracy")
COST = "cost"
_FORM = re.compile(r"\s*(\w+)\s*>=\s*([0-9.]+)\s*(%?)\s*")
# Differences that are smaller are rounding.
_NOTHING = 1e-12
# True alarms, false alarms, misses, and rows rightly left alone.
Counts = tuple[Floats, Floats, Floats, Floats]


@dataclass(frozen=True)
class Aim:
    """The aim that a threshold is chosen for.

    Attributes
    ----------
    text : str
        The same as it was asked for.
    rate : str
        The rate to reach or to maximise, or "cost".
    least : float or None
        The value to reach; None where the best one is sought.
    costs : array of shape (2, 2) or None
        The cost of each decision (column) for each outcome (row).
    """

    text: str
    rate: str
    least: float | None
    costs: Floats | None

    @property
    def promise(self) -> float | None:
        """The sensitivity or specificity that the threshold promises; None where it promises nothing."""
        return self.least if self.rate in PROMISED else None

    @classmethod
    def of(cls, text: str, costs: object | None) -> Aim:
        """The aim in a text such as "sensitivity>=0.9", "youden" or "cost"."""
        match = _FORM.fullmatch(text)
        if match is None:
            if text == COST and costs is not None:
                return cls(text, COST, None, cost_matrix(costs, 2))  # type: ignore[arg-type]
            if text in _BEST:
                return cls(text, text, None, None)
            raise _unknown(text, no_costs=text == COST)
        try:
            least = float(match[2]) / (100 if match[3] else 1)
        except ValueError:
            raise _unknown(text) from None
        if match[1] not in _REACHED or not 0 < least <= 1:
            raise _unknown(text)
        return cls(text, match[1], least, None)

    def goodness(self, counts: Counts) -> tuple[Floats, Floats]:
        """The goodness of each threshold, (C,), higher is better, and the rate to reach, (C,)."""
        tp, fp, fn, tn = counts
        with np.errstate(invalid="ignore", divide="ignore"):
            if self.costs is not None:
                (a, b), (c, d) = self.costs
                best = -(a * tn + b * fp + c * fn + d * tp)
            elif self.rate == "f1":
                best = 2 * tp / (2 * tp + fp + fn)
            elif self.rate == "accuracy":
                best = tp + tn
            elif self.least is None:
                best = tp / (tp + fn) + tn / (tn + fp)
            else:
                # Of all thresholds that reach it, the one that gets most of the other outcomes right.
                reached, other = (tp / (tp + fp), tp) if self.rate == "ppv" else (tn / (tn + fn), tn)
                return np.where(reached >= self.least - _NOTHING, other, -np.inf), reached
        return best, best


class Candidates:
    """The thresholds that tell the rows of one event apart.

    Attributes
    ----------
    thresholds : array of shape (C,)
        Between the different forecasts, below and above all of them; increasing.
    """

    def __init__(self, given: Floats, happened: Bools) -> None:
        values, place = np.unique(given, return_inverse=True)
        # From the largest value down, first the others, then the rows in which the event happened.
        self._places, self._n = 2 * (len(values) - 1 - place.ravel()) + happened, len(values)
        between = (values[1:] + values[:-1]) / 2
        # A middle that rounds to the lower of two neighbours would act on it.
        between = np.where(between > values[:-1], between, values[1:])
        self.thresholds: Floats = np.concatenate([[0.0], between, [np.nextafter(values[-1], 2.0)]])

    def counts(self, weights: Floats) -> Counts:
        """The weights of true alarms, false alarms, misses, and rows rightly left alone, each (C,)."""
        sides = np.bincount(self._places, weights, 2 * self._n).reshape(-1, 2)
        # At threshold i, rows with at least the i-th value are acted on; at the last one, none.
        fp, tp = (np.append(np.cumsum(side)[::-1], 0.0) for side in sides.T)
        return tp, fp, np.maximum(tp[0] - tp, 0.0), np.maximum(fp[0] - fp, 0.0)

    def best(self, aim: Aim, counts: Counts) -> int:
        """The place of the best threshold for the aim; of equally good ones the nearest to one half."""
        good, reached = aim.goodness(counts)
        good = np.where(np.isnan(good), -np.inf, good)
        if not np.isfinite(good).any():
            # Nothing reaches it: the nearest.
            good = np.where(np.isnan(reached), -np.inf, reached)
        scale = max(1.0, float(np.abs(good[np.isfinite(good)]).max(initial=0.0)))
        ties = np.flatnonzero(good >= good.max() - _NOTHING * scale)
        return int(ties[np.argmin(np.abs(self.thresholds[ties] - 0.5))])


def _unknown(text: str, *, no_costs: bool = False) -> InputError:
    if no_costs:
        return InputError(
            'must hold the costs of decisions for threshold="cost"',
            argument="costs",
            found="there are none, such as [[0, 1], [5, 0]] where a miss costs five false alarms",
        )
    reach = join([f"{rate}>=0.9" for rate in _REACHED])
    return InputError(
        f"must be probabilities, or one of {join([*_BEST, COST])}, or a rate to reach such as {reach}",
        argument="threshold",
        found=f"it is {show(text)}",
        values=[text],
    )


def check_thresholds(threshold: object) -> list[float]:
    """Thresholds from 0 to 1, increasing."""
    several = isinstance(threshold, (list, tuple, np.ndarray))
    given: Sequence[Any] = list(threshold) if several else [threshold]  # type: ignore[call-overload]
    try:
        thresholds = [float(number) for number in given]
    except (TypeError, ValueError):
        thresholds = []
    increasing = all(a < b for a, b in pairwise(thresholds))
    fits = thresholds and increasing and all(0 <= t <= 1 for t in thresholds)
    if not fits:
        raise InputError(
            "must be a probability or increasing ones, from 0 to 1",
            argument="threshold",
            found=f"it is {show(threshold)}",
            values=[threshold],
        )
    return thresholds


# Resamples that tell the optimism.
DRAWS = 200


def states_of(acts: Sequence[Any], happened: Bools, units: SamplingUnits, thresholds: int = 1) -> States:
    """The states of rows, from the number of thresholds at which each model acts on each row."""
    places = [numbers.astype(np.int64) for numbers in acts]
    sums = cell_sums(places, happened, units, thresholds + 1, float(units.share.sum()))
    return States(sums.as_cells(len(places), thresholds + 1), thresholds)


@dataclass(frozen=True)
class Chosen(ABC):
    """A threshold that was chosen on rows, and what that makes of the shares of these rows.

    Attributes
    ----------
    threshold : float
        The threshold; NaN where there is none.
    note : str
        The promise of the threshold, or why there is none, in words.
    per_fold : array of shape (folds,) or None
        The thresholds chosen without each fold; None for a promise.
    """

    threshold: float
    note: str
    per_fold: Floats | None

    @abstractmethod
    def __call__(self, name: str, share: RateShare) -> RateShare:
        """A share, from that of the rows."""

    @abstractmethod
    def method(self, name: str, usual: str) -> str:
        """The method of the interval of a rate, in words, given the usual one."""

    @property
    def exists(self) -> bool:
        """Whether there is a threshold."""
        return not math.isnan(self.threshold)


# ---- other aims --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Corrected(Chosen):
    """A threshold that is best for the rows, with the optimism of their shares.

    Attributes
    ----------
    optimism, inflation : dict of str to float
        By the name of a share, how much too good it is, and how much larger its variance is than at a
        threshold that was given.
    """

    optimism: Mapping[str, float]
    inflation: Mapping[str, float]

    def __call__(self, name: str, share: RateShare) -> RateShare:
        """A share, from that of the rows."""
        value = np.clip(share.value - self.optimism[name], 0.0, 1.0)
        return _Lowered(value, share.n / self.inflation[name], share.freedom, share.slopes, share.value)

    def method(self, name: str, usual: str) -> str:
        """The method of the interval of a rate, in words."""
        return f"{usual}, corrected by {DRAWS} resamples"


@dataclass(frozen=True)
class _Lowered(RateShare):
    """A share without its optimism.

    Attributes
    ----------
    seen : array of shape (T,)
        The share of the rows.
    """

    seen: Floats

    def limits(self, tail: Any) -> Floats:
        """Mid-P limits, (2, T). A share of 0 or 1 of the rows may be that of all others as well."""
        low, high = super().limits(tail)
        low = np.where(self.seen <= _NOTHING, 0.0, low)
        return np.stack([low, np.where(self.seen >= 1 - _NOTHING, 1.0, high)])


@dataclass(frozen=True)
class Draws:
    """Resamples of rows, or of whole groups, the same for all models and events.

    Attributes
    ----------
    weights : array of shape (N,)
        The weights of the rows.
    groups : Groups or None
        Which rows belong together.
    seed : int
        The random seed.
    """

    weights: Floats
    groups: Groups | None
    seed: int

    def __iter__(self) -> Iterator[Floats]:
        """The weights of the rows in each resample, (N,)."""
        rng = np.random.default_rng(self.seed)
        n = len(self.weights) if self.groups is None else len(self.groups.labels)
        for _ in range(DRAWS):
            times = np.bincount(rng.integers(0, n, n), minlength=n)
            yield self.weights * (times if self.groups is None else times[self.groups.codes])


def resampled(aim: Aim, events: Mapping[str, BinaryEvent], draws: Draws, folds: Ints) -> dict[str, Chosen]:
    """The best threshold for each model, given by name with its forecasts of one event."""
    models = {name: _Resampled(aim, event, draws.weights) for name, event in events.items()}
    for weights in draws:
        for model in models.values():
            model.add(weights)
    kept = [draws.weights * (folds != i) for i in range(int(folds.max()) + 1)]
    return {
        name: model.corrected(np.array([model.without(w) for w in kept])) for name, model in models.items()
    }


class _Resampled:
    """The optimism of one model's shares for one event, from resamples of its rows."""

    def __init__(self, aim: Aim, event: BinaryEvent, weights: Floats) -> None:
        self._aim, self._candidates = aim, Candidates(event.ranked, event.happened)
        self._counts = self._candidates.counts(weights)
        self._place = self._candidates.best(aim, self._counts)
        self._errors: list[tuple[Floats, Floats]] = []

    def without(self, weights: Floats) -> float:
        """The threshold of the rows that have weight."""
        place = self._candidates.best(self._aim, self._candidates.counts(weights))
        return float(self._candidates.thresholds[place])

    def add(self, weights: Floats) -> None:
        """Add a resample, given by the weights of the rows in it."""
        counts = self._candidates.counts(weights)
        place = self._candidates.best(self._aim, counts)
        chosen, kept = (_shares(counts, i) - _shares(self._counts, i) for i in (place, self._place))
        self._errors.append((chosen, kept))

    def corrected(self, per_fold: Floats) -> Corrected:
        """The threshold with what the resamples say of its optimism."""
        chosen, kept = (np.ma.masked_invalid(np.stack(errors)) for errors in zip(*self._errors, strict=True))
        optimism = np.ma.filled(chosen.mean(axis=0), 0.0)
        if self._place in (0, len(self._candidates.thresholds) - 1):
            # All rows are acted on, or none: nothing depends on the forecasts.
            optimism = np.zeros(len(SHARES))
        spread, usual = (np.ma.filled(errors.var(axis=0), 0.0) for errors in (chosen, kept))
        inflation = np.divide(spread, usual, out=np.ones(len(SHARES)), where=(spread > usual) & (usual > 0))
        threshold = float(self._candidates.thresholds[self._place])
        by_name = (dict(zip(SHARES, column.tolist(), strict=True)) for column in (optimism, inflation))
        return Corrected(threshold, self._note, per_fold, *by_name)

    @property
    def _note(self) -> str:
        rate, least = self._aim.rate, self._aim.least
        if least is None:
            return ""
        reached = _shares(self._counts, self._place)[list(SHARES).index(rate)]
        if reached >= least - _NOTHING:
            return f"{rate} is at least {least:g} in these rows, which promises nothing for others"
        return f"no threshold reaches {rate} of {least:g} in these rows; this one is nearest"


def _shares(counts: Counts, place: int) -> Floats:
    """The shares that rates are made of at one threshold, in the order of their names."""
    tp, fp, fn, tn = (float(count[place]) for count in counts)
    by_name = {
        "sensitivity": (tp, fn),
        "specificity": (tn, fp),
        "ppv": (tp, fp),
        "npv": (tn, fn),
        "accuracy": (tp + tn, fp + fn),
        "jaccard": (tp, fp + fn),
    }
    pairs = (by_name[name] for name in SHARES)
    return np.array([hit / (hit + miss) if hit + miss > 0 else math.nan for hit, miss in pairs])
