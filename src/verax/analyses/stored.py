"""Fitted results as JSON files: written strictly, and read with every part checked."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any, ClassVar, NoReturn, TypeVar

from verax.common.paths import check_regular
from verax.common.results import Result
from verax.common.strictjson import to_json
from verax.display.writing import written
from verax.errors import InputError, show

T = TypeVar("T")
# A larger file is not one of ours.
_LARGEST = 2**28


class StoredAsJson(Result):
    """A result that is kept in a JSON file, which names its format, the version and the classes."""

    # The name and the version of the format.
    _kind: ClassVar[tuple[str, int]]
    _facts: ClassVar[tuple[str, ...]] = ("_format", "_version", "_verax")

    @property
    def _format(self) -> str:
        return self._kind[0]

    @property
    def _version(self) -> int:
        return self._kind[1]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a JSON file that `load` reads; an older file is replaced when the new one is complete.

        Parameters
        ----------
        path : str or path
            The file.
        """
        facts = self._as_dict()
        facts = {name: facts[name] for name in ("format", "version", *facts)}
        text = _text_of({**facts, _CHECKSUM: _checksum(_text_of(facts))})
        with written(path) as new:
            new.write_text(text, encoding="utf-8", newline="\n")


def _text_of(facts: Mapping[str, Any]) -> str:
    """The file's text. Class names must be what JSON gives back as it was."""
    for name in facts["classes"] or ():
        if not isinstance(name, (str, bool, int, float)) or name != name:
            raise InputError(
                "must be texts or numbers, to be stored as JSON",
                argument="classes",
                kind="type",
                found=f"one is a {type(name).__name__}",
                values=[name],
            )
    return to_json(facts) + "\n"


# The first versions of the formats had no checksum.
_CHECKSUM, _WITHOUT = "checksum", 1


def _checksum(text: str) -> str:
    """A checksum of a JSON object without its checksum: of every digit, but not of the layout."""
    values = json.loads(text, parse_float=str, parse_int=str)
    values.pop(_CHECKSUM, None)
    plain = json.dumps(values, sort_keys=True, separators=(",", ":"))
    return blake2b(plain.encode(), digest_size=16).hexdigest()


def read_stored(
    path: Path, kind: tuple[str, int], what: str, read: Callable[[dict[str, Any]], T], *, oldest: int = 1
) -> T:
    """Read a file of that format and version, or of an older one, by `read`; errors call it `what`."""
    form, version = kind

    def unfit(problem: str) -> InputError:
        return InputError(
            f"{path} must be a {what} that verax saved", argument="path", kind="file", found=problem
        )

    check_regular(path)
    if path.stat().st_size > _LARGEST:
        raise unfit("it is too large")
    try:
        text = path.read_bytes().decode("utf-8")
        stored = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        raise unfit("it is no JSON") from None
    if not isinstance(stored, dict) or stored.get("format") != form:
        raise unfit("it is another kind of JSON file")
    found = stored.get("version")
    if type(found) is not int or not oldest <= found <= version:
        raise unfit(f"its version is {show(found)}, and this verax knows {version}")
    checksum = stored.pop(_CHECKSUM, None)
    if checksum is None and found != _WITHOUT:
        raise unfit("its checksum is missing: it was changed")
    if checksum is not None and checksum != _checksum(text):
        raise unfit("its checksum differs: it was changed or damaged")
    try:
        return read(stored)
    except InputError as error:
        raise error.replace(source=str(path)) from None
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise unfit(f"some part is missing or of another type ({error})") from None


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")
