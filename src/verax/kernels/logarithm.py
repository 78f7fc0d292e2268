"""Arithmetic for compiled loops that a compiler can do on several rows at once: no call, no branch."""

from __future__ import annotations

import math
import os
import warnings
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.core.compiler_lock import global_compiler_lock
from numba.core.types import float64, int64
from numba.extending import intrinsic


def _keeps_code() -> bool:
    """Whether numba finds a folder to keep compiled code in; a read-only install without a HOME has none."""
    try:
        numba.njit(cache=True)(_keeps_code)
    except RuntimeError:
        warnings.warn(
            "numba finds no writable folder for compiled code, so verax compiles anew in every process; "
            "NUMBA_CACHE_DIR can name one.",
            RuntimeWarning,
            stacklevel=2,
        )
        return False
    return True


# Fused multiply-add is the one liberty that compiled arithmetic takes: it rounds less, not more.
OPTIONS: dict[str, Any] = {
    "nogil": True,
    "cache": _keeps_code(),
    "error_model": "numpy",
    "fastmath": {"contract"},
}


def _reading(given: Any, wanted: Any, kind: Any) -> Any:
    """The same 64 bits, read as another type."""

    @intrinsic
    def read(_context: Any, _x: Any) -> Any:
        return wanted(given), lambda _, builder, __, values: builder.bitcast(values[0], kind)

    return read


bits = _reading(float64, int64, ir.IntType(64))
_from_bits = _reading(int64, float64, ir.DoubleType())


@numba.njit(**{**OPTIONS, "fastmath": {"contract", "reassoc"}})
def plus(total: float, term: float) -> float:
    """A sum that may be added up in any order: each lane of a vector then has its own part of it."""
    return total + term


# The logarithm of x is that of the nearest number with so many binary digits after the point, which a
# table has, and the series of what is left. The table goes from the root of 1/2 to that of 2, so that
# around one, where the logarithm is small, it holds exactly one and nothing cancels.
_DIGITS = 8
_CENTRES = np.array([c if c * c < 2 else c / 2 for c in 1 + np.arange(2**_DIGITS) / 2**_DIGITS])
_RECIPROCALS = 1 / _CENTRES
_LOGS = np.array([-math.log(r) for r in _RECIPROCALS])
_SMALLEST_CENTRE = int(_CENTRES.min().view(np.int64))
_HALF_STEP = 2 ** (51 - _DIGITS)
_LOG_2 = math.log(2)
_SMALLEST_NORMAL = int(np.float64(2.0**-1022).view(np.int64))
_INFINITY = int(np.float64(np.inf).view(np.int64))


@numba.njit(**OPTIONS)
def is_odd(x: float) -> bool:
    """Whether `log` does not know x: zero, negative, infinite, missing, or below the normal numbers."""
    pattern = bits(x)
    return bool((pattern < _SMALLEST_NORMAL) | (pattern >= _INFINITY))


@numba.njit(**OPTIONS)
def log(x: float) -> float:
    """The natural logarithm of a positive normal number, within two units in the last place."""
    pattern = bits(x)
    nearest = pattern + _HALF_STEP
    exponent = (nearest - _SMALLEST_CENTRE) >> 52
    # Unsigned, for a signed position would be looked at for counting from the end.
    at = np.uint64(nearest >> (52 - _DIGITS) & (2**_DIGITS - 1))
    r = _from_bits(pattern - (exponent << 52)) * _RECIPROCALS[at] - 1
    r2 = r * r
    tail = (-1 / 2 + r * (1 / 3)) + r2 * ((-1 / 4 + r * (1 / 5)) + r2 * (-1 / 6))
    return (exponent * _LOG_2 + _LOGS[at]) + (r + r2 * tail)  # type: ignore[no-any-return]


# A process that is forked while a thread compiles would find numba's lock taken forever. So a fork waits
# until nothing compiles, and both processes go on with a free lock.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=global_compiler_lock.acquire,
        after_in_parent=global_compiler_lock.release,
        after_in_child=global_compiler_lock.release,
    )
