"""Names of a package that are imported when they are first used: importing the package stays quick."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any

from verax.common.packages import way_to_install
from verax.errors import MissingPackageError


def exports(
    package: str, places: Mapping[str, str], missing: Mapping[str, tuple[str, str]] = MappingProxyType({})
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package.

    Parameters
    ----------
    package : str
        The name of the package.
    places : Mapping[str, str]
        The module that each name is defined in. A name that is its own place is the module itself.
    missing : Mapping[str, tuple[str, str]]
        What to say if an optional dependency cannot be imported, by its name, and the extra that installs it;
        "{name}" is what was asked for.
    """

    def get(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        try:
            module = import_module(f"{package}.{places[name]}")
        except ImportError as error:
            lacking = (error.name or "").partition(".")[0]
            if lacking not in missing:
                raise
            said, extra = missing[lacking]
            raise MissingPackageError(f"{said.format(name=name)}: {way_to_install(extra)}.") from None
        value = module if places[name] == name else getattr(module, name)
        setattr(sys.modules[package], name, value)
        return value

    return get, lambda: sorted(places)
