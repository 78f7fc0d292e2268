"""Files named by a caller: whether they can be read, and whether they change while they are."""

from __future__ import annotations

import difflib
import errno
import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from glob import glob
from pathlib import Path
from typing import Any

from verax.common.remote import RemotePath, has_marks, path_of, state
from verax.common.urls import WEB
from verax.errors import InputError, Remedy, show

# The file of a model, or several.
Files = Path | tuple[Path, ...]

# The names of hidden files and folders, and those of files that programs leave while they write.
_HIDDEN = re.compile(
    r"[._~#].*|.*(~|#|\.(tmp|temp|part|partial|crdownload|inprogress|swp|crc|lock|bak))",
    re.IGNORECASE | re.DOTALL,
)

# What is wrong with a name; everything else (no permission, disk full) is a system error.
_WRONG_NAME = {
    errno.ENOENT,
    errno.ENOTDIR,
    errno.EEXIST,
    errno.EISDIR,
    errno.ENAMETOOLONG,
    errno.ELOOP,
    errno.EINVAL,
}


@contextmanager
def refusing_wrong_names(path: str | Path, argument: str = "path") -> Iterator[None]:
    """Turn the system's complaints about a name into an InputError; other failures stay `OSError`s."""
    try:
        yield
    except InputError:
        raise
    except OSError as error:
        if error.errno not in _WRONG_NAME:
            raise
        raise _wrong_name(path, argument, str(error.strerror)) from None
    except UnicodeEncodeError:
        raise _wrong_name(path, argument, "A character that file names cannot have") from None
    except ValueError:
        # Python refuses a null character before the system sees it.
        if "\0" not in str(path):
            raise
        raise _wrong_name(path, argument, "A null character in a name") from None


def _wrong_name(path: str | Path, argument: str, reason: str) -> InputError:
    return InputError(
        f"{show(str(path), 200)} cannot be used: {reason}", argument=argument, kind="file", values=[str(path)]
    )


def check_exists(path: Path) -> os.stat_result:
    """The status of a file or folder; refuse a missing one, naming a similar one."""
    with refusing_wrong_names(path):
        try:
            return path.stat()
        except (FileNotFoundError, NotADirectoryError):
            pass
    missing = (
        path.top
        if isinstance(path, RemotePath) and path.address.scheme not in WEB and not path.top.exists()
        else path
    )
    raise InputError(
        f"There is no {'file' if missing is path else 'bucket'} {show(str(missing), 200)}",
        argument="path",
        kind="missing",
        values=[str(path)],
        remedies=[Remedy(f"Did you mean {name}?") for name in _alike(path)],
    )


def _alike(path: Path) -> list[str]:
    """A name beside `path` that is much like it."""
    try:
        names = [sibling.name for sibling in path.parent.iterdir()]
    except (OSError, InputError):
        return []
    return difflib.get_close_matches(path.name, names, n=1)


def check_regular(path: Path) -> None:
    """Refuse anything but a regular file with content."""
    status = refuse_special(path)
    if stat.S_ISDIR(status.st_mode):
        reason = "is a folder; a file is needed"
    elif not status.st_size:
        reason = "is empty"
    else:
        return
    raise InputError(f"{path} {reason}", argument="path", kind="file", values=[str(path)])


def refuse_special(path: Path, remedy: str = "Write what it gives to a file.") -> os.stat_result:
    """Refuse a pipe, a device or a socket, before anything waits for it; the state of a file or folder."""
    status = check_exists(path)
    if not stat.S_ISDIR(status.st_mode) and not stat.S_ISREG(status.st_mode):
        raise InputError(
            f"{path} is not a regular file, and files are read more than once",
            argument="path",
            kind="file",
            values=[str(path)],
            remedies=[Remedy(remedy)],
        )
    return status


def as_path(path: object, argument: str = "path") -> Path:
    """The name or URL of a file as a path; others are refused."""
    if not isinstance(path, (str, os.PathLike)):
        raise InputError("must be the name of a file", argument=argument, kind="type", found=show(path))
    try:
        named = path if isinstance(path, Path) else os.fspath(path)
    except TypeError:
        named = b""
    if isinstance(named, bytes):
        raise InputError("must have a name that is a text", argument=argument, kind="type", found=show(path))
    return path_of(named)


