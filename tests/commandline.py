"""`verax` on the command line: inside this process, or in one of its own as people run it."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import traceback
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from unittest import mock

from verax.__main__ import main

# How wide tables are.
COLUMNS = {"COLUMNS": "150"}


@dataclass
class Ran:
    """What a run returned and printed."""

    returncode: int
    stdout: str
    stderr: str


def verax(*arguments):
    """Run the command line in this process: the same code, without the start of an interpreter."""
    out, err = io.StringIO(), io.StringIO()
    arguments = mock.patch("sys.argv", ["verax", *map(str, arguments)])
    with arguments, mock.patch.dict(os.environ, COLUMNS), redirect_stdout(out), redirect_stderr(err):
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = stop.code or 0
        except Exception:
            traceback.print_exc()
            code = 1
    return Ran(code, out.getvalue(), err.getvalue())


def process(*arguments, **options):
    """Run the command line in a process of its own."""
    command = [sys.executable, "-m", "verax", *map(str, arguments)]
    options = {"env": {**os.environ, **COLUMNS}, **options}
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)
