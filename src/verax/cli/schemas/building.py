"""How JSON schemas (draft 2020-12) are put together.

A record lists all keys that an output may have and allows no others; keys that are not always there are
marked with `Maybe`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

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
NUMBERS = listed(NUMBER)
# The name of a class, an id, an outcome: whatever a file has.
LABEL: Schema = {"type": ["string", "number", "boolean", "null"]}
