"""The scripts that draw the charts: one text, made once and kept in the user's folder of caches."""

from __future__ import annotations

import hashlib
import os
import sys
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from verax.common.packages import needed
from verax.display.writing import written
from verax.errors import VeraxError


def converter() -> Any:
    """The package that the scripts come from."""
    return needed("vl_convert", "A report", "report", "vl-convert-python")


@lru_cache(maxsize=1)
def bundle() -> str:
    """Vega, Vega-Lite and Vega-Embed with all they need.

    Making it takes seconds, so it is kept in a file, whose first line is the hash of the rest. A file that
    does not fit its hash, or a folder that cannot be written to, costs only the time.
    """
    kept = _folder() / f"vega-{version('vl-convert-python')}.js"
    text = _read(kept)
    if text is None:
        text = str(converter().javascript_bundle("window.vegaEmbed = vegaEmbed;"))
        _keep(text, kept)
    # Either would end the element that it is put in, or change how the rest of it is read.
    assert "</script" not in text.lower()
    assert "<!--" not in text
    return text


def _folder() -> Path:
    """Where programs keep what they can make again."""
    home = Path("~").expanduser()
    usual = {"win32": os.environ.get("LOCALAPPDATA"), "darwin": str(home / "Library" / "Caches")}
    base = os.environ.get("XDG_CACHE_HOME") or usual.get(sys.platform) or home / ".cache"
    return Path(base) / "verax"


def _read(path: Path) -> str | None:
    try:
        digest, _, text = path.read_bytes().partition(b"\n")
    except OSError:
        return None
    return text.decode() if _hash(text) == digest else None


def _keep(text: str, path: Path) -> None:
    content = text.encode()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with written(path) as new:
            new.write_bytes(_hash(content) + b"\n" + content)
    except (OSError, VeraxError):
        pass


def _hash(content: bytes) -> bytes:
    return hashlib.sha256(content).hexdigest().encode()
