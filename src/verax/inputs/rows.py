"""Rows that can be scored, and the interface that passes over them need, whatever their kind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import copy
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np

from verax.errors import InputError
from verax.inputs.arrays import Array, Bools, Floats, Ints, Namespace, to_host
from verax.inputs.forecasts import Forecasts
from verax.inputs.groups import Groups
from verax.inputs.lists.rows import CheckedRows, ListFaults, ListRows
from verax.inputs.sets.rows import SetRows
from verax.inputs.skipping import take_rows


class RowBatch(Protocol):
    """Consecutive rows: the attributes that all kinds share."""

    @property
    def y(self) -> Array: ...
    @property
    def weights(self) -> Array | None: ...
    @property
    def groups(self) -> Array | None: ...
    @property
    def start(self) -> int: ...
    @property
    def n_classes(self) -> int: ...
    @property
    def n_rows(self) -> int: ...
    @property
    def xp(self) -> Namespace: ...


class Rows(Protocol):
    """Rows that can be scored: `Forecasts`, `ListRows` (top lists), `SetRows` or `ScoredRows`.

    The outcomes of `shared` rows are shares of several classes.
    """

    n_classes: int
    weights: Array | None
    groups: Groups | None
    xp: Namespace

    @property
    def n_rows(self) -> int: ...
    @property
    def shared(self) -> bool: ...
    @property
    def width(self) -> int: ...
    def batch(self, start: int, stop: int) -> RowBatch: ...
    def batches(self, rows: int) -> Iterator[RowBatch]: ...
    def check(self) -> None: ...


RowsT = TypeVar("RowsT", bound=Rows)


def without_groups(rows: RowsT) -> RowsT:
    """The same rows, treated as independent."""
    same = copy(rows)
    same.groups = None
    return same


def one_way(rows: RowsT) -> RowsT:
    """The same rows with one kind of groups: of two, the one with fewer groups."""
    same = copy(rows)
    same.groups = None if rows.groups is None else rows.groups.fewest
    return same


def numbers_of(batch: RowBatch, at: Ints) -> Ints:
    """The numbers, among all rows, of some rows of a batch."""
    rows = getattr(batch, "rows", None)
    return batch.start + at if rows is None else rows[at]


def at_fault(name: str, error: InputError) -> InputError:
    """The error with the name of the model, if it is about forecasts."""
    # Errors about files name their source already.
    return error.replace(source=error.source or repr(name)) if error.argument == "p" else error


def faults_of(models: Mapping[str, Rows]) -> dict[str, ListFaults]:
    """The faults of the top lists among the rows of models, by model."""
    return {name: rows.faults for name, rows in models.items() if isinstance(rows, ListRows)}


@dataclass(frozen=True)
class Baseline:
    """The key of losses on the same rows with equal probabilities for all classes.

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
        """The number of rows."""
        return len(self.y)


