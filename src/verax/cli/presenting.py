"""Options of every command: how much it prints (`--all`, `--quiet`), and the form of its log (`--log`).

The log is what is not a result: notes, warnings, progress and errors. It goes to stderr.
"""

from __future__ import annotations

import json
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from verax.common.texts import visible
from verax.errors import InputError

if TYPE_CHECKING:
    from verax.display.tables import LineRoom

FORMS = ("text", "json")


class Presentation:
    """How the command that runs is to be presented."""

    everything: ClassVar[bool] = False
    may_show_all: ClassVar[bool] = True
    quiet: ClassVar[bool] = False
    log: ClassVar[str] = "text"
    command: ClassVar[str] = "verax"

    @classmethod
    def begin(cls, typed: Sequence[str]) -> None:
        """Reset; errors in what was typed are logged in the requested form."""
        cls.everything, cls.quiet, cls.log, cls.command = False, False, "text", "verax"
        if "--log=json" in typed or ("--log", "json") in pairwise(typed):
            cls.log = "json"


def add_choices(command: Any) -> None:
    """Give a command the options that all commands have."""
    # Made by typer from a function, as all others are, because what options are made of differs by version.
    options = typer.Typer(add_completion=False)
    options.command()(_choose)
    flags = {flag for param in command.params for flag in param.opts}
    for option in typer.main.get_command(options).params:
        # `reproduce --all` is about papers.
        if flags.isdisjoint(option.opts):
            option.expose_value = False
            command.params.append(option)


def _choose_all(value: bool) -> None:
    Presentation.everything = value


def _choose_quiet(value: bool) -> None:
    Presentation.quiet = value


def _choose_log(value: str) -> None:
    if value not in FORMS:
        raise InputError(f"must be {' or '.join(FORMS)}", argument="log", values=[value])
    Presentation.log = value


def _choose(
    everything: Annotated[
        bool,
        typer.Option(
            "--all",
            callback=_choose_all,
            help="Print all scores and columns (--quiet: only the verdict).",
        ),
    ] = False,
    quiet: Annotated[
        bool,
        typer.Option(
            "--quiet", callback=_choose_quiet, help="Print only the verdict and the bounds that failed."
        ),
    ] = False,
    log: Annotated[
        str,
        typer.Option(
            callback=_choose_log,
            metavar="FORM",
            show_default=False,
            help="Form of notes, progress and errors on stderr: text, or json for one object per line.",
        ),
    ] = "text",
) -> None:
    """The options."""


def log(level: str, text: str, **more: Any) -> None:
    """Write a line of the log.

    Parameters
    ----------
    level : str
        "error", "note" or "progress".
    text : str
        The message.
    **more : Any
        Further fields of a line in JSON.
    """
    with suppress(OSError):
        if Presentation.log == "json":
            now = datetime.now(UTC).isoformat(timespec="milliseconds")
            line = {"time": now, "level": level, "command": Presentation.command, "message": text, **more}
            print(visible(json.dumps(line)), file=sys.stderr, flush=True)
        elif level != "progress":
            print(f"verax: {'Note: ' * (level == 'note')}{text}", file=sys.stderr, flush=True)


@contextmanager
def presented(context: Any) -> Iterator[None]:
    """Fit what a command prints to the terminal, and say at its end what was left out."""
    # Tables need NumPy, and help does not.
    from verax.display.tables import fitted

    Presentation.may_show_all = any(param.name == "everything" for param in context.command.params)
    told = not Presentation.quiet and not context.params.get("as_json")
    with fitted(line_width()) as room:
        try:
            yield
        except typer.Exit:
            _say_left_out(room, told=told)
            raise
        _say_left_out(room, told=told)


def _say_left_out(room: LineRoom, *, told: bool) -> None:
    text = left_out(room)
    if text and told:
        typer.echo(wrapped(text, room.width))
        sys.stdout.flush()


def line_width() -> int | None:
    """Characters in a line; None where all are to be printed as they are."""
    return None if Presentation.everything else shutil.get_terminal_size().columns


def left_out(room: LineRoom) -> str:
    """A sentence on lines and columns that the terminal had no room for; empty if there are none.

    >>> from verax.display.tables import LineRoom
    >>> left_out(LineRoom(80, {"range": None, "proper": None}, 3))
    'Not shown: 3 more lines; columns range, proper. --all shows everything.'
    """
    parts = []
    if room.lines:
        parts.append(f"{room.lines:,} more line{'s' * (room.lines != 1)}")
    names = [name for name in room.columns if name.strip()]
    if names:
        parts.append(f"column{'s' * (len(names) != 1)} {', '.join(names)}")
    way = "--all shows everything" if Presentation.may_show_all else "A wider terminal shows more"
    return f"Not shown: {'; '.join(parts)}. {way}." if parts else ""


def wrapped(text: str, width: int) -> str:
    """Sentences in lines of a width; file names and commands to copy stay whole."""
    return "\n".join(line for paragraph in text.split("\n") for line in _wrapped(paragraph, width))


def _wrapped(line: str, width: int) -> list[str]:
    if len(line) <= width or line.startswith("  verax "):
        return [line]
    indent = line[: len(line) - len(line.lstrip())]
    return textwrap.wrap(
        line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
