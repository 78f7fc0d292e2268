"""The choice among methods: one gate, of a test of calibration and of losses on rows that no fit has seen.

Rows are dealt out to folds. A method is fitted without each fold, which gives its loss on rows that the fit
has not seen. The simplest method whose loss is within one standard error of the least is used if the
forecasts as they are fail a test of calibration at 5 %, and if its paired gain exceeds one standard error.
Otherwise nothing is done. A test of the gain in their place would miss most gains, because a held-out loss
already pays for the fit.

Where a penalty has a strength to choose, or methods are averaged, fits without each pair of folds show what
would have been chosen without a fold.

A blend is a weighted average of all methods. A method whose held-out rows lose d more in all than those of
the best has the weight exp(-d / (2 c)), where that of the best is one and c is the scale of the rule's noise
(`scaling.noise_of`), one for the log score. Doing nothing is one of the methods. Where no method stands out
the average is of many, and varies less than any of them; with many rows it becomes the best one.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, TypeVar

import numpy as np

from verax.analyses.comparison.compare import compare_losses
from verax.analyses.comparison.crossfits import factor_of_fits
from verax.analyses.comparison.result import Comparison
from verax.analyses.dealing import n_units
from verax.common.caching import cached_property
from verax.common.stages import stage
from verax.common.texts import percent
from verax.engines.differences import PairedTally
from verax.inputs.arrays import Floats, Ints
from verax.inputs.forecasts import Forecasts
from verax.inputs.groups import Groups, counts_by_kind
from verax.scores.base import Rule, losses_of
from verax.scores.registry import name_of
from verax.wings.recalibrate.fitting import configurations_of, fit
from verax.wings.recalibrate.forms import CalibrationMap
from verax.wings.recalibrate.records import BLEND, LEVEL, Gain, Trial, no_gain
from verax.wings.recalibrate.rows import MOST_ROWS, Configuration, FittingRows, zero_counts_as
from verax.wings.recalibrate.scaling import noise_of
from verax.wings.recalibrate.scoretest import Directions, calibration_p

# Held-out losses vary with the rows, and the fit to all rows differs from those of the folds. The standard
# error grows by this factor, or by that of the variance of the fits if it is larger: this factor alone held
# the gain of single methods on calibrated forecasts in 83 to 92 % of samples, both in 92 to 100 %.
WIDER = 1.25
# Probabilities of several forms that are scored at once: a pass over few rows takes its time to begin.
_TOGETHER = 2**16
# The level of the share of wrong rows that may not have been seen.
_UNSEEN_LEVEL = 0.025


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
        The rule that is minimised and measured.
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
        maps: dict[Configuration, CalibrationMap] = {}
        before: dict[str, CalibrationMap] = {}
        for how in configurations:
            begin = before.get(how.method) if near is None else near[how]
            maps[how] = before[how.method] = fit_to(how, begin)
        return maps

    @abstractmethod
    def fits_to(
        self, rows: Ints, weights: Floats | None
    ) -> Callable[[Configuration, CalibrationMap | None], CalibrationMap]:
        """Fits a configuration to some rows, which have these weights; the search begins at a form."""

    @abstractmethod
    def losses(self, forms: Sequence[CalibrationMap], rows: Ints) -> Floats:
        """The loss of each form on each of some rows, (F, n)."""

    @abstractmethod
    def held_out(self, forms: Sequence[CalibrationMap]) -> Any:
        """All rows, those of each fold as its form recalibrates them."""

    @abstractmethod
    def calibration_p(self) -> float:
        """The p-value of "the forecasts are calibrated as they are", by Rao's score test."""

    def unseen_cost(self, forms: Sequence[CalibrationMap]) -> float | None:
        """The loss of forms beyond that of the forecasts in a row whose most likely class is wrong.

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

    def losses(self, forms: Sequence[CalibrationMap], rows: Ints) -> Floats:
        y, p = self.y[rows], self.p[rows]
        n_together = max(1, _TOGETHER // max(p.size, 1))
        losses = []
        for start in range(0, len(forms), n_together):
            some = forms[start : start + n_together]
            after = np.concatenate([form.apply(p) for form in some])
            losses += losses_of([self.rule], Forecasts(np.tile(y, len(some)), after))
        return np.concatenate(losses).astype(float, copy=False).reshape(len(forms), len(y))

    def held_out(self, forms: Sequence[CalibrationMap]) -> Floats:
        p = np.empty(self.p.shape)
        for v, form in enumerate(forms):
            rows = self.folds == v
            p[rows] = form.apply(self.p[rows])
        return p

    def calibration_p(self) -> float:
        return calibration_p(Directions.of(self.p, ordered=self.ordered), self.y, self.weights, self.groups)

    def unseen_cost(self, forms: Sequence[CalibrationMap]) -> float | None:
        after, order = np.empty(self.p.shape), np.empty(self.p.shape, np.int64)
        counts = np.ones(len(self.y), np.bool_) if self.weights is None else self.weights != 0
        for v, form in enumerate(forms):
            rows = np.flatnonzero((self.folds == v) & counts)
            after[rows] = form.apply(self.p[rows])
            order[rows] = np.argsort(after[rows], axis=1, kind="stable")
            # Usually the first fold shows one.
            if (order[rows, -1] != self.y[rows]).any():
                return None
        kept = np.flatnonzero(counts)
        after, order = after[kept], order[kept]
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
        (V, N) losses of some configurations, fitted without fold v and the row's own; NaN for rows of fold v.
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
    def of(
        cls, sample: Folded, configurations: Sequence[Configuration], nested: Sequence[Configuration]
    ) -> Trials:
        """Fit and measure everything; without pairs of folds only what is `nested`.

        All configurations are fitted to one part of the rows after the other, because they share what is made
        of it. A fit without two folds serves the cross-validations without either of them.
        """
        n, n_folds = len(sample.y), sample.n_folds
        members = [np.flatnonzero(sample.folds == v) for v in range(n_folds)]
        trials = cls(
            sample,
            outer={how: np.empty(n) for how in configurations},
            inner={how: np.full((n_folds, n), np.nan) for how in nested},
            forms={how: [] for how in configurations},
            whole=sample.fitted(configurations, []),
        )
        pairs = [*combinations(range(n_folds), 2)] if nested else []
        n_fits = n_folds + len(pairs)
        for v, rows in enumerate(members):
            stage("cross-validation of recalibration", v, n_fits)
            fits = sample.fitted(configurations, [v], trials.whole)
            for (how, form), losses in zip(fits.items(), sample.losses([*fits.values()], rows), strict=True):
                trials.forms[how].append(form)
                trials.outer[how][rows] = losses
        for done, (a, b) in enumerate(pairs, start=n_folds):
            stage("cross-validation of recalibration", done, n_fits)
            both = np.concatenate([members[a], members[b]])
            without = np.repeat([b, a], [len(members[a]), len(members[b])])
            fits = sample.fitted(nested, [a, b], trials.whole)
            for how, losses in zip(fits, sample.losses([*fits.values()], both), strict=True):
                trials.inner[how][without, both] = losses
        return trials

    def least(self, among: Sequence[Configuration]) -> list[Configuration]:
        """The configuration that loses least without each fold, and last the one by all rows."""
        weights = self.sample.weights
        if len(among) == 1:
            return [*among] * (self.sample.n_folds + 1)
        chosen = []
        for v in range(self.sample.n_folds):
            rows = np.flatnonzero(self.sample.folds != v)
            w = None if weights is None else weights[rows]
            chosen.append(_least({how: mean_loss(self.inner[how][v][rows], w) for how in among}))
        return [*chosen, _least({how: mean_loss(self.outer[how], weights) for how in among})]

    def held_out(self, chosen: Sequence[Configuration]) -> Floats:
        """The losses of the configuration chosen without each fold, on that fold."""
        losses = np.empty(len(self.sample.y))
        for v in range(self.sample.n_folds):
            rows = self.sample.folds == v
            losses[rows] = self.outer[chosen[v]][rows]
        return losses

    def losses_of_fits(self, chosen: Sequence[Configuration]) -> Floats:
        """(V, N) losses in all rows of the configuration chosen without each fold, fitted without it."""
        return self.sample.losses(self.fits(chosen), np.arange(len(self.sample.y)))

    def fits(self, chosen: Sequence[Configuration]) -> list[CalibrationMap]:
        """The configuration chosen without each fold, fitted without it."""
        return [self.forms[chosen[v]][v] for v in range(self.sample.n_folds)]


Key = TypeVar("Key")


def _least(means: dict[Key, float]) -> Key:
    """The first of those with the smallest mean; infinite ones and none come last."""
    return min(means, key=lambda how: np.inf if np.isnan(means[how]) else means[how])


def mean_loss(losses: Floats, weights: Floats | None) -> float:
    """The mean of the rows that have weight, where losses of others may be infinite."""
    if weights is None:
        return float(losses.mean())
    kept = weights > 0
    return float(np.average(losses[kept], weights=weights[kept])) if kept.any() else float("nan")


def notes_on_fits(sample: Folded, fitted: Collection[str]) -> tuple[str, ...]:
    """Notes on the fits of some methods."""
    if len(sample.y) <= MOST_ROWS or not fitted:
        return ()
    return (f"Slopes and offsets were fitted to {MOST_ROWS:,} rows drawn at random; all rows were scored.",)


def to_nest(methods: Collection[str], asked: Sequence[str]) -> list[Configuration]:
    """What is fitted without pairs of folds: strengths to choose among, or everything that is averaged."""
    families = [configurations_of(name) for name in methods]
    return [how for family in families if asked == [BLEND] or len(family) > 1 for how in family]


@dataclass(frozen=True)
class Paired:
    """The mean by which losses fall, with its standard error over rows or groups."""

    mean: float
    error: float

    @classmethod
    def of(cls, before: Floats, after: Floats, sample: Folded) -> Paired:
        """Of losses on the same held-out rows."""
        tally = PairedTally(2).update(np.column_stack([before, after]), sample.weights, sample.groups)
        return cls(float(tally.means[2]), float(tally.standard_errors()[0][2]))

    @property
    def beyond_error(self) -> bool:
        """Whether it exceeds one standard error."""
        return bool(self.mean > self.error)


class Study:
    """All methods tried on a sample."""

    def __init__(self, sample: Folded, methods: list[str], asked: list[str], confidence: float) -> None:
        self.sample: Folded = sample
        self.asked: list[str] = asked
        self.confidence: float = confidence
        self.choice: bool = len(methods) > 1 and asked != [BLEND]
        tried = list(dict.fromkeys(["none", *methods]))
        families = {name: configurations_of(name) for name in tried}
        everything = [how for family in families.values() for how in family]
        self.trials: Trials = Trials.of(sample, everything, to_nest(tried, asked))
        # Within a method the strength is chosen, without each fold and by all rows.
        self.within: dict[str, list[Configuration]] = {
            name: self.trials.least(family) for name, family in families.items()
        }
        if asked == [BLEND]:
            self.within[BLEND] = [add_blend(self.trials)] * (sample.n_folds + 1)
        self.losses: dict[str, Floats] = {
            name: self.trials.held_out(picks) for name, picks in self.within.items()
        }
        self.calibration_p: float = sample.calibration_p() if self.choice else math.nan

    def facts(self) -> dict[str, Any]:
        """The fields of a recalibration that every kind of forecasts has."""
        sample = self.sample
        comparison = None
        if len(self.losses) > 1:
            comparison = compare_losses(
                self.losses,
                sample.rule,
                factor=self._factor(),
                weights=sample.weights,
                groups=sample.groups,
                reference="none",
                confidence=self.confidence,
            )
        method = self._chosen() if self.choice else [*self.within][-1]
        picks = self.within[method]
        return {
            "method": method,
            "asked": ", ".join(self.asked),
            "form": self.trials.whole[picks[-1]],
            "rule": name_of(sample.rule),
            "trials": tuple(self._trial(name, comparison) for name in self.within),
            "n_rows": len(sample.y),
            "n_groups": None if sample.groups is None else sample.groups.count_with(sample.weights),
            "folds": sample.n_folds,
            "seed": sample.seed,
            "confidence": self.confidence,
            "calibration_p": self.calibration_p,
            "comparison": comparison,
            "held_out": sample.held_out(self.trials.fits(picks)),
        }

    def _factor(self) -> Callable[[str, str], float]:
        """How much the standard error of a gain grows for the fit to all rows."""
        fits = {
            name: self.trials.losses_of_fits(picks) for name, picks in self.within.items() if name != "none"
        }
        of_fits = factor_of_fits(self.losses, fits, self.sample.weights, self.sample.groups)
        return lambda a, b: max(WIDER, of_fits(a, b))

    def _chosen(self) -> str:
        """The method that passes the gate, or "none"."""
        weights, none = self.sample.weights, self.losses["none"]
        means = {name: mean_loss(losses, weights) for name, losses in self.losses.items()}
        best = _least(means)
        if best == "none":
            return best

        def as_good(name: str) -> bool:
            if not np.isfinite(means[name]):
                return False
            return not Paired.of(self.losses[name], self.losses[best], self.sample).beyond_error

        pick = next(name for name in self.losses if name != "none" and (name == best or as_good(name)))
        if not np.isfinite(means["none"]):
            # An outcome had probability zero, which no calibrated forecast has.
            self.calibration_p = 0.0
            return pick
        gain = Paired.of(none, self.losses[pick], self.sample)
        passes = self.calibration_p <= LEVEL and gain.beyond_error and self._worth_its_errors(pick, gain.mean)
        return pick if passes else "none"

    def _worth_its_errors(self, method: str, gain: float) -> bool:
        """Whether a gain also pays for wrong rows, where none has shown what they cost."""
        cost, share = self._unseen_cost(method), self._unseen(_UNSEEN_LEVEL)
        return cost is None or (1 - share) * gain > share * cost

    def _unseen_cost(self, method: str) -> float | None:
        return self.sample.unseen_cost(self.trials.fits(self.within[method]))

    def _unseen(self, level: float) -> float:
        """The largest share of wrong rows that leave none in this number of units, at a level."""
        return float(1 - level ** (1 / self._units))

    @property
    def _units(self) -> int:
        groups, weights = self.sample.groups, self.sample.weights
        if groups is not None:
            return min(counts_by_kind(groups.count_with(weights)))
        return len(self.sample.y) if weights is None else int(np.count_nonzero(weights))

    def _trial(self, name: str, comparison: Comparison | None) -> Trial:
        if comparison is None or name == "none":
            return Trial(name, mean_loss(self.losses[name], self.sample.weights), no_gain(self.confidence))
        (models,) = comparison.models.values()
        by_name = {model.name: model for model in models}
        model, before = by_name[name], by_name["none"].mean
        gap = comparison.difference("none", name)
        gain = Gain(gap.difference, gap.interval, model.skill, model.skill_interval)
        cost, units = self._unseen_cost(name), self._units
        most = self._unseen((1 - self.confidence) / 2)
        gain = gain.without_errors(units, most, before, cost).agreeing(before)
        strength = self.within[name][-1].strength
        form = self.trials.whole[self.within[name][-1]]
        return Trial(name, model.mean, gain, form.words if strength is None else f"penalty {strength:g}")


# Methods with a smaller share are left out.
_LEAST = 0.01
# Most rows for the scale of the noise.
_ROWS = 2**13


@dataclass(frozen=True, eq=False)
class Blend(CalibrationMap):
    """A weighted average of what several methods make of a row.

    Attributes
    ----------
    methods : tuple of str
        Their names, the one with the largest weight first.
    parts : tuple of CalibrationMap
        The fit.
    weights : array of shape (M,)
        Of sum one.
    """

    kind = "blend"
    methods: tuple[str, ...]
    parts: tuple[CalibrationMap, ...]
    weights: Floats

    def apply(self, p: Floats) -> Floats:
        total = sum(w * part.apply(p) for w, part in zip(self.weights.tolist(), self.parts, strict=True))
        return np.asarray(total)

    def to_dict(self) -> dict[str, Any]:
        parts = [part.to_dict() for part in self.parts]
        return {
            "kind": self.kind,
            "methods": list(self.methods),
            "parts": parts,
            "weights": self.weights.tolist(),
        }

    @property
    def words(self) -> str:
        shares: dict[str, float] = {}
        for method, weight in zip(self.methods, self.weights.tolist(), strict=True):
            shares[method] = shares.get(method, 0.0) + weight
        largest = sorted(shares.items(), key=lambda entry: -entry[1])[:3]
        return ", ".join(f"{percent(share, 0)} {method}" for method, share in largest)


def add_blend(trials: Trials) -> Configuration:
    """Add the average of all configurations to their trials, without each fold and of all rows."""
    sample, how = trials.sample, Configuration(BLEND)
    assert isinstance(sample, FoldedRows)
    scale = n_units(sample.groups, len(sample.y), sample.weights) / len(sample.y) / (2 * _noise(sample))
    among = list(trials.outer)
    outer = np.empty(len(sample.y))
    forms: list[CalibrationMap] = []
    for v in range(sample.n_folds):
        rows = np.flatnonzero(sample.folds != v)
        inner = {candidate: trials.inner[candidate][v][rows] for candidate in among}
        fits = {candidate: trials.forms[candidate][v] for candidate in among}
        forms.append(_blended(fits, _weights(sample, inner, rows, scale)))
        out = np.flatnonzero(sample.folds == v)
        (outer[out],) = sample.losses(forms[-1:], out)
    weights = _weights(
        sample, {candidate: trials.outer[candidate] for candidate in among}, np.arange(len(sample.y)), scale
    )
    trials.whole[how] = _blended(trials.whole, weights)
    trials.outer[how], trials.forms[how] = outer, forms
    return how


def _blended(forms: Mapping[Configuration, CalibrationMap], weights: dict[Configuration, float]) -> Blend:
    kept = sorted(weights, key=lambda how: -weights[how])
    shares = np.array([weights[how] for how in kept])
    return Blend(tuple(how.method for how in kept), tuple(forms[how] for how in kept), shares)


def _weights(
    sample: FoldedRows, losses: dict[Configuration, Floats], rows: Ints, scale: float
) -> dict[Configuration, float]:
    """The share of each configuration, from its losses on rows that its fits have not seen."""
    w = None if sample.weights is None else sample.weights[rows]
    means = {how: mean_loss(loss, w) for how, loss in losses.items()}
    finite = {how: mean for how, mean in means.items() if np.isfinite(mean)}
    if not finite:
        return {Configuration("none"): 1.0}
    least = min(finite.values())
    shares = {how: float(np.exp(-(mean - least) * len(rows) * scale)) for how, mean in finite.items()}
    total = sum(shares.values())
    kept = {how: share for how, share in shares.items() if share >= _LEAST * total}
    return {how: share / sum(kept.values()) for how, share in kept.items()}


def _noise(sample: FoldedRows) -> float:
    """The scale of the rule's noise at the forecasts as they are."""
    some = slice(None, None, -(-len(sample.y) // _ROWS))
    p = sample.p[some]
    z = np.ascontiguousarray(np.log(np.maximum(p, zero_counts_as(p))).T)
    weights = np.ones(len(p)) if sample.weights is None else sample.weights[some]
    return noise_of(sample.rule, z, sample.y[some], weights)[0]
