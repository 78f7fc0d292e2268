"""`verax worst`: the rows to look at first."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from verax.analyses.worst import ranking
from verax.analyses.worst import worst as find_worst
from verax.cli import options
from verax.cli.app import app
from verax.cli.options import Reading, reads_files
from verax.cli.output import Json, show
from verax.scores.metrics import needs_order
from verax.scores.registry import default_rules

CALLED_BY_NUMBER = (
    "Rows are called by their numbers in the file, from 0; --id names a field that identifies them."
)
_EXAMPLES = """Examples: `verax worst preds.parquet -n 5 --id id`,
`verax worst grades.csv --target grade --ordered --classes none,mild,severe --id patient --json`"""


@app.command(epilog=_EXAMPLES)
@reads_files(lists=True, without=("weights", "weights_are", "groups", "by"))
def worst(
    given: options.Given,
    reading: Reading,
    n: Annotated[int, typer.Option("-n", "--number", help="How many rows.")] = 10,
    rule: Annotated[
        str | None,
        typer.Option(help="The rule that ranks the rows; by default brier, or rps for ordered classes."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Show the rows with the largest loss, how other rules rank them, and where the loss comes from.

    The file is read twice, the second time to rank the rows, and only the worst are kept. Of a file with a
    list per row, the list is shown, the place of the outcome in it and what was left for others.
    """
    from verax.cli.opening import Opened

    chosen = rule or default_rules(ordered=reading.ordered)[0]
    opened = Opened.of(given, reading)
    rows = opened.rows(ordered=not opened.lists and needs_order(ranking(chosen)))
    ids = {"ids": rows.first.ids} if rows.held else {}
    found = rows.marked(rows.without("weights", "groups").ask(find_worst, rule=chosen, n=n, **ids))
    result: dict[str, Any] = {
        "command": "worst",
        "file": opened.file,
        "taken": rows.taken(),
        **found.to_dict(stored=False),
    }
    called = [] if found.named or not opened.lists else [CALLED_BY_NUMBER]
    show(result, [*rows.said(), repr(found), *called], as_json=as_json)
