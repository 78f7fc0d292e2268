"""Files and folders at URLs: stores by pyarrow's file systems, others by fsspec, web servers by HTTP."""

from __future__ import annotations

import errno
import os
import random
import stat
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, NoReturn
from urllib.parse import unquote

from verax._settings import settings
from verax.common.urls import WEB, Access, Address
from verax.errors import InputError, MissingPackageError, Remedy

# Whose objects appear when their upload is complete. Elsewhere a file gets another name first, and is moved.
_OBJECTS = ("s3", "gs", "gcs")
_ARROW = (*_OBJECTS, "abfs", "abfss", "hdfs", "viewfs")
# Google's client tries for a quarter of an hour unless it is told otherwise.
_GOOGLE, _GOOGLE_WAIT = ("gs", "gcs"), "retry_limit_seconds=20"
# How the names of variables begin in which libraries look for servers and credentials.
_SETTINGS = ("AWS_", "AZURE_", "GOOGLE_", "HADOOP_")
# What libraries say, and what that means.
_REFUSED = (
    *("access_denied", "forbidden", "403", "401", "signature", "access_key", "credential", "authenti"),
    *("permission", "access token", "expired_token", "unauthorized"),
)
_UNREACHABLE = ("network_connection", "resolve", "connect", "timed out", "timeout", "unavailable")
_NO_BUCKET = ("no_such_bucket", "bucket does not exist", "bucket not found", "containernotfound")
_CREDENTIALS = {
    "s3": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_PROFILE, or the role of this machine",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS, or `gcloud auth application-default login`",
    "gcs": "GOOGLE_APPLICATION_CREDENTIALS, or `gcloud auth application-default login`",
    "abfs": "AZURE_CLIENT_ID, AZURE_TENANT_ID and AZURE_CLIENT_SECRET, or `az login`",
    "abfss": "AZURE_CLIENT_ID, AZURE_TENANT_ID and AZURE_CLIENT_SECRET, or `az login`",
    "hdfs": "`kinit`",
    "http": "the user and password, or the signature, in the URL",
    "https": "the user and password, or the signature, in the URL",
}


class Info(NamedTuple):
    """The state of a place: 0, S_IFREG or S_IFDIR; its number of bytes; when it was written."""

    kind: int
    size: int
    mtime_ns: int


def _url(place: Address, access: Access) -> str:
    user = f"{access.user}@" if access.user else ""
    query = access.query
    if place.scheme in _GOOGLE and "retry_limit_seconds" not in query:
        query = f"{query}&{_GOOGLE_WAIT}" if query else _GOOGLE_WAIT
    host = place.server.rpartition("@")[2] if user else place.server
    return f"{place.scheme}://{user}{host}" + (f"?{query}" if query else "")


@cache
def _store(root: Address, access: Access, _: tuple[tuple[str, str], ...]) -> tuple[Any, str]:
    """The file system of a bucket or host, and where it begins there; another one when settings change."""
    import pyarrow.fs as pafs

    if root.scheme in _ARROW:
        with _explained(root):
            return pafs.FileSystem.from_uri(_url(root, access))  # type: ignore[no-any-return]
    try:
        with _explained(root):
            system, start = import_module("fsspec.core").url_to_fs(_url(root, access))
    except (ImportError, ValueError) as error:
        reason = _scrubbed(str(error).partition("\n")[0].rstrip(". "), root)
        raise MissingPackageError(
            f"{root.scheme}:// needs fsspec and its package for {root.scheme} ({reason}). "
            "s3://, gs://, abfss://, https:// and file:// need no other package."
        ) from None
    return pafs.PyFileSystem(pafs.FSSpecHandler(system)), start


# Servers that could not be reached, and when. Libraries try for seconds, and several readers look at a file.
_FAILED: dict[tuple[Address, Access], tuple[float, OSError]] = {}
_FORGIVEN = 5.0


def _at(place: Address) -> tuple[Any, str]:
    """The file system of a place, and its name there."""
    when, error = _FAILED.get((place.top, place.access), (0.0, None))
    if error is not None and time.monotonic() - when < _FORGIVEN:
        raise error
    settings = tuple((name, value) for name, value in os.environ.items() if name.startswith(_SETTINGS))
    system, start = _store(place.top, place.access, settings)
    return system, "/".join([start.rstrip("/"), *place.names]) or "/"


@contextmanager
def _explained(place: Address) -> Iterator[None]:
    """Turn a library's error into one line that names the place and the remedy."""
    try:
        yield
    except Exception as error:
        ours = isinstance(error, (FileNotFoundError, MemoryError, ImportError, ValueError))
        if ours and type(error).__module__.partition(".")[0] != "pyarrow":
            raise
        if isinstance(error, OSError) and error.errno not in (None, errno.EIO):
            raise OSError(error.errno, os.strerror(error.errno or 0), str(place)) from None
        _explain(place, error)


