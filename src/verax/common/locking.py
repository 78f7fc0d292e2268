"""A lock on a file that several processes change: one at a time loads, changes and replaces it."""

from __future__ import annotations

import errno
import os
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

from verax._settings import settings
from verax.common.remote import RemotePath
from verax.errors import InputError, Remedy

# How often to look for a lock of another process, in seconds.
_EVERY = 0.05
# What systems say of folders that cannot lock, such as some network folders.
_CANNOT = {errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS, errno.EINVAL}
# Windows refuses to read locked bytes, so the lock lies behind the text that names its holder.
_BEHIND = 2**30


@contextmanager
def locked(path: Path, argument: str = "path") -> Iterator[None]:
    """Hold the lock of a file: other processes and threads that ask for it wait.

    The lock is one of the operating system on a file beside it, called like it with `.lock`. The system
    releases it when its holder ends, even by a signal. Locks in network folders hold if the server supports
    them; a folder that cannot lock is refused. What is not a regular file, and a file in a folder that does
    not exist, has no lock.
    """
    if isinstance(path, RemotePath):
        # Work in stores is done before the place is claimed: a claim must not last.
        yield
        return
    target = Path(os.path.realpath(path))
    if not target.parent.is_dir() or (target.exists() and not target.is_file()):
        yield
        return
    place = target.with_name(f"{target.name}.lock")
    handle = _acquired(place, path, argument)
    try:
        os.ftruncate(handle, 0)
        os.write(handle, _holder().encode())
        yield
    finally:
        # Windows cannot remove an open file; an empty lock that stays behind does no harm.
        with suppress(OSError):
            place.unlink()
        os.close(handle)


@contextmanager
def claimed(path: Path, argument: str = "path") -> Iterator[None]:
    """Be the only process that compares and replaces a file; on a disk within `locked`."""
    if isinstance(path, RemotePath):
        from verax.common import stores

        with stores.claimed(path.address, _holder(), argument):
            yield
    else:
        yield


def _acquired(place: Path, path: Path, argument: str) -> int:
    """The open lock file, when nobody else has locked it."""
    until = time.monotonic() + settings.lock_wait
    while True:
        handle = os.open(place, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            # The holder before may have removed the file between opening and locking it.
            if _locks(handle, path, argument) and is_at(handle, place):
                return handle
            holder = os.read(handle, 300).decode(errors="replace").strip()
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)
        if time.monotonic() >= until:
            raise InputError(
                f"{path} must not be in use by another process",
                argument=argument,
                kind="file",
                found=f"{holder or 'another process'} holds its lock, "
                f"and {settings.lock_wait:g} seconds have passed",
                remedies=[Remedy("Run again when it has finished.")],
            )
        time.sleep(_EVERY)


def take_lock(handle: int) -> bool:
    """Lock an open file; False if another process has locked it. It raises `OSError` where nobody can."""
    try:
        if sys.platform == "win32":
            import msvcrt

            os.lseek(handle, _BEHIND, os.SEEK_SET)
            try:
                msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
            finally:
                os.lseek(handle, 0, os.SEEK_SET)
        else:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EAGAIN, errno.EACCES, errno.EDEADLK):
            return False
        raise
    return True


def _locks(handle: int, path: Path, argument: str) -> bool:
    """Lock an open file; False if another process has locked it. A folder that cannot lock is refused."""
    try:
        return take_lock(handle)
    except OSError as error:
        if error.errno not in _CANNOT:
            raise
        raise InputError(
            f"{path} must be in a folder that can lock files",
            argument=argument,
            kind="file",
            found=f"the system says: {error.strerror}",
            remedies=[Remedy("Keep it in a folder of this machine.")],
        ) from None


def is_at(handle: int, place: Path) -> bool:
    """Whether an open file is still the one of that name."""
    try:
        return os.path.samestat(os.fstat(handle), place.stat())
    except FileNotFoundError:
        return False


def _holder() -> str:
    now = datetime.now().astimezone().isoformat(sep=" ", timespec="seconds")
    return f"process {os.getpid()} on {socket.gethostname()}, since {now}"
