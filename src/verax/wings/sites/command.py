"""`verax sites`: how sites differ, and what the next one will see."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from verax.cli import options
from verax.cli.app import app
from verax.cli.arguments import Typed
from verax.cli.options import reads_files
from verax.cli.output import Json, draw_to, show
from verax.inputs.reading import Reading

if TYPE_CHECKING:
    from verax.cli.schemas.building import Kinds

_EXAMPLES = """Examples: `verax sites risks.csv --target died --probs risk --sites hospital`,
`verax evaluate risks.csv --target died --probs risk --sites hospital --groups patient --html sites.html`,
`verax sites risks.csv --target died --probs risk --sites hospital --json`"""


@app.command(epilog=_EXAMPLES)
@reads_files(
    without={
        "by": "--sites names the column",
        "save": "`verax evaluate --save` saves mergeable results",
        "require": "`verax evaluate --require` checks bounds",
    },
)
def sites(
    given: options.Given,
    reading: Reading,
    column: Annotated[
        str, typer.Option("--sites", metavar="COLUMN", help="The column of sites, such as hospitals.")
    ],
    rule: Annotated[
        str | None,
        typer.Option(metavar="RULE", help="The rule of the mean loss; by default brier, or rps."),
    ] = None,
    plot: Annotated[Path | None, options.drawing("each site, the mean and the next one")] = None,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a page with drawings and tables.")
    ] = None,
    confidence: options.Confidence = 0.95,
    as_json: Json = False,
) -> None:
    """Show how sites differ, which of them stands out, and what the next one will see.

    Of two classes: O:E, calibration slope and AUC at each site, their mean, and a prediction interval for one
    more site like these. Of more classes the mean loss.
    """
    from verax.cli.opening import Opened
    from verax.wings.sites.analysis import sites as study

    opened = Opened.of(given, replace(reading, by=(column,)))
    rows = opened.in_order(reading.ordered)
    how: dict[str, Any] = {"rule": rule, "ordered": reading.ordered, "confidence": confidence}
    how["weights_are"] = reading.weights_are
    found = study(rows.handle, sites=column, **how)
    if plot is not None:
        draw_to(plot, found.plot())
    if html is not None:
        from verax.wings.sites.page import save_sites_page

        save_sites_page(found, html, source=opened.file)
    result = {
        "file": opened.file,
        "taken": rows.taken(),
        **reading.scale,
        "sites": found.to_dict(stored=False),
    }
    verdict = found.verdict.with_source(Typed.source())
    show(
        result, [*rows.reading_lines(), found._text()], as_json=as_json, verdict=verdict, plot=plot, page=html
    )


def output() -> Kinds:
    """The fields of the output with --json."""
    from verax.cli.schemas.building import PATH, TOLD, of_type
    from verax.cli.schemas.fields import COLUMN_FILE
    from verax.wings.sites.result import SiteStudy

    return {**TOLD, **COLUMN_FILE, "sites": of_type(SiteStudy), "plot": PATH, "html": PATH}
