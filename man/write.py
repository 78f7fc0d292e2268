"""Write the manual page of `verax` from its commands: `python man/write.py`, or `make man`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import typer

from verax import __version__
from verax.cli.commands import all_commands, app
from verax.cli.panels import examples_of

PAGE = Path(__file__).with_name("verax.1")


def page() -> str:
    """The page, in the language of man."""
    group: Any = typer.main.get_command(app)
    codes = group.epilog.partition("Exit codes: ")[2].partition(". ")[0]
    lines = [
        f'.TH VERAX 1 "" "verax {__version__}" "User Commands"',
        ".SH NAME",
        "verax \\- " + escaped(group.help.rstrip(".")),
        ".SH SYNOPSIS",
        ".B verax",
        "[\\fIOPTION\\fR] \\fICOMMAND\\fR [\\fIARGUMENT\\fR...]",
        ".SH DESCRIPTION",
        escaped(group.help),
        ".SH OPTIONS",
        *options(group),
        ".TP",
        "\\fB\\-\\-install\\-completion\\fR, \\fB\\-\\-show\\-completion\\fR",
        "Install the completion of commands and options for the current shell, or show it.",
        ".SH COMMANDS",
    ]
    for name, command in all_commands().items():
        lines += section(name, command)
    lines += [".SH EXIT STATUS", escaped(f"{codes}.")]
    return "\n".join(lines) + "\n"


def section(name: str, command: Any) -> list[str]:
    """What the page says of a command."""
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    typed = " ".join(f"\\fI{escaped(p.metavar or p.name.upper())}\\fR" for p in arguments)
    lines = [f".SS verax {name} {typed}".rstrip()]
    for paragraph in re.split(r"\n\s*\n", command.help):
        lines += [escaped(" ".join(paragraph.split())), ".PP"]
    for argument in arguments:
        lines += [".TP", f"\\fI{escaped(argument.metavar or argument.name.upper())}\\fR"]
        lines += [escaped(argument.help or "")]
    lines += options(command)
    examples = examples_of(command.epilog)
    if examples:
        lines += [".PP", "Examples:", ".EX"]
        lines += ["  " + escaped(example) for example in examples]
        lines += [".EE"]
    return lines


def options(command: Any) -> list[str]:
    """The options of a command, each with what it means."""
    lines = []
    for option in command.params:
        if option.param_type_name != "option" or option.hidden or option.name.endswith("_completion"):
            continue
        flags = ", ".join(f"\\fB{escaped(flag)}\\fR" for flag in [*option.opts, *option.secondary_opts])
        value = "" if option.is_flag else f" \\fI{escaped(option.metavar or option.name.upper())}\\fR"
        lines += [".TP", flags + value, escaped(" ".join((option.help or "").split()))]
    return lines


def escaped(text: str) -> str:
    """A text that man shows as it is."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^(['.])", r"\\&\1", text)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
