"""The result of grading one model: its mean grade, what is not graded, and how good its confidences are."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from verax.analyses.cards.scorecard import Scorecard
from verax.analyses.comparison.answers import ModelAnswers
from verax.display.tables import Column, Table, Tabled, interval_head
from verax.inference.intervals import Interval, with_ends
from verax.inputs.groups import GroupCount, in_words
from verax.inputs.skipping import MANY, MaySkip
from verax.scores.grades import Grade


@dataclass(frozen=True, repr=False, eq=False)
class GradeCard(Tabled, MaySkip):
    """The grades of one model.

    Attributes
    ----------
    mean : float
        The mean grade of graded answers; for right-or-wrong grades the accuracy.
    interval : Interval
        Its confidence interval.
    answers : ModelAnswers
        How many answers there are, how many of them were graded, and the bounds of the mean loss.
    rule : Grade
        The range of grades.
    n_groups : int, tuple of int or None
        The number of groups, of each kind; None without groups.
    confidence : float
        Confidence level of the interval.
    card : Scorecard or None
        The scores of the confidences, as forecasts of two classes, wrong and right; None without any.
    bounded : bool
        Whether to show the bounds that ungraded answers leave open.
    tasks : dict of str to GradeCard
        The same for each task.

    Examples
    --------
    >>> import verax as vx
    >>> card = vx.evaluate_grades([1, 0, 1, 1, None])
    >>> card.mean, card.answers.ungraded, card.bounds
    (0.75, 1, (0.6, 0.8))
    """

    mean: float
    interval: Interval
    answers: ModelAnswers
    rule: Grade
    n_groups: GroupCount | None
    confidence: float
    card: Scorecard | None = None
    bounded: bool = True
    tasks: dict[str, GradeCard] = field(default_factory=dict)

    _notes_apart = True

    @property
    def n_rows(self) -> int:
        """The number of graded answers."""
        return self.answers.graded

    @property
    def bounds(self) -> tuple[float, float]:
        """The mean grade of all answers, if every ungraded one had the worst and the best grade."""
        return self.rule.high - self.answers.high, self.rule.high - self.answers.low

    @property
    def headline(self) -> str:
        """The mean grade and how sure it is, in a sentence."""
        level = f"{100 * self.confidence:g}% CI"
        shown = f"{level} {self.interval:.4f}" if self.interval.defined else f"no {level}"
        scale = "" if (self.rule.low, self.rule.high) == (0, 1) else f" of {self.rule.high:g}"
        return f"Mean grade {self.mean:.4f}{scale} ({shown}), {self.n_rows:,} graded answers."

    def _as_dict(self) -> dict[str, Any]:
        return {
            "n_rows": self.n_rows,
            "n_groups": self.n_groups,
            "confidence": self.confidence,
            "mean": self.mean,
            "interval": self.interval.to_dict(),
            "range": [self.rule.low, self.rule.high],
            "asked": self.answers.asked,
            "ungraded": self.answers.ungraded,
            "bounds": list(self.bounds),
            "card": None if self.card is None else self.card.to_dict(stored=False),
            "tasks": {name: own._as_dict() for name, own in self.tasks.items()},
            "notes": self.notes,
            **self._noted(),
        }

    def flat(self, prefix: str = "") -> dict[str, float]:
        """All means as one flat dict of floats, for loggers of metrics.

        Parameters
        ----------
        prefix : str, default ""
            What stands before every name, such as `"val_"`.

        Returns
        -------
        dict of str to float
            The numbers: `grade` with its ends, and `task/grade` for each task.
        """
        found = with_ends(f"{prefix}grade", self.mean, self.interval)
        for task, own in self.tasks.items():
            found |= own.flat(f"{prefix}{task}/")
        return {name: float(value) for name, value in found.items()}

    def _tables(self) -> list[Table]:
        head = interval_head(self.confidence)
        columns = [
            Column("task", "task", value=lambda line: line[0], right=False),
            Column("answers", "answers", ",", lambda line: line[1].answers.asked),
            Column("ungraded", "not graded", ",", lambda line: line[1].answers.ungraded),
            Column("mean", "mean grade", ".4f", lambda line: line[1].mean),
            Column("low high", head, ".4f", lambda line: line[1].interval, right=False),
        ]
        if self.bounded and self.answers.ungraded:
            columns.append(
                Column("least most", "with ungraded", _ends, lambda line: line[1].bounds, right=False)
            )
        return [Table(columns, [("all", self), *self.tasks.items()])]

    def _heading(self) -> str:
        groups = "" if self.n_groups is None else f", {in_words(self.n_groups)}"
        return f"verax grades: {self.answers.asked:,} answers{groups}"

    @property
    def notes(self) -> list[str]:
        """What a reader should know: a sentence each."""
        said = []
        if self.answers.share > MANY:
            low, high = self.bounds
            said.append(
                f"Caution: {self.answers.ungraded:,} of {self.answers.asked:,} answers "
                f"({100 * self.answers.share:.1f}%) were not graded. Counted as worst and as best possible, "
                f"they put the mean grade between {low:.4f} and {high:.4f}."
            )
        if self.card is not None and self.card.n_rows < self.n_rows:
            said.append(f"{self.card.n_rows:,} of {self.n_rows:,} graded answers have a confidence.")
        if math.isnan(self.mean):
            said.append("No answer was graded.")
        return said

    def _notes(self) -> list[str]:
        return [*self.notes, *self._said()]


def _ends(line: tuple[str, GradeCard]) -> str:
    low, high = line[1].bounds
    return f"{low:.4f} to {high:.4f}"
