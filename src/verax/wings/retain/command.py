"""`verax retain`: what metrics become as rows are removed."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from verax.analyses.uncertainty_scores import doubt
from verax.cli import options
from verax.cli.app import app
from verax.cli.options import reads_files, split
from verax.cli.output import Json, draw_to, show
from verax.errors import InputError, VeraxError
from verax.errors import show as quote
from verax.inputs.reading import Reading
from verax.scores.metrics import METRICS, needs_order
from verax.scores.registry import as_rules, default_rules
from verax.wings.retain.curves import (
    as_list_metrics,
    as_metrics,
    retention,
    selective,
)

if TYPE_CHECKING:
    from verax.cli.schemas.building import Kinds

_EXAMPLES = """Examples:
`verax retain grades.csv --target grade --ordered --classes none,mild,severe --metric ec`,
`verax retain preds.parquet --doubt entropy --bootstrap 200 --plot curve.png`"""


@app.command(epilog=_EXAMPLES)
@reads_files(
    lists=True,
    without={
        "by": "a curve is of all rows; pass a file with the rows of one subgroup",
        "html": "`verax evaluate --html` writes the report, which has the curves; --plot draws them",
        "save": "`verax evaluate --save` saves mergeable results",
        "require": "`verax evaluate --require` checks bounds",
    },
)
def retain(
    given: options.Given,
    reading: Reading,
    rule: options.Rules = None,
    doubt_by: Annotated[
        list[str] | None,
        typer.Option(
            "--doubt",
            metavar="NAME",
            help="Rank rows without their outcome instead: by max_probability, entropy, or the expected loss "
            "of a rule. May be repeated.",
        ),
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            metavar="METRIC",
            help=f"One of {', '.join(METRICS)}; by default qwk for ordered classes, else accuracy. "
            "Sensitivity and those after it are for two classes. For top lists: accuracy, error, coverage, "
            "top_5_accuracy, top_5_error (any number). "
            "May be repeated.",
        ),
    ] = None,
    removed: Annotated[
        str | None,
        typer.Option(
            metavar="PERCENT,...", help="Percentages to remove, such as 0,5,10,20; by default 0 to 20."
        ),
    ] = None,
    area: Annotated[
        str, typer.Option(metavar="KIND", help="mean (the mean height) or steps (unit spacing).")
    ] = "mean",
    ties: Annotated[
        str,
        typer.Option(
            metavar="HOW", help="How tied rows are removed: share (each in part) or order (in file order)."
        ),
    ] = "share",
    bootstrap: Annotated[int, typer.Option(metavar="N", help="Replicates for intervals; 0 for none.")] = 0,
    plot: Annotated[Path | None, options.drawing("the curves")] = None,
    confidence: options.Confidence = 0.95,
    seed: options.Seed = 0,
    as_json: Json = False,
) -> None:
    """Show how metrics change as the hardest rows are dropped.

    Very large files are streamed, and the curves state the approximation error.
    """
    from verax.cli.opening import Opened

    keys = _keys(rule, doubt_by, reading.ordered)
    opened = Opened.of(given, reading)
    if opened.lists:
        metrics = as_list_metrics(metric or ["accuracy"])
    else:
        metrics = as_metrics(metric or ["qwk" if reading.ordered else "accuracy"])
    ordered = not opened.lists and needs_order(keys, metrics, ordered=reading.ordered)
    rows = opened.in_order(ordered)
    how: dict[str, Any] = {"metric": metrics, "removed": _shares(removed), "area": area, "ties": ties}
    how |= {"bootstrap": bootstrap, "seed": seed, "confidence": confidence}
    how["weights_are"] = reading.weights_are
    curves: Any = (
        selective(rows.handle, by=doubt_by, **how) if doubt_by else retention(rows.handle, rule=keys, **how)
    )
    if plot is not None:
        draw_to(plot, curves.plot())
    result = {
        "file": opened.file,
        "taken": rows.taken(),
        "curves": curves.to_dict(stored=False)["curves"],
    }
    show(result, [*rows.reading_lines(), repr(curves)], as_json=as_json, plot=plot)


def _keys(rules: list[str] | None, doubts: list[str] | None, ordered: bool) -> list[Any]:
    if doubts and rules:
        raise VeraxError("Pass either --rule, which uses the outcome, or --doubt, not both.")
    if doubts:
        return [doubt(by) for by in doubts]
    return [*as_rules(rules or default_rules(ordered=ordered)[0])]


def _shares(removed: str | None) -> list[float] | None:
    if removed is None:
        return None
    try:
        shares = [float(text) / 100 for text in split(removed)]
    except ValueError:
        shares = [math.nan]
    if not shares or not all(0 <= share < 1 for share in shares):
        raise InputError(
            "must be percentages from 0 to below 100, such as 0,5,10",
            argument="removed",
            found=f"it is {quote(removed)}",
            values=[removed],
        )
    return shares


def output() -> Kinds:
    """The fields of the output with --json."""
    from verax.cli.schemas.building import PATH, listed, of_type
    from verax.cli.schemas.fields import ANY_FILE
    from verax.wings.retain.result import RetentionCurve

    return {**ANY_FILE, "curves": listed(of_type(RetentionCurve)), "plot": PATH}
