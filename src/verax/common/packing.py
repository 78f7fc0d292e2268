"""Summaries as bytes: a tree of plain values and NumPy arrays, written without pickle.

    dump("kind", {"name": value, ...}) -> bytes          load(bytes, "kind") -> {"name": value, ...}

Values are None, truth values, numbers, texts, bytes, dates, NumPy scalars and arrays, and lists, tuples and
mappings of these; they come back equal, with the types they had. Arrays are little-endian, of texts as UTF-8,
and without their zeros where that is shorter.

Layout: 8 bytes of MAGIC, the version of the layout, the lengths of header and body (3 little-endian integers
of 8 bytes), 16 bytes of checksum of all the rest, a JSON header with the tree, and a body with the arrays.
Reading runs no code from the bytes; it refuses what is damaged, cut short, foreign or newer.
"""

from __future__ import annotations

import json
import math
import re
import struct
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import date, datetime
from hashlib import blake2b
from itertools import pairwise
from typing import Any, NoReturn

import numpy as np

from verax._settings import settings
from verax._version import __version__
from verax.errors import InputError, show

MAGIC = b"VERAX\r\n\x1a"
VERSION = 1
_PREFIX = struct.Struct("<8s3Q16s")
_KIND = re.compile(rb'\{"kind":"([^"\\]+)"')
# Marks objects of the header that are not plain mappings.
_TAG = "$"
# What a text takes in memory while it is read, at least.
_TEXT = 64
# Types of elements that are stored as they are in memory.
_RAW = re.compile(r"[<|](b1|[iu][1248]|f[248]|c8|c16|S\d{1,9}|[mM]8(\[\d{0,9}[a-zA-Z]{1,2}\])?)")


def dump(kind: str, values: Mapping[str, Any], *, version: int = 1) -> bytes:
    """Write values as bytes; `kind` names their subject, `version` their layout.

    >>> stored = dump("example", {"labels": np.array(["a", "b"]), "n": 2, "pairs": [(1, 0.5)]})
    >>> load(stored, "example")
    {'labels': array(['a', 'b'], dtype='<U1'), 'n': 2, 'pairs': [(1, 0.5)]}
    """
    writer = Writer()
    about = {"kind": kind, "version": version, "verax": __version__}
    tree = {**about, "values": writer.plain(dict(values))}
    header = json.dumps(tree, separators=(",", ":"), allow_nan=False).encode("ascii")
    body = b"".join(writer.pieces)
    lengths = (VERSION, len(header), len(body))
    return _PREFIX.pack(MAGIC, *lengths, _checksum(*lengths, header, body)) + header + body


def load(data: bytes, kind: str, *, version: int = 1) -> dict[str, Any]:
    """The values that `dump` wrote under this kind, in this version or an older one."""
    header, body = _parts(data)
    with refusing("is damaged"):
        tree = json.loads(header, parse_constant=_refuse)
        its_kind, its_version, stored = tree["kind"], tree["version"], tree["values"]
        if its_kind != kind:
            raise unfit(f"must hold a {kind}", f"they hold {show(its_kind)}")
        if not isinstance(its_version, int) or its_version > version:
            raise unfit(*_newer(its_version, version, tree.get("verax")))
        values = Reader(body).value(stored)
        if not isinstance(values, dict):
            raise TypeError("the values are not a mapping")
    return values


def kind_in(data: bytes) -> str:
    """The kind of bytes that `dump` wrote."""
    header, _ = _parts(data)
    with refusing("is damaged"):
        return str(json.loads(header, parse_constant=_refuse)["kind"])


def kind_at(start: bytes) -> str:
    """The kind of bytes that begin like this, unchecked; empty where none is named."""
    found = _KIND.match(start, _PREFIX.size)
    return found.group(1).decode() if found and start.startswith(MAGIC) else ""


