"""What wings tell the house: places, which are imported when they are used.

Wings are the folders of `verax/wings/`, and of any folder `verax_wings/` on the path: other packages add
theirs there, without a change to verax.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from operator import attrgetter
from pkgutil import iter_modules
from typing import Any

_HERE, _ELSEWHERE = "verax.wings", "verax_wings"


@dataclass(frozen=True)
class Command:
    """A command of a wing.

    Attributes
    ----------
    says : str
        The first line of its help.
    place : str
        The module that defines it, inside the wing.
    after : str
        The command it is listed after; empty for the head of the list.
    output : str or Mapping[str, str]
        What gives the fields of its `--json` output, such as "command:output"; of a group, by inner commands.
    takes : Mapping[str, tuple[str, tuple[str, ...]]]
        Options that are typed at other commands and mean this one: by a command, what to run and the options.
    """

    says: str
    place: str = "command"
    after: str = ""
    output: str | Mapping[str, str] = ""
    takes: Mapping[str, tuple[str, tuple[str, ...]]] = field(default_factory=dict)


@dataclass(frozen=True)
class CardKind:
    """A card that files hold in place of that of forecasts.

    Attributes
    ----------
    says : str
        What it is about, such as "graded answers".
    loads : str
        The place of the function that makes it of stored bytes. Cards have `merge` and `save`.
    shows : str
        The place of the function that shows the one of all files, as `verax merge` was asked to.
    """

    says: str
    loads: str
    shows: str


@dataclass(frozen=True)
class Wing:
    """A subject of its own: what it adds, by places inside it such as "result:RaterStudy".

    Attributes
    ----------
    name : str
        Its folder in `wings/`.
    says : str
        What it is about, in one line.
    functions, results : Mapping[str, str]
        Its public names.
    commands : Mapping[str, Command]
        Its commands by what is typed.
    outputs : Mapping[str, str]
        What gives the fields of further kinds of output, by the command of the core that prints them.
    definitions : str
        What gives the schemas of parts of its results that fields do not tell.
    words : Mapping[str, str]
        What gives the heading, and the names with their meanings, of topics that `verax help` explains.
    saved : tuple of str
        Modules with summaries that files may keep.
    cards : Mapping[str, CardKind]
        Its cards that files hold, by the name of their entry.
    forms : tuple of str
        Forms of rows that it reads, as `scans.forms.Form` asks of them.
    shapes : tuple of str
        Shapes of records with lists, such as those of its logs.
    sections : tuple of str
        Its sections of the report, such as "section:RATERS".
    answers : Mapping[str, str]
        What it answers for the core, by the name of the question, such as "scorer".
    uses : tuple of str
        The wings that it builds on.
    tutorial : str
        Its page of the documentation.
    package : str
        The package of its files; known when it is found.
    """

    name: str
    says: str
    functions: Mapping[str, str] = field(default_factory=dict)
    results: Mapping[str, str] = field(default_factory=dict)
    commands: Mapping[str, Command] = field(default_factory=dict)
    outputs: Mapping[str, str] = field(default_factory=dict)
    definitions: str = ""
    words: Mapping[str, str] = field(default_factory=dict)
    saved: tuple[str, ...] = ()
    cards: Mapping[str, CardKind] = field(default_factory=dict)
    forms: tuple[str, ...] = ()
    shapes: tuple[str, ...] = ()
    sections: tuple[str, ...] = ()
    answers: Mapping[str, str] = field(default_factory=dict)
    uses: tuple[str, ...] = ()
    tutorial: str = ""
    package: str = ""

    def at(self, place: str) -> Any:
        """What is at a place of this wing; it is imported now."""
        module, _, name = place.partition(":")
        found = import_module(module if module.startswith("verax.") else f"{self.package}.{module}")
        return attrgetter(name)(found) if name else found


@cache
def wings() -> tuple[Wing, ...]:
    """All wings, by their names: the folders that hold them, so that none is listed by hand."""
    rooms = [room for room in (_HERE, _ELSEWHERE) if find_spec(room) is not None]
    folders = [(room, found.name) for room in rooms for found in iter_modules(import_module(room).__path__)]
    packages = [f"{room}.{name}" for room, name in folders]
    return tuple(replace(import_module(f"{package}.wing").WING, package=package) for package in packages)


def owner(cls: type) -> Wing | None:
    """The wing that defines a class; None for the core."""
    return next((wing for wing in wings() if cls.__module__.startswith(f"{wing.package}.")), None)


def all_of(kind: str) -> Iterator[Any]:
    """Everything of a kind that wings declare, such as "sections"; it is imported now."""
    for wing in wings():
        for place in getattr(wing, kind):
            yield wing.at(place)


def commands() -> dict[str, tuple[Wing, Command]]:
    """The commands of all wings, by what is typed."""
    return {typed: (wing, command) for wing in wings() for typed, command in wing.commands.items()}


def cards() -> dict[str, tuple[Wing, CardKind]]:
    """The cards of all wings that files hold, by the names of their entries."""
    return {entry: (wing, card) for wing in wings() for entry, card in wing.cards.items()}


def in_order(first: Mapping[str, str], added: Mapping[str, tuple[Wing, Command]]) -> dict[str, str]:
    """First lines of commands: those of the core, each followed by those that are listed after it."""
    lines: dict[str, str] = {}

    def add(after: str) -> None:
        for typed, (_, command) in added.items():
            if command.after == after:
                lines[typed] = command.says
                add(typed)

    add("")
    for name, says in first.items():
        lines[name] = says
        add(name)
    return lines


def answer_to(question: str) -> Any:
    """What the one wing that answers a question of the core says; it is imported now."""
    (wing,) = (wing for wing in wings() if question in wing.answers)
    return wing.at(wing.answers[question])


def know_saved() -> None:
    """Import every class of summaries of wings that files may keep, so that each is known by its kind."""
    for _ in all_of("saved"):
        pass
