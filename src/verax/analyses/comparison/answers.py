"""Which questions each model answered, and what the others could change: counts, and bounds of means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from verax.common.specs import Array
from verax.common.summaries import Summary, merges
from verax.engines.pieces import all_pairs
from verax.inputs.arrays import Bools, Floats, Ints, to_host
from verax.inputs.handles import Mergeable, Part, Recipe
from verax.inputs.rows import ScoredRows
from verax.inputs.validity import MANY
from verax.scores.base import Rule
from verax.scores.grades import Grade
from verax.scores.registry import name_of

_PAIRS = "models*(models-1)//2"


@dataclass(frozen=True)
class ModelAnswers:
    """What became of the questions of one model under one rule.

    Attributes
    ----------
    name : str
        The name of the model.
    asked : int
        How many answers it was asked for; those of a question that was asked several times count each.
    graded : int
        How many of them have a loss.
    ungraded : int
        How many have none: failed, refused, empty or unparsable answers.
    absent : int
        How many questions of other models it was not asked.
    low : float
        The mean loss over all questions that it was asked, if every ungraded one had the least loss.
    high : float
        The same, if every ungraded one had the greatest loss; infinite for an unbounded rule.
    questions : int
        How many questions it was asked.
    """

    name: str
    asked: int
    graded: int
    ungraded: int
    absent: int
    low: float
    high: float
    questions: int = 0

    @property
    def share(self) -> float:
        """The share of ungraded answers."""
        return self.ungraded / self.asked if self.asked else 0.0


@dataclass(frozen=True)
class GapBounds:
    """Bounds of a difference of two models that ungraded answers leave open.

    Attributes
    ----------
    a : str
        The name of a model.
    b : str
        The name of the other.
    low : float
        The smallest possible difference of mean losses over the questions that both were asked.
    high : float
        The largest possible one.
    """

    a: str
    b: str
    low: float
    high: float


class AnswerSums(Summary, kind="answers of models"):
    """Counts of answers and sums of losses of each model, and of each pair of models.

    `left` are the weights of ungraded rows, `totals` the sums of known losses; `first` and `second` are the
    weights of ungraded rows of each model of a pair, among rows that both were asked.
    """

    graded: Ints = merges(Array("int64", "models", least=0))
    ungraded: Ints = merges(Array("int64", "models", least=0))
    absent: Ints = merges(Array("int64", "models", least=0))
    weights: Floats = merges(Array("float64", "models", least=0))
    left: Floats = merges(Array("float64", "models", least=0))
    totals: Floats = merges(Array("float64", "models"))
    pair_weights: Floats = merges(Array("float64", _PAIRS, least=0))
    pair_totals: Floats = merges(Array("float64", _PAIRS, nan=True))
    first: Floats = merges(Array("float64", _PAIRS, least=0))
    second: Floats = merges(Array("float64", _PAIRS, least=0))
    questions: Ints = merges(Array("int64", "models", least=0))

    @classmethod
    def _named(cls, values: Mapping[str, Any]) -> Mapping[str, Any]:
        # Rows were answers in 0.2.0.
        if "questions" in values or not {"graded", "ungraded"} <= values.keys():
            return values
        return {**values, "questions": values["graded"] + values["ungraded"]}

    def answered(self, names: Sequence[str], bounds: tuple[float, float]) -> list[ModelAnswers]:
        """What became of the questions of each model."""
        least, greatest = bounds
        found = []
        for i, name in enumerate(names):
            graded, ungraded, absent = (int(own[i]) for own in (self.graded, self.ungraded, self.absent))
            total, left, weight = self.totals[i], self.left[i], self.weights[i]
            low, high = (_mean(total + _times(left, end), weight) for end in (least, greatest))
            asked = graded + ungraded
            found.append(
                ModelAnswers(name, asked, graded, ungraded, absent, low, high, int(self.questions[i]))
            )
        return found

    def gaps(self, names: Sequence[str], bounds: tuple[float, float]) -> list[GapBounds]:
        """What ungraded answers leave open of each difference."""
        least, greatest = bounds
        found = []
        for c, (i, j) in enumerate(all_pairs(len(names))):
            a, b, total = self.first[c], self.second[c], self.pair_totals[c]
            low = total + _times(a, least) - _times(b, greatest)
            high = total + _times(a, greatest) - _times(b, least)
            weight = self.pair_weights[c]
            found.append(GapBounds(names[i], names[j], _mean(low, weight), _mean(high, weight)))
        return found


def _times(weight: float, loss: float) -> float:
    """Nothing times an infinite loss is nothing."""
    return float(weight * loss) if weight else 0.0


def _mean(total: float, weight: float) -> float:
    return float(total / weight) if weight else float("nan")


@dataclass(frozen=True)
class AnswerRecipe(Recipe[AnswerSums], cases=True):
    """Counts of answers by one rule, and what ungraded ones leave open."""

    models: tuple[str, ...]
    rule: Rule

    def sizes(self, known: Any) -> dict[str, int]:
        """The number of models."""
        return {"models": len(self.models)}

    def take(self, part: Part) -> AnswerSums:
        """Of some rows."""
        losses, known, asked = table_of(part, self.models, self.rule)
        w = weights_of(part)
        rows: list[Any] = [part.models[name] for name in self.models]
        counts = [own.counts(self.rule) for own in rows]
        n, missing = (np.stack(own, axis=1) for own in zip(*counts, strict=True))
        share = np.divide(missing, n, where=n > 0, out=np.zeros(n.shape))
        left = share * w[:, None]
        value = np.where(known, losses, 0.0) * (w[:, None] - left)
        value[np.isnan(value)] = 0.0
        pairs = []
        with np.errstate(invalid="ignore"):
            for i, j in all_pairs(len(self.models)):
                both = asked[:, i] & asked[:, j]
                pairs.append(
                    [
                        float(w[both].sum()),
                        float((value[both, i] - value[both, j]).sum()),
                        float(left[both, i].sum()),
                        float(left[both, j].sum()),
                    ]
                )
        both_weights, gaps, first, second = np.array(pairs).reshape(-1, 4).T
        return AnswerSums(
            (n - missing).sum(axis=0),
            missing.sum(axis=0),
            (~asked).sum(axis=0),
            (asked * w[:, None]).sum(axis=0),
            left.sum(axis=0),
            value.sum(axis=0),
            both_weights,
            gaps,
            first,
            second,
            asked.sum(axis=0),
        )


@dataclass(frozen=True)
class OfKnown(Recipe[Any], cases=True):
    """A recipe for the rows that some models have a loss of."""

    recipe: Recipe[Any]
    models: tuple[str, ...]
    rule: Rule

    def take(self, part: Part) -> Mergeable:
        """Of some rows."""
        found: Mergeable = self.recipe.take(known_part(part, self.models, self.rule))
        return found

    def load(self, stored: bytes, sizes: Any = None) -> Any:
        """A summary from its bytes."""
        return self.recipe.load(stored, sizes)


def known_part(part: Part, models: tuple[str, ...], rule: Rule) -> Part:
    """The rows of which all of these models have a loss, made once for all recipes."""

    def read() -> Part:
        _, known, _ = table_of(part, models, rule)
        return some_rows(part, known.all(axis=1))

    return part.once(("known", models, rule), read)


def some_rows(part: Part, rows: Any) -> Part:
    """The rows of a mask as a part."""
    assert part.subset is not None
    return part if rows.all() else part.subset(np.flatnonzero(rows))


def table_of(part: Part, models: Sequence[str], rule: Rule) -> tuple[Floats, Bools, Bools]:
    """(N, M) losses of some models by a rule, where they are known, and which rows they were asked."""
    rows: list[Any] = [part.models[name] for name in models]
    assert all(isinstance(own, ScoredRows) for own in rows)
    losses = np.stack([own.losses(rule) for own in rows], axis=1)
    asked = ~np.stack([own.absent for own in rows], axis=1)
    return losses, ~np.isnan(losses) & asked, asked


def weights_of(part: Part) -> Floats:
    """(N,) the weights of rows, 1 where there are none."""
    weights = part.rows.weights
    return np.ones(part.n_rows) if weights is None else np.asarray(to_host(weights), float)


def cautions(answers: Sequence[ModelAnswers], rule: Rule) -> list[str]:
    """A sentence for each model with many ungraded answers, with the numbers."""
    found = []
    for own in answers:
        if own.share > MANY:
            high = f"{own.high:.4f}" if np.isfinite(own.high) else "infinity, because the rule has no bound"
            between = f"{name_of(rule)} loss between {own.low:.4f} and {high}"
            if isinstance(rule, Grade):
                between = f"grade between {rule.high - own.high:.4f} and {rule.high - own.low:.4f}"
            found.append(
                f"Caution: {own.ungraded:,} of {own.asked:,} answers of {own.name} "
                f"({100 * own.share:.1f}%) were not graded. Counted as best and as worst possible, they put "
                f"its mean {between}."
            )
    return found
