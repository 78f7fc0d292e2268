"""The worst rows of predictions that are not in memory, and their ranks among all rows.

One pass finds the rows, a second one counts how many rows are worse by each rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from verax.analyses.cases import Stated
from verax.analyses.parts import seen
from verax.common.packing import dump, load, refusing
from verax.inputs.arrays import Floats, Ints, to_host, widen
from verax.inputs.forecasts import Forecasts
from verax.inputs.handles import Part, Recipe
from verax.inputs.lists.rows import ListRows
from verax.inputs.rows import Rows
from verax.scores.base import Rule, losses_of

_ROWS, _RANKS = "worst rows", "ranks"
# Losses that agree in so many digits are equal: engines add up in different orders.
_DIGITS = 12


@dataclass(frozen=True)
class WorstRows:
    """The rows with the largest losses, worst first; of equal losses the first row comes first.

    Attributes
    ----------
    most : int
        How many are kept.
    n_rows : int
        How many rows there were.
    losses : array
        (n, R) by each rule; the first one ranks the rows.
    numbers : array
        (n,) the numbers of the rows.
    outcomes : array or list
        (n,) positions of classes; of top lists the classes themselves.
    forecasts : array or list
        (n, K) probabilities; of top lists what `Stated.to_values` gives of each.
    ids : array, optional
        (n,) names of the rows.
    """

    most: int
    n_rows: int
    losses: Floats
    numbers: Ints
    outcomes: Any
    forecasts: Any
    ids: Any = None

    def merge(self, other: WorstRows) -> WorstRows:
        """The worst rows of both."""
        ids = None if self.ids is None or other.ids is None else np.concatenate([self.ids, other.ids])
        both = WorstRows(
            self.most,
            self.n_rows + other.n_rows,
            np.concatenate([self.losses, other.losses]),
            np.concatenate([self.numbers, other.numbers]),
            _joined(self.outcomes, other.outcomes),
            _joined(self.forecasts, other.forecasts),
            ids,
        )
        return both._at(np.lexsort((both.numbers, -both.losses[:, 0]))[: self.most])

    def _at(self, rows: Ints) -> WorstRows:
        ids = None if self.ids is None else self.ids[rows]
        losses, numbers = self.losses[rows], self.numbers[rows]
        shown = _taken(self.outcomes, rows), _taken(self.forecasts, rows)
        return WorstRows(self.most, self.n_rows, losses, numbers, *shown, ids)

    def to_bytes(self) -> bytes:
        """As bytes that `from_bytes` reads."""
        return dump(_ROWS, vars(self))

    @classmethod
    def from_bytes(cls, data: bytes) -> WorstRows:
        """The rows that `to_bytes` wrote."""
        with refusing("is missing or of another type"):
            return cls(**load(data, _ROWS))


def _joined(one: Any, other: Any) -> Any:
    return [*one, *other] if isinstance(one, list) else np.concatenate([one, other])


def _taken(values: Any, rows: Ints) -> Any:
    return [values[row] for row in rows.tolist()] if isinstance(values, list) else values[rows]


@dataclass(frozen=True)
class WorstRecipe(Recipe[WorstRows]):
    """The `n` worst rows of one model by the first of some rules."""

    model: str
    rules: tuple[Rule, ...]
    n: int

    def take(self, part: Part) -> WorstRows:
        """The worst of some rows."""
        return self.more(part, None)

    def more(self, part: Part, found: WorstRows | None) -> WorstRows:
        """The worst of some rows, as far as they may be worse than those found before."""
        full = found is not None and len(found.losses) == self.n
        places, losses = self._near(part, found.losses[-1, 0] if found is not None and full else -np.inf)
        # Of equal losses the first rows: a partial sort would keep any.
        cut = np.partition(losses[:, 0], -self.n)[-self.n] if len(losses) > self.n else -np.inf
        near = np.flatnonzero(losses[:, 0] >= cut)
        near = near[np.argsort(-losses[near, 0], kind="stable")[: self.n]]
        near, losses = places[near], losses[near]
        numbers = part.start + near if part.numbers is None else part.numbers[near]
        ids = None if part.ids is None else part.ids[near]
        shown = _shown(part.models[self.model], near)
        return WorstRows(self.n, part.n_rows, losses, numbers, *shown, ids)

    def _near(self, part: Part, floor: float) -> tuple[Ints, Floats]:
        """The places of the rows whose loss may be `floor` or more, and their losses."""
        if floor == -np.inf or not isinstance(part.models[self.model], Forecasts):
            return np.arange(part.n_rows), rounded_losses(part, self.model, self.rules)
        held = seen(part, self.model, self.rules).losses
        near = np.flatnonzero(held[self.rules[0]] >= floor - 2 * 10.0**-_DIGITS)
        return near, _rounded([held[rule][near] for rule in self.rules])

    def load(self, stored: bytes) -> WorstRows:
        """Rows from their bytes."""
        return WorstRows.from_bytes(stored)


def _shown(rows: Rows, near: Ints) -> tuple[Any, Any]:
    """The outcomes and the forecasts of some rows."""
    if isinstance(rows, ListRows):
        stated = [Stated.of(rows, row) for row in near.tolist()]
        return [each.outcome for each in stated], [each.to_values() for each in stated]
    assert isinstance(rows, Forecasts)
    batches = [rows.batch(row, row + 1) for row in near.tolist()]
    outcomes = np.array([int(batch.y[0]) for batch in batches], np.int64)
    p = [to_host(widen(batch.p))[0] for batch in batches]
    return outcomes, np.array(p, float).reshape(len(near), rows.n_classes)


@dataclass(frozen=True)
class Worse:
    """How many rows have a larger loss than each of some rows, by each rule: (R, n)."""

    counts: Ints

    def merge(self, other: Worse) -> Worse:
        """Among the rows of both."""
        return Worse(self.counts + other.counts)

    def to_bytes(self) -> bytes:
        """As bytes."""
        return dump(_RANKS, {"counts": self.counts})

    @classmethod
    def from_bytes(cls, data: bytes) -> Worse:
        """What `to_bytes` wrote."""
        return cls(load(data, _RANKS)["counts"])


@dataclass(frozen=True)
class WorseRecipe(Recipe[Worse]):
    """How many rows of a model are worse than some of them, whose losses are known."""

    model: str
    rules: tuple[Rule, ...]
    losses: tuple[tuple[float, ...], ...]

    def take(self, part: Part) -> Worse:
        """Among some rows."""
        found = rounded_losses(part, self.model, self.rules)
        counts = []
        for column, known in zip(found.T, np.array(self.losses).T, strict=True):
            order = np.argsort(known, kind="stable")
            # Few are known and many are found: how many of the few are smaller than each of these.
            places = np.searchsorted(known[order], column, side="left")
            beyond = np.cumsum(np.bincount(places, minlength=len(known) + 1)[::-1])[::-1]
            own = np.empty(len(known), np.int64)
            own[order] = beyond[1:]
            counts.append(own)
        return Worse(np.array(counts))

    def load(self, stored: bytes) -> Worse:
        """From bytes."""
        return Worse.from_bytes(stored)


def rounded_losses(part: Part, model: str, rules: tuple[Rule, ...]) -> Floats:
    """(N, R) losses, rounded so that they do not depend on how they were added up."""

    def made() -> Floats:
        rows = part.models[model]
        if isinstance(rows, Forecasts):
            held = seen(part, model, rules).losses
            columns = [held[rule] for rule in rules]
        else:
            columns = [to_host(column) for column in losses_of(rules, rows)]
        return _rounded(columns)

    return part.once(("rounded losses", model, rules), made)


def _rounded(columns: Sequence[Any]) -> Floats:
    return np.round(np.column_stack(columns).astype(float), _DIGITS)
