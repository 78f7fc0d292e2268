"""The scripts that draw the charts: one text, made once and kept in the user's folder of caches.

Pages run what is kept there. So it must have the known hash, or, for releases without one, lie in a folder
that only the user can write to.
"""

from __future__ import annotations

import hashlib
import os
import stat
import sys
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from verax.common.packages import needed
from verax.display.writing import written
from verax.errors import VeraxError

# Hashes of the scripts of known releases.
_KNOWN = {"1.9.0.post1": b"373b1f84072b31010f15ceb787be6b415c53936411aae267c8c2b2b6ccde46e7"}


def converter() -> Any:
    """The package that the scripts come from."""
    return needed("vl_convert", "A report", "report", "vl-convert-python")


@lru_cache(maxsize=1)
def bundle() -> str:
    """Vega, Vega-Lite and Vega-Embed with all they need.

    Making it takes seconds, so it is kept in a file, whose first line is the hash of the rest. A file that
    does not fit its hash, or a folder that cannot be used, costs only the time.
    """
    release = version("vl-convert-python")
    kept = _folder() / f"vega-{release}.js"
    text = _read(kept, _KNOWN.get(release))
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


def _read(path: Path, known: bytes | None) -> str | None:
    try:
        if not _is_private(path.parent) or not _is_private(path):
            return None
        digest, _, text = path.read_bytes().partition(b"\n")
    except OSError:
        return None
    return text.decode() if _hash(text) == (known or digest) else None


def _is_private(path: Path) -> bool:
    """Whether only the user can write here, and the path is no link to elsewhere."""
    status = path.lstat()
    if stat.S_ISLNK(status.st_mode):
        return False
    # Windows keeps the folders of users apart by other means.
    return not hasattr(os, "getuid") or (status.st_uid == os.getuid() and not status.st_mode & 0o022)


def _keep(text: str, path: Path) -> None:
    content = text.encode()
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not path.parent.is_symlink():
            path.parent.chmod(0o700)
        if not _is_private(path.parent):
            return
        with written(path) as new:
            new.write_bytes(_hash(content) + b"\n" + content)
    except (OSError, VeraxError):
        pass


def _hash(content: bytes) -> bytes:
    return hashlib.sha256(content).hexdigest().encode()
