"""The programs of docs/guide/training.md that are too large for a doctest run as they stand."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.frameworks

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "training.md"


def program(heading):
    """The program under a heading of the page."""
    section = PAGE.read_text().split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return re.search(r"```python\n(.*?)```", section, re.DOTALL).group(1)


def run(heading, folder):
    pytest.importorskip({"Lightning": "lightning", "Keras 3": "keras"}[heading])
    (folder / "program.py").write_text(program(heading))
    result = subprocess.run(
        [sys.executable, "-W", "ignore", "program.py"],
        cwd=folder,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.pages
def test_the_program_for_lightning(tmp_path):
    output = run("Lightning", tmp_path)
    kept, qwk = re.search(r"kept (\S+) qwk (\S+)", output).groups()
    assert re.fullmatch(r"epoch=\d+-val_pbs=\d\.\d{3}\.ckpt", Path(kept).name)
    assert 0.1 < float(qwk) < 1


@pytest.mark.pages
def test_the_program_for_keras(tmp_path):
    output = run("Keras 3", tmp_path)
    best, kept = (float(line.split()[-1]) for line in output.splitlines()[-2:])
    assert kept == pytest.approx(best, abs=2e-4)
