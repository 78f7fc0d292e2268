"""The notebooks run, and say what their saved outputs say; the site shows them."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat")
FOLDER = Path(__file__).parents[1] / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?(?:e-?\d+)?")


def outputs(path):
    """The outputs of each code cell: texts, and how many figures there are."""
    cells = [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    found = []
    for cell in cells:
        texts = [o["text"] if "text" in o else o["data"]["text/plain"] for o in cell.outputs if not drawn(o)]
        found.append(("\n".join(texts), sum(map(drawn, cell.outputs))))
        assert all(output.get("name") != "stderr" for output in cell.outputs), cell.outputs
    return found


def drawn(output):
    return "image/png" in output.get("data", {})


def numbers(text):
    return [float(found.replace(",", "")) for found in NUMBER.findall(text)]


@pytest.mark.pages
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_run_and_say_the_same(path, tmp_path):
    pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    command = [sys.executable, FOLDER / "renew.py", "--to", tmp_path, path.stem]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    saved, found = outputs(path), outputs(tmp_path / path.name)
    for (text, n_figures), (now, n_now) in zip(saved, found, strict=True):
        assert n_now == n_figures
        assert NUMBER.sub("#", now).split() == NUMBER.sub("#", text).split()
        # The last digit may depend on the libraries below.
        assert numbers(now) == pytest.approx(numbers(text), rel=2e-3, abs=2e-4)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_pages_of_notebooks_have_all_that_is_in_them(path, tmp_path):
    assert path.stat().st_size < 400_000
    runpy.run_path(str(FOLDER.parent / "_ext" / "notebooks.py"))["convert"](path, tmp_path)
    page = (tmp_path / f"{path.stem}.md").read_text(encoding="utf-8")
    figures = re.findall(r"\]\((.+\.png)\)", page)
    assert len(figures) == len(set(figures)) == sum(n for _, n in outputs(path)) > 0
    assert all((tmp_path / name).read_bytes().startswith(b"\x89PNG") for name in figures)
    assert all(text.strip() in page for text, _ in outputs(path))
    assert "generated" in page.partition("```")[0]
