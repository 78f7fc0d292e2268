"""A process that runs commands in children of itself, each with a fault of the disk; run by `attack.disk`.

Jobs come as lines of JSON on standard input, and what became of each goes to standard output. Everything is
imported once; a child is a copy, which is armed through `faults.c`.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import time
import traceback
from pathlib import Path
from typing import Any


def main() -> None:
    """Import what commands import, and run jobs."""
    import matplotlib.pyplot  # noqa: F401
    import pyarrow.parquet  # noqa: F401

    import verax.cli.commands
    import verax.report  # noqa: F401

    faults = ctypes.CDLL(None)
    real, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        print(json.dumps(_run(json.loads(line), faults)), file=real, flush=True)


def _run(job: dict[str, Any], faults: Any) -> dict[str, Any]:
    """One command in a child: its exit code, what it said, and how many calls changed files."""
    beside = Path(job["beside"])
    child = os.fork()
    if child == 0:
        _child(job, faults, beside)
    until = time.monotonic() + job["seconds"]
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            break
        if time.monotonic() > until:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return {"code": "hangs", "said": "", "out": "", "calls": 0}
        time.sleep(0.005)
    calls = beside / "calls"
    return {
        "code": os.waitstatus_to_exitcode(status),
        "said": (beside / "err").read_text(errors="replace"),
        "out": (beside / "out").read_text(errors="replace"),
        "calls": int(calls.read_text()) if calls.exists() else 0,
    }


def _child(job: dict[str, Any], faults: Any, beside: Path) -> None:
    """Run the command, as a process of its own would, and never return."""
    code = 99
    try:
        for number, name in ((1, "out"), (2, "err")):
            opened = os.open(beside / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(opened, number)
        sys.stdout, sys.stderr = (open(n, "w", closefd=False, buffering=1) for n in (1, 2))  # noqa: SIM115
        (beside / "calls").unlink(missing_ok=True)
        os.chdir(job["folder"])
        os.environ.update(job["env"])
        from verax.__main__ import main as verax

        sys.argv = ["verax", *job["typed"]]
        faults.attack_arm(job["folder"].encode(), job["at"], job["fault"], job["stays"])
        try:
            verax()
            code = 0
        except SystemExit as leaving:
            code = leaving.code if isinstance(leaving.code, int) else 0 if leaving.code is None else 1
        seen = faults.attack_seen()
        faults.attack_arm(b"", -1, 0, 0)
        (beside / "calls").write_text(str(seen))
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    main()
