"""How JSON schemas (draft 2020-12) are put together.

A record lists all keys that an output may have and allows no others; keys that are not always there are
marked with `Maybe`.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from inspect import isabstract
from types import UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NamedTuple,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

import numpy as np

from verax.common.faces import Mark, facts_of, marks_of
from verax.inference.findings import WithVerdict
from verax.inference.intervals import Interval
from verax.inputs.skipping import MaySkip

Schema = dict[str, Any]


class Maybe(NamedTuple):
    """The schema of a key that is not always there."""

    schema: Schema


Fields = dict[str, Schema | Maybe]
# What a command gives of its output: the fields, several where it prints one kind or another.
Kinds = Fields | list[Fields]


def record(**fields: Schema | Maybe) -> Schema:
    """An object with these keys and no others."""
    return {
        "type": "object",
        "properties": {name: f.schema if isinstance(f, Maybe) else f for name, f in fields.items()},
        "required": [name for name, f in fields.items() if not isinstance(f, Maybe)],
        "additionalProperties": False,
    }


def face(cls: Any, **given: Schema | Maybe) -> Fields:
    """The JSON keys of a result or of a part of one; `given` replaces what the types of fields say."""
    keys: Fields = {**TOLD} if issubclass(cls, WithVerdict) else {}
    for key, fact in facts_of(cls).items():
        if Mark.MERGED in fact.marks:
            keys |= face(_base(fact.hint)) if isinstance(_base(fact.hint), type) else {}
        else:
            schema = given.get(key) or _NAMED.get(key) or of_type(fact.hint, name=key)
            keys[key] = (
                Maybe(schema) if Mark.MAYBE in fact.marks and not isinstance(schema, Maybe) else schema
            )
    return keys | (NOTED if issubclass(cls, MaySkip) else {})


def _base(hint: Any) -> Any:
    """A type without what it is annotated with."""
    return get_args(hint)[0] if get_origin(hint) is Annotated else hint


def of_type(hint: Any, *, name: str = "", ends: bool = False) -> Schema:
    """The schema of values of a type; of intervals, with `ends`, only the ends."""
    if get_origin(hint) is Annotated:
        marks = marks_of(hint)
        if Mark.TEXT in marks:
            return TEXT
        return of_type(_base(hint), name=name, ends=ends or Mark.ENDS in marks)
    if hint in _TYPES:
        return INTERVAL if ends and hint is Interval else _TYPES[hint]
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Literal:
        return {"enum": list(inner)}
    if origin in (UnionType, Union):
        kinds = [of_type(kind, name=name, ends=ends) for kind in inner if kind is not type(None)]
        # Numbers may be null anyway.
        first = NUMBER if NUMBER in kinds else either(*kinds) if len(kinds) > 1 else kinds[0]
        return first if type(None) not in inner or first == NUMBER else or_none(first)
    if origin is np.ndarray:
        return listed(NUMBERS, 2) if name in ("interval", "x_interval", "band") else NUMBERS
    if origin in (tuple, list):
        n = None if origin is list or inner[-1] is ... else len(inner)
        return listed(of_type(inner[0], ends=ends), n)
    if origin in (dict, Mapping):
        return mapped(of_type(inner[1], ends=ends))
    if is_typeddict(hint):
        return record(**{key: of_type(inner_hint) for key, inner_hint in get_type_hints(hint).items()})
    return either(*refs) if len(refs := [exactly(kind) for kind in _kinds(hint)]) > 1 else refs[0]


def _kinds(cls: Any) -> list[Any]:
    """A class and all that are based on it; those that are abstract have no values of their own."""
    below = [kind for subclass in cls.__subclasses__() for kind in _kinds(subclass)]
    return below if isabstract(cls) else [cls, *below]


def exactly(cls: type[Any]) -> Schema:
    """A class, without those that are based on it."""
    name = re.sub("(?<=[a-z])(?=[A-Z])", "_", cls.__name__).lower()
    CLASSES[name] = cls
    return ref(name)


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
_TYPES: dict[Any, Schema] = {
    str: TEXT,
    bool: TRUTH,
    int: COUNT,
    float: NUMBER,
    Interval: ref("interval"),
    **dict.fromkeys((Any, object, Hashable), LABEL),
}
# Schemas of names that mean the same everywhere.
_NAMED: dict[str, Schema] = {"confidence": SHARE, "rank": PLACE, "confusion": or_none(listed(NUMBERS))}
# The classes that schemas refer to, by their names there.
CLASSES: dict[str, type[Any]] = {}
# The verdict: its text, its findings, and the next step.
TOLD: Fields = {
    "verdict": TEXT,
    "findings": listed(ref("finding")),
    "next_step": or_none(ref("next_step")),
}
# Notes on rows left out and on top lists.
NOTED: Fields = {
    "skipped": Maybe(ref("skipped")),
    "skipped_bounds": Maybe(mapped(listed(NUMBER, 2))),
    "sampled": Maybe(record(n_rows=COUNT, of=COUNT)),
    "lists": Maybe(ref("faults")),
}


def output(command: str, **fields: Schema | Maybe) -> Schema:
    """The output of a command: the version, its name, and these fields."""
    return record(verax=TEXT, command=const(command), config=Maybe(TEXT), **fields)
