"""Faults of the disk at each call that changes a file, for every command and every option that writes.

A disk is full, a folder is denied, the process is killed between two calls. Inputs stay as they were; what
was there before is there still, or what is new is there whole; nothing else is left, except by a kill, and
that is gone after the next run. The user gets one line.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from itertools import product
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, NamedTuple, Self

import numpy as np

import demofiles
import verax as vx
from demofiles import RUNS
from verax.cli.commands import all_commands

SECONDS = 60
HERE = Path(__file__).parent
FAULTS = {"full": 1, "denied": 2, "broken": 3, "full in the middle": 4, "killed before": 5, "killed after": 6}
# What options that write are given, and what is typed besides.
OPTIONS: dict[str, list[str]] = {
    "--html": ["out.html"],
    "--save": ["out.verax"],
    "--plot": ["out.svg"],
    "--out": ["out.csv", "--apply", "preds.parquet"],
    "--state": ["out.state"],
}
# Commands whose saved files are JSON.
_AS_JSON = ("recalibrate", "sets")


class Writing(NamedTuple):
    """A command line that writes a file."""

    typed: list[str]
    output: str


@cache
def writings() -> dict[str, Writing]:
    """Every command with every option that writes a file."""
    found = {}
    for name, command in all_commands().items():
        shown = [p for p in command.params if not getattr(p, "hidden", False)]
        known = {option for parameter in shown for option in parameter.opts}
        for option, given in OPTIONS.items():
            if name not in RUNS or option not in known:
                continue
            output, *besides = given
            if option == "--save" and name in _AS_JSON:
                output = "out.json"
            run = [str(each) for each in RUNS[name]]
            if option in run:
                at = run.index(option)
                del run[at : at + 2]
            found[f"{name} {option}"] = Writing([*name.split(), *run, option, output, *besides], output)
    return found


@cache
def library() -> Path:
    """The library that makes calls fail."""
    made = Path(mkdtemp(prefix="verax-attack-"), "faults.so")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", made, HERE / "faults.c", "-ldl"], check=True)
    return made


class Machine:
    """A folder with the files of the examples, and a process that runs commands in it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._beside = folder / "files", folder / "beside"
        self._clean = folder / "clean"
        for place in (self._clean, self._beside):
            place.mkdir(parents=True)
        demofiles.write_all(self._clean)
        for path in (HERE.parents[1] / "docs" / "tutorials" / "logs").iterdir():
            shutil.copy(path, self._clean)
        environment = {**os.environ, "LD_PRELOAD": str(library()), "MPLBACKEND": "Agg"}
        environment["VERAX_IDS_KEY"] = str(folder / "ids.key")
        self._process = subprocess.Popen(
            [sys.executable, HERE / "forks.py"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=60)
        assert self._process.stdout is not None
        self._process.stdout.close()

    def fresh(self, old: dict[str, bytes] | None = None) -> dict[str, bytes]:
        """The folder anew, with what an earlier run wrote; what is in it."""
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(self._clean, self.folder)
        for name, content in (old or {}).items():
            (self.folder / name).write_bytes(content)
        return self.contents()

    def run(self, writing: Writing, *, at: int = -1, fault: str = "", stays: bool = False) -> dict[str, Any]:
        """What became of a command with a fault at a call; of a fault without a name there is none."""
        job = {"typed": writing.typed, "folder": str(self.folder), "beside": str(self._beside)}
        job |= {"at": at, "fault": FAULTS.get(fault, 0), "stays": int(stays), "seconds": SECONDS}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(job | {"env": {"COLUMNS": "1000"}}) + "\n")
        self._process.stdin.flush()
        found: dict[str, Any] = json.loads(self._process.stdout.readline())
        return found

    def contents(self) -> dict[str, bytes]:
        """All files of the folder."""
        files = [path for path in self.folder.rglob("*") if path.is_file()]
        return {str(path.relative_to(self.folder)): path.read_bytes() for path in files}


