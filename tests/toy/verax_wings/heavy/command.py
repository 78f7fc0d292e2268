"""`verax heavy`: the rows that lose much."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from verax.cli import options
from verax.cli.app import app
from verax.cli.options import reads_files
from verax.cli.output import Json, show
from verax.inputs.reading import Reading

if TYPE_CHECKING:
    from verax.cli.schemas.building import Kinds

_EXAMPLES = "Examples: `verax heavy preds.csv`, `verax heavy preds.csv --rule log_score --limit 2`"


@app.command(epilog=_EXAMPLES)
@reads_files(
    without={
        "by": "pass a file with the rows of one subgroup",
        "weights_are": "weights are importance weights here",
        "html": "`verax evaluate --html` writes the report",
        "save": "`verax evaluate --save` saves mergeable results",
        "require": "`verax evaluate --require` checks bounds",
    },
)
def heavy(
    given: options.Given,
    reading: Reading,
    rule: Annotated[str, typer.Option(metavar="RULE", help="A rule.")] = "brier",
    limit: Annotated[float, typer.Option(metavar="LOSS", help="The loss above which a row is heavy.")] = 0.5,
    as_json: Json = False,
) -> None:
    """Show how much of the loss comes from few rows."""
    from verax.cli.opening import Opened

    from .analysis import heavy_losses

    opened = Opened.of(given, reading)
    rows = opened.in_order(reading.ordered)
    found = heavy_losses(rows.handle, rule=rule, limit=limit)
    result = {
        "file": opened.file,
        "taken": rows.taken(),
        **reading.scale,
        "heavy": found.to_dict(stored=False),
    }
    show(result, [*rows.reading_lines(), repr(found)], as_json=as_json)


def output() -> Kinds:
    """The fields of the output with --json."""
    from verax.cli.schemas.building import of_type
    from verax.cli.schemas.fields import COLUMN_FILE

    from .result import HeavyLosses

    return {**COLUMN_FILE, "heavy": of_type(HeavyLosses)}
