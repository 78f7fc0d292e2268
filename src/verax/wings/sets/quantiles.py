"""Nonconformity scores of rows, counted so that the counts of parts merge, and their quantile."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from verax._settings import settings
from verax.analyses.parts import dense, probabilities, scaled, seen
from verax.common.hashing import mixed
from verax.common.packing import UnreadableError
from verax.common.specs import Number, Truth, Whole
from verax.common.stored import only_weights
from verax.common.summaries import Summary, merges
from verax.engines.clusters import ByLabel, GroupLabels
from verax.engines.keyed import ExactOrBins, Keyed, KeyedSums, Run
from verax.engines.keys import EXACT, loss_keys
from verax.errors import InputError, show
from verax.inputs.arrays import Bools, Floats, Ints
from verax.inputs.groups import check_one_way
from verax.inputs.handles import Part, Recipe
from verax.inputs.sets.rows import mass_before
from verax.scores.base import Rule, losses_by_outcome
from verax.scores.registry import name_of, parse
from verax.scores.sets import SetRule
from verax.wings.sets.coverage import AtThreshold, of_scores

LAC, APS = "lac", "aps"
# Scores that exceed the threshold by less are equal to it: sums in another order differ in the last digits.
_NEARLY = 1e-12
TITLES = {LAC: "one minus the probability", APS: "adaptive, randomised"}


def nearly(threshold: float) -> float:
    """The largest score that is equal to a threshold up to rounding."""
    return threshold + _NEARLY * max(1.0, abs(threshold))


@dataclass(frozen=True)
class Nonconformity:
    """A score of every class: large where it would be a surprise.

    Attributes
    ----------
    name : str
        "lac", "aps", or the name of a rule.
    seed : int
        Random seed of the shares of "aps".
    """

    name: str
    seed: int = 0

    @classmethod
    def of(cls, score: object, seed: int) -> Nonconformity:
        """The score that a caller names."""
        if isinstance(score, str) and score in TITLES:
            return cls(score, seed)
        if not isinstance(score, (str, Rule)):
            raise InputError(
                f"must be 'lac', 'aps' or a rule, not {show(score)}", argument="score", kind="type"
            )
        rule = parse(score)
        if isinstance(rule, SetRule):
            raise InputError("must be a rule of probabilities, not of sets", argument="score", values=[score])
        return cls(name_of(rule), seed)

    @property
    def rule(self) -> Rule | None:
        """The rule, where it is one."""
        return None if self.name in TITLES else parse(self.name)

    @property
    def ordinal(self) -> bool:
        """Whether it depends on the order of the classes."""
        return self.rule is not None and self.rule.ordinal

    @property
    def title(self) -> str:
        """The name of the score in words."""
        return TITLES.get(self.name, f"the loss by {self.name}")

    def by_class(self, p: Floats) -> Floats:
        """(N, K) the score of each class.

        >>> Nonconformity("lac").by_class(np.array([[0.75, 0.25]])).tolist()
        [[0.25, 0.75]]
        """
        rule = self.rule
        if rule is not None:
            return np.asarray(losses_by_outcome(rule, p), np.float64)
        if self.name == LAC:
            return 1 - p
        return mass_before(p) + self.shares(p)[:, None] * p

    def of_outcomes(self, p: Floats, y: Ints) -> Floats:
        """(N,) the score of the class that happened."""
        if self.name == LAC:
            return np.asarray(1 - p[np.arange(len(y)), y])
        return np.asarray(self.by_class(p)[np.arange(len(y)), y])

    def members(self, p: Floats, threshold: float) -> Bools:
        """(N, K) whether the score of each class is at most the threshold."""
        return np.asarray(self.by_class(p) <= nearly(threshold))

    def shares(self, p: Floats) -> Floats:
        """(N,) numbers from 0 to 1 that look random, from the probabilities and the seed alone.

        So the sets of a row do not depend on the rows around it. A score that is a function of the row keeps
        the guarantee of conformal prediction, which needs no randomness.
        """
        bits = np.ascontiguousarray(p + 0.0, np.float64).view(np.uint64)
        with np.errstate(over="ignore"):
            factors = mixed(np.arange(1, p.shape[1] + 1, dtype=np.uint64) + np.uint64(self.seed)) | np.uint64(
                1
            )
            sums = (mixed(bits) * factors).sum(axis=1, dtype=np.uint64)
        return np.asarray((mixed(sums) >> np.uint64(11)).astype(np.float64) * 2.0**-53)

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values."""
        return {"name": self.name, "seed": self.seed}


# Sums of weights that miss a quantile by less than this share reach it.
_ROUNDING = 1e-12


