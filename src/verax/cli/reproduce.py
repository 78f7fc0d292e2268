"""`verax reproduce`: a paper's published numbers beside what they should be."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from verax.analyses.retention.curves import SEES_THE_OUTCOME
from verax.analyses.retention.result import RetentionCurves
from verax.cli.app import app
from verax.cli.output import NUMBERED, Json, make_table, show
from verax.cli.papers.number import PublishedNumber
from verax.cli.papers.published import PAPERS, findings
from verax.errors import VeraxError

if TYPE_CHECKING:
    from rich.table import Table


@app.command(epilog="Examples: `verax reproduce galdran`, `verax reproduce galdran predictions.npz --json`")
def reproduce(
    paper: Annotated[str, typer.Argument(help=f"One of: {', '.join(PAPERS)}.")],
    predictions: Annotated[
        Path | None,
        typer.Argument(help="Predictions to compute the paper's table for."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Recompute a paper's published numbers and show them beside what was printed."""
    found = findings(paper)
    result: dict[str, Any] = {"paper": PAPERS[paper], "findings": [f.to_dict() for f in found]}
    tables = [_findings_table(paper, found)]
    if predictions is not None:
        if paper != "galdran":
            raise VeraxError(f"{PAPERS[paper]} has no table that can be computed for other predictions.")
        from verax.cli.papers import galdran

        rows = galdran.read_predictions(predictions)
        curves = galdran.retained_areas(rows.y, rows.p, classes=rows.classes)
        result["aursc"] = curves.to_dict()
        tables.append(_areas_table(predictions, curves))
    show(result, tables, as_json=as_json)


def _findings_table(paper: str, found: list[PublishedNumber]) -> Table:
    rows = []
    for f in found:
        printed = f"{f.printed:.6g}" if isinstance(f.printed, float) else f.printed or ""
        note = f.erratum or ("" if f.agrees is not False else "differs")
        rows.append((f.where, f.what, printed, f"{f.computed:.6g}", note))
    header = ("where", "what", "printed", "computed", "note")
    return make_table(PAPERS[paper], header, rows, right=("printed", "computed"), caption=NUMBERED)


def _areas_table(predictions: Path, curves: RetentionCurves) -> Table:
    from verax.cli.papers.galdran import REPLICATES, RULES

    rows = []
    for printed, rule in RULES.items():
        areas = [curves[rule, metric].areas for metric in ("qwk", "ec")]
        rows.append((printed, *(f"{a.mean():.2f} ± {a.std(ddof=1):.2f}" for a in areas)))
    metrics = ("AURSC-QWK (higher is better)", "AURSC-EC (lower is better)")
    return make_table(
        f"Area under the retained-samples curve, {predictions.name}: mean and sd of {REPLICATES} replicates",
        ("rule", *metrics),
        rows,
        right=metrics,
        caption=SEES_THE_OUTCOME,
    )
