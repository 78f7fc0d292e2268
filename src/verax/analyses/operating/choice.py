"""What a threshold is chosen for: a rate to reach, the best value of a rate, or the lowest cost."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from verax.errors import InputError, join, show
from verax.inputs.arrays import Bools, Floats
from verax.scores.metrics import cost_matrix

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
    """What a threshold is chosen for.

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
        """What a text such as "sensitivity>=0.9", "youden" or "cost" asks for."""
        found = _FORM.fullmatch(text)
        if found is None:
            if text == COST and costs is not None:
                return cls(text, COST, None, cost_matrix(costs, 2))  # type: ignore[arg-type]
            if text in _BEST:
                return cls(text, text, None, None)
            raise _unknown(text, no_costs=text == COST)
        try:
            least = float(found[2]) / (100 if found[3] else 1)
        except ValueError:
            raise _unknown(text) from None
        if found[1] not in _REACHED or not 0 < least <= 1:
            raise _unknown(text)
        return cls(text, found[1], least, None)

    def goodness(self, counts: Counts) -> tuple[Floats, Floats]:
        """How good each threshold is, (C,), higher is better, and the rate to reach, (C,)."""
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
        self._place, self._happened, self._n = place.ravel(), happened, len(values)
        between = (values[1:] + values[:-1]) / 2
        # A middle that rounds to the lower of two neighbours would act on it.
        between = np.where(between > values[:-1], between, values[1:])
        self.thresholds: Floats = np.concatenate([[0.0], between, [np.nextafter(values[-1], 2.0)]])

    def counts(self, weights: Floats) -> Counts:
        """The weights of true alarms, false alarms, misses, and rows rightly left alone, each (C,)."""
        sides = (weights * side for side in (self._happened, ~self._happened))
        hits, others = (np.bincount(self._place, side, self._n) for side in sides)
        # At threshold i, rows with at least the i-th value are acted on; at the last one, none.
        tp, fp = (np.append(np.cumsum(side[::-1])[::-1], 0.0) for side in (hits, others))
        return tp, fp, np.maximum(tp[0] - tp, 0.0), np.maximum(fp[0] - fp, 0.0)

    def best(self, aim: Aim, counts: Counts) -> int:
        """Which threshold is best for the aim; of equally good ones the nearest to one half."""
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
        found = [float(each) for each in given]
    except (TypeError, ValueError):
        found = []
    increasing = all(a < b for a, b in pairwise(found))
    fits = found and increasing and all(0 <= t <= 1 for t in found)
    if not fits:
        raise InputError(
            "must be a probability or increasing ones, from 0 to 1",
            argument="threshold",
            found=f"it is {show(threshold)}",
            values=[threshold],
        )
    return found
