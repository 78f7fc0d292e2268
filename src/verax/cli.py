"""The command line: parse, call, render, exit code. Everything else is the library's."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from verax import __version__
from verax.curves import SEES_THE_OUTCOME, RetentionCurves
from verax.errors import VeraxError
from verax.reproduce import PAPERS, Finding, findings

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


def show(result: dict[str, Any], tables: list[Table], *, as_json: bool) -> None:
    """Print a result as JSON or as tables, whichever was asked for."""
    if as_json:
        typer.echo(json.dumps({"verax": __version__, **result}, indent=2))
        return
    console = Console()
    for table in tables:
        console.print(table)


@app.command()
def reproduce(
    paper: Annotated[str, typer.Argument(help=f"One of: {', '.join(PAPERS)}.")],
    predictions: Annotated[
        Path | None,
        typer.Argument(help="An .npz file (probs, labels) to lay the paper's table out for."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Recompute a paper's published numbers and show them beside what was printed."""
    found = findings(paper)
    result: dict[str, Any] = {"paper": PAPERS[paper], "findings": [f.to_dict() for f in found]}
    tables = [_findings_table(paper, found)]
    if predictions is not None:
        if paper != "galdran":
            raise VeraxError(f"{PAPERS[paper]} has no table that other predictions could fill.")
        from verax.reproduce import galdran

        curves = galdran.retained_areas(*galdran.read_predictions(predictions))
        result["aursc"] = curves.to_dict()
        tables.append(_areas_table(predictions, curves))
    show(result, tables, as_json=as_json)


def _findings_table(paper: str, found: list[Finding]) -> Table:
    table = Table(title=PAPERS[paper], title_justify="left")
    for name in ("where", "what", "printed", "computed", "note"):
        table.add_column(name, justify="right" if name in ("printed", "computed") else "left")
    for f in found:
        printed = (
            "" if f.printed is None else f"{f.printed:.6g}" if isinstance(f.printed, float) else f.printed
        )
        note = f.erratum or ("" if f.agrees is not False else "differs")
        table.add_row(f.where, f.what, printed, f"{f.computed:.6g}", note)
    return table


def _areas_table(predictions: Path, curves: RetentionCurves) -> Table:
    from verax.reproduce.galdran import REPLICATES, RULES

    title = (
        f"Area under the retained-samples curve, {predictions.name}: mean and sd of {REPLICATES} replicates"
    )
    table = Table(title=title, title_justify="left", caption=SEES_THE_OUTCOME, caption_justify="left")
    table.add_column("rule")
    for name in ("AURSC-QWK (higher is better)", "AURSC-EC (lower is better)"):
        table.add_column(name, justify="right")
    for printed, rule in RULES.items():
        areas = [curves[rule, metric].areas for metric in ("qwk", "ec")]
        table.add_row(printed, *(f"{a.mean():.2f} ± {a.std(ddof=1):.2f}" for a in areas))
    return table


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
