"""The worst rows of predictions that are not in memory, and their ranks among all rows.

One pass finds the rows. How many rows are worse by other rules is known from the same pass where the largest
losses are kept, and the rows are among them; else a second pass counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from verax.analyses.cases import Stated
from verax.analyses.parts import seen
from verax.common.packing import UnreadableError
from verax.common.specs import Array, Names, Number, Spec, Whole
from verax.common.stored import Sizes, fit, label, mapping, within
from verax.common.summaries import Summary, merges
from verax.errors import VeraxError
from verax.inputs.arrays import Floats, Ints, to_host, widen
from verax.inputs.forecasts import Forecasts
from verax.inputs.handles import Part, Recipe
from verax.inputs.lists.rows import ListRows
from verax.inputs.rows import Rows
from verax.scores.base import Rule, losses_of

# Losses that agree to this number of digits are equal: engines add up in different orders.
_DIGITS = 12
# How many of the largest losses are kept, and how many more there may be before the smallest are left out.
_MOST_LOSSES, _SPARE = 2**20, 2**19
# Of many rows, one in _ONE_IN is kept: the worst rows by one rule have large losses by others.
_ONE_IN = 8


def _joined(one: Any, other: Any) -> Any:
    alike = isinstance(one, list) == isinstance(other, list)
    if not alike or (not isinstance(one, list) and one.shape[1:] != other.shape[1:]):
        raise VeraxError("Worst rows of lists and of distributions, or of other classes, cannot be merged.")
    return [*one, *other] if isinstance(one, list) else np.concatenate([one, other])


class _Outcomes(Spec):
    """(n,) positions of classes, (n, K) shares of them, or a list of classes themselves."""

    def __init__(self) -> None:
        super().__init__("join")
        self._dense = Array("i8", "n", least=0, how="join")
        self._shares = Array("f8", "n", "classes", least=0, how="join")
        self.names = {"joined": _joined}

    def merged(self, name: str) -> str:
        return f"joined(self.{name}, other.{name})"

    def read(self, stored: Any, sizes: Sizes) -> Any:
        if not isinstance(stored, list):
            return (self._shares if np.ndim(stored) == 2 else self._dense).read(stored, sizes)
        fit((len(stored),), ("n",), sizes)
        return [label(outcome) for outcome in stored]


class _Forecasts(Spec):
    """(n, K) probabilities, or what `Stated.to_values` gives of lists."""

    def __init__(self) -> None:
        super().__init__("join")
        self._dense = Array("f8", "n", "classes", how="join")
        self.names = {"joined": _joined}

    def merged(self, name: str) -> str:
        return f"joined(self.{name}, other.{name})"

    def read(self, stored: Any, sizes: Sizes) -> Any:
        if not isinstance(stored, list):
            return self._dense.read(stored, sizes)
        fit((len(stored),), ("n",), sizes)
        return [Stated.from_values(None, mapping(forecast)).to_values() for forecast in stored]


class WorstRows(Summary, kind="worst rows"):
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
        (n,) positions of classes; (n, K) shares where several raters labelled each row; of top lists the
        classes themselves.
    forecasts : array or list
        (n, K) probabilities; of top lists what `Stated.to_values` gives of each.
    ids : array, optional
        (n,) names of the rows.
    """

    most: int = merges(Whole("equal", least=1))
    n_rows: int = merges(Whole())
    losses: Floats = merges(Array("f8", "n", "rules", how="join"))
    numbers: Ints = merges(Array("i8", "n", how="join"))
    outcomes: Any = merges(_Outcomes())
    forecasts: Any = merges(_Forecasts())
    ids: Any = merges(Names("n"), default=None)

    def _merged(self) -> WorstRows:
        return self._at(np.lexsort((self.numbers, -self.losses[:, 0]))[: self.most])

    def _check(self) -> None:
        if isinstance(self.outcomes, list) != isinstance(self.forecasts, list):
            raise UnreadableError("holds outcomes of lists with distributions, or the other way round")
        if len(self.losses) > min(self.most, self.n_rows) or not self.losses.shape[1]:
            raise UnreadableError("has more rows than there were, or no rule")
        if not isinstance(self.outcomes, list) and self.outcomes.ndim == 1:
            within(self.outcomes, 0, self.forecasts.shape[1] - 1)

    def _at(self, rows: Ints) -> WorstRows:
        ids = None if self.ids is None else self.ids[rows]
        losses, numbers = self.losses[rows], self.numbers[rows]
        shown = _taken(self.outcomes, rows), _taken(self.forecasts, rows)
        return WorstRows(self.most, self.n_rows, losses, numbers, *shown, ids)


