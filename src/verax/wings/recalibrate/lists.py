"""Temperature scaling of top lists: one exponent for all probabilities and a factor for the unlisted rest.

A list with probabilities t_1 >= ... >= t_k leaves r for the m - k unlisted classes, u = r / (m - k) for each.
Scaling takes every probability to a power b, multiplies that of an unlisted class by a factor, but not beyond
that of the last listed class, and divides by the sum:

    t_j' = t_j^b / S,    u' = min(exp(c) u^b, t_k^b) / S,    S = sum_j t_j^b + (m - k) min(exp(c) u^b, t_k^b).

With c = 0 this is temperature scaling of the padded distribution. The order of the classes stays, and no
unlisted class overtakes a listed one, so a valid list stays valid.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from verax.inputs.arrays import Bools, Floats, Ints
from verax.inputs.lists.ragged import MASS_TOLERANCE, Ragged
from verax.inputs.lists.rows import ListRows
from verax.scores.base import Rule, losses_of
from verax.scores.gradients.logits import loss_of_statistics
from verax.wings.recalibrate.choosing import Folded
from verax.wings.recalibrate.forms import CalibrationMap, Unchanged, number_in, unfit
from verax.wings.recalibrate.rows import MOST_ROWS, Configuration, drawn, relative
from verax.wings.recalibrate.scoretest import LOGS, Directions, calibration_p
from verax.wings.recalibrate.searching import FIRST, RIDGE, WIDEST, smallest

# Probabilities are no smaller than this by its logarithm; far below what a double can hold.
_LOWEST = -1e5


@dataclass(frozen=True)
class LogLists:
    """Logarithms of the probabilities of lists, those that are zero as a floor.

    Attributes
    ----------
    lists : Ragged
        The lists.
    listed : array of shape (E,)
        Of the listed classes.
    unlisted, last : array of shape (N,)
        Of one of the unlisted classes, and of the last listed class; infinite for an empty list.
    n_unlisted : array of shape (N,)
        Of the number of unlisted classes; minus infinity where all are listed.
    """

    lists: Ragged
    listed: Floats
    unlisted: Floats
    last: Floats
    n_unlisted: Floats

    @classmethod
    def of(cls, lists: Ragged, unaccounted: Floats, n_classes: int, floor: float) -> LogLists:
        """The logarithms, where none is below `floor`."""
        n_unlisted, unlisted = _unlisted(lists.lengths, unaccounted, n_classes)
        with np.errstate(divide="ignore"):
            listed = np.maximum(np.log(np.minimum(lists.confidences, 1.0)), floor)
        last, some = np.full(lists.n_rows, np.inf), lists.lengths > 0
        last[some] = listed[lists.offsets[1:][some] - 1]
        return cls(lists, listed, np.maximum(unlisted, floor), last, n_unlisted)

    def scaled(self, slope: float, shift: float) -> ScaledLists:
        """Scaled by a power and a factor of the rest, given by its logarithm."""
        rest, most = slope * self.unlisted + shift, slope * self.last
        capped = rest > most
        logits, rest = slope * self.listed, np.where(capped, most, rest)
        top = np.maximum(rest + self.n_unlisted, -np.inf)
        some = self.lists.lengths > 0
        top[some] = np.maximum(top[some], logits[self.lists.offsets[:-1][some]])
        row = self.lists.row_of
        total = self.lists.sums(np.exp(logits - top[row])) + np.exp(rest + self.n_unlisted - top)
        log_total = top + np.log(total)
        return ScaledLists(logits - log_total[row], rest - log_total, capped)


@dataclass(frozen=True)
class ScaledLists:
    """Logarithms of the scaled probabilities of listed classes, and of one unlisted class of each list.

    `capped` are the lists whose unlisted classes have the probability of the last listed one.
    """

    listed: Floats
    unlisted: Floats
    capped: Bools


def floor_of(lists: Ragged, unaccounted: Floats, n_classes: int) -> float:
    """The logarithm of what a zero counts as: half the smallest positive probability, and a tenth spread
    over all classes at most.
    """
    _, unlisted = _unlisted(lists.lengths, unaccounted, n_classes)
    t = lists.confidences
    with np.errstate(divide="ignore"):
        logs = np.concatenate([np.log(t[t > 0]), unlisted[np.isfinite(unlisted)]])
    return float(min(logs.min(initial=0.0) - math.log(2), math.log(0.1) - math.log(n_classes)))


def _unlisted(lengths: Ints, unaccounted: Floats, n_classes: int) -> tuple[Floats, Floats]:
    """Logarithms of the number of unlisted classes, and of the probability of each, which may be any size."""
    kinds, which = np.unique(lengths, return_inverse=True)
    numbers = np.array([math.log(n_classes - k) if n_classes > k else -np.inf for k in kinds.tolist()])
    n_unlisted = numbers[which]
    with np.errstate(divide="ignore", invalid="ignore"):
        log_share = np.where(n_unlisted > -np.inf, np.log(unaccounted) - n_unlisted, -np.inf)
    return n_unlisted, log_share


@dataclass(frozen=True, eq=False)
class ListScaling(CalibrationMap):
    """A power of all probabilities of a list, and a factor of the unlisted ones.

    Attributes
    ----------
    slope : float
        The power: one over the temperature.
    shift : float
        The logarithm of the factor.
    floor : float
        The logarithm of the smallest probability: zeros count as this one.
    """

    kind = "list scaling"
    slope: float
    shift: float
    floor: float

    def confidences(self, lists: Ragged, unaccounted: Floats, n_classes: int) -> Floats:
        """The probabilities of the listed classes, in the same order."""
        logs = LogLists.of(lists, unaccounted, n_classes, self.floor)
        return np.asarray(np.exp(logs.scaled(self.slope, self.shift).listed))

    def apply(self, p: ListRows) -> ListRows:
        given = p.lists
        values = self.confidences(given, p.survey.unaccounted, p.n_classes)
        lists = Ragged(given.classes, values, given.offsets).ordered()
        return p.with_lists(lists, p.survey.tolerance - MASS_TOLERANCE)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "slope": self.slope, "shift": self.shift, "floor": self.floor}

    @property
    def words(self) -> str:
        said = [] if self.slope == 1 else [f"temperature {1 / self.slope:.3g}"]
        said += [f"unlisted times {math.exp(self.shift):.3g}"] if self.shift else []
        return ", ".join(said)


def list_form_of(stored: dict[str, Any]) -> ListScaling:
    """The scaling of lists that JSON holds, with every number checked."""
    slope, shift, floor = (number_in(stored.get(name)) for name in ("slope", "shift", "floor"))
    if not slope > 0 or not _LOWEST <= floor < 0 or abs(shift) > -_LOWEST:
        raise unfit("must have a positive slope and a floor below 1")
    return ListScaling(slope, shift, floor)


# The numbers that each method fits: the logarithm of the power, and that of the factor of the rest.
_FITS = {"temperature": (True, False), "rest": (False, True), "temperature_rest": (True, True)}


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

    def losses(self, forms: Sequence[CalibrationMap], rows: Ints) -> Floats:
        some = self.rows.taken(rows, None, None)
        return np.array([losses_of([self.rule], form.apply(some))[0] for form in forms], dtype=float)

    def calibration_p(self) -> float:
        return calibration_p(*_directions(self.rows), self.weights, self.groups)

    def held_out(self, forms: Sequence[CalibrationMap]) -> ListRows:
        given = self.rows.lists
        values, entry = np.empty(given.confidences.size), given.row_of
        for v, form in enumerate(forms):
            rows = np.flatnonzero(self.folds == v)
            scaled = form.apply(self.rows.taken(rows, None, None))
            values[np.isin(entry, rows)] = scaled.lists.confidences
        return self.rows.with_lists(Ragged(given.classes, values, given.offsets), 0.0)


def _directions(rows: ListRows) -> tuple[Directions, Ints]:
    """What a temperature and a factor of the rest change, and outcomes: places, or the last for the rest."""
    lists, rest = rows.lists, np.clip(rows.survey.unaccounted, 0.0, 1.0)
    n_unlisted, of_one = _unlisted(lists.lengths, rest, rows.n_classes)
    # All unlisted classes of a list together are one outcome.
    longest, entry = int(lists.lengths.max(initial=0)), lists.row_of
    place = np.arange(lists.confidences.size) - lists.offsets[:-1][entry]
    p, z = np.zeros((rows.n_rows, longest + 1)), np.full((rows.n_rows, longest + 1), -np.inf)
    p[entry, place], p[:, -1] = lists.confidences, np.where(n_unlisted > -np.inf, rest, 0.0)
    p /= p.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore"):
        z[entry, place], z[:, -1] = np.log(lists.confidences), of_one
    slope = np.clip(z - z.max(axis=1, keepdims=True), -LOGS, 0.0)
    bins = np.append(np.zeros(longest, np.int64), 1)
    y = rows.batch(0, rows.n_rows).y
    return Directions(p, [slope], bins), np.where(y >= 0, y, longest)


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
    fitted = np.zeros(2)
    fitted[free] = smallest(objective, start, (-edge, edge), None)
    return ListScaling(float(np.exp(fitted[0])), float(fitted[1]), rows.floor)


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
    scaled = logs.scaled(slope, float(numbers[1]))
    row, listed = lists.row_of, outcome >= 0
    q, entry = np.exp(scaled.listed), outcome[listed]
    with np.errstate(over="ignore"):
        # The probability of all unlisted classes, and the sum of their squares.
        rest, rest_squared = (
            np.exp(scaled.unlisted + logs.n_unlisted),
            np.exp(2 * scaled.unlisted + logs.n_unlisted),
        )
    log_true = scaled.unlisted.copy()
    log_true[listed] = scaled.listed[entry]
    squares = lists.sums(q * q) + rest_squared
    loss: Any = loss_of_statistics(rule, n_classes, _Statistics(log_true, squares))
    # By the power times itself: logits grow with the logarithms; by the factor: those of the rest with one.
    of_listed = slope * logs.listed, np.zeros(q.size)
    of_rest = (
        slope * np.where(scaled.capped, np.where(np.isfinite(logs.last), logs.last, 0.0), logs.unlisted),
        (~scaled.capped).astype(float),
    )
    g = np.empty((2, lists.n_rows))
    for i, (along, beside) in enumerate(zip(of_listed, of_rest, strict=True)):
        # What is not there has no part in it, whatever its logarithm.
        mean = lists.sums(q * along) + rest * beside
        by_true = beside - mean
        by_true[listed] = along[entry] - mean[listed]
        by_squares = 2 * (lists.sums(q * q * (along - mean[row])) + rest_squared * (beside - mean))
        slopes = {"log_true": by_true, "rest_sq": by_squares - 2 * np.exp(2 * log_true) * by_true}
        g[i] = sum((part * slopes[name] for name, part in loss.parts.items()), np.zeros(lists.n_rows))
    return loss.value, g
