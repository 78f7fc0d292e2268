"""Compiled templates, kept in the user's folder of caches because compiling them takes long.

Templates run. So they must lie in a folder that only the user can write to.
"""

from __future__ import annotations

import hashlib
import os
import stat
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

from verax.common.packages import needed
from verax.display.writing import written
from verax.errors import VeraxError


def templates() -> Any:
    """The cache of compiled templates for Jinja, which takes a tenth of a page's time to compile them."""
    jinja2 = needed("jinja2", "A report", "report")

    class Templates(jinja2.BytecodeCache):  # type: ignore[misc, name-defined]
        def load_bytecode(self, bucket: Any) -> None:
            content = kept(self._name(bucket))
            if content is not None:
                # What another text, or another release of Python, was compiled to is not taken.
                bucket.bytecode_from_string(content)

        def dump_bytecode(self, bucket: Any) -> None:
            keep(self._name(bucket), bucket.bytecode_to_string())

        @staticmethod
        def _name(bucket: Any) -> str:
            return f"template-{version('jinja2')}-{bucket.key}"

    return Templates()


def _folder() -> Path:
    """Where programs keep what they can make again."""
    home = Path("~").expanduser()
    usual = {"win32": os.environ.get("LOCALAPPDATA"), "darwin": str(home / "Library" / "Caches")}
    base = os.environ.get("XDG_CACHE_HOME") or usual.get(sys.platform) or home / ".cache"
    return Path(base) / "verax"


def kept(name: str) -> bytes | None:
    """The content of a file, whose first line is the hash of the rest; None if it does not fit."""
    path = _folder() / name
    try:
        if not _is_private(path.parent) or not _is_private(path):
            return None
        digest, _, content = path.read_bytes().partition(b"\n")
    except OSError:
        return None
    return content if _hash(content) == digest else None


def _is_private(path: Path) -> bool:
    """Whether only the user can write here, and the path is no link to elsewhere."""
    status = path.lstat()
    if stat.S_ISLNK(status.st_mode):
        return False
    # Windows keeps the folders of users apart by other means.
    return not hasattr(os, "getuid") or (status.st_uid == os.getuid() and not status.st_mode & 0o022)


def keep(name: str, content: bytes) -> None:
    """Write such a file; a folder that cannot be used costs only the time of making the content again."""
    path = _folder() / name
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
