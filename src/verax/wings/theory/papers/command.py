"""`verax reproduce`: a paper's published numbers beside what they should be."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from verax.cli.app import app
from verax.cli.arguments import Typed
from verax.cli.options import reads_only
from verax.cli.output import NUMBERED, Json, draw_to, make_table, show
from verax.errors import VeraxError
from verax.inputs.reading import Reading
from verax.wings.retain.result import SEES_THE_OUTCOME, RetentionCurves
from verax.wings.theory.papers.published import DIFFERS, PAPERS, STATUSES, PublishedNumber, findings
from verax.wings.theory.papers.simulation import (
    DRAWN,
    PRINTED,
    ROUNDS,
    TITLES,
    Share,
    conclusion,
    in_words,
    simulate,
)

if TYPE_CHECKING:
    from verax.cli.schemas.building import Kinds

# The options of reading that predictions have here.
_READ = ("target", "probs", "classes", "groups")


@app.command(
    epilog="Examples: `verax reproduce galdran`, `verax reproduce galdran predictions.npz --json`, "
    "`verax reproduce galdran grades.csv --classes none,mild,severe --groups patient --plot curves.png`, "
    "`verax reproduce ahmadian --rounds 20 --plot simulations.png`, `verax reproduce --all`"
)
@reads_only(*_READ)
def reproduce(
    reading: Reading,
    paper: Annotated[str | None, typer.Argument(help=f"One of: {', '.join(PAPERS)}.")] = None,
    predictions: Annotated[
        Path | None,
        typer.Argument(help="Predictions to compute the paper's table for."),
    ] = None,
    everything: Annotated[
        bool,
        typer.Option("--all", help="One table of the findings of all papers; exit code 1 if one differs."),
    ] = False,
    rounds: Annotated[
        int, typer.Option(metavar="N", help="Rounds of the simulations of ahmadian, for each sampler.")
    ] = ROUNDS,
    seed: Annotated[int, typer.Option(metavar="N", help="Random seed of the simulations.")] = 0,
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Draw to this file: the simulations of ahmadian, as its Figures 4 and 5, or the retained-"
            "samples curves of predictions, as Figure 4 of galdran.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Recompute the published numbers of a paper.

    For ahmadian also the two simulations of its appendix, under several samplers. A finding is agreed,
    explained (it differs, and docs/errata.md says why), differs, or has no data (the paper's predictions
    were not released).
    """
    if everything == (paper is not None):
        raise VeraxError(f"Name one paper ({', '.join(PAPERS)}), or pass --all.")
    if paper is None:
        if predictions is not None or plot is not None:
            raise VeraxError("--all shows findings alone: name the paper to use a file or --plot.")
        _show_all(as_json=as_json)
        return
    numbers = findings(paper)
    result: dict[str, Any] = {"paper": PAPERS[paper]}
    result |= {"findings": [f.to_dict() for f in numbers]}
    tables: list[str] = [_findings_table(paper, numbers), _counts(numbers)]
    if paper == "galdran":
        from verax.wings.theory.papers.galdran import grid

        result["grid"] = [grid_line.to_dict() for grid_line in grid()]
        lines = (
            "The grid of the areas is not stated. 20 points at unit spacing would give cost 0",
            "at an area of 19 by kappa; lines through the printed areas give",
            *(f"  {grid_line}" for grid_line in grid()),
        )
        tables.append("\n".join(lines))
    if paper == "ahmadian":
        shares = simulate(rounds=rounds, seed=seed)
        result["simulations"] = {"rounds": rounds, "seed": seed, "shares": [s.to_dict() for s in shares]}
        result["simulations"] |= {
            "conclusion": conclusion(shares),
            "plot": None if plot is None else str(plot),
        }
        tables += [_shares_table(shares, rounds, seed), conclusion(shares)]
        if plot is not None:
            from verax.display.plots import draw
            from verax.wings.theory.papers.figures import shares_sheet

            draw_to(plot, draw(shares_sheet(shares, PRINTED, TITLES)))
            tables.append(f"The simulations are drawn in {plot}.")
    elif plot is not None and (paper != "galdran" or predictions is None):
        raise VeraxError(f"{PAPERS[paper]} has no simulations to draw, and --plot needs predictions.")
    if predictions is not None:
        if paper != "galdran":
            raise VeraxError(f"{PAPERS[paper]} has no table that can be computed for other predictions.")
        curves = _retained(predictions, replace(reading, ordered=True), seed)
        result["aursc"] = curves.to_dict(stored=False)["curves"]
        tables.append(_areas_table(predictions, curves))
        if plot is not None:
            draw_to(plot, curves.plot())
            tables.append(f"The curves are drawn in {plot}.")
    elif any(Typed.is_typed(name) for name in _READ):
        raise VeraxError(
            "--target, --probs, --classes and --groups are about a file of predictions: name one."
        )
    show(result, tables, as_json=as_json)


