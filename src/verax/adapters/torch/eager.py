"""Losses by PyTorch's own operations: on every device, differentiable any number of times."""

from __future__ import annotations

import torch
from torch import Tensor

from verax.adapters.torch.rows import TensorRows, read
from verax.errors import InputError, passing
from verax.scores.base import Rule


def eager_loss(
    rule: Rule,
    logits: Tensor,
    target: Tensor,
    weights: Tensor | None,
    class_weights: Tensor | None,
    reduction: str,
    ignore_index: int | None,
) -> Tensor:
    """The loss of logits (N, K, ...) when `target` (N, ...) happened, as `Loss` gives it."""
    rows = read(logits, target, weights, logits=True, dtype=computed_in(logits), ignore_index=ignore_index)
    losses = rows.statistics(rule.needs).loss(rule)
    losses = torch.where(_only_classes(rows), losses, torch.nan)
    w = _weights(rows, class_weights)
    if w is not None:
        losses = losses * w
    if reduction == "none":
        return losses.reshape(target.shape)
    total = losses.sum()
    if reduction == "sum":
        return total
    return total / (losses.numel() if w is None else w.sum())


def computed_in(logits: Tensor) -> torch.dtype:
    """The type that losses of these logits have."""
    return torch.float64 if getattr(logits, "dtype", None) == torch.float64 else torch.float32


def check_class_weights(class_weights: Tensor, n_classes: int) -> None:
    """Refuse weights that are not one per class."""
    if class_weights.shape != (n_classes,):
        raise InputError(
            f"must be {n_classes} numbers, one per class",
            argument="class_weights",
            kind="length",
            found=f"their shape is {tuple(class_weights.shape)}",
        )


def _weights(rows: TensorRows, class_weights: Tensor | None) -> Tensor | None:
    if class_weights is None:
        return rows.weights
    check_class_weights(class_weights, rows.n_classes)
    own = class_weights.to(rows.rows.dtype)[rows.y.clamp(0, rows.n_classes - 1)]
    return own if rows.weights is None else own * rows.weights


def _only_classes(rows: TensorRows) -> Tensor:
    """Which targets are classes; on the CPU, where looking costs nothing, an error if any is not."""
    inside = rows.inside
    if rows.y.device.type == "cpu" and not torch.compiler.is_compiling() and not bool(inside.all()):
        row = int(torch.nonzero(~inside)[0])
        raise InputError(
            f"must hold class positions from 0 to {rows.n_classes - 1}",
            argument="target",
            kind="label",
            found=f"row {row} holds {int(rows.y[row])}",
            rows=[row],
            values=[int(rows.y[row])],
            count=int((~inside).sum()),
            remedies=[passing("to leave such rows out", ignore_index=int(rows.y[row]))],
        )
    return inside
