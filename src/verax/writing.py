"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from verax.errors import InputError


@contextmanager
def written(path: str | Path) -> Iterator[Path]:
    """A new file to write to, which takes the place of `path` at the end; an interrupted one leaves the old.

    >>> target = Path(tempfile.mkdtemp(), "numbers.txt")
    >>> with written(target) as new:
    ...     _ = new.write_text("1 2 3")
    >>> target.read_text()
    '1 2 3'
    """
    target = Path(path)
    if target.is_dir():
        raise InputError(f"{target} is a folder; name a file in it.", argument="path")
    if not target.parent.is_dir():
        raise InputError(f"There is no folder {target.parent} to write {target.name} to.", argument="path")
    try:
        # The ending stays, because it tells writers of figures what to write.
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.stem}-", suffix=target.suffix)
    except OSError as error:
        raise InputError(f"{target} cannot be written: {error.strerror}.", argument="path") from error
    os.close(handle)
    new = Path(name)
    try:
        yield new
        new.chmod(target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask())
        os.replace(new, target)
    finally:
        new.unlink(missing_ok=True)


def _umask() -> int:
    """What new files of this process may not be allowed; there is no way to ask without setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
