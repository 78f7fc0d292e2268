"""Files that are written whole or not at all."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from verax.common.locking import is_at, take_lock
from verax.common.paths import as_path, refusing_wrong_names
from verax.common.remote import RemotePath
from verax.errors import InputError, Remedy

# Windows lets nobody replace or remove an open file, and a lock needs one.
_SWEEPS = os.name == "posix"


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
    if isinstance(path, RemotePath):
        with _put(path) as new:
            yield new
        return
    target, mode = _target(path, "path")
    through = _descriptor(path) is not None or (mode is not None and not stat.S_ISREG(mode))
    with _temporary(path, Path(tempfile.gettempdir()) if through else target.parent) as new:
        try:
            yield new
            if through:
                _copy_into(path, new)
            else:
                new.chmod(_new_mode(new) if mode is None else stat.S_IMODE(mode))
                os.replace(new, target)
        except OSError as error:
            if error.filename not in (None, str(new)):
                raise
            # A full disk or a limit on sizes comes without a name, or with that of the temporary file.
            raise OSError(error.errno, error.strerror or str(error), str(path)) from None


def check_writable(path: Path, argument: str) -> None:
    """Refuse a file that could not be written, before anything is computed for it."""
    if isinstance(path, RemotePath):
        from verax.common import stores

        stores.check_writable(path.address, argument)
        return
    target, mode = _target(path, argument)
    if mode is not None and _descriptor(path) is None and str(target) != os.devnull:
        if stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
            raise InputError(f"{path} is a device; name a file", argument=argument, kind="file")
        if stat.S_ISFIFO(mode):
            _PIPES[target] = _opened_pipe(path, argument)
    if mode is None and not os.access(target.parent, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))


def _target(path: Path, argument: str) -> tuple[Path, int | None]:
    """The file that a path leads to, and its mode if it exists."""
    with refusing_wrong_names(path, argument):
        mode = _mode(path)
        target = Path(os.path.realpath(path))
        if mode is not None and stat.S_ISDIR(mode):
            raise InputError(f"{path} is a folder; name a file in it", argument=argument, kind="file")
        if not target.parent.is_dir():
            raise InputError(
                f"There is no folder {target.parent} to write {target.name} to",
                argument=argument,
                kind="missing",
            )
    return target, mode


@contextmanager
def _put(place: RemotePath) -> Iterator[Path]:
    """A temporary file whose content is sent to a place at the end."""
    from verax.common import stores

    check_writable(place, "path")
    with tempfile.TemporaryDirectory(prefix="verax-") as folder:
        new = Path(folder, place.name[-60:])
        yield new
        stores.put(new, place.address)


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
    handle, new = _made(path, folder, prefix, suffix)
    # Another writer may sweep it before it is locked.
    while not _holds(handle, new):
        os.close(handle)
        handle, new = _made(path, folder, prefix, suffix)
    try:
        if not _SWEEPS:
            os.close(handle)
        yield new
    finally:
        new.unlink(missing_ok=True)
        if _SWEEPS:
            os.close(handle)


def _made(path: Path, folder: Path, prefix: str, suffix: str) -> tuple[int, Path]:
    try:
        handle, name = tempfile.mkstemp(dir=folder, prefix=prefix, suffix=suffix)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None
    return handle, Path(name)


def _holds(handle: int, new: Path) -> bool:
    """Whether this process has locked a temporary file; where nobody can, it has."""
    if not _SWEEPS:
        return True
    try:
        return take_lock(handle) and is_at(handle, new)
    except OSError:
        return True


def _sweep(folder: Path, prefix: str, suffix: str) -> None:
    """Remove temporary files that no writer has locked; without locks, none."""
    if not _SWEEPS:
        return
    with suppress(OSError):
        left = [name for name in os.listdir(folder) if name.startswith(prefix) and name.endswith(suffix)]
        for file in [folder / name for name in left]:
            with suppress(OSError), file.open("rb") as handle:
                if take_lock(handle.fileno()):
                    file.unlink()


def _copy_into(path: Path, new: Path) -> None:
    """Write the content of `new` to a device, a pipe or an open file."""
    number = _descriptor(path)
    if number is not None:
        sys.stdout.flush()
    # An open file is not opened again: that would start at its beginning and overwrite what was printed.
    into = _opened(path) if number is None else os.dup(number)
    with new.open("rb") as content, open(into, "wb", buffering=0) as out:
        shutil.copyfileobj(content, out)


# Pipes that were opened before the work: a reader who saw one closed would leave.
_PIPES: dict[Path, int] = {}
# Seconds to wait for the reader of a pipe.
_READER = 5.0


def _opened(path: Path) -> int:
    """A device or a pipe, opened for writing."""
    target = Path(os.path.realpath(path))
    if target in _PIPES:
        return _PIPES.pop(target)
    if stat.S_ISFIFO(os.stat(target).st_mode):
        return _opened_pipe(path, "path")
    return os.open(path, os.O_WRONLY | os.O_APPEND)


def _opened_pipe(path: Path, argument: str) -> int:
    """A pipe, opened for writing; one that nobody reads is refused, which would else block for ever."""
    until = time.monotonic() + _READER
    while True:
        try:
            number = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
        else:
            os.set_blocking(number, True)
            return number
        if time.monotonic() >= until:
            raise InputError(
                f"{path} is a pipe that nobody reads",
                argument=argument,
                kind="file",
                remedies=[Remedy("Start its reader first, or name a file.")],
            )
        time.sleep(0.02)


def _descriptor(path: Path) -> int | None:
    """The number of the open file that a path such as /dev/stdout stands for; None for other paths."""
    descriptors = {Path(f"/proc/{os.getpid()}/fd"), Path("/proc/self/fd")}
    for _ in range(40):
        path = Path(os.path.realpath(path.parent)) / path.name
        if path.parent in descriptors and path.name.isdecimal():
            return int(path.name)
        if not path.is_symlink():
            return None
        path = path.parent / os.readlink(path)
    return None


def _new_mode(beside: Path) -> int:
    """The permissions of new files in the folder of a file.

    One is made and removed: to read the mask of the process means to set it, and what other threads wrote at
    that moment would be open to everyone.
    """
    probe = beside.with_name(f"{beside.name}.new")
    handle = os.open(probe, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
    try:
        return stat.S_IMODE(os.fstat(handle).st_mode)
    finally:
        os.close(handle)
        probe.unlink(missing_ok=True)
