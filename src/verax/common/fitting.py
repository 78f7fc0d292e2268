"""Checks that values from outside fit the annotations of a class."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from verax.errors import show


def check_fields(cls: type, values: Mapping[str, Any]) -> None:
    """Refuse values that the constructor of a class is not annotated for."""
    wanted = hints_of(cls)
    for name, value in values.items():
        if name not in wanted:
            raise ValueError(f"{cls.__name__} has no {show(name)}")
        if not fits(value, wanted[name]):
            raise TypeError(f"{name} of {cls.__name__} is of another type")


@cache
def hints_of(cls: type) -> dict[str, Any]:
    """The types of a class's fields, or of the parameters of its `__init__`."""
    hints = get_type_hints(cls if is_dataclass(cls) else cls.__init__)  # type: ignore[misc]
    hints.pop("return", None)
    return hints


def fits(value: Any, hint: Any) -> bool:
    """Whether a value fits an annotation.

    >>> fits((1, 2.5), tuple[int, float]), fits({"a": [1]}, dict[str, list[str]]), fits(None, int | None)
    (True, False, True)
    """
    origin, inner = get_origin(hint), get_args(hint)
    if hint is Any or isinstance(hint, TypeVar):
        return True
    if origin in (Union, UnionType):
        return any(fits(value, option) for option in inner)
    if origin is Literal:
        return value in inner
    if hint is None or hint is NoneType:
        return value is None
    if hint in (int, float):
        kinds = (int, np.integer) if hint is int else (int, float, np.integer, np.floating)
        return isinstance(value, kinds) and not isinstance(value, bool)
    if hint is Hashable or origin is None:
        return isinstance(value, hint)
    return isinstance(value, origin) and _fits_inside(value, origin, inner)


def _fits_inside(value: Any, origin: Any, inner: tuple[Any, ...]) -> bool:
    """Whether the members of a container fit its annotation."""
    if origin is tuple and inner[-1:] != (...,):
        return len(value) == len(inner) and all(map(fits, value, inner))
    if issubclass(origin, Mapping):
        return all(fits(key, inner[0]) and fits(member, inner[1]) for key, member in value.items())
    if issubclass(origin, (Sequence, frozenset)):
        return all(fits(member, inner[0]) for member in value)
    return True
