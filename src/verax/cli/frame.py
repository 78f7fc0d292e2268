"""The frame of the command line: what holds for every command, and how errors leave it."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from verax import __version__
from verax.errors import VeraxError

# As people meet them, not as their modules are imported.
ORDER = ("demo", "evaluate", "compare", "worst", "retain", "select", "toplist", "certify", "reproduce")


class _Commands(TyperGroup):
    def list_commands(self, context: Any) -> list[str]:
        return sorted(super().list_commands(context), key=ORDER.index)


app = typer.Typer(
    name="verax",
    cls=_Commands,
    help="How good are a classifier's probabilities, which model to keep, what to look at first.",
    no_args_is_help=True,
    epilog="Files of predictions are described in docs/files.md; every command has examples in its --help.",
    pretty_exceptions_enable=False,
)


def _version(show: bool) -> None:
    if show:
        typer.echo(f"verax {__version__}")
        raise typer.Exit


@app.callback()
def main(
    debug: Annotated[bool, typer.Option(help="Show tracebacks.")] = False,
    _: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Show it.")] = False,
) -> None:
    """Set what holds for every command."""
    _State.debug = debug


class _State:
    debug = False


def run() -> None:
    """Run the command line; bad input is one line on stderr and exit code 2."""
    try:
        app()
    except VeraxError as error:
        if _State.debug:
            raise
        print(f"verax: {error}", file=sys.stderr)
        sys.exit(2)
