"""Probabilities as language models state them in words: "70%", "about 0.7", or nothing."""

from __future__ import annotations

import math
import re
from typing import Any

_NUMBER = re.compile(
    r"(?<![\w.,])(?P<number>[-+]?(?:\d+(?:[.,]\d+)?|\.\d+)(?:[eE][-+]?\d+)?)"
    r"(?:\s*/\s*(?P<of>\d+(?:\.\d+)?))?\s*(?P<percent>%|percent\b|per cent\b)?"
)


def float_of(number: Any) -> float:
    """A number, or the text of one, as a float; infinite where it is too large for one, as JSON has 1e400.

    >>> float_of(10**400), float_of("-2.5")
    (inf, -2.5)
    """
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def number_of(value: Any) -> float | None:
    """The number that a value states; None where it states none, or more than one.

    >>> [number_of(v) for v in ("about 70%", "0,7", "7/10", ".5", 0.2, None, "60-70%", "unsure")]
    [0.7, 0.7, 0.7, 0.5, 0.2, None, None, None]
    """
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float_of(value) if value == value else None
    found = list(_NUMBER.finditer(value)) if isinstance(value, str) else []
    if len(found) != 1 or re.search(r"\d", value[: found[0].start()] + value[found[0].end() :]):
        return None
    number = float(found[0]["number"].replace(",", "."))
    if found[0]["of"] is not None:
        whole = float(found[0]["of"])
        number = number / whole if whole else float("nan")
    if found[0]["percent"] is not None:
        number /= 100
    return number if number == number else None


def is_plain(text: str) -> bool:
    """Whether a text is a number and nothing else."""
    try:
        float(text)
    except ValueError:
        return False
    return True
