"""The card of one model's graded answers, and how it is shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from verax.cli.opening import cut
from verax.inputs.reading import Reading

if TYPE_CHECKING:
    from verax.analyses.calibration.summary import CalibrationSummary
    from verax.analyses.grades.result import GradeCard
    from verax.files.grades import GradedAnswers


def card_texts(card: GradeCard) -> list[str]:
    """A card for the terminal, with that of its confidences."""
    from verax.analyses.grades.result import NOT_THE_ACCURACY

    below = (
        [] if card.card is None else ["\nConfidences as forecasts of being right (class 1):", str(card.card)]
    )
    return [card._text(), *below, *([] if card.card is None else [NOT_THE_ACCURACY])]


def evaluated(
    answers: GradedAnswers, reading: Reading, confidence: float, bounds: Sequence[Any]
) -> tuple[GradeCard, CalibrationSummary | None]:
    """The card of answers, and the calibration of their confidences where a bound is about it."""
    from verax.analyses.grades.evaluation import evaluate_grades, of_answers, scored_confidences

    groups: Any = answers.groups if len(answers.groups) > 1 else next(iter(answers.groups), None)
    bins = {name: n for name, n in reading.cuts.items() if n}
    by = {
        name: cut(name, labels, bins[name], held=True) if name in bins else labels
        for name, labels in answers.by.items()
    }
    skip = reading.invalid == "skip"
    own = {"ids": answers.ids, "epochs": answers.epochs, "groups": groups, "weights": answers.weights}
    card = evaluate_grades(
        answers.grades,
        answers.confidences,
        grade_range=reading.grade_range,
        task=answers.task,
        by=by,
        **own,
        ungraded=reading.ungraded,  # type: ignore[arg-type]
        invalid="skip" if skip else "raise",
        confidence=confidence,
    )
    names = [bound.name for bound in bounds if bound.on_calibration]
    if not names or answers.confidences is None:
        return card, None
    from verax.analyses.calibration.summary import summarize
    from verax.analyses.measures import OF_ALL

    y, p, rows = scored_confidences(answers.grades, answers.confidences, card.rule, skip=skip)
    read = of_answers(rows, **own)
    wide = any(bound.name in OF_ALL and bound.end != "mean" for bound in bounds)
    found = summarize(y, p, bootstrap=100 if wide else 0, also=names, confidence=confidence, **read)
    return card, found
