"""Options, bounds on differences, and the output of the commands that compare models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from verax.cli.arguments import Typed
from verax.cli.models import AboutFiles
from verax.cli.options import drawing
from verax.cli.output import draw_to, show
from verax.cli.require import DifferenceBound

if TYPE_CHECKING:
    from verax.analyses.comparison.result import Comparison

Missing = Annotated[
    str,
    typer.Option(
        metavar="HOW",
        show_default=False,
        help="If questions differ: refuse (default), pairwise, joint. pairwise: compare each pair "
        "on the questions of both; joint: estimate all models on all questions.",
    ),
]
Method = Annotated[str, typer.Option(metavar="NAME", help="moments, bootstrap or permutation.")]
Replicates = Annotated[
    int, typer.Option(metavar="N", help="Replicates for the methods bootstrap and permutation.")
]
Reference = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Reference for skill: frequencies, uniform, or a model."),
]
Margin = Annotated[
    float | None,
    typer.Option(
        metavar="LOSS",
        help="Noninferiority margin: also test which models are worse than another by less, under one rule.",
    ),
]
Require = Annotated[
    list[str] | None,
    typer.Option(
        "--require",
        metavar="BOUND",
        help="A bound on the difference of the first two models, such as 'difference.high<0.01'. The "
        "difference is that of the table: the mean loss, or grade, of the first minus that of the second; "
        ".low and .high are the ends of its interval. May be repeated. Exit code 1 if one fails.",
    ),
]
SharedIds = Annotated[
    bool,
    typer.Option(
        "--shared-ids", help="Compare only rows whose --id is in all files; the others are counted."
    ),
]
ModelColumn = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="Column of models or forecasters that are stacked in one file."),
]
Plot = Annotated[Path | None, drawing("means")]
# Options of tables of scores.
ScoreColumn = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="Column of scores of a long table, with --model-column.")
]
Better = Annotated[
    str | None, typer.Option(metavar="WHICH", help="Which scores of a table are better: lower or higher.")
]
Rope = Annotated[
    float,
    typer.Option(
        metavar="SCORE",
        help="Region of practical equivalence: models whose scores differ by less are alike.",
    ),
]


def show_questions(
    comparison: Comparison,
    files: Mapping[str, str],
    about: AboutFiles,
    bounds: Sequence[DifferenceBound],
    *,
    html: Path | None,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Print a comparison of models by questions, write its page, and hold it to bounds."""
    if html is not None:
        from verax.report.questions import save_question_page

        save_question_page(comparison, html, source="; ".join(files.values()))
    result = {
        "files": dict(files),
        **about.to_dict(),
        "comparison": comparison.to_dict(stored=False),
        "subgroups": {},
    }
    show_compared(comparison, result, bounds, about.lines(), as_json=as_json, plot=plot, page=html)


def show_compared(
    comparison: Any,
    result: Mapping[str, Any],
    bounds: Sequence[DifferenceBound],
    above: Sequence[str],
    *,
    as_json: bool,
    plot: Path | None,
    **files: Path | None,
) -> None:
    """Print a comparison with its verdict, draw it, and hold it to bounds; `result` is more of its JSON."""
    if plot is not None:
        draw_to(plot, comparison.plot())
    show(
        result,
        [*above, comparison._text()],
        as_json=as_json,
        verdict=comparison.verdict.with_source(Typed.source()),
        checks=[bound.hold(comparison) for bound in bounds],
        plot=plot,
        **files,
    )


Typed.reading |= {"missing", "shared_ids"}
