"""Commands on a machine that fails: signals, no output, no home, odd locales.

Whatever happens, files are whole, inputs stay, nothing temporary is left, and the user gets one line. What a
failing disk does is in `tests/attack/disk.py`.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time

import pytest

import demofiles
from commandline import COLUMNS, process
from demofiles import RUNS

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="faults of Linux")]

# What each command writes, if it does.
OUTPUTS = {
    "evaluate": ["--html", "out.html"],
    "merge": ["--save", "out.verax"],
    "decompose": ["--plot", "out.png"],
    "recalibrate": ["--apply", "preds.parquet", "--out", "out.csv"],
    "sets": ["--html", "out.html"],
    "monitor": [],
    "plan": ["--plot", "out.svg"],
    "retain": ["--plot", "out.pdf"],
}
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    path = tmp_path_factory.mktemp("files")
    demofiles.write_all(path)
    return path


@pytest.fixture
def folder(files, tmp_path, monkeypatch):
    """The files of the examples, which a test may lose."""
    shutil.copytree(files, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def contents(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def started(command, *more, **options):
    typed = [sys.executable, "-m", "verax", command, *map(str, (*RUNS[command], *more))]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(typed, text=True, env={**os.environ, **COLUMNS}, **{**streams, **options})


def check(folder, before, allowed=()):
    """Inputs are what they were, and nothing temporary is left."""
    after = contents(folder)
    new = {str(path) for path in after.keys() - before.keys()}
    assert new <= {"new.state", *allowed}
    assert {path: content for path, content in after.items() if path in before} == before


@pytest.mark.parametrize(
    "command",
    [name if name == "evaluate" else pytest.param(name, marks=pytest.mark.long) for name in RUNS],
)
def test_signals_at_any_time(command, folder):
    random.seed(command)
    before, outputs = contents(folder), OUTPUTS.get(command, [])
    for number in SIGNALS:
        with started(command, *outputs) as run:
            # Up to here the interpreter starts, and ends by the signal itself.
            time.sleep(random.uniform(0.3, 2.5))
            run.send_signal(number)
            _, said = run.communicate(timeout=120)
        assert run.returncode in (0, 1, 2, -number, 128 + number), said
        assert "Internal error" not in said
        check(folder, before, outputs)
        for name in {*outputs, "new.state"} & set(os.listdir()) - set(map(str, before)):
            os.unlink(name)


def test_a_closed_output_is_no_crash(folder):
    typed = f"{sys.executable} -m verax evaluate preds.parquet --html out.html >&-"
    ran = subprocess.run(["bash", "-c", typed], capture_output=True, text=True, check=False)
    assert ran.returncode in (0, 3), ran.stderr
    assert "Internal error" not in ran.stderr
    assert (folder / "out.html").read_text(encoding="utf-8").rstrip().endswith("</html>")


ODD = {
    "no home, ASCII": {"HOME": None, "XDG_CACHE_HOME": None, "PYTHONIOENCODING": "ascii", "LC_ALL": "C"},
    "home is no folder": {"HOME": "/dev/null"},
    "C": {"LC_ALL": "C", "PYTHONUTF8": "0"},
    "unknown": {"LC_ALL": "xx_YY.nope"},
}
FIRST, *OTHERS = ODD


@pytest.mark.parametrize("name", [FIRST, *(pytest.param(name, marks=pytest.mark.long) for name in OTHERS)])
def test_odd_environments(name, folder):
    changed = {**os.environ, **COLUMNS, **ODD[name]}
    env = {key: value for key, value in changed.items() if value is not None}
    ran = process("evaluate", "preds.parquet", "--html", "out.html", env=env)
    assert ran.returncode == 0, ran.stderr
    assert "Internal error" not in ran.stderr
    assert (folder / "out.html").stat().st_size > 100_000


def test_a_folder_that_cannot_be_written_to(folder):
    before = contents(folder)
    ran = process("evaluate", "preds.parquet", "--save", "/proc/out.verax")
    assert ran.returncode in (2, 3)
    assert "/proc" in ran.stderr
    assert ran.stderr.count("\n") == 1
    check(folder, before)
