"""Checks of stored values: bytes that hold anything else are refused, with the part that is wrong."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from functools import cache
from typing import Any

import numpy as np

from verax.common.packing import UnreadableError
from verax.errors import show

# The largest count of rows, or of what is made of them: floats hold it exactly.
LARGEST = 2**53
# The largest sum of weights; beyond it, they are scaled before they are summed.
HEAVIEST = 2.0**511
Size = int | str
Sizes = dict[str, int]


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


def fit(sizes_stored: Sequence[int], shape: Sequence[Size], sizes: Sizes) -> None:
    """Refuse a shape that is another one; sizes that are met for the first time are kept."""
    right = len(sizes_stored) == len(shape)
    for length, size in zip(sizes_stored, shape, strict=False):
        if isinstance(size, str) and size.isidentifier():
            right = right and sizes.setdefault(size, length) == length
        else:
            try:
                right = right and sized(size, sizes) == length
            except NameError:
                # Only the recipe knows some sizes.
                continue
    if not right:
        wanted = [str(sizes.get(size, size)) if isinstance(size, str) else str(size) for size in shape]
        raise UnreadableError(f"has shape {tuple(sizes_stored)}, and should have ({', '.join(wanted)})")


def sized(size: Size, sizes: Sizes) -> int:
    """The value of a size."""
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
