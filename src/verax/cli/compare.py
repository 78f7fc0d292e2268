"""`verax compare`: predictions of several models on the same rows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from verax.cli import comparing, options
from verax.cli.app import app, handed_over
from verax.cli.arguments import Typed
from verax.cli.comparing import show_questions
from verax.cli.discriminating import Threshold, named_score, show_scores
from verax.cli.models import open_models, paths_of, separate_rows, short_name
from verax.cli.options import reads_files
from verax.cli.output import Json, check_report, draw_to, save_report, show
from verax.cli.require import bounds_on_difference
from verax.errors import InputError
from verax.inference.estimates import Method
from verax.inputs.reading import Reading
from verax.scores.metrics import needs_order
from verax.scores.registry import as_rules, default_rules

if TYPE_CHECKING:
    from verax.analyses.comparison.result import Comparison
    from verax.cli.schemas.building import Kinds
    from verax.report import Report

_EXAMPLES = """Examples: `verax compare a.parquet b.parquet`,
`verax compare new=a.parquet old=b.parquet --id id --rule brier --json`,
`verax compare a.parquet b.parquet --rule brier --require 'difference.high<0.02'`,
`verax compare folds.csv --probs new='new_*' --probs old='old_*' --rule auc`,
`verax compare tour.csv --model-column forecaster --id question --times made --closes closes
--missing joint`"""
# The panel of options that tournaments have: forecasters with questions of their own.
_TOURNAMENTS = "Questions and tournaments"


@app.command(epilog=_EXAMPLES)
@reads_files(
    lists=True,
    without={
        "save": "`verax evaluate --save` saves mergeable results of one model",
    },
)
def compare(
    given: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...",
            help="A file, folder or pattern for each of two or more models, also as name=FILE. Files with "
            "the same name are those of one model.",
        ),
    ],
    reading: Reading,
    rule: Annotated[
        list[str] | None,
        typer.Option(
            "--rule",
            metavar="RULE",
            help="A rule such as rps, or auc, average_precision, or a rate such as sensitivity. Rules may be "
            "repeated and combined, such as 'penalized(brier)'.",
        ),
    ] = None,
    threshold: Threshold = None,
    reference: comparing.Reference = None,
    margin: comparing.Margin = None,
    method: comparing.Method = "moments",
    bootstrap: comparing.Replicates = 2000,
    time_ordered: Annotated[
        bool, typer.Option("--time-ordered", help="Rows are in time order and may be autocorrelated.")
    ] = False,
    shared_ids: comparing.SharedIds = False,
    model_column: comparing.ModelColumn = None,
    missing: comparing.Missing = "refuse",
    times: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            rich_help_panel=_TOURNAMENTS,
            help="Column of when a forecast was made, where forecasters may change theirs. The loss of a "
            "question is the mean over its forecasts, weighted by how long each stood. With --closes.",
        ),
    ] = None,
    closes: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            rich_help_panel=_TOURNAMENTS,
            help="Column of when a question closes, which ends its last forecast.",
        ),
    ] = None,
    task: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            rich_help_panel=_TOURNAMENTS,
            help="Column of tasks: also compare within each, with Holm's correction over all.",
        ),
    ] = None,
    epoch: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            rich_help_panel=_TOURNAMENTS,
            help="Column that numbers the repeats of a question; these are clustered by question.",
        ),
    ] = None,
    least: options.Least = 20,
    require: comparing.Require = None,
    confidence: options.Confidence = 0.95,
    seed: options.Seed = 0,
    as_json: Json = False,
    html: options.Html = None,
    plot: comparing.Plot = None,
) -> None:
    """Compare models on the same rows: which differences are real.

    Rows are matched by --id, or by their order. Several models in one file are named with their columns:
    --probs name=COLUMNS. Models may be stacked in rows: --model-column.
    """
    from verax.analyses.comparison.compare import compare as weigh
    from verax.analyses.subgroups.verdict import verdict_of
    from verax.files.joining import name_files

    plan: dict[str, Any] = {"confidence": confidence, "seed": seed, "weights_are": reading.weights_are}
    how: dict[str, Any] = {"method": cast(Method, method), "reference": reference, "bootstrap": bootstrap}
    how["margin"] = margin
    if handed_over(next(iter(name_files(given[:1]).values())), reading):
        return
    columns = {"times": times, "closes": closes, "task": task, "epochs": epoch}
    stated = {name: column for name, column in columns.items() if column is not None}
    if missing != "refuse" or model_column or stated:
        questions = separate_rows(given, reading, rule, model_column=model_column, columns=stated)
        bounds = bounds_on_difference(require, list(questions.files))
        asked: Any = {"missing": missing, "rule": rule, **questions.arguments(), **how, **plan}
        show_questions(
            *(weigh(**asked), questions.files, questions.about, bounds), html=html, plot=plot, as_json=as_json
        )
        return
    check_report(html)
    score = named_score(rule, threshold)
    if score is not None:
        refused = {
            "html": html,
            "margin": margin,
            "reference": reference,
            "plot": plot,
            "by": reading.by or None,
        }
        refused |= {"time_ordered": time_ordered or None, "method": None if method == "moments" else method}
        for argument, value in refused.items():
            if value is not None:
                raise InputError(f"cannot be used with --rule {score}", argument=argument)
        show_scores(
            *(score, threshold, given, reading),
            shared_ids=shared_ids,
            require=require,
            confidence=confidence,
            seed=seed,
            as_json=as_json,
        )
        return
    rules = as_rules(rule or default_rules(ordered=reading.ordered))
    order_matters = needs_order(rules, ordered=reading.ordered)
    paths = paths_of(given, reading)
    bounds = bounds_on_difference(require, list(paths))
    rows, about = open_models(paths, reading, ordered=order_matters, shared_ids=shared_ids)
    if time_ordered or method != "moments":
        rows = replace(rows, handle=rows.handle.in_memory())
    # Rows that are not in memory have no order.
    in_time = {"time_ordered": time_ordered} if rows.handle.whole else {}
    settings = {"ordered": reading.ordered, **in_time, **plan}

    def weighed(handle: Any) -> Comparison:
        return weigh(handle, rule=rules, ordered=order_matters, time_ordered=time_ordered, **how, **plan)

    def reported(handle: Any) -> Report:
        from verax.report import Report

        source = ", ".join(map(short_name, paths.values()))
        return Report.of(**(rows.arrays or {"y": handle}), source=source, rules=rule, **settings)

    paged = [] if html is None else [reported]
    (comparison, *reports), parts = rows.asked(
        weighed, *paged, rule=rule[0] if rule else None, least=least, **settings
    )
    checks = [bound.hold(comparison) for bound in bounds]
    if plot is not None:
        draw_to(plot, comparison.plot())
    if html is not None:
        report = reports[0].with_subgroups(parts)
        save_report(report, html, checks, "; ".join(next(iter(about.lines_of.values()))))
        verdict, parts = report.verdict, report.subgroups or parts
    else:
        in_order: dict[str, Any] = {"ordered": reading.ordered, "time_ordered": time_ordered}
        verdict, parts = verdict_of(
            rows.handle, rules=rule, found=comparison, parts=parts, **in_order, **plan
        )
    result = {
        "files": dict(rows.files),
        **about.to_dict(),
        "comparison": comparison.to_dict(stored=False),
        "subgroups": {name: part.to_dict(stored=False) for name, part in parts.items()},
    }
    texts = [*about.lines(), comparison._text(), *(f"\n{part}" for part in parts.values())]
    verdict = verdict.with_source(Typed.source())
    show(result, texts, as_json=as_json, verdict=verdict, checks=checks, report=html, plot=plot)


def output() -> Kinds:
    """The fields of the kinds of output with --json."""
    from verax.analyses.discrimination.result import RankScores
    from verax.cli.schemas.building import of_type
    from verax.cli.schemas.fields import BY_LOSSES, BY_SCORES

    return [BY_LOSSES, {**BY_SCORES, "ranking": of_type(RankScores)}]
