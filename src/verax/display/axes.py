"""Axes of figures: their ends, and how places on them are written."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

# Shares of a span that are left free at its ends.
ROOM = 0.05
_DIGITS = 5


def numbers(values: Any) -> list[float]:
    """The values as floats."""
    return [float(value) for value in values]


def number_text(value: float, digits: int = _DIGITS) -> str:
    """A number of a table; empty where there is none.

    >>> number_text(-0.25), number_text(1234567.0), number_text(float("nan"))
    ('−0.25', '1,234,567', '')
    """
    if math.isnan(value):
        return ""
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    whole = value == round(value) and abs(value) < 1e15
    text = f"{value:,.0f}" if whole else f"{value:.{digits}g}"
    return text.replace("-", "−")


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


@dataclass(frozen=True)
class Axis:
    """What a direction measures, from where to where, and how places on it are written.

    Attributes
    ----------
    label : str
        What it measures.
    low, high : float or None
        Its ends; by default those of the marks, with some room.
    ticks : tuple of float
        The places that are written; by default round numbers.
    percent : bool
        Whether values are shares, written as percentages.
    log : bool
        Whether it is logarithmic.
    whole : bool
        Whether values are whole numbers.
    names : tuple of str
        The names of the places 0, 1, 2, ...; empty where it has numbers.
    ordered : bool
        Whether the places are in an order along which lines run, such as times, so that not all names need be
        written.
    """

    label: str = ""
    low: float | None = None
    high: float | None = None
    ticks: tuple[float, ...] = ()
    percent: bool = False
    log: bool = False
    whole: bool = False
    names: tuple[str, ...] = ()
    ordered: bool = False

    def span(self, values: Iterable[float]) -> tuple[float, float]:
        """Its ends, for marks at these values."""
        if self.names:
            edge = 0.5 if not self.ordered else 0.5 * min(1.0, ROOM * len(self.names))
            return -edge, max(len(self.names), 1) - 1 + edge
        scaled = [self.scaled(v) for v in values if math.isfinite(v) and (v > 0 or not self.log)]
        first, last = (min(scaled), max(scaled)) if scaled else (0.0, 1.0)
        room = ROOM * (last - first) or ROOM * abs(first) or 0.5
        low, high = (10.0**end if self.log else end for end in (first - room, last + room))
        return low if self.low is None else self.low, high if self.high is None else self.high

    def scaled(self, value: float) -> float:
        """The value on a scale along which equal steps look equal."""
        return math.log10(max(value, 1e-300)) if self.log else value

    def place(self, value: float, ends: tuple[float, float]) -> float:
        """How far along the axis a value is: 0 at its lower end, 1 at its upper one."""
        low, high = map(self.scaled, ends)
        return (self.scaled(value) - low) / (high - low) if high > low else 0.5

    def written(self, ends: tuple[float, float], about: int) -> list[tuple[float, str]]:
        """The tick places, about the given number of them, with their texts."""
        if self.names:
            every = max(1, math.ceil(len(self.names) / about)) if self.ordered else 1
            return [(float(i), self.names[i]) for i in range(0, len(self.names), every)]
        places = [t for t in self.ticks if ends[0] <= t <= ends[1]] or _round_places(self, ends, about)
        return [(place, self.text(place, places)) for place in places]

    def text(self, value: float, beside: Sequence[float] = ()) -> str:
        """A value as a text, with the digits that the values beside it need."""
        if self.names:
            i = round(value) if math.isfinite(value) else -1
            return self.names[i] if 0 <= i < len(self.names) else ""
        factor = 100 if self.percent else 1
        if self.log and (abs(value) >= 1e5 or 0 < abs(value) < 1e-3):
            return f"{value * factor:.0e}".replace("e-0", "e−").replace("e+0", "e") + "%" * self.percent
        shown = [round(factor * v, 10) for v in beside]
        digits = next((d for d in range(7) if all(abs(v - round(v, d)) < 1e-9 for v in shown)), 6)
        text = f"{factor * value:,.{0 if self.log and value >= 1 else digits}f}" if beside else ""
        if self.log and value < 1:
            text = f"{factor * value:g}"
        return (text or number_text(factor * value)).replace("-", "−") + "%" * self.percent

    def cell(self, value: float) -> str:
        """A value in a table or a hint: finer than beside ticks."""
        if self.names:
            return self.text(value)
        if self.percent and math.isfinite(value):
            return f"{number_text(100 * value, 4)}%"
        return number_text(value)


def _round_places(axis: Axis, ends: tuple[float, float], about: int) -> list[float]:
    low, high = ends
    if not axis.log:
        least = 1.0 if axis.whole else 0.0
        places = round_numbers(low, high, about)
        return [v for v in places if v == round(v)] if least and high - low >= 1 else places
    decades = math.log10(high / low)
    factors = (1.0,) if decades >= about / 2 else (1.0, 3.0) if decades > 1.2 else (1.0, 2.0, 5.0)
    every = max(1, math.ceil(decades / about))
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    exponents = [e for e in range(first, last + 1) if e % every == 0]
    return [k * 10.0**e for e in exponents for k in factors if low <= k * 10.0**e <= high]
