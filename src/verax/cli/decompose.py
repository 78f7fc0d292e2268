"""`verax decompose`: where a score comes from, and whether the forecasts are calibrated."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from verax.analyses.calibration.components import Decomposition
from verax.analyses.calibration.curves import Reliability
from verax.analyses.calibration.decomposition import decompose as split
from verax.analyses.calibration.reliability import reliability
from verax.analyses.calibration.summary import CalibrationSummary, add_skill
from verax.cli import options
from verax.cli.app import app
from verax.cli.options import Reading, reads_files
from verax.cli.output import Json, draw_to, show
from verax.errors import InputError
from verax.inputs.handles import Handle
from verax.scores.metrics import needs_order
from verax.scores.registry import parse

if TYPE_CHECKING:
    from verax.files import Predictions

_Found = tuple[Decomposition, CalibrationSummary, Callable[[], Reliability]]
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

    The score is miscalibration - discrimination + uncertainty. Recalibration needs all rows in memory; very
    large files are read into histograms instead, and the result says within what it is exact.
    """
    from verax.scans.sources import SourceHandle, fits_in_memory

    chosen = parse(rule or ("rps" if reading.ordered else "brier"))
    order_matters = needs_order([chosen], ordered=reading.ordered)
    source = reading.open(file, ordered=order_matters)
    plan: dict[str, Any] = {"seed": seed, "confidence": confidence}
    how: dict[str, Any] = {"rule": chosen, "bootstrap": bootstrap, "weights_are": reading.weights_are, **plan}
    if fits_in_memory(source):
        found, summary, curves = _of_rows(source.read(), reading, how, plan)
    else:
        found, summary, curves = _of_handle(SourceHandle(source, ordered=order_matters), how, plan)
    if plot is not None:
        draw_to(plot, curves().plot())
    result = {
        "command": "decompose",
        "file": str(file),
        "taken": source.roles.to_dict(),
        **reading.scale,
        "decomposition": found.to_dict(stored=False),
        "calibration": summary.to_dict(stored=False),
        "plot": None if plot is None else str(plot),
    }
    texts = [f"{file}: {'; '.join(source.taken)}", repr(found), f"\n{summary}"]
    texts += [] if plot is None else [f"The reliability curves are in {plot}."]
    show(result, texts, as_json=as_json)


def _of_rows(rows: Predictions, reading: Reading, how: dict[str, Any], plan: dict[str, Any]) -> _Found:
    """The decomposition of rows in memory, its summary, and what draws its curves."""
    given: dict[str, Any] = {"classes": rows.classes, "weights": rows.weights, **reading.scale}
    grouped = {**given, "groups": rows.groups}
    try:
        found = split(rows.y, rows.p, **how, **grouped)
    except InputError:
        # Where rows are at fault, say so by the names of the file.
        from verax.files import forecasts_of

        forecasts_of(rows, **reading.scale).check()
        raise
    summary = add_skill(found, rows.y, rows.p, **grouped)
    curves = partial(reliability, rows.y, rows.p, ordered=how["rule"].ordinal, **plan, **given)
    return found.with_skipped(rows.skipped), summary, curves


def _of_handle(handle: Handle, how: dict[str, Any], plan: dict[str, Any]) -> _Found:
    """The same of a file that is too large."""
    found = split(handle, **how)
    return found, add_skill(found, handle), partial(reliability, handle, ordered=how["rule"].ordinal, **plan)
