"""NumPy files: arrays by name (.npz) or alone (.npy), read a slice at a time and never unpickled."""

from __future__ import annotations

import difflib
import errno
import math
import os
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy

from verax._settings import settings
from verax.common.paths import UnchangedFiles, check_regular
from verax.errors import InputError, Remedy, passing, show
from verax.files.followed import event_column
from verax.files.naming import LOGITS, PROBS, TARGETS
from verax.files.predictions import Roles
from verax.inputs.reading import Reading

Array = np.ndarray[Any, Any]

_KEYS = {
    "weights": ("weights", "weight", "sample_weight", "sample_weights"),
    "groups": ("groups", "group"),
    "id": ("ids", "id"),
}
_CLASSES = ("classes", "class_names", "label_names", "labels_names", "names")
# No compression of zip archives is stronger.
_STRONGEST = 1032
# What zipfile and NumPy raise about broken content.
_BROKEN = (
    *(ValueError, EOFError, KeyError, TypeError, OverflowError, RuntimeError, SyntaxError),
    *(zipfile.BadZipFile, zlib.error),
)


class Stored:
    """One stored array: its shape and type are known, its rows are read from first to last."""

    path: Path
    member: str | None
    fortran: bool
    dtype: np.dtype[Any]

    def __init__(self, path: Path, member: str | None) -> None:
        self.path, self.member = path, member
        self.where: str = str(path) if member is None else f"{path}: array {show(member)}"
        self._unchanged = UnchangedFiles([path])
        self.shape: tuple[int, ...] = ()
        with self._errors(), self._open() as file:
            self.shape, self.fortran, self.dtype = _header(file)
            self._offset = file.tell()
            self._check_header()
            self._check_size()

    def refusal(self, requirement: str, argument: str = "path") -> InputError:
        """The error about this array."""
        return InputError(f"{self.where} {requirement}", argument=argument, kind="file", values=[self.shape])

    @property
    def _width(self) -> int:
        """How many numbers a row has."""
        return math.prod(self.shape[1:])

    def _check_header(self) -> None:
        if self.dtype.hasobject:
            raise self.refusal("holds Python objects, which are never unpickled. Save it as numbers or texts")
        if self.dtype.subdtype is not None or not self.dtype.itemsize:
            raise self.refusal(f"must hold numbers or texts; its type is {self.dtype}")
        if any(isinstance(n, bool) or n < 0 for n in self.shape):
            raise self.refusal(f"has an impossible shape, {self.shape}")

    def _check_size(self) -> None:
        """Refuse an array that claims to be larger than what is stored."""
        claimed = self._offset + math.prod(self.shape) * self.dtype.itemsize
        if self.member is None:
            stored = self.path.stat().st_size
        else:
            with self.path.open("rb") as file, zipfile.ZipFile(file) as archive:
                info = archive.getinfo(f"{self.member}.npy")
            stored = min(info.file_size, max(info.compress_size, 1) * _STRONGEST)
        if claimed > stored:
            raise self.refusal(f"must be as large as its header says ({claimed:,} bytes); it has {stored:,}")

    @contextmanager
    def _open(self) -> Iterator[IO[bytes]]:
        if self.member is None:
            with self.path.open("rb") as file:
                yield file
        else:
            with (
                self.path.open("rb") as file,
                zipfile.ZipFile(file) as archive,
                archive.open(f"{self.member}.npy") as member,
            ):
                yield member

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except InputError:
            raise
        except OSError as error:
            # A broken archive sends its reader to places that no file has.
            if error.errno not in (None, errno.EINVAL):
                raise
            raise self._unreadable(error) from None
        except _BROKEN as error:
            raise self._unreadable(error) from None

    def _unreadable(self, error: BaseException) -> InputError:
        self._unchanged.check()
        first = (str(error).splitlines() or [type(error).__name__])[0]
        return self.refusal(f"cannot be read; {first[:160]}")

    def read(self) -> Array:
        """All of it."""
        return next(self.slices(max(1, self.shape[0] if self.shape else 1)), np.zeros(self.shape, self.dtype))

    def slices(self, rows: int) -> Iterator[Array]:
        """Consecutive rows, in the byte order of this machine."""
        with self._errors(), self._open() as file:
            self._unchanged.check()
            if self.fortran and len(self.shape) > 1:
                parts = self._by_column(file, rows)
            else:
                parts = self._by_row(file, rows)
            for part in parts:
                yield part.astype(self.dtype.newbyteorder("="), copy=False)
            self._unchanged.check()

    def _by_row(self, file: IO[bytes], rows: int) -> Iterator[Array]:
        file.seek(self._offset)
        n_rows = self.shape[0] if self.shape else 1
        for start in range(0, n_rows, rows):
            n = min(rows, n_rows - start)
            part = self._buffer(n * self._width)
            _fill(file, part)
            yield part.reshape(n, *self.shape[1:]) if self.shape else part.reshape(())

    def _by_column(self, file: IO[bytes], rows: int) -> Iterator[Array]:
        """Rows of an array that is stored column after column."""
        n_rows, size = self.shape[0], self.dtype.itemsize
        # An archive cannot be read at any place without reading what comes before.
        whole = None
        if self.member is not None:
            whole = self._buffer(n_rows * self._width)
            file.seek(self._offset)
            _fill(file, whole)
            whole = whole.reshape(self._width, n_rows)
        for start in range(0, n_rows, rows):
            n = min(rows, n_rows - start)
            if whole is None:
                part = self._buffer(self._width * n).reshape(self._width, n)
                for j in range(self._width):
                    file.seek(self._offset + (j * n_rows + start) * size)
                    _fill(file, part[j])
            else:
                part = whole[:, start : start + n]
            yield part.T.reshape((n, *self.shape[1:]), order="F")

    def _buffer(self, n: int) -> Array:
        if n * self.dtype.itemsize > _memory():
            raise self.refusal(f"does not fit in memory; its shape is {self.shape}")
        return np.empty(n, self.dtype)


