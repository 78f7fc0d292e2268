"""`verax decompose`: where a score comes from, and whether the forecasts are calibrated."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from verax.cli import options
from verax.cli.app import app
from verax.cli.options import Reading, reads_files
from verax.cli.output import Json, draw_to, show
from verax.errors import InputError
from verax.scores.metrics import needs_order
from verax.scores.registry import parse

_EXAMPLES = """Examples: `verax decompose preds.parquet`,
`verax decompose grades.csv --target grade --ordered --classes none,mild,severe --plot reliability.png`,
`verax decompose preds.parquet --rule log --bootstrap 1000 --json`"""


@app.command(epilog=_EXAMPLES)
@reads_files(without=("by", "row_id"))
def decompose(
    file: options.File,
    reading: Reading,
    rule: Annotated[
        str | None,
        typer.Option(help="brier, log, rps or ranked_log; by default brier, or rps for ordered classes."),
    ] = None,
    bootstrap: Annotated[
        int, typer.Option(help="Random draws behind the intervals and the test of calibration; 0 for none.")
    ] = 100,
    plot: Annotated[Path | None, typer.Option(help="Draw reliability curves to this file.")] = None,
    confidence: options.Confidence = 0.95,
    seed: options.Seed = 0,
    as_json: Json = False,
) -> None:
    """Split a mean score into miscalibration, discrimination and uncertainty, class by class.

    The score is miscalibration - discrimination + uncertainty. Recalibration needs all rows in memory.
    """
    from verax import files
    from verax.analyses.calibration.decomposition import decompose as split
    from verax.analyses.calibration.reliability import reliability
    from verax.analyses.calibration.summary import add_skill

    chosen = parse(rule or ("rps" if reading.ordered else "brier"))
    order_matters = needs_order([chosen], ordered=reading.ordered)
    rows = reading.open(file, ordered=order_matters).read()
    given: dict[str, Any] = {"classes": rows.classes, "weights": rows.weights, **reading.scale}
    grouped = {**given, "groups": rows.groups}
    settings: dict[str, Any] = {"seed": seed, "confidence": confidence}
    weighing: dict[str, Any] = {"weights_are": reading.weights_are}
    try:
        found = split(rows.y, rows.p, rule=chosen, bootstrap=bootstrap, **weighing, **settings, **grouped)
    except InputError:
        # Where rows are at fault, say so by the names of the file.
        files.forecasts_of(rows, **reading.scale).check()
        raise
    found = found.with_skipped(rows.skipped)
    summary = add_skill(found, rows.y, rows.p, **grouped)
    if plot is not None:
        draw_to(plot, reliability(rows.y, rows.p, ordered=chosen.ordinal, **settings, **given).plot())
    result = {
        "command": "decompose",
        "file": str(file),
        "taken": rows.roles.to_dict(),
        **reading.scale,
        "decomposition": found.to_dict(),
        "calibration": summary.to_dict(),
        "plot": None if plot is None else str(plot),
    }
    texts = [f"{file}: {'; '.join(rows.taken)}", repr(found), f"\n{summary}"]
    texts += [] if plot is None else [f"The reliability curves are in {plot}."]
    show(result, texts, as_json=as_json)
