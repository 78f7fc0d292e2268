"""Optional packages: imported where they are needed, or an error that says how to get them."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any

from verax._addresses import DISTRIBUTION, REGISTERED
from verax.errors import MissingPackageError

_EXTRA = re.compile(r"(.*?)\s*;.*\bextra\s*==\s*['\"]([^'\"]*)['\"]")


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
    verax.errors.MissingPackageError: Flying needs no_such_module: pip install '.[wings]' in a checkout.
    """
    first = module.partition(".")[0]
    try:
        return import_module(module)
    except ImportError as error:
        if error.name is None or error.name.partition(".")[0] != first:
            raise
        raise MissingPackageError(f"{what} needs {package or first}: {way_to_install(extra)}.") from None


def way_to_install(extra: str) -> str:
    """The command that installs the packages of an extra.

    It names the packages themselves, because that works for verax from a checkout and from a wheel.

    >>> way_to_install("plot")
    "pip install 'matplotlib>=3.9'"
    """
    if REGISTERED:
        return f"pip install '{DISTRIBUTION}[{extra}]'"
    import shlex
    from importlib import metadata

    try:
        stated = metadata.requires(DISTRIBUTION) or []
    except metadata.PackageNotFoundError:
        stated = []
    packages = [match[1] for match in map(_EXTRA.match, stated) if match is not None and match[2] == extra]
    return f"pip install {shlex.join(packages)}" if packages else f"pip install '.[{extra}]' in a checkout"


def exports(
    package: str, places: Mapping[str, str], missing: Mapping[str, tuple[str, str]] = MappingProxyType({})
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package.

    Parameters
    ----------
    package : str
        The name of the package.
    places : Mapping[str, str]
        The module that each name is defined in, inside the package or from "verax." on. A name that is its
        own place is the module itself.
    missing : Mapping[str, tuple[str, str]]
        What to say if an optional dependency cannot be imported, by its name, and the extra that installs it;
        "{name}" is what was asked for.
    """

    def get(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        try:
            place = places[name]
            module = import_module(place if place.startswith("verax.") else f"{package}.{place}")
        except ImportError as error:
            lacking = (error.name or "").partition(".")[0]
            if lacking not in missing:
                raise
            sentence, extra = missing[lacking]
            raise MissingPackageError(f"{sentence.format(name=name)}: {way_to_install(extra)}.") from None
        value = module if places[name] == name else getattr(module, name)
        setattr(sys.modules[package], name, value)
        return value

    return get, lambda: sorted(places)


class Untyped:
    """Such a class, for type checkers alone: it may have any attribute."""

    def __init__(self, *args: Any, **options: Any) -> None: ...

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)
