"""Thresholds chosen on rows: by a rate to reach, by the best value of a rate, or by costs.

A threshold is chosen without each fold and used on it, so the rates of these decisions are those of a
threshold on held-out rows.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from verax.errors import InputError, join, show
from verax.inputs.arrays import Bools, Floats, Ints
from verax.scores.metrics import cost_matrix

# Rates that may be asked for at least.
_REACHED = ("sensitivity", "specificity", "ppv", "npv")
# Rates that may be maximised.
_BEST = ("youden", "f1", "balanced_accuracy", "accuracy")
COST = "cost"
_FORM = re.compile(r"\s*(\w+)\s*>=\s*([0-9.]+)\s*(%?)\s*")
# Differences that are smaller are rounding.
_NOTHING = 1e-12


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

    def goodness(self, tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> tuple[Floats, Floats]:
        """How good each threshold is, (C,), higher is better, and the rate to reach, (C,)."""
        with np.errstate(invalid="ignore", divide="ignore"):
            sens, spec = tp / (tp + fn), tn / (tn + fp)
            rates = {
                "sensitivity": sens,
                "specificity": spec,
                "ppv": tp / (tp + fp),
                "npv": tn / (tn + fn),
                "youden": sens + spec,
                "balanced_accuracy": sens + spec,
                "f1": 2 * tp / (2 * tp + fp + fn),
                "accuracy": tp + tn,
            }
            if self.costs is not None:
                (a, b), (c, d) = self.costs
                return -(a * tn + b * fp + c * fn + d * tp), np.zeros(len(tp))
            if self.least is None:
                return rates[self.rate], rates[self.rate]
            # Of all thresholds that reach it, the one with most of the other side.
            other = spec if self.rate in ("sensitivity", "npv") else sens
            reached = rates[self.rate]
        return np.where(reached >= self.least - _NOTHING, other, -np.inf), reached

    def choose(self, given: Floats, happened: Bools, weights: Floats) -> float:
        """The best threshold for these rows; of equally good ones the nearest to one half."""
        values, place = np.unique(given, return_inverse=True)
        hits, others = (
            np.bincount(place.ravel(), weights * side, len(values)) for side in (happened, ~happened)
        )
        # At threshold i, rows with at least the i-th value are acted on; at the last one, none.
        tp, fp = (np.append(np.cumsum(side[::-1])[::-1], 0.0) for side in (hits, others))
        tp, fp = (np.maximum(side, 0.0) for side in (tp, fp))
        good, reached = self.goodness(tp, fp, hits.sum() - tp, others.sum() - fp)
        tried = np.concatenate([[0.0], (values[1:] + values[:-1]) / 2, [np.nextafter(values[-1], 2.0)]])
        # A middle that rounds to the lower of two neighbours would act on it.
        tried[1:-1] = np.where(tried[1:-1] > values[:-1], tried[1:-1], values[1:])
        good = np.where(np.isnan(good), -np.inf, good)
        if not np.isfinite(good).any():
            # Nothing reaches it: the nearest.
            good = np.where(np.isnan(reached), -np.inf, reached)
        scale = max(1.0, float(np.abs(good[np.isfinite(good)]).max(initial=0.0)))
        ties = np.flatnonzero(good >= good.max() - _NOTHING * scale)
        return float(tried[ties[np.argmin(np.abs(tried[ties] - 0.5))]])

    def chosen(
        self, given: Floats, happened: Bools, weights: Floats, folds: Ints
    ) -> tuple[float, Floats, Bools]:
        """The threshold of all rows, those without each fold, and which rows the latter act on."""
        per_fold = np.array(
            [
                self.choose(given[kept], happened[kept], weights[kept])
                for kept in (folds != i for i in range(int(folds.max()) + 1))
            ]
        )
        return self.choose(given, happened, weights), per_fold, given >= per_fold[folds]


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
