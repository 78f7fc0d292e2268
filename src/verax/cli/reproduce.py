"""`verax reproduce`: a paper's published numbers beside what they should be."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from verax.cli.frame import app
from verax.cli.output import Json, show
from verax.curves import SEES_THE_OUTCOME, RetentionCurves
from verax.errors import VeraxError
from verax.reproduce import PAPERS, Finding, findings


@app.command(epilog="Examples: `verax reproduce galdran`, `verax reproduce galdran predictions.npz --json`")
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
