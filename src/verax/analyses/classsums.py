"""Losses by class of predictions that are not in memory, and what they say against class frequencies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from verax.analyses.comparison.references import ClassCounts, OtherGroups
from verax.analyses.parts import plain_sums, seen
from verax.common.packing import UnreadableError
from verax.common.specs import Truth, Whole
from verax.common.stored import only_counts, only_weights
from verax.common.summaries import Summary, merges
from verax.engines.clusters import ByLabel, Cells, GroupLabels, leave_one_out
from verax.engines.differences import PairedTally
from verax.engines.keys import compiled
from verax.engines.pieces import all_pairs
from verax.engines.summing import PlainSums
from verax.engines.sums import Moments, Sum, Sums
from verax.inputs.arrays import Floats, Ints
from verax.inputs.groups import Groups
from verax.inputs.handles import Part, Recipe
from verax.scores.base import Rule

# The sums of each rule: of w*l and w*l*l, with the weights squared, and of w and the number of infinite
# losses.
_FIRST, _SECOND, _FIRST_SQUARED, _SECOND_SQUARED, _INFINITE, _N_INFINITE = range(6)


@dataclass(frozen=True)
class FrequencyLosses:
    """Losses of forecasting class frequencies.

    Attributes
    ----------
    means : array of shape (K, R)
        The mean loss by each rule where each class happened; 0 where it never did.
    sums : array of shape (G, R) or None
        The sums of weight times loss in each group.
    """

    means: Floats
    sums: Floats | None = None


class ClassSums(Summary, kind="losses by class"):
    """Sums over the rows of each class.

    Attributes
    ----------
    rows : Sum
        (K, 3) numbers of rows that have weight, sums of w and of w*w.
    losses : Sum
        (K, R, 6) the sums of each rule.
    weighted : bool
        Whether rows have weights.
    surplus : int
        By how much the rows of all classes are more than the cases, where these have several raters.
    labels, groups : arrays or None
        The groups, and (G, K, 1 + R) the sums of w and w times loss of each class in each of them.
    """

    rows: Sum = merges(Sums("classes", 3, least=0))
    losses: Sum = merges(Sums("classes", "rules", 6))
    weighted: bool = merges(Truth("any"))
    surplus: int = merges(Whole(), default=0)
    labels: Any = merges(GroupLabels(), default=None)
    groups: Floats | None = merges(ByLabel("classes", "1+rules"), default=None)

    def _check(self) -> None:
        only_counts(self.rows.high[:, 0])
        only_weights(self.rows.high[:, 1])
        if not ((self.rows.high > 0).all(axis=1) == (self.rows.high > 0).any(axis=1)).all():
            raise UnreadableError("has weights without rows, or rows without weight", "rows")
        if self.n_rows < bool(self.rows.high[:, 0].any()):
            raise UnreadableError("is more than there are rows", "surplus")
        if self.groups is not None:
            only_weights(self.groups[:, :, 0])

    @classmethod
    def of_plain(cls, plain: PlainSums) -> ClassSums:
        """Sums of rows of equal weight with finite losses."""
        n = plain.cells.sum(axis=1)
        sums = np.zeros((*plain.losses.shape[:2], 6))
        sums[:, :, [_FIRST, _FIRST_SQUARED]] = plain.losses[:, :, :1]
        sums[:, :, [_SECOND, _SECOND_SQUARED]] = plain.losses[:, :, 1:]
        return cls(Sum.of(np.stack([n, n, n], axis=1)), Sum.of(sums), False)

    @classmethod
    def _named(cls, values: Mapping[str, Any]) -> Mapping[str, Any]:
        # Earlier files counted the classes of a case as rows.
        return {"surplus": 0, **values}

    # ---- what they say ---------------------------------------------------------------------

    @property
    def n_rows(self) -> int:
        """The number of rows that have weight; a case of several raters is one."""
        return int(self.rows.high[:, 0].sum()) - self.surplus

    def means(self, k: int) -> list[tuple[float, float, float]]:
        """The mean loss in a class by each rule, with its standard error and degrees of freedom."""
        n, w, squares = self.rows.high[k].tolist()
        sums = self.losses.high[k]
        mean = sums[:, _FIRST] / w
        freedom = w * w / squares - 1
        if self.groups is not None:
            variance, freedom = leave_one_out(self.groups[:, k, 0], self.groups[:, k, 1:])
        else:
            around = sums[:, _SECOND_SQUARED] - mean * (2 * sums[:, _FIRST_SQUARED] - mean * squares)
            with np.errstate(invalid="ignore", divide="ignore"):
                variance = np.maximum(around, 0.0) / w**2 / (1 - np.divide(1, n))
        results = zip(mean.tolist(), np.sqrt(variance).tolist(), sums[:, _N_INFINITE] > 0, strict=True)
        return [(np.inf, np.nan, 0.0) if lost else (value, error, freedom) for value, error, lost in results]

    @property
    def counts(self) -> ClassCounts:
        """How often each class happened."""
        n = self.n_rows
        if self.groups is None:
            return ClassCounts(n, Sum(self.rows.high[:, 1], self.rows.low[:, 1]))
        weight = self.groups[:, :, 0]
        keys = np.flatnonzero(weight)
        return ClassCounts.of_cells(n, self.labels, Cells(keys, Sum.of(weight.flat[keys]), weight.shape[1]))

    def frequency_losses(self, rules: Sequence[Rule], *, copies: bool) -> FrequencyLosses:
        """The losses of forecasting the class frequencies of all other groups.

        Of rows with weights and without groups every row leaves out the mean weight of its class, weighted
        by itself: of n rows, means are then off by terms of the order of 1 / n^2.
        """
        counts, k = self.counts, len(self.rows.high)
        reference = OtherGroups(counts, copies)
        means = np.zeros((k, len(rules)))
        if counts.cells is None:
            _, w, squares = self.rows.high.T
            happened = np.flatnonzero(w > 0)
            left_out = squares[happened] / w[happened] if self.weighted else None
            means[happened] = np.column_stack(reference.losses(rules, happened, left_out, None))
            return FrequencyLosses(means)
        group, happened = np.divmod(counts.cells.keys, k)
        weight = counts.cells.sums.high
        losses = reference.losses(rules, happened, weight, Groups(group, self.labels))
        sums = np.zeros((len(self.labels), len(rules)))
        for r, loss in enumerate(losses):
            sums[:, r] = np.bincount(group, weight * loss, len(sums))
            means[:, r] = np.bincount(happened, weight * loss, k)
        means /= np.where(counts.weights.high > 0, counts.weights.high, 1.0)[:, None]
        return FrequencyLosses(means, sums)

    def moments(self, r: int, reference: Floats) -> tuple[Moments, Moments]:
        """The moments of the loss, of the reference and of their difference; then with the weights
        squared.
        """
        _, w, w2 = self.rows.high.T
        sums = self.losses.high[:, r]
        lost, n_infinite = sums[:, _INFINITE], float(sums[:, _N_INFINITE].sum())
        both = []
        for weight, first, second in ((w, _FIRST, _SECOND), (w2, _FIRST_SQUARED, _SECOND_SQUARED)):
            finite = weight - (lost if first == _FIRST else np.where(lost > 0, lost**2, 0.0))
            a, b = sums[:, first], sums[:, second]
            columns = [
                (finite.sum(), a.sum(), b.sum()),
                (weight.sum(), (weight * reference).sum(), (weight * reference**2).sum()),
                (
                    finite.sum(),
                    (a - reference * finite).sum(),
                    (b - 2 * reference * a + reference**2 * finite).sum(),
                ),
            ]
            counts = [n_infinite, 0.0, n_infinite]
            weights, firsts, seconds = np.array(columns).T
            both.append(Moments.from_sums(weights, firsts, seconds, infinite=counts, count=counts))
        return both[0], both[1]


@dataclass(frozen=True)
class ClassRecipe(Recipe[ClassSums]):
    """Losses by class of one model.

    Attributes
    ----------
    model : str
        The model.
    rules : tuple of Rule
        The rules.
    kept : tuple of Rule, optional
        The rules whose losses other recipes will ask for, if not all: those of the others are not written.
    """

    model: str
    rules: tuple[Rule, ...]
    kept: tuple[Rule, ...] | None = field(default=None, repr=False, compare=False)

    def sizes(self, known: Mapping[str, int]) -> dict[str, int]:
        """The number of rules."""
        return {"rules": len(self.rules)}

    def n_groups(self, summary: ClassSums) -> int:
        """The number of groups that a summary has sums of."""
        return 0 if summary.labels is None else len(summary.labels)

    def take(self, part: Part) -> ClassSums:
        """The sums of some rows."""
        plain = plain_sums(part, self.model, self.rules, self.kept)
        if plain is not None:
            return ClassSums.of_plain(plain)
        rows, groups = seen(part, self.model, self.rules), part.models[self.model].groups
        k, w = part.models[self.model].n_classes, rows.weights
        kept: Any = slice(None)
        if w is not None and not w.all():
            kept = w > 0
            w = w[kept]
        y = rows.y[kept]
        n = np.bincount(y, minlength=k).astype(float)
        weight = n if w is None else np.bincount(y, w, k)
        square = n if w is None else np.bincount(y, w * w, k)
        sums, grouped = np.zeros((k, len(self.rules), 6)), []
        for r, rule in enumerate(self.rules):
            loss = rows.losses[rule][kept]
            infinite = np.isinf(loss)
            if infinite.any():
                lost = None if w is None else w[infinite]
                sums[:, r, _INFINITE] = np.bincount(y[infinite], lost, k)
                sums[:, r, _N_INFINITE] = np.bincount(y[infinite], minlength=k)
                loss = np.where(infinite, 0.0, loss)
            sums[:, r, :_INFINITE] = _sums_by_class(y, w, loss, k)
            if groups is not None:
                grouped.append(loss if w is None else w * loss)
        labels = by_group = None
        if groups is not None:
            labels = groups.labels
            cell, size = groups.codes[kept] * k + y, len(labels) * k
            columns = [np.bincount(cell, column, size) for column in (w, *grouped)]
            by_group = np.stack(columns, axis=1).reshape(len(labels), k, -1).astype(float)
        counts = np.stack([n, weight, square], axis=1)
        surplus = 0 if part.places is None else len(y) - len(np.unique(part.places[kept]))
        return ClassSums(Sum.of(counts), Sum.of(sums), w is not None, surplus, labels, by_group)


def _sums_by_class(y: Ints, weights: Floats | None, loss: Floats, n_classes: int) -> Floats:
    """(K, 4) the sums of w*l and w*l*l, and those with the weights squared; of finite losses."""
    sums = np.zeros((n_classes, 4))
    if weights is None:
        for i, column in enumerate((loss, loss * loss)):
            sums[:, i] = sums[:, i + 2] = np.bincount(y, column, n_classes)
    elif compiled(len(y)):
        from verax.kernels.binning import sum_by_class

        sum_by_class(y, weights, np.ascontiguousarray(loss), sums)
    else:
        first = weights * loss
        for i, column in enumerate((first, first * loss, weights * first, weights * first * loss)):
            sums[:, i] = np.bincount(y, column, n_classes)
    return sums


def with_frequencies(
    models: Sequence[ClassSums], paired: PairedTally | None, r: int, frequencies: FrequencyLosses
) -> PairedTally:
    """The tally of the losses of models by a rule, with class frequencies as the last model.

    `paired` has the sums of the models and of their differences; there may be none of a single model.
    """
    first, n = models[0], len(models)
    reference = frequencies.means[:, r]
    tally = PairedTally(n + 1, first.n_rows, first.n_rows)
    moments = [model.moments(r, reference) for model in models]
    exponent = 0 if paired is None else paired.exponent
    tally.exponent = exponent
    factor = 2.0**-exponent
    for name, power in (("moments", 1), ("squares", 2)):
        of_models = [pair[power - 1].scaled(factor**power) for pair in moments]
        total = Moments.from_sums(of_models[0].weight.high[1:2], [0.0], [0.0])
        between = None if paired is None else getattr(paired, name)
        columns = [(total, 0), *((model, 0) for model in of_models), (of_models[0], 1)]
        for a, b in all_pairs(n + 1):
            if b == n:
                columns.append((of_models[a], 2))
            else:
                assert between is not None
                columns.append((between, 1 + n + all_pairs(n).index((a, b))))
        setattr(tally, name, _gathered(columns))
    if first.groups is not None and frequencies.sums is not None:
        tally.labels = first.labels
        sums = [model.groups for model in models]
        weight = first.groups[:, :, 0]
        losses = [by_class[:, :, 1 + r].sum(axis=1) for by_class in sums if by_class is not None]
        losses.append(frequencies.sums[:, r])
        pairs = [losses[a] - losses[b] for a, b in all_pairs(n + 1)]
        tally.cluster_sums = factor * np.column_stack([weight.sum(axis=1), *losses, *pairs])
    return tally


def _gathered(columns: Sequence[tuple[Moments, int]]) -> Moments:
    """Moments of columns of several moments."""

    def sums(name: str) -> Sum:
        parts = [getattr(moments, name) for moments, _ in columns]
        at = [i for _, i in columns]
        return Sum(
            np.array([part.high[i] for part, i in zip(parts, at, strict=True)]),
            np.array([part.low[i] for part, i in zip(parts, at, strict=True)]),
        )

    return Moments(
        sums("weight"),
        sums("total"),
        np.array([moments.m2[i] for moments, i in columns]),
        sums("infinite"),
        np.array([moments.n_infinite[i] for moments, i in columns]),
    )
