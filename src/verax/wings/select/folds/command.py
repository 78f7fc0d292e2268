"""`verax folds`: models compared over the folds of cross-validation."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from verax.cli import comparing, options
from verax.cli.app import app
from verax.cli.comparing import show_compared
from verax.cli.models import AboutFiles, open_models, paths_of
from verax.cli.options import reads_files
from verax.cli.output import Json
from verax.cli.require import bounds_on_difference
from verax.errors import InputError
from verax.inputs.reading import Reading
from verax.wings.select.datasets.command import read_scores

if TYPE_CHECKING:
    from verax.cli.schemas.building import Kinds

_EXAMPLES = """Examples: `verax folds folds.csv --probs new='new_*' --probs old='old_*'`,
`verax folds folds.csv --probs new='new_*' --probs old='old_*' --rule brier --rope 0.01`"""


@app.command(epilog=_EXAMPLES)
@reads_files(
    without={
        "by": "models are compared over folds",
        "html": "`verax compare --html` writes the report on the rows",
        "save": "`verax evaluate --save` saves mergeable results of one model",
    }
)
def folds(
    given: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...",
            help="Test predictions of each model with a column of folds, also as name=FILE; or one file with "
            "--probs name=COLUMNS for each model; or a table of scores with --score-column.",
        ),
    ],
    reading: Reading,
    folds: Annotated[
        str,
        typer.Option(
            metavar="COLUMN", help="Column of test folds. Folds of different repeats have different names."
        ),
    ] = "fold",
    repeats: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Number of repeats in --folds; by default 1."),
    ] = None,
    rule: options.Rules = None,
    score_column: comparing.ScoreColumn = None,
    model_column: comparing.ModelColumn = None,
    better: comparing.Better = None,
    rope: comparing.Rope = 0.0,
    shared_ids: comparing.SharedIds = False,
    require: comparing.Require = None,
    confidence: options.Confidence = 0.95,
    as_json: Json = False,
    plot: comparing.Plot = None,
) -> None:
    """Compare models over the folds of cross-validation.

    Differences of methods have intervals that allow for training rows that folds share. --rope adds the
    probabilities that one method is better, and that both are alike for practical purposes.
    """
    from verax.wings.select.folds.folds import compare_folds

    how: dict[str, Any] = {"repeats": repeats, "rope": rope, "confidence": confidence}
    if score_column is not None:
        from verax.wings.select.datasets.given import read_table
        from verax.wings.select.directions import is_higher_better

        table, columns = read_scores(given, reading, folds, model_column, score_column)
        scores, _ = read_table(table, **columns, rule=None).complete("refuse")
        by_model = dict(zip(scores.models, scores.values.T, strict=True))
        higher = is_higher_better(scores.score, better)  # type: ignore[arg-type]
        comparison = compare_folds(scores=by_model, better="higher" if higher else "lower", **how)
        about, files = AboutFiles({}, {}, "by the names of models"), {"scores": given[0]}
    else:
        if better is not None:
            raise InputError(
                "is for tables of scores: losses are lower for better forecasts", argument="better"
            )
        if model_column is not None:
            raise InputError("is for tables of scores, with --score-column", argument="model_column")
        paths = paths_of(given, reading)
        comparison, about, files = _of_rows(paths, reading, folds, rule, how, shared_ids=shared_ids)
    bounds = bounds_on_difference(require, comparison.columns)
    result = {
        "files": files,
        "matched": about.matched,
        "taken": about.taken,
        "folds": comparison.to_dict(stored=False),
    }
    above = about.reading_lines()
    show_compared(comparison, result, bounds, [*above, *([""] if above else [])], plot=plot, as_json=as_json)


def _of_rows(
    paths: dict[str, Any],
    reading: Reading,
    folds: str,
    rule: list[str] | None,
    how: dict[str, Any],
    *,
    shared_ids: bool,
) -> tuple[Any, AboutFiles, dict[str, str]]:
    """A comparison of predictions with a column of folds, how they were read, and their files."""
    from verax.scores.metrics import needs_order
    from verax.scores.registry import as_rules, default_rules
    from verax.wings.select.folds.folds import compare_folds

    rules = as_rules(rule or default_rules(ordered=reading.ordered))
    ordered = needs_order(rules, ordered=reading.ordered)
    rows, about = open_models(paths, replace(reading, by=(folds,)), ordered=ordered, shared_ids=shared_ids)
    how |= {"folds": folds, "rule": rules, "ordered": ordered, "weights_are": reading.weights_are}
    return compare_folds(rows.handle, **how), about, dict(rows.files)


def output() -> Kinds:
    """The fields of the output with --json."""
    from verax.cli.schemas.building import of_type
    from verax.cli.schemas.fields import MATCHED
    from verax.wings.select.folds.result import FoldComparison

    return {**MATCHED, "folds": of_type(FoldComparison)}
