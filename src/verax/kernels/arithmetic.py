"""Options of the compiler, and its lock across forks."""

from __future__ import annotations

import os
import warnings
from contextlib import suppress
from typing import Any

import numba
from numba.core.compiler_lock import global_compiler_lock


def _keeps_code() -> bool:
    """Whether numba finds a folder to keep compiled code in; a read-only install without a HOME has none."""
    try:
        numba.njit(cache=True)(_keeps_code)
    except RuntimeError:
        warnings.warn(
            "numba finds no writable folder for compiled code, so verax compiles in every process; "
            "NUMBA_CACHE_DIR can name one. Only you must be able to write to it, because numba runs what is "
            "kept there.",
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


def compiled(function: Any) -> Any:
    """Compile a function by numba; on a full disk its code is compiled again in each process."""
    kernel = numba.njit(**OPTIONS)(function)
    save = kernel._cache.save_overload

    def keep(*compiled: Any) -> None:
        with suppress(OSError):
            save(*compiled)

    kernel._cache.save_overload = keep
    return kernel


# Python 3.11 fails where two threads parse texts at the same time (gh-106905), so kernels are parsed under
# the lock of the compiler.
one_at_a_time: Any = global_compiler_lock

# A process that is forked while a thread compiles would find numba's lock taken forever. So a fork waits
# until nothing compiles, and both processes go on with a free lock.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=global_compiler_lock.acquire,
        after_in_parent=global_compiler_lock.release,
        after_in_child=global_compiler_lock.release,
    )
