"""How verax says that something is wrong: the requirement, the first offending rows, the remedy."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from verax.errors import InputError

SHOWN_ROWS = 3


@dataclass
class Offenders:
    """The rows that break one requirement: all are counted, the first few are kept with their values.

    `so_far` says that more rows may follow, which nobody has looked at.
    """

    argument: str
    requirement: str
    verbs: tuple[str, str] = ("holds", "hold")
    remedy: str = ""
    so_far: bool = False
    count: int = 0
    rows: list[int] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)

    def add(
        self, mask: np.ndarray[Any, Any], values: Sequence[Any] | np.ndarray[Any, Any], start: int
    ) -> None:
        """Note the rows where `mask` is true; `start` is the number of the mask's first row."""
        found = np.flatnonzero(mask)
        self.count += int(found.size)
        for i in found[: SHOWN_ROWS - len(self.rows)]:
            self.rows.append(start + int(i))
            self.values.append(values[i])

    def error(self, remedy: str | None = None) -> InputError:
        """The error that names these rows."""
        text = f"{self.requirement}; {self._where()}."
        remedy = self.remedy if remedy is None else remedy
        return InputError(f"{text} {remedy}".rstrip(), argument=self.argument, rows=tuple(self.rows))

    def _where(self) -> str:
        shown = [show(value) for value in self.values]
        if self.count == 1:
            return f"row {self.rows[0]} {self.verbs[0]} {shown[0]}"
        rows = join(str(row) for row in self.rows)
        total = (
            f" ({self.count} rows {'so far' if self.so_far else 'in all'})"
            if self.count > len(self.rows)
            else ""
        )
        return f"rows {rows} {self.verbs[1]} {join(shown)}{total}"


def check_count(argument: str, value: object, *, least: int = 1) -> None:
    """Refuse what is no whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise InputError(
            f"`{argument}` must be a whole number of at least {least}, not {show(value)}.", argument=argument
        )


def join(parts: Iterable[str]) -> str:
    """'a', 'a and b', 'a, b and c'."""
    *head, last = parts
    return f"{', '.join(head)} and {last}" if head else last


def show(value: object, limit: int = 60) -> str:
    """A value as it stands in a message: short, and never the repr of a NumPy scalar."""
    if isinstance(value, np.ndarray):
        inner = ", ".join(show(v) for v in value[:8].tolist())
        return f"[{inner}{', ...' if value.size > 8 else ''}]"
    if isinstance(value, np.generic):
        value = value.item()
    text = f"{value:.9g}" if isinstance(value, float) else repr(value)
    return text if len(text) <= limit else f"{text[: limit - 3]}..."
