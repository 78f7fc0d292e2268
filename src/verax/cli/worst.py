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
from verax.scores.registry import default_rules

if TYPE_CHECKING:
    from verax.cli.opening import Opened

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
    from verax.scans.sources import SourceHandle

    rules = ranking(rule or default_rules(ordered=reading.ordered)[0])
    order_matters = needs_order(rules)
    opened = Opened.of(given, reading)
    if opened.top is not None:
        _show_lists(opened, rules, n, ordered=order_matters or reading.ordered, as_json=as_json)
        return
    source = opened.source(ordered=order_matters)
    rows = None if source.n_rows is None else 2 * source.n_rows
    with progress(f"Reading {opened.file}", rows) as advance:
        found = find(SourceHandle(source, ordered=order_matters, progress=advance), rules, n)
    result: dict[str, Any] = {
        "command": "worst",
        "file": opened.file,
        "taken": source.roles.to_dict(),
        **found.to_dict(stored=False),
    }
    show(result, [f"{opened.file}: {'; '.join(source.taken)}", repr(found)], as_json=as_json)


def _show_lists(opened: Opened, rules: list[Rule], n: int, *, ordered: bool, as_json: bool) -> None:
    from verax.cli.lists import CALLED_BY_NUMBER, worst_lists

    assert opened.top is not None
    found = worst_lists(opened.top, rules, n, ordered=ordered)
    result = {
        "command": "worst",
        "file": opened.file,
        "taken": opened.taken(),
        **found.to_dict(stored=False),
    }
    called = [] if found.named else [CALLED_BY_NUMBER]
    show(result, [*opened.said(), repr(found), *called], as_json=as_json)
