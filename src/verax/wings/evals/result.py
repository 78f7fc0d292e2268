"""The result of grading one model: its mean grade, what is not graded, and how good its confidences are."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from verax.analyses.cards.container import write_summaries
from verax.analyses.cards.fingerprints import Fingerprint, fingerprint_of
from verax.analyses.cards.scorecard import Scorecard
from verax.analyses.comparison.answers import ModelAnswers
from verax.analyses.comparison.ungraded import in_spite
from verax.common.faces import Hidden
from verax.common.idkeys import storing_ids
from verax.display.tables import NO_HEADING, Column, Table, Tabled, interval_head
from verax.engines.differences import PairedTally
from verax.errors import InputError, VeraxError
from verax.inference.estimates import Estimate, Units
from verax.inference.findings import Claim, Finding, WithVerdict, in_brackets
from verax.inference.intervals import Interval, Resampling, with_ends
from verax.inference.modelmeans import LossKind, interval_of_model
from verax.inputs.groups import GroupCount, in_words
from verax.inputs.memory import ONLY
from verax.inputs.skipping import MaySkip
from verax.scores.grades import Grade
from verax.scores.registry import name_of
from verax.wings.evals.summaries import CONFIDENCES, SUMS, TASK, GradeSums, GradeTally
from verax.wings.plan.pilots import Pilot, not_there, of_card, of_mean

# The entry of files that hold a card, as the wing declares it.
_ENTRY = "grades"
# If more than this share of the answers has no grade, the verdict tells what that could change.
_MANY = 0.05
# The note below the card of the confidences.
NOT_THE_ACCURACY = "Its accuracy is that of decisions by confidence; that of the answers is above."


@dataclass(frozen=True)
class MeanGrade:
    """A mean grade with its interval.

    Attributes
    ----------
    mean : float
        The mean grade.
    interval : Interval
        Its confidence interval.
    """

    mean: float
    interval: Interval


@dataclass(frozen=True, repr=False, eq=False)
class GradeCard(WithVerdict, Tabled, MaySkip):
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
    ungraded : str
        What ungraded answers count as: "by-reason", "bounds", "exclude" or "wrong".
    tasks : dict of str to GradeCard
        The same for each task.
    subgroups : dict of str to dict of str to GradeCard
        The same for each label of each breakdown.
    standard_error : float
        The standard error of the mean; it allows for groups.
    freedom : float
        Its degrees of freedom.
    deviation : float
        The standard deviation of the grades of questions.
    n_questions : int
        The number of questions that have a grade; that of answers if questions are not repeated.
    left_out : MeanGrade or None
        The mean grade with all ungraded answers left out; None if there are none.
    wrong : MeanGrade or None
        The same with all of them counted as wrong.
    bounds_interval : Interval or None
        The interval of the mean grade whatever ungraded answers deserve: from the low end if all of them are
        wrong to the high end if all are right.

    Examples
    --------
    >>> import verax as vx
    >>> card = vx.evaluate_grades([1, 0, 1, 1, None])
    >>> card.mean, card.answers.ungraded, card.bounds
    (0.75, 1, (0.6, 0.8))
    """

    mean: float
    interval: Interval
    answers: Hidden[ModelAnswers]
    rule: Hidden[Grade]
    n_groups: GroupCount | None
    confidence: float
    card: Scorecard | None = None
    ungraded: Hidden[str] = "by-reason"
    tasks: dict[str, GradeCard] = field(default_factory=dict)
    subgroups: dict[str, dict[str, GradeCard]] = field(default_factory=dict)
    standard_error: Hidden[float] = math.nan
    freedom: Hidden[float] = math.nan
    deviation: Hidden[float] = math.nan
    n_questions: int = 0
    left_out: MeanGrade | None = None
    wrong: MeanGrade | None = None
    bounds_interval: Interval | None = None

    _notes_apart = True

    _facts = (
        *("n_rows", "_range", "answers.asked", "answers.ungraded", "answers.counted", "answers.reasons"),
        *("bounds", "unsettled", "notes"),
    )

    @property
    def _range(self) -> tuple[float, float]:
        return self.rule.low, self.rule.high

    @classmethod
    def of(cls, sums: GradeTally) -> GradeCard:
        """The card of sums, with those of tasks and subgroups.

        Parameters
        ----------
        sums : GradeTally
            The sums of some answers.

        Returns
        -------
        GradeCard
            The card.
        """
        scale, plan = sums.scale, Resampling(sums.confidence)

        def part(label_sums: GradeSums) -> GradeCard:
            return cls(**_facts_of(label_sums, scale, plan), ungraded=sums.ungraded)

        parts = {}
        for name, label_sums in sums.by.items():
            by_label = {str(label): label_sums[label][SUMS] for label in label_sums.labels}
            # Subgroups that are groups themselves have answers that are independent within them.
            alone = all(one.is_one_group for one in by_label.values())
            parts[name] = {label: part(one.ungrouped if alone else one) for label, one in by_label.items()}
        card = replace(
            part(sums.whole),
            card=sums.cards.get(CONFIDENCES),
            tasks=parts.pop(TASK, {}),
            subgroups=parts,
        )
        # Not a field, so bypass the frozen check.
        object.__setattr__(card, "_sums", sums)
        return card

    @property
    def _tally(self) -> GradeTally:
        """The sums that the card was made from."""
        sums = vars(self).get("_sums")
        if sums is None:
            raise InputError(
                "must have been made from answers, or loaded from a saved file",
                argument="card",
                found="a card from JSON has no sums",
            )
        return sums  # type: ignore[no-any-return]

    def merge(self, other: GradeCard) -> GradeCard:
        """The card of the answers of both.

        Parameters
        ----------
        other : GradeCard
            The card of other answers of the same model, with the same options.

        Returns
        -------
        GradeCard
            A new card.
        """
        if not isinstance(other, GradeCard):
            raise VeraxError(f"A grade card merges with another, not with a {type(other).__name__}.")
        return GradeCard.of(self._tally.merge(other._tally))

    def __add__(self, other: GradeCard) -> GradeCard:
        return self.merge(other) if isinstance(other, GradeCard) else NotImplemented

    def save(self, path: str | Path) -> None:
        """Write the card to a file that `load` and `verax merge` read. The sums are kept, no answers.

        Parameters
        ----------
        path : str or path
            The file; `.verax` is the usual ending.
        """
        self._save(path)

    def _save(self, path: str | Path, parts: Sequence[Fingerprint] = ()) -> None:
        """Save the card, with the parts that were merged into it."""
        with storing_ids():
            write_summaries(path, {_ENTRY: self._tally.to_bytes()}, parts)

    @property
    def _fingerprint(self) -> Fingerprint:
        of_subgroups = (cards for _, cards in sorted(self.subgroups.items()))
        parts = [
            by_label[label] for by_label in (self.tasks, *of_subgroups) for label in sorted(by_label, key=str)
        ]
        sums = [(c.answers.asked, c.answers.graded, c.mean, c.deviation) for c in (self, *parts)]
        confidences = [] if self.card is None else [int(self.card._fingerprint.digest[:12], 16)]
        return fingerprint_of(self.answers.asked, [*sums, *confidences])

    @property
    def _group_labels(self) -> Any:
        """The names of the groups, if there are any."""
        losses = self._tally.whole.losses
        return losses.first.labels if losses.tallies else None

    def _pilot(self, name: str | None) -> Pilot:
        """What a plan starts from: the mean grade, or a score of the confidences."""
        if name is not None and name != name_of(self.rule):
            if self.card is None:
                raise not_there("rule", name, [name_of(self.rule)])
            return of_card(self.card, name)
        return of_mean(
            "mean grade",
            self.mean,
            (self.standard_error, self.freedom),
            deviation=self.deviation,
            n_rows=self.n_questions,
            groups=None if self.n_groups == self.n_questions else self.n_groups,
            caution=self.interval.caution,
            of="the grades",
            alike="all grades are the same",
            unit="question" if self._repeated else "row",
        )

    @property
    def n_rows(self) -> int:
        """The number of graded answers."""
        return self.answers.graded

    @property
    def bounds(self) -> tuple[float, float]:
        """The mean grade of all answers, if every ungraded one had the worst and the best grade."""
        return self.rule.high - self.answers.high, self.rule.high - self.answers.low

    @property
    def ways(self) -> tuple[MeanGrade, ...]:
        """The mean grades that a bound is held to besides: what it is if ungraded answers count otherwise.

        None if all are graded, or if it was chosen what ungraded ones count as.
        """
        if self.left_out is None or self.wrong is None or self.ungraded in ("exclude", "wrong"):
            return ()
        if self.ungraded == "by-reason":
            return self.left_out, self.wrong
        assert self.bounds_interval is not None
        return (MeanGrade(self.bounds[0], self.bounds_interval),)

    @property
    def unsettled(self) -> bool:
        """Whether the mean depends on what ungraded answers count as.

        That is if they are more than one in twenty, or their bounds are wider than the interval.
        """
        if not self.ways:
            return False
        (low, high), (least, most) = self.interval, self.bounds
        return self.answers.share > _MANY or not most - least <= high - low

    def _findings(self) -> list[Finding]:
        if math.isnan(self.mean):
            return [Finding(Claim.TOO_FEW, "No answer was graded.")]
        scale = "" if (self.rule.low, self.rule.high) == (0, 1) else f" of {self.rule.high:g}"
        ends = in_brackets(self.interval, 4) or f" (no {100 * self.confidence:g}% CI)"
        text = f"Mean grade {self.mean:.4f}{scale}{ends}, {self._counted}."
        numbers = {"mean": (self.mean, self.interval)}
        found = [Finding(Claim.SCORE, text, numbers=numbers, caution=self.interval.caution)]
        if self.unsettled and self.wrong is not None and self.left_out is not None:
            ways = {"wrong": self.wrong, "left_out": self.left_out}
            both: Any = {name: (one.mean, one.interval) for name, one in ways.items()}
            found.append(Finding(Claim.SCORE, self._if_otherwise, numbers=both))
        return found

    @property
    def _repeated(self) -> bool:
        return self.answers.asked > self.answers.questions > 0

    @property
    def _counted(self) -> str:
        """The number of graded answers, and of their questions if these were repeated."""
        answers = f"{self.n_rows:,} graded answers"
        return f"{answers} to {self.n_questions:,} questions" if self._repeated else answers

    @property
    def _if_otherwise(self) -> str:
        """What ungraded answers could change, in a sentence."""
        assert self.wrong is not None
        assert self.left_out is not None
        assert self.bounds_interval is not None
        reasons = self.answers.reasons.items()
        left = sorted(((became.answers - became.graded, reason) for reason, became in reasons), reverse=True)
        why = ", ".join(f"{n:,} {reason}" for n, reason in left if n)
        low, high = self.bounds
        return (
            f"{self.answers.ungraded:,} of {self.answers.asked:,} answers have no grade ({why}): counted as "
            f"wrong, the mean is {self.wrong.mean:.4f}, left out {self.left_out.mean:.4f}, and whatever they "
            f"deserve between {low:.4f} and {high:.4f}{in_brackets(self.bounds_interval, 4)}."
        )

    def flat(self, prefix: str = "") -> dict[str, float]:
        """All means as one flat dict of floats, for loggers of metrics.

        Parameters
        ----------
        prefix : str, default ""
            A prefix of every name, such as `"val_"`.

        Returns
        -------
        dict of str to float
            The numbers: `grade` with its ends, `task/grade` for each task, and `column=label/grade` for each
            subgroup.
        """
        means = with_ends(f"{prefix}grade", self.mean, self.interval)
        for task, card in self.tasks.items():
            means |= card.flat(f"{prefix}{task}/")
        for name, parts in self.subgroups.items():
            for label, card in parts.items():
                means |= card.flat(f"{prefix}{name}={label}/")
        return {name: float(value) for name, value in means.items()}

    def _tables(self) -> list[Table]:
        tables = [self._table("task" if self.tasks else NO_HEADING, [("all", self), *self.tasks.items()])]
        return tables + [
            replace(self._table(name, list(parts.items())), title=f"by {name}")
            for name, parts in self.subgroups.items()
        ]

    def _frame(self) -> Table:
        lines = [("", "all", self), *(("task", name, card) for name, card in self.tasks.items())]
        lines += [
            (name, label, card) for name, parts in self.subgroups.items() for label, card in parts.items()
        ]
        columns = [
            Column("by", value=lambda line: line[0]),
            Column("label", value=lambda line: line[1]),
            *(replace(column, value=_second(column)) for column in self._columns("")[1:]),
        ]
        return Table(columns, lines)

    def _table(self, name: str, lines: list[tuple[str, GradeCard]]) -> Table:
        return Table(self._columns(name), lines)

    def _columns(self, name: str) -> list[Column]:
        columns = [
            Column(name, name, value=lambda line: line[0], right=False),
            Column("answers", "answers", ",", lambda line: line[1].answers.asked),
            Column("ungraded", "not graded", ",", lambda line: line[1].answers.ungraded),
            Column("mean", "mean grade", ".4f", lambda line: line[1].mean),
            Column(
                "low high",
                interval_head(self.confidence),
                ".4f",
                lambda line: line[1].interval,
                right=False,
            ),
        ]
        if self.ways:
            columns.append(
                Column("least most", "with ungraded", _ends, lambda line: line[1].bounds, right=False)
            )
        return columns

    def _heading(self) -> str:
        to = f" to {self.answers.questions:,} questions" if self._repeated else ""
        own = self._repeated and self.n_groups == self.n_questions
        groups = "" if self.n_groups is None or own else f", {in_words(self.n_groups)}"
        return f"verax grades: {self.answers.asked:,} answers{to}{groups}"

    @property
    def notes(self) -> list[str]:
        """Notes for readers, a sentence each."""
        said = in_spite(self.answers.reasons, self.answers.asked)
        if self.answers.counted and self.ungraded == "by-reason":
            said.append(
                f"{self.answers.counted:,} answers without a grade count as wrong, because that is the "
                f"model's doing; {self.answers.ungraded - self.answers.counted:,} are left out."
            )
        if self.card is not None and self.card.n_rows < self.n_rows:
            said.append(f"{self.card.n_rows:,} of {self.n_rows:,} graded answers have a confidence.")
        return said

    def _notes(self) -> list[str]:
        return [*self.notes, *self.remarks]


