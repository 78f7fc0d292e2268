"""`verax worst`: the rows to look at first."""

from __future__ import annotations

from typing import Annotated

import typer

from verax.cli import options
from verax.cli.frame import app
from verax.cli.options import reading, spoken
from verax.cli.output import Json, progress, show
from verax.inspection import find, ranking

_EXAMPLES = """Examples: `verax worst preds.parquet -n 5 --id id`,
`verax worst grades.csv --target grade --ordered --classes none,mild,severe --id patient --json`"""


@app.command(epilog=_EXAMPLES)
def worst(
    file: options.File,
    n: Annotated[int, typer.Option("-n", "--number", help="How many rows.")] = 10,
    rule: Annotated[
        str | None,
        typer.Option(help="What ranks the rows; by default brier, or rps for ordered classes."),
    ] = None,
    row_id: options.Id = None,
    target: options.Target = None,
    probs: options.Probs = None,
    classes: options.Classes = None,
    ordered: options.Ordered = False,
    positive: options.Positive = None,
    logits: options.Logits = False,
    normalize: options.Normalize = False,
    delimiter: options.Delimiter = None,
    decimal: options.Decimal = ".",
    as_json: Json = False,
) -> None:
    """Show the rows with the largest loss, how other rules rank them, and where the loss comes from.

    Ranks need the losses of all rows: 8 bytes a row and rule are kept, and no row but the worst.
    """
    from verax import files

    with spoken(file):
        rules = ranking(rule or ("rps" if ordered else "brier"))
        needs_order = any(r.ordinal for r in rules)
        source = files.open(
            file,
            **reading(target=target, probs=probs, classes=classes, delimiter=delimiter),
            id=row_id,
            positive=positive,
            ordered=needs_order,
            logits=logits,
            decimal=decimal,
        )
        with progress(f"Reading {file.name}", source.n_rows) as advance:
            batches = files.forecasts_in(
                source, advance, normalize=normalize, logits=logits, ordered=needs_order
            )
            found = find(((forecasts, part.ids) for forecasts, part in batches), rules, n)
    result = {"command": "worst", "file": str(file), "taken": source.roles.to_dict(), **found.to_dict()}
    show(result, [f"{file}: {'; '.join(source.taken)}", repr(found)], as_json=as_json)
