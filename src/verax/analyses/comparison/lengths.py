"""How much longer lists improve the score: hard predictions, lists of several lengths, full distributions.

The expected padded score of a true list never gets worse when the list grows, so predictions of
different lengths can be compared by one number. How much it improves depends on the rule.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Unpack

import numpy as np

from verax.analyses.comparison.length_result import LengthComparison
from verax.analyses.comparison.shortening import LENGTHS, check_lengths, names_of, shorter_lists
from verax.analyses.listfaults import faults_in
from verax.analyses.unitsums import UnitColumns, UnitRecipe, UnitSums, means_of
from verax.common.specs import Whole
from verax.common.summaries import Summary, merges
from verax.inference.intervals import check_confidence
from verax.inputs.arrays import Floats, to_host
from verax.inputs.forecasts import Forecasts
from verax.inputs.handles import Handle, Part, Recipe, Summaries
from verax.inputs.lists.rows import ListFaults, ListRows
from verax.inputs.lists.toplists import TopLists
from verax.inputs.memory import open_rows
from verax.inputs.options import Reading, reads
from verax.inputs.rows import Rows
from verax.scores.base import Rule, losses_of
from verax.scores.combinators import Padded, padded
from verax.scores.registry import as_rules, name_of, padded_rules


@reads
def compare_lengths(
    y: object,
    p: object = None,
    *,
    k: Sequence[int] | None = None,
    rule: Rule | str | Sequence[Rule | str] | None = None,
    confidence: float = 0.95,
    **read: Unpack[Reading],
) -> LengthComparison:
    """Score a classifier's hard prediction, its top lists and its full distribution on the same outcomes.

    What each of them loses against another is a mean difference of losses of the same rows, with an interval.

    Parameters
    ----------
    y
    p
        Lists take the place of the full distribution.
    k : sequence of int, optional
        The lengths to compare; 1, 2, 3, 5, 10, ... if not given.
    rule : Rule, str or sequence of these, optional
        Symmetric proper rules to use instead of all that are registered.
    confidence
    **read

    Returns
    -------
    LengthComparison
        The mean losses and their differences.

    Examples
    --------
    >>> import verax as vx
    >>> p = [[0.5, 0.44, 0.03, 0.03], [0.3, 0.6, 0.05, 0.05], [0.1, 0.2, 0.65, 0.05]]
    >>> comparison = vx.compare_lengths([1, 0, 2], p, rule="brier")
    >>> [round(mean, 4) for mean in comparison["brier"]]
    [1.3333, 0.77, 0.5314, 0.5318, 0.5318]
    >>> print(comparison)
    gain from longer lists: 3 rows, 4 classes
    brier: the probability of the first class takes the loss from 1.333 to 0.77. The other classes take it to
    0.5318, which is not significantly different.
    prediction   brier
    ------------------
    hard        1.3333
    top-1       0.7700
    top-2       0.5314
    top-3       0.5318
    full        0.5318
    ------------------
    Against each other, with 95% intervals:
    brier: hard is 0.5633 (-1.0105 to 2.1372) above top-1, top-1 is 0.2382 (-0.3279 to 0.8043) above top-3,
    top-3 equals full.
    """
    check_confidence(confidence)
    chosen = _choose(rule)
    handle = open_rows(y, p, single=True, **read)
    model = handle.one_model()
    longest = handle.n_classes
    if handle.lists:
        longest = handle.summarise({"longest": LongestRecipe(model)})["longest"].length
    recipe = LengthRecipe(model, tuple(chosen), tuple(check_lengths(k, longest)))
    means = means_of(handle, recipe)
    faults = faults_in(handle, means.found)
    return read_lengths(handle, recipe, means.sums, means.covariance, means.found, faults, confidence)


def _choose(rules: Rule | str | Sequence[Rule | str] | None) -> list[Padded]:
    if rules is None:
        return padded_rules()
    return [rule if isinstance(rule, Padded) else padded(rule) for rule in as_rules(rules)]


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
    # In rows: weights with a mean of one.
    infinite = sums.infinite.high * (found.n_rows / sums.total)
    return (
        LengthComparison(
            names_of(recipe.lengths, lists=handle.lists),
            recipe.rules,
            {name: tuple(row.tolist()) for name, row in zip(names, sums.mean, strict=True)},
            {name: tuple(row.tolist()) for name, row in zip(names, infinite, strict=True)},
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

    def sizes(self, known: Mapping[str, int]) -> dict[str, int]:
        """The numbers of rules and of predictions."""
        return {"blocks": len(self.rules), "columns": 2 + len(self.lengths)}

    def columns(self, part: Part) -> UnitColumns:
        """The losses of some rows, rule by rule."""
        rows = part.models[self.model]
        lists = self._lists(rows)
        # Lists that are no longer stay as they are.
        n = bisect_left(self.lengths, lists.lists.lengths.max(initial=0)) if lists is rows else None
        shorter = shorter_lists(lists, self.lengths[:n])
        weights = rows.batch(0, rows.n_rows).weights
        w = np.ones(rows.n_rows) if weights is None else np.asarray(to_host(weights), float)
        sums = np.empty((len(self.rules), 2 + len(self.lengths), rows.n_rows))
        for c, each in enumerate([*shorter, rows]):
            for block, loss in zip(sums, losses_of(self.rules, each), strict=True):
                block[c] = to_host(loss)
        sums[:, len(shorter) + 1 :] = sums[:, len(shorter), None]
        if weights is not None:
            with np.errstate(invalid="ignore"):
                sums *= w
        return UnitColumns(w, sums, rows.groups)

    def _lists(self, rows: Rows) -> ListRows:
        if isinstance(rows, ListRows):
            return rows
        assert isinstance(rows, Forecasts)
        batch = rows.batch(0, rows.n_rows)
        # The hard prediction needs one class, even if all lengths are 0.
        lists = TopLists.from_probabilities(batch.p, max(1, *self.lengths))
        return lists.with_outcomes(batch.y, part=True)


class Longest(Summary, kind="longest list"):
    """The length of the longest list."""

    length: int = merges(Whole("most"))


@dataclass(frozen=True)
class LongestRecipe(Recipe[Longest]):
    """How long the lists of a model are."""

    model: str

    def take(self, part: Part) -> Longest:
        """Of some lists."""
        rows = part.models[self.model]
        assert isinstance(rows, ListRows)
        return Longest(int(rows.lists.lengths.max(initial=0)))
