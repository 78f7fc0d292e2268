"""The binary events inside a forecast: a class against the rest, or a threshold of ordered classes."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import numpy as np

from verax.analyses.binary import BinaryEvent, running_sums
from verax.errors import RuleError
from verax.inputs.arrays import Floats, Ints
from verax.scores.base import Rule
from verax.scores.combinators import Penalized
from verax.scores.properties import Holds
from verax.scores.ranges import ThresholdBrier
from verax.scores.rules import RPS, Brier, Log, RankedLog

# ---- which events ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Split:
    """The way a score is made of scores of binary events: `factor` times their sum.

    Attributes
    ----------
    quantity : str
        The name of the score that the events add up to.
    total : str
        The way they add up, in words.
    thresholds : bool
        Whether the events are thresholds of ordered classes instead of classes.
    binary : {"squared", "log"}
        The score of each event.
    factor : float
        The factor of the sum.
    unit : float
        For log scores: one over the logarithm of the base.
    """

    quantity: str
    total: str
    thresholds: bool
    binary: Literal["squared", "log"]
    factor: float
    unit: float = 1.0

    def losses(self, given: Floats, rest: Floats, happened: Any) -> Floats:
        """The loss of each row, from the probabilities of the event and of the rest."""
        if self.binary == "squared":
            return np.asarray(_chosen(happened, rest, given) ** 2)
        with np.errstate(divide="ignore"):
            return np.asarray(-self.unit * np.log(_chosen(happened, given, rest)))

    def expected(self, given: Floats, rest: Floats, chance: Floats) -> Floats:
        """The mean loss of each row whose event happens with this chance; linear in the chance."""
        if self.binary == "squared":
            lost, gained = given**2, rest**2
            gained -= lost
            gained *= chance
            lost += gained
            return np.asarray(lost)
        from scipy.special import xlogy

        return np.asarray(-self.unit * (xlogy(chance, given) + xlogy(1 - chance, rest)))

    def entropy(self, cells: Floats) -> float:
        """The total loss of pools that forecast the frequency they have: cells are (n, 2) weights."""
        without, happened = cells[:, 0], cells[:, 1]
        n = without + happened
        if self.binary == "squared":
            return float((without * happened / n).sum())
        from scipy.special import xlogy

        # 0 * log(0) = 0: a pool where the event always or never happens loses nothing.
        return -self.unit * float((xlogy(without, without / n) + xlogy(happened, happened / n)).sum())


def _chosen(condition: Any, first: Floats, second: Floats) -> Floats:
    """`first` where the condition holds, else `second`."""
    if isinstance(condition, bool):
        return first if condition else second
    return np.where(condition, first, second)


@cache
def split(rule: Rule, n_classes: int) -> Split:
    """The binary events that `rule` is made of; other rules are refused with the reason."""
    largest = rule.bounds(n_classes)[1]
    name = repr(rule)
    if isinstance(rule, Brier):
        shares = {"sum": "the sum", "half": "half the sum", "mean": "the mean"}
        total = f"{shares[rule.scale]} over the classes"
        return Split(name, total, False, "squared", largest / 2)
    if isinstance(rule, RPS):
        total = f"the {'mean' if rule.normalized else 'sum'} over the thresholds"
        return Split(name, total, True, "squared", largest / (n_classes - 1))
    if isinstance(rule, RankedLog):
        return Split(name, "the mean over the thresholds", True, "log", 1 / (n_classes - 1))
    if isinstance(rule, Log) and rule.clip is None:
        unit = 1.0 if rule.base == math.e else 1 / math.log(rule.base)
        if n_classes == 2:
            return Split(name, "that of its one event", False, "log", 1.0, unit)
        total = "the sum over the classes; it is not the log score, which looks at one class only"
        return Split(f"one-vs-rest {name}", total, False, "log", 1.0, unit)
    raise _refusal(rule)


def _refusal(rule: Rule) -> RuleError:
    if isinstance(rule, ThresholdBrier):
        reason = "looks at some thresholds only; decompose brier instead"
    elif rule.properties.proper is not Holds.ALWAYS:
        reason = "is not proper, so recalibration need not improve it and the components mean nothing"
    elif isinstance(rule, Penalized):
        reason = f"has a penalty that looks at all classes at once; decompose {rule.rule!r} instead"
    else:
        reason = "looks at all classes at once and is no sum of scores of binary events"
    return RuleError(
        "Only rules made of proper scores of binary events can be decomposed, such as brier, log_score, rps "
        f"and ranked_log; {rule!r} {reason}."
    )


def n_events(how: Split, n_classes: int) -> int:
    """The number of events."""
    first, last = _positions(how, n_classes)
    return last - first


def _positions(how: Split, n_classes: int) -> tuple[int, int]:
    """The position of the first event, and where they end."""
    # With two classes and the log score, the one event says all.
    return (0, n_classes - 1) if how.thresholds else (int(n_classes == 2 and how.binary == "log"), n_classes)


def event_names(labels: Sequence[str], how: Split) -> list[str]:
    """The names of the events of classes with these names."""
    first, last = _positions(how, len(labels))
    return [f"<= {label}" if how.thresholds else label for label in labels[first:last]]


def binary_events(
    y: Ints, p: Floats, how: Split, names: Sequence[str], decimals: int, only: Collection[int] | None = None
) -> Iterator[BinaryEvent]:
    """The events of valid rows, one after the other; by default all, or `only` some by their numbers.

    Number of decimals to which thresholds are compared.
    """
    k = p.shape[1]
    first, last = _positions(how, k)
    above = None if not how.thresholds and how.binary == "squared" else running_sums(p[:, ::-1])[:, ::-1]
    below = np.zeros(0 if above is None else len(y))
    for i in range(last):
        wanted = i >= first and (only is None or i - first in only)
        if above is None and not wanted:
            continue
        # In double precision where the forecasts' device has none.
        given = np.ascontiguousarray(p[:, i], dtype=np.float64)
        before = below
        if above is not None:
            below = below + given
        if not wanted:
            continue
        name = names[i - first]
        if how.thresholds:
            assert above is not None
            ranked = _up_to_one(np.round(below, decimals))
            yield BinaryEvent(name, below, above[:, i + 1], ranked, y <= i)
            continue
        rest = None
        if above is not None:
            # Not one minus: what is left beside a nearly certain class would be rounding.
            rest = before + above[:, i + 1] if i < k - 1 else before
        yield BinaryEvent(name, given, rest, _up_to_one(given), y == i)


def _up_to_one(given: Floats) -> Floats:
    """Probabilities of rows that sum to more than one, within their tolerance, as one."""
    return np.minimum(given, 1.0) if given.max(initial=0.0) > 1 else given
