"""Tables of TOML files, and values as TOML."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from verax.errors import InputError, show

# A key that needs no quotes.
_BARE = re.compile(r"[A-Za-z0-9_-]+")
PROJECT = "pyproject.toml"
# The file of a folder that says how its files are read.
CONFIG = "verax.toml"


def table_of(path: str | os.PathLike[str], tool: str) -> dict[str, Any]:
    """The keys of a TOML file; of `pyproject.toml`, those of the table of a tool."""
    if not isinstance(path, (str, os.PathLike)):
        raise InputError("must be the name of a file", argument="path", kind="type", found=show(path))
    file = Path(path)
    try:
        document = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(
            f"The file {file} cannot be read",
            argument="config",
            kind="file",
            found=error.strerror or str(error),
        ) from None
    except ValueError as error:
        raise InputError(
            f"The file {file} must be TOML", argument="config", kind="file", found=str(error)
        ) from None
    if file.name != PROJECT:
        return document
    tools = document.get("tool", {})
    table = tools.get(tool) if isinstance(tools, dict) else None
    if not isinstance(table, dict):
        raise InputError(f"The file {file} must have a table [tool.{tool}]", argument="config", kind="file")
    return table


def beside(file: str | os.PathLike[str], text: str) -> str:
    """A path that is relative to the folder of a file, also as name=path; addresses stay as they are."""
    folder = Path(file).parent
    name, equals, path = text.rpartition("=")
    if equals and (folder / text).exists():
        name, equals, path = "", "", text
    if "://" in path or Path(path).is_absolute() or folder == Path():
        return text
    return f"{name}{equals}{folder / path}"


def to_toml(value: Any) -> str:
    """A value as TOML.

    >>> to_toml(("a", 1, True)), to_toml({"model a": "x"})
    ('["a", 1, true]', '{"model a" = "x"}')
    """
    if isinstance(value, Mapping):
        inside = (f"{_key(str(name))} = {to_toml(member)}" for name, member in value.items())
        return f"{{{', '.join(inside)}}}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(to_toml, value))}]"
    if isinstance(value, (bool, int, float)):
        return json.dumps(value)
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else to_toml(name)
