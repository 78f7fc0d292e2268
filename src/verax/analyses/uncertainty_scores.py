"""Doubts of forecasts, known before the outcome, by which `selective` ranks rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, islice
from typing import Any

import numpy as np

from verax.common.checks import as_float
from verax.inputs.arrays import Floats
from verax.inputs.lists.rows import ListRows
from verax.inputs.lists.vocabulary import UNLISTED
from verax.kernels.threads import in_order, n_cores
from verax.scores.base import Rule, losses_of
from verax.scores.combinators import padded
from verax.scores.registry import name_of, parse
from verax.scores.rules import RPS, Brier, Log

# Up to this number of classes, one class is processed at a time.
_FEW = 64
# Probabilities whose expected losses are computed at a time.
_BLOCK = 2**17
# From this many rows on, threads share the work.
MANY = 2**16


@dataclass(frozen=True)
class UncertaintyScore:
    """The doubt of forecasts, known before the outcome.

    Attributes
    ----------
    name : str
        The name of the order.
    of : callable
        The doubt of each of the (N, K) rows.
    of_lists : callable
        The doubt of each of some top lists.
    ordinal : bool
        Whether the order of the classes matters.
    """

    name: str
    of: Callable[[Floats], Floats]
    of_lists: Callable[[ListRows], Floats]
    ordinal: bool = False

    def named_by(self) -> Mapping[str, Any]:
        """What saved summaries know it by: how it is computed may change."""
        return {"name": self.name}

    def by_blocks(self, p: Floats) -> Iterator[Floats]:
        """The doubt of blocks of rows that a cache holds: it may make K arrays of the shape of a block."""
        step = max(1, _BLOCK // p.shape[1])
        blocks = (p[start : start + step] for start in range(0, len(p), step))
        return in_order(self.of, blocks, n_cores()) if len(p) >= MANY else map(self.of, blocks)


def doubt(by: Rule | str) -> UncertaintyScore:
    """A score by the largest probability, by entropy, or by the loss that each forecast itself expects."""
    if isinstance(by, str) and by == "max_probability":
        return UncertaintyScore("max_probability", _unlikely_top, _without_the_top)
    entropy = isinstance(by, str) and by == "entropy"
    rule = parse("log_score" if entropy else by)
    # What a forecast expects of itself takes it for the truth, which sums to one.
    return UncertaintyScore(
        "entropy" if entropy else f"expected {name_of(rule)}",
        partial(expected_of_itself, rule),
        partial(expected_of_lists, padded(rule, 0.0) if entropy else rule),
        rule.ordinal,
    )


def _unlikely_top(p: Floats) -> Floats:
    return np.asarray(1 - p.max(axis=1))


def expected_of_itself(rule: Rule, p: Floats) -> Floats:
    """The loss that each forecast expects of itself, by a formula where there is one."""
    k, few = p.shape[1], p.shape[1] <= _FEW
    # One class at a time is several times as fast as rows of few of them.
    total = _summed(p.T) if few else p.sum(axis=1)
    shares = (column / total for column in p.T) if few else iter([p / total[:, None]])
    if isinstance(rule, Brier):
        return np.asarray(rule.bounds(k)[1] / 2 * _summed(map(_variance, shares)))
    if isinstance(rule, RPS):
        below = islice(accumulate(shares), k - 1) if few else (q.cumsum(axis=1)[:, :-1] for q in shares)
        return np.asarray(rule.bounds(k)[1] / (k - 1) * _summed(map(_variance, below)))
    if isinstance(rule, Log) and rule.clip is None:
        return np.asarray(_summed(map(_surprise, shares)) / math.log(rule.base))
    return np.asarray(rule.entropy(p / total[:, None]))


def _variance(q: Floats) -> Floats:
    return q * (1 - q)


def _surprise(q: Floats) -> Floats:
    """The addends of the entropy; zeros add nothing."""
    logs = np.log(q if q.all() else np.where(q > 0, q, 1.0))
    np.negative(logs, out=logs)
    logs *= q
    return logs


def _summed(terms: Iterable[Floats]) -> Floats:
    """The sum over all classes: of one at a time, (N,), or of all of them, (N, K)."""
    remaining = iter(terms)
    first = next(remaining)
    total = first.copy() if first.ndim == 1 else first.sum(axis=1)
    for term in remaining:
        total += term
    return total


# ---- top lists: all that is said of the distribution that a list is padded to --------------------------


def _without_the_top(rows: ListRows) -> Floats:
    """One minus the largest probability of the padded distribution."""
    survey, lists = rows.survey, rows.lists
    kept = survey.kept
    top = np.full(rows.n_rows, 1 / rows.n_classes)
    top[kept > 0] = lists.confidences[lists.offsets[:-1][kept > 0]]
    return np.asarray(1 - top)


def expected_of_lists(rule: Rule, rows: ListRows) -> Floats:
    """The loss that each list expects of itself: that of every class it lists, and of one that it does not.

    All classes that are not listed have the same loss, so there are one more passes than the longest list has
    classes. Those that an invalid list must not list have the same probability. A fine for invalid lists is
    part of the loss; it is known beforehand.
    """
    lists, survey, m = rows.lists, rows.survey, as_float(rows.n_classes)
    proxy = survey.unaccounted_kept / np.maximum(m - survey.kept, 1.0)
    total, mass = np.zeros(rows.n_rows), np.zeros(rows.n_rows)

    def add(codes: np.ndarray, weight: Floats) -> None:
        (loss,) = losses_of([rule], rows.with_codes(codes))
        # What cannot happen costs nothing, however large its loss.
        total[:] += weight * np.where(weight > 0, loss, 0.0)
        mass[:] += weight

    for place in range(int(lists.lengths.max(initial=0))):
        has, kept = lists.lengths > place, survey.kept > place
        codes, weight = np.full(rows.n_rows, UNLISTED), np.where(has, proxy, 0.0)
        codes[has] = lists.classes[lists.offsets[:-1][has] + place]
        weight[kept] = lists.confidences[lists.offsets[:-1][kept] + place]
        add(codes, weight)
    add(np.full(rows.n_rows, UNLISTED), survey.unaccounted_kept - (lists.lengths - survey.kept) * proxy)
    return np.asarray(total / mass)
