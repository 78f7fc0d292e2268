"""PyTorch: any rule as a loss (`Loss`), as a torchmetrics metric (`Score`), after recalibration
(`RefinementScore`), or all at once (`Card`).

Arguments come in the order of PyTorch, predictions first. Classes are the second dimension, as in
`torch.nn.CrossEntropyLoss`: (N, K) or (N, K, ...) with targets (N,) or (N, ...); a single dimension
means class 1 of two.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from verax.common.packages import exports

if TYPE_CHECKING:
    from verax.adapters.torch.losses import Loss
    from verax.adapters.torch.metrics import Card, RefinementScore, Score

__all__ = ["Card", "Loss", "RefinementScore", "Score"]

# The loss needs PyTorch alone.
__getattr__: Callable[[str], Any]
__dir__: Callable[[], list[str]]
__getattr__, __dir__ = exports(
    __name__,
    {"Card": "metrics", "Loss": "losses", "RefinementScore": "metrics", "Score": "metrics"},
    missing={
        "torch": ("verax.adapters.torch needs PyTorch", "torch"),
        "torchmetrics": ("{name} needs torchmetrics", "torch"),
    },
)
