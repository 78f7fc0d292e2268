"""Rows whose losses are known: grades, and forecasts of models that have questions of their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from verax.inputs.arrays import Array, Bools, Floats, Ints, Namespace
from verax.inputs.groups import Groups
from verax.inputs.lists.rows import check_weights


@dataclass(frozen=True)
class Baseline:
    """What losses of the same probability for every class, on the same rows, are known by.

    Attributes
    ----------
    rule : Rule
        The rule of the losses.
    """

    rule: Any


@dataclass(frozen=True)
class ScoredBatch:
    """Consecutive rows with their losses."""

    y: Ints
    weights: Floats | None
    groups: Ints | None
    start: int
    n_classes: int
    xp: Namespace = np

    @property
    def n_rows(self) -> int:
        """How many rows these are."""
        return len(self.y)


class ScoredRows:
    """Questions with the losses of one model, by rule.

    A loss is NaN where the model was not graded. Questions that the model was not asked are `absent`. A
    question that was asked several times has the mean loss of its graded answers.

    Parameters
    ----------
    losses : mapping of rule to array of shape (N,)
        The losses by each rule.
    absent : bool array of shape (N,), optional
        Which questions the model was not asked; none by default.
    n_classes : int
        The number of classes of the forecasts; grades are about two, right and wrong.
    answers : int array of shape (N,), optional
        The number of answers to each question; by default one, where it was asked.
    ungraded : mapping of rule to int array of shape (N,), optional
        How many of them have no loss by each rule; by default those of questions without one.
    """

    n_classes: int
    weights: Array | None
    groups: Groups | None

    def __init__(
        self,
        losses: Mapping[Any, Floats],
        *,
        absent: Bools | None = None,
        n_classes: int = 2,
        weights: object | None = None,
        groups: object | None = None,
        answers: Ints | None = None,
        ungraded: Mapping[Any, Ints] | None = None,
        part: bool = False,
    ) -> None:
        n = len(next(iter(losses.values())))
        self.xp: Namespace = np
        self.n_classes: int = n_classes
        self._losses: dict[Any, Floats] = dict(losses)
        self.absent: Bools = np.zeros(n, np.bool_) if absent is None else absent
        self._answers, self._ungraded = answers, ungraded
        self.weights = None if weights is None else check_weights(weights, n, part=part)
        self.groups = None if groups is None else Groups.of(groups, n)

    @property
    def n_rows(self) -> int:
        return len(self.absent)

    @property
    def width(self) -> int:
        """How many numbers a row has."""
        return len(self._losses)

    def losses(self, rule: Any) -> Floats:
        """The losses by a rule; NaN where there is none."""
        return self._losses[rule]

    def has(self, rule: Any) -> bool:
        """Whether there are losses by a rule."""
        return rule in self._losses

    def counts(self, rule: Any) -> tuple[Ints, Ints]:
        """The number of answers to each question, and how many of them have no loss by a rule."""
        if self._answers is None or self._ungraded is None:
            asked = ~self.absent
            return asked.astype(np.int64), (asked & np.isnan(self._losses[rule])).astype(np.int64)
        return self._answers, self._ungraded[rule]

    def batch(self, start: int, stop: int) -> ScoredBatch:
        """Rows `start` to `stop`."""
        rows = slice(start, stop)
        return ScoredBatch(
            np.zeros(len(self.absent[rows]), np.int64),
            None if self.weights is None else self.weights[rows],
            None if self.groups is None else self.groups.codes[rows],
            start,
            self.n_classes,
        )

    def batches(self, rows: int) -> Iterator[ScoredBatch]:
        """All rows, `rows` at a time."""
        for start in range(0, self.n_rows, rows):
            yield self.batch(start, min(start + rows, self.n_rows))

    def check(self) -> None:
        """Nothing is left to check."""

    def taken(self, places: Ints, weights: object, groups: Groups | None) -> ScoredRows:
        """Some of the rows, with their weights and groups."""
        return ScoredRows(
            {rule: own[places] for rule, own in self._losses.items()},
            absent=self.absent[places],
            n_classes=self.n_classes,
            weights=weights,
            groups=groups,
            answers=None if self._answers is None else self._answers[places],
            ungraded=None
            if self._ungraded is None
            else {rule: own[places] for rule, own in self._ungraded.items()},
            part=True,
        )
