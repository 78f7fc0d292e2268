"""Optional packages: imported where they are needed, or an error that says how to get them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from verax.errors import MissingPackageError


def needed(module: str, what: str, extra: str, package: str | None = None) -> Any:
    """A module of an optional package.

    Parameters
    ----------
    module : str
        The module.
    what : str
        What needs it, as the subject of a sentence.
    extra : str
        The extra of verax that installs it.
    package : str, optional
        What the package is called, where that is not the first part of the module's name.

    >>> needed("no_such_module.part", "Flying", "wings")
    Traceback (most recent call last):
    verax.errors.MissingPackageError: Flying needs no_such_module: pip install 'verax-scores[wings]'.
    """
    first = module.partition(".")[0]
    try:
        return import_module(module)
    except ImportError as error:
        if error.name is None or error.name.partition(".")[0] != first:
            raise
        way = f"pip install 'verax-scores[{extra}]'"
        raise MissingPackageError(f"{what} needs {package or first}: {way}.") from None
