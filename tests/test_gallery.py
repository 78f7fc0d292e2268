"""Every example of the gallery runs, without a warning, and draws."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

pytest.importorskip("sklearn")
plt = pytest.importorskip("matplotlib.pyplot")

EXAMPLES = sorted((Path(__file__).parents[1] / "docs" / "gallery").glob("plot_*.py"))


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
        _check_texts(figure)
    plt.close("all")


def _check_texts(figure):
    """No text of the figure may be cut off at its border."""
    width, height = figure.canvas.get_width_height()
    for text in figure.findobj(lambda artist: hasattr(artist, "get_text") and artist.get_visible()):
        if text.get_text().strip() and not text.get_clip_on():
            box = text.get_window_extent()
            assert box.x0 > -2, text.get_text()
            assert box.y0 > -2, text.get_text()
            assert box.x1 < width + 2, text.get_text()
            assert box.y1 < height + 2, text.get_text()
