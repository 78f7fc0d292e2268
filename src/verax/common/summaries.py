"""Summaries that merge: dataclasses whose fields say how they merge and what they may hold.

    class Longest(Summary, kind="longest list"):
        length: int = merges(Whole("most"))

`merge`, `to_bytes` and `from_bytes` follow from the fields. `merge` is compiled once per class to plain code.
Reading checks the type, shape and range of every field, so that a loaded summary is as good as a fresh one:
bytes that hold anything else are refused with the name of the part that is wrong. A class may override
`_aligned` (both in the form in which they merge), `_merged` (the merged one trimmed), `_check` (conditions on
several fields), or `merge` itself where that can be faster.

Shapes name sizes: fields that share a name have the same size there. A whole number among the fields is a
size by its own name. Sizes known beforehand, such as the number of classes, are passed to `from_bytes`.
"""

from __future__ import annotations

import dataclasses
import linecache
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from functools import cache
from types import MappingProxyType
from typing import Any, ClassVar, Self, TypeVar, cast, dataclass_transform

import numpy as np

from verax.common.packing import UnreadableError as UnreadableError
from verax.common.packing import dump, kind_in, load, refusing
from verax.errors import VeraxError, show

# The largest count of rows, or of what is made of them: floats hold it exactly.
LARGEST = 2**53
# The largest sum of weights; beyond it, they are scaled before they are summed.
HEAVIEST = 2.0**511
# Sizes that mean the same everywhere, so that summaries inside others know them.
SHARED = ("classes", "models", "rules")
Size = int | str
Sizes = dict[str, int]
T = TypeVar("T")

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


@contextmanager
def inside(name: object) -> Iterator[None]:
    """Say in which part something is wrong."""
    try:
        yield
    except UnreadableError as error:
        raise error.inside(name) from None


def text(stored: Any) -> str:
    """A text."""
    if not isinstance(stored, str):
        raise UnreadableError(f"is {show(stored)}, and should be a text")
    return stored


# ---- what a field may be ---------------------------------------------------------------------------


