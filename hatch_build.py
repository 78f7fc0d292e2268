"""How the package is built: its addresses, and the README as package indexes show it."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

# An image that is no address, linked or not; a link that is neither an address nor a place on the page.
_IMAGE = r"!\[[^\]]*\]\((?!https?://)[^)]*\)"
_IMAGES = re.compile(rf"\[{_IMAGE}\]\([^)]*\)\n*|{_IMAGE}\n*")
_LOCAL = re.compile(r"(?<!!)\[([^\]]+)\]\((?!https?://|#|mailto:)([^)]*)\)")


def readme(text: str, repository: str) -> str:
    """A page of Markdown without images of files; links to files lead to the repository, if that is known."""
    linked = rf"[\1]({repository}/blob/main/\2)" if repository else r"\1"
    return _LOCAL.sub(linked, _IMAGES.sub("", text))


class Metadata(MetadataHookInterface):
    """Sets the addresses, and the description that package indexes show."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        """Add what depends on where verax is published."""
        known = runpy.run_path(str(Path(self.root, "src/verax/_addresses.py")))
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        text = readme(known["filled"](text, metadata["version"]), known["REPOSITORY"])
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
        metadata["urls"] = known["addresses"]()
