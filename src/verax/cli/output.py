"""How results leave the command line: as tables or as JSON."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from verax import __version__

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


def show(result: dict[str, Any], tables: list[Table], *, as_json: bool) -> None:
    """Print a result as JSON or as tables, whichever was asked for."""
    if as_json:
        typer.echo(json.dumps({"verax": __version__, **result}, indent=2))
        return
    console = Console()
    for table in tables:
        console.print(table)
