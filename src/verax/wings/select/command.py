"""`verax select`: which epoch of a training run each rule would keep."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from verax.cli import options
from verax.cli.app import app, words
from verax.cli.arguments import Typed
from verax.cli.options import reads_files
from verax.cli.output import Json, draw_to, show, verdict_lines
from verax.common.paths import matching
from verax.errors import InputError, Remedy
from verax.errors import show as quote
from verax.inputs.reading import OPTIONS, Reading, flag_of

if TYPE_CHECKING:
    from verax.cli.schemas.building import Kinds
    from verax.wings.select.history import History


@app.command(
    epilog="Examples: `verax select metrics.csv`, `verax select trainer_state.json --rule loss`, "
    "`verax select log.jsonl --rule pbs --rule log_score --against f1 --direction my_metric=max "
    "--plot history.png`, `verax select 'epochs/*.parquet' --rule refinement --rule brier`"
)
@reads_files(
    without={
        "by": "an epoch is kept for all rows",
        "weights_are": "weights are importance weights here",
    },
)
def select(
    reading: Reading,
    given: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...",
            help="The values of metrics by epoch or step: .csv (also of Keras, Lightning, TensorBoard and "
            "Weights & Biases), .jsonl or .json (also Hugging Face's trainer_state.json), or TensorBoard's "
            "event files or a folder of them (with the tensorboard package). Or the validation "
            "predictions of several epochs, a file each, numbered by the last number in its name.",
        ),
    ],
    rule: Annotated[
        list[str] | None,
        typer.Option(
            metavar="RULE",
            help="Select by this rule or column; all rules unless named. Predictions also have refinement, "
            "the log score after recalibration, and those of other rules, such as brier_refinement.",
        ),
    ] = None,
    against: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="Correlate with this column; F1 and accuracy unless named. Of predictions, any metric of a "
            "card, such as macro_f1, qwk or balanced_accuracy.",
        ),
    ] = None,
    patience: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="EPOCHS",
            help="Replay early stopping: the epoch that each rule would have kept with this patience.",
        ),
    ] = None,
    method: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="How to recalibrate predictions for their refinement, as in recalibrate."
        ),
    ] = "temperature",
    direction: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=min|max", help="Which direction is better, for a metric that verax does not know."
        ),
    ] = None,
    run: Annotated[
        str | None, typer.Option(metavar="NAME", help="Which run, where the file has several.")
    ] = None,
    plot: Annotated[Path | None, options.drawing("the rules and their optima")] = None,
    as_json: Json = False,
) -> None:
    """Name the epoch to keep by each rule.

    All metrics of that epoch are shown, and correlations with F1 and accuracy.
    """
    from verax.wings.select.choice import Selection
    from verax.wings.select.history import History

    paths = [path for text in given for path in matching(text)]
    if len(paths) > 1:
        _refuse(direction=direction, run=run)
        read = _of_predictions(paths, reading, rule, against, method)
    else:
        if any(Typed.is_typed(flag_of(name)) for name in OPTIONS):
            raise InputError(
                "must be the predictions of at least two epochs, a file each, to be read as predictions",
                argument="path",
                kind="length",
                found=f"there is only {quote(str(paths[0]), 200)}",
            )
        read = History.read(paths[0], directions=_directions(direction or []), run=run)
    selection = Selection.of(read, rule or None, against or None, words(), patience)
    if plot is not None:
        draw_to(plot, selection.plot())
    result = {"file": " ".join(given), **selection.to_dict(stored=False)}
    show(result, [*verdict_lines(selection.verdict), selection._text()], as_json=as_json)


def _of_predictions(
    paths: list[Path], reading: Reading, rules: list[str] | None, against: list[str] | None, method: str
) -> History:
    """The history of files of predictions, one per epoch."""
    from verax.cli.opening import Opened
    from verax.wings.select.history import History
    from verax.wings.select.predictions import DEFAULT

    epochs = {}
    for epoch, path in zip(_numbers(paths), paths, strict=True):
        epochs[epoch] = Opened.of([str(path)], reading).in_order(reading.ordered).handle
    measured = list(dict.fromkeys([*(rules or DEFAULT), *(against or ())]))
    return History.from_predictions(epochs, measured, method=method)


def _numbers(paths: list[Path]) -> list[int]:
    """The numbers of epochs: the last one in the name of each file."""
    digits = [re.findall(r"\d+", path.stem) for path in paths]
    numbers = [int(runs[-1]) if runs else None for runs in digits]
    unclear = [i for i, number in enumerate(numbers) if number is None or numbers.index(number) != i]
    if unclear:
        number = numbers[unclear[0]]
        what = "has none" if number is None else f"has {number} like {paths[numbers.index(number)].name}"
        raise InputError(
            "must have a number of its own in each name: that of the epoch",
            argument="path",
            found=f"{paths[unclear[0]].name} {what}",
            values=[str(paths[i]) for i in unclear],
            remedies=[Remedy("Call the files epoch-1.parquet, epoch-2.parquet and so on.")],
        )
    return [number for number in numbers if number is not None]


def _refuse(**given: object) -> None:
    for name, value in given.items():
        if value:
            raise InputError("is for histories, not for predictions", argument=name, values=[value])


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


def output() -> Kinds:
    """The fields of the output with --json."""
    from verax.cli.schemas.building import TEXT, face
    from verax.wings.select.choice import Selection

    return {"file": TEXT, **face(Selection)}
