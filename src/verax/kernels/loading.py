"""The compiled kernels, where numba can be imported."""

from __future__ import annotations

import warnings
from functools import cache
from types import ModuleType

from verax._settings import settings


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
