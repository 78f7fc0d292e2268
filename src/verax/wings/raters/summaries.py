"""Sums of rows that several raters labelled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from verax.analyses.comparison.paired import PairedSums
from verax.common.packing import UnreadableError
from verax.engines.differences import PairedTally
from verax.errors import InputError, passing
from verax.inputs.arrays import Floats, Ints, to_host, widen
from verax.inputs.forecasts import Forecasts
from verax.inputs.groups import Groups
from verax.inputs.handles import Part, Recipe
from verax.inputs.shares import Shares
from verax.scores.base import Rule, losses_by_outcome, losses_of

# The sums: the loss of all cases with the number of raters; disagreement and loss of cases with two raters
# or more; whether any of their raters chose each class; the loss against each rater; the losses of the rater
# and of the forecast against all others; what each rater adds to the disagreement and loss of cases with
# three raters or more.
LOSS, RATED, SEEN, AGAINST, OTHERS, ADDED = "loss", "rated", "seen", "against:{}", "others:{}", "added:{}"


@dataclass(frozen=True)
class RaterRecipe(Recipe[PairedSums], cases=True):
    """Losses, disagreement and the losses of raters, of one model.

    Attributes
    ----------
    model : str
        The model.
    rule : Rule
        The rule.
    unbiased : bool
        Whether the disagreement of m raters is multiplied by m / (m - 1).
    """

    model: str
    rule: Rule
    unbiased: bool

    def check(self, summary: PairedSums) -> None:
        """Refuse sums of something else."""
        if not {LOSS, RATED} <= summary.tallies.keys():
            raise UnreadableError("has no sums of raters", "tallies")

    def take(self, part: Part) -> PairedSums:
        """The sums of some rows."""
        rows = part.models[self.model]
        if not isinstance(rows, Forecasts) or not isinstance(rows.outcomes, Shares):
            raise no_raters()
        losses = np.asarray(to_host(losses_of([self.rule], rows)[0]), float)
        everything = slice(0, rows.n_rows)
        shares = np.asarray(to_host(rows.outcomes.of(everything)), float)
        counts = rows.outcomes.counts_of(everything)
        size = np.full(rows.n_rows, np.inf) if counts is None else counts.sum(axis=1)
        disagreement = np.asarray(self.rule.entropy(shares / shares.sum(axis=1, keepdims=True)), float)
        if self.unbiased and counts is not None:
            disagreement = disagreement * (size / np.maximum(size - 1, 1))
        weights = None if rows.weights is None else np.asarray(to_host(rows.weights), float)
        known = np.where(np.isfinite(size), size, 0.0)
        sums = {
            LOSS: _tally(np.column_stack([losses, known]), weights, rows.groups),
            RATED: _tally(np.column_stack([disagreement, losses]), weights, rows.groups, size >= 2),
            SEEN: _tally((shares > 0).astype(float), None, None, size >= 2, pairs=0),
        }
        codes = rows.outcomes.codes_of(everything)
        if codes is not None and counts is not None and rows.outcomes.raters is not None:
            sums |= self._by_rater(rows, rows.outcomes.raters, codes, counts, weights)
            if self.unbiased:
                both = np.column_stack([disagreement, losses])
                sums |= self._added(rows, rows.outcomes.raters, codes, counts, both, weights)
        return PairedSums(sums)

    def _by_rater(
        self, rows: Forecasts, names: tuple[str, ...], codes: Ints, counts: Floats, weights: Floats | None
    ) -> Mapping[str, PairedTally]:
        """The sums of each rater."""
        k = rows.n_classes
        p = np.asarray(to_host(widen(rows.batch(0, rows.n_rows).p)), float)
        of_forecast = losses_by_outcome(self.rule, p)
        # A rater's label is a forecast of certainty.
        of_label = losses_by_outcome(self.rule, np.eye(k))
        sums = {}
        for name, labels in zip(names, codes.T, strict=True):
            given = labels >= 0
            label = np.where(given, labels, 0)
            at = np.arange(len(labels))
            others = counts.copy()
            others[at, label] -= given
            total = others.sum(axis=1)
            others /= np.maximum(total, 1)[:, None]
            both = [_mean(others, of_label[label]), _mean(others, of_forecast)]
            sums[AGAINST.format(name)] = _tally(of_forecast[at, label][:, None], weights, rows.groups, given)
            sums[OTHERS.format(name)] = _tally(
                np.column_stack(both), weights, rows.groups, given & (total > 0)
            )
        return sums

    def _added(
        self,
        rows: Forecasts,
        names: tuple[str, ...],
        codes: Ints,
        counts: Floats,
        both: Floats,
        weights: Floats | None,
    ) -> Mapping[str, PairedTally]:
        """The disagreement and loss that each rater adds, from those without the rater, (m - 1) / m times."""
        p = np.asarray(to_host(widen(rows.batch(0, rows.n_rows).p)), float)
        of_forecast = losses_by_outcome(self.rule, p)
        size = counts.sum(axis=1)
        sums = {}
        for name, labels in zip(names, codes.T, strict=True):
            at = np.flatnonzero((labels >= 0) & (size >= 3))
            columns = np.zeros((len(labels), 2))
            if len(at):
                m, label = size[at], labels[at]
                others = counts[at]
                others[np.arange(len(at)), label] -= 1
                others /= (m - 1)[:, None]
                without = np.asarray(self.rule.entropy(others), float) * (m - 1) / (m - 2)
                columns[at, 0] = (both[at, 0] - without) * (m - 1) / m
                columns[at, 1] = (of_forecast[at, label] - both[at, 1]) / m
            sums[ADDED.format(name)] = _tally(columns, weights, rows.groups, size >= 3)
        return sums


def _mean(shares: Floats, losses: Floats) -> Floats:
    """The mean of losses by class; a class without a share costs nothing."""
    return np.asarray(np.where(shares > 0, shares * np.where(shares > 0, losses, 0.0), 0.0).sum(axis=1))


def _tally(
    columns: Floats, weights: Floats | None, groups: Groups | None, rows: Any = None, pairs: int = 1
) -> PairedTally:
    """The sums of columns, and of their differences, over all rows, or over some."""
    if rows is not None:
        at = np.flatnonzero(rows)
        columns = columns[at]
        weights = None if weights is None else weights[at]
        groups = None if groups is None or not len(at) else groups.at(at)
    tally = PairedTally(columns.shape[1], pairs=pairs)
    return tally.update(columns, weights, groups) if len(columns) else tally


def no_raters() -> InputError:
    """The error about outcomes that are single classes."""
    return InputError(
        "must be labels of several raters",
        argument="y",
        kind="type",
        found="there is one class per row",
        remedies=[passing("for counts, columns or shares of raters", raters=...)],
    )
