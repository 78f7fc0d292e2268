"""Sorting."""

from __future__ import annotations

from typing import Any

import numpy as np

from verax.kernels.ledger import compiles

# A table of integers may have this multiple of their number of places.
_APART = 16


def stable_order(key: Any) -> Any:
    """The places of the numbers in increasing order; of equal ones the first comes first.

    What `np.argsort(key, kind="stable")` gives for numbers that are not NaN, in a quarter of the time: the
    order that need not be stable is found by vector instructions, and so are the places of equal numbers.

    >>> stable_order(np.array([0.5, 0.1, 0.5, 0.1])).tolist()
    [1, 3, 0, 2]
    """
    order = np.argsort(key)
    ordered = key[order]
    rises = ordered[1:] != ordered[:-1]
    if not rises.all():
        # Runs of equal numbers are whole multiples apart, so sorting keeps them in place.
        run = np.cumsum(np.concatenate([[False], rises])) * len(key)
        order += run
        order.sort()
        order -= run
    return order


def distinct_values(values: Any) -> tuple[Any, Any]:
    """The different values in order, and the place of each value among them.

    What `np.unique(values, return_inverse=True)` gives for a 1-D array. Integers that are close together are
    marked in a table of all between the least and the greatest, which takes a tenth of the time of sorting.

    >>> distinct_values(np.array([7, 5, 7]))
    (array([5, 7]), array([1, 0, 1]))
    """
    marked = _marked(values) if len(values) and values.dtype.kind in "iu" else None
    return np.unique(values, return_inverse=True) if marked is None else marked


def _marked(values: Any) -> tuple[Any, Any] | None:
    """The different integers and their places, by a table; None if they are far apart."""
    table = _marked_from_zero(values) if compiles(len(values), ("labels", values.dtype)) else None
    if table is None:
        least, greatest = int(values.min()), int(values.max())
        if greatest - least > _APART * len(values) or greatest >= 2**63:
            return None
        # The places are a copy: those of the caller may change.
        offset = values.astype(np.int64)
        if least:
            offset -= least
        occurs = np.zeros(greatest - least + 1, np.bool_)
        occurs[offset] = True
    else:
        offset, occurs = table
        least = int(occurs.argmax())
        if least:
            offset -= least
            occurs = occurs[least:]
    if occurs.all():
        return np.arange(least, least + len(occurs), dtype=values.dtype), offset
    return (np.flatnonzero(occurs) + least).astype(values.dtype), (np.cumsum(occurs) - 1)[offset]


def _marked_from_zero(values: Any) -> tuple[Any, Any] | None:
    """A copy of the integers, and which of those up to the greatest occur, from reading them once.

    None where one is negative or no less than their number, which codes of groups are not.
    """
    from verax.kernels.counting import mark

    copied, occurs = np.empty(len(values), np.int64), np.zeros(len(values), np.bool_)
    greatest = mark(values, copied, occurs)
    return None if greatest < 0 else (copied, occurs[: greatest + 1])


def n_distinct(values: Any) -> int:
    """The number of different values of a 1-D array of numbers that are not NaN.

    What `len(np.unique(values))` gives, which looks each number up in a hash table and takes fifty times as
    long as sorting them by vector instructions.

    >>> n_distinct(np.array([7, 5, 7])), n_distinct(np.zeros(0))
    (2, 0)
    """
    ordered = np.sort(values)
    return min(len(ordered), 1) + int(np.count_nonzero(ordered[1:] != ordered[:-1]))


# Numbers that agree to this number of decimals are equal: they differ by rounding.
DECIMALS = 12


def rounded_order(key: Any) -> tuple[Any, Any]:
    """`stable_order` of numbers rounded to 12 decimals, and where the second of two neighbours is larger.

    A rounded number and the place of its row mostly fit into the 63 bits of one integer. Sorting integers
    takes a quarter of the time of finding an order.

    >>> order, rises = rounded_order(np.array([0.5, 0.1, 0.5 + 1e-14]))
    >>> order.tolist(), rises.tolist()
    ([1, 0, 2], [True, False])
    """
    n = len(key)
    bits = max(n - 1, 1).bit_length()
    with np.errstate(over="ignore"):
        scaled = key * 10.0**DECIMALS
        np.rint(scaled, out=scaled)
    low, high = scaled.min(initial=0.0), scaled.max(initial=0.0)
    if high - low < 2 ** (63 - bits) and max(high, -low) < 2**53:
        scaled -= low
        ordered = scaled.astype(np.int64)
        del scaled
        ordered <<= bits
        ordered |= np.arange(n)
        ordered.sort()
        order = ordered & ((1 << bits) - 1)
        ordered >>= bits
    else:
        key = np.round(key, DECIMALS)
        order = stable_order(key)
        ordered = key[order]
    return order, ordered[1:] != ordered[:-1]
