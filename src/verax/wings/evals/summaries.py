"""Sums of the losses of graded answers, and counts of all answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from verax.analyses.comparison.answers import AnswerRecipe, AnswerSums, known_part
from verax.analyses.comparison.paired import PairedRecipe, PairedSums
from verax.common.specs import Each, Number, Truth, Valued
from verax.common.summaries import KnownSummary, Summary, merges
from verax.inputs.breakdown import Breakdown
from verax.inputs.handles import Part, Recipe
from verax.scores.grades import Grade

# The names of the summary of a subgroup, and of the breakdown by task, whatever its column is called.
SUMS, TASK = "grades", "task"
# The name of the card of the confidences.
CONFIDENCES = "confidences"


class GradeSums(Summary, kind="graded answers"):
    """The answers of one model: sums over those that were graded, and counts of all.

    Attributes
    ----------
    losses : PairedSums
        Sums of the losses.
    answers : AnswerSums
        How many answers there are, and what ungraded ones leave open.
    """

    losses: PairedSums = merges(Valued(PairedSums, packed=True))
    answers: AnswerSums = merges(Valued(AnswerSums, packed=True))

    @property
    def is_one_group(self) -> bool:
        """Whether all graded answers belong to one group of the only kind, or none was graded."""
        return self.losses.first.n_groups in (0, 1)

    @property
    def ungrouped(self) -> GradeSums:
        """The same answers, treated as independent."""
        return GradeSums(self.losses.ungrouped, self.answers)


@dataclass(frozen=True)
class GradeRecipe(Recipe[GradeSums], cases=True):
    """Sums over the answers of one model."""

    model: str
    rule: Grade

    def sizes(self, known: Any) -> dict[str, int]:
        """There is one model."""
        return {"models": 1}

    def take(self, part: Part) -> GradeSums:
        """Sum up the rows of one part."""
        models = (self.model,)
        losses = PairedRecipe(models, (self.rule,)).take(known_part(part, models, self.rule))
        return GradeSums(losses, AnswerRecipe(models, self.rule).take(part))


class GradeTally(Summary, kind="grade card"):
    """The sums of a saved grade card; those of parts merge.

    Attributes
    ----------
    low, high : float
        The worst and the best possible grade.
    confidence : float
        Confidence level of the intervals.
    bounded : bool
        Whether to show the bounds that ungraded answers leave open.
    whole : GradeSums
        All answers.
    by : mapping of str to Breakdown
        The answers of each subgroup, by column.
    cards : mapping of str to Scorecard
        The card of the confidences, where there are any.
    """

    low: float = merges(Number("equal"))
    high: float = merges(Number("equal"))
    confidence: float = merges(Number("equal", least=0, most=1))
    bounded: bool = merges(Truth("equal"))
    whole: GradeSums = merges(Valued(GradeSums, packed=True))
    by: Mapping[str, Breakdown] = merges(Each(Valued(Breakdown, packed=True)))
    cards: Mapping[str, Any] = merges(Each(KnownSummary()))

    @property
    def scale(self) -> Grade:
        """The range of grades."""
        return Grade(self.low, self.high)
