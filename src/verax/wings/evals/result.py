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
from verax.common.faces import Hidden
from verax.common.idkeys import storing_ids
from verax.common.texts import percent
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
from verax.inputs.validity import MANY
from verax.scores.grades import Grade
from verax.scores.registry import name_of
from verax.wings.evals.summaries import CONFIDENCES, SUMS, TASK, GradeSums, GradeTally
from verax.wings.plan.pilots import Pilot, not_there, of_card, of_mean

# The entry of files that hold a card, as the wing declares it.
_ENTRY = "grades"
# The note below the card of the confidences.
NOT_THE_ACCURACY = "Its accuracy is that of decisions by confidence; that of the answers is above."


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
    bounded : bool
        Whether to show the bounds that ungraded answers leave open.
    tasks : dict of str to GradeCard
        The same for each task.
    subgroups : dict of str to dict of str to GradeCard
        The same for each label of each breakdown.
    standard_error : float
        The standard error of the mean; it allows for groups.
    freedom : float
        Its degrees of freedom.
    deviation : float
        The standard deviation of the grades.

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
    bounded: Hidden[bool] = True
    tasks: dict[str, GradeCard] = field(default_factory=dict)
    subgroups: dict[str, dict[str, GradeCard]] = field(default_factory=dict)
    standard_error: Hidden[float] = math.nan
    freedom: Hidden[float] = math.nan
    deviation: Hidden[float] = math.nan

    _notes_apart = True

    _facts = ("n_rows", "_range", "answers.asked", "answers.ungraded", "bounds", "notes")

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
            return cls(**_facts_of(label_sums, scale, plan), bounded=sums.bounded)

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
            n_rows=self.n_rows,
            groups=self.n_groups,
            caution=self.interval.caution,
            of="the grades",
            alike="all grades are the same",
        )

    @property
    def n_rows(self) -> int:
        """The number of graded answers."""
        return self.answers.graded

    @property
    def bounds(self) -> tuple[float, float]:
        """The mean grade of all answers, if every ungraded one had the worst and the best grade."""
        return self.rule.high - self.answers.high, self.rule.high - self.answers.low

    def _findings(self) -> list[Finding]:
        if math.isnan(self.mean):
            return [Finding(Claim.TOO_FEW, "No answer was graded.")]
        scale = "" if (self.rule.low, self.rule.high) == (0, 1) else f" of {self.rule.high:g}"
        ends = in_brackets(self.interval, 4) or f" (no {100 * self.confidence:g}% CI)"
        text = f"Mean grade {self.mean:.4f}{scale}{ends}, {self.n_rows:,} graded answers."
        numbers = {"mean": (self.mean, self.interval)}
        return [Finding(Claim.SCORE, text, numbers=numbers, caution=self.interval.caution)]

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
        if self.bounded and self.answers.ungraded:
            columns.append(
                Column("least most", "with ungraded", _ends, lambda line: line[1].bounds, right=False)
            )
        return columns

    def _heading(self) -> str:
        groups = "" if self.n_groups is None else f", {in_words(self.n_groups)}"
        return f"verax grades: {self.answers.asked:,} answers{groups}"

    @property
    def notes(self) -> list[str]:
        """Notes for readers, a sentence each."""
        said = []
        if self.answers.share > MANY:
            low, high = self.bounds
            said.append(
                f"Caution: {self.answers.ungraded:,} of {self.answers.asked:,} answers "
                f"({percent(self.answers.share, 1)}) were not graded. Counted as worst and as best possible, "
                f"they put the mean grade between {low:.4f} and {high:.4f}."
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
    if not losses.n_rows:
        none = Interval.undefined("no answer was graded", confidence=plan.confidence)
        return {"mean": math.nan, "interval": none, "n_groups": None, **known}
    estimate = Estimate.of(losses, np.zeros((0, 0)), Units("rows"))
    kind = LossKind("grade", scale.bounds(2))
    interval = interval_of_model(losses, 0, kind, estimate, plan.confidence)
    return {
        "mean": scale.high - float(losses.means[0]),
        "interval": (-interval).shifted(scale.high),
        "n_groups": losses.n_groups,
        "standard_error": float(estimate.error[0]),
        "freedom": float(np.max(estimate.freedom)),
        "deviation": float(losses.moments.std[1]),
        **known,
    }
