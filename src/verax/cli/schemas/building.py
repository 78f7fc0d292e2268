"""How JSON schemas (draft 2020-12) are put together.

A record lists all keys that an output may have and allows no others; keys that are not always there are
marked with `Maybe`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import fields
from types import UnionType
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

from verax.inference.intervals import Interval

Schema = dict[str, Any]


class Maybe(NamedTuple):
    """The schema of a key that is not always there."""

    schema: Schema


def record(**fields: Schema | Maybe) -> Schema:
    """An object with these keys and no others."""
    return {
        "type": "object",
        "properties": {name: f.schema if isinstance(f, Maybe) else f for name, f in fields.items()},
        "required": [name for name, f in fields.items() if not isinstance(f, Maybe)],
        "additionalProperties": False,
    }


def of_fields(cls: type[Any], *, without: Collection[str] = (), **given: Schema) -> Schema:
    """The record of a dataclass that is written field by field; `given` replaces what its types say."""
    hints = {name: hint for name, hint in get_type_hints(cls).items() if name not in without}
    own = {each.name for each in fields(cls)}
    return record(**{name: given.get(name) or _of_type(hint) for name, hint in hints.items() if name in own})


def _of_type(hint: Any) -> Schema:
    """What JSON has for values of a type."""
    if hint in _TYPES:
        return _TYPES[hint]
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Literal:
        return {"enum": list(inner)}
    if origin in (UnionType, Union):
        kinds = [_of_type(each) for each in inner if each is not type(None)]
        # Numbers may be null anyway.
        first = NUMBER if NUMBER in kinds else either(*kinds) if len(kinds) > 1 else kinds[0]
        return first if type(None) not in inner or first == NUMBER else or_none(first)
    if origin in (tuple, list):
        return listed(_of_type(inner[0]))
    if origin in (dict, Mapping):
        return mapped(_of_type(inner[1]))
    return of_fields(hint)


def listed(schema: Schema, n: int | None = None) -> Schema:
    """A list of values of one kind, `n` of them if given."""
    size = {} if n is None else {"minItems": n, "maxItems": n}
    return {"type": "array", "items": schema, **size}


def mapped(schema: Schema) -> Schema:
    """An object whose keys are names."""
    return {"type": "object", "additionalProperties": schema}


def either(*schemas: Schema) -> Schema:
    """One of several."""
    return {"anyOf": list(schemas)}


def or_none(schema: Schema) -> Schema:
    """A value, or null."""
    return either(schema, {"type": "null"})


def ref(name: str) -> Schema:
    """One of the definitions that commands share."""
    return {"$ref": f"#/$defs/{name}"}


def const(value: str) -> Schema:
    """A text that is always the same."""
    return {"const": value}


TEXT: Schema = {"type": "string"}
TRUTH: Schema = {"type": "boolean"}
COUNT: Schema = {"type": "integer", "minimum": 0}
PATH = or_none(TEXT)
# Finite where it is a number; where it may not be, infinities are texts and NaN is null.
FINITE: Schema = {"type": "number"}
NUMBER: Schema = {"anyOf": [{"type": "number"}, {"enum": ["inf", "-inf", None]}]}
INTERVAL = listed(NUMBER, 2)
SHARE: Schema = {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}
TEXTS = listed(TEXT)
# A rank, from 1.
PLACE: Schema = {"type": "integer", "minimum": 1}
NUMBERS = listed(NUMBER)
# The name of a class, an id, an outcome: whatever a file has.
LABEL: Schema = {"type": ["string", "number", "boolean", "null"]}
# Intervals that are written as their two ends; those with all facts are `ref("interval")`.
_TYPES: dict[Any, Schema] = {str: TEXT, bool: TRUTH, int: COUNT, float: NUMBER, Interval: INTERVAL}


def output(command: str, **fields: Schema | Maybe) -> Schema:
    """What a command prints: the version, its name, and these fields."""
    return record(verax=TEXT, command=const(command), config=Maybe(TEXT), **fields)
