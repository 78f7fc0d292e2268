"""Numbers of classes, which may be larger than any float."""

from __future__ import annotations

import math

# Label sets have 2**L classes. With more classes than these, an even share of the probability comes near the
# smallest double. In sums, more classes count as this number: their shares are nothing beside the rest.
MOST_CLASSES = 2**900
# Of more label sets the number has too many digits to be written.
MOST_SETS = 2**10_000


def as_float(n_classes: int) -> float:
    """A number of classes as a float; a stand-in that is as good in sums where it is too large for one."""
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
