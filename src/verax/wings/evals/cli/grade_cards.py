"""Graded answers of one model: their card, which is held to bounds, and the worst of them.

Bounds (`--require`) are on the mean grade, on ungraded answers, and on confidences.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from verax.cli.require import Bound, BoundCheck, check_direction, is_met, parts_of, read_bounds, refusal
from verax.display.tables import text_table
from verax.errors import Remedy
from verax.inputs.reading import Reading

if TYPE_CHECKING:
    from verax.analyses.calibration.curves import ReliabilityCurve
    from verax.analyses.calibration.summary import CalibrationSummary
    from verax.wings.evals.reading.files import GradedAnswers
    from verax.wings.evals.result import GradeCard, MeanGrade

# How many characters of a text are shown.
_LONGEST = 100
# Facts on graded answers: the mean grade, which is the accuracy of right-or-wrong grades, and the
# share of answers that were not graded.
GRADE, ACCURACY, UNGRADED = "grade", "accuracy", "ungraded"


@dataclass(frozen=True)
class GradeBound(Bound):
    """A requirement of graded answers."""

    def of(self, card: GradeCard) -> BoundCheck:
        """Whether a card meets it: whatever ungraded answers count as, unless that was chosen.

        A bound on an undefined value fails.
        """
        if self.name == UNGRADED:
            return BoundCheck(self, card.answers.share, is_met(self, card.answers.share))
        means: list[GradeCard | MeanGrade] = [card, *card.ways]
        values = [self._end(one) for one in means]
        missed = next((value for value in values if not is_met(self, value)), None)
        return BoundCheck(self, values[0] if missed is None else missed, missed is None)

    def _end(self, of: GradeCard | MeanGrade) -> float:
        return {"mean": of.mean, "low": of.interval[0], "high": of.interval[1]}[self.end]


def grade_bounds(texts: Sequence[str] | None, *, strictly: bool, ends: tuple[float, float]) -> list[Bound]:
    """The bounds that texts state; those of other names are about the card of the confidences."""
    bounds: list[Bound] = []
    for text in texts or ():
        parts, bound = parts_of(text)
        name = parts["name"]
        if name not in (GRADE, ACCURACY, UNGRADED):
            bounds += read_bounds([text], strictly=strictly, ordered=False)
            continue
        if name == ACCURACY and ends != (0.0, 1.0):
            other = Remedy(f"Type the bound as {text.replace(ACCURACY, GRADE)!r}.")
            raise refusal(text, f"grades from {ends[0]:g} to {ends[1]:g} have a mean, not an accuracy", other)
        check_direction(text, name, name == UNGRADED, parts)
        if name == UNGRADED and parts["end"]:
            raise refusal(text, "the share of ungraded answers is counted, and has no interval")
        end = "low" if name != UNGRADED and (strictly or parts["end"]) else "mean"
        bounds.append(GradeBound(text, name, end, parts["sign"], bound))
    return bounds


def hold_grades(
    bounds: Sequence[Bound], card: GradeCard, calibration: CalibrationSummary | None
) -> list[BoundCheck]:
    """Whether a card meets bounds."""
    checks = []
    for bound in bounds:
        if isinstance(bound, GradeBound):
            checks.append(bound.of(card))
            continue
        if card.card is None:
            raise refusal(
                bound.text,
                f"{bound.name} is about confidences, and the file has none",
                Remedy("Name their column with --confidence-column, or bound grade, accuracy or ungraded."),
            )
        checks.append(bound.hold(card.card, calibration))
    return checks


def card_texts(card: GradeCard) -> list[str]:
    """A card for the terminal, with that of its confidences."""
    from verax.wings.evals.result import NOT_THE_ACCURACY

    below = (
        [] if card.card is None else ["\nConfidences as forecasts of being right (class 1):", str(card.card)]
    )
    return [card._text(), *below, *([] if card.card is None else [NOT_THE_ACCURACY])]


def _beside(answers: GradedAnswers, reading: Reading) -> dict[str, Any]:
    """The columns beside grades and what ungraded answers count as, as keywords."""
    groups: Any = answers.groups if len(answers.groups) > 1 else next(iter(answers.groups), None)
    beside = {"ids": answers.ids, "epochs": answers.epochs, "groups": groups, "weights": answers.weights}
    return {**beside, "ungraded": reading.ungraded, "reasons": answers.status}


def _scored(answers: GradedAnswers, reading: Reading, card: GradeCard) -> tuple[Any, Any, dict[str, Any]]:
    """Right or wrong and confidence of the answers that have both, and their weights and groups."""
    from verax.analyses.comparison.opening import QuestionOptions
    from verax.wings.evals.analysis import scored_confidences

    options = QuestionOptions(**_beside(answers, reading))
    skip = reading.invalid == "skip"
    return scored_confidences(answers.grades, answers.confidences, card.rule, options, skip=skip)


def reliability_of(answers: GradedAnswers, reading: Reading, card: GradeCard) -> ReliabilityCurve | None:
    """The reliability of the confidences; None without any."""
    from verax.analyses.calibration.reliability import reliability

    if card.card is None:
        return None
    y, p, beside = _scored(answers, reading, card)
    return next(iter(reliability(y, p, **beside).curves))


def evaluated(
    answers: GradedAnswers, reading: Reading, confidence: float, bounds: Sequence[Any]
) -> tuple[GradeCard, CalibrationSummary | None]:
    """The card of answers, and the calibration of their confidences where a bound is about it."""
    from verax.scans.cuts import Cut
    from verax.wings.evals.analysis import evaluate_grades

    by = dict(answers.by)
    for name, n in reading.cuts.items():
        by[name] = Cut.of_rows(name, by[name], n).labels(by[name]) if n else by[name]
    card = evaluate_grades(
        answers.grades,
        answers.confidences,
        grade_range=reading.grade_range,
        task=answers.task,
        by=by,
        **_beside(answers, reading),
        invalid="skip" if reading.invalid == "skip" else "raise",
        confidence=confidence,
    )
    names = [bound.name for bound in bounds if bound.on_calibration]
    if not names or answers.confidences is None:
        return card, None
    from verax.analyses.calibration.summary import summarize
    from verax.analyses.measures import OF_ALL

    y, p, read = _scored(answers, reading, card)
    wide = any(bound.name in OF_ALL and bound.end != "mean" for bound in bounds)
    calibration = summarize(y, p, bootstrap=100 if wide else 0, also=names, confidence=confidence, **read)
    return card, calibration


def case_of(answers: GradedAnswers, row: int) -> dict[str, Any]:
    """An answer with its grade, confidence, and what the file says of it."""
    named, sure = answers.ids, answers.confidences
    return {
        "row": row,
        "id": None if named is None else str(named[row]),
        "grade": float(answers.grades[row]),
        "confidence": None if sure is None else _number(sure[row]),
        "about": {name: _text(column[row]) for name, column in answers.about.items()},
    }


def worst_cases(answers: GradedAnswers, best: float, n: int) -> list[dict[str, Any]]:
    """The answers with the lowest grades below the best; of equal ones, those with the highest confidence."""
    loss = best - answers.grades
    sure = np.zeros(len(loss)) if answers.confidences is None else np.nan_to_num(answers.confidences)
    graded = np.flatnonzero(~np.isnan(loss))
    order = graded[np.lexsort((graded, -sure[graded], -loss[graded]))]
    return [case_of(answers, int(row)) for row in order[:n] if loss[row] > 0]


def table_of(cases: list[dict[str, Any]], names: list[str]) -> list[str]:
    """Answers as a table; `names` are the columns of what the file says of them."""
    if not cases:
        return ["Every graded answer has the best grade."]
    sure = cases[0]["confidence"] is not None
    named = cases[0]["id"] is not None
    head = ["id" if named else "row", "grade", *(["confidence"] if sure else []), *names]
    rows = []
    for case in cases:
        row = [str(case["id"] if named else case["row"]), f"{case['grade']:g}"]
        row += [_decimals(case["confidence"])] if sure else []
        rows.append(row + [_short(case["about"][name]) for name in names])
    return text_table([head, *rows], right=[1])


def _decimals(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _short(text: str | None) -> str:
    line = " ".join((text or "").split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 3] + "..."


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
