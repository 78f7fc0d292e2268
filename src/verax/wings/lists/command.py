"""`verax toplist`: files of top lists."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from verax.cli import options
from verax.cli.app import app
from verax.cli.options import reads_files
from verax.cli.output import Json
from verax.cli.require import Require, Strictly, read_bounds
from verax.inputs.reading import Reading

if TYPE_CHECKING:
    from verax.cli.schemas.building import Kinds

_EXAMPLES = """Examples: `verax toplist completions.jsonl --classes 50000 --json`,
`verax toplist batch.jsonl --classes 50000 --outcomes gold.csv --id custom_id --skip-invalid`,
`verax toplist completions.jsonl --classes 50000 --merge-variants case --require 'coverage>0.9'`"""
_WITHOUT = {
    "target": "--outcome names the field of outcomes",
    **dict.fromkeys(("raters", "rater_column", "label_column"), "top lists have one outcome each"),
    "probs": "lists hold their classes and probabilities; `verax evaluate` reads columns",
    **dict.fromkeys(("ordered", "positive"), "top lists have neither an order nor a positive class"),
    "decimal": "records have decimal points",
    **dict.fromkeys(("logits", "percent", "outputs"), "top lists hold probabilities or log-probabilities"),
}


@app.command(epilog=_EXAMPLES)
@reads_files(lists=True, without=_WITHOUT)
def toplist(
    given: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...",
            help="A record with a list per line, or another file of lists; - for stdin. A folder, a pattern "
            "or several files are read as one.",
        ),
    ],
    reading: Reading,
    outcome: Annotated[
        str | None,
        typer.Option(
            metavar="FIELD",
            help="Field of outcomes; dots lead into nested fields. By default the one called outcome, "
            "target, label, answer, ...",
        ),
    ] = None,
    length: Annotated[
        int | None,
        typer.Option("-k", "--length", metavar="N", help="Score only the first N entries of each list."),
    ] = None,
    invalid_penalty: Annotated[
        float, typer.Option(metavar="LOSS", help="The loss of an invalid list.")
    ] = 1.0,
    require: Require = None,
    require_interval: Strictly = False,
    confidence: options.Confidence = 0.95,
    seed: options.Seed = 0,
    least: options.Least = 20,
    bootstrap: options.Draws = None,
    as_json: Json = False,
    html: options.Html = None,
    save: options.Save = None,
    ids: options.Ids = None,
) -> None:
    """Score top lists, such as language-model responses.

    The shape of the records is recognised by their content. --classes is the number of classes, such as the
    size of a vocabulary, or their names.
    """
    from verax.cli.cards import CardQuestion, show_card
    from verax.cli.opening import Opened, open_files
    from verax.common.idkeys import saving_ids
    from verax.common.paths import called
    from verax.files.joining import are_named, files_of_one_model
    from verax.scores.registry import padded_rules

    model, paths = files_of_one_model(given)
    hold: Literal["fitting", "all"] = "fitting" if length is None else "all"
    list_reading = replace(reading, lists=True, target=outcome)
    pooled: Literal["named", "refused"] = "named" if are_named(given) else "refused"
    handle = open_files(paths, model, list_reading, hold=hold, densify=False, pooled=pooled)
    rows = Opened({model: called(paths)}, handle if length is None else _truncated(handle, length))
    bounds = read_bounds(require, strictly=require_interval, ordered=False, lists=True)
    asked = [bound.rule for bound in bounds if bound.rule is not None]
    question = CardQuestion(
        list(dict.fromkeys([*padded_rules(invalid_penalty), *asked])),
        bounds,
        least=least,
        bootstrap=bootstrap,
        plan={"confidence": confidence, "seed": seed, "weights_are": reading.weights_are},
    )
    with saving_ids(ids):
        show_card(rows, question, flat=True, html=html, save=save, as_json=as_json)


def _truncated(handle: Any, length: int) -> Any:
    """The first entries of each list in memory."""
    lists = {name: replace(read, lists=read.lists.truncate(length)) for name, read in handle.rows.items()}
    same = type(handle)(lists, handle.request, name=handle.name, taken=handle.taken, notes=handle.notes)
    same.bins = handle.bins
    return same


def output() -> Kinds:
    """The fields of the output with --json."""
    from verax.analyses.cards.listcard import ListCard
    from verax.cli.schemas.building import face
    from verax.cli.schemas.fields import CARD, LIST_CARD

    card = {name: field for name, field in face(ListCard).items() if name != "verax"}
    return {**card, **CARD, **LIST_CARD}
