"""Pages of examples that are gone: sphinx-gallery leaves them behind, in no table of contents."""

from __future__ import annotations

import re
from pathlib import Path

# What is made of gallery/SECTION/plot_NAME.py begins so, in examples/SECTION and its folders of pictures.
MADE = re.compile(r"(?:sphx_glr_)?(plot_[a-z_]+?)(?:_\d+|_thumb)?\.")


def remove_stale(app) -> None:
    """Remove from examples/ what no file in gallery/ accounts for."""
    pages, sources = Path(app.srcdir) / "examples", Path(app.srcdir) / "gallery"
    known = {path.relative_to(sources).with_suffix("") for path in sources.rglob("plot_*.py")}
    for path in [path for path in pages.rglob("*plot_*") if path.is_file()]:
        section = [part for part in path.relative_to(pages).parent.parts if part not in ("images", "thumb")]
        found = MADE.match(path.name)
        if found and Path(*section, found[1]) not in known:
            path.unlink()


def setup(app) -> dict[str, bool]:
    """Run before pages are looked for."""
    app.connect("builder-inited", remove_stale)
    return {"parallel_read_safe": True}
