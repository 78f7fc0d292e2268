"""All commands at once, for those who look at each; the command line imports one when it is called."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer

from verax.cli.app import COMMANDS, app, load, run

for _name in COMMANDS:
    load(_name)


def all_commands() -> dict[str, Any]:
    """Every command by what is typed after `verax`, such as "compare" or "evals compare"."""
    group: Any = typer.main.get_command(app)
    return dict(_inside(group, ""))


def _inside(group: Any, path: str) -> Iterator[tuple[str, Any]]:
    for name in group.list_commands(None):
        command = group.get_command(None, name)
        if hasattr(command, "commands"):
            yield from _inside(command, f"{path}{name} ")
        else:
            yield f"{path}{name}", command


__all__ = ["COMMANDS", "all_commands", "app", "run"]
