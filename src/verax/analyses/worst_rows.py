"""The worst rows of predictions that are not in memory, and their ranks among all rows.

One pass finds the rows, a second one counts how many rows are worse by each rule.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from verax.analyses.parts import seen
from verax.common.packing import dump, load, refusing
from verax.inputs.arrays import Floats, Ints, to_host, widen
from verax.inputs.forecasts import Forecasts
from verax.inputs.handles import Part, Recipe
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
    outcomes : array
        (n,) positions of classes.
    forecasts : array
        (n, K) probabilities.
    ids : array, optional
        (n,) names of the rows.
    """

    most: int
    n_rows: int
    losses: Floats
    numbers: Ints
    outcomes: Ints
    forecasts: Floats
    ids: Any = None

    def merge(self, other: WorstRows) -> WorstRows:
        """The worst rows of both."""
        ids = None if self.ids is None or other.ids is None else np.concatenate([self.ids, other.ids])
        both = WorstRows(
            self.most,
            self.n_rows + other.n_rows,
            np.concatenate([self.losses, other.losses]),
            np.concatenate([self.numbers, other.numbers]),
            np.concatenate([self.outcomes, other.outcomes]),
            np.concatenate([self.forecasts, other.forecasts]),
            ids,
        )
        return both._at(np.lexsort((both.numbers, -both.losses[:, 0]))[: self.most])

    def _at(self, rows: Ints) -> WorstRows:
        ids = None if self.ids is None else self.ids[rows]
        losses, numbers, outcomes = self.losses[rows], self.numbers[rows], self.outcomes[rows]
        return WorstRows(self.most, self.n_rows, losses, numbers, outcomes, self.forecasts[rows], ids)

    def to_bytes(self) -> bytes:
        """As bytes that `from_bytes` reads."""
        return dump(_ROWS, vars(self))

    @classmethod
    def from_bytes(cls, data: bytes) -> WorstRows:
        """The rows that `to_bytes` wrote."""
        with refusing("is missing or of another type"):
            return cls(**load(data, _ROWS))


@dataclass(frozen=True)
class WorstRecipe(Recipe[WorstRows]):
    """The `n` worst rows of one model by the first of some rules."""

    model: str
    rules: tuple[Rule, ...]
    n: int

    def take(self, part: Part) -> WorstRows:
        """The worst of some rows."""
        rows = part.models[self.model]
        assert isinstance(rows, Forecasts)
        losses = rounded_losses(part, self.model, self.rules)
        # Of equal losses the first rows: a partial sort would keep any.
        cut = np.partition(losses[:, 0], -self.n)[-self.n] if len(losses) > self.n else -np.inf
        near = np.flatnonzero(losses[:, 0] >= cut)
        near = near[np.argsort(-losses[near, 0], kind="stable")[: self.n]]
        batches = [rows.batch(int(row), int(row) + 1) for row in near]
        numbers = part.start + near if part.numbers is None else part.numbers[near]
        return WorstRows(
            self.n,
            part.n_rows,
            losses[near],
            numbers,
            np.array([int(batch.y[0]) for batch in batches]),
            np.array([to_host(widen(batch.p))[0] for batch in batches]),
            None if part.ids is None else part.ids[near],
        )

    def load(self, stored: bytes) -> WorstRows:
        """Rows from their bytes."""
        return WorstRows.from_bytes(stored)


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
        return Worse(load(stored, _RANKS)["counts"])


def rounded_losses(part: Part, model: str, rules: tuple[Rule, ...]) -> Floats:
    """(N, R) losses, rounded so that they do not depend on how they were added up."""

    def made() -> Floats:
        rows = part.models[model]
        if isinstance(rows, Forecasts):
            held = seen(part, model, rules).losses
            columns = [held[rule] for rule in rules]
        else:
            columns = [to_host(column) for column in losses_of(rules, rows)]
        return np.round(np.column_stack(columns).astype(float), _DIGITS)

    return part.once(("rounded losses", model, rules), made)
