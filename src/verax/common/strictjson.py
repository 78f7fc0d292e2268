"""Strict JSON: every reader accepts the output, and ambiguous input is refused.

Results have no NaN, no Infinity and no types that JSON does not have. Texts that are read have every key once
and are not nested too deeply.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection, Mapping
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from verax._settings import settings
from verax.errors import show

# Texts, which may hold brackets, and brackets.
_TOKENS = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[{\]}]', re.DOTALL)


class JsonError(ValueError):
    """A text is not JSON, or doubtful; the message says why in a few words."""


def parse(text: str | bytes, *, once: bool = True) -> Any:
    """The value of a JSON text; too many levels are refused, and by default a key that occurs twice.

    >>> parse('{"a": [1, 2]}')
    {'a': [1, 2]}
    >>> parse('{"a": 1, "a": 2}')
    Traceback (most recent call last):
    ...
    verax.common.strictjson.JsonError: the key 'a' occurs twice
    """
    if isinstance(text, bytes) and (value := _quick(text, once=once)) is not _UNREAD:
        return value
    try:
        if not isinstance(text, str):
            text = text.decode(json.detect_encoding(text), "surrogatepass")
        return (_DECODER if once else _ANY).decode(text)
    except json.JSONDecodeError as error:
        line = f"line {error.lineno}, " if error.lineno > 1 else ""
        raise JsonError(f"{error.msg} at {line}column {error.colno}") from None
    except UnicodeDecodeError:
        raise JsonError("it is not UTF-8") from None
    except RecursionError:
        raise JsonError("its values are nested too deeply") from None
    except JsonError:
        raise
    except ValueError:
        raise JsonError("a number has too many digits") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        names = [name for name, _ in pairs]
        raise JsonError(f"the key {show(next(name for name in names if names.count(name) > 1))} occurs twice")
    return mapping


_DECODER = json.JSONDecoder(object_pairs_hook=_once)
_ANY = json.JSONDecoder()


# The mark of a text that the quick way leaves to the careful one.
_UNREAD = object()


class _Library(NamedTuple):
    """What msgspec does: decode and encode values, and take objects apart without decoding their fields."""

    decode: Callable[[bytes], Any]
    encode: Callable[[Any], bytes]
    apart: Callable[[bytes], dict[str, Any]]


@cache
def _library() -> _Library | None:
    """What msgspec does; None where it is not installed."""
    try:
        from msgspec import Raw
        from msgspec import json as quick
    except ImportError:
        return None
    return _Library(quick.Decoder().decode, quick.Encoder().encode, quick.Decoder(dict[str, Raw]).decode)


def _quick(text: bytes, *, once: bool) -> Any:
    """The value of a text that msgspec reads, in which keys occur `once`; `_UNREAD` for any other.

    It keeps the last of two equal keys, so that the text of the value has fewer colons. Texts with an escaped
    colon, for which it would have more, are not read.
    """
    library = _library()
    if library is None or (once and rb"\u003" in text):
        return _UNREAD
    try:
        value = library.decode(text)
        same = not once or library.encode(value).count(b":") == text.count(b":")
        return value if same else _UNREAD
    except (ValueError, RecursionError, OverflowError):
        # What it does not read, such as NaN, or what is no JSON, is for the careful way to say.
        return _UNREAD


def parse_fields(text: bytes, names: Collection[str]) -> Any:
    """The value of a JSON text: of an object these fields only.

    With msgspec the others are not decoded, which takes little time and memory; no key of the object and of
    these fields may occur twice.

    >>> parse_fields(b'{"a": [1, 2], "b": 3}', ("b", "c"))
    {'b': 3}
    """
    library = _library()
    parts: dict[str, Any] | None = None
    if library is not None:
        try:
            parts = library.apart(text)
        except (ValueError, RecursionError):
            # What is no object, or no JSON, is for the careful way to say.
            parts = None
    # The colons of the object are those of its fields and one for each.
    if parts is None or text.count(b":") != len(parts) + sum(
        bytes(part).count(b":") for part in parts.values()
    ):
        value = parse(text)
        return {name: value[name] for name in names if name in value} if isinstance(value, dict) else value
    return {name: parse(bytes(parts[name])) for name in names if name in parts}


def levels(text: bytes) -> int:
    """The nesting depth of a JSON text; 0 if it has too few brackets to be too deep.

    >>> levels(b"[" * 300 + b"]" * 300), levels(b'{"a": [1]}')
    (300, 0)
    """
    if text.count(b"[") + text.count(b"{") <= settings.most_levels:
        return 0
    depth = most = 0
    for token in _TOKENS.finditer(text):
        mark = token[0]
        if mark in (b"[", b"{"):
            depth += 1
            most = max(most, depth)
        elif mark in (b"]", b"}"):
            depth -= 1
    return most


def to_json(result: Mapping[str, Any]) -> str:
    """A result as strict JSON."""
    return json.dumps(plain(result), indent=2, allow_nan=False, ensure_ascii=False)


def plain(value: Any) -> Any:
    """A value as JSON has it: infinities become the texts "inf" and "-inf", NaN becomes null.

    Dates and everything else that JSON does not know become texts.

    >>> plain({"mean": np.float64("inf"), "interval": (0.5, float("nan"))})
    {'mean': 'inf', 'interval': [0.5, None]}
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        if math.isnan(value):
            return None
        return value if math.isfinite(value) else "inf" if value > 0 else "-inf"
    if isinstance(value, Mapping):
        return {str(plain(key)): plain(inner) for key, inner in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(inner) for inner in value]
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)


def number(value: Any) -> float:
    """A number as `plain` writes it: None stands for NaN, texts for infinities.

    >>> number(0.5), number(None), number("-inf")
    (0.5, nan, -inf)
    """
    if value is None:
        return math.nan
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise TypeError(f"{show(value)} is not a number")
    if isinstance(value, str) and value not in ("inf", "-inf"):
        raise ValueError(f"{show(value)} is not a number")
    return float(value)
