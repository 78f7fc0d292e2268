"""Keeping the right model: histories of training, early stopping, blocks and windows of series."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from verax.selection.blocks import HBlockSplit, Parts
    from verax.selection.choice import Best, Correlation, Selection
    from verax.selection.histories import History
    from verax.selection.stopping import EarlyStopping
    from verax.selection.windows import Windows, sliding_windows

__all__ = [
    "Best",
    "Correlation",
    "EarlyStopping",
    "HBlockSplit",
    "History",
    "Parts",
    "Selection",
    "Windows",
    "sliding_windows",
]

# Imported when first used: the splitter needs scikit-learn, the others do not.
_LAZY = {
    "Best": "choice",
    "Correlation": "choice",
    "EarlyStopping": "stopping",
    "HBlockSplit": "blocks",
    "History": "histories",
    "Parts": "blocks",
    "Selection": "choice",
    "Windows": "windows",
    "sliding_windows": "windows",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        globals()[name] = value = getattr(import_module(f"verax.selection.{_LAZY[name]}"), name)
        return value
    raise AttributeError(f"module 'verax.selection' has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(__all__)
