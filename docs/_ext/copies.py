"""Studies stand beside docs/ in the repository; the site shows copies of them, with links that fit."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from verax._addresses import filled
from verax._version import __version__

# Links of pages that also work in the repository, and where they lead on the site, both from docs/.
MOVED = [
    (re.compile(r"\]\((?:\.\./)*studies/([a-z_]+)\.md"), "studies/generated/{}.md"),
    (re.compile(r"\]\((?:\.\./)*docs/([\w./]+)\.md"), "{}.md"),
    (re.compile(r"\]\((?:\.\./)*gallery/([a-z_/]+)\.py"), "examples/{}.rst"),
]


def copy_studies(app) -> None:
    """Copy the studies and their figures into the sources, where they changed."""
    root = Path(app.srcdir).parent / "studies"
    target = Path(app.srcdir) / "studies" / "generated"
    for path in [*root.glob("*.md"), *root.glob("figures/*.png")]:
        copy = target / path.relative_to(root)
        if not copy.exists() or copy.read_bytes() != path.read_bytes():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)


def repair_links(app, name: str, source: list[str]) -> None:
    """Let links out of docs/ lead to the pages of the site, and fill in where verax is published."""
    source[0] = filled(source[0], __version__)
    up = "../" * name.count("/")
    for link, place in MOVED:
        source[0] = link.sub(lambda m, to=place: "](" + up + to.format(m[1]), source[0])


def repair_included(app, _path: Path, name: str, source: list[str]) -> None:
    """What a page includes has links like it: the changelog."""
    repair_links(app, name, source)


def setup(app) -> dict[str, bool]:
    """Run before pages are looked for, and on each page that is read."""
    app.connect("builder-inited", copy_studies)
    app.connect("source-read", repair_links)
    app.connect("include-read", repair_included)
    return {"parallel_read_safe": True}
