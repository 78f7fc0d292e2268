"""`verax raters`: how much raters disagree, and what forecasts are worth in raters."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from verax.cli import options
from verax.cli.app import app
from verax.cli.arguments import Typed
from verax.cli.options import reads_files
from verax.cli.output import Json, draw_to, show
from verax.errors import InputError, passing
from verax.inputs.reading import Reading

if TYPE_CHECKING:
    from verax.cli.schemas.building import Kinds

_EXAMPLES = """Examples: `verax raters rated.csv --raters ann,bob,cy`,
`verax raters rated.csv --raters ann,bob,cy --groups patient --id eye -n 3 --plot worth.png`,
`verax raters rated.csv --raters ann,bob,cy --ordered --classes none,mild,severe --json`,
`verax raters labels.csv --id eye --rater-column rater --label-column grade`"""


@app.command(epilog=_EXAMPLES)
@reads_files(
    without={
        "target": "--raters names the columns of outcomes",
        "by": "pass a file with the rows of one subgroup",
        "weights_are": "weights are importance weights here",
        "html": "`verax evaluate --raters ... --html` writes the report",
        "save": "`verax evaluate --save` saves mergeable results",
        "require": "`verax evaluate --require` checks bounds",
    },
)
def raters(
    given: options.Given,
    reading: Reading,
    rule: Annotated[
        str | None,
        typer.Option(metavar="RULE", help="A proper rule; by default brier, or rps for ordered classes."),
    ] = None,
    n: Annotated[int, typer.Option("-n", "--number", metavar="N", help="Number of worst cases.")] = 10,
    plot: Annotated[Path | None, options.drawing("the loss and that of rater panels")] = None,
    confidence: options.Confidence = 0.95,
    as_json: Json = False,
) -> None:
    """Show how much raters disagree, and what forecasts are worth.

    A row is a case. Its mean loss over the raters is their disagreement, which no forecast avoids, plus the
    excess of the forecast. Each rater is also compared with the forecasts, against the other raters.
    """
    from verax.cli.opening import Opened
    from verax.scores.metrics import needs_order
    from verax.scores.registry import default_rules, parse
    from verax.wings.raters.analysis import raters as study

    if not reading.raters and not reading.rater_column:
        raise InputError(
            "must name the column of each rater",
            argument="raters",
            kind="missing",
            remedies=[passing("for a long table", rater_column=..., label_column=..., id=...)],
        )
    chosen = parse(rule or default_rules(ordered=reading.ordered)[0])
    opened = Opened.of(given, reading)
    ordered = needs_order([chosen], ordered=reading.ordered)
    rows = opened.in_order(ordered)
    how: dict[str, Any] = {"rule": chosen, "ordered": reading.ordered, "n": n, "confidence": confidence}
    rated = study(rows.handle, **how)
    if plot is not None:
        draw_to(plot, rated.plot())
    result = {
        "file": opened.file,
        "taken": rows.taken(),
        **reading.scale,
        "raters": rated.to_dict(stored=False),
    }
    verdict = rated.verdict.with_source(Typed.source())
    show(result, [*rows.reading_lines(), rated._text()], as_json=as_json, verdict=verdict, plot=plot)


def output() -> Kinds:
    """The fields of the output with --json."""
    from verax.cli.schemas.building import PATH, TOLD, of_type
    from verax.cli.schemas.fields import COLUMN_FILE
    from verax.wings.raters.result import RaterStudy

    return {**TOLD, **COLUMN_FILE, "raters": of_type(RaterStudy), "plot": PATH}