class Spec(ABC):
    """What a field holds, and how it merges and is stored."""

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

    def pack(self, value: Any) -> Any:
        """The value, to be stored."""
        return value

    def unpack(self, stored: Any, sizes: Sizes) -> Any:
        """The value from what was stored."""
        return None if stored is None and self.optional else self.read(stored, sizes)

    @abstractmethod
    def read(self, stored: Any, sizes: Sizes) -> Any:
        """The value from what was stored, which is there."""

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
        each = "[1:]" if self.how == "join" else ""
        return [f"if {a}{each} != {b}{each}: differ(self, {name!r})"]

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
        return f"joined_names(self.{name}, other.{name})"

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
    """What has `merge` or a sum, `to_values` and `from_values`, such as the bins of a histogram.

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
        return {name: self._of.pack(own) for name, own in value.items()}

    def read(self, stored: Any, sizes: Sizes) -> dict[str, Any]:
        found = {}
        for name, own in mapping(stored).items():
            with inside(name):
                found[self._names(name)] = self._of.unpack(own, sizes)
        return found


class Label(Spec):
    """A name of a class, a group or a row."""

    def __init__(self) -> None:
        super().__init__("equal")

    def merged(self, name: str) -> str:
        return self._code(_SCALARS, name)

    def read(self, stored: Any, sizes: Sizes) -> Any:
        return label(stored)


class KnownSummary(Spec):
    """A summary of any kind, as bytes."""

    def __init__(self) -> None:
        super().__init__("merge")

    def merged(self, name: str) -> str:
        return f"self.{name}.merge(other.{name})"

    def pack(self, value: Any) -> bytes:
        packed: bytes = value.to_bytes()
        return packed

    def read(self, stored: Any, sizes: Sizes) -> Any:
        known = {name: sizes[name] for name in SHARED if name in sizes}
        found = from_bytes(read_bytes(stored), known)
        if found is None:
            raise UnreadableError("is of a kind that this version does not know")
        return found


class Several(Spec):
    """A tuple of values of the same kind, which a class merges itself."""

    def __init__(self, of: Spec, *, optional: bool = False) -> None:
        super().__init__("first", optional=optional)
        self._of = of

    def merged(self, name: str) -> str:
        return f"self.{name}"

    def pack(self, value: Any) -> list[Any]:
        return [self._of.pack(own) for own in value]

    def read(self, stored: Any, sizes: Sizes) -> tuple[Any, ...]:
        if not isinstance(stored, (list, tuple)):
            raise UnreadableError(f"is {show(stored)}, and should be a list")
        found = []
        for i, own in enumerate(stored):
            with inside(i):
                found.append(self._of.unpack(own, sizes))
        return tuple(found)


# ---- what values may be ----------------------------------------------------------------------------


def whole(stored: Any, least: int = 0, most: int = LARGEST) -> int:
    """A whole number in a range."""
    if isinstance(stored, (bool, np.bool_)) or not isinstance(stored, (int, np.integer)):
        raise UnreadableError(f"is {show(stored)}, and should be a whole number")
    if not least <= stored <= most:
        raise UnreadableError(f"is {show(stored)}, and should be from {least} to {most}")
    return int(stored)


def number(stored: Any, least: float = -math.inf, most: float = math.inf) -> float:
    """A number in a range."""
    if isinstance(stored, (bool, np.bool_)) or not isinstance(stored, (int, float, np.integer, np.floating)):
        raise UnreadableError(f"is {show(stored)}, and should be a number")
    if not least <= stored <= most or (isinstance(stored, int) and abs(stored) > LARGEST):
        raise UnreadableError(f"is {show(stored)}, and should be a number from {least} to {most}")
    return float(stored)


def truth(stored: Any) -> bool:
    """A truth value."""
    if not isinstance(stored, (bool, np.bool_)):
        raise UnreadableError(f"is {show(stored)}, and should be true or false")
    return bool(stored)


def mapping(stored: Any) -> Mapping[Any, Any]:
    """A mapping."""
    if not isinstance(stored, Mapping):
        raise UnreadableError(f"is {show(stored)}, and should be a mapping")
    return stored


def read_bytes(stored: Any) -> bytes:
    """Bytes."""
    if not isinstance(stored, bytes):
        raise UnreadableError(f"is {show(stored)}, and should be bytes")
    return stored


def label(stored: Any) -> Any:
    """A name of a class, a group or a row: a text, a number, a date, or several of these."""
    if isinstance(stored, tuple):
        return tuple(map(label, stored))
    if stored is not None and not isinstance(stored, (str, int, float, bytes, date, np.generic)):
        raise UnreadableError(f"has {show(stored)} where a name should be")
    return stored


def column(stored: Any) -> Any:
    """An array of texts, numbers or dates; or of pairs of these, as two fields."""
    if not isinstance(stored, np.ndarray):
        raise UnreadableError(f"is {show(stored)}, and should be a column of names")
    kinds = [stored] if stored.dtype.names is None else [stored[name] for name in stored.dtype.names]
    if any(kind.dtype.kind not in "biufUTSmM" for kind in kinds):
        raise UnreadableError("has names that are neither texts, numbers nor dates")
    return stored


def numbers(stored: Any, dtype: Any, shape: Sequence[Size], sizes: Sizes) -> Any:
    """An array of this type and shape."""
    if not isinstance(stored, np.ndarray) or stored.dtype != dtype:
        found = f"an array of {stored.dtype}" if isinstance(stored, np.ndarray) else show(stored)
        raise UnreadableError(f"is {found}, and should be an array of {dtype}")
    fit(stored.shape, shape, sizes)
    return stored


def fit(found: Sequence[int], shape: Sequence[Size], sizes: Sizes) -> None:
    """Refuse a shape that is another one; sizes that are met for the first time are kept."""
    right = len(found) == len(shape)
    for own, size in zip(found, shape, strict=False):
        if isinstance(size, str) and size.isidentifier():
            right = right and sizes.setdefault(size, own) == own
        else:
            try:
                right = right and sized(size, sizes) == own
            except NameError:
                # Only the recipe knows some sizes.
                continue
    if not right:
        wanted = [str(sizes.get(size, size)) if isinstance(size, str) else str(size) for size in shape]
        raise UnreadableError(f"has shape {tuple(found)}, and should have ({', '.join(wanted)})")


def sized(size: Size, sizes: Sizes) -> int:
    """What a size comes to."""
    return size if isinstance(size, int) else int(eval(_formula(size), {"__builtins__": {}}, sizes))


@cache
def _formula(size: str) -> Any:
    return compile(size, "<size>", "eval")


def within(array: Any, least: float, most: float) -> None:
    """Refuse numbers out of range; NaN is in every range."""
    if array.size and (bool((array < least).any()) or bool((array > most).any())):
        raise UnreadableError(f"has numbers that are not from {least} to {most}")


def only_weights(array: Any) -> None:
    """Refuse sums of weights that are none, or so large that their squares are no numbers."""
    if not bool(((array >= 0) & (array <= HEAVIEST)).all()):
        raise UnreadableError("has invalid sums of weights")


def only_counts(counts: Any) -> None:
    """Refuse floats that are no counts of rows."""
    if not bool(((counts >= 0) & (counts <= LARGEST) & (counts == np.floor(counts))).all()):
        raise UnreadableError("has numbers of rows that are not whole")


# ---- classes ---------------------------------------------------------------------------------------

# The classes of summaries by the kind that their bytes say.
KINDS: dict[str, Any] = {}
_SPECS: dict[Any, dict[str, Spec]] = {}


def merges(spec: Spec, *, default: Any = dataclasses.MISSING, factory: Any = dataclasses.MISSING) -> Any:
    """A field of a summary."""
    return dataclasses.field(metadata={"spec": spec}, default=default, default_factory=factory)


@dataclass_transform(frozen_default=True, field_specifiers=(merges, dataclasses.field))
class Summary:
    """What is kept of rows: a frozen dataclass that merges and is stored as its fields say.

    Merging is commutative and associative. Bytes say what kind they are. Without a kind, a summary is stored
    inside others only.
    """

    kind: ClassVar[str] = ""
    version: ClassVar[int] = 1

    def __init_subclass__(cls, *, kind: str = "", version: int = 1, frozen: bool = True) -> None:
        dataclasses.dataclass(frozen=frozen)(cls)
        if kind:
            cls.kind, cls.version = kind, version
            KINDS[kind] = cls

    def merge(self, other: Self, /) -> Self:
        """The summary of the rows of both; neither is changed.

        Parameters
        ----------
        other : Self
            The summary of other rows.

        Returns
        -------
        Self
            A new summary.
        """
        cls = type(self)
        merge = compiled(cls)
        cls.merge = merge  # type: ignore[method-assign]
        return cast(Self, merge(self, other))

    def _aligned(self, other: Self) -> tuple[Self, Self]:
        """Both in the form in which they merge."""
        return self, other

    def _merged(self) -> Self:
        """What merging has made, trimmed."""
        return self

    def _check(self) -> None:
        """Refuse stored fields that do not go together."""

    def to_values(self) -> dict[str, Any]:
        """The fields, to be stored."""
        values: dict[str, Any] = {}
        for name, spec in specs_of(type(self)).items():
            packed = spec.pack(getattr(self, name))
            if getattr(spec, "flat", False):
                values |= packed
            else:
                values[name] = packed
        return values

    @classmethod
    def from_values(cls, values: Any, sizes: Sizes | None = None) -> Self:
        """The summary that `to_values` stored.

        Parameters
        ----------
        values : mapping of str to value
            What `to_values` returned.
        sizes : dict of str to int, optional
            Sizes that are known; those found are added.

        Returns
        -------
        Self
            The summary.
        """
        own = {} if sizes is None else sizes
        made = cls(**fields_of(specs_of(cls), cls._named(mapping(values)), own))
        made._check()
        return made

    @classmethod
    def _named(cls, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """What was stored by the names of the fields, where an older version stored it otherwise."""
        return values

    def to_bytes(self) -> bytes:
        """As bytes that `from_bytes` reads, without pickle."""
        return dump(self.kind, self.to_values(), version=self.version)

    @classmethod
    def from_bytes(cls, data: bytes, sizes: Mapping[str, int] | None = None) -> Self:
        """The summary that `to_bytes` wrote; other bytes are refused.

        Parameters
        ----------
        data : bytes
            What `to_bytes` returned.
        sizes : mapping of str to int, optional
            Sizes that are known.

        Returns
        -------
        Self
            The summary.
        """
        with refusing("is missing or of another type"):
            return cls._read(data, dict(sizes or {}))

    @classmethod
    def _read(cls, data: bytes, sizes: Sizes) -> Self:
        return cls.from_values(load(data, cls.kind, version=cls.version), sizes)


def register(kind: str) -> Callable[[type[T]], type[T]]:
    """Make a class known by the kind that its bytes say; it has `merge`, `to_bytes` and `from_bytes`."""

    def known(cls: Any) -> Any:
        cls.kind = kind
        KINDS[kind] = cls
        return cls

    return known


def from_bytes(data: bytes, sizes: Mapping[str, int] | None = None) -> Any:
    """The summary in some bytes, whichever it is; None where nothing is known of its kind."""
    cls = KINDS.get(kind_in(data))
    return None if cls is None else cls.from_bytes(data, sizes)


def fields_of(specs: Mapping[str, Spec], values: Mapping[str, Any], sizes: Sizes) -> dict[str, Any]:
    """Stored values, each as its field says."""
    found = {}
    rest = dict(values)
    for name, spec in specs.items():
        if getattr(spec, "flat", False):
            names = specs_of(spec.cls) if isinstance(spec, Valued) else dict(rest)
            stored: Any = {inner: rest.pop(inner) for inner in names if inner in rest}
        elif name in rest:
            stored = rest.pop(name)
        else:
            raise UnreadableError("is missing", name)
        try:
            value = found[name] = spec.unpack(stored, sizes)
        except UnreadableError as error:
            raise error.inside(name) from None
        if isinstance(spec, Whole) and value is not None and sizes.setdefault(name, value) != value:
            raise UnreadableError(f"is {value}, and should be {sizes[name]}", name)
    if rest:
        raise UnreadableError("is not known", str(next(iter(rest))))
    return found


def specs_of(cls: Any) -> dict[str, Spec]:
    """What the fields of a class hold."""
    if cls not in _SPECS:
        own = {f.name: f.metadata["spec"] for f in dataclasses.fields(cls) if "spec" in f.metadata}
        _SPECS[cls] = own
    return _SPECS[cls]


def compiled(cls: Any) -> Callable[[Any, Any], Any]:
    """The method that merges two summaries of a class, as plain code."""
    specs = specs_of(cls)
    lines = ["if other.__class__ is not self.__class__: differ(self)"]
    lines += [] if cls._aligned is Summary._aligned else ["self, other = self._aligned(other)"]
    lines += [line for name, spec in specs.items() for line in spec.before(name)]
    made = ", ".join(f"{name}={spec.merged(name)}" for name, spec in specs.items())
    trimmed = "" if cls._merged is Summary._merged else "._merged()"
    lines.append(f"return cls({made}){trimmed}")
    code = "def merge(self, other):\n    " + "\n    ".join(lines)
    names = {**_NAMES, **{k: v for spec in specs.values() for k, v in spec.names.items()}, "cls": cls}
    place = f"<merge of {cls.__module__}.{cls.__qualname__}>"
    # So that tracebacks show it.
    linecache.cache[place] = len(code), None, code.splitlines(keepends=True), place
    exec(compile(code, place, "exec"), names)
    merge = names["merge"]
    merge.__doc__ = Summary.merge.__doc__
    return cast(Callable[[Any, Any], Any], merge)


_SETTINGS = "Summaries made with different settings cannot be merged"


# ---- what merging calls ----------------------------------------------------------------------------


def differ(summary: Any, name: str = "") -> None:
    """Refuse to merge what does not go together."""
    what = summary.kind or type(summary).__name__
    raise VeraxError(f"{_SETTINGS}: their {what} differ" + (f" in {name}." if name else "."))


def _alike(a: Any, b: Any, name: str) -> Any:
    if a != b:
        raise VeraxError(f"{_SETTINGS}: {name} is {show(a)} and {show(b)}.")
    return a


def same_names(a: Mapping[str, Any], b: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Values of the same names, merged."""
    if a.keys() != b.keys():
        raise VeraxError(f"{_SETTINGS}: their {name} have different names.")
    return {key: own.merge(b[key]) for key, own in a.items()}


def _union(a: Mapping[str, Any], b: Mapping[str, Any], _: str) -> dict[str, Any]:
    both = dict(a)
    for key, theirs in b.items():
        both[key] = both[key].merge(theirs) if key in both else theirs
    return both


def _order(a: Mapping[str, Any], b: Mapping[str, Any], name: str) -> dict[str, Any]:
    if len(a) != len(b):
        raise VeraxError(f"{_SETTINGS}: their numbers of {name} differ.")
    return {key: own.merge(theirs) for (key, own), theirs in zip(a.items(), b.values(), strict=True)}


def joined_names(a: Any, b: Any) -> Any:
    """The names of both; None where one side has none."""
    if a is None or b is None:
        return None
    try:
        return np.concatenate([a, b])
    except (TypeError, ValueError):
        raise VeraxError("Summaries with names of different types cannot be merged.") from None


def _shape_of(array: Any) -> Any:
    return () if array is None else array.shape


_NAMES = {
    "differ": differ,
    "alike": _alike,
    "same": same_names,
    "union": _union,
    "order": _order,
    "joined_names": joined_names,
    "shape_of": _shape_of,
    "minimum": np.minimum,
    "maximum": np.maximum,
    "concatenate": np.concatenate,
}
