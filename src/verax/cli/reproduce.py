"""`verax reproduce`: a paper's published numbers beside what they should be."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from verax.analyses.retention.result import SEES_THE_OUTCOME, RetentionCurves
from verax.cli.app import app
from verax.cli.output import NUMBERED, Json, draw_to, make_table, show
from verax.cli.papers.number import PublishedNumber
from verax.cli.papers.published import PAPERS, findings
from verax.cli.papers.simulation import PRINTED, ROUNDS, TITLES, Share, conclusion, in_words, simulate
from verax.errors import VeraxError

if TYPE_CHECKING:
    from rich.table import Table


@app.command(
    epilog="Examples: `verax reproduce galdran`, `verax reproduce galdran predictions.npz --json`, "
    "`verax reproduce ahmadian --rounds 20 --plot simulations.png`"
)
def reproduce(
    paper: Annotated[str, typer.Argument(help=f"One of: {', '.join(PAPERS)}.")],
    predictions: Annotated[
        Path | None,
        typer.Argument(help="Predictions to compute the paper's table for."),
    ] = None,
    rounds: Annotated[
        int, typer.Option(help="Rounds of the simulations of ahmadian, for each sampler.")
    ] = ROUNDS,
    seed: Annotated[int, typer.Option(help="Random seed of the simulations.")] = 0,
    plot: Annotated[
        Path | None,
        typer.Option(help="Draw the simulations of ahmadian to this file, as its Figures 4 and 5."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Recompute a paper's published numbers and show them beside what was printed.

    For ahmadian also the two simulations of its appendix, under several samplers.
    """
    found = findings(paper)
    result: dict[str, Any] = {"command": "reproduce", "paper": PAPERS[paper]}
    result |= {"findings": [f.to_dict() for f in found]}
    tables: list[Table | str] = [_findings_table(paper, found)]
    if paper == "ahmadian":
        shares = simulate(rounds=rounds, seed=seed)
        result["simulations"] = {"rounds": rounds, "seed": seed, "shares": [s.to_dict() for s in shares]}
        result["simulations"] |= {
            "conclusion": conclusion(shares),
            "plot": None if plot is None else str(plot),
        }
        tables += [_shares_table(shares, rounds, seed), conclusion(shares)]
        if plot is not None:
            from verax.display.shares import draw_shares

            draw_to(plot, draw_shares(shares, PRINTED, TITLES))
            tables.append(f"The simulations are drawn in {plot}.")
    elif plot is not None:
        raise VeraxError(f"{PAPERS[paper]} has no simulations to draw.")
    if predictions is not None:
        if paper != "galdran":
            raise VeraxError(f"{PAPERS[paper]} has no table that can be computed for other predictions.")
        from verax.cli.papers import galdran

        rows = galdran.read_predictions(predictions)
        curves = galdran.retained_areas(rows.y, rows.p, classes=rows.classes)
        result["aursc"] = curves.to_dict(stored=False)["curves"]
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


def _shares_table(shares: list[Share], rounds: int, seed: int) -> Table:
    rows = []
    for below, above in zip(shares[::2], shares[1::2], strict=True):
        agree = [share.section for share in (below, above) if share.as_printed]
        law = below.sampler, in_words(below.n_classes)
        rows.append((*law, _percent(below, 4), _percent(above, 1), ", ".join(agree)))
    sections = [f"{section}: percent (95 % interval)" for section in PRINTED]
    printed = ", ".join(f"{100 * share:g} % in {section}" for section, (share, _) in PRINTED.items())
    return make_table(
        "How often a wrong forecast has a larger Brier score than a right one",
        ("forecasts drawn from", "classes", *sections, "agrees in"),
        rows,
        right=("classes", *sections),
        caption=f"Printed: {printed}, from a sampler that is not stated. {rounds} rounds, seed {seed}.",
    )


def _percent(share: Share, digits: int) -> str:
    if share.exact is not None:
        return f"{100 * share.value:.{digits}f} (exactly {100 * share.exact:.5g})"
    low, high = share.interval
    return f"{100 * share.value:.{digits}f} ({100 * low:.{digits}f} to {100 * high:.{digits}f})"


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
