"""`verax schema`: what a command prints with --json, as a JSON schema."""

from __future__ import annotations

from typing import Annotated

import typer

from verax.cli.app import app
from verax.cli.output import echo
from verax.common.strictjson import to_json


@app.command(epilog="Examples: `verax schema evaluate`, `verax schema compare`")
def schema(
    command: Annotated[str, typer.Argument(help="The command, such as evaluate.")],
) -> None:
    """Print the JSON schema of a command's --json output."""
    from verax.cli.schemas.outputs import COMMANDS, schema_of
    from verax.common.checks import check_choice

    check_choice("command", command, COMMANDS)
    echo(to_json(schema_of(command)))