def _taken(values: Any, rows: Ints) -> Any:
    return [values[row] for row in rows.tolist()] if isinstance(values, list) else values[rows]


@dataclass(frozen=True)
class WorstRecipe(Recipe[WorstRows], cases=True):
    """The `n` worst rows of one model by the first of some rules."""

    model: str
    rules: tuple[Rule, ...]
    n: int

    def sizes(self, known: Mapping[str, int]) -> dict[str, int]:
        """The numbers of rules and of rows that are kept."""
        return {"rules": len(self.rules), "most": self.n}

    def take(self, part: Part) -> WorstRows:
        """The worst of some rows."""
        return self.more(part, None)

    def more(self, part: Part, earlier: WorstRows | None) -> WorstRows:
        """The worst of some rows, as far as they may be worse than those found before."""
        full = earlier is not None and len(earlier.losses) == self.n
        places, losses = self._near(part, earlier.losses[-1, 0] if earlier is not None and full else -np.inf)
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
        losses = seen(part, self.model, self.rules).losses
        near = np.flatnonzero(losses[self.rules[0]] >= floor - 2 * 10.0**-_DIGITS)
        return near, _rounded([losses[rule][near] for rule in self.rules])


def _shown(rows: Rows, near: Ints) -> tuple[Any, Any]:
    """The outcomes and the forecasts of some rows."""
    if isinstance(rows, ListRows):
        stated = [Stated.of(rows, row) for row in near.tolist()]
        return [case.outcome for case in stated], [case.to_values() for case in stated]
    assert isinstance(rows, Forecasts)
    batches = [rows.batch(row, row + 1) for row in near.tolist()]
    if rows.shared:
        outcomes = np.array([to_host(rows.shares(slice(row, row + 1)))[0] for row in near.tolist()], float)
        outcomes = outcomes.reshape(len(near), rows.n_classes)
    else:
        outcomes = np.array([int(batch.y[0]) for batch in batches], np.int64)
    p = [to_host(widen(batch.p))[0] for batch in batches]
    return outcomes, np.array(p, float).reshape(len(near), rows.n_classes)


class Worse(Summary, kind="ranks"):
    """How many rows have a larger loss than each of some rows, by each rule: (R, n)."""

    counts: Ints = merges(Array("i8", "rules", "n", least=0))


@dataclass(frozen=True)
class WorseRecipe(Recipe[Worse], cases=True):
    """How many rows of a model are worse than some of them, whose losses are known."""

    model: str
    rules: tuple[Rule, ...]
    losses: tuple[tuple[float, ...], ...]

    def sizes(self, known: Mapping[str, int]) -> dict[str, int]:
        """The number of rules."""
        return {"rules": len(self.rules)}

    def take(self, part: Part) -> Worse:
        """Count the worse rows of one part."""
        losses = rounded_losses(part, self.model, self.rules)
        counts = []
        for column, known in zip(losses.T, np.array(self.losses).T, strict=True):
            order = np.argsort(known, kind="stable")
            # Few are known and many are found: how many of the few are smaller than each of these.
            places = np.searchsorted(known[order], column, side="left")
            beyond = np.cumsum(np.bincount(places, minlength=len(known) + 1)[::-1])[::-1]
            worse = np.empty(len(known), np.int64)
            worse[order] = beyond[1:]
            counts.append(worse)
        return Worse(np.array(counts))


