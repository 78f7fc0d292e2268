"""`verax evals`: graded answers and evaluation logs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from verax.cli import comparing, options
from verax.cli.app import app
from verax.cli.arguments import Typed
from verax.cli.comparing import Missing, show_questions
from verax.cli.options import reads_answers
from verax.cli.output import Json, command_line, show
from verax.cli.require import Strictly, bounds_on_difference
from verax.common.paths import called
from verax.errors import InputError
from verax.inputs.reading import Reading
from verax.wings.evals.cli.grade_cards import (
    card_texts,
    evaluated,
    grade_bounds,
    hold_grades,
    reliability_of,
    table_of,
    worst_cases,
)
from verax.wings.evals.cli.grading import GradedFiles
from verax.wings.evals.cli.judged import Checks, Judge, Reduced, judged_arguments, show_judged, show_repeats
from verax.wings.plan.command import (
    Difference,
    Margin,
    Models,
    Power,
    PowerPlot,
    RowsPerGroup,
    Width,
    show_plan,
)

# Number of worst answers on a page.
_WORST = 9

evals: typer.Typer = typer.Typer(
    help="Evaluate and compare graded answers and evaluation logs.\n\n"
    "Answers are graded in a column (--grade, or one called correct), or right if they equal --gold. Logs of "
    "Inspect, lm-evaluation-harness, HELM, OLMES and OpenAI evals, and results of promptfoo, DeepEval, "
    "Braintrust, LangSmith, MLflow and Ragas, are recognised by their content."
)
app.add_typer(evals, name="evals")

Answers = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE...",
        help="Answers of one model: an evaluation log, or a table with a row per answer; also a folder or a "
        "pattern.",
    ),
]


@evals.command(
    epilog="""Examples: `verax evals evaluate log.eval`,
`verax evals evaluate new_answers.csv --id qid --groups subject`,
`verax evals evaluate judged.csv --judge judge --grade human`,
`verax evals evaluate passk.csv --id task --k 1,5,10`,
`verax evals evaluate new_answers.csv --by subject --require 'grade.low>0.5' --html page.html`"""
)
@reads_answers()
def evaluate(
    given: Answers,
    reading: Reading,
    require: Annotated[
        list[str] | None,
        typer.Option(
            metavar="BOUND",
            help="A bound such as 'grade>0.6', 'grade.low>0.5', 'ungraded<0.05' or, of confidences, "
            "'ece<0.1'. May be repeated. Exit code 1 if one fails.",
        ),
    ] = None,
    require_interval: Strictly = False,
    confidence: options.Confidence = 0.95,
    as_json: Json = False,
    html: options.Html = None,
    save: options.Save = None,
    ids: options.Ids = None,
    judge: Judge = None,
    drawn: Checks = None,
    k: Reduced = None,
) -> None:
    """Show the mean grade with its confidence interval, and how good confidences in answers are.

    Answers that were not graded are counted, with bounds on what they could change. With --judge the mean of
    a judge's grades is corrected by those of people.
    """
    from verax.files.joining import are_named, files_of_one_model
    from verax.wings.evals.reading.models import read_one

    model, paths = files_of_one_model(given)
    _refuse_together(judge=judge, drawn=drawn, k=k, save=save, require=require)
    about_all: dict[str, Any] = {"named": are_named(given), "confidence": confidence}
    about_all |= {"html": html, "as_json": as_json}
    if judge is not None:
        held: dict[str, Any] = {"require": require, "strictly": require_interval, "model": model}
        show_judged(paths, reading, judge, drawn, **held, **about_all)
        return
    if k is not None:
        show_repeats({model: paths}, reading, k, **about_all)
        return
    bounds = grade_bounds(require, strictly=require_interval, ends=reading.grade_range)
    answers = read_one(paths, reading, named=are_named(given), questions=html is not None)
    card, calibration = evaluated(answers, reading, confidence, bounds)
    checks = hold_grades(bounds, card, calibration)
    file = called(paths)
    if html is not None:
        from verax.wings.evals.page import save_grade_page

        about = {
            "verdicts": [str(check) for check in checks],
            "command": command_line(),
            "curve": reliability_of(answers, reading, card),
            "read": answers.taken,
            "worst": worst_cases(answers, reading.grade_range[1], _WORST),
        }
        save_grade_page(card, html, name=model, source=Path(file).name, **about)
    if save is not None:
        from verax.common.idkeys import saving_ids

        with saving_ids(ids):
            card.save(save)
    result = {
        "file": file,
        "taken": list(answers.taken),
        "grades": card.to_dict(stored=False),
        "calibration": None if calibration is None else calibration.to_dict(stored=False),
        "notes": card.notes,
    }
    texts = [f"{file}: {'; '.join(answers.taken)}", *card_texts(card)]
    verdict = card.verdict.with_source(Typed.source())
    show(result, texts, model, as_json=as_json, verdict=verdict, checks=checks, page=html, results=save)


def _refuse_together(
    judge: str | None,
    drawn: str | None,
    k: str | None = None,
    save: Path | None = None,
    require: list[str] | None = None,
) -> None:
    """Refuse options that have no meaning together."""
    if drawn is not None and judge is None:
        raise InputError("needs `judge`, whose grades people checked", argument="checks", kind="missing")
    if judge is not None and k is not None:
        raise InputError("cannot be used with `judge`", argument="k")
    if save is not None and (judge or k):
        raise InputError("saves mean grades: not with a judge or k", argument="save")
    if k is not None and require:
        raise InputError("is about mean grades: not with k", argument="require")


@evals.command(
    epilog="""Examples: `verax evals compare new_answers.csv old_answers.csv --id qid --groups subject`,
