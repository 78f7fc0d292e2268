"""What type checkers are told of base classes from packages that ship no types."""

from __future__ import annotations

from typing import Any


class Untyped:
    """Such a class, for type checkers alone: it may have any attribute."""

    def __init__(self, *args: Any, **options: Any) -> None: ...

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)
