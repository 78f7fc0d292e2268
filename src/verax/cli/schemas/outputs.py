"""JSON schemas of what commands print with --json. The tests hold every output to its schema.

The module of a command gives the fields of its output, and wings add kinds of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from typing import Any

from verax.cli.app import COMMANDS as TYPED
from verax.cli.schemas.building import CLASSES, Fields, Schema, either, face, output, record
from verax.cli.schemas.definitions import DEFINITIONS
from verax.common import wings

DRAFT = "https://json-schema.org/draft/2020-12/schema"
_ADDED = wings.commands()


def _finders(typed: str) -> Iterator[tuple[str, Callable[[], Any]]]:
    """A command, or each command of a group, with what finds the function that gives its fields."""
    if typed not in _ADDED:
        yield typed, partial(_of_core, typed)
        return
    wing, command = _ADDED[typed]
    places = {"": command.output} if isinstance(command.output, str) else command.output
    for inner, place in places.items():
        yield f"{typed} {inner}".rstrip(), partial(wing.at, place)


def _of_core(typed: str) -> Any:
    return import_module(f"verax.cli.{typed}").output


# `verax schema` prints these schemas, and has none.
_FOUND = {name: finder for typed in TYPED if typed != "schema" for name, finder in _finders(typed)}
COMMANDS = tuple(_FOUND)


def schema_of(command: str) -> Schema:
    """The schema of what a command prints with --json.

    >>> schema_of("demo")["title"]
    'verax demo --json'
    """
    kinds = [output(command, **fields) for fields in _kinds(command)]
    schema = kinds[0] if len(kinds) == 1 else either(*kinds)
    needed: dict[str, Schema] = {}
    _gather(schema, needed)
    return {
        "$schema": DRAFT,
        "$id": f"urn:verax:schema:{command.replace(' ', ':')}",
        "title": f"verax {command} --json",
        "description": 'Infinite numbers are the texts "inf" and "-inf"; undefined ones are null.',
        **schema,
        "$defs": needed,
    }


def _kinds(command: str) -> list[Fields]:
    """The fields of each kind of its output: first its own, then those that wings add."""
    added = (wing.at(wing.outputs[command]) for wing in wings.wings() if command in wing.outputs)
    given = [give() for give in (_FOUND[command](), *added)]
    return [fields for kinds in given for fields in (kinds if isinstance(kinds, list) else [kinds])]


def _gather(schema: Any, needed: dict[str, Schema]) -> None:
    """Add the definitions that a schema refers to, and those that they refer to."""
    if isinstance(schema, list):
        for inner in schema:
            _gather(inner, needed)
    if not isinstance(schema, dict):
        return
    name = str(schema.get("$ref", "")).rpartition("/")[2]
    if name and name not in needed:
        needed[name] = DEFINITIONS.get(name) or _of_class(name)
        _gather(needed[name], needed)
    for inner in schema.values():
        _gather(inner, needed)


def _of_class(name: str) -> Schema:
    """The schema of a class: what its wing says, or what its fields tell."""
    cls = CLASSES[name]
    wing = wings.owner(cls)
    said: dict[str, Schema] = wing.at(wing.definitions)() if wing is not None and wing.definitions else {}
    return said.get(name) or record(**face(cls))