def matching(source: str | Path) -> list[Path]:
    """The file or folder of that name, or those that fit the pattern, in the order of their names.

    Hidden and temporary files that fit are left out.
    """
    path = as_path(source)
    fitting = _fitting(path)
    paths = [file for file in fitting if not is_hidden(file.name)] or fitting or [path]
    for file in paths:
        refuse_special(file)
    return paths


def is_hidden(name: str) -> bool:
    """Whether a file is hidden or temporary by its name.

    >>> [is_hidden(name) for name in ("_SUCCESS", ".a.csv.crc", "a.csv.tmp", "~$a.xlsx", "a.csv")]
    [True, True, True, True, False]
    """
    return _HIDDEN.fullmatch(name) is not None


def n_hidden_among(source: str) -> int:
    """The number of hidden and temporary files that fit a pattern beside others."""
    hidden = [is_hidden(file.name) for file in _fitting(as_path(source))]
    return 0 if all(hidden) else sum(hidden)


def _fitting(path: Path) -> list[Path]:
    """What fits a pattern, in the order of the names; nothing where it is the name of a file."""
    with refusing_wrong_names(path):
        if not has_marks(str(path)) or path.exists():
            return []
        if isinstance(path, RemotePath):
            return sorted(path.top.glob("/".join(path.parts[2:])))
        return sorted(Path(name) for name in glob(str(path), recursive=True))


def arrow_file(path: Path) -> Any:
    """A file as Arrow reads it: through ordinary reads, never mapped into memory."""
    if isinstance(path, RemotePath):
        from verax.common import stores

        return stores.opened(path.address)
    import pyarrow as pa

    return pa.OSFile(str(path))


def called(paths: Files) -> str:
    """The common name of the files of a model.

    >>> called(Path("a.csv")), called((Path("1.csv"), Path("2.csv")))
    ('a.csv', '1.csv and 1 more')
    """
    if isinstance(paths, Path) or len(paths) == 1:
        return str(paths if isinstance(paths, Path) else paths[0])
    return f"{paths[0]} and {len(paths) - 1:,} more"


def files_named(source: object) -> tuple[list[Path], str] | None:
    """The files that a path, a pattern or a list of them names, and their common name.

    None where it names no files.
    """
    if isinstance(source, (str, Path)):
        return matching(source), str(as_path(source))
    if isinstance(source, (list, tuple)) and source and all(isinstance(s, (str, Path)) for s in source):
        paths = [path for name in source for path in matching(name)]
        return paths, called(tuple(paths))
    return None


class UnchangedFiles:
    """Files as they were when first seen; `check` refuses those that have been written to since.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "a.txt")
    >>> _ = path.write_text("before")
    >>> files = UnchangedFiles([path])
    >>> files.check()
    >>> _ = path.write_text("and after")
    >>> try:
    ...     files.check()
    ... except InputError as error:
    ...     print(error.requirement)
    The file changed while it was read
    """

    def __init__(self, paths: Iterable[str | Path]) -> None:
        self._seen = _states(list(paths))

    @property
    def n_bytes(self) -> int:
        """The number of bytes on disk."""
        return sum(state[_SIZE] for state in self._seen.values() if state is not None)

    def check(self) -> None:
        """Refuse files that have changed."""
        now = _states(list(self._seen))
        for path, before in self._seen.items():
            if now[path] != before:
                raise InputError(
                    "The file changed while it was read",
                    argument="path",
                    kind="file",
                    source=str(path),
                    remedies=[Remedy("Read it again when it is complete.")],
                )


_SIZE = 2


def _states(paths: Sequence[str | Path]) -> dict[str | Path, tuple[int, ...] | None]:
    places = [path for path in paths if isinstance(path, RemotePath)]
    remote: dict[str | Path, tuple[int, ...] | None] = {}
    if places:
        from verax.common import stores

        for place, info in zip(places, stores.infos([place.address for place in places]), strict=True):
            remote[place] = _marks(state(place, info)) if info.kind else None
    return {path: remote[path] if path in remote else _state(path) for path in paths}


def _state(path: str | Path) -> tuple[int, ...] | None:
    try:
        return _marks(os.stat(path))
    except FileNotFoundError:
        return None


def _marks(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
