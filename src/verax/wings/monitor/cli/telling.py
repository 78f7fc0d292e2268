"""The command that is run once for an alarm, with the report as JSON on its standard input.

The state is written first, with a note that this process is telling the alarm; then the command runs; then
the state notes that the alarm was told. So an alarm that the state lacks is not told, one that was not told
is told by the next run, and another run that comes in between leaves the telling to this one.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from pathlib import Path

from verax.cli.presenting import log
from verax.common.locking import locked
from verax.common.texts import shortened
from verax.errors import VeraxError
from verax.wings.monitor.monitor import Monitor, end_telling, save_locked
from verax.wings.monitor.saving import ChangedError

# Seconds beyond the time limit of a command after which its process is believed to be dead.
MARGIN = 60.0
# Times that the end of telling is noted again where other processes change a state in a store.
_TRIES = 5
# Characters of what a command printed that are repeated.
_REPEATED = 300


def tell(command: str, report: str, state: Path, number: int, limit: float) -> str:
    """Run the command for an alarm and note in the state whether it was told; what failed, in words.

    Parameters
    ----------
    command : str
        A command of the shell.
    report : str
        The report as JSON.
    state : Path
        The file of the state.
    number : int
        The number of the alarm.
    limit : float
        Seconds after which the command is stopped.

    Returns
    -------
    str
        What failed; empty if the alarm was told.
    """
    problem = _run(command, report, limit)
    try:
        _note(state, number, told=not problem)
    except (OSError, VeraxError) as error:
        if problem:
            return problem
        return f"The command of --on-alarm has run, but {state} could not note it: {error} It will run again."
    return problem


def _note(state: Path, number: int, *, told: bool) -> None:
    with locked(state, "state"):
        for tries_left in reversed(range(_TRIES)):
            monitor = Monitor.load(state)
            end_telling(monitor, number, told=told)
            try:
                save_locked(monitor, state)
                return
            except ChangedError:
                if not tries_left:
                    raise


def _run(command: str, report: str, limit: float) -> str:
    """Run a command; what failed, in words. Files take the place of pipes, which a child could keep open."""
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as printed:
        given.write(report.encode())
        given.seek(0)
        ran = subprocess.Popen(
            command,
            shell=True,
            stdin=given,
            stdout=printed,
            stderr=subprocess.STDOUT,
            start_new_session=os.name == "posix",
        )
        try:
            code = ran.wait(limit)
            problem = f"ended with exit code {code}" if code else ""
        except subprocess.TimeoutExpired:
            problem = f"was stopped after {limit:g} seconds"
        finally:
            if ran.poll() is None:
                _stop(ran)
        printed.seek(0)
        text = " ".join(printed.read().decode(errors="replace").split())
    if not problem:
        if text:
            log("note", f"The command of --on-alarm printed: {shortened(text, _REPEATED)}")
        return ""
    said = f": {shortened(text, _REPEATED)}" if text else ""
    return f"The command of --on-alarm {problem}{said}. The next run will run it again."


def _stop(ran: subprocess.Popen[bytes]) -> None:
    """End a command and what it started."""
    if os.name == "posix":
        os.killpg(ran.pid, signal.SIGKILL)
    else:
        ran.kill()
    ran.wait()
