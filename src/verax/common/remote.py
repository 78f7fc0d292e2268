"""Places in stores and on web servers, used like local paths."""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Generator, Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import IO, Any, Self

from verax.common.urls import Address, address_of, scheme_of

if sys.platform == "win32":
    from pathlib import WindowsPath as _LocalPath
else:
    from pathlib import PosixPath as _LocalPath


class RemotePath(_LocalPath):
    """A place as a path: its parts are the scheme, the host or bucket, and the names below."""

    def __str__(self) -> str:
        return str(self.address)

    def __fspath__(self) -> str:
        return str(self)

    @property
    def address(self) -> Address:
        """The address of the place."""
        return Address(self.parts[0][:-1], self.parts[1], self.parts[2:])

    @property
    def top(self) -> Self:
        """The bucket or host."""
        return type(self)(*self.parts[:2])

    def info(self) -> Any:
        """The state of the place, from its store."""
        from verax.common import stores

        return stores.seen(self.address)

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        return state(self, self.info())

    def lstat(self) -> os.stat_result:
        return self.stat()

    def exists(self, *, follow_symlinks: bool = True) -> bool:
        return bool(self.info().kind)

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        return bool(self.info().kind == stat.S_IFDIR)

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        return bool(self.info().kind == stat.S_IFREG)

    def is_symlink(self) -> bool:
        return False

    def resolve(self, strict: bool = False) -> Self:
        return self

    def open(  # type: ignore[override]
        self,
        mode: str = "r",
        buffering: int = -1,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
    ) -> IO[Any]:
        """Its content, to be read."""
        import io

        from verax.common import stores

        if set(mode) & set("wax+"):
            raise OSError(errno.EROFS, "Places are written whole", str(self))
        content = io.BufferedReader(stores.opened(self.address))
        return content if "b" in mode else io.TextIOWrapper(content, encoding, errors, newline)

    def iterdir(self) -> Generator[Self, None, None]:
        from verax.common import stores

        yield from (self / name for name, _ in stores.listed(self.address, recursive=False))

    def walk(self, *_: Any, **__: Any) -> Iterator[tuple[Self, list[str], list[str]]]:
        """The folders from here on, each with the names of its folders and files, as `os.walk` has them."""
        from verax.common import stores

        inside: dict[str, tuple[list[str], list[str]]] = {"": ([], [])}
        for name, is_folder in stores.listed(self.address, recursive=True):
            parts = name.split("/")
            for i in range(1, len(parts) + is_folder):
                above, folder = "/".join(parts[: i - 1]), "/".join(parts[:i])
                if folder not in inside:
                    inside[folder] = ([], [])
                    inside[above][0].append(parts[i - 1])
            if not is_folder:
                inside["/".join(parts[:-1])][1].append(parts[-1])
        waiting = [""]
        while waiting:
            name = waiting.pop()
            folders, names = inside[name]
            yield (self / name if name else self), folders, names
            waiting += [f"{name}/{folder}".lstrip("/") for folder in reversed(folders)]

    def glob(self, pattern: str, **_: Any) -> Iterator[Self]:  # type: ignore[override]
        """Places below this one that match a pattern."""
        places: list[Self] = [self]
        parts = pattern.split("/")
        for part in parts:
            if part == "**":
                places = [where for place in places for where, _, _ in place.walk()]
            elif has_marks(part):
                places = [name for place in places for name in place.iterdir() if _fits(name.name, part)]
            else:
                places = [place / part for place in places]
        listed = has_marks(parts[-1])
        yield from (place for place in dict.fromkeys(places) if listed or place.exists())

    def rglob(self, pattern: str, **_: Any) -> Iterator[Self]:  # type: ignore[override]
        """Places at any depth below this one that match a pattern."""
        return self.glob(f"**/{pattern}")

    def mkdir(self, mode: int = 0o777, parents: bool = False, exist_ok: bool = False) -> None:
        from verax.common import stores

        stores.make_folder(self.address)


def _fits(name: str, pattern: str) -> bool:
    return fnmatchcase(name, pattern) and (pattern.startswith(".") or not name.startswith("."))


def has_marks(text: str) -> bool:
    """Whether a text is a pattern of names."""
    return any(mark in text for mark in "*?[")


def state(place: RemotePath, info: Any) -> os.stat_result:
    """The state of a place as that of a file."""
    if not info.kind:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(place))
    known = (info.kind | 0o644, hash(place) & 0x7FFFFFFF, 0, 1, 0, 0, info.size, 0, info.mtime_ns // 10**9, 0)
    return os.stat_result(known, {"st_mtime_ns": info.mtime_ns})


def path_of(name: str | os.PathLike[str]) -> Path:
    """The path that a name or a URL stands for: of this machine, or of a place.

    >>> str(path_of("s3://key:secret@bucket/preds.csv")), str(path_of(Path("s3://bucket/preds.csv")))
    ('s3://bucket/preds.csv', 's3://bucket/preds.csv')
    >>> path_of("file:///tmp/preds.csv").name
    'preds.csv'
    """
    text = os.fspath(name)
    if isinstance(name, Path):
        first = name.parts[0] if name.parts and not name.is_absolute() else ""
        # pathlib leaves one slash of `s3://`.
        if isinstance(name, RemotePath) or len(first) < 3 or first[-1] != ":":
            return name
        text = f"{first}//{'/'.join(name.parts[1:])}"
    scheme = scheme_of(text)
    if not scheme:
        return Path(name)
    if scheme == "file":
        from urllib.parse import urlsplit
        from urllib.request import url2pathname

        return Path(url2pathname(urlsplit(text).path))
    address = address_of(text)
    return RemotePath(f"{address.scheme}:", address.host, *address.names)
