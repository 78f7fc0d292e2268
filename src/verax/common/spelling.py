"""Settings as text that is the same for the same settings: in every process, container and version.

Numbers are spelled alike whether they are truth values, integers or floats, and sequences whether they are
lists, tuples or arrays. The order of mappings and sets does not matter. Objects are spelled by their class
and attributes, because how one prints may change, or tell where it lies in memory. A lambda is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import MISSING, Field, fields, is_dataclass
from datetime import date, timedelta
from enum import Enum
from types import FunctionType, MappingProxyType
from typing import Any

import numpy as np

from verax.errors import VeraxError

# Marks a field that 0.2.0 did not have: it is left out where it has its default, so that what was named
# without it keeps its name.
LATER = MappingProxyType({"later": True})

StandIns = Mapping[str, Mapping[str, Any]]


def spelled(value: Any, stand_ins: StandIns = MappingProxyType({})) -> str:
    """The text of a setting: a plain value, a sequence, mapping or set of settings, or an object of them.

    Fields of dataclasses that do not compare are left out. A class may say in `named_by` which fields, with
    which values, its objects are named by. `stand_ins` are values to spell in place of others in fields of
    the same name.

    >>> spelled([[0, 1], [1, 0]]) == spelled(((0, 1), (1, 0))) == spelled(np.eye(2)[::-1])
    True
    >>> spelled({"costs": np.array([0.5, 2.0]), "by": None})
    "{'by': None, 'costs': [0.5, 2]}"
    """
    if isinstance(value, Enum):
        return f"{type(value).__name__}.{value.name}"
    if value is None or isinstance(value, (str, bytes)):
        return _text(value)
    if isinstance(value, (int, float)):
        return _number(value)
    if isinstance(value, (date, timedelta, np.datetime64, np.timedelta64)):
        return _time(value)
    if isinstance(value, (np.ndarray, np.generic)):
        return _of_array(np.asarray(value))

    def inner(part: Any) -> str:
        return spelled(part, stand_ins)

    if hasattr(type(value), "named_by") or (is_dataclass(value) and not isinstance(value, type)):
        told = []
        for name, given in _named_by(value).items():
            standing = stand_ins.get(name, {}).get(given, given) if isinstance(given, str) else given
            told.append(f"{name}={inner(standing)}")
        return f"{type(value).__name__}({', '.join(told)})"
    if isinstance(value, Mapping):
        return "{" + ", ".join(sorted(f"{inner(key)}: {inner(of)}" for key, of in value.items())) + "}"
    if isinstance(value, Set):
        return f"set({', '.join(sorted(map(inner, value)))})"
    if isinstance(value, Sequence):
        return f"[{', '.join(map(inner, value))}]"
    if isinstance(value, (type, FunctionType)) and "<" not in value.__qualname__:
        return f"{value.__module__}.{value.__qualname__}"
    if type(value).__module__ != "builtins" and hasattr(value, "__dict__"):
        attributes: dict[str, Any] = vars(value)
        told = [f"{name}={inner(attributes[name])}" for name in sorted(attributes)]
        return f"{inner(type(value))}({', '.join(told)})"
    raise VeraxError(
        f"A {type(value).__name__} has no spelling by which saved results could be found: use a function "
        "that is defined at the top of a module, plain values, or dataclasses."
    )


def _text(value: str | bytes | None) -> str:
    """Plain, whatever its subclass prints."""
    if isinstance(value, str):
        return ascii(str(value))
    return "None" if value is None else ascii(bytes(value))


def _number(value: float) -> str:
    """Without a point where it is whole."""
    whole = isinstance(value, int) or value.is_integer()
    return int.__repr__(int(value)) if whole else float.__repr__(float(value))


def _time(value: Any) -> str:
    """A date, a time or a duration, without zeros at the end of fractions of seconds."""
    text = value.isoformat() if isinstance(value, date) else str(value)
    seconds, point, fraction = text.partition(".")
    return f"{seconds}.{fraction.rstrip('0')}".rstrip(".") if point else seconds


def _of_array(array: np.ndarray[Any, Any]) -> str:
    if array.dtype.kind in "mM":
        # As plain Python values, nanoseconds would become numbers.
        return _time(array[()]) if array.ndim == 0 else f"[{', '.join(map(_of_array, array))}]"
    plain = array.tolist()
    if isinstance(plain, np.generic):
        raise VeraxError(f"Numbers of type {array.dtype} cannot be spelled.")
    return spelled(plain)


def _named_by(value: Any) -> Mapping[str, Any]:
    """The fields that an object is named by, with their values."""
    if hasattr(type(value), "named_by"):
        named: Mapping[str, Any] = value.named_by()
        return named
    told = ((field, getattr(value, field.name)) for field in fields(value) if field.compare)
    return {field.name: given for field, given in told if not _left_out(field, given)}


def _left_out(field: Field[Any], given: Any) -> bool:
    """Whether it came later, and has its default."""
    if not LATER.items() <= field.metadata.items():
        return False
    default = field.default if field.default_factory is MISSING else field.default_factory()
    return spelled(given) == spelled(default)
