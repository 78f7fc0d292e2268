"""Counts of answered questions per model, and bounds on the means that ungraded answers allow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from verax.analyses.comparison.ungraded import (
    N_COUNTS,
    Became,
    Counted,
    counted_in,
    counts_in,
    rows_under,
    told,
)
from verax.common.specs import Array
from verax.common.summaries import Summary, merges
from verax.common.texts import percent
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
    """Answered, ungraded and absent questions of one model under one rule.

    Attributes
    ----------
    name : str
        The name of the model.
    asked : int
        Number of answers requested; repeats of a question count separately.
    graded : int
        Number of answers that have a grade, or a loss.
    ungraded : int
        Number of answers without one, also where they count as wrong.
    absent : int
        Number of questions that other models were asked and this one was not.
    low : float
        The mean loss or grade over all questions that it was asked, if every ungraded one had the least.
    high : float
        The same if every ungraded one had the greatest; infinite for an unbounded rule.
    questions : int
        Number of questions it was asked.
    counted : int
        Number of ungraded answers that count as wrong.
    between : int
        Number of answers graded between the worst and the best grade.
    reasons : dict of str to Became
        Answers by what became of them: limit, empty, unparsable, refused, error, unscored, or no reason.
    """

    name: str
    asked: int
    graded: int
    ungraded: int
    absent: int
    low: float
    high: float
    questions: int = 0
    counted: int = 0
    between: int = 0
    reasons: dict[str, Became] = field(default_factory=dict)

    @property
    def share(self) -> float:
        """The share of ungraded answers."""
        return self.ungraded / self.asked if self.asked else 0.0


@dataclass(frozen=True)
class GapBounds:
    """Smallest and largest possible difference of two models, whatever grades the ungraded answers deserve.

    Attributes
    ----------
    a : str
        The name of a model.
    b : str
        The name of the other.
    low : float
        The smallest possible difference of mean losses or grades over the questions that both were asked.
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
    weights of ungraded rows of each model of a pair, among rows that both were asked. `became` counts answers
    by what became of them; `more` and `fewer` are the rows of a pair of which the first model has a larger
    share without a grade, and the second.
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
    became: Ints = merges(Array("int64", "models", N_COUNTS, least=0))
    more: Ints = merges(Array("int64", _PAIRS, least=0))
    fewer: Ints = merges(Array("int64", _PAIRS, least=0))

    @classmethod
    def _named(cls, values: Mapping[str, Any]) -> Mapping[str, Any]:
        if not {"graded", "ungraded", "first"} <= values.keys():
            return values
        # Rows were answers in 0.2.0, and nothing was known of reasons in 0.3.
        questions = values.get("questions", values["graded"] + values["ungraded"])
        became = np.zeros((len(values["graded"]), N_COUNTS), np.int64)
        none = np.zeros(len(values["first"]), np.int64)
        return {"became": became, "more": none, "fewer": none, **values, "questions": questions}

    def answered(self, names: Sequence[str], bounds: tuple[float, float]) -> list[ModelAnswers]:
        """The number of answers of each model, and bounds of its mean."""
        least, greatest = bounds
        answers = []
        for i, name in enumerate(names):
            graded, ungraded, absent = (
                int(counts[i]) for counts in (self.graded, self.ungraded, self.absent)
            )
            total, left, weight = self.totals[i], self.left[i], self.weights[i]
            low, high = (_mean(total + _times(left, end), weight) for end in (least, greatest))
            asked, totals = graded + ungraded, self.became[i]
            counts = asked, graded, ungraded, absent
            answers.append(ModelAnswers(name, *counts, low, high, int(self.questions[i]), *told(totals)))
        return answers

    def gaps(self, names: Sequence[str], bounds: tuple[float, float]) -> list[GapBounds]:
        """Bounds of each difference, whatever grades the ungraded answers deserve."""
        least, greatest = bounds
        gap_bounds = []
        for c, (i, j) in enumerate(all_pairs(len(names))):
            a, b, total = self.first[c], self.second[c], self.pair_totals[c]
            low = total + _times(a, least) - _times(b, greatest)
            high = total + _times(a, greatest) - _times(b, least)
            weight = self.pair_weights[c]
            gap_bounds.append(GapBounds(names[i], names[j], _mean(low, weight), _mean(high, weight)))
        return gap_bounds


def _times(weight: float, loss: float) -> float:
    """The weighted loss; zero for a weight of zero, even if the loss is infinite."""
    return float(weight * loss) if weight else 0.0


def _mean(total: float, weight: float) -> float:
    return float(total / weight) if weight else float("nan")