class ScoreCounts(Summary, kind="nonconformity scores"):
    """The weight of the rows with each score; of very many different scores, in bins with their extremes.

    Attributes
    ----------
    n : int
        The number of rows that have weight; a case of several raters is one.
    least, most : float
        The extremes of these weights.
    bounded : bool
        Whether keys become bins when there are too many; not where all rows are in memory.
    scores : KeyedSums
        By key of the score: the sums of the weights, of their squares and of rows, and the smallest and the
        largest score.
    """

    n: int = merges(Whole())
    least: float = merges(Number("least", least=0))
    most: float = merges(Number("most", least=0))
    bounded: bool = merges(Truth("any"))
    scores: KeyedSums = merges(ExactOrBins(loss_keys, "scores"))

    @classmethod
    def of(cls, scores: Floats, weights: Floats, cases: Ints | None = None, *, bounded: bool) -> ScoreCounts:
        """Count the scores of rows; those without weight do not count, and rows of a case are one."""
        kept = weights > 0
        scores, weights = scores[kept], weights[kept]
        n = len(scores) if cases is None else len(np.unique(cases[kept]))
        run = Run.of_values(scores, loss_keys, EXACT, [weights, weights**2, None])
        ends = float(weights.min(initial=np.inf)), float(weights.max(initial=0.0))
        sums = KeyedSums(loss_keys, EXACT, {0: Keyed((run,))})
        return cls(n, *ends, bounded, sums)._merged()

    def _merged(self) -> ScoreCounts:
        """The same, in bins where there are too many scores."""
        if not self.bounded:
            return self
        return replace(
            self, scores=self.scores.fitting(lambda _, sizes: sizes[0] > settings.exact_up_to, [0])
        )

    def _check(self) -> None:
        run = self.run
        if run.sums.high.shape[1] != 3 or run.least.shape[1] != 1:
            raise UnreadableError("has other sums than those of scores", "scores")
        for column in run.sums.high.T:
            only_weights(column)

    @property
    def run(self) -> Run:
        """The weight of each score, or bin of scores."""
        return self.scores.tables[0].total

    @property
    def weight(self) -> float:
        """The weight of all rows."""
        return float(self.run.sums.high[:, 0].sum())

    def at(self, threshold: float) -> AtThreshold:
        """The rows whose scores are at most a threshold, and the others."""
        run, limit = self.run, nearly(threshold)
        same = np.abs(run.least[:, 0] - threshold) <= limit - threshold
        least = np.where(same, limit, run.least[:, 0])
        return of_scores(least, run.most[:, 0], run.sums.high, limit, even=self.least == self.most)

    def quantile(self, level: float, beside: float) -> tuple[float, float]:
        """The smallest score with at least the share `level` of the weight at or below it, and its error.

        A new row adds the weight `beside`, above all scores: where that share is not reached without it, the
        quantile is infinite. Of scores in bins it is the largest of its bin, so that no coverage is lost.
        """
        run = self.run
        reached = np.cumsum(run.sums.high[:, 0])
        need = level * (reached[-1] + beside)
        at = int(np.searchsorted(reached, need * (1 - _ROUNDING)))
        if at >= len(reached):
            return math.inf, 0.0
        least, most = float(run.least[at, 0]), float(run.most[at, 0])
        # Infinite scores have no distance from each other.
        return most, 0.0 if least == most else most - least


class GroupWeights(Summary, kind="weights of groups"):
    """The weight of every group; None where rows have no groups.

    Attributes
    ----------
    labels : array of shape (G,), or None
        The names of the groups.
    weights : array of shape (G, 1), or None
        Their weights.
    """

    labels: Any = merges(GroupLabels(), default=None)
    weights: Floats | None = merges(ByLabel(1), default=None)

    def by_label(self, *, whole: bool = False) -> dict[Any, float] | None:
        """The weights of the groups that have some; of all groups if `whole`."""
        if self.labels is None or self.weights is None:
            return None
        pairs = zip(self.labels.tolist(), self.weights[:, 0].tolist(), strict=True)
        return {label: weight for label, weight in pairs if whole or weight > 0}


@dataclass(frozen=True)
class GroupRecipe(Recipe[GroupWeights]):
    """The weight of every group."""

    model: str

    def take(self, part: Part) -> GroupWeights:
        """Sum up the rows of one part; of several raters, cases are groups."""
        part = part.in_pairs
        groups = part.models[self.model].groups
        check_one_way(groups, "conformal prediction")
        if groups is None:
            return GroupWeights()
        sums = np.bincount(groups.codes, _weights(part, self.model), len(groups.labels)).astype(float)
        present = np.flatnonzero(np.bincount(groups.codes, minlength=len(groups.labels)))
        return GroupWeights(groups.labels[present], sums[present, None])


@dataclass(frozen=True)
class ScoreRecipe(Recipe[ScoreCounts]):
    """The nonconformity of what happened; with the weights of groups, every group counts the same."""

    model: str
    score: Nonconformity
    groups: Mapping[Any, float] | None = None

    @property
    def follows(self) -> bool:
        return self.groups is not None

    def take(self, part: Part) -> ScoreCounts:
        """Sum up the rows of one part."""
        part = part.in_pairs
        y, p = seen(part, self.model, ()).y, probabilities(part, self.model)
        w = _weights(part, self.model)
        groups = part.models[self.model].groups
        if self.groups is not None and groups is not None:
            sizes = np.array([self.groups.get(label, 0.0) for label in groups.labels.tolist()])
            w = np.divide(w, sizes[groups.codes], out=np.zeros(len(w)), where=sizes[groups.codes] > 0)
        return ScoreCounts.of(self.score.of_outcomes(p, y), w, part.places, bounded=not part.whole)


@dataclass(frozen=True)
class InsideRecipe(Recipe[GroupWeights]):
    """The share of each group whose scores are at most a threshold."""

    model: str
    score: Nonconformity
    groups: Mapping[Any, float]
    threshold: float

    follows = True

    def take(self, part: Part) -> GroupWeights:
        """Sum up the rows of one part."""
        part = part.in_pairs
        groups = part.models[self.model].groups
        if groups is None:
            return GroupWeights()
        y, p = seen(part, self.model, ()).y, probabilities(part, self.model)
        inside = self.score.of_outcomes(p, y) <= nearly(self.threshold)
        sizes = np.array([self.groups.get(label, 0.0) for label in groups.labels.tolist()])
        sums = np.bincount(groups.codes, _weights(part, self.model) * inside, len(groups.labels))
        present = np.flatnonzero((np.bincount(groups.codes, minlength=len(groups.labels)) > 0) & (sizes > 0))
        return GroupWeights(groups.labels[present], (sums[present] / sizes[present])[:, None])


def _weights(part: Part, model: str) -> Floats:
    dense(part, model)
    weights = seen(part, model, ()).weights
    return np.ones(part.n_rows) if weights is None else scaled(part, weights)
