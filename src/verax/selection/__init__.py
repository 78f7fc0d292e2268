"""Model selection: training histories, early stopping, blocks and windows of time series."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from verax.common.packages import exports

if TYPE_CHECKING:
    from verax.selection.blocks import HBlockSplit, Parts
    from verax.selection.choice import Best, Correlation, Selection, Stop
    from verax.selection.history import History, select_over_folds
    from verax.selection.predictions import RefinementLoss
    from verax.selection.stopping import EarlyStopping
    from verax.selection.windows import Windows, sliding_windows

__all__ = [
    "Best",
    "Correlation",
    "EarlyStopping",
    "HBlockSplit",
    "History",
    "Parts",
    "RefinementLoss",
    "Selection",
    "Stop",
    "Windows",
    "select_over_folds",
    "sliding_windows",
]

# Only the splitter needs scikit-learn.
__getattr__: Callable[[str], Any]
__dir__: Callable[[], list[str]]
__getattr__, __dir__ = exports(
    __name__,
    {
        "Best": "choice",
        "Correlation": "choice",
        "EarlyStopping": "stopping",
        "HBlockSplit": "blocks",
        "History": "history",
        "Parts": "blocks",
        "RefinementLoss": "predictions",
        "Selection": "choice",
        "Stop": "choice",
        "Windows": "windows",
        "select_over_folds": "history",
        "sliding_windows": "windows",
    },
)