class LargestLosses(Summary, kind="largest losses"):
    """The largest losses of rows by one rule, in no order: all that are above `floor`."""

    most: int = merges(Whole("equal", least=1))
    floor: float = merges(Number("most"))
    values: Floats = merges(Array("f8", "n", how="join"))

    def _merged(self) -> LargestLosses:
        return self.fitting()

    def fitting(self) -> LargestLosses:
        """Without the smallest where there are too many."""
        if len(self.values) <= self.most + _SPARE:
            return self
        floor = max(self.floor, _at(self.values, self.most))
        return LargestLosses(self.most, floor, self.values[self.values > floor])

    def beyond(self, losses: Floats) -> Ints | None:
        """How many rows have a larger loss than each of these; None where too few are kept to know."""
        if not (losses >= self.floor).all():
            return None
        # Few are looked for, and many are kept.
        return np.array([np.count_nonzero(self.values > loss) for loss in losses.tolist()], np.int64)


def _at(losses: Floats, n: int) -> float:
    """The n-th largest loss."""
    return float(np.partition(losses, -n)[-n])


@dataclass(frozen=True)
class LargestRecipe(Recipe[LargestLosses], cases=True):
    """The largest losses of a model by one of some rules, which are all computed."""

    model: str
    rules: tuple[Rule, ...]
    rule: Rule
    most: int = _MOST_LOSSES

    def gathering(self) -> _Largest:
        """An object that takes in one part after the other."""
        return _Largest(self)

    def take(self, part: Part) -> LargestLosses:
        """The largest losses of one part."""
        gathered = self.gathering()
        gathered.add(part)
        return gathered.summary()

    def above(self, part: Part, floor: float) -> Floats:
        """The losses of some rows that are above the floor."""
        if floor == -np.inf or not isinstance(part.models[self.model], Forecasts):
            losses = rounded_losses(part, self.model, self.rules)[:, self.rules.index(self.rule)]
        else:
            every_loss = seen(part, self.model, self.rules).losses[self.rule]
            losses = _rounded([every_loss[every_loss > floor - 2 * 10.0**-_DIGITS]])[:, 0]
        return np.asarray(losses[losses > floor])


class _Largest:
    """The largest losses of parts that come one after the other."""

    def __init__(self, recipe: LargestRecipe) -> None:
        self._recipe = recipe
        self._floor = -np.inf
        self._losses: list[Floats] = []

    def add(self, part: Part) -> None:
        """Take in the rows of one part."""
        if self._floor == -np.inf and self._losses:
            (first,) = self._losses
            self._floor = _at(first, -(-len(first) // _ONE_IN))
            self._losses = [first[first > self._floor]]
        self._losses.append(self._recipe.above(part, self._floor))
        if sum(map(len, self._losses)) > self._recipe.most + _SPARE:
            kept = self.summary()
            self._floor, self._losses = kept.floor, [kept.values]

    def summary(self) -> LargestLosses:
        """The largest losses of all parts."""
        largest = LargestLosses(self._recipe.most, self._floor, np.concatenate(self._losses))
        return largest.fitting()


def ranks_known(rows: WorstRows, largest: Sequence[LargestLosses]) -> Ints | None:
    """(R, n) how many rows are worse than each of the worst, given the largest losses by all rules but the
    first; None where some are not known.
    """
    first = rows.losses[:, 0]
    counts: list[Ints | None] = [np.array([np.count_nonzero(first > loss) for loss in first], np.int64)]
    counts += [
        row_counts.beyond(column) for row_counts, column in zip(largest, rows.losses.T[1:], strict=True)
    ]
    known = [row_counts for row_counts in counts if row_counts is not None]
    return np.array(known) if len(known) == len(counts) else None


def rounded_losses(part: Part, model: str, rules: tuple[Rule, ...]) -> Floats:
    """(N, R) losses, rounded so that they do not depend on how they were added up."""

    def made() -> Floats:
        rows = part.models[model]
        if isinstance(rows, Forecasts):
            losses = seen(part, model, rules).losses
            columns = [losses[rule] for rule in rules]
        else:
            columns = [to_host(column) for column in losses_of(rules, rows)]
        return _rounded(columns)

    return part.once(("rounded losses", model, rules), made)


def _rounded(columns: Sequence[Any]) -> Floats:
    return np.round(np.column_stack(columns).astype(float), _DIGITS)
