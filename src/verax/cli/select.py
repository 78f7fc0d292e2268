"""`verax select`: which epoch of a training run each rule would keep."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from verax.cli.app import app, words
from verax.cli.output import Json, draw_to, show
from verax.errors import InputError, join
from verax.errors import show as quote

if TYPE_CHECKING:
    from verax.selection import Selection


@app.command(
    epilog="Examples: `verax select metrics.csv`, `verax select trainer_state.json --rule loss`, "
    "`verax select log.jsonl --rule pbs --rule log_score --against f1 --direction my_metric=max "
    "--plot history.png`"
)
def select(
    history: Annotated[
        Path,
        typer.Argument(
            help="The values of metrics by epoch or step: .csv (also of Keras, Lightning, TensorBoard and "
            "Weights & Biases), .jsonl or .json (also Hugging Face's trainer_state.json)."
        ),
    ],
    rule: Annotated[
        list[str] | None, typer.Option(help="Select by this rule or column; all rules unless named.")
    ] = None,
    against: Annotated[
        list[str] | None, typer.Option(help="Correlate with this column; F1 and accuracy unless named.")
    ] = None,
    direction: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=min|max", help="Which direction is better, for a metric that verax does not know."
        ),
    ] = None,
    run: Annotated[str | None, typer.Option(help="Which run, where the file has several.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw the rules and their optima to this file.")] = None,
    as_json: Json = False,
) -> None:
    """Name the epoch to keep by each rule, with all metrics there and correlations with F1 and accuracy."""
    from verax.selection import History, Selection

    read = History.read(history, directions=_directions(direction or []), run=run)
    selection = Selection.of(read, rule or None, against or None, words())
    if plot is not None:
        draw_to(plot, selection.plot())
    result = {"command": "select", "file": str(history), **selection.to_dict(stored=False)}
    show(result, [_verdict(selection), "", str(selection)], as_json=as_json)


def _verdict(selection: Selection) -> str:
    """Which epoch to keep, by the first rule, and which others keep another."""
    counter = selection.history.counter
    first, *others = [selection.best[name] for name in selection.rules or selection.against]
    best = "lowest" if first.direction == "min" else "highest"
    text = f"Keep {counter} {first.epoch}: {best} {first.metric}, {first.value:.4g}."
    if not others:
        return text
    apart = [f"{other.metric} ({counter} {other.epoch})" for other in others if other.epoch != first.epoch]
    agreed = f"All {len(others) + 1} rules agree." if not apart else f"Another is best by {join(apart)}."
    return f"{text} {agreed}"


def _directions(given: list[str]) -> dict[str, Any]:
    pairs = [text.rpartition("=") for text in given]
    for text, (name, _, _) in zip(given, pairs, strict=True):
        if not name:
            raise InputError(
                f"must be a name and min or max, such as my_metric=max, not {quote(text)}",
                argument="directions",
                values=[text],
            )
    return {name: value for name, _, value in pairs}
