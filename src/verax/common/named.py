"""Values by name, read as those of a dict are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

from verax.errors import VeraxError


class NamedValues(ABC):
    """What follows from `self[name]` and the names: keys, values, items, `get`, `in` and the number of names.

    It may have values under names that it does not list. `dict(...)` takes the listed ones.
    """

    @abstractmethod
    def __getitem__(self, name: Any) -> float:
        """The value under a name; a KeyError or a refusal where there is none."""

    @abstractmethod
    def __iter__(self) -> Iterator[str]:
        """The names that are listed."""

    def __len__(self) -> int:
        # Lists ask for the length of what they are made of.
        return sum(1 for _ in self)

    def __contains__(self, name: object) -> bool:
        """Whether `self[name]` has a value, listed or not."""
        return self.get(name) is not None

    def keys(self) -> list[str]:
        """The names that are listed."""
        return list(self)

    def values(self) -> list[float]:
        """Their values."""
        return [self[name] for name in self]

    def items(self) -> list[tuple[str, float]]:
        """Names with values; `dict(...)` takes them."""
        return [(name, self[name]) for name in self]

    def get(self, name: Any, default: Any = None) -> Any:
        """`self[name]`, or a default where there is no such value.

        Parameters
        ----------
        name : str or Rule
            A name, or a rule for its name.
        default : object, default None
            What to return instead.

        Returns
        -------
        float or object
            The value.
        """
        try:
            return self[name]
        except (KeyError, VeraxError):
            return default