@dataclass(frozen=True)
class AnswerRecipe(Recipe[AnswerSums], cases=True):
    """Count answers by one rule, and sum what bounds of means need."""

    models: tuple[str, ...]
    rule: Rule

    def sizes(self, known: Any) -> dict[str, int]:
        """The number of models."""
        return {"models": len(self.models)}

    def take(self, part: Part) -> AnswerSums:
        """Summarise one part."""
        losses, known, asked = table_of(part, self.models, self.rule)
        w = weights_of(part)
        model_rows: list[Any] = [part.models[name] for name in self.models]
        counts = [of_model.counts(self.rule) for of_model in model_rows]
        n, missing = (np.stack(columns, axis=1) for columns in zip(*counts, strict=True))
        counted = np.stack([counted_in(of_model, self.rule) for of_model in model_rows], axis=1)
        share, as_wrong = (
            np.divide(some, n, where=n > 0, out=np.zeros(n.shape)) * w[:, None] for some in (missing, counted)
        )
        value = np.where(known, losses, 0.0) * (w[:, None] - share)
        value[np.isnan(value)] = 0.0
        if counted.any():
            value -= as_wrong * self.rule.bounds(2)[1]
        left, missing = share + as_wrong, missing + counted
        pairs, lacking = [], np.divide(missing, n, where=n > 0, out=np.zeros(n.shape))
        with np.errstate(invalid="ignore"):
            for i, j in all_pairs(len(self.models)):
                both = asked[:, i] & asked[:, j]
                pairs.append(
                    [
                        float(w[both].sum()),
                        float((value[both, i] - value[both, j]).sum()),
                        float(left[both, i].sum()),
                        float(left[both, j].sum()),
                        float((both & (lacking[:, i] > lacking[:, j])).sum()),
                        float((both & (lacking[:, i] < lacking[:, j])).sum()),
                    ]
                )
        both_weights, gaps, first, second, more, fewer = np.array(pairs).reshape(-1, 6).T
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
            np.stack([counts_in(of_model, self.rule).sum(axis=0, dtype=np.int64) for of_model in model_rows]),
            more.astype(np.int64),
            fewer.astype(np.int64),
        )


@dataclass(frozen=True)
class OfKnown(Recipe[Any], cases=True):
    """A recipe, applied to the rows for which all of some models have a loss."""

    recipe: Recipe[Any]
    models: tuple[str, ...]
    rule: Rule

    def take(self, part: Part) -> Mergeable:
        """Summarise one part."""
        sums: Mergeable = self.recipe.take(known_part(part, self.models, self.rule))
        return sums

    def load(self, stored: bytes, sizes: Any = None) -> Any:
        """A summary from its bytes."""
        return self.recipe.load(stored, sizes)


@dataclass(frozen=True)
class Under(OfKnown, cases=True):
    """The same with every ungraded answer of grades left out, or counted as wrong or as right."""

    how: Counted = "exclude"

    def take(self, part: Part) -> Mergeable:
        """Summarise one part."""
        assert isinstance(self.rule, Grade)
        return super().take(part_under(part, self.models, self.rule, self.how))


def part_under(part: Part, models: tuple[str, ...], rule: Grade, how: Counted) -> Part:
    """The same rows with every ungraded answer left out, or counted as wrong or as right."""

    def read() -> Part:
        rows: dict[str, Any] = {name: part.models[name] for name in models}
        made = {name: rows_under(of_model, rule, how) for name, of_model in rows.items()}
        return Part.divisible(
            made, part.ids, part.by, part.numbers, part.skipped, start=part.start, whole=part.whole
        )

    return part.once(("under", models, rule, how), read)


def known_part(part: Part, models: tuple[str, ...], rule: Rule) -> Part:
    """The rows for which all of these models have a loss, cached for all recipes."""

    def read() -> Part:
        _, known, _ = table_of(part, models, rule)
        return some_rows(part, known.all(axis=1))

    return part.once(("known", models, rule), read)


def some_rows(part: Part, rows: Any) -> Part:
    """The rows where a mask is true, as a part."""
    assert part.subset is not None
    return part if rows.all() else part.subset(np.flatnonzero(rows))


def table_of(part: Part, models: Sequence[str], rule: Rule) -> tuple[Floats, Bools, Bools]:
    """(N, M) arrays: losses by a rule, whether they are known, and whether the model was asked."""
    model_rows: list[Any] = [part.models[name] for name in models]
    assert all(isinstance(rows, ScoredRows) for rows in model_rows)
    losses = np.stack([rows.losses(rule) for rows in model_rows], axis=1)
    asked = ~np.stack([rows.absent for rows in model_rows], axis=1)
    return losses, ~np.isnan(losses) & asked, asked


def weights_of(part: Part) -> Floats:
    """(N,) weights of the rows; ones if there are no weights."""
    weights = part.rows.weights
    return np.ones(part.n_rows) if weights is None else np.asarray(to_host(weights), float)


def cautions(answers: Sequence[ModelAnswers], rule: Rule) -> list[str]:
    """A caution for each model with many ungraded answers, with bounds of its mean."""
    sentences = []
    for model in answers:
        if model.share > MANY:
            high = (
                f"{model.high:.4f}" if np.isfinite(model.high) else "infinity, because the rule has no bound"
            )
            between = f"{name_of(rule)} loss between {model.low:.4f} and {high}"
            if isinstance(rule, Grade):
                between = f"grade between {rule.high - model.high:.4f} and {rule.high - model.low:.4f}"
            sentences.append(
                f"Caution: {model.ungraded:,} of {model.asked:,} answers of {model.name} "
                f"({percent(model.share, 1)}) were not graded. Counted as best and as worst possible, they "
                f"put its mean {between}."
            )
    return sentences
