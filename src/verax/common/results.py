"""Results as JSON: their content, and the values needed to rebuild them.

`to_dict` gives strict JSON. What a reader wants to know has plain names; infinities are the texts
"inf" and "-inf", NaN is null. Under "stored" stand the fields of the result itself, arrays as base64 of
their bytes, from which `from_dict` makes an equal one. Reading runs no code from the dict.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, ClassVar, Self

import numpy as np

from verax._version import __version__
from verax.common.checks import check_flag
from verax.common.faces import face_of
from verax.common.kinds import SPECIAL, below, check_fields, named, records_in, special_of, stored_name
from verax.common.packing import Reader, Writer
from verax.common.strictjson import plain
from verax.errors import InputError, show

# The version of what is stored as "stored".
VERSION = 1
# What a result may know that is not one of its fields.
_BESIDE = ("skipped", "faults", "sampled")
# What a result may bring along that two equal ones need not share.
_MEASURED = ("known", "judged")
_RECORD, _SET = "record", "set"


class Result:
    """A base of all results: they are written as JSON, read back, and equal if all they hold is."""

    # What JSON has beside the fields (see `faces`).
    _facts: ClassVar[tuple[str, ...]] = ()
    # The classes of what is kept beside the fields.
    _parts: ClassVar[tuple[type, ...]] = ()

    def to_dict(self, *, stored: bool = True) -> dict[str, Any]:
        """Everything as strict JSON: ``json.dumps(..., allow_nan=False)`` accepts it.

        Infinities are the texts "inf" and "-inf", NaN is None.

        Parameters
        ----------
        stored : bool, default True
            Whether to add "stored", from which `from_dict` makes the result again. It is as large as the
            result; some hold a number or more per row. It is None if the result holds rules or labels
            that verax cannot know by name.

        Returns
        -------
        dict
            What there is to know, by name.
        """
        stored = check_flag("stored", stored)
        shown = plain(self._as_dict())
        assert isinstance(shown, dict)
        if not stored:
            return shown
        try:
            kept = {"verax": __version__, "version": VERSION, **_Fields(type(self)).record(self)}
        except InputError:
            return {**shown, "stored": None}
        return {**shown, "stored": kept}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """The result of which `to_dict` gave these values, from here or from JSON.

        Parameters
        ----------
        values : mapping of str to value
            What `to_dict` gave. Only "stored" is read.

        Returns
        -------
        Self
            An equal result.
        """
        stored = values.get("stored") if isinstance(values, Mapping) else None
        version = stored.get("version") if isinstance(stored, Mapping) else None
        if version is None:
            raise _unfit(
                "must be what `to_dict` gave",
                "there is nothing stored, because the result holds what verax does not know by name or "
                "because of stored=False",
            )
        if type(version) is not int or version > VERSION:
            raise _unfit(
                f"must be of version {VERSION} or older, which this verax knows",
                f"the version is {show(version)}",
            )
        try:
            restored = _Restored().value(stored)
        except InputError:
            raise
        except (KeyError, TypeError, ValueError, IndexError, AttributeError, RecursionError) as error:
            raise _unfit(
                "must be what `to_dict` gave", f"some part is damaged ({show(str(error))})"
            ) from None
        if not isinstance(restored, cls):
            raise _unfit(
                f"must be those of a {cls.__name__}", f"they are those of a {type(restored).__name__}"
            )
        return restored

    def _as_dict(self) -> dict[str, Any]:
        """The JSON for readers: the verdict, fields and facts, rows left out."""
        return {**self._concluded(), **face_of(self), **self._noted()}

    @property
    def _verax(self) -> str:
        """The version that made the JSON."""
        return __version__

    def _concluded(self) -> dict[str, Any]:
        """The verdict in JSON; empty without one."""
        return {}

    def _noted(self) -> dict[str, Any]:
        """The rows left out, in JSON."""
        return {}

    def _kept_beside(self) -> dict[str, Any]:
        """Values stored beside the fields, which equality ignores."""
        return {}

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and same(self, other)

    def __hash__(self) -> int:
        # By its texts alone: numbers that are equal may be of different types, and arrays have no hash.
        texts = [value for value in given_to(self).values() if isinstance(value, str)]
        return hash((type(self).__name__, *texts))


def given_to(value: Any) -> dict[str, Any]:
    """The values needed to rebuild an object, and those kept besides its fields."""
    given = (
        value._given()
        if hasattr(value, "_given")
        else {f.name: getattr(value, f.name) for f in fields(value)}
    )
    beside = {name: vars(value)[name] for name in _BESIDE if name in getattr(value, "__dict__", ())}
    return {**given, **{f"{name}:": known for name, known in beside.items() if name not in given}}


def same(a: Any, b: Any) -> bool:
    """Whether two values of any kind are equal; NaN equals NaN.

    >>> same({"a": [np.array([1.0, np.nan])]}, {"a": [np.array([1.0, np.nan])]}), same((0.5, 1), (0.5, 2))
    (True, False)
    """
    if a is b:
        return True
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return _same_arrays(a, b)
    if isinstance(a, Mapping) and isinstance(b, Mapping) and not isinstance(a, Result):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, float) and isinstance(b, float):
        return a == b or (math.isnan(a) and math.isnan(b))
    if type(a) is not type(b):
        return isinstance(a, (int, float, np.number)) and bool(a == b)
    kind = special_of(a)
    if kind is not None:
        return _same_special(kind, a, b)
    if isinstance(a, Result) or is_dataclass(a):
        return same(given_to(a), given_to(b))
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(a == b)


def _same_arrays(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> bool:
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    return bool(np.array_equal(a, b, equal_nan=a.dtype.kind in "fc"))


def _same_special(kind: str, a: Any, b: Any) -> bool:
    if kind == "sums":
        return same((a.rules, a.to_values()), (b.rules, b.to_values()))
    write = named(SPECIAL[kind].write)
    try:
        first, second = write(a), write(b)
    except InputError:
        return bool(a == b)
    return same(first, second)


def _unfit(requirement: str, found: str) -> InputError:
    return InputError(requirement, argument="values", kind="value", found=found)


class _Fields(Writer):
    """Writes results of a class; arrays are in place, as base64."""

    def __init__(self, cls: type[Result]) -> None:
        super().__init__()
        self._records = records_in(cls)

    def plain(self, value: Any) -> Any:
        kind = special_of(value)
        if kind is not None:
            return {"$": _RECORD, "kind": kind, "of": self.plain(named(SPECIAL[kind].write)(value))}
        if self._records.get(stored_name(type(value))) is type(value):
            return self.record(value)
        if isinstance(value, frozenset):
            # By what is written: sets inside sets have no order of their own.
            return {"$": _SET, "of": sorted(map(self.plain, value), key=json.dumps)}
        return super().plain(value)

    def record(self, value: Any) -> dict[str, Any]:
        """A value as its fields."""
        beside = value._kept_beside() if isinstance(value, Result) else {}
        given = {**given_to(value), **{f"{name}:": known for name, known in beside.items()}}
        packed = {name: self.plain(known) for name, known in given.items()}
        return {"$": _RECORD, "kind": stored_name(type(value)), "of": packed}

    def _push(self, piece: bytes) -> str:
        return base64.b64encode(piece).decode("ascii")


class _Restored(Reader):
    """Reads values that `_Fields` wrote."""

    marks = Reader.marks | {_RECORD, _SET}

    def __init__(self) -> None:
        super().__init__(memoryview(b""))
        # What a result may hold; before its class is known, all results.
        self._records: dict[str, Any] = {}

    def _record_of(self, stored: Any) -> Any:
        kind = stored["kind"]
        if kind in SPECIAL:
            return named(SPECIAL[kind].read)(self.value(stored["of"]))
        if not self._records:
            results = {stored_name(cls): cls for cls in below(Result)}
            self._records = records_in(results[kind]) if kind in results else {}
        if kind not in self._records:
            raise ValueError(f"nothing is called {show(kind)}")
        cls = self._records[kind]
        values = {name: self.value(known) for name, known in dict(stored["of"]).items()}
        beside = {name: values.pop(f"{name}:") for name in (*_BESIDE, *_MEASURED) if f"{name}:" in values}
        check_fields(cls, values)
        record = cls(**values)
        for name, known in beside.items():
            # Results are frozen, and this is none of their fields.
            object.__setattr__(record, name, known)
        return record

    def _set_of(self, stored: Any) -> frozenset[Any]:
        return frozenset(map(self.value, stored["of"]))

    def _pull(self, n: Any) -> memoryview:
        return memoryview(base64.b64decode(n, validate=True))
