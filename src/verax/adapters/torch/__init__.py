"""PyTorch: any rule as a loss (`Loss`), as a torchmetrics metric (`Score`), or all at once (`Card`).

Arguments come in the order of PyTorch, predictions first. Classes are the second dimension, as in
`torch.nn.CrossEntropyLoss`: (N, K) or (N, K, ...) with targets (N,) or (N, ...); a single dimension
means class 1 of two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from verax.errors import MissingPackageError

try:
    from verax.adapters.torch.losses import Loss
except ImportError as error:
    if error.name != "torch":
        raise
    raise MissingPackageError("verax.adapters.torch needs PyTorch: pip install 'verax[torch]'.") from None

if TYPE_CHECKING:
    from verax.adapters.torch.metrics import Card, Score

__all__ = ["Card", "Loss", "Score"]


def __getattr__(name: str) -> Any:
    # Losses need PyTorch alone, so torchmetrics is imported when first used.
    if name not in ("Card", "Score"):
        raise AttributeError(f"module 'verax.adapters.torch' has no attribute {name!r}")
    try:
        from verax.adapters.torch.metrics import Card, Score
    except ImportError as error:
        if error.name != "torchmetrics":
            raise
        raise MissingPackageError(f"{name} needs torchmetrics: pip install 'verax[torch]'.") from None
    return {"Card": Card, "Score": Score}[name]
