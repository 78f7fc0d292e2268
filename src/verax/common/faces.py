"""The face of a result: its JSON follows from its fields, and the schema of that JSON from their types.

The type of a field says what is special about it. `_facts` names what JSON has besides: properties, and
facts of fields (`rows.n_rows`). A property called like a field, with an underscore, stands in its place.
`_absent` names what a class lacks of what it is based on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from operator import attrgetter
from typing import Annotated, Any, ClassVar, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

T = TypeVar("T")


class Mark(Enum):
    """Annotations of a field that its type does not express."""

    HIDDEN = "JSON does not have it"
    MAYBE = "JSON has it where it is not None"
    MERGED = "JSON has what it consists of in its place"
    ENDS = "intervals are written as their ends"
    TEXT = "JSON has it as a text"


class Key(NamedTuple):
    """The key of a field in JSON, if it differs from the name."""

    name: str


Hidden = Annotated[T, Mark.HIDDEN]
Maybe = Annotated[T, Mark.MAYBE]
Merged = Annotated[T, Mark.MERGED]
# A value that holds intervals of which JSON has the ends alone.
Brief = Annotated[T, Mark.ENDS]
Worded = Annotated[T, Mark.TEXT]


class Fact(NamedTuple):
    """A key of a result's JSON: the field it comes from, its type, and its annotations."""

    name: str
    hint: Any
    marks: tuple[Any, ...]

    @property
    def key(self) -> str:
        """The key in JSON."""
        keys = [mark.name for mark in self.marks if isinstance(mark, Key)]
        return keys[0] if keys else self.name.rpartition(".")[2].lstrip("_")

    def of(self, value: Any) -> Any:
        """The value in a result."""
        return attrgetter(self.name)(value)


class Record:
    """A base class of parts of results, whose JSON follows from their fields."""

    # What JSON has beside the fields.
    _facts: ClassVar[tuple[str, ...]] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the record as plain Python values, for JSON."""
        return face_of(self)


@cache
def facts_of(cls: Any) -> dict[str, Fact]:
    """The facts of a dataclass, by their keys in JSON."""
    names = [field.name for field in fields(cls)] if is_dataclass(cls) else []
    for base in reversed(cls.__mro__):
        names += vars(base).get("_facts", ())
    absent = getattr(cls, "_absent", ())
    facts = [_fact(cls, name) for name in names if name not in absent]
    return {fact.key: fact for fact in facts if Mark.HIDDEN not in fact.marks or "." in fact.name}


def _fact(cls: Any, path: str) -> Fact:
    """A field or a property, or that of a field: `rows.n_rows`."""
    name, _, rest = path.partition(".")
    hint = _hints(cls).get(name)
    if hint is None:
        member = getattr(cls, name)
        made = getattr(member, "fget", None) or member.compute
        hint = get_type_hints(made, include_extras=True)["return"]
    if not rest:
        return Fact(path, hint, marks_of(hint))
    return _fact(_first(hint), rest)._replace(name=path)


def _first(hint: Any) -> Any:
    """The class of a type, of several the first."""
    inner = get_args(hint)
    return _first(inner[0]) if inner and not isinstance(hint, type) else hint


@cache
def _hints(cls: Any) -> dict[str, Any]:
    return get_type_hints(cls, include_extras=True)


def marks_of(hint: Any) -> tuple[Any, ...]:
    """The annotations of a type."""
    return get_args(hint)[1:] if get_origin(hint) is Annotated else ()


def face_of(value: Any) -> dict[str, Any]:
    """The JSON of a dataclass, as Python values."""
    face: dict[str, Any] = {}
    for key, fact in facts_of(value.__class__).items():
        part = fact.of(value)
        if part is None and Mark.MAYBE in fact.marks:
            continue
        shown: Any = str(part) if Mark.TEXT in fact.marks else as_facts(part, ends=Mark.ENDS in fact.marks)
        face |= shown if Mark.MERGED in fact.marks else {key: shown}
    return face


def as_facts(value: Any, *, ends: bool = False) -> Any:
    """A value with the JSON of the records inside it; with `ends`, of intervals only these."""
    if hasattr(value, "_as_dict"):
        return value._as_dict()
    if hasattr(value, "to_dict"):
        return list(value) if ends and isinstance(value, tuple) else value.to_dict()
    if is_dataclass(value) and not isinstance(value, type):
        return face_of(value)
    if isinstance(value, Mapping):
        return {str(key): as_facts(member, ends=ends) for key, member in value.items()}
    if isinstance(value, (Sequence, Set)) and not isinstance(value, (str, bytes)):
        return [as_facts(member, ends=ends) for member in value]
    return value
