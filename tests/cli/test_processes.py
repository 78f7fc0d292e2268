"""Every command once in a process of its own, as people run it: the same output, the same exit code."""

from __future__ import annotations

import pytest

import demofiles
from commandline import process, verax
from demofiles import RUNS
from verax.cli.commands import all_commands

# A bound that fails, and a file that is not there.
EXIT = {"evaluate": 1, "compare": 2}
# Every command goes through the same entry: these stand for an answer, a failed bound, an error and JSON.
CHOSEN = {"evaluate", "compare", "merge", "certify"}
CASES = [name if name in CHOSEN else pytest.param(name, marks=pytest.mark.long) for name in RUNS]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("files")
    demofiles.write_all(path)
    return path


def test_no_command_is_left_out():
    assert {*RUNS, "demo"} == set(all_commands())


@pytest.mark.slow
@pytest.mark.parametrize("command", CASES)
def test_a_process_prints_and_returns_the_same(command, folder, monkeypatch):
    monkeypatch.chdir(folder)
    here = verax(*command.split(), *RUNS[command])
    (folder / "new.state").unlink(missing_ok=True)
    there = process(*command.split(), *RUNS[command])
    assert there.returncode == EXIT.get(command, 0), there.stderr
    assert (here.returncode, here.stdout, here.stderr) == (there.returncode, there.stdout, there.stderr)
    assert here.stdout or here.returncode == 2


def test_the_demo_starts():
    result = process("demo", "--help")
    assert (result.returncode, result.stderr) == (0, "")
    assert "Train four models" in result.stdout