def _explain(place: Address, error: Exception) -> NoReturn:
    text = _scrubbed((str(error).splitlines() or [type(error).__name__])[0], place)
    message = text.lower()
    if place.scheme in ("hdfs", "viewfs") and ("libjvm" in message or "libhdfs" in message):
        raise MissingPackageError(
            f"{place.scheme}:// needs Java and Hadoop's libhdfs, which pyarrow does not bring: "
            "install them and set JAVA_HOME, HADOOP_HOME and CLASSPATH."
        ) from None
    if "support" in message or "unrecognized filesystem" in message or "not implemented" in message:
        raise MissingPackageError(
            f"This build of pyarrow has no file system for {place.scheme}://: install pyarrow from PyPI."
        ) from None
    if any(word in message for word in _NO_BUCKET):
        raise FileNotFoundError(errno.ENOENT, f"There is no {place.top}", str(place)) from None
    if any(word in message for word in _UNREACHABLE) and not any(word in message for word in _REFUSED[:2]):
        remedy = "Check its name, the network, and AWS_ENDPOINT_URL"
        remedy = remedy if place.scheme == "s3" else "Check its name and the network"
        unreachable = OSError(errno.EHOSTUNREACH, f"The server cannot be reached. {remedy}.", str(place))
        _FAILED[place.top, place.access] = time.monotonic(), unreachable
        raise unreachable from None
    if any(word in message for word in _REFUSED):
        found = _CREDENTIALS.get(place.scheme, "those of its fsspec package")
        number, reason = errno.EACCES, f"The server refuses access. Check the credentials: {found}"
    else:
        number, reason = errno.EIO, f"The server says: {text[:160].rstrip('. ')}"
    raise OSError(number, f"{reason}.", str(place)) from None


def _scrubbed(text: str, place: Address) -> str:
    """A library's text without the credentials in the URL."""
    user, query = place.access
    secrets = [user, *user.split(":"), query, *(part.partition("=")[2] for part in query.split("&"))]
    for secret in sorted({s for part in secrets for s in (part, unquote(part))}, key=len, reverse=True):
        text = text.replace(secret, "***") if len(secret) > 2 else text
    return text


# What was lately found where, so that one look at many files does not ask for each of them several times.
_SEEN: dict[Address, tuple[float, Info]] = {}
_LATELY = 30.0


def seen(place: Address) -> Info:
    """The state of a place from its store, or a recent one if the place existed."""
    when, info = _SEEN.get(place, (0.0, None))
    return info if info is not None and time.monotonic() - when < _LATELY else infos([place])[0]


def _note(place: Address, info: Info) -> None:
    if info.kind:
        _SEEN[place] = time.monotonic(), info
    else:
        _SEEN.pop(place, None)


def infos(places: Sequence[Address]) -> list[Info]:
    """The current states of places, by one request for many where the store supports that."""
    known: dict[Address, Info] = {}
    by_root: dict[tuple[Address, Access], list[Address]] = {}
    for place in places:
        if place.scheme in WEB:
            known[place] = _web_info(place)
        else:
            by_root.setdefault((place.top, place.access), []).append(place)
    for group in by_root.values():
        system, _ = _at(group[0])
        with _explained(group[0]):
            answers = system.get_file_info([_at(place)[1] for place in group])
        known |= {place: _info(answer) for place, answer in zip(group, answers, strict=True)}
    for place, info in known.items():
        _note(place, info)
    return [known[place] for place in places]


def _info(answer: Any) -> Info:
    kinds = {"File": stat.S_IFREG, "Directory": stat.S_IFDIR}
    return Info(kinds.get(answer.type.name, 0), answer.size or 0, answer.mtime_ns or 0)


def opened(place: Address) -> Any:
    """The content of a place as an Arrow file, which is read in place."""
    import pyarrow as pa

    if place.scheme in WEB:
        return pa.OSFile(str(_downloaded(place)))
    system, name = _at(place)
    with _explained(place):
        return system.open_input_file(name)


def listed(place: Address, *, recursive: bool) -> Iterator[tuple[str, bool]]:
    """The names of the entries of a place, or of all below it, and whether they are folders."""
    import pyarrow.fs as pafs

    if place.scheme in WEB:
        raise InputError(
            "A web server does not list its files",
            argument="path",
            kind="file",
            values=[str(place)],
            remedies=[Remedy("Name each file.")],
        )
    system, name = _at(place)
    with _explained(place):
        entries = system.get_file_info(pafs.FileSelector(name, allow_not_found=True, recursive=recursive))
    below = name.strip("/") + "/" if name.strip("/") else ""
    for entry in sorted(entries, key=lambda info: info.path):
        below_it = entry.path.strip("/").removeprefix(below)
        _note(place._replace(names=(*place.names, *below_it.split("/"))), _info(entry))
        yield below_it, entry.type == pafs.FileType.Directory


def make_folder(place: Address) -> None:
    """Make a folder, if the store has folders."""
    if place.scheme not in (*_OBJECTS, *WEB):
        system, name = _at(place)
        with _explained(place):
            system.create_dir(name, recursive=True)


