"""Specifications of summary fields: content, merging, storage."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from verax.common.idkeys import to_store
from verax.common.packing import UnreadableError
from verax.common.stored import (
    LARGEST,
    Size,
    Sizes,
    column,
    fit,
    inside,
    label,
    mapping,
    number,
    numbers,
    read_bytes,
    sized,
    text,
    truth,
    whole,
    within,
)
from verax.errors import show

# Sizes that mean the same everywhere, so that summaries inside others know them.
SHARED = ("classes", "models", "rules")

# How values of a field merge: the code for values called a and b.
_SCALARS = {
    "add": "{a} + {b}",
    "least": "min({a}, {b})",
    "most": "max({a}, {b})",
    "any": "{a} or {b}",
    "all": "{a} and {b}",
    "equal": "alike({a}, {b}, {name!r})",
    "first": "{a}",
}
_ARRAYS = {
    **{how: _SCALARS[how] for how in ("add", "first")},
    "least": "minimum({a}, {b})",
    "most": "maximum({a}, {b})",
    "join": "concatenate(({a}, {b}))",
}


class Spec(ABC):
    """The content of a field, how it merges, and how it is stored."""

    # What the code of `before` and `merged` calls.
    names: Mapping[str, Any] = MappingProxyType({})

    def __init__(self, how: str, *, optional: bool = False) -> None:
        self.how: str = how
        self.optional: bool = optional

    def before(self, name: str) -> list[str]:
        """Statements that come before merging."""
        return []

    @abstractmethod
    def merged(self, name: str) -> str:
        """The code that merges the field `name` of `self` and `other`."""

    def stored(self, name: str, values: dict[str, Any], specs: Mapping[str, Spec]) -> dict[str, Any]:
        """All fields as they are to be stored, before each is packed."""
        return values

    def pack(self, value: Any) -> Any:
        """The value, to be stored."""
        return value

    def unpack(self, stored: Any, sizes: Sizes) -> Any:
        """The value of a stored field."""
        return None if stored is None and self.optional else self.read(stored, sizes)

    @abstractmethod
    def read(self, stored: Any, sizes: Sizes) -> Any:
        """The value of a stored field that is not None."""

    def _code(self, templates: Mapping[str, str], name: str) -> str:
        a, b = f"self.{name}", f"other.{name}"
        code = templates[self.how].format(a=a, b=b, name=name)
        return f"None if {a} is None or {b} is None else {code}" if self.optional else code


class Whole(Spec):
    """A whole number, from `least` to `most`."""

    def __init__(
        self, how: str = "add", *, least: int = 0, most: Size = LARGEST, optional: bool = False
    ) -> None:
        super().__init__(how, optional=optional)
        self._range = least, most

    def merged(self, name: str) -> str:
        return self._code(_SCALARS, name)

    def read(self, stored: Any, sizes: Sizes) -> int:
        least, most = self._range
        return whole(stored, least, sized(most, sizes))


class Number(Spec):
    """A number in a range; NaN is in none."""

    def __init__(self, how: str, *, least: float = -math.inf, most: float = math.inf) -> None:
        super().__init__(how)
        self._range = least, most

    def merged(self, name: str) -> str:
        return self._code(_SCALARS, name)

    def read(self, stored: Any, sizes: Sizes) -> float:
        return number(stored, *self._range)


class Truth(Spec):
    """A truth value."""

    def merged(self, name: str) -> str:
        return self._code(_SCALARS, name)

    def read(self, stored: Any, sizes: Sizes) -> bool:
        return truth(stored)


class Array(Spec):
    """An array of numbers of one type, in a range; the sizes of its shape have names or are given.

    Without `nan`, the range is required of every number.
    """

    def __init__(
        self,
        dtype: str,
        *shape: Size,
        how: str = "add",
        least: float = -math.inf,
        most: Size | float = math.inf,
        nan: bool = False,
        increasing: bool = False,
        optional: bool = False,
    ) -> None:
        super().__init__(how, optional=optional)
        self._dtype, self._shape = np.dtype(dtype), shape
        self._least, self._most, self._nan, self._increasing = least, most, nan, increasing

    def before(self, name: str) -> list[str]:
        if self.how == "first":
            return []
        a, b = (
            f"shape_of({side}.{name})" if self.optional else f"{side}.{name}.shape"
            for side in ("self", "other")
        )
        # What is joined need not be of the same length.
        row_shape = "[1:]" if self.how == "join" else ""
        return [f"if {a}{row_shape} != {b}{row_shape}: differ(self, {name!r})"]

    def merged(self, name: str) -> str:
        return self._code(_ARRAYS, name)

    def read(self, stored: Any, sizes: Sizes) -> Any:
        array = numbers(stored, self._dtype, self._shape, sizes)
        if not self._nan and array.dtype.kind == "f" and np.isnan(array).any():
            raise UnreadableError("has invalid numbers")
        most = sized(self._most, sizes) if isinstance(self._most, str) else self._most
        within(array, self._least, most)
        if self._increasing and not bool((array[1:] > array[:-1]).all()):
            raise UnreadableError("does not increase")
        return array


class Text(Spec):
    """A text."""

    def merged(self, name: str) -> str:
        return self._code(_SCALARS, name)

    def read(self, stored: Any, sizes: Sizes) -> str:
        return text(stored)


class Ends(Spec):
    """The smallest and the largest of some numbers."""

    def __init__(self) -> None:
        super().__init__("both")

    def merged(self, name: str) -> str:
        a, b = f"self.{name}", f"other.{name}"
        return f"(min({a}[0], {b}[0]), max({a}[1], {b}[1]))"

    def read(self, stored: Any, sizes: Sizes) -> tuple[float, float]:
        if not isinstance(stored, (list, tuple)) or len(stored) != 2:
            raise UnreadableError(f"is {show(stored)}, and should be two numbers")
        return number(stored[0]), number(stored[1])


class Names(Spec):
    """A column of texts, numbers or dates, or None."""

    def __init__(self, *shape: Size) -> None:
        super().__init__("join", optional=True)
        self._shape = shape

    def merged(self, name: str) -> str:
        return f"joined_names(*comparable(self.{name}, other.{name}))"

    def pack(self, value: Any) -> Any:
        stored = None if value is None else to_store(value)
        return value if stored is None else stored

    def read(self, stored: Any, sizes: Sizes) -> Any:
        names = column(stored)
        fit(names.shape, self._shape, sizes)
        return names


class RowNumbers(Spec):
    """The first numbers of some rows, in order."""

    def __init__(self, most: int, kind: type = tuple) -> None:
        super().__init__("join")
        self._kind = kind
        self.names: Mapping[str, Any] = {"first_rows": lambda a, b: kind(sorted((*a, *b))[:most])}

    def merged(self, name: str) -> str:
        return f"first_rows(self.{name}, other.{name})"

    def pack(self, value: Any) -> Any:
        return np.array(value, np.int64)

    def read(self, stored: Any, sizes: Sizes) -> Any:
        given = stored.tolist() if isinstance(stored, np.ndarray) and stored.ndim == 1 else stored
        if not isinstance(given, (list, tuple)):
            raise UnreadableError(f"is {show(stored)}, and should be numbers of rows")
        return self._kind(whole(row, most=2**63 - 1) for row in given)


class Valued(Spec):
    """A value with `merge` or a sum, `to_values` and `from_values`, such as the bins of a histogram.

    `packed` are summaries as bytes of their own. What is `flat` has its values among those of the whole.
    """

    def __init__(
        self,
        cls: Any,
        how: str = "merge",
        *,
        packed: bool = False,
        flat: bool = False,
        optional: bool = False,
    ) -> None:
        super().__init__(how, optional=optional)
        self.cls: Any = cls
        self.packed: bool = packed
        self.flat: bool = flat

    def merged(self, name: str) -> str:
        return self._code({"merge": "{a}.merge({b})", "add": "{a} + {b}"}, name)

    def pack(self, value: Any) -> Any:
        if value is None:
            return None
        return value.to_bytes() if self.packed else value.to_values()

    def read(self, stored: Any, sizes: Sizes) -> Any:
        known = {name: sizes[name] for name in SHARED if name in sizes}
        if not self.packed:
            return self.cls.from_values(stored, known)
        return self.cls._read(read_bytes(stored), known)


class Each(Spec):
    """A mapping from names to values of the same kind.

    Both sides must have the same names ("same"), or may lack some ("union"). Where models are called like
    their files, names differ and the order counts ("order").
    """

    def __init__(
        self, of: Spec, keys: str = "same", *, names: Callable[[Any], Any] = text, flat: bool = False
    ) -> None:
        super().__init__(keys)
        self._of, self._names = of, names
        self.flat: bool = flat

    def merged(self, name: str) -> str:
        return f"{self.how}(self.{name}, other.{name}, {name!r})"

    def pack(self, value: Any) -> dict[str, Any]:
        return {name: self._of.pack(member) for name, member in value.items()}

    def read(self, stored: Any, sizes: Sizes) -> dict[str, Any]:
        members = {}
        for name, member in mapping(stored).items():
            with inside(name):
                members[self._names(name)] = self._of.unpack(member, sizes)
        return members


class Label(Spec):
    """A name of a class, a group or a row."""

    def __init__(self) -> None:
        super().__init__("equal")

    def merged(self, name: str) -> str:
        return self._code(_SCALARS, name)

    def read(self, stored: Any, sizes: Sizes) -> Any:
        return label(stored)


class Several(Spec):
    """A tuple of values of the same kind, which a class merges itself."""

    def __init__(self, of: Spec, *, optional: bool = False) -> None:
        super().__init__("first", optional=optional)
        self._of = of

    def merged(self, name: str) -> str:
        return f"self.{name}"

    def pack(self, value: Any) -> list[Any]:
        return [self._of.pack(member) for member in value]

    def read(self, stored: Any, sizes: Sizes) -> tuple[Any, ...]:
        if not isinstance(stored, (list, tuple)):
            raise UnreadableError(f"is {show(stored)}, and should be a list")
        members = []
        for i, member in enumerate(stored):
            with inside(i):
                members.append(self._of.unpack(member, sizes))
        return tuple(members)
