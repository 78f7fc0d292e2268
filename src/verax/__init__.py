"""verax: how good are a classifier's probabilities, which model to keep, what to look at first.

>>> import verax as vx
>>> round(vx.rps([2, 0], [[0.1, 0.2, 0.7], [0.5, 0.3, 0.2]]), 4)
0.0975
"""

from __future__ import annotations

from typing import Any

import lazy_loader

from verax._version import __version__ as __version__

# `__init__.pyi` states each public name once. It is imported when first used, so `import verax` stays quick.
_named, _, _names = lazy_loader.attach_stub(__name__, __file__)
__all__ = sorted(name for name in _names if name != "__version__")


def __getattr__(name: str) -> Any:
    if name in __all__:
        globals()[name] = value = _named(name)
        return value
    if not name.startswith("_"):
        from verax.scores.registry import RULES

        # Rules that others have registered.
        if name in RULES:
            return RULES[name]
    raise AttributeError(f"module 'verax' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
