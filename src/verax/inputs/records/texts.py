"""Texts in records: variants with the same meaning, and the numbers that texts state."""

from __future__ import annotations

import math
import re
import string
from collections.abc import Callable, Hashable
from functools import lru_cache
from typing import Any

# White space, also as two kinds of tokenizers write it.
_SPACE = " \t\r\n\v\f\u00a0\u0120\u2581\u010a"
_MARKS = string.punctuation + "\u201c\u201d\u2018\u2019\u00ab\u00bb\u2026\u3002"


def _space(text: str) -> str:
    return text.strip(_SPACE)


def _case(text: str) -> str:
    return _space(text).casefold()


def _punctuation(text: str) -> str:
    return _case(text).strip(_MARKS + _SPACE) or _case(text)


_RULES: dict[str, Callable[[str], str]] = {"space": _space, "case": _case, "punctuation": _punctuation}
# Texts of the same class under each rule.
RULES = {
    "same": "entries with the same text",
    "space": "texts that differ in white space around them",
    "case": "texts that differ in white space around them or in case",
    "punctuation": "texts that differ in white space or punctuation around them or in case",
}


def merger(rule: str | None) -> Callable[[Hashable], Hashable] | None:
    r"""The name of a class under a merging rule; None without one.

    A text that would become empty stays unchanged.

    >>> called = merger("punctuation")
    >>> [called(text) for text in (" Paris", "paris", "Paris.", "\u2581Paris", "\n", 7)]
    ['paris', 'paris', 'paris', 'paris', '\n', 7]
    """
    if rule is None:
        return None
    change = _RULES.get(rule)
    if change is None:
        return lambda name: name

    @lru_cache(maxsize=2**16)
    def called(name: Hashable) -> Hashable:
        return (change(name) or name) if isinstance(name, str) else name

    return called


_NUMBER = re.compile(
    r"(?<![\w.,])(?P<number>[-+]?(?:\d+(?:[.,]\d+)?|\.\d+)(?:[eE][-+]?\d+)?)"
    r"(?:\s*/\s*(?P<of>\d+(?:\.\d+)?))?\s*(?P<percent>%|percent\b|per cent\b)?"
)


def float_of(number: Any) -> float:
    """A number, or the text of one, as a float; infinite if it is too large, such as 1e400 in JSON.

    >>> float_of(10**400), float_of("-2.5")
    (inf, -2.5)
    """
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def number_of(value: Any) -> float | None:
    """The number that a value states; None for none or more than one.

    >>> [number_of(v) for v in ("about 70%", "0,7", "7/10", ".5", 0.2, None, "60-70%", "unsure")]
    [0.7, 0.7, 0.7, 0.5, 0.2, None, None, None]
    """
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float_of(value) if value == value else None
    matches = list(_NUMBER.finditer(value)) if isinstance(value, str) else []
    if len(matches) != 1 or re.search(r"\d", value[: matches[0].start()] + value[matches[0].end() :]):
        return None
    number = float(matches[0]["number"].replace(",", "."))
    if matches[0]["of"] is not None:
        whole = float(matches[0]["of"])
        number = number / whole if whole else float("nan")
    if matches[0]["percent"] is not None:
        number /= 100
    return number if number == number else None


def is_plain(text: str) -> bool:
    """Whether a text is a number and nothing else."""
    try:
        float(text)
    except ValueError:
        return False
    return True
