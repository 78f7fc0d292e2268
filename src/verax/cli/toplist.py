"""`verax toplist`: files of top lists."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from verax.cli import options
from verax.cli.app import app
from verax.cli.options import Reading, reads_files
from verax.cli.output import Json
from verax.cli.require import Require, Strictly

_EXAMPLES = """Examples: `verax toplist completions.jsonl --classes 50000 --json`,
`verax toplist batch.jsonl --classes 50000 --outcomes gold.csv --id custom_id --skip-invalid`,
`verax toplist completions.jsonl --classes 50000 --merge-variants case --require 'coverage>0.9'`"""
_WITHOUT = ("target", "probs", "ordered", "positive", "by", "logits", "decimal")


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
            help="The field that holds the outcome; dots lead into nested fields. By default the one called "
            "outcome, target, label, answer, ..."
        ),
    ] = None,
    length: Annotated[
        int | None, typer.Option("-k", "--length", help="Score only the first entries of each list.")
    ] = None,
    invalid_penalty: Annotated[float, typer.Option(help="The loss of an invalid list.")] = 1.0,
    require: Require = None,
    require_interval: Strictly = False,
    confidence: options.Confidence = 0.95,
    seed: options.Seed = 0,
    as_json: Json = False,
    save: options.Save = None,
) -> None:
    """Score top lists: responses of language models, outputs of classifiers, ranked runs, long tables.

    The shape of the records is recognised by their content; docs/guide/listfiles.md has all of them.
    --classes is the number of classes, such as the size of a vocabulary, or their names.
    """
    from verax.analyses.cards.listcard import padded_rules
    from verax.cli.listcards import show_card
    from verax.files import files_of_one_model

    show_card(
        replace(reading, target=outcome).open_lists(files_of_one_model(given)[1]),
        rules=padded_rules(invalid_penalty),
        require=require,
        strictly=require_interval,
        length=length,
        confidence=confidence,
        seed=seed,
        weights_are=reading.weights_are,
        as_json=as_json,
        save=save,
        nested=False,
    )
