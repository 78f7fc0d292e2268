"""Notebooks as pages of the site, with the outputs they were saved with: nothing is run here."""

from __future__ import annotations

import base64
import json
import shutil
from pathlib import Path


def convert(path: Path, folder: Path) -> None:
    """Write a notebook as Markdown, its figures beside it."""
    parts = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        for output in cell["outputs"]:
            parts.append(shown(output, folder, f"{path.stem}-{len(parts)}.png"))
    (folder / f"{path.stem}.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def shown(output: dict, folder: Path, name: str) -> str:
    """An output as Markdown: a figure, or text."""
    data = output.get("data", {})
    if "image/png" in data:
        (folder / name).write_bytes(base64.b64decode("".join(data["image/png"])))
        return f"![What the cell above draws]({name})"
    text = "".join(output["text"] if "text" in output else data["text/plain"])
    return f"```{{code-block}} text\n:class: output\n\n{text.rstrip()}\n```"


def convert_all(app) -> None:
    """Convert all notebooks before pages are looked for."""
    folder = Path(app.srcdir) / "notebooks"
    target = folder / "generated"
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    for path in sorted(folder.glob("*.ipynb")):
        convert(path, target)


def setup(app) -> dict[str, bool]:
    """Run at the beginning of a build."""
    app.connect("builder-inited", convert_all)
    return {"parallel_read_safe": True}
