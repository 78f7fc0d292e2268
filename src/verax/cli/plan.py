"""`verax plan`: how many rows would be enough."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from verax.cli import options
from verax.cli.app import app
from verax.cli.arguments import Typed
from verax.cli.grading import GradedFiles, Grading, reads_grades
from verax.cli.models import OwnRows, own_rows
from verax.cli.options import Reading, reads_files, split
from verax.cli.output import Json, draw_to, show, told, verdict_lines
from verax.common.paths import called
from verax.errors import InputError

_EXAMPLES = """Examples: `verax plan new=a.parquet old=b.parquet --difference 0.01`,
`verax plan a.parquet b.parquet --rule brier --margin 0.005 --groups site --plot power.png`,
`verax plan a.parquet --rule accuracy --width 0.02`,
`verax plan new=new_answers.csv old=old_answers.csv --grade correct --id qid --difference 0.03`,
`verax plan log.eval --width 0.02`,
`verax plan --rule brier --difference 0.02`"""


@app.command(epilog=_EXAMPLES)
@reads_files(
    lists=True,
    without={
        "by": "pass files with the rows of one subgroup",
        "weights_are": "weights are importance weights here",
        "html": "`verax compare --html` writes the report",
        "save": "`verax evaluate --save` saves mergeable results",
        "require": "`verax compare --require 'difference.high<0.01'` checks bounds",
    },
)
@reads_grades
def plan(
    reading: Reading,
    grading: Grading,
    given: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILE...]",
            help="The pilot: a file for each of one or two models, also as name=FILE. Without one the spread "
            "is the largest that --rule allows.",
        ),
    ] = None,
    difference: Annotated[
        float | None,
        typer.Option(help="The difference of mean losses to be shown; by default that of the pilot."),
    ] = None,
    width: Annotated[
        float | None, typer.Option(help="How far the ends of the interval may be from the estimate.")
    ] = None,
    margin: Annotated[
        float | None, typer.Option(help="By how much the first model may be worse and still count as good.")
    ] = None,
    rule: Annotated[
        str | None,
        typer.Option(help="The rule; for one model also a metric or measure, such as accuracy or auc."),
    ] = None,
    models: Annotated[
        str | None, typer.Option(help="The two models to compare, if there are more in the files.")
    ] = None,
    power: Annotated[float, typer.Option(help="The probability of showing it.")] = 0.9,
    rows_per_group: Annotated[
        float | None, typer.Option(help="How many rows groups are to have; by default as in the pilot.")
    ] = None,
    shared_ids: Annotated[
        bool,
        typer.Option("--shared-ids", help="Use only rows whose --id is in all files."),
    ] = False,
    missing: Annotated[
        str,
        typer.Option(
            help="Where models answered different questions, by --id: refuse, pairwise or joint, as in "
            "`verax compare`."
        ),
    ] = "refuse",
    plot: Annotated[Path | None, typer.Option(help="Draw the power against the number of rows.")] = None,
    confidence: options.Confidence = 0.95,
    as_json: Json = False,
) -> None:
    """Say how many rows would show a difference, keep to a margin, or make an interval narrow.

    Two models are compared on the rows of the pilot, as `verax compare` does; one is planned for by the
    width of its interval. Graded answers and evaluation logs are pilots as well. With --groups the answer is
    a number of groups, and what more rows of the same groups would be worth.
    """
    from verax.analyses.planning.plan import plan as size

    pair = tuple(split(models)) or None
    if pair is not None and len(pair) != 2:
        raise InputError("must be two names, such as new,old", argument="models", values=[models])
    how: dict[str, Any] = {
        "difference": difference,
        "width": width,
        "margin": margin,
        "rule": rule,
        "models": pair,
        "power": power,
        "confidence": confidence,
        "rows_per_group": rows_per_group,
    }
    files: dict[str, str] = {}
    said: list[str] = []
    if given and (grading.model_column is not None or _graded(given, grading, reading)):
        pilot, files, said = _graded_pilot(given, grading, reading, confidence, rule, missing)
        found = size(pilot, **how)
    elif given:
        rows, files, said = _pilot(given, reading, shared_ids)
        found = rows.ask(size, ordered=reading.ordered, **how)
    else:
        found = size(**how)
    if plot is not None:
        draw_to(plot, found.plot())
    verdict = found.verdict.with_source(Typed.source())
    result = {
        "command": "plan",
        **told(verdict),
        "files": files,
        "plan": found.to_dict(stored=False),
        "plot": None if plot is None else str(plot),
    }
    drawn = [] if plot is None else [f"The figure is in {plot}."]
    texts = [*verdict_lines(verdict), *said, *([""] if said else []), found._text(), *drawn]
    show(result, texts, as_json=as_json)


def _graded(given: list[str], grading: Grading, reading: Reading) -> bool:
    from verax.files import name_files

    return grading.are_in(next(iter(name_files(given[:1]).values())), reading)


def _graded_pilot(
    given: list[str],
    grading: Grading,
    reading: Reading,
    confidence: float,
    rule: str | None,
    missing: str,
) -> tuple[Any, dict[str, str], list[str]]:
    """The comparison of graded answers, or the grades of one model; the files, and how these were read."""
    from verax.analyses.comparison.compare import compare
    from verax.cli.grade_cards import evaluated
    from verax.files import name_files

    paths = name_files(given)
    if len(paths) == 1 and grading.model_column is None:
        ((name, path),) = paths.items()
        answers = grading.read_one(path, reading)
        card, _ = evaluated(answers, grading, reading, confidence, [])
        return card, {name: called(path)}, [f"{called(path)}: {'; '.join(answers.taken)}", *card.notes]
    rules = None if rule in (None, "grade") else [rule]
    files: GradedFiles | OwnRows
    if _graded(given, grading, reading):
        files = GradedFiles.of(given, grading, reading, scored=rules is not None)
    else:
        files = own_rows(given, reading, rules, model_column=grading.model_column)
    asked: dict[str, Any] = {**files.arguments(), "missing": missing, **({"rule": rules} if rules else {})}
    found = compare(**asked)
    said = [f"{name}: {'; '.join(lines)}" for name, lines in files.said.items()]
    return found, dict(files.files), said


def _pilot(given: list[str], reading: Reading, shared_ids: bool) -> tuple[Any, dict[str, str], list[str]]:
    """The rows of one model or of several, the files of each, and how these were read."""
    from verax.cli.models import open_models, paths_of
    from verax.cli.opening import Opened
    from verax.files import name_files

    if reading.named_probs is None and len(name_files(given)) == 1:
        opened = Opened.of(given, reading)
        rows = opened.rows(ordered=reading.ordered)
        return rows, {opened.model: opened.file}, rows.said()
    paths = paths_of(given, reading)
    several, about = open_models(paths, reading, ordered=reading.ordered, shared_ids=shared_ids)
    said = [f"{name}: {'; '.join(lines)}" for name, lines in about.said.items()]
    return several, {name: called(path) for name, path in paths.items()}, said
