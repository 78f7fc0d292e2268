"""Files that are written whole or not at all."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from verax.common.paths import as_path, refusing_wrong_names
from verax.errors import InputError

# Windows locks files in another way, and lets nobody replace an open one.
fcntl: Any = import_module("fcntl") if os.name == "posix" else None


@contextmanager
def written(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary file to write to, whose content takes the place of `path` at the end.

    If writing is interrupted, the old file stays. A symbolic link stays, and the file it points to is
    replaced. What is not a regular file (a device, a pipe, /dev/stdout) is written to, not replaced.
    Temporary files of writers that were killed are removed at the next write.

    >>> target = Path(tempfile.mkdtemp(), "numbers.txt")
    >>> with written(target) as new:
    ...     _ = new.write_text("1 2 3")
    >>> target.read_text()
    '1 2 3'
    """
    path = as_path(path)
    with refusing_wrong_names(path):
        mode = _mode(path)
        target = Path(os.path.realpath(path))
        if mode is not None and stat.S_ISDIR(mode):
            raise InputError(f"{path} is a folder; name a file in it", argument="path", kind="file")
        if not target.parent.is_dir():
            raise InputError(
                f"There is no folder {target.parent} to write {target.name} to",
                argument="path",
                kind="missing",
            )
    through = _descriptor(path) is not None or (mode is not None and not stat.S_ISREG(mode))
    with _temporary(path, Path(tempfile.gettempdir()) if through else target.parent) as new:
        try:
            yield new
            if through:
                _copy_into(path, new)
            else:
                new.chmod(0o666 & ~_umask() if mode is None else stat.S_IMODE(mode))
                os.replace(new, target)
        except OSError as error:
            if error.filename not in (None, str(new)):
                raise
            # A full disk or a limit on sizes comes without a name, or with that of the temporary file.
            raise OSError(error.errno, error.strerror or str(error), str(path)) from None


def make_folder(path: Path, argument: str) -> None:
    """Make a folder and those above it, unless it is there."""
    with refusing_wrong_names(path, argument):
        path.mkdir(parents=True, exist_ok=True)


def _mode(path: Path) -> int | None:
    """The mode of what a path leads to; None if there is nothing yet."""
    try:
        return path.stat().st_mode
    except FileNotFoundError:
        return None


@contextmanager
def _temporary(path: Path, folder: Path) -> Iterator[Path]:
    """A new file with the ending of `path`, which tells writers of figures what to write.

    It is locked as long as it is written to: one that is not was left by a writer that was killed.
    """
    # The system allows 255 bytes for a name, and the random part needs some of them.
    prefix, suffix = f".{path.stem[:40]}.verax-", path.suffix[:20]
    _sweep(folder, prefix, suffix)
    while True:
        try:
            handle, name = tempfile.mkstemp(dir=folder, prefix=prefix, suffix=suffix)
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(path)) from None
        if _locked(handle, name):
            break
        # Another writer swept it before it was locked.
        os.close(handle)
    new = Path(name)
    try:
        if fcntl is None:
            os.close(handle)
        yield new
    finally:
        new.unlink(missing_ok=True)
        if fcntl is not None:
            os.close(handle)


def _locked(handle: int, name: str) -> bool:
    """Whether this process has locked the file of this name; where there are no locks, it has."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return bool(os.path.samestat(os.fstat(handle), os.stat(name)))
    except FileNotFoundError:
        return False
    except OSError as error:
        # A file system without locks; a file that is locked is being swept.
        return error.errno not in (errno.EWOULDBLOCK, errno.EACCES)


def _sweep(folder: Path, prefix: str, suffix: str) -> None:
    """Remove temporary files that no writer has locked; without locks, none."""
    if fcntl is None:
        return
    with suppress(OSError):
        for name in os.listdir(folder):
            if name.startswith(prefix) and name.endswith(suffix):
                _remove_unlocked(folder / name)


def _remove_unlocked(file: Path) -> None:
    with suppress(OSError), file.open("rb") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        file.unlink()


def _copy_into(path: Path, new: Path) -> None:
    """Write the content of `new` to a device, a pipe or an open file."""
    number = _descriptor(path)
    if number is not None:
        sys.stdout.flush()
    # An open file is not opened again: that would start at its beginning and overwrite what was printed.
    into = os.open(path, os.O_WRONLY | os.O_APPEND) if number is None else os.dup(number)
    with new.open("rb") as content, open(into, "wb", buffering=0) as out:
        shutil.copyfileobj(content, out)


def _descriptor(path: Path) -> int | None:
    """The number of the open file that a path such as /dev/stdout stands for; None for other paths."""
    own = {Path(f"/proc/{os.getpid()}/fd"), Path("/proc/self/fd")}
    for _ in range(40):
        path = Path(os.path.realpath(path.parent)) / path.name
        if path.parent in own and path.name.isdecimal():
            return int(path.name)
        if not path.is_symlink():
            return None
        path = path.parent / os.readlink(path)
    return None


def _umask() -> int:
    """The permissions that new files of this process do not get; asking needs setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
