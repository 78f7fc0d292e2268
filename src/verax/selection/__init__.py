"""Model selection: training histories, early stopping, blocks and windows of time series."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from verax.common.packages import exports

if TYPE_CHECKING:
    from verax.wings.select.blocks import HBlockSplit, Parts
    from verax.wings.select.choice import Best, Correlation, Selection, Stop
    from verax.wings.select.history import History, select_over_folds
    from verax.wings.select.predictions import RefinementLoss
    from verax.wings.select.stopping import EarlyStopping
    from verax.wings.select.windows import Windows, sliding_windows

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
        "Best": "verax.wings.select.choice",
        "Correlation": "verax.wings.select.choice",
        "EarlyStopping": "verax.wings.select.stopping",
        "HBlockSplit": "verax.wings.select.blocks",
        "History": "verax.wings.select.history",
        "Parts": "verax.wings.select.blocks",
        "RefinementLoss": "verax.wings.select.predictions",
        "Selection": "verax.wings.select.choice",
        "Stop": "verax.wings.select.choice",
        "Windows": "verax.wings.select.windows",
        "select_over_folds": "verax.wings.select.history",
        "sliding_windows": "verax.wings.select.windows",
    },
)