class UnreadableError(Exception):
    """A stored part is damaged: its path, and the fault."""

    def __init__(self, what: str, *path: str) -> None:
        super().__init__(what)
        self.what: str = what
        self.path: tuple[str, ...] = path

    def inside(self, name: object) -> UnreadableError:
        """The error about a part inside the part of this name."""
        return UnreadableError(self.what, str(name), *self.path)

    def error(self) -> InputError:
        """The error about the bytes."""
        where = ".".join(self.path)
        found = f"their part `{where}` {self.what}" if where else f"some part {self.what}"
        return unfit("must be bytes that verax wrote", found)


# What reading what is not as it should be may raise.
_RAW_ERRORS = (
    *(LookupError, TypeError, ValueError, ArithmeticError),
    *(AttributeError, RecursionError, MemoryError),
)


@contextmanager
def refusing(what: str) -> Iterator[None]:
    """Turn failures of reading stored values into an error about the bytes."""
    try:
        yield
    except InputError:
        raise
    except UnreadableError as error:
        raise error.error() from None
    except _RAW_ERRORS as e:
        raise unfit("must be bytes that verax wrote", f"some part of them {what} ({show(str(e))})") from None


def unfit(requirement: str, found: str) -> InputError:
    """The error about bytes that cannot be read."""
    return InputError(requirement, argument="data", kind="file", found=found)


def _newer(found: object, known: int, writer: object = None) -> tuple[str, str]:
    by = f"verax {writer}" if isinstance(writer, str) else "a newer verax"
    return (
        f"must be of version {known} or older, which verax {__version__} knows",
        f"the version is {show(found)}: {by} wrote them",
    )


def _parts(data: bytes) -> tuple[bytes, memoryview]:
    """Header and body, with lengths and checksum checked."""
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise InputError("must be bytes", argument="data", kind="type", found=f"it is {show(data)}")
    view = memoryview(data).cast("B")
    if bytes(view[: len(MAGIC)]) != MAGIC[: len(view)] or not len(view):
        raise unfit("must be bytes that verax wrote", "they begin with something else")
    if len(view) < _PREFIX.size:
        raise unfit("must be complete", f"there are {len(view)} bytes only")
    _, version, n_header, n_body, checksum = _PREFIX.unpack(view[: _PREFIX.size])
    if version > VERSION:
        raise unfit(*_newer(version, VERSION))
    expected = _PREFIX.size + n_header + n_body
    if len(view) != expected:
        raise unfit("must be complete", f"there are {len(view):,} bytes, and should be {expected:,}")
    header, body = view[_PREFIX.size : _PREFIX.size + n_header], view[_PREFIX.size + n_header :]
    if _checksum(version, n_header, n_body, header, body) != checksum:
        raise unfit("must be as verax wrote them", "their checksum differs: they are damaged")
    return bytes(header), body


def _checksum(version: int, n_header: int, n_body: int, header: Any, body: Any) -> bytes:
    digest = blake2b(struct.pack("<3Q", version, n_header, n_body), digest_size=16)
    digest.update(header)
    digest.update(body)
    return digest.digest()


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


