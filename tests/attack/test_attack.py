"""What the attackers find, and that they reach what they attack; `fuzz` runs their calls."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

import verax as vx
from attack import calls, disk, saved
from attack.law import lawful, limited
from verax.common.wings import cards

linux = pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("cc") is None, reason="faults of Linux, made by a C compiler"
)


def test_every_public_call_has_arguments():
    pytest.importorskip("lightgbm")
    lacking = [
        f"{name}({parameter.name})"
        for name, call in calls.targets().items()
        for parameter in calls.parameters(call)
        if parameter.default is parameter.empty and calls.plausible(name, parameter.name) is None
    ]
    assert not lacking, "add them to PLAUSIBLE or SPECIAL in attack/calls.py"


@pytest.mark.long
@pytest.mark.parametrize("part", range(4))
def test_every_call_is_valid_as_it_is(part, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    refused = {}
    for name in list(calls.targets())[part::4]:
        call = calls.targets()[name]
        try:
            with limited(60):
                calls.called(call, calls.arguments(name, call))
        except vx.errors.RuleError:
            # Some rules lack what is asked for.
            continue
        except Exception as error:
            refused[name] = repr(error)
    assert not refused


def test_all_kinds_of_saved_files_are_attacked():
    pytest.importorskip("lightgbm")
    known = {saved.kind_of(kind.content) for kind in saved.kinds().values()}
    assert known >= set(saved._READERS)
    assert len({type(vx.load(calls.saved(name))) for name in ("Scorecard", "ListCard", "GradeCard")}) == 3
    assert len(cards()) == 1
    # As they are, they are read.
    for name, kind in saved.kinds().items():
        path = saved._folder() / "whole.verax"
        path.write_bytes(kind.content)
        found = lawful(lambda read=kind.read, path=path: saved.used(read(path)), name)
        assert not isinstance(found, Exception), (name, found)


@pytest.fixture(scope="module")
def machine():
    with disk.machine() as here:
        yield here


SMALL = {"evaluate --save": 2, "monitor --state": 2}


@linux
@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_faults_of_the_disk(name, machine):
    assert not list(disk.attacks(np.random.default_rng(1), machine, name, SMALL[name]))


@linux
@pytest.mark.long
@pytest.mark.parametrize("name", disk.writings())
def test_faults_of_the_disk_in_every_command(name, machine):
    assert not list(disk.attacks(np.random.default_rng(2), machine, name, 2))


def _started(*typed):
    command = [sys.executable, "-m", "verax", *map(str, typed)]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, text=True, env={**os.environ, "COLUMNS": "1000"}, **streams)


def _rows(path, seed, n):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet([2, 1], n).round(6)
    y = (rng.random(n) < p[:, 1]).astype(int)
    lines = [
        f"{label},{a:.6f},{1 - a:.6f},{seed}-{i},{seed}"
        for i, (label, a) in enumerate(zip(y, p[:, 0], strict=True))
    ]
    path.write_text("\n".join(["label,p_0,p_1,id,day", *lines, ""]))
    return path


# Writers of one state are in wings/monitor/test_writers.py.
@pytest.mark.slow
@pytest.mark.parametrize("writers", [2, pytest.param(6, marks=pytest.mark.long)])
def test_writers_of_one_output_leave_one_whole_file(writers, tmp_path):
    output = tmp_path / "out.verax"
    sizes = [50 + 10 * i for i in range(writers)]
    files = [_rows(tmp_path / f"{n}.csv", n, n) for n in sizes]
    running = [_started("evaluate", file, "--save", output) for file in files]
    for run in running:
        _, said = run.communicate(timeout=300)
        assert run.returncode == 0, said
    assert vx.load(output).n_rows in sizes
    assert {path.name for path in tmp_path.iterdir()} == {"out.verax", *(file.name for file in files)}
