"""Sums with their rounding errors."""

from __future__ import annotations

from typing import Any


def two_sum(a: Any, b: Any) -> tuple[Any, Any]:
    """The rounded sum and the rounding error, which is exact (Knuth); for numbers and arrays of any kind."""
    total = a + b
    virtual = total - a
    return total, (a - (total - virtual)) + (b - virtual)
