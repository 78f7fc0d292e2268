"""`verax datasets`: models compared over many data sets, by a table of scores."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from verax.cli import comparing, options
from verax.cli.app import app
from verax.cli.comparing import show_compared
from verax.cli.options import reads_only
from verax.cli.output import Json
from verax.cli.require import bounds_on_difference
from verax.common.paths import as_path
from verax.errors import InputError, Remedy
from verax.inputs.reading import Reading

if TYPE_CHECKING:
    from verax.cli.schemas.building import Kinds

_EXAMPLES = """Examples: `verax datasets scores.csv --better lower`,
`verax datasets scores.csv --datasets dataset --better lower --plot ranks.png`"""


@app.command(epilog=_EXAMPLES)
@reads_only("delimiter", "decimal")
def datasets(
    given: Annotated[
        list[str], typer.Argument(metavar="FILE", help="A table of scores, with a row for each data set.")
    ],
    reading: Reading,
    datasets: Annotated[
        str,
        typer.Option(
            metavar="COLUMN",
            help="Column of data sets. The other columns of numbers are the models, unless --score-column "
            "names the one of scores.",
        ),
    ] = "dataset",
    score_column: comparing.ScoreColumn = None,
    model_column: comparing.ModelColumn = None,
    better: comparing.Better = None,
    missing: Annotated[
        str,
        typer.Option(metavar="HOW", help="Data sets that lack a model: refuse, or drop to leave them out."),
    ] = "refuse",
    rope: comparing.Rope = 0.0,
    require: comparing.Require = None,
    confidence: options.Confidence = 0.95,
    seed: options.Seed = 0,
    as_json: Json = False,
    plot: Annotated[Path | None, options.drawing("mean ranks")] = None,
) -> None:
    """Compare models over many data sets, by a table of scores.

    Friedman's test and signed-rank tests of all pairs tell which mean ranks differ. --rope adds the
    probabilities that one model is better, and that both are alike for practical purposes.
    """
    from verax.wings.select.datasets.datasets import compare_datasets

    table, columns = read_scores(given, reading, datasets, model_column, score_column)
    comparison = compare_datasets(
        table,
        **columns,
        better=better,  # type: ignore[arg-type]
        missing=missing,  # type: ignore[arg-type]
        rope=rope,
        confidence=confidence,
        seed=seed,
    )
    result = {
        "files": {"scores": given[0]},
        "matched": "by the names of models",
        "taken": {},
        "datasets": comparison.to_dict(stored=False),
    }
    bounds = bounds_on_difference(require, comparison.columns)
    show_compared(comparison, result, bounds, [], plot=plot, as_json=as_json)


def read_scores(
    given: list[str], reading: Reading, rows: str, models: str | None, scores: str | None
) -> tuple[Any, dict[str, Any]]:
    """A table of scores, and its columns: what its rows are, the models and the scores."""
    from verax.wings.select.datasets.files import read_score_table

    if len(given) > 1:
        raise InputError(
            "must be one table of scores",
            argument="path",
            found=f"there are {len(given)} files",
            remedies=[Remedy("Put the scores of all models into one file.")],
        )
    named = [name for name in (rows, models) if name is not None]
    table = read_score_table(as_path(given[0]), reading, named)
    return table, {"datasets": rows, "models": models, "scores": scores}


def output() -> Kinds:
    """The fields of the output with --json."""
    from verax.cli.schemas.building import of_type
    from verax.cli.schemas.fields import MATCHED
    from verax.wings.select.datasets.result import DatasetComparison

    return {**MATCHED, "datasets": of_type(DatasetComparison)}
