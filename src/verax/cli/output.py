"""How results leave the command line: as text or as JSON.

All text for a terminal passes through `echo` and `make_table`, which escape what would control it.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from verax._settings import settings
from verax._version import __version__
from verax.cli.app import BROKEN_PIPE, give_up_stdout
from verax.cli.arguments import Piped, Typed, figure_format
from verax.cli.progress import stop_progress
from verax.cli.words import visible_json
from verax.common import strictjson
from verax.common.texts import shortened, visible
from verax.display.writing import written
from verax.inference.verdicts import in_json

if TYPE_CHECKING:
    from rich.table import Table

    from verax.inference.findings import Verdict

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


def show(result: dict[str, Any], tables: Sequence[Table | str], *, as_json: bool) -> None:
    """Print a result as JSON or as tables, whichever was asked for."""
    config = Typed.config
    result = result if config is None else {**result, "config": config.path}
    if as_json:
        echo(visible_json(Piped.named(to_json(result))))
        return
    said = [] if config is None else [f"Options of reading are from {config.path}."]
    for table in (*tables, *said):
        echo(_lines(table) if isinstance(table, str) else table)


def _lines(text: str) -> str:
    lines = visible(Piped.named(text)).split("\n")
    return "\n".join(shortened(line, settings.longest_shown) for line in lines)


def echo(what: Table | str) -> None:
    """Print at once, so that a full disk or a closed pipe is noticed here."""
    stop_progress()
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

    return escape(shortened(visible(text), settings.longest_shown))


def to_json(result: Mapping[str, Any]) -> str:
    """A result as JSON, with the version that made it first."""
    return strictjson.to_json({"verax": __version__, **result})


def command_line(command: str) -> str:
    """The command as it was typed, for the report; its name where verax was not started from a shell."""
    name = Path(sys.argv[0]).name
    typed = sys.argv[1:] if name in ("verax", "verax.exe", "__main__.py") else [command]
    return shlex.join(["verax", *typed])


def told(verdict: Verdict | None) -> dict[str, Any]:
    """A verdict in JSON: its text, and the findings that it is made of."""
    if verdict is None:
        return {"verdict": None, "findings": [], "next_step": None}
    return in_json(verdict)


def verdict_lines(verdict: Verdict | None, model: str = "") -> list[str]:
    """A verdict in the terminal: its text, and the command of the next step."""
    if not verdict:
        return []
    step = verdict.next_step
    known = step is not None and step.command and "{source}" not in step.command
    command = f"\n  {step.command}" if step is not None and known else ""
    return [f"{model}{': ' * bool(model)}{verdict}{command}\n"]


def check_report(html: Path | None) -> None:
    """Refuse a report that the installed packages cannot write, before anything is computed for it."""
    if html is not None:
        from verax.report.page import check_packages

        check_packages()


def draw_to(path: Path, figure: Any) -> None:
    """Save a figure to a file; the ending says in which format (PNG where there is none)."""
    with written(path) as new:
        figure.savefig(new, format=figure_format(path), dpi=150)
