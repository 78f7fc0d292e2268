"""How the package is built: the README as package indexes show it, without links that lead nowhere there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

# An image that is no address, linked or not; a link that is neither an address nor a place on the page.
_IMAGE = r"!\[[^\]]*\]\((?!https?://)[^)]*\)"
_IMAGES = re.compile(rf"\[{_IMAGE}\]\([^)]*\)\n*|{_IMAGE}\n*")
_LOCAL = re.compile(r"(?<!!)\[([^\]]+)\]\((?!https?://|#|mailto:)[^)]*\)")


def without_local_links(text: str) -> str:
    """A page of Markdown without images of files, in which only the texts of links to files are left."""
    return _LOCAL.sub(r"\1", _IMAGES.sub("", text))


class Readme(MetadataHookInterface):
    """Sets the description that package indexes show."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the README without links to files."""
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": without_local_links(text)}
