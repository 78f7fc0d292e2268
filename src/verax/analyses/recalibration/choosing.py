"""The choice among methods by cross-validation, and cross-validation of the choice itself.

Rows are dealt out to folds. A configuration is fitted without each fold, which gives the loss on rows that
the fit has not seen, and without each pair of folds: for the rows outside of one fold, that is a
cross-validation of their own. So the choice that would have been made without a fold is known, and what it
loses there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np

from verax.analyses.recalibration.fitting import fit
from verax.analyses.recalibration.forms import CalibrationMap
from verax.analyses.recalibration.rows import Configuration, FittingRows
from verax.common.caching import cached_property
from verax.engines.differences import PairedTally
from verax.inference.estimates import Estimate, Units
from verax.inputs.arrays import Floats, Ints
from verax.inputs.forecasts import Forecasts
from verax.inputs.groups import Groups
from verax.scores.base import Rule, losses_of

# A method is taken if a one-sided t test says, at this level, that it gains on rows that no fit has seen.
LEVEL = 0.05
# A simpler method is taken instead of the best one if it loses no more than a standard error more, which is
# what a one-sided test at this level says.
_ONE_STANDARD_ERROR = 0.15865525393145707


@dataclass(frozen=True)
class Folded(ABC):
    """Valid rows with their folds: what methods are fitted to and measured on.

    Attributes
    ----------
    y : (N,) int array
        Positions of outcomes: among the classes, or in top lists.
    weights, groups
        Weights and groups or None.
    rule : Rule
        What is minimised and measured.
    folds : (N,) int array
        The fold of each row, 0 to n_folds - 1.
    """

    y: Ints
    weights: Floats | None
    groups: Groups | None
    rule: Rule
    folds: Ints
    seed: int

    @property
    def n_folds(self) -> int:
        return int(self.folds.max()) + 1

    def fitted(
        self,
        configurations: Sequence[Configuration],
        without: Sequence[int],
        near: Mapping[Configuration, CalibrationMap] | None = None,
    ) -> dict[Configuration, CalibrationMap]:
        """Configurations fitted to all rows but those of some folds.

        Searches begin at `near`; without it, that of a method begins at its last configuration.
        """
        kept = np.flatnonzero(~np.isin(self.folds, without))
        fit_to = self.fits_to(kept, None if self.weights is None else self.weights[kept])
        found: dict[Configuration, CalibrationMap] = {}
        before: dict[str, CalibrationMap] = {}
        for how in configurations:
            begin = before.get(how.method) if near is None else near[how]
            found[how] = before[how.method] = fit_to(how, begin)
        return found

    @abstractmethod
    def fits_to(
        self, rows: Ints, weights: Floats | None
    ) -> Callable[[Configuration, CalibrationMap | None], CalibrationMap]:
        """Fits a configuration to some rows, which have these weights; the search begins at a form."""

    @abstractmethod
    def losses(self, form: CalibrationMap, rows: Ints) -> Floats:
        """What a form loses on each of some rows."""

    @abstractmethod
    def held_out(self, forms: Sequence[CalibrationMap]) -> Any:
        """All rows, those of each fold as its form recalibrates them."""

    def unseen_cost(self, forms: Sequence[CalibrationMap]) -> float | None:
        """What forms lose more than the forecasts as they are in a row whose most likely class is wrong.

        None where some held-out row shows it, so that losses tell.
        """
        return None


@dataclass(frozen=True)
class FoldedRows(Folded):
    """Full distributions with their folds.

    Attributes
    ----------
    p : (N, K) array
        Probabilities.
    ordered : bool
        Whether the classes have an order.
    """

    p: Floats
    ordered: bool

    @cached_property
    def _given(self) -> FittingRows:
        return FittingRows.of(self.y, self.p, None)

    def fits_to(
        self, rows: Ints, weights: Floats | None
    ) -> Callable[[Configuration, CalibrationMap | None], CalibrationMap]:
        some = self._given.taken(rows, weights)

        def fit_to(how: Configuration, near: CalibrationMap | None) -> CalibrationMap:
            return fit(how, some, self.rule, ordered=self.ordered, seed=self.seed, near=near)

        return fit_to

    def losses(self, form: CalibrationMap, rows: Ints) -> Floats:
        (found,) = losses_of([self.rule], Forecasts(self.y[rows], form.apply(self.p[rows])))
        return np.asarray(found, dtype=float)

    def held_out(self, forms: Sequence[CalibrationMap]) -> Floats:
        p = np.empty(self.p.shape)
        for v, form in enumerate(forms):
            rows = self.folds == v
            p[rows] = form.apply(self.p[rows])
        return p

    def unseen_cost(self, forms: Sequence[CalibrationMap]) -> float | None:
        kept = np.arange(len(self.y)) if self.weights is None else np.flatnonzero(self.weights)
        after = self.held_out(forms)[kept]
        order = np.argsort(after, axis=1, kind="stable")
        if (order[:, -1] != self.y[kept]).any():
            return None
        pairs = (Forecasts(order[:, -2], p) for p in (self.p[kept], after))
        before, then = (np.asarray(losses_of([self.rule], rows)[0], dtype=float) for rows in pairs)
        weights = None if self.weights is None else self.weights[kept]
        return mean_loss(then, weights) - mean_loss(before, weights)


@dataclass
class Trials:
    """The losses of every configuration on rows that its fit has not seen.

    Attributes
    ----------
    outer : dict
        (N,) losses of each configuration, fitted without the row's fold.
    inner : dict
        (V, N) losses of each configuration, fitted without fold v and the row's own; NaN for rows of fold v.
        Empty where nothing is chosen.
    forms : dict
        The fits without each fold.
    whole : dict
        The fits to all rows. The others begin their search there, which saves time; they end where the rows
        they may see say.
    """

    sample: Folded
    outer: dict[Configuration, Floats] = field(default_factory=dict)
    inner: dict[Configuration, Floats] = field(default_factory=dict)
    forms: dict[Configuration, list[CalibrationMap]] = field(default_factory=dict)
    whole: dict[Configuration, CalibrationMap] = field(default_factory=dict)

    @classmethod
    def of(cls, sample: Folded, configurations: Sequence[Configuration], *, nested: bool) -> Trials:
        """Fit and measure everything; without `nested` only what no choice depends on.

        All configurations are fitted to one part of the rows after the other, because they share what is made
        of it. A fit without two folds serves the cross-validations without either of them.
        """
        n, n_folds = len(sample.y), sample.n_folds
        members = [np.flatnonzero(sample.folds == v) for v in range(n_folds)]
        trials = cls(
            sample,
            outer={how: np.empty(n) for how in configurations},
            inner={how: np.full((n_folds, n), np.nan) for how in configurations if nested},
            forms={how: [] for how in configurations},
            whole=sample.fitted(configurations, []),
        )
        for v, rows in enumerate(members):
            for how, form in sample.fitted(configurations, [v], trials.whole).items():
                trials.forms[how].append(form)
                trials.outer[how][rows] = sample.losses(form, rows)
        for a, b in combinations(range(n_folds), 2) if nested else ():
            both = np.concatenate([members[a], members[b]])
            without = np.repeat([b, a], [len(members[a]), len(members[b])])
            for how, form in sample.fitted(configurations, [a, b], trials.whole).items():
                trials.inner[how][without, both] = sample.losses(form, both)
        return trials

    def selected(self, among: Sequence[Configuration], *, gated: bool) -> list[Configuration]:
        """The configuration chosen without each fold, and last the one chosen by all rows."""
        chosen = []
        for v in range(self.sample.n_folds):
            rows = np.flatnonzero(self.sample.folds != v)
            chosen.append(self._best({how: self.inner[how][v][rows] for how in among}, rows, gated))
        rows = np.arange(len(self.sample.y))
        return [*chosen, self._best({how: self.outer[how] for how in among}, rows, gated)]

    def _best(self, losses: dict[Configuration, Floats], rows: Ints, gated: bool) -> Configuration:
        """The configuration with the smallest mean; if `gated`, the simplest that is as good, or none."""
        sample = self.sample
        w = None if sample.weights is None else sample.weights[rows]
        means = {how: mean_loss(loss, w) for how, loss in losses.items()}
        best, none = min(means, key=lambda how: means[how]), Configuration("none")
        if not gated or best == none:
            return best
        labels = None if sample.groups is None else sample.groups.labels[sample.groups.codes[rows]]

        def gains(how: Configuration, on: Configuration, level: float) -> bool:
            return beyond_noise(losses[on], losses[how], w, labels, level)

        if not gains(best, none, LEVEL):
            return none
        simpler = (how for how in losses if how not in (none, best))
        as_good = (h for h in simpler if gains(h, none, LEVEL) and not gains(best, h, _ONE_STANDARD_ERROR))
        order = list(losses)
        return min([best, *as_good], key=order.index)

    def held_out(self, chosen: Sequence[Configuration]) -> Floats:
        """The losses of the configuration chosen without each fold, on that fold."""
        losses = np.empty(len(self.sample.y))
        for v in range(self.sample.n_folds):
            rows = self.sample.folds == v
            losses[rows] = self.outer[chosen[v]][rows]
        return losses

    def fits(self, chosen: Sequence[Configuration]) -> list[CalibrationMap]:
        """The configuration chosen without each fold, fitted without it."""
        return [self.forms[chosen[v]][v] for v in range(self.sample.n_folds)]

    def losses_of_fits(self, chosen: Sequence[Configuration]) -> Floats:
        """(V, N) losses in all rows of the configuration chosen without each fold, fitted without it."""
        everything = np.arange(len(self.sample.y))
        return np.array([self.sample.losses(form, everything) for form in self.fits(chosen)])


def beyond_noise(
    before: Floats, after: Floats, weights: Floats | None, labels: Any, level: float = LEVEL
) -> bool:
    """Whether losses on rows that no fit has seen fall, by a one-sided test: that of comparisons."""
    if not np.isfinite(mean_loss(before, weights)):
        return bool(np.isfinite(mean_loss(after, weights)))
    tally = PairedTally(2).update(np.column_stack([before, after]), weights, labels)
    p_value = Estimate.of(tally, np.zeros((0, 0)), Units("rows")).p_values()[2]
    return bool(tally.means[2] > 0 and p_value / 2 < level)


def mean_loss(losses: Floats, weights: Floats | None) -> float:
    """The mean of the rows that have weight, where losses of others may be infinite."""
    if weights is None:
        return float(losses.mean())
    kept = weights > 0
    return float(np.average(losses[kept], weights=weights[kept])) if kept.any() else float("nan")
