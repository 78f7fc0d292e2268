"""Ids of groups as keyed digests in saved files.

Without the key nobody can tell whose they are, or try all names; with the key the same ids still meet when
files are merged. The key is in a file of its own, which need not leave the building.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from verax.common.caching import cached_property
from verax.common.checks import check_choice
from verax.common.ids import id_text
from verax.errors import InputError, Remedy, VeraxError

WAYS = ("keyed", "plain", "none")
# Names the file of the key.
VARIABLE = "VERAX_IDS_KEY"
_MARK, _BYTES = "id:", 32
_WAY: ContextVar[str] = ContextVar("ids", default="keyed")
# Makes the key that ids are stored with, where one is first needed; None while they are stored plainly.
_KEY: ContextVar[Callable[[], IdKey] | None] = ContextVar("key of ids", default=None)


@dataclass(frozen=True)
class IdKey:
    """A key; its tag tells it from others, and does not tell it."""

    secret: bytes

    @cached_property
    def tag(self) -> str:
        """What ids of this key begin with."""
        return f"{_MARK}{blake2b(self.secret, digest_size=4, person=b'tag').hexdigest()}:"

    def digests(self, labels: np.ndarray[Any, Any], fields: int | None = None) -> np.ndarray[Any, Any]:
        """The digest of each label, of one kind or of the first `fields` of two; digests stay."""
        names = labels.dtype.names
        if names is not None:
            return _by_field(
                {n: self.digests(labels[n]) if n in names[:fields] else labels[n] for n in names}
            )
        if tag_of(labels):
            return labels
        texts = [self.tag + self._digest(id_text(label)) for label in labels.tolist()]
        return np.array(texts, str) if texts else labels

    def _digest(self, text: str) -> str:
        data = text.encode("utf-8", "surrogatepass")
        return blake2b(data, digest_size=12, key=self.secret).hexdigest()


def _by_field(fields: dict[str, np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
    first = next(iter(fields.values()))
    made = np.empty(first.shape, [(name, column.dtype) for name, column in fields.items()])
    for name, column in fields.items():
        made[name] = column
    return made


def key_file() -> Path:
    """The file of the key."""
    home = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(os.environ.get(VARIABLE) or Path(home, "verax", "ids.key"))


def kept_key() -> IdKey | None:
    """The key of this user; None if there is none yet."""
    path = key_file()
    try:
        secret = bytes.fromhex(path.read_text(encoding="ascii"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise _no_key(path, str(error.strerror)) from None
    except ValueError:
        raise _no_key(path, "it is another kind of file") from None
    if len(secret) != _BYTES:
        raise _no_key(path, f"it holds {len(secret)} bytes, and a key has {_BYTES}")
    return IdKey(secret)


def made_key() -> IdKey:
    """The key of this user, which is made if there is none yet."""
    path = key_file()
    try:
        if not path.exists():
            _make(path)
    except (FileExistsError, FileNotFoundError, NotADirectoryError):
        raise _no_key(path, "its folder cannot be made") from None
    except OSError as error:
        raise _no_key(path, str(error.strerror)) from None
    key = kept_key()
    if key is None:
        raise _no_key(path, "its folder cannot be made")
    return key


def _key_of_nobody() -> IdKey:
    """A key that nobody keeps: groups are told apart within a file, and by no other."""
    return IdKey(secrets.token_bytes(_BYTES))


def _make(path: Path) -> None:
    """Make a key that only this user can read; of several processes one does, and its file is there whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with open(handle, "w") as file:
            file.write(secrets.token_hex(_BYTES) + "\n")
        with suppress(FileExistsError):
            os.link(new, path)
    finally:
        new.unlink(missing_ok=True)


def _no_key(path: Path, found: str) -> InputError:
    return InputError(
        f"The key of ids cannot be used, {path}",
        argument="ids",
        kind="file",
        found=found,
        remedies=[Remedy(f"Name another file in {VARIABLE}, or save ids plainly or not at all.")],
    )


@contextmanager
def saving_ids(way: str | None) -> Iterator[None]:
    """Save ids in this way; None for the way around this one."""
    if way is None:
        yield
        return
    check_choice("ids", way, WAYS)
    token = _WAY.set(way)
    try:
        yield
    finally:
        _WAY.reset(token)


@contextmanager
def storing_ids(way: str | None = None) -> Iterator[None]:
    """What is packed meanwhile has ids as they are to be saved."""
    with saving_ids(way):
        now = _WAY.get()
    token = _KEY.set(None if now == "plain" else cache(_key_of_nobody if now == "none" else made_key))
    try:
        yield
    finally:
        _KEY.reset(token)


def to_store(labels: np.ndarray[Any, Any], fields: int | None = None) -> np.ndarray[Any, Any] | None:
    """Labels as they are stored now; None where they stay as they are."""
    key = _KEY.get()
    return None if key is None or not len(labels) else key().digests(labels, fields)


def tag_of(labels: np.ndarray[Any, Any] | None) -> str:
    """What marks the key of labels of one kind; empty for plain ones."""
    text = "" if labels is None or not len(labels) else str(labels[0])
    return text[: text.find(":", len(_MARK)) + 1] if text.startswith(_MARK) else ""


def comparable(a: Any, b: Any) -> tuple[Any, Any]:
    """Labels of two files so that the same ids are the same; other keys are refused."""
    if a is None or b is None or not len(a) or not len(b):
        return a, b
    names = a.dtype.names
    if names is not None and names == b.dtype.names:
        pairs = {name: comparable(a[name], b[name]) for name in names}
        return tuple(_by_field({n: pair[i] for n, pair in pairs.items()}) for i in (0, 1))  # type: ignore[return-value]
    tags = tag_of(a), tag_of(b)
    if tags[0] == tags[1]:
        return a, b
    key = kept_key()
    if key is None or not set(tags) <= {"", key.tag}:
        raise VeraxError(
            "Groups cannot be matched: their ids were saved with another key, or without ids. Save the parts "
            f"again with one key (its file is {key_file()}, or what {VARIABLE} names), or with plain ids."
        )
    return key.digests(a), key.digests(b)
