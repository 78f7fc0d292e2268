"""Every example of the gallery runs, without a warning, and draws."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

pytest.importorskip("sklearn")
plt = pytest.importorskip("matplotlib.pyplot")

EXAMPLES = sorted((Path(__file__).parents[1] / "docs" / "gallery").rglob("plot_*.py"))


@pytest.mark.slow
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
