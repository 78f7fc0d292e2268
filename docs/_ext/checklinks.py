"""Checks every link of the built site: `python docs/_ext/checklinks.py build/docs`.

A link to a page or a file must lead to one, an anchor to an element of that name, and nothing that a page
needs (scripts, styles, images, fonts) may lie elsewhere. Links that readers may follow to other hosts are not
opened.
"""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# What a page loads by itself; only links in the text may lead to other hosts.
LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}
IN_STYLES = re.compile(r"url\(\s*['\"]?(https?:|//)")


class Page(HTMLParser):
    """The links, anchors and loaded files of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.loaded: set[str] = set()
        self.anchors: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.anchors |= {found[name] for name in ("id", "name") if name in found}
        if tag == "a" and "href" in found:
            self.links.add(found["href"])
        place = LOADED.get(tag)
        if place in found and found.get("rel") not in ("search", "index", "next", "prev", "canonical"):
            self.loaded.add(found[place])


def problems(folder: Path, *, partial: bool = False) -> list[str]:
    """What is wrong with the links of a site; a partial build lacks pages and has `#page.md` for them."""
    pages = {path: Page(path) for path in sorted(folder.rglob("*.html")) if "_static" not in path.parts}
    said = [] if pages else [f"{folder} has no pages"]
    for path, page in pages.items():
        here = path.relative_to(folder)
        for link in sorted(page.links | page.loaded):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                if link in page.loaded and parts.scheme != "data":
                    said.append(f"{here} loads {link}")
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.exists():
                if not partial:
                    said.append(f"{here}: there is no {link}")
            elif partial and parts.fragment.endswith((".md", ".rst")):
                continue
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
                said.append(f"{here}: there is no anchor {link}")
    styles = [path for path in folder.rglob("*.css") if IN_STYLES.search(path.read_text(encoding="utf-8"))]
    return [*said, *(f"{path.relative_to(folder)} loads from another host" for path in styles)]


if __name__ == "__main__":
    found = problems(Path(sys.argv[1]).resolve())
    print("\n".join(found) or "All links lead somewhere.")
    sys.exit(bool(found))
