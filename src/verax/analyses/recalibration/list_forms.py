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
from dataclasses import dataclass
from typing import Any

import numpy as np

from verax.analyses.recalibration.forms import CalibrationMap, number_in, unfit
from verax.inputs.arrays import Bools, Floats, Ints
from verax.inputs.lists.ragged import MASS_TOLERANCE, Ragged
from verax.inputs.lists.rows import ListRows

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
        each = np.where(n_unlisted > -np.inf, np.log(unaccounted) - n_unlisted, -np.inf)
    return n_unlisted, each


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
