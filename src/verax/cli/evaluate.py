"""`verax evaluate`: a file of predictions scored by every applicable rule."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from verax.cli import options
from verax.cli.app import app, handed_over
from verax.cli.options import reads_files
from verax.cli.output import Json
from verax.cli.require import Bound, Require, Strictly, read_bounds
from verax.inference.intervals import FewGroups, check_few_groups
from verax.inputs.reading import Reading
from verax.scores.base import Rule
from verax.scores.combinators import Padded, padded
from verax.scores.metrics import needs_order
from verax.scores.registry import as_rules

if TYPE_CHECKING:
    from verax.cli.schemas.building import Fields, Kinds

_EXAMPLES = """Examples: `verax evaluate preds.parquet`,
`verax evaluate grades.csv --target grade --ordered --classes none,mild,severe --groups patient`,
`verax evaluate preds.parquet --by site --id id --html report.html`,
`verax evaluate logits.npz --logits --rule brier --rule 'penalized(log_score)'`,
`verax evaluate grades.csv --target grade --ordered --classes none,mild,severe --require 'rps<0.5'`,
`verax evaluate samples.jsonl`,
`verax evaluate preds.parquet --require 'skill>0.1' --require 'ece<0.2'`,
`verax evaluate preds.parquet --save friday.verax`"""


@app.command(epilog=_EXAMPLES)
@reads_files(lists=True)
def evaluate(
    given: options.Given,
    reading: Reading,
    least: options.Least = 20,
    bootstrap: options.Draws = None,
    rule: options.Rules = None,
    require: Require = None,
    require_interval: Strictly = False,
    confidence: options.Confidence = 0.95,
    few_groups: Annotated[
        str | None,
        typer.Option(
            metavar="LEVEL",
            help="Largest correlation of the errors of a group, from 0 to 1, for intervals of shares. Or "
            "unseen: groups may be unlike all that were seen. By default 0.2, more in small groups.",
        ),
    ] = None,
    seed: options.Seed = 0,
    as_json: Json = False,
    html: options.Html = None,
    save: options.Save = None,
    ids: options.Ids = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Print rows, passes, and the expected time and memory, without the result."
        ),
    ] = False,
) -> None:
    """Score predictions: every rule, confidence intervals, calibration.

    Files may be larger than memory: large ones are streamed, and results that are then approximate state the
    error bound. A file with a list per row is recognised by its content: lists that name all classes are
    scored as distributions, others as `verax toplist` scores them. Graded answers and evaluation logs are for
    `verax evals evaluate`.
    """
    from verax.cli.cards import CardQuestion, show_card
    from verax.cli.opening import Opened
    from verax.common.idkeys import saving_ids
    from verax.files.joining import files_of_one_model

    if handed_over(files_of_one_model(given)[1], reading):
        return
    opened = Opened.of(given, reading)
    bounds = read_bounds(require, strictly=require_interval, ordered=reading.ordered, lists=opened.lists)
    rules = _rules(rule, bounds, reading.ordered, lists=opened.lists)
    ordered = not opened.lists and needs_order(rules, ordered=reading.ordered)
    plan = {"confidence": confidence, "seed": seed, "weights_are": reading.weights_are}
    few = None if few_groups is None else few_groups_of(few_groups)
    question = CardQuestion(rules, bounds, rule, reading.ordered, least, bootstrap, plan=plan, few_groups=few)
    rows = opened.in_order(ordered)
    if dry_run:
        from verax.cli.costs import show_costs

        show_costs(rows, replace(question, page=html is not None, part=save is not None), as_json=as_json)
        return
    with saving_ids(ids):
        show_card(rows, question, html=html, save=save, as_json=as_json, scale=reading.scale)


def few_groups_of(text: str) -> FewGroups:
    """What is assumed of groups, from what was typed."""
    try:
        few: object = float(text)
    except ValueError:
        few = text
    return check_few_groups(few)


def _rules(asked: list[str] | None, bounds: list[Bound], ordered: bool, *, lists: bool) -> list[Rule]:
    """The requested rules or all applicable ones, and those that bounds are about."""
    from verax.scores.registry import fitting_rules

    if lists:
        from verax.scores.registry import padded_rules

        named = as_rules(asked) if asked else padded_rules()
        chosen: list[Rule] = [rule if isinstance(rule, Padded) else padded(rule) for rule in named]
    else:
        chosen = fitting_rules(asked or None, ordered)
    return list(dict.fromkeys([*chosen, *(bound.rule for bound in bounds if bound.rule is not None)]))


def output() -> Kinds:
    """The fields of the kinds of output with --json."""
    from verax.analyses.cards.listcard import ListCard
    from verax.analyses.cards.scorecard import Scorecard
    from verax.cli.schemas.building import COUNT, NUMBER, TEXT, TRUTH, exactly, or_none, record
    from verax.cli.schemas.fields import CALIBRATION, CARD, COLUMN_FILE, LIST_CARD, SUBGROUPS

    card: Fields = {
        **CARD,
        **COLUMN_FILE,
        "card": exactly(Scorecard),
        "calibration": CALIBRATION,
        "subgroups": SUBGROUPS,
    }
    costs = record(
        n_rows=or_none(COUNT),
        exact=TRUTH,
        passes=COUNT,
        kept=TRUTH,
        sampled=COUNT,
        seconds=NUMBER,
        per_million=NUMBER,
        megabytes=NUMBER,
    )
    of_lists: Fields = {**CARD, "card": exactly(ListCard), **LIST_CARD}
    return [card, of_lists, {"file": TEXT, "dry_run": costs}]
