"""Round numbers for the axes of drawings."""

from __future__ import annotations

import math


def round_numbers(low: float, high: float, about: int) -> list[float]:
    """Round numbers between two that differ, at most one more than `about`.

    >>> round_numbers(0.02, 0.31, 7)
    [0.05, 0.1, 0.15, 0.2, 0.25, 0.3]
    >>> round_numbers(0.39, 0.79, 4)
    [0.4, 0.5, 0.6, 0.7]
    """
    rough = (high - low) / about
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(unit * k for k in (1, 2, 2.5, 5, 10) if unit * k >= rough)
    return [round(i * step, 12) for i in range(math.ceil(low / step), math.floor(high / step) + 1)]
