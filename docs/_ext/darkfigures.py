"""Figures for light and for dark pages: every figure of the gallery and of the theory is saved twice.

In the dark version, ink and pale fills change their lightness; colours of curves and of colour maps stay. A
page names the light file only: where a file of that name with `-dark` lies beside it, both are shown, each on
pages of its theme.
"""

from __future__ import annotations

import colorsys
import re
from pathlib import Path
from typing import Any

from docutils import nodes
from matplotlib.collections import Collection
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.text import Text
from sphinx.transforms import SphinxTransform

# Beyond these, a colour is ink or paper, not the colour of a curve.
DARK, PALE = 0.3, 0.78
THUMBNAIL = re.compile(r"sphx_glr_(plot_\w+)_thumb\.png$")


def turned(colour: Any) -> tuple[float, float, float, float]:
    """A colour for dark pages: ink becomes light and paper dark."""
    *rgb, alpha = to_rgba(colour)
    hue, lightness, saturation = colorsys.rgb_to_hls(*rgb)
    if DARK <= lightness <= PALE:
        return (*rgb, alpha)
    # Black becomes the ink of dark pages, white their paper.
    lightness = 0.85 - 0.75 * lightness if lightness < DARK else 0.1 + 0.9 * (1 - lightness)
    return (*colorsys.hls_to_rgb(hue, lightness, min(saturation, 0.6)), alpha)


def turn(figure: Figure) -> None:
    """Give a figure the colours of dark pages."""
    for artist in figure.findobj():
        if isinstance(artist, Text):
            artist.set_color(turned(artist.get_color()))
        elif isinstance(artist, Line2D):
            artist.set_color(turned(artist.get_color()))
            for part in ("markerfacecolor", "markeredgecolor"):
                colour = getattr(artist, f"get_{part}")()
                if not isinstance(colour, str) or colour not in ("auto", "none"):
                    getattr(artist, f"set_{part}")(turned(colour))
        elif isinstance(artist, Patch):
            face, edge = artist.get_facecolor(), artist.get_edgecolor()
            artist.set(facecolor=turned(face), edgecolor=turned(edge))
        elif isinstance(artist, Collection) and artist.get_array() is None:
            artist.set_facecolor([turned(each) for each in artist.get_facecolor()])
            artist.set_edgecolor([turned(each) for each in artist.get_edgecolor()])


def save_both(figure: Figure, path: Path, dpi: float) -> None:
    """Save a figure for light pages, and beside it, with `-dark` in the name, for dark ones."""
    figure.savefig(path, dpi=dpi)
    # Nothing has moved.
    figure.set_layout_engine("none")
    turn(figure)
    figure.savefig(path.with_name(f"{path.stem}-dark.png"), dpi=dpi, transparent=True)


def described(figure: Figure, title: str) -> str:
    """What a figure shows, in words."""
    panels = []
    for ax in figure.axes:
        axes = " against ".join(filter(None, (ax.get_ylabel(), ax.get_xlabel())))
        panels.append(": ".join(filter(None, (ax.get_title(), axes))))
    shown = "; ".join(dict.fromkeys(filter(None, panels)))
    end = "" if title.endswith("?") else "."
    return " ".join(f"{title}{end} {shown}".split()).rstrip(". ") + "."


def scrape(block: Any, variables: dict[str, Any], conf: dict[str, Any]) -> str:
    """Save the figures that a block of an example has drawn; called by sphinx-gallery."""
    from matplotlib import pyplot as plt

    lines, source = [], Path(conf["src_dir"])
    title = Path(variables["src_file"]).read_text(encoding="utf-8").splitlines()[1].strip()
    for number, name in zip(plt.get_fignums(), variables["image_path_iterator"], strict=False):
        figure, path = plt.figure(number), Path(name)
        alt = described(figure, title)
        save_both(figure, path, figure.dpi)
        place = path.relative_to(source).as_posix()
        lines += [f".. image:: /{place}", f"   :alt: {alt}", "   :class: sphx-glr-single-img", ""]
    plt.close("all")
    return "\n".join(lines)


class ShowBoth(SphinxTransform):
    """Show the dark version of an image on dark pages, where there is one; name thumbnails."""

    default_priority = 200

    def apply(self) -> None:
        for image in list(self.document.findall(nodes.image)):
            thumbnail = THUMBNAIL.search(image["uri"])
            if thumbnail:
                (example,) = Path(self.env.srcdir, "gallery").glob(f"*/{thumbnail[1]}.py")
                image["alt"] = example.read_text(encoding="utf-8").splitlines()[1].strip()
            light, _, ending = image["uri"].rpartition(".")
            _, path = self.env.relfn2path(f"{light}-dark.{ending}", self.env.docname)
            if "://" not in light and Path(path).exists() and "only-light" not in image["classes"]:
                dark = image.deepcopy()
                dark["uri"] = f"{light}-dark.{ending}"
                dark["classes"] = [*image["classes"], "only-dark"]
                image["classes"] = [*image["classes"], "only-light"]
                image.parent.insert(image.parent.index(image) + 1, dark)


def setup(app: Any) -> dict[str, bool]:
    """Register the transform."""
    app.add_transform(ShowBoth)
    return {"parallel_read_safe": True}
