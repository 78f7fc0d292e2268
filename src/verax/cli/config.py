"""`verax.toml` at the command line: the file that says how files are read, where options do not."""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass
from pathlib import Path

from verax.common.toml import CONFIG, PROJECT, beside, table_of, to_toml
from verax.errors import InputError, Remedy, show
from verax.inputs.reading import OPTIONS, Reading

NAME = CONFIG
# Typed in place of a file to read none.
NONE = "none"


@dataclass(frozen=True)
class Config:
    """The content of a TOML file.

    Attributes
    ----------
    path : str
        The file, as it is called from the current folder.
    reading : Reading
        How rows are read.
    files : tuple of str
        The files to read where none is typed.
    """

    path: str
    reading: Reading
    files: tuple[str, ...] = ()

    @classmethod
    def of(cls, path: str) -> Config:
        """The keys of `verax.toml`, or of the table `[tool.verax]` of `pyproject.toml`."""
        reading = Reading.from_toml(path)
        given = table_of(path, "verax").get("files", [])
        files = [given] if isinstance(given, str) else given
        if not isinstance(files, list) or not all(isinstance(file, str) for file in files):
            raise InputError(
                f"The key 'files' in {path} must be the name of a file, or a list of names",
                argument="config",
                kind="file",
                found=f"it is {show(given)}",
                remedies=[Remedy('Write files = ["preds.csv"].')],
            )
        return cls(path, reading, tuple(beside(path, file) for file in files))

    @classmethod
    def found(cls, typed: str | None) -> Config | None:
        """The file that was typed, or the nearest one from the current folder up to its repository's root."""
        if typed is not None:
            return None if typed == NONE else cls.of(typed)
        folder = Path.cwd()
        for place in _searched(folder):
            for file in (place / NAME, place / PROJECT):
                if file.is_file() and (file.name == NAME or _has_table(file)):
                    return cls.of(os.path.relpath(file, folder))
        return None


def _searched(folder: Path) -> list[Path]:
    """The folder and those above it up to the root of its repository; without a repository, itself alone."""
    upward = [folder, *folder.parents]
    # A worktree and a submodule have a file of that name.
    root = next((i for i, place in enumerate(upward) if (place / ".git").exists()), 0)
    return upward[: root + 1]


def _has_table(project: Path) -> bool:
    """Whether a project has the table `[tool.verax]`; a file that cannot be read has none."""
    try:
        return "verax" in tomllib.loads(project.read_text(encoding="utf-8")).get("tool", {})
    except (OSError, ValueError, AttributeError):
        return False


def with_lines(error: InputError, path: str) -> InputError:
    """An error with the lines of a TOML file that would settle it."""
    ways = [
        " and ".join(
            f"{name} = {_example(name) if _is_open(value) else to_toml(value)}"
            for name, value in remedy.options.items()
            if name in OPTIONS
        )
        for remedy in error.remedies
    ]
    if not any(ways):
        return error
    text = f"Or write {' or '.join(dict.fromkeys(filter(None, ways)))} into {path}."
    return error.replace(remedies=[*error.remedies, Remedy(text)])


def _is_open(value: object) -> bool:
    """Whether only the caller knows a value, or a part of it."""
    return value is ... or (isinstance(value, (list, tuple)) and ... in value)


def _example(name: str) -> str:
    """A placeholder for a value that only the caller knows."""
    return '["...", "..."]' if OPTIONS[name].form in ("columns", "each", "classes") else '"..."'
