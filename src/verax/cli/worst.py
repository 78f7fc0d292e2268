"""`verax worst`: the rows to look at first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from verax.analyses.worst import find, ranking
from verax.cli import options
from verax.cli.app import app
from verax.cli.options import Reading, reads_files
from verax.cli.output import Json, progress, show
from verax.scores.base import Rule
from verax.scores.metrics import needs_order

if TYPE_CHECKING:
    from verax.files.lists import ListFile

_EXAMPLES = """Examples: `verax worst preds.parquet -n 5 --id id`,
`verax worst grades.csv --target grade --ordered --classes none,mild,severe --id patient --json`"""


@app.command(epilog=_EXAMPLES)
@reads_files(lists=True, without=("weights", "weights_are", "groups", "by"))
def worst(
    file: options.File,
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
    from verax.scans.sources import SourceHandle

    rules = ranking(rule or ("rps" if reading.ordered else "brier"))
    order_matters = needs_order(rules)
    lists = reading.lists_in(file)
    if lists is not None and not lists.are_distributions:
        _show_lists(lists, rules, n, ordered=order_matters or reading.ordered, as_json=as_json)
        return
    source = reading.rows_in(file, lists, ordered=order_matters)
    rows = None if source.n_rows is None else 2 * source.n_rows
    with progress(f"Reading {file.name}", rows) as advance:
        found = find(SourceHandle(source, ordered=order_matters, progress=advance), rules, n)
    result: dict[str, Any] = {
        "command": "worst",
        "file": str(file),
        "taken": source.roles.to_dict(),
        **found.to_dict(stored=False),
    }
    show(result, [f"{file}: {'; '.join(source.taken)}", repr(found)], as_json=as_json)


def _show_lists(read: ListFile, rules: list[Rule], n: int, *, ordered: bool, as_json: bool) -> None:
    from verax.cli.lists import CALLED_BY_NUMBER, described, worst_lists

    found = worst_lists(read, rules, n, ordered=ordered)
    result = {"command": "worst", "file": read.path, "taken": read.to_dict(), **found.to_dict(stored=False)}
    called = [] if read.ids is not None else [CALLED_BY_NUMBER]
    show(result, [*described(read), repr(found), *called], as_json=as_json)
