"""Variants of one answer (" Paris", "Paris", "paris"), merged by a stated rule."""

from __future__ import annotations

import string
from collections.abc import Callable, Hashable
from functools import lru_cache

# White space, and how two kinds of tokenizers write it.
_SPACE = " \t\r\n\v\f\u00a0\u0120\u2581\u010a"
_MARKS = string.punctuation + "\u201c\u201d\u2018\u2019\u00ab\u00bb\u2026\u3002"


def _space(text: str) -> str:
    return text.strip(_SPACE)


def _case(text: str) -> str:
    return _space(text).casefold()


def _punctuation(text: str) -> str:
    return _case(text).strip(_MARKS + _SPACE) or _case(text)


_RULES: dict[str, Callable[[str], str]] = {"space": _space, "case": _case, "punctuation": _punctuation}
# What is the same class under each rule.
RULES = {
    "same": "entries with the same text",
    "space": "texts that differ in white space around them",
    "case": "texts that differ in white space around them or in case",
    "punctuation": "texts that differ in white space or punctuation around them or in case",
}


def merger(rule: str | None) -> Callable[[Hashable], Hashable] | None:
    r"""What a class is called under a rule of merging; None where nothing is merged.

    A text of which nothing would be left stays as it is.

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
