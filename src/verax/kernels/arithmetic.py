"""What compiled loops are made of: options of the compiler, and operations on several rows at once.

Each operation is one instruction of the compiler's language, not a function: the text that uses it is
compiled as one piece, without a call and without a branch.
"""

from __future__ import annotations

import os
import warnings
from typing import Any

import numba
from llvmlite import ir
from numba.core.compiler_lock import global_compiler_lock
from numba.core.types import boolean, float64, uint64
from numba.extending import intrinsic


def _keeps_code() -> bool:
    """Whether numba finds a folder to keep compiled code in; a read-only install without a HOME has none."""
    try:
        numba.njit(cache=True)(_keeps_code)
    except RuntimeError:
        warnings.warn(
            "numba finds no writable folder for compiled code, so verax compiles in every process; "
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


def _select(_context: Any, _condition: Any, first: Any, second: Any) -> Any:
    """`first` where the condition holds, else `second`; both are computed."""
    if first != second:
        return None
    return first(boolean, first, first), lambda _, builder, __, values: builder.select(*values)


def _plus(_context: Any, _total: Any, _term: Any) -> Any:
    """A sum that may be added up in any order: each lane of a vector then has its own part of it."""
    flags = ("reassoc", "contract")
    return float64(float64, float64), lambda _, builder, __, values: builder.fadd(*values, flags=flags)


def _fma(_context: Any, _a: Any, _b: Any, _c: Any) -> Any:
    """The value of a * b + c, rounded once."""
    return float64(float64, float64, float64), lambda _, builder, __, values: builder.fma(*values)


select: Any = intrinsic(_select)
plus: Any = intrinsic(_plus)
fma: Any = intrinsic(_fma)


def _reading(given: Any, wanted: Any, kind: Any) -> Any:
    """The same 64 bits, read as another type."""

    @intrinsic
    def read(_context: Any, _x: Any) -> Any:
        return wanted(given), lambda _, builder, __, values: builder.bitcast(values[0], kind)

    return read


bits: Any = _reading(float64, uint64, ir.IntType(64))
from_bits: Any = _reading(uint64, float64, ir.DoubleType())


# A process that is forked while a thread compiles would find numba's lock taken forever. So a fork waits
# until nothing compiles, and both processes go on with a free lock.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=global_compiler_lock.acquire,
        after_in_parent=global_compiler_lock.release,
        after_in_child=global_compiler_lock.release,
    )
