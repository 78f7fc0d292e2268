"""Checks of options: each refuses a wrong value with an `InputError` that names the argument."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from functools import wraps
from typing import Any, TypeGuard, TypeVar

import numpy as np

from verax.common.texts import shortened
from verax.errors import InputError, Remedy, show

V = TypeVar("V")
# Label sets have 2**L classes. With more classes than these, an even share of the probability comes near the
# smallest double. In sums, more classes count as this number: their shares are nothing beside the rest.
MOST_CLASSES = 2**900
# Of more label sets the number has too many digits to be written.
MOST_SETS = 2**10_000


def as_float(n_classes: int) -> float:
    """A number of classes as a float, or a stand-in that is as good in sums if it is too large."""
    return float(min(n_classes, MOST_CLASSES))


def beyond_floats(n_classes: int) -> bool:
    """Whether logarithms must be taken of the number itself, because `as_float` is a stand-in."""
    return n_classes > MOST_CLASSES


def in_digits(n: int, digits: int = 4) -> str:
    """A number of classes as text: in full up to 15 digits, then rounded.

    >>> in_digits(128256), in_digits(2**71), in_digits(2**2000)
    ('128,256', '2.361e+21', '1.148e+602')
    """
    if n < 10**15:
        return f"{n:,}"
    if not beyond_floats(n):
        return f"{float(n):.{digits}g}"
    exponent = math.log10(n)
    return f"{10 ** (exponent % 1):.{digits}g}e+{int(exponent)}"


def check_choice(
    argument: str,
    value: object,
    allowed: Iterable[str | None],
    *,
    also: str = "",
    elsewhere: Mapping[str, str] | None = None,
) -> None:
    """Refuse a value that is not allowed, and name the nearest.

    Parameters
    ----------
    also : str
        What else would be allowed, in words.
    elsewhere : Mapping[str, str]
        What other packages call some of the values.
    """
    known = tuple(allowed)
    if type(value) is str and value in known:
        return
    if not any(value is choice or (isinstance(value, str) and value == choice) for choice in known):
        choices = [*map(repr, known), *([also] if also else [])]
        text = (value if isinstance(value, str) else show(value)).lower()
        near = [
            (elsewhere or {}).get(text),
            *get_close_matches(text, [choice for choice in known if choice], n=1),
        ]
        meant = next((choice for choice in near if choice in known and choice is not None), None)
        raise InputError(
            f"must be one of {', '.join(choices)}, not {show(value)}",
            argument=argument,
            values=[value],
            remedies=[] if meant is None else [Remedy(f"Did you mean {meant!r}?")],
        )


def is_whole(value: object) -> TypeGuard[int | np.integer[Any]]:
    """Whether it is a whole number. NumPy durations are integers by type, and are none.

    >>> is_whole(np.int8(3)), is_whole(np.timedelta64(3, "s")), is_whole(True)
    (True, False, False)
    """
    return isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.timedelta64))


def check_count(argument: str, value: object, *, least: int = 1) -> None:
    """Refuse anything but a whole number of at least `least`."""
    if not is_whole(value) or value < least:
        raise InputError(
            f"must be a whole number of at least {least}, not {show(value)}",
            argument=argument,
            values=[value],
        )


def check_integer(argument: str, value: object) -> int:
    """`value` as a Python integer; everything else is refused."""
    if not is_whole(value):
        raise InputError(
            f"must be a whole number, not {show(value)}", argument=argument, kind="type", values=[value]
        )
    return int(value)


def check_flag(argument: str, value: object) -> bool:
    """`value` as a Python bool; everything but True and False is refused."""
    if not isinstance(value, (bool, np.bool_)):
        raise InputError(
            f"must be True or False, not {show(value)}", argument=argument, kind="type", values=[value]
        )
    return bool(value)


def check_number(
    argument: str,
    value: object,
    requirement: str,
    holds: Callable[[float], bool],
    *,
    remedies: Iterable[Remedy] = (),
) -> float:
    """`value` as a plain Python number; refused unless it is finite, fits a double and `holds`.

    >>> check_number("base", np.float64(2), "must be a number above 1", lambda b: b > 1)
    2.0
    """
    number = plain_number(value)
    if number is None or not math.isfinite(number) or not holds(number):
        raise InputError(
            f"{requirement}, not {show(value)}",
            argument=argument,
            kind="type" if number is None else "value",
            values=[value],
            remedies=remedies,
        )
    return number


def looked_up(known: Mapping[Any, V], name: object, what: str) -> V:
    """What has a name; a `KeyError` for another one, which says what there is.

    >>> looked_up({"a": 1}, "a", "model")
    1
    """
    try:
        return known[name]
    except (KeyError, TypeError):
        there = shortened(", ".join(map(str, known)), 400)
        raise KeyError(f"there is no {what} {show(name)}; there are {there}") from None


def as_name(label: object) -> object:
    """What results call a class: the text of a label that is a single value."""
    plain = isinstance(label, (bool, int, float, np.generic)) or hasattr(label, "isoformat")
    return (show(label) if is_whole(label) else str(label)) if plain else label


def is_called(name: object, *names: object) -> bool:
    """Whether a name is one of these; what is no text is none."""
    return isinstance(name, str) and name in names


def check_names(argument: str, value: object) -> list[str]:
    """`value` as a list of texts, at least one; everything else is refused."""
    names = list(value) if isinstance(value, (list, tuple, dict, set, frozenset)) else []
    if not names or not all(isinstance(name, str) for name in names):
        raise InputError(
            f"must be a list of names, not {show(value)}", argument=argument, kind="type", values=[value]
        )
    return names


def any_number(argument: str, value: object) -> float:
    """`value` as a finite number of any size; everything else is refused."""
    return check_number(argument, value, "must be a number", lambda _: True)


def check_n_classes(value: object, *, most: int = MOST_CLASSES) -> int:
    """`value` as a Python integer that can be a number of classes."""
    if type(value) is int and 2 <= value <= most:
        return value
    check_count("n_classes", value, least=2)
    assert is_whole(value)
    if int(value) > most:
        limit = f"{most:,}" if most < 10**15 else f"2**{most.bit_length() - 1}"
        raise InputError(f"must be at most {limit}, not {show(value)}", argument="n_classes", values=[value])
    return int(value)


def with_checked_classes(method: Callable[[Any, int], Any]) -> Callable[[Any, int], Any]:
    """A method of a rule that checks its number of classes."""

    @wraps(method)
    def checked(self: Any, n_classes: int) -> Any:
        # Sums over ordered classes grow with their number, and must not be larger than any float.
        return method(self, check_n_classes(n_classes, most=MOST_CLASSES if self.ordinal else MOST_SETS))

    return checked


def plain_number(value: object) -> float | None:
    """A real number as a Python int or float; None for anything else."""
    if type(value) is float:
        return value
    if isinstance(value, (bool, np.bool_, np.timedelta64)) or not isinstance(value, numbers.Real):
        return None
    try:
        number = float(value)
    except OverflowError:
        return math.inf
    return int(value) if isinstance(value, numbers.Integral) else number
