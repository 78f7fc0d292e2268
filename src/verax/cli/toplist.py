"""`verax toplist`: files of top lists."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from verax.cli.app import app
from verax.cli.output import Json, show


@app.command(epilog="Examples: `verax toplist completions.jsonl --classes 50000 --json`")
def toplist(
    file: Annotated[
        Path, typer.Argument(help="JSON Lines, one record per line, with log-probabilities of tokens.")
    ],
    classes: Annotated[int, typer.Option(help="The number of classes: the size of the vocabulary.")],
    outcome: Annotated[
        str, typer.Option(help="The field that holds the outcome; dots lead into nested fields.")
    ] = "outcome",
    position: Annotated[int, typer.Option(help="Which generated token to score, counted from 0.")] = 0,
    length: Annotated[
        int | None, typer.Option("-k", "--length", help="Score only the first entries of each list.")
    ] = None,
    invalid_penalty: Annotated[float, typer.Option(help="The loss of an invalid list.")] = 1.0,
    as_json: Json = False,
) -> None:
    """Score top lists of tokens, as chat-completion interfaces return them (`top_logprobs`)."""
    from verax.analyses.cards.evaluation import evaluate
    from verax.analyses.cards.listcard import padded_rules
    from verax.files.lists import open_lists

    read = open_lists(file, outcome=outcome, classes=classes, position=position)
    lists = read.lists if length is None else read.lists.truncate(length)
    card = evaluate(read.y, lists, rules=padded_rules(invalid_penalty))
    show(card.to_dict(), [str(card)], as_json=as_json)