@contextmanager
def machine() -> Iterator[Machine]:
    """A machine in a temporary folder."""
    folder = Path(mkdtemp(prefix="verax-attack-"))
    try:
        with Machine(folder) as made:
            yield made
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def attacks(rng: np.random.Generator, here: Machine, name: str, most: int) -> Iterator[str]:
    """Strike a command at some of its calls; what is unlawful."""
    writing = writings()[name]
    clean = here.fresh()
    counted = here.run(writing)
    if counted["code"] not in (0, 1) or not counted["calls"]:
        yield f"{name}: without a fault: {counted}"
        return
    wanted = here.contents()
    old = {path: content for path, content in wanted.items() if path not in clean}
    if writing.output.endswith(".state"):
        # The rows of the file are not yet in it.
        old = {writing.output: _empty_state(here.folder)}
    here.fresh(old)
    strikes = list(product(range(here.run(writing)["calls"]), FAULTS, (False, True)))
    strikes = [each for each in strikes if not (each[2] and each[1].startswith("killed"))]
    for i in rng.permutation(len(strikes))[:most]:
        at, fault, stays = strikes[int(i)]
        before = here.fresh(old)
        ran = here.run(writing, at=at, fault=fault, stays=stays)
        for complaint in _against(here, writing, ran, before, wanted, killed=fault.startswith("killed")):
            yield f"{name}, {fault}{' from' if stays else ' at'} call {at}: {complaint}"


def _empty_state(folder: Path) -> bytes:
    path = folder / "empty.state"
    vx.Monitor(0.5).save(path)
    return path.read_bytes()


def _against(
    here: Machine,
    writing: Writing,
    ran: dict[str, Any],
    before: dict[str, bytes],
    wanted: dict[str, bytes],
    *,
    killed: bool,
) -> Iterator[str]:
    """What is unlawful about a run with a fault, and about the next one without."""
    code, said, after = ran["code"], ran["said"], here.contents()
    if code == "hangs":
        yield "it hangs"
    elif code not in ((-9,) if killed else (0, 1, 2, 3)):
        yield f"exit code {code}: {said[-300:]}"
    if "Traceback" in said or "Internal error" in said:
        yield f"it says {said[-400:]}"
    elif code in (2, 3) and said.count("\n") != 1:
        yield f"it says {said.count(chr(10))} lines: {said[:400]}"
    output = writing.output
    for name, content in before.items():
        if name != output and after.get(name) != content:
            yield f"{name} is not as it was"
    if output in before and output not in after:
        yield f"{output} is gone"
    elif output in after and after[output] != before.get(output) and not whole(here.folder / output):
        yield f"{output} is neither old nor new: {len(after[output])} bytes"
    elif code in (0, 1) and output not in after:
        yield "it is done, and wrote nothing"
    left = {name for name in after.keys() - before.keys() - {output} if not (killed and _temporary(name))}
    if left:
        yield f"it left {sorted(left)}"
    again = here.run(writing)
    if again["code"] not in (0, 1):
        yield f"the next run ends with {again['code']}: {again['said'][-300:]}"
    elif here.contents().keys() != wanted.keys():
        yield f"after the next run there are {sorted(here.contents().keys() ^ wanted.keys())}"


def _temporary(name: str) -> bool:
    return Path(name).name.startswith(".") or name.endswith(".lock")


def whole(path: Path) -> bool:
    """Whether a file that a command wrote is complete."""
    ending, content = path.suffix, path.read_bytes()
    if ending in (".html", ".svg"):
        return content.rstrip().endswith(f"</{ending[1:]}>".encode())
    if ending == ".csv":
        return content.endswith(b"\n") or not content
    try:
        if ending == ".verax":
            vx.load(path)
        elif ending == ".state":
            vx.Monitor.load(path)
        else:
            json.loads(content)
    except ValueError:
        return False
    return True
