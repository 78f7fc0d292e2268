"""Every example of the gallery runs, without a warning, and draws; examples call what there is."""

from __future__ import annotations

import ast
import inspect
import json
import re
import runpy
from pathlib import Path

import pytest

import verax as vx

pytest.importorskip("sklearn")
plt = pytest.importorskip("matplotlib.pyplot")

DOCS = Path(__file__).parents[1] / "docs"
EXAMPLES = sorted((DOCS / "gallery").rglob("plot_*.py"))
NOTEBOOKS = sorted((DOCS / "notebooks").glob("*.ipynb"))


def code_of(path):
    """The code of an example, or of all cells of a notebook without commands of the shell."""
    if path.suffix == ".py":
        return path.read_text(encoding="utf-8")
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    lines = "\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "code").splitlines()
    return "\n".join(line for line in lines if not line.startswith(("!", "%")))


# Examples run when the site is built; that what they call is there, with these options, is seen at once.
@pytest.mark.parametrize("path", [*EXAMPLES, *NOTEBOOKS], ids=lambda path: path.stem)
def test_examples_call_what_there_is(path):
    called = 0
    for node in ast.walk(ast.parse(code_of(path))):
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "vx":
            assert hasattr(vx, node.attr), f"vx.{node.attr}"
            called += 1
        if isinstance(node, ast.Call) and re.fullmatch(r"vx\.\w+", ast.unparse(node.func)):
            known = inspect.signature(getattr(vx, node.func.attr)).parameters
            if not any(p.kind == p.VAR_KEYWORD for p in known.values()):
                assert {keyword.arg for keyword in node.keywords} - {None} <= set(known), ast.unparse(node)
    assert called


@pytest.mark.pages
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_run_and_draw(path):
    plt.close("all")
    title, line = path.read_text().splitlines()[1:3]
    assert line == "=" * len(title)
    runpy.run_path(str(path))
    figures = [plt.figure(number) for number in plt.get_fignums()]
    assert figures
    for figure in figures:
        # A page has a column of about 700 pixels.
        assert figure.get_figwidth() <= 7.6
        figure.canvas.draw()
        _check_borders(figure)
    plt.close("all")


def _check_borders(figure):
    """Nothing of the figure may be cut off at its border."""
    drawn, whole = figure.get_tightbbox(), figure.bbox_inches
    assert drawn.x0 > whole.x0 - 0.02
    assert drawn.x1 < whole.x1 + 0.02
    assert drawn.y0 > whole.y0 - 0.02
    assert drawn.y1 < whole.y1 + 0.02
