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
ORDERED = PAGE.with_name("ordered.md")


def program(heading, page=PAGE):
    """The first program under a heading of a page."""
    section = page.read_text().split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return next(text for text in re.findall(r"```python\n(.*?)```", section, re.DOTALL) if ">>>" not in text)


def run(heading, folder, page=PAGE):
    for package in {"Lightning": ["lightning"], "Keras 3": ["keras"], "skorch": ["skorch"]}.get(heading, []):
        pytest.importorskip(package)
    (folder / "program.py").write_text(program(heading, page))
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
def test_the_program_for_heads_of_ordered_classes(tmp_path):
    for package in ("coral_pytorch", "dlordinal"):
        pytest.importorskip(package)
    output = run("Heads for ordered classes", tmp_path, ORDERED)
    losses = [float(x) for x in re.findall(r"\d  (?:coral|clm) +(0\.\d+)", output)]
    assert len(losses) == 2
    # Even chances for all four classes lose at least 0.125 in every row.
    assert max(losses) < 0.12


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


@pytest.mark.pages
def test_the_program_for_skorch(tmp_path):
    # Class frequencies have about 0.24.
    assert 0.05 < float(run("skorch", tmp_path).split()[-1]) < 0.2
