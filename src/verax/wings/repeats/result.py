"""Reduced repeats as a result: a mean over questions for each reducer and model, and differences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from verax.common.faces import Brief
from verax.common.results import Result
from verax.display.tables import NO_HEADING, Column, Table, Tabled, interval_head
from verax.inference.findings import Claim, Finding, WithVerdict, in_brackets
from verax.inference.intervals import Interval, with_ends


@dataclass(frozen=True)
class RepeatScore:
    """A mean over questions of what k fresh answers would give.

    Attributes
    ----------
    model : str
        The name of the model; empty where there is one.
    score : str
        The name of the reducer, such as "pass@5".
    value : float
        The mean.
    interval : Interval
        Its confidence interval.
    questions : int
        The number of questions with k answers or more.
    least : float
        The mean over all questions if those with fewer answers had the least that is possible.
    most : float
        The same with the most.
    """

    model: str
    score: str
    value: float
    interval: Brief[Interval]
    questions: int
    least: float
    most: float


@dataclass(frozen=True)
class RepeatDifference:
    """The score of `a` minus that of `b`, over the questions that both answered k times.

    Attributes
    ----------
    a : str
        The name of a model.
    b : str
        The name of the other.
    score : str
        The name of the reducer.
    difference : float
        The difference.
    interval : Interval
        Its confidence interval.
    p_value : float
        The two-sided p-value.
    p_adjusted : float
        Holm's p-value over all pairs and reducers.
    questions : int
        The number of questions.
    """

    a: str
    b: str
    score: str
    difference: float
    interval: Brief[Interval]
    p_value: float
    p_adjusted: float
    questions: int


@dataclass(frozen=True, repr=False, eq=False)
class RepeatScores(WithVerdict, Tabled, Result):
    """What k fresh answers to a question would give, on average over questions.

    Attributes
    ----------
    scores : tuple of RepeatScore
        The mean of each reducer and model.
    differences : tuple of RepeatDifference
        The differences of models.
    n_questions : int
        The number of questions.
    n_groups : int or None
        The number of groups of questions; None without groups.
    fewest : int
        The smallest number of graded answers to a question.
    most : int
        The largest.
    confidence : float
        Confidence level of the intervals.
    notes : tuple of str
        Remarks for the reader.

    Examples
    --------
    >>> import verax as vx
    >>> grades = [[1, 0, 1, 1], [0, 0, 0, 1], [0, 0, 0, 0], [1, 1, 1, 1], [0, 1, 0, 1], [1, 1, 0, 1]]
    >>> found = vx.pass_at_k(grades, k=[1, 2, "pass^2"])
    >>> {score.score: round(score.value, 3) for score in found.scores}
    {'pass@1': 0.542, 'pass@2': 0.722, 'pass^2': 0.361}
    """

    scores: tuple[RepeatScore, ...]
    differences: tuple[RepeatDifference, ...]
    n_questions: int
    n_groups: int | None
    fewest: int
    most: int
    confidence: float
    notes: tuple[str, ...] = ()

    _notes_apart = True

    def score(self, name: str, model: str = "") -> RepeatScore:
        """The mean of one reducer.

        Parameters
        ----------
        name : str
            The name of the reducer, such as "pass@5".
        model : str, default ""
            The name of the model, where there are several.

        Returns
        -------
        RepeatScore
            The mean with its interval.
        """
        for score in self.scores:
            if (score.score, score.model) == (name, model):
                return score
        raise KeyError(f"there is no {name} of {model!r}" if model else f"there is no {name}")

    def flat(self, prefix: str = "") -> dict[str, float]:
        """All means as one flat dict of floats, for loggers of metrics.

        Parameters
        ----------
        prefix : str, default ""
            A prefix of every name, such as `"val_"`.

        Returns
        -------
        dict of str to float
            Each score with its ends, such as `pass@5` and `pass@5_low`; of several models as `model/pass@5`.
        """
        numbers: dict[str, float] = {}
        for score in self.scores:
            model = f"{score.model}/" if score.model else ""
            numbers |= with_ends(f"{prefix}{model}{score.score}", score.value, score.interval)
        return numbers

    def _findings(self) -> list[Finding]:
        if not self.differences:
            texts = [
                f"{score.score} {score.value:.4f}{in_brackets(score.interval, 4)}" for score in self.scores
            ]
            scores = {score.score: (score.value, score.interval) for score in self.scores}
            caution = self.scores[0].interval.caution
            return [Finding(Claim.SCORE, f"{', '.join(texts)}.", numbers=scores, caution=caution)]
        findings = []
        level = round(1 - self.confidence, 12)
        for gap in self.differences:
            better, worse = (gap.a, gap.b) if gap.difference >= 0 else (gap.b, gap.a)
            ends = gap.interval if gap.difference >= 0 else -gap.interval
            size = f"{abs(gap.difference):.3g}{in_brackets(ends)}"
            facts: dict[str, Any] = {"p_value": gap.p_adjusted, "level": level}
            facts["numbers"] = {"difference": (gap.difference, gap.interval)}
            if gap.p_adjusted <= level:
                text = f"{better} is significantly better than {worse} in {gap.score}: {size} ahead."
                findings.append(Finding(Claim.BEST, text, (better,), **facts))
            else:
                text = (
                    f"{better} and {worse} are not significantly different in {gap.score}: {better} ahead by "
                )
                findings.append(Finding(Claim.LEAD_OPEN, f"{text}{size}.", (gap.a, gap.b), **facts))
        return findings

    def _tested_together(self) -> str:
        return "All pairs and scores are tested together (Holm's correction)." if self.differences else ""

    def _heading(self) -> str:
        times = f"{self.fewest}" if self.fewest == self.most else f"{self.fewest} to {self.most}"
        groups = "" if self.n_groups is None else f" in {self.n_groups:,} groups"
        return f"verax repeats: {self.n_questions:,} questions{groups}, {times} answers to each"

    def _tables(self) -> list[Table]:
        columns = [
            Column("model", "model", right=False),
            Column("score", "score", right=False),
            Column("value", "mean", ".4f"),
            Column("low high", interval_head(self.confidence), ".4f", "interval", right=False),
            Column("questions", "questions", ","),
        ]
        if not any(score.model for score in self.scores):
            columns = columns[1:]
        if any(score.questions < self.n_questions for score in self.scores):
            columns.append(
                Column("least most", "over all questions", _ends, lambda s: (s.least, s.most), right=False)
            )
        tables = [Table(columns, self.scores)]
        if self.differences:
            tables.append(
                Table(
                    [
                        Column("", "a - b", lambda gap: f"{gap.a} - {gap.b}", right=False),
                        Column("score", "score", right=False),
                        Column("difference", "difference", "+z.4f"),
                        Column("low high", interval_head(self.confidence), "+z.4f", "interval", right=False),
                        Column("p_adjusted", "p (Holm)", ".3g"),
                    ],
                    self.differences,
                    NO_HEADING.strip(),
                )
            )
        return tables

    def _notes(self) -> list[str]:
        return list(self.notes)


def _ends(score: RepeatScore) -> str:
    return f"{score.least:.4f} to {score.most:.4f}"
