"""Operations of kernels beside those of Python, and what they mean there.

In a kernel each is one instruction, not a call: `kernels.translation` knows them by name.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def select(condition: Any, first: Any, second: Any) -> Any:
    """`first` where the condition holds, else `second`; both are computed.

    >>> select(2 > 1, 0.5, 0.25)
    0.5
    """
    return first if condition else second


def plus(total: Any, term: Any) -> Any:
    """A sum that may be added up in any order."""
    return total + term


def fma(a: Any, b: Any, c: Any) -> Any:
    """The value of a * b + c; a kernel rounds it once."""
    return a * b + c


def lower(a: Any, b: Any) -> Any:
    """The smaller of two floats, none of which is missing."""
    return min(a, b)


def higher(a: Any, b: Any) -> Any:
    """The larger of two floats, none of which is missing."""
    return max(a, b)


def bits(x: Any) -> Any:
    """The 64 bits of a float, as an unsigned integer.

    >>> hex(bits(1.0))
    '0x3ff0000000000000'
    """
    return np.float64(x).view(np.uint64)


def from_bits(x: Any) -> Any:
    """The float of 64 bits."""
    return np.uint64(x).view(np.float64)


def fetch(item: Any) -> None:
    """Bring an item of an array near, because it will be changed soon; changes nothing."""


def add_several(total: Any, error: Any, *terms: Any) -> None:
    """Add terms to sums that lie side by side in an array from the item `total` on.

    What is rounded off is added to those from `error` on. A kernel does it for all terms at once.
    """


def turn_square(first: Any, second: Any, third: Any, fourth: Any, columns: Any) -> None:
    """Turn four numbers from each of four items of arrays on into columns of a local array."""
