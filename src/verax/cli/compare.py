"""`verax compare`: predictions of several models on the same rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from verax.cli import comparing, options
from verax.cli.app import app, handed_over
from verax.cli.arguments import Typed
from verax.cli.comparing import show_compared, show_questions
from verax.cli.models import open_models, paths_of, separate_rows, short_name
from verax.cli.options import number_or_text, reads_files
from verax.cli.output import Json, check_report, draw_to, save_report, show
from verax.cli.require import bounds_on_difference
from verax.common.wings import answer_to
from verax.errors import InputError, passing
from verax.inference.estimates import Method
from verax.inputs.reading import Reading
from verax.scores.metrics import needs_order
from verax.scores.naming import METRICS_ELSEWHERE, RANKINGS
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
    threshold: Annotated[
        str | None,
        typer.Option(
            metavar="T",
            help="The threshold of a rate: a probability, or what to choose it for. Choices are those of "
            "`verax decide`, such as youden or 'sensitivity>=0.9'. By default 0.5.",
        ),
    ] = None,
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
    from verax.files.joining import name_files

    if handed_over(next(iter(name_files(given[:1]).values())), reading):
        return
    asked = _Asked(
        given,
        reading,
        rule,
        how={
            "method": cast(Method, method),
            "reference": reference,
            "bootstrap": bootstrap,
            "margin": margin,
        },
        plan={"confidence": confidence, "seed": seed, "weights_are": reading.weights_are},
        require=require,
        shared_ids=shared_ids,
        time_ordered=time_ordered,
        least=least,
        as_json=as_json,
        html=html,
        plot=plot,
    )
    columns = {"times": times, "closes": closes, "task": task, "epochs": epoch}
    stated = {name: column for name, column in columns.items() if column is not None}
    if missing != "refuse" or model_column or stated:
        asked.by_questions(missing, model_column, stated)
        return
    check_report(html)
    score = _named_score(rule, threshold)
    if score is None:
        asked.by_losses()
    else:
        asked.by_score(score, threshold)


@dataclass(frozen=True)
class _Asked:
    """What was typed. Models are compared by the losses of rows, by a score of all rows, or by questions.

    Attributes
    ----------
    given : list of str
        The files.
    reading : Reading
        How they are read.
    rule : list of str or None
        The rules.
    how, plan : dict
        Options of comparisons of losses, and of all intervals.
    """

    given: list[str]
    reading: Reading
    rule: list[str] | None
    how: dict[str, Any]
    plan: dict[str, Any]
    require: list[str] | None
    shared_ids: bool
    time_ordered: bool
    least: int
    as_json: bool
    html: Path | None
    plot: Path | None

    def by_questions(self, missing: str, model_column: str | None, columns: dict[str, str]) -> None:
        """Compare models that may have answered questions of their own."""
        from verax.analyses.comparison.compare import compare as weigh

        questions = separate_rows(
            self.given, self.reading, self.rule, model_column=model_column, columns=columns
        )
        bounds = bounds_on_difference(self.require, list(questions.files))
        how: Any = {"missing": missing, "rule": self.rule, **questions.arguments(), **self.how, **self.plan}
        shown = weigh(**how), questions.files, questions.about, bounds
        show_questions(*shown, html=self.html, plot=self.plot, as_json=self.as_json)

    def by_score(self, score: str, threshold: str | None) -> None:
        """Compare models by how they rank rows, or by a rate of decisions at a threshold."""
        from verax.analyses.discrimination import ranking

        self._refuse_beside(score)
        reading = self.reading
        paths = paths_of(self.given, reading)
        bounds = bounds_on_difference(self.require, list(paths))
        ordered = reading.ordered or score == "c_index"
        rows, about = open_models(paths, reading, ordered=ordered, shared_ids=self.shared_ids)
        confidence, seed = self.plan["confidence"], self.plan["seed"]
        comparison: Any
        if score in RANKINGS:
            in_order: dict[str, Any] = {} if score == "c_index" else {"ordered": ordered}
            comparison = getattr(ranking, RANKINGS[score])(rows.handle, confidence=confidence, **in_order)
            result = {"ranking": comparison.to_dict(stored=False)}
        else:
            at = number_or_text(threshold or "0.5")
            how = {"ordered": ordered, "confidence": confidence, "seed": seed}
            comparison = answer_to("comparison by a rate")(rows.handle, score, at, **how)
            result = {"rates": comparison.points.to_dict(stored=False)}
        result |= {"files": dict(rows.files), **about.to_dict(), "rule": score}
        show_compared(comparison, result, bounds, about.lines(), plot=None, as_json=self.as_json)

    def _refuse_beside(self, score: str) -> None:
        """Refuse options that are about losses of rows."""
        method = self.how["method"]
        refused = {
            "html": self.html,
            "margin": self.how["margin"],
            "reference": self.how["reference"],
            "plot": self.plot,
            "by": self.reading.by or None,
            "time_ordered": self.time_ordered or None,
            "method": None if method == "moments" else method,
        }
        for argument, value in refused.items():
            if value is not None:
                raise InputError(f"cannot be used with --rule {score}", argument=argument)

    def by_losses(self) -> None:
        """Compare models by the losses of the same rows, with the report if it was asked for."""
        from verax.analyses.comparison.compare import compare as weigh
        from verax.analyses.subgroups.verdict import verdict_of

        reading, rule, plan = self.reading, self.rule, self.plan
        rules = as_rules(rule or default_rules(ordered=reading.ordered))
        order_matters = needs_order(rules, ordered=reading.ordered)
        paths = paths_of(self.given, reading)
        bounds = bounds_on_difference(self.require, list(paths))
        rows, about = open_models(paths, reading, ordered=order_matters, shared_ids=self.shared_ids)
        if self.time_ordered or self.how["method"] != "moments":
            rows = replace(rows, handle=rows.handle.in_memory())
        in_time: dict[str, Any] = {"time_ordered": self.time_ordered}
        # Rows that are not in memory have no order.
        settings = {"ordered": reading.ordered, **(in_time if rows.handle.whole else {}), **plan}

        def weighed(handle: Any) -> Comparison:
            return weigh(handle, rule=rules, ordered=order_matters, **in_time, **self.how, **plan)

        def reported(handle: Any) -> Report:
            from verax.report import Report

            source = ", ".join(map(short_name, paths.values()))
            return Report.of(**(rows.arrays or {"y": handle}), source=source, rules=rule, **settings)

        paged = [] if self.html is None else [reported]
        (compared, *paged_rows), by_column = rows.asked(
            weighed, *paged, rule=rule[0] if rule else None, least=self.least, **settings
        )
        comparison, reports = compared(), [report() for report in paged_rows]
        parts = {name: column() for name, column in by_column.items()}
        checks = [bound.hold(comparison) for bound in bounds]
        if self.plot is not None:
            draw_to(self.plot, comparison.plot())
        if self.html is not None:
            report = reports[0].with_subgroups(parts)
            save_report(report, self.html, checks, "; ".join(next(iter(about.lines_of.values()))))
            verdict, parts = report.verdict, report.subgroups or parts
        else:
            how: dict[str, Any] = {"ordered": reading.ordered, **in_time, **plan}
            verdict, parts = verdict_of(rows.handle, rules=rule, found=comparison, parts=parts, **how)
        result = {
            "files": dict(rows.files),
            **about.to_dict(),
            "comparison": comparison.to_dict(stored=False),
            "subgroups": {name: part.to_dict(stored=False) for name, part in parts.items()},
        }
        texts = [*about.lines(), comparison._text(), *(f"\n{part}" for part in parts.values())]
        show(
            result,
            texts,
            as_json=self.as_json,
            verdict=verdict.with_source(Typed.source()),
            checks=checks,
            report=self.html,
            plot=self.plot,
        )


def _named_score(rules: list[str] | None, threshold: str | None) -> str | None:
    """The ranking score or rate that models are compared by; None where rules are named."""
    from verax.analyses.rates import COMPARED

    names = [METRICS_ELSEWHERE.get(name.lower(), name) for name in rules or ()]
    # Without a threshold, accuracy is that of the most likely class, which the zero-one loss compares.
    rates = [name for name in COMPARED if name != "accuracy" or threshold is not None]
    known = [name for name in names if name in RANKINGS or name in rates]
    if not known:
        if threshold is not None:
            rate = [passing("for a rate at it", rule="sensitivity")]
            raise InputError("is for rates of decisions", argument="threshold", remedies=rate)
        return None
    if len(names) > 1:
        raise InputError(
            f"must be {known[0]} alone: it is no loss of rows, and is compared in another way",
            argument="rule",
            values=names,
        )
    if known[0] in RANKINGS and threshold is not None:
        raise InputError(f"is for rates of decisions, not for {known[0]}", argument="threshold")
    return known[0]


def output() -> Kinds:
    """The fields of the kinds of output with --json."""
    from verax.analyses.discrimination.result import RankScores
    from verax.cli.schemas.building import of_type
    from verax.cli.schemas.fields import BY_LOSSES, BY_SCORES

    return [BY_LOSSES, {**BY_SCORES, "ranking": of_type(RankScores)}]