class Writer:
    """Turns values into JSON; arrays go to `pieces`."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self._expanded = 0

    def plain(self, value: Any) -> Any:
        if value is None or type(value) in (bool, int, str):
            return value
        for kind, write in self._ways():
            if isinstance(value, kind):
                return write(value)
        raise _cannot(f"there is a {type(value).__name__}")

    def _ways(self) -> tuple[tuple[Any, Callable[[Any], Any]], ...]:
        return (
            (np.ndarray, self._array),
            (np.generic, lambda v: {_TAG: "scalar", "of": self._array(np.asarray(v))}),
            (float, _float),
            (Mapping, self._mapping),
            (list, lambda v: [self.plain(item) for item in v]),
            (tuple, lambda v: {_TAG: "tuple", "of": [self.plain(item) for item in v]}),
            (bytes, lambda v: {_TAG: "bytes", "n": self._push(v)}),
            (datetime, lambda v: _iso(v, "datetime")),
            (date, lambda v: _iso(v, "date")),
            (int, int),
            (str, lambda v: str.__str__(v)),
        )

    def _mapping(self, value: Mapping[Any, Any]) -> Any:
        if all(isinstance(key, str) and not key.startswith(_TAG) for key in value):
            return {key: self.plain(inner) for key, inner in value.items()}
        items = [[self.plain(key), self.plain(inner)] for key, inner in value.items()]
        return {_TAG: "mapping", "of": items}

    def _array(self, array: np.ndarray[Any, Any]) -> dict[str, Any]:
        if array.dtype.names is not None:
            columns = [self._array(array[name]) for name in array.dtype.names]
            return {_TAG: "fields", "names": list(array.dtype.names), "of": columns}
        shape = list(array.shape)
        if array.dtype.kind in "UT":
            return {_TAG: "texts", "shape": shape, **self._texts(array)}
        array = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
        if not _RAW.fullmatch(array.dtype.str):
            raise _cannot(f"there is an array of type {array.dtype}")
        facts = {_TAG: "array", "dtype": array.dtype.str, "shape": shape}
        filled = self._filled(array)
        if filled is None:
            return {**facts, "n": self._push(array.tobytes())}
        places = filled.astype("<u4")
        return {
            **facts,
            "filled": len(places),
            "n": self._push(places.tobytes() + array.reshape(-1)[filled].tobytes()),
        }

    def _filled(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any] | None:
        """The places of the elements that are not zero bytes, if it is shorter to store only those."""
        size = array.itemsize
        if size not in (1, 2, 4, 8) or not 16 <= array.size < 2**32:
            return None
        filled = np.flatnonzero(array.reshape(-1).view(f"<u{size}"))
        if len(filled) * (size + 4) >= array.nbytes or not self._may_expand(array.nbytes):
            return None
        return filled

    def _texts(self, array: np.ndarray[Any, Any]) -> dict[str, Any]:
        """Texts as UTF-8 and the length of each; of fixed width as in memory if they are too large."""
        if array.dtype.kind == "U" and not self._may_expand(array.nbytes):
            points = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
            return {"width": array.dtype.itemsize // 4, "n": self._push(points.tobytes())}
        texts = array.ravel().tolist()
        if not all(isinstance(text, str) for text in texts):
            raise _cannot("some texts of an array are missing")
        encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
        lengths = np.array([len(text) for text in encoded], "<u4")
        facts = {_TAG: "array", "dtype": "<u4", "shape": list(lengths.shape)}
        # With all lengths in the file, texts take a bounded multiple of it.
        return {
            "lengths": {**facts, "n": self._push(lengths.tobytes())},
            "fixed": array.dtype.kind == "U",
            "n": self._push(b"".join(encoded)),
        }

    def _may_expand(self, n: int) -> bool:
        """Whether an array of `n` bytes may be stored in a shorter form."""
        if self._expanded + n > settings.most_expanded:
            return False
        self._expanded += n
        return True

    def _push(self, piece: bytes) -> Any:
        """Put bytes aside; return their stand-in for the header."""
        self.pieces.append(piece)
        return len(piece)


def _float(value: float) -> Any:
    if math.isfinite(value):
        return float(value)
    return {_TAG: "float", "of": repr(float(value))}


def _iso(value: date, kind: str) -> dict[str, str]:
    text = value.isoformat()
    if type(value).fromisoformat(text) != value or getattr(value, "nanosecond", None):
        raise _cannot(f"there is a {type(value).__name__} that ISO 8601 does not write exactly")
    return {_TAG: kind, "of": text}


def _cannot(found: str) -> InputError:
    return InputError(
        "must be texts, numbers or dates, or arrays of them, to be stored",
        argument="values",
        kind="type",
        found=found,
    )


class Reader:
    """Turns the header back into values; pieces of the body follow one another in the order of the header."""

    # What a mark may say.
    marks: frozenset[str] = frozenset(
        (
            *("float", "bytes", "date", "datetime", "scalar"),
            *("tuple", "mapping", "fields", "array", "texts"),
        )
    )

    def __init__(self, body: memoryview) -> None:
        self._body = body
        self._at = 0
        self._expanded = 0

    def value(self, stored: Any) -> Any:
        if isinstance(stored, list):
            return [self.value(item) for item in stored]
        if not isinstance(stored, dict):
            return stored
        if _TAG not in stored:
            return {key: self.value(inner) for key, inner in stored.items()}
        if stored[_TAG] not in self.marks:
            raise ValueError(f"nothing is called {stored[_TAG]}")
        return getattr(self, f"_{stored[_TAG]}_of")(stored)

    def _float_of(self, stored: Any) -> float:
        return {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}[stored["of"]]

    def _tuple_of(self, stored: Any) -> tuple[Any, ...]:
        return tuple(self.value(item) for item in stored["of"])

    def _mapping_of(self, stored: Any) -> dict[Any, Any]:
        return {self.value(key): self.value(inner) for key, inner in stored["of"]}

    def _bytes_of(self, stored: Any) -> bytes:
        return bytes(self._pull(stored["n"]))

    def _date_of(self, stored: Any) -> date:
        return date.fromisoformat(stored["of"])

    def _datetime_of(self, stored: Any) -> datetime:
        return datetime.fromisoformat(stored["of"])

    def _scalar_of(self, stored: Any) -> Any:
        return self.value(stored["of"]).reshape(1)[0]

    def _fields_of(self, stored: Any) -> np.ndarray[Any, Any]:
        columns = [self.value(column) for column in stored["of"]]
        fields = [(str(name), column.dtype) for name, column in zip(stored["names"], columns, strict=True)]
        array = np.empty(columns[0].shape, fields)
        for (name, _), column in zip(fields, columns, strict=True):
            if column.shape != array.shape:
                raise ValueError("fields of different lengths")
            array[name] = column
        return array

    def _array_of(self, stored: Any) -> np.ndarray[Any, Any]:
        if not _RAW.fullmatch(stored["dtype"]):
            raise TypeError(f"arrays of type {stored['dtype']}")
        dtype, shape = np.dtype(stored["dtype"]), _shape(stored["shape"])
        piece = self._pull(stored["n"])
        if "filled" not in stored:
            return np.frombuffer(piece, dtype).reshape(shape).copy()
        n = 4 * int(stored["filled"])
        places, elements = np.frombuffer(piece[:n], "<u4"), np.frombuffer(piece[n:], dtype)
        size = math.prod(shape)
        self._expand(size * dtype.itemsize)
        array = np.zeros(size, dtype)
        if len(places) != len(elements):
            raise ValueError("places without elements")
        array[places] = elements
        return array.reshape(shape)

    def _texts_of(self, stored: Any) -> np.ndarray[Any, Any]:
        shape = _shape(stored["shape"])
        if "width" in stored:
            piece = self._pull(stored["n"])
            return np.frombuffer(piece, f"<U{int(stored['width'])}").reshape(shape).copy()
        lengths = self.value(stored["lengths"])
        if "filled" in stored["lengths"]:
            self._expand(_TEXT * len(lengths))
        encoded = bytes(self._pull(stored["n"]))
        ends = [0, *np.cumsum(lengths, dtype=np.int64).tolist()]
        if ends[-1] != len(encoded) or len(lengths) != math.prod(shape):
            raise ValueError("texts of other lengths")
        texts = [encoded[start:end].decode("utf-8", "surrogatepass") for start, end in pairwise(ends)]
        if not stored["fixed"]:
            return np.array(texts, np.dtypes.StringDType()).reshape(shape)
        self._expand(4 * len(texts) * max(map(len, texts), default=0))
        return np.array(texts, str).reshape(shape)

    def _expand(self, n: int) -> None:
        self._expanded += n
        if self._expanded > settings.most_expanded:
            raise ValueError("arrays larger than allowed")

    def _pull(self, n: Any) -> memoryview:
        """The bytes that `_push` put aside."""
        if type(n) is not int or not 0 <= n <= len(self._body) - self._at:
            raise ValueError("pieces of other lengths")
        self._at += n
        return self._body[self._at - n : self._at]


def _shape(stored: Any) -> tuple[int, ...]:
    if not all(type(n) is int and n >= 0 for n in stored):
        raise ValueError("an invalid shape")
    return tuple(stored)
