"""`verax schema`: what a command prints with --json, as a JSON schema."""

from __future__ import annotations

from typing import Annotated

import typer

from verax.cli.app import app
from verax.cli.output import Json, echo
from verax.common.strictjson import to_json


@app.command(epilog="Examples: `verax schema evaluate`, `verax schema evals compare`")
def schema(
    command: Annotated[
        list[str], typer.Argument(metavar="COMMAND", help="The command, such as evaluate or evals compare.")
    ],
    _: Json = False,
) -> None:
    """Print the JSON schema of a command's --json output."""
    from verax.cli.schemas.outputs import COMMANDS, schema_of
    from verax.common.checks import check_choice

    path = " ".join(command)
    check_choice("command", path, COMMANDS)
    echo(to_json(schema_of(path)))
