"""`verax worst`: the rows to look at first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from verax.analyses.worst import ranking
from verax.analyses.worst import worst as find_worst
from verax.cli import options
from verax.cli.app import app, handed_over
from verax.cli.options import reads_files
from verax.cli.output import Json, show
from verax.inputs.reading import Reading
from verax.scores.metrics import needs_order
from verax.scores.registry import default_rules

if TYPE_CHECKING:
    from verax.cli.schemas.building import Kinds

CALLED_BY_NUMBER = (
    "Rows are called by their numbers in the file, from 0; --id names a field that identifies them."
)
_EXAMPLES = """Examples: `verax worst preds.parquet -n 5 --id id`,
`verax worst grades.csv --target grade --ordered --classes none,mild,severe --json`"""


@app.command(epilog=_EXAMPLES)
@reads_files(
    lists=True,
    without={
        **dict.fromkeys(("weights", "weights_are"), "rows are ranked by their own loss"),
        "groups": "rows are ranked one by one, so groups change nothing",
        "by": "the worst rows of all subgroups are ranked together; pass a file with the rows of one",
        "html": "`verax evaluate --html` writes the report, which has the worst rows",
        "save": "`verax evaluate --save` saves mergeable results",
        "require": "`verax evaluate --require` checks bounds",
    },
)
def worst(
    given: options.Given,
    reading: Reading,
    n: Annotated[int, typer.Option("-n", "--number", metavar="N", help="Number of rows.")] = 10,
    rule: Annotated[
        str | None,
        typer.Option(
            metavar="RULE", help="Rule that ranks the rows; by default brier, or rps for ordered classes."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Show the rows with the largest loss, and where it comes from.

    For top lists the output shows the list, the place of the outcome in it and the probability left for
    unlisted classes; for records of language models also the question. Graded answers and evaluation logs are
    for `verax evals worst`.
    """
    from verax.cli.opening import Opened
    from verax.files.joining import files_of_one_model
    from verax.scans.forms import form_of_lists

    _, paths = files_of_one_model(given)
    if handed_over(paths, reading):
        return
    chosen = rule or default_rules(ordered=reading.ordered)[0]
    opened = Opened.of(given, reading)
    rows = opened.in_order(not opened.lists and needs_order(ranking(chosen)))
    cases = find_worst(rows.handle, rule=chosen, n=n)
    result: dict[str, Any] = {
        "file": opened.file,
        "taken": rows.taken(),
        **cases.to_dict(stored=False),
    }
    places = {case["row"]: case["id"] for case in result["cases"] if isinstance(case.get("row"), int)}
    form = form_of_lists(paths, reading)
    questions = {} if form is None else form.questions(paths, places)
    if questions:
        result["questions"] = {str(row): questions[row] for row in places if row in questions}
    names = {row: row if name is None else name for row, name in places.items() if row in questions}
    asked = [f"{name}: {questions[row]}" for row, name in names.items()]
    called = [] if cases.named or not opened.lists else [CALLED_BY_NUMBER]
    below = ["", "Questions", *asked] if asked else []
    show(result, [*rows.reading_lines(), repr(cases), *called, *below], as_json=as_json)


def output() -> Kinds:
    """The fields of the output with --json."""
    from verax.analyses.worst import Worst
    from verax.cli.schemas.building import TEXT, Maybe, face, mapped
    from verax.cli.schemas.fields import ANY_FILE

    return {**ANY_FILE, **face(Worst), "questions": Maybe(mapped(TEXT))}