def check_writable(place: Address, argument: str) -> None:
    """Refuse a place that nothing can be written to, before the work."""
    if place.scheme in WEB:
        raise InputError(
            f"{place} cannot be written to: a web server is read only",
            argument=argument,
            kind="file",
            values=[str(place)],
            remedies=[Remedy("Name a file, or a place in a store such as s3://bucket/name.")],
        )
    if not place.names:
        raise InputError(f"{place} names no file; name one in it", argument=argument, kind="file")
    if not infos([place.top])[0].kind:
        raise InputError(
            f"There is no {place.top} to write {place.names[-1]} to", argument=argument, kind="missing"
        )


def put(file: Path, place: Address) -> None:
    """Write the content of a file to a place; whole or not at all."""
    import pyarrow as pa

    system, name = _at(place)
    _SEEN.pop(place, None)
    new = name
    if place.scheme not in _OBJECTS:
        folder, _, last = name.rpartition("/")
        new = f"{folder}/.{last[:40]}.verax-{uuid.uuid4().hex}"
    with _explained(place):
        if new != name:
            system.create_dir(name.rpartition("/")[0], recursive=True)
        # In one call: an interrupted loop would close the stream, which completes what was sent so far.
        content = pa.memory_map(str(file)).read_buffer() if file.stat().st_size else b""
        try:
            with system.open_output_stream(new) as out:
                out.write(content)
            if new != name:
                system.move(new, name)
        except BaseException:
            if new != name:
                _remove(system, new)
            raise


@contextmanager
def claimed(place: Address, who: str, argument: str) -> Iterator[None]:
    """Be the only process that compares and replaces an object; others wait, and are refused at last.

    Stores have no locks, and their file systems no conditional writes. A process writes a claim of its own,
    then lists all claims: of two processes one at least sees the other's, and whoever sees one withdraws and
    tries again. That holds in every store whose lists show what was written before.
    """
    system, name = _at(place)
    folder, _, last = name.rpartition("/")
    folder = f"{folder}/.{last}.claims"
    until, tries = time.monotonic() + settings.lock_wait, 0
    while True:
        with _claim(system, place, folder, who) as others:
            if not others:
                yield
                return
        if time.monotonic() >= until:
            raise InputError(
                f"{place} must not be in use by another process",
                argument=argument,
                kind="file",
                found=f"there is a claim of {others[0]}, and {settings.lock_wait:g} seconds have passed",
                remedies=[Remedy(f"Run again later: a claim counts for {settings.claim_left:g} seconds.")],
            )
        tries += 1
        # Two that wait for equally long would meet again.
        time.sleep(random.uniform(0.02, 0.1 * min(tries, 10)))


@contextmanager
def _claim(system: Any, place: Address, folder: str, who: str) -> Iterator[list[str]]:
    """Claim a place, and tell who else does."""
    import pyarrow.fs as pafs

    mine = f"{folder}/{uuid.uuid4().hex}"
    with _explained(place):
        if place.scheme not in _OBJECTS:
            system.create_dir(folder, recursive=True)
        with system.open_output_stream(mine) as out:
            out.write(who.encode())
    try:
        with _explained(place):
            found = system.get_file_info(pafs.FileSelector(folder, allow_not_found=True))
            files = {info.base_name: info for info in found if info.type == pafs.FileType.File}
            own = files.pop(mine.rpartition("/")[2])
            others = []
            for info in files.values():
                if ((own.mtime_ns or 0) - (info.mtime_ns or 0)) / 1e9 > settings.claim_left:
                    _remove(system, info.path)
                else:
                    others.append(_content(system, info.path))
        yield others
    finally:
        _remove(system, mine)


def _content(system: Any, name: str) -> str:
    """Who made a claim; it may have been withdrawn since."""
    try:
        with system.open_input_file(name) as file:
            return str(file.read(300).decode(errors="replace"))
    except OSError:
        return "another process"


def _remove(system: Any, name: str) -> None:
    try:
        system.delete_file(name)
    except Exception:
        # It was not made; the first error is the one to tell.
        return


# Files of web servers are copied: servers need not send parts of a file.
_COPIES: dict[Address, Any] = {}
# For this number of seconds a copy is used without asking whether the file has changed.
_FRESH = 60.0


def _web_info(place: Address) -> Info:
    try:
        status = _downloaded(place).stat()
    except FileNotFoundError:
        return Info(0, 0, 0)
    return Info(stat.S_IFREG, status.st_size, status.st_mtime_ns)


def _downloaded(place: Address) -> Path:
    """The copy of a file of a web server."""
    from verax.common import web

    known = _COPIES.get(place)
    if known is None or (known.version and time.monotonic() - known.looked >= _FRESH):
        try:
            known = _COPIES[place] = web.fetch(place, known)
        except web.WrongAnswerError as error:
            raise OSError(errno.EIO, _scrubbed(str(error), place), str(place)) from None
        except web.DeniedError:
            _explain(place, Exception("forbidden"))
        except web.UnreachableError as error:
            _explain(place, Exception(f"cannot connect: {error}"))
    return Path(known.path)
