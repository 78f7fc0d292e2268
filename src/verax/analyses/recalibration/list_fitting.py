"""Fits of the scaling of top lists by any proper rule that lists can be scored with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from verax.analyses.recalibration.choosing import Folded
from verax.analyses.recalibration.forms import CalibrationMap, Unchanged
from verax.analyses.recalibration.list_forms import ListScaling, LogLists, floor_of
from verax.analyses.recalibration.rows import MOST_ROWS, Configuration, drawn, relative
from verax.analyses.recalibration.searching import FIRST, RIDGE, WIDEST, smallest
from verax.inputs.arrays import Floats, Ints
from verax.inputs.lists.ragged import Ragged
from verax.inputs.lists.rows import ListRows
from verax.scores.base import Rule, losses_of
from verax.scores.gradients.logits import loss_of_statistics

# What each method fits: the logarithm of the power, and that of the factor of the rest.
_FITS = {"temperature": (True, False), "rest": (False, True), "temperature_rest": (True, True)}
METHODS = ("none", *_FITS)


@dataclass(frozen=True)
class FoldedLists(Folded):
    """Valid top lists with their folds; `y` are places of outcomes, from 0, and -1 where they are not listed.

    Attributes
    ----------
    rows : ListRows
        The lists with the same outcomes.
    """

    rows: ListRows

    def fits_to(
        self, rows: Ints, weights: Floats | None
    ) -> Callable[[Configuration, CalibrationMap | None], CalibrationMap]:
        if len(rows) > MOST_ROWS:
            chosen = drawn(len(rows), MOST_ROWS, self.seed)
            rows, weights = rows[chosen], None if weights is None else weights[chosen]
        some = _FittingLists.of(self.rows.taken(rows, None, None), weights) if len(rows) else None

        def fit_to(how: Configuration, near: CalibrationMap | None) -> CalibrationMap:
            if how.method == "none" or some is None:
                return Unchanged()
            return _fit(how.method, some, self.rule, near if isinstance(near, ListScaling) else None)

        return fit_to

    def losses(self, form: CalibrationMap, rows: Ints) -> Floats:
        (found,) = losses_of([self.rule], form.apply(self.rows.taken(rows, None, None)))
        return np.asarray(found, dtype=float)

    def held_out(self, forms: Sequence[CalibrationMap]) -> ListRows:
        given = self.rows.lists
        values, entry = np.empty(given.confidences.size), given.row_of
        for v, form in enumerate(forms):
            rows = np.flatnonzero(self.folds == v)
            scaled = form.apply(self.rows.taken(rows, None, None))
            values[np.isin(entry, rows)] = scaled.lists.confidences
        return self.rows.with_lists(Ragged(given.classes, values, given.offsets), 0.0)


@dataclass(frozen=True)
class _FittingLists:
    """Lists to learn from, as logarithms, with the entries of outcomes and weights of mean one."""

    logs: LogLists
    outcome: Ints
    weights: Floats
    floor: float
    n_classes: int

    @classmethod
    def of(cls, rows: ListRows, weights: Floats | None) -> _FittingLists:
        lists, unaccounted, m = rows.lists, rows.survey.unaccounted, rows.n_classes
        floor = floor_of(lists, unaccounted, m)
        logs = LogLists.of(lists, unaccounted, m, floor)
        y = rows.batch(0, rows.n_rows).y
        outcome = np.where(y >= 0, lists.offsets[:-1] + y, -1)
        return cls(logs, outcome, relative(weights, rows.n_rows), floor, m)


def _fit(method: str, rows: _FittingLists, rule: Rule, near: ListScaling | None) -> ListScaling:
    """The scaling that loses least on the rows, held to "unchanged" as fits of distributions are."""
    free, w = np.array(_FITS[method]), rows.weights

    def objective(t: Floats) -> tuple[float, Floats]:
        numbers = np.zeros(2)
        numbers[free] = t
        losses, g = _losses_with_gradient(rule, rows.logs, rows.outcome, rows.n_classes, numbers)
        value = float((w * losses).sum()) + RIDGE * float(t @ t)
        return value / len(w), ((g * w).sum(axis=1)[free] + 2 * RIDGE * t) / len(w)

    if near is not None:
        start = np.array([np.log(near.slope), near.shift])[free]
    elif free[0]:
        firsts = (np.append(first, np.zeros(int(free[1]))) for first in FIRST)
        start = min(firsts, key=lambda t: objective(t)[0])
    else:
        start = np.zeros(1)
    edge = np.array([WIDEST, np.inf])[free]
    found = np.zeros(2)
    found[free] = smallest(objective, start, (-edge, edge), None)
    return ListScaling(float(np.exp(found[0])), float(found[1]), rows.floor)


class _Statistics:
    """The row statistics of scaled lists for the outcomes that happened, (n,), as rules ask for them."""

    def __init__(self, log_true: Floats, squares: Floats) -> None:
        self.log_true, self.p_true = log_true, np.exp(log_true)
        self.rest_sq = np.maximum(squares - self.p_true**2, 0.0)
        # Scaling keeps the order, so that what depends on it alone is the same for every number fitted.
        self.hit = self.answered = self.invalid = np.zeros(len(log_true))


def _losses_with_gradient(
    rule: Rule, logs: LogLists, outcome: Ints, n_classes: int, numbers: Floats
) -> tuple[Floats, Floats]:
    """The loss of each list, and (2, N) derivatives by the logarithm of the power and of the factor."""
    lists, slope = logs.lists, float(np.exp(numbers[0]))
    found = logs.scaled(slope, float(numbers[1]))
    row, listed = lists.row_of, outcome >= 0
    q, entry = np.exp(found.listed), outcome[listed]
    with np.errstate(over="ignore"):
        # The probability of all unlisted classes, and the sum of their squares.
        rest, rest_squared = (
            np.exp(found.unlisted + logs.n_unlisted),
            np.exp(2 * found.unlisted + logs.n_unlisted),
        )
    log_true = found.unlisted.copy()
    log_true[listed] = found.listed[entry]
    squares = lists.sums(q * q) + rest_squared
    loss: Any = loss_of_statistics(rule, n_classes, _Statistics(log_true, squares))
    # By the power times itself: logits grow with the logarithms; by the factor: those of the rest with one.
    own = slope * logs.listed, np.zeros(q.size)
    of_rest = (
        slope * np.where(found.capped, np.where(np.isfinite(logs.last), logs.last, 0.0), logs.unlisted),
        (~found.capped).astype(float),
    )
    g = np.empty((2, lists.n_rows))
    for i, (along, beside) in enumerate(zip(own, of_rest, strict=True)):
        # What is not there has no part in it, whatever its logarithm.
        mean = lists.sums(q * along) + rest * beside
        by_true = beside - mean
        by_true[listed] = along[entry] - mean[listed]
        by_squares = 2 * (lists.sums(q * q * (along - mean[row])) + rest_squared * (beside - mean))
        slopes = {"log_true": by_true, "rest_sq": by_squares - 2 * np.exp(2 * log_true) * by_true}
        g[i] = sum((part * slopes[name] for name, part in loss.parts.items()), np.zeros(lists.n_rows))
    return loss.value, g
