"""Formulas without a network: MathJax draws them as SVG, from one file of the site.

`sphinx-mathjax-offline` brings MathJax. Of its 24 MB the site needs the one file that has all extensions and,
because it draws outlines, no fonts. It works from a folder as it does from a server.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from sphinx.util.fileutil import copy_asset_file

FILE = "tex-svg-full.js"


def copy_mathjax(app, exception) -> None:
    """Put MathJax beside the other scripts of the site."""
    if exception is None and app.builder.format == "html":
        package = Path(find_spec("sphinx-mathjax-offline").origin).parent
        copy_asset_file(package / "static" / "mathjax" / FILE, Path(app.outdir) / "_static")


def setup(app) -> dict[str, bool]:
    """Say where MathJax is, and copy it at the end."""
    app.setup_extension("sphinx.ext.mathjax")
    app.config.mathjax_path = FILE
    app.config.mathjax3_config = {"options": {"enableMenu": False}}
    app.connect("build-finished", copy_mathjax)
    return {"parallel_read_safe": True}
