"""Saved files of every kind, damaged: refused, or read as what was saved.

Kinds are found: every public class with `save` that something reads again, recorded rows, and what earlier
versions saved. Bytes are flipped, cut, swapped or repeated; JSON has other values, with a checksum that is
right or not. A file whose checksum is wrong must not be read as something else.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, NamedTuple
from zipfile import ZipFile

import numpy as np

import verax as vx
from attack import calls
from attack.law import UnlawfulError, lawful
from attack.stored import mutate
from verax.analyses.stored import _checksum
from verax.common.packing import MAGIC, _parts, dump, kind_at, load

SAVED = Path(__file__).parents[1] / "saved"


class Kind(NamedTuple):
    """A kind of saved file: one of them, and what reads it."""

    content: bytes
    read: Callable[[Path], Any]


@cache
def _folder() -> Path:
    return Path(mkdtemp(prefix="verax-attack-"))


@cache
def kinds() -> dict[str, Kind]:
    """The kinds of saved files by name."""
    found: dict[str, Kind] = {}
    for name, cls in calls.classes().items():
        if hasattr(cls, "save") and name != "Report":
            found[name] = Kind(Path(calls.saved(name)).read_bytes(), _reader(cls))
        if hasattr(cls, "from_bytes") and not hasattr(cls, "save"):
            found[name] = Kind(
                calls.example(name).to_bytes(), lambda path, cls=cls: cls.from_bytes(path.read_bytes())
            )
    found["recorded rows"] = Kind(_recorded(), lambda path: vx.evaluate(vx.scan(path)))
    return found | _of_earlier_versions()


def _reader(cls: Any) -> Callable[[Path], Any]:
    return cls.load if hasattr(cls, "load") else vx.load


def _recorded() -> bytes:
    handle = vx.scan(calls.frame(), target="y", probs="p_*", record=True)
    vx.evaluate(handle)
    handle.save(_folder() / "recorded.verax")
    return (_folder() / "recorded.verax").read_bytes()


def _of_earlier_versions() -> dict[str, Kind]:
    """One file of each kind that an earlier version saved."""
    found = {}
    for archive in sorted(SAVED.glob("*.zip")):
        with ZipFile(archive) as files:
            for name in files.namelist():
                content, kind = files.read(name), kind_of(files.read(name))
                if kind in _READERS:
                    found.setdefault(f"{kind} of {archive.stem}", Kind(content, _READERS[kind]))
    state = lzma.decompress((SAVED / "monitor-0.2.0.state.xz").read_bytes())
    return found | {"monitor of 0.2.0": Kind(state, vx.Monitor.load)}


_READERS: dict[str, Callable[[Path], Any]] = {
    "saved summaries": vx.load,
    "monitor": vx.Monitor.load,
    "verax recalibration": vx.results.Recalibration.load,
    "verax conformal": vx.results.Conformal.load,
}


def kind_of(content: bytes) -> str:
    """What verax calls the kind of a file; empty for others."""
    if content.startswith(MAGIC):
        return kind_at(content[:200])
    try:
        stored = json.loads(content)
    except ValueError:
        return ""
    return str(stored.get("format", "")) if isinstance(stored, dict) else ""


def attempt(rng: np.random.Generator) -> None:
    """One damaged file that is read, and used if it can be."""
    names = list(kinds())
    name = names[int(rng.integers(len(names)))]
    kind, path = kinds()[name], _folder() / "damaged.verax"
    signed = rng.random() < 0.5
    content, said = (_resigned if signed else _damaged)(rng, kind.content)
    path.write_bytes(content)
    found = lawful(lambda: used(kind.read(path)), f"{name}, {said}")
    if signed or isinstance(found, Exception) or content == kind.content:
        return
    path.write_bytes(kind.content)
    if not _alike(found, used(kind.read(path))) and not _without_checksum(kind.content):
        raise UnlawfulError(f"{name}, {said}: it was read as something else")


def used(result: Any) -> Any:
    """What a user does with what was read."""
    repr(result)
    return result.to_dict() if hasattr(result, "to_dict") else result


def _alike(one: Any, other: Any) -> bool:
    return json.dumps(one, default=repr, sort_keys=True) == json.dumps(other, default=repr, sort_keys=True)


def _without_checksum(content: bytes) -> bool:
    """Whether it is JSON of the first versions, which a changed digit may leave readable."""
    return not content.startswith(MAGIC) and "checksum" not in json.loads(content)


def _damaged(rng: np.random.Generator, content: bytes) -> tuple[bytes, str]:
    """Other bytes, whose checksum is wrong."""
    n, data = len(content), bytearray(content)
    at, to = sorted(int(i) for i in rng.integers(0, n, 2))
    way = int(rng.integers(7))
    if way == 0:
        data[at] ^= 1 << int(rng.integers(8))
        return bytes(data), f"a bit of byte {at} flipped"
    if way == 1:
        return content[:at], f"cut at {at}"
    if way == 2:
        return content[:at] + content[to:], f"without bytes {at} to {to}"
    if way == 3:
        return content[:to] + content[at:], f"bytes {at} to {to} twice"
    if way == 4:
        half = (to - at) // 2
        swapped = content[at + half : at + 2 * half] + content[at : at + half]
        return content[:at] + swapped + content[at + 2 * half :], f"two blocks from {at} swapped"
    if way == 5:
        data[at:to] = bytes(to - at)
        return bytes(data), f"zeros from {at} to {to}"
    return content + rng.bytes(int(rng.integers(1, 40))), "with more at the end"


def _resigned(rng: np.random.Generator, content: bytes) -> tuple[bytes, str]:
    """Other values, or another version, with a checksum that is right."""
    if content.startswith(MAGIC):
        about = json.loads(_parts(content)[0])
        version = about["version"]
        values = load(content, about["kind"], version=version)
        if rng.random() < 0.1:
            return dump(about["kind"], values, version=version + 1), "of the next version"
        changed = mutate(rng, values)
        changed = changed if isinstance(changed, dict) else {"values": changed}
        return dump(about["kind"], changed, version=version), "with other values, signed"
    stored = json.loads(content)
    key = list(stored)[int(rng.integers(len(stored)))]
    if rng.random() < 0.1:
        stored.pop(key)
    else:
        stored[key] = mutate(rng, stored[key])
    text = _text(stored)
    if "checksum" in stored:
        stored["checksum"] = _checksum(text)
    return _text(stored).encode("utf-8", "surrogatepass"), f"with another {key}, signed"


def _text(stored: Any) -> str:
    return json.dumps(stored, default=repr)
