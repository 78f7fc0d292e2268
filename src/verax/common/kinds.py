"""The classes that a stored result may hold, which follow from the types of its fields.

Records are stored as their fields, under the name of their class. A class that had another name in the first
files keeps that as `_stored_as`.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from functools import cache
from importlib import import_module
from operator import attrgetter
from types import NoneType, UnionType
from typing import Any, Literal, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from verax.errors import show


class Special(NamedTuple):
    """A class that is not stored as its fields, with functions that write and read it.

    Each is a module and a name.
    """

    cls: str
    write: str
    read: str


SPECIAL = {
    "interval": Special(
        "verax.inference.intervals:Interval",
        "verax.inference.intervals:Interval.to_dict",
        "verax.inference.intervals:Interval.from_dict",
    ),
    "verdict": Special(
        "verax.inference.findings:Verdict",
        "verax.inference.findings:Verdict.to_dict",
        "verax.inference.findings:Verdict.from_dict",
    ),
    "fraction": Special("fractions:Fraction", "builtins:str", "fractions:Fraction"),
    "rule": Special(
        "verax.scores.base:Rule", "verax.scores.storing:rule_name", "verax.scores.registry:stored_rule"
    ),
    "metric": Special(
        "verax.scores.metrics:DecisionMetric",
        "verax.scores.storing:metric_values",
        "verax.scores.storing:metric_named",
    ),
    "sums": Special(
        "verax.engines.tally:RuleSums", "verax.scores.storing:tally_values", "verax.scores.storing:tally_of"
    ),
}


def special_of(value: object) -> str | None:
    """The name of the special kind that a value is of, if any."""
    return _special(type(value))


def _special(cls: type) -> str | None:
    for name, kind in SPECIAL.items():
        module, _, attribute = kind.cls.partition(":")
        if module in sys.modules and issubclass(cls, getattr(sys.modules[module], attribute)):
            return name
    return None


def records_in(cls: Any) -> dict[str, Any]:
    """The classes of the records that a result may hold, by their stored names, with its own."""
    records: dict[str, Any] = {}
    waiting: list[Any] = [cls]
    while waiting:
        candidate = waiting.pop()
        if candidate in records.values() or _special(candidate) is not None:
            continue
        waiting += [
            *below(candidate),
            *(part for base in candidate.__mro__ for part in vars(base).get("_parts", ())),
        ]
        if is_dataclass(candidate) or hasattr(candidate, "_given"):
            records[stored_name(candidate)] = candidate
            for hint in hints_of(candidate).values():
                waiting += _classes(hint)
    return records


def _classes(hint: Any) -> Iterator[type]:
    """The classes that a type names, without those of Python and NumPy."""
    for inner in get_args(hint):
        yield from _classes(inner)
    named = isinstance(hint, type) and not hasattr(hint, "__origin__")
    if named and hint.__module__.partition(".")[0] not in ("builtins", "typing", "collections", "numpy"):
        yield hint


def below(cls: type) -> list[type]:
    """The classes that are based on a class."""
    subclasses: list[type] = cls.__subclasses__()
    return [kind for subclass in subclasses for kind in (subclass, *below(subclass))]


def stored_name(cls: type) -> str:
    """The name that a class is stored under."""
    return str(vars(cls).get("_stored_as", cls.__name__))


def named(place: str) -> Any:
    """The object called `module:name`."""
    module, _, name = place.partition(":")
    return attrgetter(name)(import_module(module))


# ---- whether values fit annotations


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
