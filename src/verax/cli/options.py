"""The options that commands on files of predictions share, and what they come to."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from verax.errors import InputError, VeraxError

File = Annotated[
    Path,
    typer.Argument(
        help="Predictions: .csv, .tsv (also .gz), .parquet, .arrow, .feather, .jsonl, .npz, .npy."
    ),
]
Target = Annotated[
    str | None, typer.Option(help="The column of outcomes. By default the one called label, target, y, ...")
]
Probs = Annotated[
    list[str] | None,
    typer.Option(
        help="The columns of probabilities: names with commas between, or a pattern such as 'p_*'. "
        "By default found by name."
    ),
]
Classes = Annotated[
    str | None, typer.Option(help="The classes, with commas between; for ordered classes lowest first.")
]
Ordered = Annotated[
    bool, typer.Option("--ordered", help="The classes have an order: use ordinal scores too.")
]
Positive = Annotated[
    str | None, typer.Option(help="The class that a single column of probabilities is about.")
]
Weights = Annotated[str | None, typer.Option(help="A column of weights, which count as numbers of rows.")]
Groups = Annotated[
    str | None, typer.Option(help="A column of clusters, such as patients, that are resampled together.")
]
By = Annotated[list[str] | None, typer.Option(help="A column of subgroups to look at one by one.")]
Id = Annotated[str | None, typer.Option("--id", help="A column that identifies the rows.")]
Logits = Annotated[bool, typer.Option("--logits", help="The columns hold logits.")]
Normalize = Annotated[bool, typer.Option("--normalize", help="Divide every row by its sum.")]
Rules = Annotated[
    list[str] | None,
    typer.Option("--rule", help="A rule, such as rps or 'penalized(brier)'. May be repeated."),
]
Html = Annotated[Path | None, typer.Option("--html", help="Write a report to this file.")]
Delimiter = Annotated[str | None, typer.Option(help="What separates the columns of a CSV file.")]
Decimal = Annotated[str, typer.Option(help="The decimal mark of a CSV file.")]
Seed = Annotated[int, typer.Option(help="Of everything that is drawn at random.")]
Confidence = Annotated[float, typer.Option(help="Of the intervals.")]


def split(texts: str | list[str] | None) -> list[str]:
    """Names with commas between, given once or several times, as one list.

    >>> split(["a, b", "c"])
    ['a', 'b', 'c']
    """
    given = [texts] if isinstance(texts, str) else texts or []
    return [part.strip() for text in given for part in text.split(",") if part.strip()]


def reading(
    *,
    target: str | None = None,
    probs: list[str] | None = None,
    classes: str | None = None,
    delimiter: str | None = None,
    **others: Any,
) -> dict[str, Any]:
    """The options as keywords for `files.read` and `files.open`."""
    if delimiter is not None:
        others["delimiter"] = delimiter.replace("\\t", "\t")
        if len(others["delimiter"]) != 1:
            raise InputError(f"--delimiter must be one character, not {delimiter!r}.", argument="option")
    return {
        "target": target,
        "probs": split(probs) or None,
        "classes": None if classes is None else split(classes),
        **others,
    }


# What the library calls its keywords, in the words of the command line.
_SPOKEN = {
    "normalize=True": "--normalize",
    "logits=True": "--logits",
    "classes=[...], lowest first, in the order of the columns of `p`": "--classes a,b,c, lowest first",
    "pass y - 1, or classes=range(1, K + 1)": "pass --classes 1,2,... with all of them",
    "History.from_csv and from_jsonl read files of any name.": "",
    "`directions`": "--direction",
    "`weights`": "the weights",
    "`groups`": "the groups",
    "`n`": "--number",
    "`p` rows": "rows of probabilities",
    "`p`": "the probabilities",
    "`y`": "the outcomes",
}
_OPTIONS = "target|probs|classes|positive|delimiter|decimal|weights|groups|id|by"
_NAMED = "classes|by|least|confidence|bootstrap|seed|method|reference|removed"
# What errors about the file complain of; the others are about options, and the file has no part in them.
_OF_THE_FILE = {"p", "y", "ids", *_OPTIONS.split("|"), "logits", "normalize", "history"}


def translate(text: str) -> str:
    """What the library says, in the words of the command line.

    >>> translate("Pass classes=[1, 2], or target=... to choose. Use numpy.savez(file, probs=p).")
    'Pass --classes 1,2, or --target ... to choose. Use numpy.savez(file, probs=p).'
    """
    for name, words in _SPOKEN.items():
        text = text.replace(name, words)
    text = re.sub(rf"`({_NAMED})`", r"--\1", text)
    text = re.sub(r"directions=\{'([^']*)': 'min'\} or 'max'", r"--direction \1=min or \1=max", text)
    text = re.sub(r"\bclasses=\[(.*?)\](?!\])", _listed, text)
    return re.sub(rf"\b({_OPTIONS})=(?=\.\.\.|')", r"--\1 ", text).rstrip()


def _listed(found: re.Match[str]) -> str:
    names = "a,b,c" if found[1] == "..." else re.sub(r",\s+", ",", found[1]).replace("'", "")
    return f"--classes {names}"


@contextmanager
def spoken(path: Path | None) -> Iterator[None]:
    """Say what the library complains about in the words of the command line, and name the file."""
    try:
        yield
    except InputError as error:
        text = translate(str(error))
        if path is not None and error.argument in _OF_THE_FILE and str(path) not in text:
            text = f"{path}: {text}"
        raise InputError(text, argument=error.argument, rows=error.rows) from error
    except VeraxError as error:
        text = translate(str(error))
        if text == str(error):
            raise
        raise type(error)(text) from error