def card_from_bytes(stored: bytes) -> GradeCard:
    """The card of sums that `save` wrote."""
    return GradeCard.of(GradeTally.from_bytes(stored))


def _second(column: Column) -> Callable[[Any], Any]:
    """The value of a column for lines that begin with the name of their breakdown."""
    return lambda line: column.of(line[1:])


def _ends(line: tuple[str, GradeCard]) -> str:
    low, high = line[1].bounds
    return f"{low:.4f} to {high:.4f}"


def _facts_of(sums: GradeSums, scale: Grade, plan: Resampling) -> dict[str, Any]:
    """The mean grade of some answers, and what belongs to it, by the names of the fields of a card."""
    losses: PairedTally = sums.losses.of_rule(scale)
    (answers,) = sums.answers.answered((ONLY,), scale.bounds(2))
    known = {"answers": answers, "rule": scale, "confidence": plan.confidence}
    between = answers.between > 0
    under = {
        how: _mean_of(tallies.of_rule(scale), scale, plan, between=between)
        for how, tallies in sums.under.items()
    }
    if under:
        known["left_out"], known["wrong"] = under["exclude"], under["wrong"]
        low, high = under["wrong"].interval, under["right"].interval
        ends = Interval(low[0], high[1], method=low.method, confidence=plan.confidence)
        known["bounds_interval"] = ends.by(low.method, low.caution)
    if not losses.n_rows:
        return {**vars(_mean_of(losses, scale, plan, between=between)), "n_groups": None, **known}
    estimate = Estimate.of(losses, np.zeros((0, 0)), Units("rows"))
    return {
        **vars(_mean_of(losses, scale, plan, between=between)),
        "n_groups": losses.n_groups,
        "n_questions": losses.n_rows,
        "standard_error": float(estimate.error[0]),
        "freedom": float(np.max(estimate.freedom)),
        "deviation": float(losses.moments.std[1]),
        **known,
    }


def _mean_of(losses: PairedTally, scale: Grade, plan: Resampling, *, between: bool) -> MeanGrade:
    """The mean grade of the questions of a tally; `between` tells whether answers are graded so."""
    if not losses.n_rows:
        return MeanGrade(math.nan, Interval.undefined("no answer was graded", confidence=plan.confidence))
    estimate = Estimate.of(losses, np.zeros((0, 0)), Units("rows"))
    kind = LossKind("grade", scale.bounds(2), between=between)
    interval = interval_of_model(losses, 0, kind, estimate, plan.confidence)
    return MeanGrade(scale.high - float(losses.means[0]), (-interval).shifted(scale.high))
