"""The command line: parse, call, render, exit code. Everything else is the library's."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from verax import __version__
from verax.errors import VeraxError
from verax.reproduce import PAPERS, findings

app = typer.Typer(
    name="verax",
    help="How good are a classifier's probabilities, which model to keep, what to look at first.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


def _version(show: bool) -> None:
    if show:
        typer.echo(f"verax {__version__}")
        raise typer.Exit


@app.callback()
def main(
    debug: Annotated[bool, typer.Option(help="Show tracebacks.")] = False,
    _: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Show it.")] = False,
) -> None:
    """Set what holds for every command."""
    _State.debug = debug


class _State:
    debug = False


def run() -> None:
    """Run the command line; bad input is one line on stderr and exit code 2."""
    try:
        app()
    except VeraxError as error:
        if _State.debug:
            raise
        print(f"verax: {error}", file=sys.stderr)
        sys.exit(2)


def show(value: Callable[[], dict[str, Any]], table: Callable[[], Table], *, as_json: bool) -> None:
    """Print a result as JSON or as a table, whichever was asked for."""
    if as_json:
        typer.echo(json.dumps({"verax": __version__, **value()}, indent=2))
    else:
        Console().print(table())


@app.command()
def reproduce(
    paper: Annotated[str, typer.Argument(help=f"One of: {', '.join(PAPERS)}.")],
    as_json: Json = False,
) -> None:
    """Recompute a paper's published numbers and show them beside what was printed."""
    found = findings(paper)

    def table() -> Table:
        result = Table(title=PAPERS[paper], title_justify="left")
        for name in ("where", "what", "printed", "computed", "note"):
            result.add_column(name, justify="right" if name in ("printed", "computed") else "left")
        for f in found:
            printed = "" if f.printed is None else str(f.printed)
            note = f.erratum or ("" if f.agrees is not False else "differs")
            result.add_row(f.where, f.what, printed, f"{f.computed:.6g}", note)
        return result

    show(lambda: {"paper": PAPERS[paper], "findings": [f.to_dict() for f in found]}, table, as_json=as_json)


@app.command()
def toplist(
    file: Annotated[
        Path, typer.Argument(help="JSON Lines, a record a line, with log-probabilities of tokens.")
    ],
    classes: Annotated[int, typer.Option(help="The number of classes: the size of the vocabulary.")],
    outcome: Annotated[
        str, typer.Option(help="The field that holds what happened; dots lead into nested fields.")
    ] = "outcome",
    position: Annotated[int, typer.Option(help="Which generated token to score, counted from 0.")] = 0,
    length: Annotated[
        int | None, typer.Option("-k", "--length", help="Score only the first so many.")
    ] = None,
    invalid_penalty: Annotated[float, typer.Option(help="What an invalid list costs.")] = 1.0,
    as_json: Json = False,
) -> None:
    """Score top lists of tokens, as chat-completion interfaces return them (`top_logprobs`)."""
    from verax.listcard import padded_rules
    from verax.logprobs import read_records
    from verax.scorecard import evaluate
    from verax.toplists import LOGPROB_TOLERANCE, TopLists

    rows, outcomes = read_records(file, outcome, position)
    lists = TopLists.from_dicts(rows, n_classes=classes, tolerance=LOGPROB_TOLERANCE)
    lists = lists if length is None else lists.truncate(length)
    card = evaluate(outcomes, lists, rules=padded_rules(invalid_penalty))
    typer.echo(json.dumps(card.to_dict(), indent=2) if as_json else str(card))


if __name__ == "__main__":
    run()