def _fill(file: IO[bytes], part: Array) -> None:
    """Read into an array all the bytes that it has room for."""
    view = memoryview(part.view(np.uint8))  # type: ignore[arg-type]
    while len(view):
        n = file.readinto(view)  # type: ignore[attr-defined]
        if not n:
            raise EOFError("it ends too early")
        view = view[n:]


def _memory() -> int:
    """The bytes of memory that this machine has."""
    if settings.memory is not None:
        return settings.memory
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return 2**62


def _header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    version = npy.read_magic(file)
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    return read(file)


def stored_arrays(path: Path) -> dict[str, Stored]:
    """The arrays of an .npz file by name, or the one of an .npy file under its file name."""
    check_regular(path)
    if path.suffix.lower() == ".npy":
        return {path.name: Stored(path, None)}
    try:
        with path.open("rb") as file, zipfile.ZipFile(file) as archive:
            members = [name[: -len(".npy")] for name in archive.namelist() if name.endswith(".npy")]
    except _BROKEN:
        kind = "a pickle, which is never opened" if _is_pickle(path) else "not an .npz file, or truncated"
        raise InputError(
            f"{path} is {kind}",
            argument="path",
            kind="file",
            remedies=[Remedy("Save arrays with numpy.savez(file, probs=p, labels=y).")],
        ) from None
    return {member: Stored(path, member) for member in members}


def _is_pickle(path: Path) -> bool:
    with path.open("rb") as file:
        first = file.read(2)
    return first[:1] == b"\x80" and first[1:] in (b"\x02", b"\x03", b"\x04", b"\x05")


def find_arrays(arrays: dict[str, Stored], request: Reading, path: Path) -> Roles:
    """Which array of an .npz file is what."""
    target = request.target
    if target is None and not any(name.lower() in TARGETS for name in arrays):
        target = event_column(arrays, stated=request.complete or request.time is not None)
    target = _one(arrays, target, TARGETS, "target", path)
    probs = array_of_probabilities(arrays, request, path)
    if len(request.columns) > 1:
        raise InputError(
            "must name one array of shape (N, K)", argument="probs", source=str(path), values=request.columns
        )

    def other(role: str) -> str | None:
        stated, keys = getattr(request, role), _KEYS[role]
        known = any(name.lower() in keys for name in arrays)
        return _one(arrays, stated, keys, role, path) if stated is not None or known else None

    groups = request.groups
    if isinstance(groups, tuple):
        groups = (_one(arrays, groups[0], (), "groups", path), _one(arrays, groups[1], (), "groups", path))
    for role, names in (("by", request.by), ("id", request.id if isinstance(request.id, tuple) else ())):
        for name in names:
            _one(arrays, name, (), role, path)
    return Roles(
        target,
        (probs,),
        weights=other("weights"),
        groups=groups if isinstance(groups, tuple) else other("groups"),
        by=request.by,
        id=request.id if isinstance(request.id, tuple) else other("id"),
        logits=request.logits,
        time=None if request.time is None else _one(arrays, request.time, (), "time", path),
    )


def array_of_probabilities(arrays: dict[str, Stored], request: Reading, path: Path) -> str:
    """Which array of an .npz file holds the probabilities, or the logits."""
    words = LOGITS if request.logits else PROBS
    return _one(arrays, request.columns[0] if request.columns else None, words, "probs", path)


def _one(arrays: dict[str, Stored], stated: str | None, words: tuple[str, ...], role: str, path: Path) -> str:
    names = list(arrays)
    if stated is not None:
        if stated in arrays:
            return stated
        near = difflib.get_close_matches(stated, names, n=1)
        raise InputError(
            f"There is no array {show(stated)} ({role})",
            argument=role,
            kind="missing",
            source=str(path),
            found="" if near else f"the file has {', '.join(map(show, names)) or 'none'}",
            values=[stated],
            remedies=[Remedy(f"Did you mean {show(name)}?") for name in near],
        )
    matches = [name for name in names if name.lower() in words]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise InputError(
            f"Several arrays may be the {role}",
            argument=role,
            source=str(path),
            found=", ".join(matches),
            values=matches,
            remedies=[passing("to choose", **{role: "NAME"})],
        )
    if role == "probs" and any(name.lower() in LOGITS for name in names):
        raise InputError(
            "The file has an array of logits and none of probabilities",
            argument="logits",
            kind="missing",
            source=str(path),
            remedies=[passing("to use it", logits=True)],
        )
    listed = ", ".join(f"{show(name)} {stored.shape}" for name, stored in arrays.items()) or "none"
    raise InputError(
        f"No array is called like {role} ({', '.join(words[:4])}, ...)",
        argument=role,
        kind="missing",
        source=str(path),
        found=f"the file has {listed}",
        remedies=[passing("to choose", **{role: "NAME"})],
    )


def stored_classes(arrays: dict[str, Stored], n_classes: int) -> tuple[Any, ...] | None:
    """The names of the classes, where an .npz file has them."""
    for name, stored in arrays.items():
        if name.lower() in _CLASSES and stored.shape == (n_classes,):
            return tuple(stored.read().tolist())
    return None