`verax evals compare answers.csv --id qid --model-column model --missing joint`"""
)
@reads_answers(by="--task compares models within each value of a column")
def compare(
    given: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...",
            help="A file, a folder or a pattern for each of two or more models, also as name=FILE; or one "
            "file with --model-column.",
        ),
    ],
    reading: Reading,
    missing: Missing = "refuse",
    rule: Annotated[
        list[str] | None,
        typer.Option(metavar="RULE", help="Compare the confidences by this rule as well. May be repeated."),
    ] = None,
    method: comparing.Method = "moments",
    bootstrap: comparing.Replicates = 2000,
    reference: comparing.Reference = None,
    margin: comparing.Margin = None,
    require: comparing.Require = None,
    confidence: options.Confidence = 0.95,
    seed: options.Seed = 0,
    as_json: Json = False,
    html: options.Html = None,
    plot: comparing.Plot = None,
    judge: Judge = None,
    drawn: Checks = None,
) -> None:
    """Compare models by their answers: which differences are significant.

    Answers are matched by --id, or by the order of the rows. The loss of an answer is the best possible grade
    minus its grade.
    """
    from verax.analyses.comparison.questions import compare_grades

    _refuse_together(judge=judge, drawn=drawn)
    if judge is not None:
        files, arguments = judged_arguments(given, reading, judge, drawn)
        bounds = bounds_on_difference(require, list(files.files))
        how: dict[str, Any] = {"reference": reference, "margin": margin, "rule": rule}
        how["confidence"] = confidence
        comparison = compare_grades(**arguments, **how)
        show_questions(comparison, files.files, files.about, bounds, html=html, plot=plot, as_json=as_json)
        return
    files = GradedFiles.of(given, reading, scored=rule is not None)
    bounds = bounds_on_difference(require, list(files.files))
    how = {"missing": missing, "method": method, "reference": reference, "margin": margin}
    how |= {"bootstrap": bootstrap, "confidence": confidence, "seed": seed, "rule": rule}
    how["weights_are"] = reading.weights_are
    comparison = compare_grades(**files.arguments(), **how)
    show_questions(comparison, files.files, files.about, bounds, html=html, plot=plot, as_json=as_json)


@evals.command(
    epilog="""Examples: `verax evals plan log.eval --width 0.02`,
