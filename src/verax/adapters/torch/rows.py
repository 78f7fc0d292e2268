"""Tensors as rows of forecasts: forms are checked, values are not, so that no device has to wait."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import torch
from array_api_compat import torch as xp
from torch import Tensor

from verax.errors import InputError
from verax.rowstats import RowStats, reduce_rows


@dataclass(frozen=True)
class TensorRows:
    """Predictions as (N, K) rows, targets as (N,) positions, weights as (N,) numbers or None.

    `rows` are logits where `logits` is true and probabilities where not. Targets outside 0..K-1 stand
    as given in `y`; statistics take the nearest class for them, and whoever asks must look at `inside`.
    """

    rows: Tensor
    y: Tensor
    weights: Tensor | None
    logits: bool

    @property
    def n_classes(self) -> int:
        return int(self.rows.shape[1])

    @property
    def inside(self) -> Tensor:
        """Which targets are classes."""
        return (self.y >= 0) & (self.y < self.n_classes)

    def statistics(self, needs: Collection[str]) -> RowStats:
        """The row statistics `needs`, in the precision of the rows."""
        p = torch.softmax(self.rows, dim=1) if self.logits else self.rows
        columns = torch.arange(self.n_classes, device=p.device)
        y = self.y.clamp(0, self.n_classes - 1)
        return reduce_rows(xp, p, y, columns, needs, logits=self.rows if self.logits else None)


def read(
    preds: Tensor, target: Tensor, weights: Tensor | None, *, logits: bool, dtype: torch.dtype
) -> TensorRows:
    """Predictions (N,), (N, K) or (N, K, ...) with their targets and weights, computed with in `dtype`."""
    _check_form(preds, target, weights)
    rows = preds.to(dtype)
    if preds.ndim == 1:
        rows = torch.stack([torch.zeros_like(rows) if logits else 1 - rows, rows], dim=1)
    elif preds.ndim > 2:
        rows = rows.movedim(1, -1).reshape(-1, preds.shape[1])
    w = None if weights is None else weights.to(dtype).reshape(-1)
    return TensorRows(rows, target.reshape(-1).long(), w, logits)


def _check_form(preds: Tensor, target: Tensor, weights: Tensor | None) -> None:
    if not preds.is_floating_point() or preds.ndim == 0:
        raise InputError(
            f"`preds` must be floating-point rows, (N, K); they are {_form(preds)}. "
            "Predictions come first, as everywhere in PyTorch, and targets second.",
            argument="preds",
        )
    if preds.ndim > 1 and preds.shape[1] < 2:
        raise InputError(
            f"`preds` must have at least two classes; their shape is {tuple(preds.shape)}. "
            "For a binary problem pass one number a row: preds.squeeze(1).",
            argument="preds",
        )
    if target.is_floating_point() or target.is_complex() or target.dtype == torch.bool:
        raise InputError(
            f"`target` must hold class positions, which are integers; it is {_form(target)}. "
            "For one-hot rows pass target.argmax(dim=1), for flags target.long().",
            argument="target",
        )
    expected = (*preds.shape[:1], *preds.shape[2:])
    if tuple(target.shape) != expected:
        raise InputError(
            f"`target` must have the shape {expected} for `preds` of shape {tuple(preds.shape)}; "
            f"its shape is {tuple(target.shape)}.",
            argument="target",
        )
    if weights is not None and tuple(weights.shape) != expected:
        raise InputError(
            f"`weights` must have the shape of `target`, {expected}; their shape is {tuple(weights.shape)}.",
            argument="weights",
        )


def _form(x: Tensor) -> str:
    return f"{x.dtype} of shape {tuple(x.shape)}"
