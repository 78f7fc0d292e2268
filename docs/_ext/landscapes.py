"""Pictures of rules: landscapes for light and for dark pages, and thumbnails."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.spines import Spine
from matplotlib.text import Text

import verax as vx

# Under this truth the mean class, the median class and the most likely class are three different ones.
TRUTH = (0.45, 0.2, 0.35)
TRUTH2 = (0.6, 0.4)
_DPI = 120
_INK = {"light": "#222832", "dark": "#ced6dd"}
_COLOURED = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")


def draw_rule(rule: vx.rules.Rule, folder: Path, name: str) -> dict[str, vx.results.Landscape]:
    """Draw the landscapes of a rule into files, and say what they are of."""
    drawn = {
        "outcomes": vx.diagrams.landscape(rule),
        "expected": vx.diagrams.landscape(rule, TRUTH),
        "binary": vx.diagrams.landscape(rule, n_classes=2),
        "binary-expected": vx.diagrams.landscape(rule, TRUTH2, n_classes=2),
    }
    folder.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context(dict.fromkeys(_COLOURED, _INK["light"]) | {"savefig.transparent": True}):
        _save_both(drawn["outcomes"].plot(), folder / f"{name}-outcomes")
        _save_both(drawn["expected"].plot(), folder / f"{name}-expected")
        figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
        for ax, kind in zip(axes, ("binary", "binary-expected"), strict=True):
            drawn[kind].plot(ax)
        _save_both(figure, folder / f"{name}-binary")
        _draw_thumbnail(drawn["expected"], folder / f"{name}-thumb.png")
    return drawn


def _save_both(figure: Figure, path: Path) -> None:
    """Save a figure for light pages, and the same with light ink for dark ones."""
    figure.savefig(f"{path}-light.png", dpi=_DPI)
    for artist in figure.findobj(lambda a: isinstance(a, (Text, Line2D, Spine))):
        get = artist.get_edgecolor if isinstance(artist, Spine) else artist.get_color
        if to_hex(get()) == _INK["light"]:
            artist.set_color(_INK["dark"])
    # Nothing has moved.
    figure.set_layout_engine("none")
    figure.savefig(f"{path}-dark.png", dpi=_DPI)
    plt.close(figure)


def _draw_thumbnail(landscape: vx.results.Landscape, path: Path) -> None:
    _, ax = plt.subplots(figsize=(1.2, 1.05))
    landscape.plot(ax)
    ax.get_legend().remove()
    for text in (*ax.texts, ax.title):
        text.set_visible(False)
    for line in ax.lines:
        line.set_markersize(min(line.get_markersize(), 7))
    ax.set(xlim=(-0.06, 1.06), ylim=(-0.06, 0.96))
    ax.set_position((0, 0, 1, 1))
    ax.figure.savefig(path, dpi=_DPI)
    plt.close(ax.figure)
