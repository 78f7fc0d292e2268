"""`verax evaluate`: a file of predictions scored by every rule that fits."""

from __future__ import annotations

from typing import Any

import typer

from verax.analyses.cards.evaluation import fitting_rules
from verax.cli import options
from verax.cli.app import FAILED, app, words
from verax.cli.options import Reading, reads_files
from verax.cli.output import Json, progress, save_report, show, subgroups_by
from verax.cli.require import Bound, Require, Strictly, read_bounds
from verax.scores.base import Rule
from verax.scores.metrics import needs_order

_EXAMPLES = """Examples: `verax evaluate preds.parquet`,
`verax evaluate grades.csv --target grade --ordered --classes none,mild,severe --groups patient`,
`verax evaluate preds.parquet --by site --id id --html report.html`,
`verax evaluate logits.npz --logits --rule brier --rule 'penalized(log)'`,
`verax evaluate grades.csv --target grade --ordered --classes none,mild,severe --require 'rps<0.5'`
"""


@app.command(epilog=_EXAMPLES)
@reads_files()
def evaluate(
    file: options.File,
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
) -> None:
    """Score a file of predictions by every rule that fits, with intervals.

    Rows are read in batches and none is kept, so the file may be larger than memory; --by and --html keep
    all rows.
    """
    from verax import files

    reading.check_groups(html)
    bounds = read_bounds(require, strictly=require_interval, ordered=reading.ordered)
    rules = _rules(rule, bounds, reading.ordered)
    source = reading.open(file, ordered=needs_order(rules, ordered=reading.ordered))
    settings: dict[str, Any] = {"ordered": reading.ordered, **reading.scale}
    settings |= {"confidence": confidence, "seed": seed, "weights_are": reading.weights_are}
    with progress(f"Scoring {file.name}", source.n_rows) as advance:
        card = files.evaluate_source(source, rules=rules, progress=advance, **settings)
    rows = source.read() if source.roles.by or html is not None else None
    asked = rule[0] if rule else None
    parts = (
        {}
        if rows is None
        else subgroups_by(rows, rows.p, asked, least=least, bootstrap=bootstrap, **settings)
    )
    if rows is not None and html is not None:
        said = f"{file.name}: {'; '.join(source.taken)}"
        save_report(html, rows, {file.stem: rows.p}, source=said, rules=rule, **settings)
    notes = [words().say(doubt) for doubt in files.doubts_about(source, card.class_counts.tolist())]
    verdicts = [bound.hold(card) for bound in bounds]
    result: dict[str, Any] = {
        "command": "evaluate",
        "file": str(file),
        "taken": source.roles.to_dict(),
        **reading.scale,
        "card": card.to_dict(),
        "subgroups": {name: part.to_dict() for name, part in parts.items()},
        "require": [verdict.to_dict() for verdict in verdicts],
        "met": all(verdict.met for verdict in verdicts),
        "html": None if html is None else str(html),
        "notes": notes,
    }
    taken = f"{file}: {'; '.join(source.taken)}"
    texts = [
        taken,
        str(card),
        *(f"Note: {note}" for note in notes),
        *(f"\n{part}" for part in parts.values()),
        *map(str, verdicts),
    ]
    texts += [] if html is None else [f"The report is in {html}."]
    show(result, texts, as_json=as_json)
    if not result["met"]:
        raise typer.Exit(FAILED)


def _rules(asked: list[str] | None, bounds: list[Bound], ordered: bool) -> list[Rule]:
    """The rules asked for, or all that fit, and those that bounds are about."""
    chosen = fitting_rules(asked or None, ordered)
    return list(dict.fromkeys([*chosen, *(bound.rule for bound in bounds if bound.rule is not None)]))