`verax evals plan new_answers.csv old_answers.csv --id qid --difference 0.03`"""
)
@reads_answers(
    by="pass files with the rows of one subgroup", weights_are="weights are importance weights here"
)
def plan(
    given: Annotated[
        list[str],
        typer.Argument(metavar="FILE...", help="The pilot: answers of one or two models, also as name=FILE."),
    ],
    reading: Reading,
    difference: Difference = None,
    width: Width = None,
    margin: Margin = None,
    rule: Annotated[
        str | None,
        typer.Option(metavar="RULE", help="The rule for confidences; by default the grades are compared."),
    ] = None,
    models: Models = None,
    power: Power = 0.9,
    rows_per_group: RowsPerGroup = None,
    missing: Missing = "refuse",
    plot: PowerPlot = None,
    confidence: options.Confidence = 0.95,
    as_json: Json = False,
) -> None:
    """Plan the number of questions for a difference of grades or an interval width.

    Two models are compared on the questions of the pilot; one is planned for by the width of its interval.
    With --groups the answer is a number of groups.
    """
    from verax.analyses.comparison.questions import compare_grades
    from verax.files import name_files
    from verax.wings.evals.reading.models import read_one

    paths = name_files(given)
    pilot: Any
    if len(paths) == 1 and reading.model_column is None:
        ((name, path),) = paths.items()
        answers = read_one(path, reading)
        pilot, _ = evaluated(answers, reading, confidence, [])
        files = {name: called(path)}
        said = [f"{called(path)}: {'; '.join(answers.taken)}", *pilot.notes]
    else:
        rules = None if rule in (None, "grade") else [rule]
        graded = GradedFiles.of(given, reading, scored=rules is not None)
        how: dict[str, Any] = {"missing": missing, "rule": rules}
        pilot = compare_grades(**graded.arguments(), **how)
        files = dict(graded.files)
        said = graded.about.reading_lines()
    wanted: dict[str, Any] = {"difference": difference, "width": width, "margin": margin, "power": power}
    wanted |= {"rule": rule, "models": models, "rows_per_group": rows_per_group, "confidence": confidence}
    show_plan(pilot, wanted, files, said, plot=plot, as_json=as_json)


@evals.command(
    epilog="Examples: `verax evals worst log.eval`, `verax evals worst new_answers.csv --id qid -n 5`"
)
@reads_answers(
    **dict.fromkeys(("weights", "weights_are"), "answers are ranked by their own grade"),
    groups="answers are ranked one by one, so groups change nothing",
    by="the worst answers of all subgroups are ranked together; pass a file with the rows of one",
)
def worst(
    given: Answers,
    reading: Reading,
    n: Annotated[int, typer.Option("-n", "--number", metavar="N", help="Number of answers.")] = 10,
    as_json: Json = False,
) -> None:
    """Show the answers with the lowest grades; of equal ones, those with the highest confidence first.

    Question, answer and right answer are shown where the file has them.
    """
    from verax.files.joining import files_of_one_model
    from verax.wings.evals.reading.models import read_one

    _, paths = files_of_one_model(given)
    answers = read_one(paths, reading, questions=True)
    best = reading.grade_range[1]
    cases = worst_cases(answers, best, n)
    file = called(paths)
    result = {
        "file": file,
        "taken": list(answers.taken),
        "rule": "grade",
        "n_rows": int(np.sum(~np.isnan(answers.grades))),
        "answers": cases,
    }
    said = f"{len(cases):,} of the {int(np.sum(answers.grades < best)):,} answers below the best grade"
    said += "" if answers.confidences is None else ", by grade and then by confidence"
    texts = [f"{file}: {'; '.join(answers.taken)}", said, *table_of(cases, list(answers.about))]
    show(result, texts, as_json=as_json)
