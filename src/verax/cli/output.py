"""How results leave the command line: as tables or as JSON; and how long work is seen to go on."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from verax import __version__, strictjson
from verax.errors import InputError, VeraxError
from verax.writing import written

if TYPE_CHECKING:
    from verax.files import Predictions

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]

# Nobody needs to be told that something goes on before this many seconds.
PATIENCE = 2.0


def show(result: dict[str, Any], tables: Sequence[Table | str], *, as_json: bool) -> None:
    """Print a result as JSON or as tables, whichever was asked for."""
    if as_json:
        typer.echo(to_json(result))
        return
    console = Console()
    for table in tables:
        if isinstance(table, str):
            typer.echo(table)
        else:
            console.print(table)


def to_json(result: Mapping[str, Any]) -> str:
    """A result as JSON, with the version that made it first."""
    return strictjson.to_json({"verax": __version__, **result})


def draw_to(path: Path, figure: Any) -> None:
    """Save a figure to a file; the ending says as what."""
    try:
        with written(path) as new:
            figure.savefig(new, dpi=150)
    except (OSError, ValueError) as error:
        if isinstance(error, VeraxError):
            raise
        raise InputError(f"The figure cannot be saved as {path}: {error}", argument="plot") from None


def save_report(path: Path, rows: Predictions, models: Mapping[str, Any], **settings: Any) -> None:
    """Write the report on models of the same rows, which needs all of these."""
    from verax.report import Report

    settings |= {"classes": rows.classes, "weights": rows.weights, "groups": rows.groups, "ids": rows.ids}
    Report.of(rows.y, dict(models), by=dict(rows.by) or None, **settings).save(path)


class Advance(Protocol):
    """Says that so many more are done."""

    def __call__(self, n: int = 1, /) -> None: ...


@contextmanager
def progress(what: str, total: int | None = None) -> Iterator[Advance]:
    """A progress bar on stderr, once the work has gone on for a while, and only on a terminal."""
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    task = bar.add_task(what, total=total)
    began, shown = time.monotonic(), sys.stderr.isatty()

    def advance(n: int = 1, /) -> None:
        bar.advance(task, n)
        if shown and time.monotonic() - began > PATIENCE:
            bar.start()

    try:
        yield advance
    finally:
        if bar.live.is_started:
            bar.stop()
