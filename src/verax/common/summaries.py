"""Summaries that merge: dataclasses whose fields declare how they merge and what they may hold.

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
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self, TypeVar, cast, dataclass_transform

import numpy as np

from verax.common.idkeys import comparable
from verax.common.packing import UnreadableError, dump, kind_in, load, refusing
from verax.common.specs import SHARED, Spec, Valued, Whole
from verax.common.stored import Sizes, mapping, read_bytes
from verax.errors import VeraxError, show

T = TypeVar("T")


# The classes of summaries by the kind that their bytes say.
KINDS: dict[str, Any] = {}
_SPECS: dict[Any, dict[str, Spec]] = {}


def merges(spec: Spec, *, default: Any = dataclasses.MISSING, factory: Any = dataclasses.MISSING) -> Any:
    """A field of a summary."""
    return dataclasses.field(metadata={"spec": spec}, default=default, default_factory=factory)


@dataclass_transform(frozen_default=True, field_specifiers=(merges, dataclasses.field))
class Summary:
    """A summary of rows: a frozen dataclass that merges and is stored as its fields declare.

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
        """The result of merging, trimmed."""
        return self

    def _check(self) -> None:
        """Refuse stored fields that do not go together."""

    def to_values(self) -> dict[str, Any]:
        """The fields, to be stored."""
        values: dict[str, Any] = {}
        specs = specs_of(type(self))
        fields = {name: getattr(self, name) for name in specs}
        for name, spec in specs.items():
            fields = spec.stored(name, fields, specs)
        for name, spec in specs.items():
            packed = spec.pack(fields[name])
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
        known_sizes = {} if sizes is None else sizes
        made = cls(**fields_of(specs_of(cls), cls._named(mapping(values)), known_sizes))
        made._check()
        return made

    @classmethod
    def _named(cls, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """Stored values by the names of today's fields, if an older version used others."""
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
    """The summary in some bytes, of any kind; None if its kind is not known."""
    cls = KINDS.get(kind_in(data))
    return None if cls is None else cls.from_bytes(data, sizes)


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
        summary = from_bytes(read_bytes(stored), known)
        if summary is None:
            raise UnreadableError("is of a kind that this version does not know")
        return summary


def fields_of(specs: Mapping[str, Spec], values: Mapping[str, Any], sizes: Sizes) -> dict[str, Any]:
    """Stored values, each as its field says."""
    fields = {}
    rest = dict(values)
    for name, spec in specs.items():
        if getattr(spec, "flat", False):
            names = specs_of(spec.cls) if isinstance(spec, Valued) else getattr(spec, "parts", dict(rest))
            stored: Any = {inner: rest.pop(inner) for inner in names if inner in rest}
        elif name in rest:
            stored = rest.pop(name)
        else:
            raise UnreadableError("is missing", name)
        try:
            value = fields[name] = spec.unpack(stored, sizes)
        except UnreadableError as error:
            raise error.inside(name) from None
        if isinstance(spec, Whole) and value is not None and sizes.setdefault(name, value) != value:
            raise UnreadableError(f"is {value}, and should be {sizes[name]}", name)
    if rest:
        raise UnreadableError("is not known", str(next(iter(rest))))
    return fields


def specs_of(cls: Any) -> dict[str, Spec]:
    """The specifications of the fields of a class."""
    if cls not in _SPECS:
        specs = {f.name: f.metadata["spec"] for f in dataclasses.fields(cls) if "spec" in f.metadata}
        _SPECS[cls] = specs
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
    """Refuse to merge summaries that do not fit."""
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
    return {key: ours.merge(b[key]) for key, ours in a.items()}


def _union(a: Mapping[str, Any], b: Mapping[str, Any], _: str) -> dict[str, Any]:
    both = dict(a)
    for key, theirs in b.items():
        both[key] = both[key].merge(theirs) if key in both else theirs
    return both


def _order(a: Mapping[str, Any], b: Mapping[str, Any], name: str) -> dict[str, Any]:
    if len(a) != len(b):
        raise VeraxError(f"{_SETTINGS}: their numbers of {name} differ.")
    return {key: ours.merge(theirs) for (key, ours), theirs in zip(a.items(), b.values(), strict=True)}


def joined_names(a: Any, b: Any) -> Any:
    """The names of both; None if one side has none."""
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
    "comparable": comparable,
    "shape_of": _shape_of,
    "minimum": np.minimum,
    "maximum": np.maximum,
    "concatenate": np.concatenate,
}
