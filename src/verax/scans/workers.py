"""Whether the workers of a cluster have verax, asked before the work: without it they wait or fail late."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Sequence
from types import FunctionType
from typing import Any

from verax.errors import MissingPackageError

# How many workers are named.
_NAMED = 3


def _about(*_: Any) -> str:
    """Where this runs: host, interpreter, and whether that has verax."""
    import socket
    import sys
    from importlib.util import find_spec

    try:
        found = "verax" if find_spec("verax") else ""
    except ImportError:
        found = ""
    return "\t".join((socket.gethostname(), sys.executable, found))


def question() -> Callable[..., str]:
    """A function that tells where it runs, sent by value: workers may be unable to import this module."""
    asked = FunctionType(_about.__code__, {"__builtins__": builtins}, "about")
    # What libraries send by value is what was defined in the main program.
    asked.__module__ = "__main__"
    return asked


def check_answers(answers: Iterable[str], who: str, remedy: str) -> None:
    """Refuse a cluster of which some workers lack verax; name them, and where they run."""
    every = list(answers)
    lacking = [answer.split("\t")[:2] for answer in every if not answer.endswith("\tverax")]
    if not lacking:
        return
    named = list(dict.fromkeys(f"{python} on {host}" for host, python in lacking))
    more = f" and {len(named) - _NAMED:,} more" if len(named) > _NAMED else ""
    raise MissingPackageError(
        f"{who} cannot import verax: {', '.join(named[:_NAMED])}{more} "
        f"({len(lacking):,} of {len(every):,}). {remedy}"
    )


def last_of(text: str, marks: Sequence[str]) -> str:
    """The last line of a trace that has one of these marks, or its first line."""
    lines = text.splitlines() or [""]
    marked = [line for line in lines if any(mark in line for mark in marks)] or lines[:1]
    return marked[-1].strip()[:200].rstrip(". ")