class ScoredRows(CheckedRows):
    """Questions with the losses of one model, by rule.

    A loss is NaN if the answer was not graded. Questions that the model was not asked are `absent`. The loss
    of a question that was asked several times is the mean over its graded answers.

    Parameters
    ----------
    losses : mapping of rule to array of shape (N,)
        The losses by each rule.
    absent : bool array of shape (N,), optional
        Which questions the model was not asked; none by default.
    n_classes : int
        The number of classes of the forecasts; grades are about two, right and wrong.
    answers : int array of shape (N,), optional
        The number of answers to each question; by default one if it was asked.
    ungraded : mapping of rule to int array of shape (N,), optional
        The number of answers without a loss by each rule; by default those of questions without one.
    became : int array of shape (N, D), optional
        Numbers of answers to each question by what became of them, where that is known.
    """

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
        became: Ints | None = None,
        part: bool = False,
    ) -> None:
        n = len(next(iter(losses.values())))
        self.n_classes: int = n_classes
        self._losses: dict[Any, Floats] = dict(losses)
        self.absent: Bools = np.zeros(n, np.bool_) if absent is None else absent
        self._answers, self._ungraded = answers, ungraded
        self.became: Ints | None = became
        self._take_in(n, weights, groups, part=part)

    @property
    def n_rows(self) -> int:
        return len(self.absent)

    @property
    def width(self) -> int:
        """The number of numbers per row."""
        return len(self._losses)

    def losses(self, rule: Any) -> Floats:
        """The losses by a rule; NaN for missing ones."""
        return self._losses[rule]

    def has(self, rule: Any) -> bool:
        """Whether there are losses by a rule."""
        return rule in self._losses

    def counts(self, rule: Any) -> tuple[Ints, Ints]:
        """The number of answers to each question, and of those without a loss by a rule."""
        if self._answers is None or self._ungraded is None:
            asked = ~self.absent
            return asked.astype(np.int64), (asked & np.isnan(self._losses[rule])).astype(np.int64)
        return self._answers, self._ungraded[rule]

    def with_losses(self, losses: Mapping[Any, Floats]) -> ScoredRows:
        """The same questions with these losses, each of which is that of one answer."""
        made = copy(self)
        made._losses, made._answers, made._ungraded, made.became = dict(losses), None, None, None
        return made

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

    def taken(self, places: Ints, weights: object, groups: Groups | None) -> ScoredRows:
        """Some of the rows, with their weights and groups."""
        return ScoredRows(
            {rule: values[places] for rule, values in self._losses.items()},
            absent=self.absent[places],
            n_classes=self.n_classes,
            weights=weights,
            groups=groups,
            answers=None if self._answers is None else self._answers[places],
            ungraded=None
            if self._ungraded is None
            else {rule: values[places] for rule, values in self._ungraded.items()},
            became=None if self.became is None else self.became[places],
            part=True,
        )


def some_of(rows: Rows, places: Ints) -> Rows:
    """Some of the rows; all their weights may be zero."""
    weights = take_rows(rows.weights, places)
    groups = None if rows.groups is None else rows.groups.at(places)
    if isinstance(rows, (ListRows, ScoredRows, SetRows)):
        return rows.taken(places, weights, groups)
    assert isinstance(rows, Forecasts)
    return _with_outcomes(rows, places, rows.outcomes.taken(places), weights, groups)


def _with_outcomes(rows: Forecasts, places: Ints, y: object, weights: Any, groups: Groups | None) -> Rows:
    """The forecasts of some rows with these outcomes, weights and groups."""
    return forecasts_like(rows, y, take_rows(rows.given, places), weights, groups)


def forecasts_like(rows: Forecasts, y: object, p: object, weights: Any, groups: Groups | None) -> Forecasts:
    """Some of the rows as given, with positions as outcomes."""
    some = Forecasts(
        y,
        p,
        weights=weights,
        groups=groups,
        normalize=rows.form == "rescaled",
        logits=rows.logits,
        part=True,
    )
    some.classes = rows.classes
    return some


def with_single_classes(rows: Forecasts) -> Forecasts:
    """The same rows with one class each, for fits; cases of several raters become pairs."""
    if not rows.shared:
        return rows
    rows.check()
    pairs = paired(rows, places_of(rows), np.arange(rows.n_rows))
    assert isinstance(pairs, Forecasts)
    return pairs


def places_of(rows: Rows) -> tuple[Ints, Ints, Array]:
    """The place of the case, the class and the share of each pair of a valid row and a class."""
    assert isinstance(rows, Forecasts)
    shares = to_host(rows.shares(slice(0, rows.n_rows)))
    place, y = np.nonzero(shares > 0)
    return place, y, shares[place, y]


def paired(rows: Rows, places: tuple[Ints, Ints, Array], cases: Ints) -> Rows:
    """The rows as pairs of a case and a class; `cases` are the numbers of the rows in the whole."""
    assert isinstance(rows, Forecasts)
    place, y, share = places
    weights = share if rows.weights is None else share * take_rows(to_host(rows.weights), place)
    groups = Groups.of(cases[place], len(place)) if rows.groups is None else rows.groups.at(place)
    return _with_outcomes(rows, place, y, weights, groups)
