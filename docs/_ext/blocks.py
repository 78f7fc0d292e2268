"""Code on the site ends with its last line: doctests need an empty line before the fence, readers do not."""

from __future__ import annotations

from docutils import nodes
from sphinx.transforms import SphinxTransform


class TrimBlocks(SphinxTransform):
    """Drop empty lines at the end of code."""

    default_priority = 205

    def apply(self) -> None:
        for block in self.document.findall(nodes.literal_block):
            text = block.astext()
            if block.rawsource == text and text != text.rstrip():
                block.rawsource = text.rstrip()
                block.children = []
                block += nodes.Text(text.rstrip())


def setup(app) -> dict[str, bool]:
    """Register the transform."""
    app.add_transform(TrimBlocks)
    return {"parallel_read_safe": True}
