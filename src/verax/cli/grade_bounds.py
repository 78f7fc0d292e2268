"""`--require` on graded answers: bounds on the mean grade, on ungraded answers, and on confidences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from verax.cli.require import Bound, BoundCheck, check_direction, is_met, parts_of, read_bounds, refusal
from verax.errors import Remedy

if TYPE_CHECKING:
    from verax.analyses.calibration.summary import CalibrationSummary
    from verax.analyses.grades.result import GradeCard

# What is known of graded answers: the mean grade, which is the accuracy of right-or-wrong grades, and the
# share of answers that were not graded.
GRADE, ACCURACY, UNGRADED = "grade", "accuracy", "ungraded"


@dataclass(frozen=True)
class GradeBound(Bound):
    """A requirement of graded answers."""

    def of(self, card: GradeCard) -> BoundCheck:
        """Whether a card meets it. A bound on an undefined value fails."""
        if self.name == UNGRADED:
            value = card.answers.share
        else:
            value = {"mean": card.mean, "low": card.interval[0], "high": card.interval[1]}[self.end]
        return BoundCheck(self, value, is_met(self, value))


def grade_bounds(texts: Sequence[str] | None, *, strictly: bool, ends: tuple[float, float]) -> list[Bound]:
    """The bounds that texts state; those of other names are about the card of the confidences."""
    found: list[Bound] = []
    for text in texts or ():
        parts, bound = parts_of(text)
        name = parts["name"]
        if name not in (GRADE, ACCURACY, UNGRADED):
            found += read_bounds([text], strictly=strictly, ordered=False)
            continue
        if name == ACCURACY and ends != (0.0, 1.0):
            other = Remedy(f"Type the bound as {text.replace(ACCURACY, GRADE)!r}.")
            raise refusal(text, f"grades from {ends[0]:g} to {ends[1]:g} have a mean, not an accuracy", other)
        check_direction(text, name, name == UNGRADED, parts)
        if name == UNGRADED and parts["end"]:
            raise refusal(text, "the share of ungraded answers is counted, and has no interval")
        end = "low" if name != UNGRADED and (strictly or parts["end"]) else "mean"
        found.append(GradeBound(text, name, end, parts["sign"], bound))
    return found


def hold_grades(
    bounds: Sequence[Bound], card: GradeCard, calibration: CalibrationSummary | None
) -> list[BoundCheck]:
    """Whether a card meets bounds."""
    found = []
    for bound in bounds:
        if isinstance(bound, GradeBound):
            found.append(bound.of(card))
            continue
        if card.card is None:
            raise refusal(
                bound.text,
                f"{bound.name} is about confidences, and the file has none",
                Remedy("Name their column with --confidence-column, or bound grade, accuracy or ungraded."),
            )
        found.append(bound.hold(card.card, calibration))
    return found
