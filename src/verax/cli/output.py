"""How results leave the command line: as text or as JSON, with a progress bar for long work.

All text for a terminal passes through `echo` and `make_table`, which escape what would control it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import typer

from verax._version import __version__
from verax.cli.app import BROKEN_PIPE, give_up_stdout
from verax.cli.words import visible_json
from verax.common import strictjson
from verax.common.texts import visible
from verax.display.writing import written
from verax.errors import InputError

if TYPE_CHECKING:
    from rich.progress import Progress
    from rich.table import Table

    from verax.analyses.subgroups.result import Subgroups
    from verax.files import Predictions
    from verax.files.lists import ListFile
    from verax.files.lists.together import ListsTogether
    from verax.files.source import Source
    from verax.inputs.handles import Handle
    from verax.report import Report

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]

# A progress bar appears after this many seconds.
PATIENCE = 2.0


def show(result: dict[str, Any], tables: Sequence[Table | str], *, as_json: bool) -> None:
    """Print a result as JSON or as tables, whichever was asked for."""
    if as_json:
        echo(visible_json(to_json(result)))
        return
    for table in tables:
        echo(visible(table) if isinstance(table, str) else table)


def said_of(read: Source | ListFile) -> str:
    """The file, how it was read, and what a reader of results should know, for the report."""
    sentences = [f"{Path(read.path).name}: {'; '.join(read.taken)}", *read.notes]
    return ". ".join(sentence.removesuffix(".") for sentence in sentences)


def echo(what: Table | str) -> None:
    """Print at once, so that a full disk or a closed pipe is noticed here."""
    try:
        if isinstance(what, str):
            typer.echo(what)
        else:
            from rich.console import Console

            Console().print(what)
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read the output has seen enough.
        give_up_stdout()
        raise typer.Exit(BROKEN_PIPE) from None


# Below every table that names outcomes by number.
NUMBERED = "Classes and outcomes are numbered from 0."


def make_table(
    title: str,
    header: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    right: Collection[str] = (),
    caption: str = "",
) -> Table:
    """A table for `show`; the texts are data, never markup.

    Parameters
    ----------
    right : Collection[str]
        The columns that are aligned at the right.
    """
    from rich.table import Table

    table = Table(title=_text(title), title_justify="left", caption=_text(caption), caption_justify="left")
    for name in header:
        table.add_column(_text(name), justify="right" if name in right else "left")
    for row in rows:
        table.add_row(*map(_text, row))
    return table


def _text(text: str) -> str:
    from rich.markup import escape

    return escape(visible(text))


def to_json(result: Mapping[str, Any]) -> str:
    """A result as JSON, with the version that made it first."""
    return strictjson.to_json({"verax": __version__, **result})


def draw_to(path: Path, figure: Any) -> None:
    """Save a figure to a file; the ending says in which format (PNG where there is none)."""
    kind = path.suffix.removeprefix(".").lower() or "png"
    known = figure.canvas.get_supported_filetypes()
    if kind not in known:
        raise InputError(
            f"must end in one of {', '.join(f'.{name}' for name in sorted(known))}",
            argument="plot",
            found=f"it ends in .{kind}",
            values=[str(path)],
        )
    with written(path) as new:
        figure.savefig(new, format=kind, dpi=150)


def save_report(
    path: Path, rows: Predictions, models: Mapping[str, Any], parts: Mapping[str, Subgroups], **settings: Any
) -> None:
    """Write the report on models of the same rows, which needs all of these, with their subgroups."""
    from verax.report import Report

    settings |= {"classes": rows.classes, "weights": rows.weights, "groups": rows.groups, "ids": rows.ids}
    settings |= {"skipped": rows.skipped, "numbers": rows.rows}
    Report.of(rows.y, dict(models), **settings).with_subgroups(parts).save(path)


def large_report(handle: Handle, **settings: Any) -> Report:
    """The report on a file whose rows are not held."""
    from verax.report import Report

    kept = {name: value for name, value in settings.items() if name not in ("normalize", "logits")}
    return Report.of(handle, **kept)


def subgroups_by(
    rows: Predictions | ListFile | ListsTogether,
    p: Any,
    rule: str | None,
    *,
    least: int,
    bootstrap: int,
    **settings: Any,
) -> dict[str, Subgroups]:
    """The scores by each column of subgroups, of one model or of several by name."""
    from verax.analyses.subgroups.subgroups import subgroups

    found = {}
    for name, column in rows.by.items():
        found[name] = subgroups(
            rows.y,
            p,
            by=column,
            rule=rule,
            classes=rows.classes,
            weights=rows.weights,
            groups=rows.groups,
            least=least,
            bootstrap=bootstrap,
            **settings,
        )
        found[name].by = name
    return found


class Advance(Protocol):
    """Report that `n` more rows are done."""

    def __call__(self, n: int = 1, /) -> None: ...


@contextmanager
def progress(what: str, total: int | None = None) -> Iterator[Advance]:
    """A progress bar on stderr, once the work has gone on for a while, and only on a terminal."""
    began, shown, done = time.monotonic(), sys.stderr.isatty(), 0
    bar: Progress | None = None

    def advance(n: int = 1, /) -> None:
        nonlocal bar, done
        done += n
        if bar is not None:
            bar.advance(bar.task_ids[0], n)
        elif shown and time.monotonic() - began > PATIENCE:
            bar = _bar(visible(what), total, done)
            bar.start()

    try:
        yield advance
    finally:
        if bar is not None:
            bar.stop()


def _bar(what: str, total: int | None, done: int) -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    bar = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    bar.add_task(what, total=total, completed=done)
    return bar