def _retained(predictions: Path, reading: Reading, seed: int) -> RetentionCurves:
    """The curves of Galdran's tables and of Figure 4, for the predictions of a file."""
    from verax.cli.opening import Opened
    from verax.wings.retain.curves import retention
    from verax.wings.theory.papers.galdran import AREAS

    rows = Opened.of([str(predictions)], reading).in_order()
    curves = retention(rows.handle, seed=seed, **AREAS)
    assert isinstance(curves, RetentionCurves)
    return curves


def _show_all(*, as_json: bool) -> None:
    """Every finding of every paper in one table; exit code 1 if one differs without an explanation."""
    by_paper = {paper: findings(paper) for paper in PAPERS}
    every = [f for numbers in by_paper.values() for f in numbers]
    rows = [
        (f"{paper}, {f.where}", f.what, *f.texts, f.status)
        for paper, numbers in by_paper.items()
        for f in numbers
    ]
    header = ("where", "what", "printed", "computed", "finding")
    table = make_table(
        "Published numbers, recomputed",
        header,
        rows,
        right=("printed", "computed"),
        spare=("where",),
        caption=NUMBERED,
    )
    listed = [{"paper": paper, **f.to_dict()} for paper, numbers in by_paper.items() for f in numbers]
    result = {"paper": None, "findings": listed, "counts": _number_of(every)}
    show(result, [table, _counts(every)], as_json=as_json)
    if any(f.status == DIFFERS for f in every):
        raise typer.Exit(1)


def _number_of(numbers: list[PublishedNumber]) -> dict[str, int]:
    statuses = [f.status for f in numbers]
    return {status: statuses.count(status) for status in STATUSES}


def _counts(numbers: list[PublishedNumber]) -> str:
    counts = ", ".join(f"{number} {status}" for status, number in _number_of(numbers).items())
    return f"{len(numbers)} findings: {counts}.\nThe explanations are in docs/errata.md."


def _findings_table(paper: str, numbers: list[PublishedNumber]) -> str:
    rows = [
        (f.where, f.what, *f.texts, f"{f.status}: {f.erratum}" if f.erratum else f.status) for f in numbers
    ]
    header = ("where", "what", "printed", "computed", "finding")
    return make_table(
        PAPERS[paper], header, rows, right=("printed", "computed"), spare=("where",), caption=NUMBERED
    )


def _shares_table(shares: list[Share], rounds: int, seed: int) -> str:
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
        caption=f"Printed: {printed}, from a sampler that is stated in part. Classes drawn: {DRAWN}. "
        f"{rounds} rounds, seed {seed}.",
    )


def _percent(share: Share, digits: int) -> str:
    if share.exact is not None:
        return f"{100 * share.value:.{digits}f} (exactly {100 * share.exact:.5g})"
    low, high = share.interval
    return f"{100 * share.value:.{digits}f} ({100 * low:.{digits}f} to {100 * high:.{digits}f})"


def _areas_table(predictions: Path, curves: RetentionCurves) -> str:
    from verax.wings.theory.papers.galdran import REPLICATES, RULES

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


def output() -> Kinds:
    """The fields of the output with --json."""
    from verax.cli.schemas.building import (
        COUNT,
        NUMBER,
        NUMBERS,
        PATH,
        TEXT,
        TRUTH,
        Maybe,
        either,
        listed,
        mapped,
        of_type,
        or_none,
        record,
        ref,
    )
    from verax.wings.retain.result import RetentionCurve

    published = record(
        paper=Maybe(TEXT),
        where=TEXT,
        what=TEXT,
        printed=either(NUMBER, TEXT),
        computed=or_none(NUMBER),
        agrees=or_none(TRUTH),
        status=TEXT,
        erratum=TEXT,
        section=TEXT,
    )
    share = record(
        section=TEXT,
        sampler=TEXT,
        n_classes=or_none(COUNT),
        comparisons=COUNT,
        share=NUMBER,
        exact=NUMBER,
        interval=ref("interval"),
        as_printed=or_none(TRUTH),
    )
    simulated = record(rounds=COUNT, seed=COUNT, shares=listed(share), conclusion=TEXT, plot=PATH)
    return {
        "paper": or_none(TEXT),
        "findings": listed(published),
        "counts": Maybe(mapped(COUNT)),
        "grid": Maybe(listed(record(data=TEXT, all_rows=NUMBER, by_table=NUMBERS))),
        "simulations": Maybe(simulated),
        "aursc": Maybe(listed(of_type(RetentionCurve))),
    }
