"""The file of a monitor's state, which no other process may have changed in between."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from verax.common.locking import claimed
from verax.common.paths import check_regular
from verax.display.writing import written
from verax.errors import InputError, Remedy


@dataclass(frozen=True)
class SavedFile:
    """A file as it was last read or written.

    Attributes
    ----------
    path : Path
        Where it is, absolute.
    digest : str
        A hash of its content.
    """

    path: Path
    digest: str

    @classmethod
    def of(cls, path: Path, content: bytes) -> SavedFile:
        """The file at a path, with its content."""
        return cls(path.resolve(), blake2b(content, digest_size=16).hexdigest())


def read_saved(path: Path) -> tuple[bytes, SavedFile]:
    """The content of a file, and the file as it is now."""
    check_regular(path)
    content = path.read_bytes()
    return content, SavedFile.of(path, content)


class ChangedError(InputError):
    """A file is not as it was when it was read."""


def save_over(path: Path, content: bytes, before: SavedFile | None, *, new: bool = False) -> SavedFile:
    """Write a file that this process has locked, unless another one changed it since `before`.

    If it is `new`, another process must not have made it.
    """
    known = before is not None and before.path == path.resolve()
    with claimed(path):
        there = (known or new) and path.is_file()
        if there and (new or SavedFile.of(path, path.read_bytes()) != before):
            raise ChangedError(
                f"{path} must not have changed since this monitor was loaded from it or saved to it",
                argument="path",
                kind="file",
                remedies=[Remedy("Load it again, take in the new rows, and save it.")],
            )
        with written(path) as file:
            file.write_bytes(content)
    return SavedFile.of(path, content)
