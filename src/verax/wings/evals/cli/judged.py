"""Grades of a judge that people checked, and reduced repeats, at the command line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from verax.cli.arguments import Typed
from verax.cli.output import command_line, show
from verax.cli.require import BoundCheck, is_met, refusal
from verax.common.paths import Files, called
from verax.errors import InputError, Remedy, passing
from verax.inputs.reading import Reading
from verax.wings.evals.cli.grade_cards import UNGRADED, GradeBound, grade_bounds
from verax.wings.judges.result import JudgedGrades

if TYPE_CHECKING:
    from verax.wings.evals.reading.files import GradedAnswers
    from verax.wings.repeats.result import RepeatScores

Judge = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Column of a judge's grades of all answers; --grade is then that of people, empty where nobody "
        "checked (several: alice,bob). Means are corrected by them.",
    ),
]
Checks = Annotated[
    str | None,
    typer.Option(
        "--checks",
        metavar="HOW",
        rich_help_panel="Fine points",
        help="How the answers that people graded were chosen: random, by-grade (at random among those of the "
        "same grade by the judge), or a column of probabilities.",
    ),
]
Reduced = Annotated[
    str | None,
    typer.Option(
        "--k",
        metavar="K",
        help="pass@k over repeats, such as 1,5,10. Also pass^5, '3 of 5', 'majority of 5', 'best of 5'.",
    ),
]
_WORDS = ("random", "by-grade", "by-hand")


def show_judged(
    paths: Files,
    reading: Reading,
    judge: str,
    checks: str | None,
    *,
    named: bool,
    model: str,
    require: Sequence[str] | None,
    strictly: bool,
    confidence: float,
    html: Path | None,
    as_json: bool,
) -> None:
    """Print the corrected mean grade of one model."""
    from verax.wings.evals.analysis import evaluate_grades

    bounds = grade_bounds(require, strictly=strictly, ends=reading.grade_range)
    people, by_judge = _read_both(paths, reading, judge, named=named)
    answers = people[0]
    design = _design(checks, lambda column: _read(paths, reading, column, named=named).grades)
    found = evaluate_grades(
        np.stack([of_person.grades for of_person in people], axis=1),
        judge=by_judge.grades,
        checks=design,
        grade_range=reading.grade_range,
        groups=_groups(answers),
        confidence=confidence,
    )
    held = [_held(bound, found) for bound in bounds]
    known = [line for line in answers.taken if "answers not graded" not in line]
    said = [f"{called(paths)}: judge: {judge}", *known]
    if html is not None:
        _save_page(found, html, f"How good are the answers{f' of {model}' if model else ''}?", said, held)
    _show(found, paths, said, model, held, html=html, as_json=as_json)


def show_repeats(
    given: Mapping[str, Files],
    reading: Reading,
    k: str,
    *,
    named: bool,
    confidence: float,
    html: Path | None,
    as_json: bool,
) -> None:
    """Print reduced repeats of one model."""
    from verax.wings.repeats.analysis import pass_at_k

    ((model, paths),) = given.items()
    answers = _read(paths, reading, None, named=named)
    if answers.ids is None:
        raise InputError(
            "must name the question of each answer, for its repeats", argument="id", kind="missing"
        )
    kinds = answers.groups
    if len(kinds) > 1:
        raise InputError("must be one column with --k", argument="groups")
    found = pass_at_k(
        answers.grades,
        k,
        ids=answers.ids,
        groups=kinds[0] if kinds else None,
        grade_range=reading.grade_range,
        ungraded="wrong" if reading.ungraded == "wrong" else "exclude",
        confidence=confidence,
    )
    said = [f"{called(paths)}: {'; '.join(answers.taken)}"]
    if html is not None:
        _save_page(found, html, f"How good are {k} answers{f' of {model}' if model else ''}?", said, [])
    _show(found, paths, said, model, [], html=html, as_json=as_json)


def _show(
    found: JudgedGrades | RepeatScores,
    paths: Files,
    said: list[str],
    model: str,
    held: list[BoundCheck],
    *,
    html: Path | None,
    as_json: bool,
) -> None:
    result = {
        "file": called(paths),
        "taken": said,
        "grades": found.to_dict(stored=False),
        "calibration": None,
        "notes": list(found.notes),
    }
    texts = ["; ".join(said), found._text()]
    verdict = found.verdict.with_source(Typed.source())
    show(result, texts, model, as_json=as_json, verdict=verdict, checks=held, page=html, results=None)


def judged_arguments(given: list[str], reading: Reading, judge: str, checks: str | None) -> Any:
    """The answers of several models, and keywords of `compare_grades` with a judge."""
    from verax.wings.evals.cli.grading import GradedFiles

    people = GradedFiles.of(given, reading, scored=False)
    by_judge = GradedFiles.of(given, replace(reading, grades=judge), scored=False)
    arguments, of_judge = people.arguments(), by_judge.arguments()
    design: Any = checks
    if checks is not None and checks not in _WORDS:
        design = GradedFiles.of(given, replace(reading, grades=checks), scored=False).arguments()["grades"]
    for name in ("task", "weights"):
        if arguments.get(name) is not None:
            raise InputError("cannot be used with `judge`", argument=name)
    kept = ("grades", "grade_range", "ids", "epochs", "groups")
    keywords = {name: arguments[name] for name in kept if name in arguments}
    return people, {**keywords, "judge": of_judge["grades"], "checks": design}


def _read(paths: Files, reading: Reading, column: str | None, *, named: bool) -> GradedAnswers:
    from verax.wings.evals.reading.models import read_one

    return read_one(paths, reading if column is None else replace(reading, grades=column), named=named)


def _read_both(
    paths: Files, reading: Reading, judge: str, *, named: bool
) -> tuple[list[GradedAnswers], GradedAnswers]:
    """The grades of each person, and those of the judge."""
    if not isinstance(reading.grades, str):
        raise InputError(
            "must name the column of people's grades",
            argument="grade",
            kind="missing",
            remedies=[passing("for the column of people", grade=...)],
        )
    if "," in judge:
        raise InputError(
            "must be one column",
            argument="judge",
            values=[judge],
            remedies=[Remedy("Correct each judge on its own.")],
        )
    for name, value in (("weights", reading.weights), ("task", reading.task), ("by", reading.by)):
        if value:
            raise InputError("cannot be used with `judge`", argument=name)
    # Commas are also between what texts are as grades: human:good=1,bad=0.
    names = [reading.grades] if "=" in reading.grades else reading.grades.split(",")
    people = [_read(paths, reading, name.strip(), named=named) for name in names]
    return people, _read(paths, reading, judge, named=named)


def _groups(answers: GradedAnswers) -> Any:
    """The groups of answers, which are by question where these were repeated."""
    if len(answers.groups) > 1:
        raise InputError("must be one column with --judge", argument="groups")
    if answers.groups:
        return answers.groups[0]
    return answers.ids if answers.epochs is not None else None


def _design(checks: str | None, column: Any) -> Any:
    return checks if checks is None or checks in _WORDS else column(checks)


def _held(bound: Any, found: JudgedGrades) -> BoundCheck:
    """Whether a corrected mean meets a bound."""
    if not isinstance(bound, GradeBound) or bound.name == UNGRADED:
        raise refusal(bound.text, "a corrected mean has grade and accuracy only")
    value = {"mean": found.mean, "low": found.low, "high": found.high}[bound.end]
    return BoundCheck(bound, value, is_met(bound, value))


def _save_page(
    found: JudgedGrades | RepeatScores, path: Path, title: str, said: list[str], held: Sequence[BoundCheck]
) -> None:
    from verax.report.plain import plain_page, save_page, table_of

    def lines() -> Iterator[str]:
        yield f'<p class="verdict">{escape(found.verdict)}</p>'
        yield from (f"<p>{escape(note)}</p>" for note in (*found.notes, *map(str, held)))
        yield from (table_of(table, table.title or "Grades") for table in found._tables())
        yield from (f'<p class="soft">{escape(line)}</p>' for line in said)

    save_page(plain_page(title, list(lines()), command_line()), path)
