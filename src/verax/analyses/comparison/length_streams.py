"""Predictions of growing length that are not in memory: means of their losses, from sums over rows."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from verax.analyses.comparison.length_result import LengthComparison
from verax.analyses.comparison.shortening import LENGTHS, check_lengths, names_of, shorter_lists
from verax.analyses.listfaults import faults_in
from verax.analyses.unitsums import Columns, UnitRecipe, UnitSums, means_of
from verax.common.packing import dump, load, refusing
from verax.inputs.arrays import Floats, to_host
from verax.inputs.forecasts import Forecasts
from verax.inputs.handles import Handle, Part, Recipe, Summaries
from verax.inputs.lists.rows import ListFaults, ListRows
from verax.inputs.lists.toplists import TopLists
from verax.inputs.rows import Rows
from verax.scores.base import losses_of
from verax.scores.combinators import Padded
from verax.scores.registry import name_of

_KIND = "longest list"


def lengths_of_handle(
    handle: Handle, k: Sequence[int] | None, rules: Sequence[Padded], confidence: float
) -> LengthComparison:
    """The mean losses of hard predictions, lists of several lengths, and what was given."""
    longest = handle.n_classes
    if handle.lists:
        found = handle.summarise({"longest": LongestRecipe(handle.one_model())})
        longest = found["longest"].length
    recipe = LengthRecipe(handle.one_model(), tuple(rules), tuple(check_lengths(k, longest)))
    means = means_of(handle, recipe)
    faults = faults_in(handle, means.found)
    return read_lengths(handle, recipe, means.sums, means.covariance, means.found, faults, confidence)


def read_lengths(
    handle: Handle,
    recipe: LengthRecipe,
    sums: UnitSums,
    covariance: Floats,
    found: Summaries,
    faults: dict[str, ListFaults],
    confidence: float,
) -> LengthComparison:
    """The comparison from sums over rows."""
    names = [name_of(rule.rule) for rule in recipe.rules]
    return (
        LengthComparison(
            names_of(recipe.lengths, lists=handle.lists),
            recipe.rules,
            {name: tuple(row.tolist()) for name, row in zip(names, sums.mean, strict=True)},
            {name: tuple(row.tolist()) for name, row in zip(names, sums.infinite.high, strict=True)},
            recipe.lengths,
            found.n_rows,
            handle.n_classes,
            sum(each.n_invalid for each in faults.values()),
            dict(zip(names, covariance, strict=True)),
            sums.units,
            confidence,
        )
        .with_skipped(found.skipped)
        .with_faults(faults)
    )


def read_known_lengths(
    handle: Handle,
    recipe: LengthRecipe,
    sums: UnitSums,
    longest: int,
    found: Summaries,
    faults: dict[str, ListFaults],
    confidence: float,
) -> LengthComparison | None:
    """The comparison from the sums of more lengths than there are; None where all lists have one class."""
    lengths = tuple(check_lengths(None, longest))
    if longest < 2:
        return None
    at = [0, *(1 + recipe.lengths.index(length) for length in lengths), 1 + len(recipe.lengths)]
    some, known = sums.some(at), replace(recipe, lengths=lengths)
    return read_lengths(handle, known, some, some.covariance, found, faults, confidence)


@dataclass(frozen=True)
class LengthRecipe(UnitRecipe):
    """The losses of one model's hard prediction, of its lists of some lengths, and of all that it says."""

    model: str
    rules: tuple[Padded, ...]
    lengths: tuple[int, ...] = LENGTHS

    def columns(self, part: Part) -> Columns:
        """The losses of some rows, rule by rule."""
        rows = part.models[self.model]
        lists = self._lists(rows)
        # Lists that are no longer stay as they are.
        n = bisect_left(self.lengths, lists.lists.lengths.max(initial=0)) if lists is rows else None
        predictions = [*shorter_lists(lists, self.lengths[:n]), rows]
        found = [[to_host(loss) for loss in losses_of(self.rules, each)] for each in predictions]
        losses = np.array(found + found[-1:] * (2 + len(self.lengths) - len(found)))
        weights = rows.batch(0, rows.n_rows).weights
        w = np.ones(rows.n_rows) if weights is None else np.asarray(to_host(weights), float)
        with np.errstate(invalid="ignore"):
            return Columns(w, np.swapaxes(losses, 0, 1) * w, rows.groups)

    def _lists(self, rows: Rows) -> ListRows:
        if isinstance(rows, ListRows):
            return rows
        assert isinstance(rows, Forecasts)
        batch = rows.batch(0, rows.n_rows)
        # The hard prediction needs one class, even if all lengths are 0.
        lists = TopLists.from_probabilities(batch.p, max(1, *self.lengths))
        return lists.with_outcomes(batch.y, part=True)


@dataclass(frozen=True)
class Longest:
    """The length of the longest list."""

    length: int

    def merge(self, other: Longest) -> Longest:
        """Of the lists of both."""
        return Longest(max(self.length, other.length))

    def to_bytes(self) -> bytes:
        """As bytes that `from_bytes` reads."""
        return dump(_KIND, {"length": self.length})

    @classmethod
    def from_bytes(cls, data: bytes) -> Longest:
        """What `to_bytes` wrote."""
        values = load(data, _KIND)
        with refusing("is missing or of another type"):
            return cls(int(values["length"]))


@dataclass(frozen=True)
class LongestRecipe(Recipe[Longest]):
    """How long the lists of a model are."""

    model: str

    def take(self, part: Part) -> Longest:
        """Of some lists."""
        rows = part.models[self.model]
        assert isinstance(rows, ListRows)
        return Longest(int(rows.lists.lengths.max(initial=0)))

    def load(self, stored: bytes) -> Longest:
        """From bytes."""
        return Longest.from_bytes(stored)
