"""`verax compare`: several models on the same rows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from verax.cli import options, repeated
from verax.cli.app import FAILED, app
from verax.cli.arguments import Typed
from verax.cli.grading import GradedFiles, Grading, reads_grades
from verax.cli.models import OwnRows, open_models, own_rows, paths_of, short_name
from verax.cli.options import Reading, reads_files
from verax.cli.output import Json, check_report, command_line, draw_to, show, told, verdict_lines
from verax.cli.require import DifferenceBound, bounds_on_difference
from verax.common.paths import called
from verax.errors import InputError, passing
from verax.inference.estimates import Method
from verax.scores.metrics import needs_order
from verax.scores.registry import as_rules, default_rules

if TYPE_CHECKING:
    from verax.analyses.comparison.result import Comparison
    from verax.cli.opening import GivenRows
    from verax.report import Report

_EXAMPLES = """Examples: `verax compare a.parquet b.parquet`,
`verax compare new=a.parquet old=b.parquet --id id --rule brier --rule log_score --json`,
`verax compare a.parquet b.parquet --weights w --reference frequencies`,
`verax compare new=a.parquet old=b.parquet --rule brier --margin 0.02 --require 'difference.high<0.02'`,
`verax compare odds.csv --target result --probs model='Model*' --probs book='Book*'`,
`verax compare new=new_answers.csv old=old_answers.csv --grade correct --id qid --groups subject`,
`verax compare answers.csv --grade correct --id qid --model-column model --missing joint`,
`verax compare tour.csv --model-column forecaster --id question --times made --closes closes
--missing joint`,
`verax compare folds.csv --folds fold --probs new='new_*' --probs old='old_*' --rule brier --rope 0.01`,
`verax compare scores.csv --datasets dataset --better lower --plot ranks.png`"""


@app.command(epilog=_EXAMPLES)
@reads_files(
    lists=True,
    without={
        "save": "`verax evaluate --save` saves mergeable results of one model",
    },
)
@reads_grades
def compare(
    given: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...",
            help="A file, a folder or a pattern such as 'new/*.csv' for each of two or more models, also as "
            "name=FILE. Files with the same name are those of one model.",
        ),
    ],
    reading: Reading,
    grading: Grading,
    shared_ids: Annotated[
        bool,
        typer.Option(
            "--shared-ids", help="Compare only rows whose --id is in all files; the others are counted."
        ),
    ] = False,
    missing: Annotated[
        str,
        typer.Option(
            help="Where models have different questions, by --id. refuse; pairwise: compare each pair on the "
            "questions of both; joint: estimate all models on all questions. With --datasets, drop: leave "
            "out data sets that lack a model."
        ),
    ] = "refuse",
    times: Annotated[
        str | None,
        typer.Option(
            help="Column of when a forecast was made, where forecasters may change theirs: the loss of a "
            "question is the mean over its forecasts, weighted by how long each stood. With --closes."
        ),
    ] = None,
    closes: Annotated[
        str | None, typer.Option(help="Column of when a question closes, which ends its last forecast.")
    ] = None,
    rule: options.Rules = None,
    least: options.Least = 20,
    time_ordered: Annotated[
        bool, typer.Option("--time-ordered", help="Rows are in time order and may be autocorrelated.")
    ] = False,
    method: Annotated[str, typer.Option(help="moments, bootstrap or permutation.")] = "moments",
    bootstrap: Annotated[
        int, typer.Option(help="Replicates for the methods bootstrap and permutation.")
    ] = 2000,
    reference: Annotated[
        str | None, typer.Option(help="Reference for skill: frequencies, uniform, or a model.")
    ] = None,
    margin: Annotated[
        float | None,
        typer.Option(help="Also test which models are worse than another by less than this, under one rule."),
    ] = None,
    require: Annotated[
        list[str] | None,
        typer.Option(
            "--require",
            metavar="BOUND",
            help="A bound on the mean loss of the first model minus that of the second, such as "
            "'difference<0' or 'difference.high<0.01' for the end of its interval. May be repeated. Exit "
            "code 1 if one fails.",
        ),
    ] = None,
    folds: repeated.Folds = None,
    repeats: repeated.Repeats = None,
    datasets: repeated.Datasets = None,
    score_column: repeated.ScoreColumn = None,
    better: repeated.Better = None,
    rope: repeated.Rope = 0.0,
    confidence: options.Confidence = 0.95,
    seed: options.Seed = 0,
    as_json: Json = False,
    html: options.Html = None,
    plot: repeated.Plot = None,
) -> None:
    """Compare models on the same rows: which differences are significant, pair by pair.

    Rows are matched by --id, or by their order; rows that do not match are refused. Several models in one
    file are named with their columns: --probs name=columns. Top lists are recognised by their content, and
    may be compared with full distributions. Models, or the forecasters of a tournament, may be stacked in the
    rows of one file: --model-column. Files of graded answers are read with --grade, and evaluation logs
    (Inspect, lm-evaluation-harness, HELM, OLMES, OpenAI evals) by their content. --folds compares methods
    over folds of cross-validation, --datasets models over the data sets of a table of scores.
    """
    from verax.analyses.comparison.compare import compare as weigh
    from verax.files.joining import name_files

    over = repeated.Repeated(folds, datasets, repeats, score_column, better, rope, missing)
    if over.asked:
        refused: dict[str, Any] = {"html": html, "margin": margin, "reference": reference, "times": times}
        refused |= {"time_ordered": time_ordered or None, "closes": closes}
        refused["method"] = None if method == "moments" else method
        for argument, value in refused.items():
            if value is not None:
                raise InputError("cannot be used with folds or data sets", argument=argument)
        repeated.show_repeated(
            *(given, reading, grading.model_column, over, rule),
            shared_ids=shared_ids,
            require=require,
            confidence=confidence,
            seed=seed,
            plot=plot,
            as_json=as_json,
        )
        return
    plan: dict[str, Any] = {"confidence": confidence, "seed": seed, "weights_are": reading.weights_are}
    how: dict[str, Any] = {"method": cast(Method, method), "reference": reference, "bootstrap": bootstrap}
    how["margin"] = margin
    graded = grading.are_in(next(iter(name_files(given[:1]).values())), reading)
    if graded or missing != "refuse" or grading.model_column or times or closes:
        questions: GradedFiles | OwnRows
        if graded:
            if reading.by:
                raise InputError(
                    "cannot be used with graded answers",
                    argument="by",
                    remedies=[passing("for a comparison per value of a column", task=reading.by[0])],
                )
            if times or closes:
                raise InputError("is for forecasts that change, not for grades", argument="times")
            questions = GradedFiles.of(given, grading, reading, scored=rule is not None)
        else:
            columns = {"times": times, "closes": closes, "task": grading.task, "epochs": grading.epoch}
            stated = {name: column for name, column in columns.items() if column is not None}
            questions = own_rows(given, reading, rule, model_column=grading.model_column, columns=stated)
        bounds = bounds_on_difference(require, list(questions.files))
        asked: Any = {"missing": missing, "rule": rule, **questions.arguments(), **how, **plan}
        _show_questions(questions, weigh(**asked), bounds, html=html, plot=plot, as_json=as_json)
        return
    check_report(html)
    rules = as_rules(rule or default_rules(ordered=reading.ordered))
    order_matters = needs_order(rules, ordered=reading.ordered)
    paths = paths_of(given, reading)
    bounds = bounds_on_difference(require, list(paths))
    rows, about = open_models(paths, reading, ordered=order_matters, shared_ids=shared_ids)
    in_time = {"time_ordered": time_ordered} if time_ordered or rows.held else {}
    settings = {"ordered": reading.ordered, **in_time, **plan}
    report: Report | None = None

    def weighed(rows: GivenRows) -> Comparison:
        return rows.ask(weigh, rule=rules, ordered=order_matters, time_ordered=time_ordered, **how, **plan)

    def reported(rows: GivenRows) -> Report:
        lines = [", ".join(map(short_name, paths.values())), *next(iter(about.said.values()))]
        return rows.report(source="; ".join(lines), rules=rule, **settings)

    if html is None:
        found = weighed(rows)
    else:
        found, report = rows.together(weighed, reported)
    found = found.with_skipped(rows.skipped)
    verdicts = [bound.hold(found) for bound in bounds]
    if plot is not None:
        draw_to(plot, found.plot())
    parts = {}
    if html is None or not rows.reports_subgroups:
        parts = rows.subgroups(rule[0] if rule else None, least=least, **settings)
    if html is not None and report is not None:
        if not rows.reports_subgroups:
            report = report.with_subgroups(parts)
        held = [(f"{each.bound.text} ({each.value:.4g})", each.met) for each in verdicts]
        report = report.with_command(command_line("compare"), held, Typed.source())
        report.save(html)
        parts = report.subgroups or parts
    if report is not None:
        verdict = report.verdict
    else:
        in_order = {"ordered": reading.ordered, "time_ordered": time_ordered}
        verdict, parts = rows.verdict(rule, found=found, parts=parts, **in_order, **plan)
    verdict = verdict.with_source(Typed.source())
    result = {
        "command": "compare",
        **told(verdict),
        "files": {name: called(path) for name, path in paths.items()},
        "matched": about.matched,
        "left_out": {name: vars(left) for name, left in about.left_out.items()},
        "taken": about.taken,
        "comparison": found.to_dict(stored=False),
        "require": [verdict.to_dict() for verdict in verdicts],
        "met": all(verdict.met for verdict in verdicts),
        "subgroups": {name: part.to_dict(stored=False) for name, part in parts.items()},
        "html": None if html is None else str(html),
        "plot": None if plot is None else str(plot),
    }
    texts = verdict_lines(verdict)
    texts += [f"{name}: {'; '.join(lines)}" for name, lines in about.said.items()]
    texts += [f"Rows were matched {about.matched}."]
    texts += [
        f"{name}: {left} left out, which another file lacks."
        for name, left in about.left_out.items()
        if left.count
    ]
    texts += ["", found._text(), *(f"\n{part}" for part in parts.values())]
    texts += map(str, verdicts)
    texts += [] if html is None else [f"The report is in {html}."]
    show(result, texts, as_json=as_json)
    if not result["met"]:
        raise typer.Exit(FAILED)


def _show_questions(
    rows: GradedFiles | OwnRows,
    found: Comparison,
    bounds: Sequence[DifferenceBound],
    *,
    html: Path | None,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Print a comparison of models by questions, write its page, and hold it to bounds."""
    verdicts = [bound.hold(found) for bound in bounds]
    if html is not None:
        from verax.report.questions import save_question_page

        save_question_page(found, html, source="; ".join(rows.files.values()))
    if plot is not None:
        draw_to(plot, found.plot())
    verdict = found.verdict.with_source(Typed.source())
    result = {
        "command": "compare",
        **told(verdict),
        "files": dict(rows.files),
        "matched": rows.matched,
        "left_out": {},
        "taken": rows.said,
        "comparison": found.to_dict(stored=False),
        "require": [held.to_dict() for held in verdicts],
        "met": all(held.met for held in verdicts),
        "subgroups": {},
        "html": None if html is None else str(html),
        "plot": None if plot is None else str(plot),
    }
    texts = [*verdict_lines(verdict), *(f"{name}: {'; '.join(lines)}" for name, lines in rows.said.items())]
    texts += [f"Rows were matched {rows.matched}.", "", found._text(), *map(str, verdicts)]
    texts += [] if html is None else [f"The page is in {html}."]
    show(result, texts, as_json=as_json)
    if not result["met"]:
        raise typer.Exit(FAILED)
