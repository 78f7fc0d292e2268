"""The grades of one model, as `evaluate` shows them."""

from __future__ import annotations

from typing import Any

from verax.cli.grading import Grading
from verax.cli.options import Reading
from verax.cli.output import show
from verax.common.paths import Files, called


def show_grades(
    model: str, paths: Files, grading: Grading, reading: Reading, *, confidence: float, as_json: bool
) -> None:
    """Print the mean grade of a file, what was not graded, and the card of its confidences."""
    from verax.analyses.grades.evaluation import evaluate_grades

    answers = grading.read_one(paths, reading)
    groups: Any = answers.groups if len(answers.groups) > 1 else next(iter(answers.groups), None)
    card = evaluate_grades(
        answers.grades,
        answers.confidences,
        grade_range=grading.ends,
        ids=answers.ids,
        epochs=answers.epochs,
        task=answers.task,
        groups=groups,
        weights=answers.weights,
        ungraded=grading.ungraded,  # type: ignore[arg-type]
        invalid="skip" if reading.skip_invalid else "raise",
        confidence=confidence,
    )
    file = called(paths)
    result = {
        "command": "evaluate",
        "file": file,
        "verdict": card.headline,
        "taken": list(answers.taken),
        "grades": card.to_dict(stored=False),
        "notes": card.notes,
    }
    texts = [f"{model}: {card.headline}\n", f"{file}: {'; '.join(answers.taken)}", str(card)]
    if card.card is not None:
        texts += ["\nConfidences as forecasts of being right (class 1):", str(card.card)]
        texts.append("Its accuracy is that of decisions by confidence; that of the answers is above.")
    show(result, texts, as_json=as_json)
