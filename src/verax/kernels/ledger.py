"""Compiled kernels, which are loaded once array calls have taken as long as loading takes."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from functools import cache
from types import ModuleType
from typing import Any

from verax._settings import settings

# Number of kinds of work that are counted before all counts restart.
_MOST_KINDS = 1000


def kernels() -> ModuleType | None:
    """The compiled kernels, or None where numba is missing or told not to compile."""
    return _loaded() if settings.kernels else None


@cache
def _loaded() -> ModuleType | None:
    try:
        import numba

        if getattr(numba.config, "DISABLE_JIT", False):
            warnings.warn(
                "NUMBA_DISABLE_JIT is set: large inputs are scored by array calls, which are slower.",
                RuntimeWarning,
                stacklevel=3,
            )
            return None
        from verax.kernels import dense
    except ImportError:
        warnings.warn(
            "numba is not installed: large inputs are scored by array calls, which are slower.",
            RuntimeWarning,
            stacklevel=3,
        )
        return None
    return dense


class _Ledger:
    """Numbers that this process has scored without certain kernels so far.

    A kernel takes a while to load, and longer to compile for the first time. Array calls answer until they
    have taken about as long: a single call does not wait, and many calls do not stay slow. There is no lock,
    which a forked process could find taken; threads that count at the same time may lose a call.
    """

    def __init__(self) -> None:
        self._spent: dict[Any, int] = {}
        self.expected = 0

    def spend(self, kind: Hashable, numbers: int) -> int:
        """Add n to the tally of a kind of work; return it."""
        if len(self._spent) > _MOST_KINDS:
            self._spent.clear()
        total = self._spent.get(kind, 0) + numbers
        self._spent[kind] = total
        return total


_LEDGER = _Ledger()


def spend(kind: Hashable, numbers: int) -> int:
    """Add n to the tally of a kind of work of this process; return it."""
    return _LEDGER.spend(kind, numbers)


def compiles(numbers: int, kind: Hashable) -> bool:
    """Whether kernels that do this kind of work exist and are worth loading, or are loaded. Counts it."""
    expected = _LEDGER.expected
    small = numbers < settings.compiled_from
    if small and (not expected or numbers < settings.compiled_in_parts_from):
        return False
    # Small parts, such as partitions of a frame, do not load kernels before they have taken that long.
    count = numbers + settings.part_overhead if small else numbers
    spent = _LEDGER.spend(kind, count) + (0 if small else expected)
    return spent >= settings.compiled_at_once and kernels() is not None


@contextmanager
def expecting(numbers: int) -> Iterator[None]:
    """Announce probabilities to be scored in parts: kernels may then pay from the first part."""
    _LEDGER.expected += numbers
    try:
        yield
    finally:
        _LEDGER.expected -= numbers
