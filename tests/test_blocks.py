"""Every block of code on every page is run by some test, or is of a kind that none can run."""

from __future__ import annotations

import numpy as np
import pytest

import demofiles
from pages import DOCS, PAGES, ROOT, blocks, name_of, typed

# Programs of these pages are run by `adapters/test_training_page.py`, `scans/test_spark.py`,
# `wings/monitor/test_daily_page.py` and below.
PROGRAMS = {
    "README.md": 1,
    "docs/guide/daily.md": 1,
    "docs/guide/ordered.md": 1,
    "docs/guide/scale.md": 3,
    "docs/guide/training.md": 4,
}
# Settings of other programs, checked in `test_repository.py` and `wings/monitor/test_daily_page.py`;
# citations; and what installs or starts verax.
OTHERS = {"yaml", "bibtex", "crontab", "systemd", "sh"}
STARTS = ("pip install ", "docker ", "cd verax-demo")


def programs(page):
    return [text for kind, text in blocks(page) if kind == "python" and ">>> " not in text]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_block_is_run(page):
    assert len(programs(page)) == PROGRAMS.get(name_of(page), 0)
    commands = {command for command, _ in typed(page)}
    for kind, text in blocks(page):
        assert kind in {"python", "console", ""} | OTHERS
        if kind in ("console", ""):
            lines = [line for line in text.splitlines() if line.startswith("$ ") or kind == ""]
            given = {line.removeprefix("$ ") for line in lines if line}
            assert given
            assert {line for line in given - commands if not line.startswith(STARTS)} == set()


def test_the_program_of_the_readme(tmp_path, monkeypatch):
    pytest.importorskip("jinja2")
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    p, q = rng.dirichlet(np.ones(2), (2, 60))
    exec(programs(ROOT / "README.md")[0], {"y": rng.integers(0, 2, 60), "p": p, "q": q})
    assert (tmp_path / "report.html").exists()


@pytest.mark.parametrize(("number", "needs"), [(0, "numpy"), (1, "dask.dataframe")], ids=["files", "dask"])
def test_programs_of_larger_than_memory_data(number, needs, tmp_path, monkeypatch, capsys):
    pytest.importorskip(needs)
    demofiles.write_all(tmp_path)
    monkeypatch.chdir(tmp_path)
    found = {}
    exec(programs(DOCS / "guide" / "scale.md")[number], found)
    assert found["card"].n_rows == demofiles.N
    assert "p_cat" in capsys.readouterr().out or number
