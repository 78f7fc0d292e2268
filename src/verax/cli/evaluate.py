"""`verax evaluate`: a file of predictions scored by every rule that fits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from verax.analyses.calibration.summary import CalibrationSummary, decomposable, summarize
from verax.analyses.cards.evaluation import fitting_rules, score
from verax.cli import options
from verax.cli.app import FAILED, app, words
from verax.cli.options import Reading, reads_files
from verax.cli.output import Json, large_report, progress, said_of, save_report, show, subgroups_by
from verax.cli.require import Bound, Require, Strictly, read_bounds
from verax.cli.shards import report_on_shard
from verax.inference.intervals import Resampling
from verax.inputs.handles import Handle
from verax.scores.base import Rule
from verax.scores.metrics import needs_order
from verax.scores.registry import as_rules

if TYPE_CHECKING:
    from verax.files import KeptRows
    from verax.report import Report

_EXAMPLES = """Examples: `verax evaluate preds.parquet`,
`verax evaluate grades.csv --target grade --ordered --classes none,mild,severe --groups patient`,
`verax evaluate preds.parquet --by site --id id --html report.html`,
`verax evaluate logits.npz --logits --rule brier --rule 'penalized(log)'`,
`verax evaluate grades.csv --target grade --ordered --classes none,mild,severe --require 'rps<0.5'`,
`verax evaluate samples.jsonl`,
`verax evaluate preds.parquet --require 'skill>0.1' --require 'ece<0.2'`,
`verax evaluate preds.parquet --save friday.verax`
"""


@app.command(epilog=_EXAMPLES)
@reads_files(lists=True)
def evaluate(
    given: options.Given,
    reading: Reading,
    least: options.Least = 20,
    bootstrap: options.Draws = 100,
    rule: options.Rules = None,
    require: Require = None,
    require_interval: Strictly = False,
    confidence: options.Confidence = 0.95,
    seed: options.Seed = 0,
    as_json: Json = False,
    html: options.Html = None,
    save: options.Save = None,
) -> None:
    """Score a file of predictions by every rule that fits, with intervals, and their calibration.

    Rows are read in batches and only those of small files are kept, so the file may be larger than memory.
    Bounds on calibration keep all rows, --html those of files that fit into memory, and --by all rows, unless
    a report is made of a larger file. A file with a list per row is recognised by its content: lists that
    name all classes are scored as distributions, others as `verax toplist` scores them.
    """
    from verax import files
    from verax.cli.opening import Opened
    from verax.scans.sources import SourceHandle, fits_in_memory

    reading.check_groups(html)
    opened = Opened.of(given, reading)
    file, model = opened.file, opened.model
    if opened.top is not None:
        from verax.analyses.cards.listcard import padded_rules
        from verax.cli.listcards import show_large, show_lists

        how: dict[str, Any] = {
            "rule": rule[0] if rule else None,
            "rules": as_rules(rule) if rule else padded_rules(),
            "require": require,
            "strictly": require_interval,
            "as_json": as_json,
            "least": least,
            "bootstrap": bootstrap,
            "save": save,
            "html": html,
            "ordered": reading.ordered,
            "confidence": confidence,
            "seed": seed,
            "weights_are": reading.weights_are,
        }
        if isinstance(opened.top, Handle):
            show_large(opened.top, **how)
        else:
            show_lists(opened.top, model=model, asked=rule, **how)
        return
    bounds = read_bounds(require, strictly=require_interval, ordered=reading.ordered)
    rules = _rules(rule, bounds, reading.ordered)
    order_matters = needs_order(rules, ordered=reading.ordered)
    source = opened.source(ordered=order_matters)
    settings: dict[str, Any] = {"ordered": reading.ordered, **reading.scale}
    settings |= {"confidence": confidence, "seed": seed, "weights_are": reading.weights_are}
    kept = files.KeptRows(None) if any(bound.on_calibration for bound in bounds) else files.KeptRows()
    # A report on a large file needs one pass over it, and has the card.
    alone = html is not None and save is None
    large = alone and not fits_in_memory(source)
    at_once = large and not bounds
    report: Report | None = None
    with progress(f"Scoring {file}", source.n_rows) as advance:
        if large:
            handle = SourceHandle(source, ordered=order_matters, progress=advance if at_once else None)
            report = large_report(handle, source=said_of(source), rules=rule, **settings)
        if report is not None and at_once:
            from verax.report.problem import Problem

            problem = report.contents.problem
            assert isinstance(problem, Problem)
            card = report.contents.findings[0].card.with_skipped(problem.skipped)
        else:
            handle = SourceHandle(source, ordered=order_matters, progress=advance, keep=kept)
            plan = Resampling.checked(confidence, 1000, seed, weights_are=reading.weights_are)  # type: ignore[arg-type]
            card = score(
                handle, None, plan, ordered=reading.ordered, costs=None, rules=rules, part=save is not None
            )
    asked_rules = as_rules(rule) if rule else []
    calibration = None
    if card.weight and not at_once:
        calibration = _calibration(kept, asked_rules, bounds, bootstrap, **settings)
    rows = source.read() if not large and (source.roles.by or alone) else None
    asked = rule[0] if rule else None
    parts = {} if report is None else report.subgroups
    if rows is not None:
        parts = subgroups_by(rows, rows.p, asked, least=least, bootstrap=bootstrap, **settings)
    no_report = None
    if html is not None and save is not None:
        shard = SourceHandle(source, ordered=card.ordered)
        no_report = report_on_shard(html, save, card, shard, said_of(source))
        html = html if no_report is None else None
    elif html is not None and report is not None:
        report.save(html)
    elif rows is not None and html is not None:
        save_report(html, rows, {model: rows.p}, parts, source=said_of(source), rules=rule, **settings)
    elif save is not None:
        card.save(save)
    notes = [words().say(doubt) for doubt in files.doubts_about(source, card.class_counts.tolist())]
    notes += source.notes
    notes += [] if no_report is None else [f"There is no report on this part alone. {words().say(no_report)}"]
    if large:
        notes.append("The file is large: its report was made without holding the rows, and says within what.")
    elif not kept.complete:
        notes.append(
            "Skill and calibration were not computed: they need all rows in memory, and "
            f"{kept.n_rows:,} rows of {kept.n_classes:,} classes are many. `verax decompose` or a bound such "
            "as --require 'skill>0' computes them."
        )
    verdicts = [bound.hold(card, calibration) for bound in bounds]
    result: dict[str, Any] = {
        "command": "evaluate",
        "file": file,
        "taken": source.roles.to_dict(),
        **reading.scale,
        "card": card.to_dict(stored=False),
        "calibration": None if calibration is None else calibration.to_dict(stored=False),
        "subgroups": {name: part.to_dict(stored=False) for name, part in parts.items()},
        "require": [verdict.to_dict() for verdict in verdicts],
        "met": all(verdict.met for verdict in verdicts),
        "html": None if html is None else str(html),
        "save": None if save is None else str(save),
        "notes": notes,
    }
    taken = f"{file}: {'; '.join(source.taken)}"
    texts = [
        taken,
        str(card),
        *([] if calibration is None else [f"\n{calibration}"]),
        *(f"Note: {note}" for note in notes),
        *(f"\n{part}" for part in parts.values()),
        *map(str, verdicts),
    ]
    texts += [] if html is None else [f"The report is in {html}."]
    texts += [] if save is None else [f"The sums are in {save}."]
    show(result, texts, as_json=as_json)
    if not result["met"]:
        raise typer.Exit(FAILED)


def _calibration(
    kept: KeptRows, asked: list[Rule], bounds: list[Bound], bootstrap: int, **settings: Any
) -> CalibrationSummary | None:
    """Skill and calibration of the rows, if they were kept; with intervals where a bound is about one."""
    if not kept.complete:
        return None
    with_interval = any(bound.on_calibration and bound.end != "mean" for bound in bounds)
    return summarize(
        **kept.arguments(),
        ordered=settings["ordered"],
        rule=next(filter(decomposable, asked), None),
        bootstrap=(bootstrap or 100) if with_interval else 0,
        seed=settings["seed"],
        confidence=settings["confidence"],
        weights_are=settings["weights_are"],
    )


def _rules(asked: list[str] | None, bounds: list[Bound], ordered: bool) -> list[Rule]:
    """The rules asked for, or all that fit, and those that bounds are about."""
    chosen = fitting_rules(asked or None, ordered)
    return list(dict.fromkeys([*chosen, *(bound.rule for bound in bounds if bound.rule is not None)]))
