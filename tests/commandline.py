"""`verax` on the command line: inside this process, or in one of its own as people run it."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
import traceback
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import cache
from unittest import mock

from jsonschema import Draft202012Validator

from verax.__main__ import main
from verax.cli.app import DONE, FAILED
from verax.cli.schemas.outputs import schema_of

# How wide the terminal is: wide enough for all columns of a table.
COLUMNS = {"COLUMNS": "1000"}


@dataclass
class Ran:
    """What a run returned and printed."""

    returncode: int
    stdout: str
    stderr: str


def verax(*arguments, columns=1000):
    """Run the command line in this process: the same code, without the start of an interpreter."""
    out, err = io.StringIO(), io.StringIO()
    typed = ["verax", *map(str, arguments)]
    arguments = mock.patch("sys.argv", typed)
    with (
        arguments,
        mock.patch.dict(os.environ, COLUMNS=str(columns)),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = stop.code or 0
        except Exception:
            traceback.print_exc()
            code = 1
    return checked(Ran(code, out.getvalue(), err.getvalue()), typed)


def checked(ran, typed):
    """What ran, whose output is held to its schema if it is JSON."""
    if "--json" in typed and ran.returncode in (DONE, FAILED) and ran.stdout:
        check_schema(json.loads(ran.stdout))
    return ran


def check_schema(found):
    """Hold what a command printed with --json to its schema."""
    problems = list(validator(found["command"]).iter_errors(found))
    assert not problems, problems[:3]


def examples_of(command):
    """The examples in a command's help, each on one line."""
    return [" ".join(example.split()) for example in re.findall(r"`(verax [^`]*)`", command.epilog or "")]


def too_wide(text, width):
    """Lines beyond a width, without commands to copy and words that cannot be broken."""
    lines = [line for line in text.splitlines() if len(line) > width and not line.startswith("  verax ")]
    return [line for line in lines if max(map(len, line.split())) < width - 10]


@cache
def validator(command):
    schema = schema_of(command)
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def process(*arguments, **options):
    """Run the command line in a process of its own."""
    command = [sys.executable, "-m", "verax", *map(str, arguments)]
    options = {"env": {**os.environ, **COLUMNS}, **options}
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    return checked(done, command)
