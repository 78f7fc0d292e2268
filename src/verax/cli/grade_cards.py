"""The grades of one model, as `evaluate` and `merge` show them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from verax.cli.app import FAILED
from verax.cli.arguments import Typed
from verax.cli.grade_bounds import grade_bounds, hold_grades
from verax.cli.grading import Grading
from verax.cli.opening import cut
from verax.cli.options import Reading
from verax.cli.output import command_line, show, told, verdict_lines
from verax.cli.require import BoundCheck
from verax.common.paths import Files, called
from verax.errors import InputError, Remedy

if TYPE_CHECKING:
    from verax.analyses.calibration.summary import CalibrationSummary
    from verax.analyses.grades.result import GradeCard
    from verax.files.grades import GradedAnswers


def show_grades(
    model: str,
    paths: Files,
    grading: Grading,
    reading: Reading,
    *,
    named: bool,
    rule: list[str] | None,
    require: list[str] | None,
    strictly: bool,
    html: Path | None,
    save: Path | None,
    confidence: float,
    as_json: bool,
) -> None:
    """Print the mean grade of a file, what was not graded, and the card of its confidences; hold bounds."""
    if rule:
        raise InputError(
            "cannot be used with graded answers: the grade is the score",
            argument="rule",
            values=rule,
            remedies=[Remedy("Confidences in answers are scored by every applicable rule.")],
        )
    bounds = grade_bounds(require, strictly=strictly, ends=grading.ends)
    answers = grading.read_one(paths, reading, named=named)
    card, calibration = evaluated(answers, grading, reading, confidence, bounds)
    verdicts = hold_grades(bounds, card, calibration)
    file, verdict = called(paths), card.verdict.with_source(Typed.source())
    if html is not None:
        from verax.report.questions import save_grade_page

        held = [str(verdict) for verdict in verdicts]
        source = f"{Path(file).name}: {'; '.join(answers.taken)}"
        save_grade_page(card, html, name=model, source=source, held=held, command=command_line("evaluate"))
    if save is not None:
        card.save(save)
    result = {
        "command": "evaluate",
        "file": file,
        **told(verdict),
        "taken": list(answers.taken),
        "grades": card.to_dict(stored=False),
        "calibration": None if calibration is None else calibration.to_dict(stored=False),
        **_of_verdicts(verdicts),
        "html": None if html is None else str(html),
        "save": None if save is None else str(save),
        "notes": card.notes,
    }
    texts = [*verdict_lines(verdict, model), f"{file}: {'; '.join(answers.taken)}", *card_texts(card)]
    texts += map(str, verdicts)
    texts += [] if html is None else [f"The page is in {html}."]
    texts += [] if save is None else [f"Saved results are in {save}."]
    show(result, texts, as_json=as_json)
    if not result["met"]:
        raise typer.Exit(FAILED)


def card_texts(card: GradeCard) -> list[str]:
    """A card for the terminal, with that of its confidences."""
    from verax.analyses.grades.result import NOT_THE_ACCURACY

    below = (
        [] if card.card is None else ["\nConfidences as forecasts of being right (class 1):", str(card.card)]
    )
    return [card._text(), *below, *([] if card.card is None else [NOT_THE_ACCURACY])]


def evaluated(
    answers: GradedAnswers, grading: Grading, reading: Reading, confidence: float, bounds: Sequence[Any]
) -> tuple[GradeCard, CalibrationSummary | None]:
    """The card of answers, and the calibration of their confidences where a bound is about it."""
    from verax.analyses.grades.evaluation import evaluate_grades, of_answers, scored_confidences

    groups: Any = answers.groups if len(answers.groups) > 1 else next(iter(answers.groups), None)
    bins = {name: n for name, n in reading.bins.items() if n}
    by = {
        name: cut(name, labels, bins[name], held=True) if name in bins else labels
        for name, labels in answers.by.items()
    }
    skip = reading.skip_invalid
    own = {"ids": answers.ids, "epochs": answers.epochs, "groups": groups, "weights": answers.weights}
    card = evaluate_grades(
        answers.grades,
        answers.confidences,
        grade_range=grading.ends,
        task=answers.task,
        by=by,
        **own,
        ungraded=grading.ungraded,  # type: ignore[arg-type]
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


def _of_verdicts(verdicts: Sequence[BoundCheck]) -> dict[str, Any]:
    return {"require": [own.to_dict() for own in verdicts], "met": all(own.met for own in verdicts)}
