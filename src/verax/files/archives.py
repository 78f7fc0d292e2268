"""NumPy files: arrays by name (.npz) or alone (.npy), a slice at a time and never unpickled."""

from __future__ import annotations

import difflib
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy

from verax.errors import InputError
from verax.files.finding import LOGITS, PROBS, TARGETS
from verax.files.predictions import Request, Roles

Array = np.ndarray[Any, Any]

_KEYS = {
    "weights": ("weights", "weight", "sample_weight", "sample_weights"),
    "groups": ("groups", "group"),
    "id": ("ids", "id"),
}
_CLASSES = ("classes", "class_names", "label_names", "labels_names", "names")


class Stored:
    """One stored array: its shape and type are known, its rows are read from first to last."""

    def __init__(self, path: Path, member: str | None) -> None:
        self.path, self.member = path, member
        self.where = str(path) if member is None else f"{path}: array {member!r}"
        with self._open() as file:
            self.shape, self.fortran, self.dtype = _header(file, self.where)
            self._offset = file.tell()

    @contextmanager
    def _open(self) -> Iterator[IO[bytes]]:
        if self.member is None:
            with self.path.open("rb") as file:
                yield file
        else:
            with zipfile.ZipFile(self.path) as archive, archive.open(f"{self.member}.npy") as member:
                yield member

    def read(self) -> Array:
        """All of it."""
        with _complaints(self.where), self._open() as file:
            _header(file, self.where)
            flat = np.frombuffer(self._bytes(file, int(np.prod(self.shape, dtype=np.int64))), self.dtype)
        return flat.reshape(self.shape[::-1]).T if self.fortran else flat.reshape(self.shape)

    def slices(self, rows: int) -> Iterator[Array]:
        """Consecutive rows: mapped where the array is a file of its own, else read on."""
        starts = range(0, self.shape[0], rows)
        if self.fortran and len(self.shape) > 1:
            whole = self._mapped(0, None) if self.member is None else self.read()
            yield from (whole[start : start + rows] for start in starts)
        elif self.member is None:
            yield from (self._mapped(start, min(rows, self.shape[0] - start)) for start in starts)
        else:
            width = int(np.prod(self.shape[1:], dtype=np.int64))
            with _complaints(self.where), self._open() as file:
                _header(file, self.where)
                for start in starts:
                    n = min(rows, self.shape[0] - start)
                    yield np.frombuffer(self._bytes(file, n * width), self.dtype).reshape(n, *self.shape[1:])

    def _mapped(self, start: int, n: int | None) -> Array:
        """Rows of a file, mapped into memory for as long as somebody holds them."""
        shape = self.shape if n is None else (n, *self.shape[1:])
        offset = self._offset + start * int(np.prod(self.shape[1:], dtype=np.int64)) * self.dtype.itemsize
        order = "F" if self.fortran else "C"
        with _complaints(self.where):
            return np.memmap(self.path, self.dtype, "r", offset, shape, order)  # type: ignore[call-overload, no-any-return]

    def _bytes(self, file: IO[bytes], count: int) -> bytes:
        size = count * self.dtype.itemsize
        data = file.read(size)
        if len(data) < size:
            raise EOFError("it ends too early")
        return data


@contextmanager
def _complaints(where: str) -> Iterator[None]:
    try:
        yield
    except InputError:
        raise
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile, NotImplementedError) as error:
        raise InputError(f"{where} cannot be read: {str(error).splitlines()[0]}.", argument="path") from None


def _header(file: IO[bytes], where: str) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    with _complaints(where):
        version = npy.read_magic(file)
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, fortran, dtype = read(file)
    if dtype.hasobject:
        raise InputError(
            f"{where} holds Python objects, which are never unpickled. Save it as numbers or texts.",
            argument="path",
        )
    return shape, fortran, dtype


def stored_arrays(path: Path) -> dict[str, Stored]:
    """The arrays of an .npz file by name, or the one of an .npy file under its file name."""
    if path.suffix.lower() == ".npy":
        return {path.name: Stored(path, None)}
    try:
        with zipfile.ZipFile(path) as archive:
            members = [name[: -len(".npy")] for name in archive.namelist() if name.endswith(".npy")]
    except (zipfile.BadZipFile, OSError):
        kind = "a pickle, which is never opened" if _is_pickle(path) else "no .npz file, or a truncated one"
        raise InputError(
            f"{path} is {kind}. Save arrays with numpy.savez(file, probs=p, labels=y).", argument="path"
        ) from None
    return {member: Stored(path, member) for member in members}


def _is_pickle(path: Path) -> bool:
    with path.open("rb") as file:
        first = file.read(2)
    return first[:1] == b"\x80" and first[1:] in (b"\x02", b"\x03", b"\x04", b"\x05")


def find_arrays(arrays: dict[str, Stored], request: Request, path: Path) -> Roles:
    """Which array of an .npz file is what."""
    words = LOGITS if request.logits else PROBS
    found = {
        "target": _one(arrays, request.target, TARGETS, "target", path),
        "probs": _one(arrays, request.probs[0] if request.probs else None, words, "probs", path),
    }
    if len(request.probs) > 1:
        raise InputError(f"{path}: probs must name one array (N, K).", argument="probs")
    for role, keys in _KEYS.items():
        asked = getattr(request, role)
        known = [name for name in arrays if name.lower() in keys]
        found[role] = _one(arrays, asked, keys, role, path) if asked is not None or known else None
    for name in request.by:
        _one(arrays, name, (), "by", path)
    target, probs = found["target"], found["probs"]
    assert target is not None
    assert probs is not None
    return Roles(
        target,
        (probs,),
        None,
        found["weights"],
        found["groups"],
        request.by,
        found["id"],
        request.logits,
    )


def _one(
    arrays: dict[str, Stored], asked: str | None, words: tuple[str, ...], role: str, path: Path
) -> str | None:
    names = list(arrays)
    if asked is not None:
        if asked in arrays:
            return asked
        near = difflib.get_close_matches(asked, names, n=1)
        hint = f"Did you mean {near[0]!r}?" if near else f"It has {', '.join(names) or 'none'}."
        raise InputError(f"{path} has no array {asked!r} ({role}). {hint}", argument=role)
    found = [name for name in names if name.lower() in words]
    if len(found) == 1:
        return found[0]
    listed = ", ".join(f"{name} {stored.shape}" for name, stored in arrays.items()) or "none"
    if found:
        raise InputError(
            f"{path} has several arrays that may be the {role}: {', '.join(found)}. "
            f"Pass {role}=... to choose.",
            argument=role,
        )
    if role == "probs" and any(name.lower() in LOGITS for name in names):
        raise InputError(f"{path} has an array of logits. Pass logits=True to use it.", argument="logits")
    raise InputError(
        f"{path} has no array that is called like {role} ({', '.join(words[:4])}, ...); it has {listed}. "
        f"Pass {role}=...",
        argument=role,
    )


def stored_classes(arrays: dict[str, Stored], n_classes: int) -> tuple[Any, ...] | None:
    """The names of the classes, where an .npz file has them."""
    for name, stored in arrays.items():
        if name.lower() in _CLASSES and stored.shape == (n_classes,):
            return tuple(stored.read().tolist())
    return None
