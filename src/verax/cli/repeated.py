"""`verax compare` over folds and over data sets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from verax.cli.app import FAILED
from verax.cli.arguments import Typed
from verax.cli.models import AboutFiles, open_models, paths_of
from verax.cli.output import draw_to, show, told, verdict_lines
from verax.cli.require import bounds_on_difference
from verax.common.paths import as_path, called
from verax.errors import InputError, Remedy, passing
from verax.scores.metrics import needs_order
from verax.scores.registry import as_rules, default_rules

if TYPE_CHECKING:
    from verax.analyses.datasets.result import DatasetComparison
    from verax.analyses.folds.result import FoldComparison
    from verax.cli.options import Reading

Folds = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Column of test folds: compare methods over folds of cross-validation, and the fitted models "
        "over rows. Folds of different repeats have different names.",
    ),
]
Repeats = Annotated[
    int | None,
    typer.Option(metavar="N", min=1, help="Rounds of cross-validation that --folds are; by default 1."),
]
Datasets = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Column of data sets of a table of scores: compare models over data sets. The other columns of "
        "numbers are the models, unless --score-column names the one of scores.",
    ),
]
ScoreColumn = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Column of scores of a long table, with --model-column, and --datasets or --folds.",
    ),
]
Better = Annotated[
    str | None, typer.Option(metavar="WHICH", help="Which scores of a table are better: lower or higher.")
]
Rope = Annotated[
    float,
    typer.Option(
        metavar="SCORE",
        help="Region of practical equivalence: models whose scores differ by less are alike, for --folds and "
        "--datasets.",
    ),
]
Plot = Annotated[Path | None, typer.Option(help="Draw means, or mean ranks over data sets, to this file.")]


@dataclass(frozen=True)
class Repeated:
    """What the options say about folds and data sets."""

    folds: str | None
    datasets: str | None
    repeats: int | None
    score_column: str | None
    better: str | None
    rope: float
    missing: str

    @property
    def asked(self) -> bool:
        """Whether models are to be compared over folds or data sets; refuses what needs that."""
        if self.folds is not None and self.datasets is not None:
            raise InputError("cannot be used with folds", argument="datasets")
        if self.folds is not None and self.missing != "refuse":
            raise InputError("cannot be used with folds", argument="missing")
        if self.folds is None and self.datasets is None:
            given = {"repeats": self.repeats, "score_column": self.score_column, "rope": self.rope or None}
            for argument, value in given.items():
                if value is not None:
                    raise InputError(
                        "needs folds or data sets",
                        argument=argument,
                        remedies=[passing(folds=...), passing(datasets=...)],
                    )
            return False
        return True


def show_repeated(
    given: list[str],
    reading: Reading,
    model_column: str | None,
    asked: Repeated,
    rule: list[str] | None,
    *,
    shared_ids: bool,
    require: Sequence[str] | None,
    confidence: float,
    seed: int,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Compare over folds or data sets, print the result, draw it, and hold it to bounds."""
    found: FoldComparison | DatasetComparison
    if asked.datasets is not None or asked.score_column is not None:
        found = _of_table(given, reading, model_column, asked, confidence, seed)
        about = AboutFiles({}, {}, "by the names of models")
        files = {"scores": given[0]}
    else:
        paths = paths_of(given, reading)
        found, about = _of_rows(paths, reading, asked, rule, shared_ids=shared_ids, confidence=confidence)
        files = {name: called(path) for name, path in paths.items()}
    bounds = bounds_on_difference(require, found.columns)
    verdicts = [bound.hold(found) for bound in bounds]
    if plot is not None:
        draw_to(plot, found.plot())
    verdict = found.verdict.with_source(Typed.source())
    over = "folds" if asked.folds is not None else "datasets"
    result = {
        "command": "compare",
        **told(verdict),
        "files": files,
        "matched": about.matched,
        "taken": about.taken,
        over: found.to_dict(stored=False),
        "require": [held.to_dict() for held in verdicts],
        "met": all(held.met for held in verdicts),
        "plot": None if plot is None else str(plot),
    }
    texts = [f"{name}: {'; '.join(lines)}" for name, lines in about.said.items()]
    texts = [*verdict_lines(verdict), *texts, *([""] if about.said else []), found._text()]
    texts += map(str, verdicts)
    show(result, texts, as_json=as_json)
    if not result["met"]:
        raise typer.Exit(FAILED)


def _of_rows(
    paths: dict[str, Any],
    reading: Reading,
    asked: Repeated,
    rule: list[str] | None,
    *,
    shared_ids: bool,
    confidence: float,
) -> tuple[FoldComparison, AboutFiles]:
    """Predictions with a column of folds."""
    from verax.analyses.folds.folds import compare_folds

    assert asked.folds is not None
    if reading.by:
        raise InputError("cannot be used with folds", argument="by")
    if asked.better is not None:
        raise InputError("is for tables of scores: losses are lower for better forecasts", argument="better")
    rules = as_rules(rule or default_rules(ordered=reading.ordered))
    ordered = needs_order(rules, ordered=reading.ordered)
    own = replace(reading, by=[asked.folds])
    rows, about = open_models(paths, own, ordered=ordered, shared_ids=shared_ids)
    known: dict[str, Any] = {"folds": asked.folds}
    if rows.held:
        first = rows.first
        known["folds"] = first.by[asked.folds]
        if first.ids is not None:
            known["ids"] = first.ids
    how: dict[str, Any] = {"repeats": asked.repeats, "rope": asked.rope, "weights_are": reading.weights_are}
    found = rows.ask(compare_folds, rule=rules, ordered=ordered, confidence=confidence, **known, **how)
    return found.with_skipped(rows.skipped), about


def _of_table(
    given: list[str],
    reading: Reading,
    model_column: str | None,
    asked: Repeated,
    confidence: float,
    seed: int,
) -> FoldComparison | DatasetComparison:
    """A table of scores by data set or fold."""
    from verax.analyses.datasets.datasets import compare_datasets
    from verax.analyses.datasets.given import read_table
    from verax.analyses.folds.folds import compare_folds
    from verax.files.score_tables import read_score_table
    from verax.scores.directions import is_higher_better

    if len(given) > 1:
        raise InputError(
            "must be one table of scores",
            argument="path",
            found=f"there are {len(given)} files",
            remedies=[Remedy("Put the scores of all models into one file.")],
        )
    columns: dict[str, Any] = {"datasets": asked.datasets or asked.folds, "models": model_column}
    named = [name for name in columns.values() if name is not None]
    table = read_score_table(as_path(given[0]), reading.request, named)
    columns["scores"] = asked.score_column
    if asked.datasets is not None:
        return compare_datasets(
            table,
            **columns,
            better=asked.better,  # type: ignore[arg-type]
            missing=asked.missing,  # type: ignore[arg-type]
            rope=asked.rope,
            confidence=confidence,
            seed=seed,
        )
    scores, _ = read_table(table, **columns, rule=None).complete("refuse")
    by_model = dict(zip(scores.models, scores.values.T, strict=True))
    return compare_folds(
        scores=by_model,
        repeats=asked.repeats,
        better="higher" if is_higher_better(scores.score, asked.better) else "lower",  # type: ignore[arg-type]
        rope=asked.rope,
        confidence=confidence,
    )
