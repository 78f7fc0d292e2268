"""Sums of the losses of graded answers, and counts of all answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from verax.analyses.comparison.answers import AnswerRecipe, AnswerSums, known_part, part_under
from verax.analyses.comparison.paired import PairedRecipe, PairedSums
from verax.analyses.comparison.ungraded import Counted
from verax.common.specs import Each, Number, Text, Valued
from verax.common.summaries import KnownSummary, Summary, merges
from verax.inputs.breakdown import Breakdown
from verax.inputs.handles import Part, Recipe
from verax.scores.grades import Grade

# The names of the summary of a subgroup, and of the breakdown by task, whatever its column is called.
SUMS, TASK = "grades", "task"
# The name of the card of the confidences.
CONFIDENCES = "confidences"
# The ways to count ungraded answers.
WAYS: tuple[Counted, ...] = ("exclude", "wrong", "right")


class GradeSums(Summary, kind="graded answers"):
    """The answers of one model: sums over those that were graded, and counts of all.

    Attributes
    ----------
    losses : PairedSums
        Sums of the losses.
    answers : AnswerSums
        How many answers there are, and what ungraded ones leave open.
    under : mapping of str to PairedSums
        Sums of the losses with ungraded answers left out ("exclude"), or counted as "wrong" or as "right";
        empty where all answers are graded.
    """

    losses: PairedSums = merges(Valued(PairedSums, packed=True))
    answers: AnswerSums = merges(Valued(AnswerSums, packed=True))
    under: Mapping[str, PairedSums] = merges(Each(Valued(PairedSums, packed=True)))

    @classmethod
    def _named(cls, values: Mapping[str, Any]) -> Mapping[str, Any]:
        # 0.3 had no such sums.
        return {"under": {}, **values}

    def _aligned(self, other: GradeSums) -> tuple[GradeSums, GradeSums]:
        if self.under.keys() == other.under.keys():
            return self, other
        if any(one.answers.ungraded.any() and not one.under for one in (self, other)):
            # Of files of 0.3 it is not known.
            return replace(self, under={}), replace(other, under={})
        return self._in_full(), other._in_full()

    def _in_full(self) -> GradeSums:
        """The same with sums for each way to count ungraded answers, of which there may be none."""
        return self if self.under else replace(self, under=dict.fromkeys(WAYS, self.losses))

    @property
    def is_one_group(self) -> bool:
        """Whether all graded answers belong to one group of the only kind, or none was graded."""
        return self.losses.first.n_groups in (0, 1)

    @property
    def ungrouped(self) -> GradeSums:
        """The same answers, treated as independent."""
        under = {how: sums.ungrouped for how, sums in self.under.items()}
        return GradeSums(self.losses.ungrouped, self.answers, under)


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
        recipe, answers = PairedRecipe(models, (self.rule,)), AnswerRecipe(models, self.rule).take(part)
        ways = WAYS if answers.ungraded.any() else ()
        under: dict[str, PairedSums] = {
            how: recipe.take(known_part(part_under(part, models, self.rule, how), models, self.rule))
            for how in ways
        }
        return GradeSums(recipe.take(known_part(part, models, self.rule)), answers, under)


class GradeTally(Summary, kind="grade card"):
    """The sums of a saved grade card; those of parts merge.

    Attributes
    ----------
    low, high : float
        The worst and the best possible grade.
    confidence : float
        Confidence level of the intervals.
    ungraded : str
        What ungraded answers count as.
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
    ungraded: str = merges(Text("equal"))
    whole: GradeSums = merges(Valued(GradeSums, packed=True))
    by: Mapping[str, Breakdown] = merges(Each(Valued(Breakdown, packed=True)))
    cards: Mapping[str, Any] = merges(Each(KnownSummary()))

    @classmethod
    def _named(cls, values: Mapping[str, Any]) -> Mapping[str, Any]:
        if "bounded" not in values:
            return values
        # 0.3 knew no reasons, and said only whether to show bounds.
        given = dict(values)
        return {"ungraded": "by-reason" if given.pop("bounded") else "exclude", **given}

    @property
    def scale(self) -> Grade:
        """The range of grades."""
        return Grade(self.low, self.high)
